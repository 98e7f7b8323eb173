"""What a bundle states, `bundle.json`, of which model. No torch."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from nmt.config import LANGUAGE, DecodeConfig, build, metric_names, require
from nmt.errors import NMTError, one_line
from nmt.evaluation import Score
from nmt.files import (
    ModelDescription,
    check_version,
    find_model_directory,
    is_exported,
    is_parser,
    parse_json,
    read_description,
    sha256,
)
from nmt.plugins.cite.bundle import STATEMENT, digest
from nmt.text import decoded
from nmt.translation import CONVERTED_FILES, language_of

FORMAT_VERSION = 2


@dataclass
class Statement:
    """`bundle.json`."""

    run: str
    """Name of the run, or of the model directory."""
    test_set: str
    """Name of the test set."""
    source: str
    """Source language."""
    target: str
    """Target language."""
    lines: int
    texts: dict[str, str]
    """SHA-256 of source and reference, as `text_digest` computes it."""
    model: dict[str, str]
    """SHA-256 of each file that decides what the model translates."""
    decode: dict[str, Any]
    """The search, all of its keys."""
    language_tag: str | None
    """`target=` of a model for several languages."""
    lowercase: bool
    scores: list[dict[str, Any]]
    """Each a Score; of its value, all digits."""
    commands: list[str]
    """What was, or would be, typed for the same in a shell."""
    device: str
    versions: dict[str, str]
    files: list[str]
    """The other files of the bundle, without SHA256SUMS."""
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        for language in (self.source, self.target, self.language):
            require(bool(LANGUAGE.fullmatch(language)), f"{language[:40]!r} is not a language code")  # they name files
        for key in {*self.decode} - {field.name for field in fields(DecodeConfig)}:
            raise NMTError(f"{STATEMENT}, decode: unknown key {key[:40]!r}")

    @property
    def language(self) -> str:
        """The language of the translations."""
        return language_of(self.language_tag or self.target)

    def missing(self) -> list[str]:
        """What `nmt cite` states and this does not, by the names of the keys."""
        stated = {
            **{f"texts.{kind}": self.texts.get(kind) for kind in ("source", "reference")},
            **{f"model.{name}": self.model.get(name) for name in CONVERTED_FILES},
            **{f"decode.{field.name}": field.name in self.decode for field in fields(DecodeConfig)},
            **{key: getattr(self, key) for key in ("run", "test_set", "lines", "commands", "device", "versions")},
        }
        return [name for name, value in stated.items() if not value]

    @property
    def search(self) -> DecodeConfig:
        """The search; NMTError where its values are none."""
        return build(DecodeConfig, self.decode, f"{STATEMENT}, decode")

    def stated_scores(self) -> list[Score]:
        """The scores; NMTError where one has no metric that is known here."""
        scores, names = [build(Score, tree, f"{STATEMENT}, scores") for tree in self.scores], metric_names("text")
        for score in scores:
            if score.metric not in names:
                raise NMTError(f"{STATEMENT}, scores: metric {score.metric[:40]!r} is none of {', '.join(names)}")
        return scores


def read_statement(content: bytes, bundle: Path) -> Statement:
    """The statement in the bytes of a bundle's `bundle.json`; NMTError where there is none."""
    path = bundle / STATEMENT
    try:
        tree = parse_json(content)
    except ValueError as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if isinstance(tree, dict):
        check_version(path, tree.get("format_version"), FORMAT_VERSION)
    return build(Statement, tree, str(path))


def text_of(lines: Iterable[str]) -> bytes:
    """Lines as the bytes of a file: UTF-8, each ended by LF."""
    return "".join(f"{line}\n" for line in lines).encode()


def text_digest(lines: Iterable[str]) -> str:
    """SHA-256 of a text in UTF-8 with LF at each line's end, however its file is compressed and ends its lines."""
    return digest(text_of(lines))


def lines_of(content: bytes, where: str) -> list[str]:
    """The lines whose `text_of` these bytes are; NMTError, which begins with `where`, for a malformed one."""
    return list(decoded(content.removesuffix(b"\n").split(b"\n"), f"{where}, ")) if content else []


@dataclass
class Cited:
    """A model to cite: where it lies, and its description."""

    folder: Path
    """The model directory."""
    run: Path | None
    """The run around it, if there is one."""
    description: ModelDescription
    digests: dict[str, str]
    """SHA-256 of each file that decides what the model translates."""


def find_cited(name: str) -> Cited:
    """The model of a run or model directory; NMTError for one that does not translate by itself."""
    path = Path(name)
    if path.is_symlink():  # runs/latest is another run tomorrow
        path = path.parent / path.readlink()
    folder = find_model_directory(str(path))
    if is_exported(folder):
        raise NMTError(f"run={name}: exported for another program; pass the run or model directory")
    description = read_description(folder)
    if is_parser(description):
        raise NMTError(f"run={name}: a parser; nmt cite is for translations, `nmt score metrics=[brackets]` for trees")
    run = folder.parent if folder.name == "model" and (folder.parent / "config.yaml").is_file() else None
    return Cited(folder, run, description, {name: sha256(folder / name) for name in CONVERTED_FILES})
