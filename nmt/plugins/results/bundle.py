"""Bundles of translations and scores: the statement in a bundle, and how to pack and read it.

A bundle is a zip archive whose bytes depend only on its files:

bundle.json                     the statement
hypotheses.TARGET               the translations
README.md, config.json          the model's card and description
config.yaml, environment.json   of the run, if there is one
source.SOURCE, reference.TARGET the test set, on request
SHA256SUMS                      of all other files, for `sha256sum -c`
"""

import hashlib
import io
import re
import struct
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from nmt import translation
from nmt.config import LANGUAGE, DecodeConfig, require, shown, with_defaults
from nmt.errors import NMTError, one_line
from nmt.files import MODEL_FILES, read_bytes
from nmt.plugins.results.translating import Computation

STATEMENT = "bundle.json"
SUMS = "SHA256SUMS"
CARD = "README.md"
DESCRIPTION = "config.json"
OF_MODEL = (CARD, DESCRIPTION)
OF_RUN = ("config.yaml", "environment.json")
FIXED_NAMES = (STATEMENT, SUMS, *OF_MODEL, *OF_RUN)
NAME = re.compile(
    "|".join(re.escape(name) for name in FIXED_NAMES)
    + rf"|(hypotheses|source|reference)\.{LANGUAGE.pattern}"
)
"""The name of a file that a bundle may contain."""
FORMAT_VERSION = 2
# Nothing in a bundle depends on them, so only the published SHA-256 protects them.
UNPROVEN = ("run", "test_set", "commands", "device", "versions")
"""Keys of the statement that cannot be checked."""
PARTS = {
    "texts": ("source", "reference"),
    "model": MODEL_FILES,
    "decode": [key.name for key in fields(DecodeConfig)],
}
"""Keys of the statement -> the keys of their values."""
UNIX = 3  # zipfile's number for the system that wrote a file
READABLE_FILE = 0o100644 << 16  # a regular file with mode 644, where Unix stores it
LOCAL_HEADER_BYTES = 30
"""Size of the header before each file's name and content (APPNOTE.TXT, 4.3.7)."""


@dataclass
class Statement:
    """The content of `bundle.json`."""

    run: str
    test_set: str
    source: str  # a language
    target: str
    lines: int
    texts: dict[str, str]  # SHA-256
    model: dict[str, str]  # SHA-256
    decode: dict[str, Any]
    language_tag: str | None  # target= for a model with several target languages
    lowercase: bool
    scores: list[dict[str, Any]]
    commands: list[str]
    device: str
    versions: dict[str, str]
    files: list[str]  # except bundle.json and SHA256SUMS
    format_version: int = FORMAT_VERSION
    computation: Computation = field(default_factory=Computation)

    def __post_init__(self) -> None:
        # The statement may be hostile: all that is used as a file name or a key is checked here.
        if self.format_version != FORMAT_VERSION:
            raise NMTError(f"{STATEMENT}: wrong format; use the nmt version that wrote it")
        for language in (self.source, self.target, self.language):  # they are part of file names
            if not LANGUAGE.fullmatch(language):
                raise NMTError(f"{language[:40]!r} is not a language code")
        # The nmt that wrote the bundle may have had fewer options.
        self.decode = with_defaults(DecodeConfig, self.decode)
        for key, names in PARTS.items():
            if set(getattr(self, key)) != set(names):
                raise NMTError(f"{STATEMENT}, {key}: must have {', '.join(names)}")
        for key in ("lines", *UNPROVEN):
            require(bool(getattr(self, key)), f"{STATEMENT}, {key}: must not be empty")
        texts = (f"source.{self.source}", f"reference.{self.target}", self.hypotheses)
        unexpected = set(self.files) - {*OF_MODEL, *OF_RUN, *texts}
        if unexpected:
            names = shown(", ".join(sorted(unexpected)))
            raise NMTError(f"{STATEMENT}, files: {names}: do not belong in a bundle")

    @property
    def language(self) -> str:
        """The language of the translations."""
        return translation.language_of(self.language_tag or self.target)

    @property
    def hypotheses(self) -> str:
        """The name of the file of translations."""
        return f"hypotheses.{self.target}"


