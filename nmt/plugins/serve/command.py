"""`nmt serve`: translate over HTTP, for LibreTranslate clients and browsers."""

import ipaddress
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from nmt.commands import paths_and_texts
from nmt.config import (
    Command,
    DocumentOptions,
    NMTError,
    TranslatorOptions,
    as_list,
    inline,
    number,
    require,
    shown,
)

# What browsers send: in lower case, and without the usual port of the scheme.
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:\d+)?")
HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:]+\]")


def is_loopback(address: str) -> bool:
    """True if only this machine can reach an address."""
    with suppress(ValueError):
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    return False


@dataclass
class LimitsConfig:
    """Limits on requests, clients, queues and connections."""

    characters: int = number(20_000, 1, 10**9)
    """Maximum number of characters in all texts of a request, or in a line of a file."""
    file_bytes: int = number(5 * 2**20, 1, 2**30)
    """Maximum size of a file, or of any other request body, in bytes."""
    seconds: float = number(120.0, 0.1, 86_400.0)
    """Maximum number of seconds from the end of a request's headers to the end of its answer."""
    requests_per_minute: int | None = number(120, 1, 10**9)
    """Requests per minute per key or, without keys, per remote address; null: unlimited."""
    waiting_lines: int = number(20_000, 1, 10**9)
    """Maximum number of lines queued for a model (else status 503); a request may have half as many
    (else 413)."""
    connections: int = number(1000, 1, 10**6)
    """Maximum number of open connections; further connections are refused with status 503."""


@dataclass
class ServeConfig:
    """Options of `nmt serve`."""

    run: Any = "runs/latest"
    """Runs or model directories; may be given without run=. Of two models for the same languages,
    the first is used."""
    host: str = "127.0.0.1"
    """Address to listen on. If other machines can reach it, keys=FILE or anonymous=true is
    required."""
    port: int = number(5000, 0, 65_535)
    """Port to listen on; 0: any free port."""
    open: bool = False
    """Open the page in a browser."""
    keys: str | None = None
    """File with the name and SHA-256 of each API key; null: no keys."""
    anonymous: bool = False
    """Allow listening on any address without keys."""
    hosts: Any = field(default_factory=list)
    """Names to accept in requests besides localhost on a server without keys, such as
    [translate.example.org]."""
    cors: Any = field(default_factory=list)
    """Origins of other sites whose pages may send requests, such as [https://example.org]."""
    suggestions: str | None = None
    """File (TSV) that collects the translations that users suggest; null: suggestions are
    disabled."""
    # The options of `nmt translate` that apply to all models.
    translator: TranslatorOptions = inline(
        TranslatorOptions(),
        "engine",
        "precision",
        "threads",
        "device",
        "decode",
        "protection",
        "memory",
    )
    document: DocumentOptions = inline(DocumentOptions())
    limits: LimitsConfig = field(default_factory=LimitsConfig)

    def __post_init__(self) -> None:
        self.run = as_list(self.run)
        self.hosts = as_list(self.hosts)
        self.cors = as_list(self.cors)
        for origin in self.cors:
            problem = f"cors={shown(origin)}: must be an origin such as https://example.org"
            require(ORIGIN.fullmatch(str(origin)) is not None, f"{problem}, without a path")
        for host in self.hosts:
            problem = f"hosts={shown(host)}: must be a name such as translate.example.org"
            require(HOST.fullmatch(str(host)) is not None, f"{problem}, without scheme and port")
        require(bool(self.run), "run: name one or more runs or model directories")
        if self.translator.decode.do_sample:
            raise NMTError("decode.do_sample=true: the server cannot sample translations")
        # Opening the server to everybody must be a decision, not an oversight.
        is_safe = is_loopback(self.host) or self.keys is not None or self.anonymous
        if not is_safe:
            problem = "other machines could use this server without a key"
            advice = "pass keys=FILE (docs/guides/serve.md), or allow everyone with anonymous=true"
            raise NMTError(f"host={self.host}: {problem}; {advice}")


def run(config: ServeConfig) -> None:
    # Only now, because its packages are slow to import.
    from nmt.plugins.serve.running import serve

    serve(config)


def models(words: list[str]) -> dict[str, Any]:
    """Convert command-line arguments to options."""
    usage = "`nmt serve RUN...`, or no argument for runs/latest"
    files, folders, texts = paths_and_texts(words, usage)
    others = [*files, *texts]
    if others:
        raise NMTError(f"{others[:1]}: `nmt serve` takes only runs and model directories")
    return {"run": folders}


COMMAND = Command(
    "serve",
    ServeConfig,
    run,
    models,
    usage="[RUN]...",
    examples=("runs/corpus-30min --open", "runs/corpus-30min precision=int8 port=8080"),
    options={"--open": "open=true"},
    memory="serve fewer models, or pass precision=int8",
    groups={"decode": "paper"},
)
