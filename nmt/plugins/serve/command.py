"""`nmt serve`: translation over HTTP, for LibreTranslate's clients and for browsers."""

import importlib.util
import ipaddress
from dataclasses import dataclass, field
from typing import Any

from nmt.commands import paths_and_texts
from nmt.config import Command, Option, TranslatorOptions, as_list, inline, number, require
from nmt.errors import how_to_install

OFFERED = "engine precision threads device decode protection"
"""Keys of `nmt translate` that hold for all models."""


def is_loopback(address: str) -> bool:
    """True for an address of this machine that no other one can reach."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


@dataclass
class LimitsConfig:
    """What one request, or one client, may take."""

    characters: int = number(20_000, 1, 10**9)
    """Characters of a text; a request may hold a list of texts, which count together."""
    file_bytes: int = number(5 * 2**20, 1, 2**30)
    """Bytes of a file, and of any other request."""
    seconds: float = number(120.0, 0.1, 86_400.0)
    """Seconds from a request to the end of its answer."""
    upload_seconds: float = number(20.0, 0.1, 86_400.0)
    """Seconds in which a request has to arrive as a whole."""
    requests_per_minute: int | None = number(120, 1, 10**9)
    """Requests of a key, or without keys of an address, in a minute; null: any number. Not for this machine itself."""
    waiting_lines: int = number(20_000, 1, 10**9)
    """Lines that may wait for a model; more are refused with status 503."""
    connections: int = number(1000, 1, 10**6)
    """Connections at the same time; more are refused with status 503."""


@dataclass
class ServeConfig:
    """The tree of `nmt serve`."""

    run: Any = "runs/latest"
    """Runs, model directories or exported models; words are short for it. Of two models for the same languages, the
    first is used."""
    host: str = "127.0.0.1"
    """Address to listen at. Any but this machine's own needs keys, or anonymous=true."""
    port: int = number(5000, 0, 65_535)
    """Port to listen at; 0: any that is free."""
    open: bool = False
    """Open the page in a browser."""
    keys: str | None = None
    """File of API keys, each as its name and its SHA-256; null: no keys."""
    anonymous: bool = False
    """Listen at any address without keys."""
    hosts: Any = field(default_factory=list)
    """Names that a proxy passes on, such as [translate.example.org]; without keys, a server at 127.0.0.1 answers to
    its own names and these alone."""
    cors: Any = field(default_factory=list)
    """Origins of other pages that may ask from a browser, such as [https://example.org]; none by default."""
    translator: TranslatorOptions = inline(TranslatorOptions(), *OFFERED.split())
    limits: LimitsConfig = field(default_factory=LimitsConfig)

    def __post_init__(self) -> None:
        self.run, self.hosts, self.cors = as_list(self.run), as_list(self.hosts), as_list(self.cors)
        require(bool(self.run), "run: name a run, a model directory, or several")
        samples = self.translator.decode.do_sample
        require(not samples, "decode.do_sample=true: a server answers with the best translation")
        require(
            self.is_local or self.keys is not None or self.anonymous,
            f"host={self.host}: others could use this server without a key; pass keys=FILE (docs/serving.md), or "
            "allow everyone with anonymous=true",
        )

    @property
    def is_local(self) -> bool:
        """True if only programs of this machine can connect."""
        return self.host == "localhost" or is_loopback(self.host)


def run(config: ServeConfig) -> None:
    """Serve until SIGTERM or Ctrl-C."""
    missing = [
        name for name in ("starlette", "uvicorn", "pydantic", "py3langid") if importlib.util.find_spec(name) is None
    ]
    require(not missing, f"nmt serve: {', '.join(missing)} not installed; {how_to_install('serve')}")
    from nmt.plugins.serve.app import serve

    serve(config)


def models(words: list[str]) -> dict[str, Any]:
    """The models to serve; NMTError for a word that names none."""
    files, folders, texts = paths_and_texts(words, "`nmt serve RUN...`, or no word for runs/latest")
    require(not files and not texts, f"{[*files, *texts][:1]}: `nmt serve` takes runs and model directories alone")
    return {"run": folders}


COMMAND = Command(
    "serve",
    ServeConfig,
    run,
    models,
    usage="[RUN]...",
    example="runs/mine precision=int8",
    options={"--open": Option("Short for open=true: open the page in a browser.", override="open=true")},
    memory="serve fewer models, or take precision=int8",
    groups={"decode": "paper"},
)