@dataclass
class Bundle:
    """The files of a bundle, as read."""

    files: dict[str, bytes]
    sha256: str
    """SHA-256 of the archive; of an unpacked bundle, of the archive that `nmt cite` would write."""
    problems: dict[str, str]
    """File name -> problem; the name "archive" stands for the archive itself."""


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def text_of(lines: Iterable[str]) -> bytes:
    """The lines in UTF-8, each ending in LF, regardless of the line endings in their file."""
    return "".join(f"{line}\n" for line in lines).encode()


def sums(files: dict[str, bytes]) -> bytes:
    # Two blanks between hash and name, as `sha256sum -c` reads them.
    lines = [f"{digest(content)}  {name}" for name, content in sorted(files.items())]
    return text_of(lines)


def pack(files: dict[str, bytes]) -> bytes:
    """An archive of these files; its bytes do not depend on the time or the machine."""
    buffer = io.BytesIO()
    # Uncompressed, because versions of a compressor produce different bytes.
    with zipfile.ZipFile(buffer, "w") as archive:
        # Sorted, because the order of members is part of the bytes.
        for name, content in sorted(files.items()):
            # Without a time, so that the bytes do not depend on the clock.
            member = zipfile.ZipInfo(name)  # dated 1980
            # zipfile would record the system that it runs on.
            member.create_system = UNIX
            member.external_attr = READABLE_FILE
            archive.writestr(member, content)
    return buffer.getvalue()


def read_bundle(path: Path) -> Bundle:
    """A packed or unpacked bundle; NMTError if the path is not a bundle.

    Checksums cover the files; the rest of the archive must match what `pack` writes.
    """
    if path.is_dir():
        # Files that do not belong to a bundle are named as problems, but never read.
        names = sorted(file.name for file in path.iterdir())
        files = {name: read_bytes(path / name) for name in names if NAME.fullmatch(name)}
        # So that the folder has the same SHA-256 as the archive that it was unpacked from.
        archive = pack(files)
    else:
        archive = read_bytes(path)
        members = read_members(path, archive)
        names = [name for name, _ in members]
        files = dict(members)
    problems = {name: "not a file of a bundle" for name in names if not NAME.fullmatch(name)}
    # Checksums do not cover comments, times, and bytes between the members of a zip archive, where
    # something could be hidden.
    if not problems and pack(files) != archive:
        problems["archive"] = "not as written by `nmt cite`"
    # Not among the problems: without a statement, there is nothing to verify.
    if STATEMENT not in files:
        raise NMTError(f"{path}: not a bundle from `nmt cite` (no {STATEMENT})")
    problems |= wrong_sums(files)
    return Bundle(files, digest(archive), dict(sorted(problems.items())))


def wrong_sums(files: dict[str, bytes]) -> dict[str, str]:
    """The files with wrong checksums, and SHA256SUMS itself if any of its lines is wrong."""
    summed = {name: content for name, content in files.items() if name != SUMS}
    stated_lines = set(files.get(SUMS, b"").split(b"\n"))
    correct_lines = set(sums(summed).split(b"\n"))
    problems = {}
    # In one set only: a line that is missing, or one that should not be there.
    for line in stated_lines ^ correct_lines:
        name = line.decode(errors="replace").split("  ")[-1]
        problems[name] = f"does not match {SUMS}"
        problems[SUMS] = "does not match"
    return problems


def read_members(path: Path, content: bytes) -> list[tuple[str, bytes]]:
    """Name and content of each member of an uncompressed archive.

    The contents are slices of the archive: `zipfile` would stop at a wrong CRC, and `nmt verify`
    must report which file differs.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        struct.error,
        OverflowError,
        OSError,
    ) as error:
        problem = f"not a bundle from `nmt cite`, or damaged ({one_line(error)})"
        raise NMTError(f"{path}: {problem}") from error
    # The contents are slices, so together they fit into the archive unless members overlap, as in a
    # zip bomb.
    if sum(member.file_size for member in members) > len(content):
        problem = "not a bundle from `nmt cite`, or compressed"
        raise NMTError(f"{path}: {problem}; unpack it and verify the folder")
    contents = []
    for member in members:
        name = member.filename
        # Extra fields could shift the content; `pack` writes none, and `read_bundle` compares the
        # whole archive with what it writes.
        start = member.header_offset + LOCAL_HEADER_BYTES + len(name.encode())
        contents.append((name, content[start : start + member.file_size]))
    return contents
