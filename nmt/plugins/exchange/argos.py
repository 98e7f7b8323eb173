"""Packages of Argos Translate (https://www.argosopentech.com). No torch.

NAME.argosmodel is a zip archive of a folder with a model of CTranslate2 in model/, metadata.json, and
sentencepiece.model or bpe.model. What else it holds, as models that split text into sentences, is not read.
"""

import lzma
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import NMTError, one_line
from nmt.files import opened, parse_json, read_mapping

MEMBER = re.compile(r"(?:[^/]+/)?(metadata\.json|(?:sentencepiece|bpe)\.model|model/[a-z_]+\.(?:bin|json|txt))")
MOST_GROWTH = 10
"""A package holds at most so many times its own bytes. Numbers of a model hardly shrink."""


@dataclass
class Package:
    """A package of Argos Translate."""

    model: Path
    """A folder for `read_model`."""
    tokenizer: Path
    """sentencepiece.model, which splits both languages."""
    source: str
    target: str


def is_package(path: Path) -> bool:
    """True for a package of Argos Translate, packed or unpacked."""
    return path.suffix == ".argosmodel" or (path / "metadata.json").is_file()


@contextmanager
def open_package(path: Path) -> Iterator[Package]:
    """A package, packed or unpacked; NMTError where it is none. What is unpacked is gone afterwards."""
    if path.is_dir():
        yield read_package(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            unpack(path, Path(folder))
            yield read_package(Path(folder))
        except NMTError as error:
            raise NMTError(str(error).replace(folder, str(path))) from error


def unpack(path: Path, folder: Path) -> None:
    """Unpack what we read of a package; whatever its members are called, all of it goes to this folder."""
    with opened(path) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = [(MEMBER.fullmatch(member.filename), member) for member in archive.infolist()]
                wanted = {match[1]: member for match, member in members if match}
                if len(wanted) < sum(match is not None for match, _ in members):
                    raise NMTError(f"{path}: it holds two packages")
                if sum(member.file_size for member in wanted.values()) > MOST_GROWTH * path.stat().st_size:
                    raise NMTError(f"{path}: it claims to hold {MOST_GROWTH} times its own bytes")
                for name, member in wanted.items():
                    (folder / name).parent.mkdir(exist_ok=True)
                    with archive.open(member) as source, (folder / name).open("wb") as target:
                        shutil.copyfileobj(source, target)
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError) as error:
            raise NMTError(
                f"{path}: not a package of Argos Translate, or damaged ({one_line(error) or 'it is cut'})"
            ) from error


def read_package(folder: Path) -> Package:
    """The package in a folder; NMTError where something is missing."""
    path, tokenizer = folder / "metadata.json", folder / "sentencepiece.model"
    metadata = read_mapping(path, parse_json)
    source, target, prefix = metadata.get("from_code"), metadata.get("to_code"), metadata.get("target_prefix", "")
    if not (isinstance(source, str) and isinstance(target, str) and isinstance(prefix, str)):
        raise NMTError(f"{path}: no from_code and to_code, which name its languages")
    if not tokenizer.is_file():
        found = "bpe.model, which splits the words of Moses" if (folder / "bpe.model").is_file() else "no tokenizer"
        raise NMTError(f"{folder}: it has {found}; nmt reads packages with sentencepiece.model")
    if prefix:
        raise NMTError(f"{path}: each translation begins with {prefix[:40]!r}, which nmt would not cut off")
    if (folder / "model").is_symlink():
        raise NMTError(f"{folder / 'model'}: a link, which is not followed")
    return Package(folder / "model", tokenizer, source, target)
