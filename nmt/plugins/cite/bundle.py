"""A bundle: one zip archive whose bytes depend on its files alone, read as what a stranger may have made. No torch.

bundle.json                     what is stated (statement.py)
hypotheses.TARGET               the translations
README.md, config.json          the model's card and description
config.yaml, environment.json   of the run, if the model has one
source.SOURCE, reference.TARGET the test set, on request
SHA256SUMS                      of all other files, as `sha256sum -c` reads it
"""

import hashlib
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nmt.config import LANGUAGE
from nmt.errors import NMTError, one_line
from nmt.files import read_bytes, write_zip

STATEMENT, SUMS = "bundle.json", "SHA256SUMS"
NAME = re.compile(
    r"bundle\.json|SHA256SUMS|README\.md|config\.json|config\.yaml|environment\.json"
    rf"|(hypotheses|source|reference)\.{LANGUAGE.pattern}"
)
SUM = re.compile(r"([0-9a-f]{64})  (\S{1,100})")
MOST_FILES = 100
"""Most files that are looked at; a bundle has at most nine."""
HEADER = 30
"""Bytes before the name in the entry of a zip archive."""


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def with_sums(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files, and SHA256SUMS of them."""
    sums = "".join(f"{digest(content)}  {name}\n" for name, content in sorted(files.items()))
    return {**files, SUMS: sums.encode()}


def pack(files: dict[str, bytes]) -> bytes:
    """The archive of these files, sorted by name."""
    buffer = io.BytesIO()
    write_zip(dict(sorted(files.items())), buffer)
    return buffer.getvalue()


@dataclass
class Bundle:
    """The files of a bundle, and what is wrong with them."""

    files: dict[str, bytes]
    sha256: str
    """Of the archive that `nmt cite` writes of these files; of an archive, its own."""
    changed: dict[str, str] = field(default_factory=dict)
    """File -> how it shows that it is another than `nmt cite` wrote."""


def read_bundle(path: Path) -> Bundle:
    """A bundle, packed or unpacked, with its check sums held against its files; NMTError where it is none."""
    bundle = read_folder(path) if path.is_dir() else read_archive(path)
    if STATEMENT not in bundle.files:
        raise NMTError(f"{path}: not a bundle of `nmt cite`, which holds a {STATEMENT}")
    for name, problem in differing(bundle.files):
        bundle.changed.setdefault(name, problem)
    return bundle


def read_folder(folder: Path) -> Bundle:
    """An unpacked bundle."""
    names = sorted(path.name for path in folder.iterdir())[:MOST_FILES]
    files = {name: read_bytes(folder / name) for name in names if NAME.fullmatch(name)}
    return Bundle(files, digest(pack(files)), {name: "not a file of a bundle" for name in names if name not in files})


def read_archive(path: Path) -> Bundle:
    """A packed bundle, every byte of which is checked: its files by check sums, the rest against what `pack` writes."""
    content = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    # zipfile raises these for damaged archives, and NotImplementedError for those of a later version of the format.
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError, OSError) as error:
        raise NMTError(f"{path}: not a bundle of `nmt cite`, or damaged ({one_line(error)})") from error
    if len(members) > MOST_FILES or sum(member.file_size for member in members) > len(content):
        raise NMTError(f"{path}: not a bundle of `nmt cite`, or compressed; unpack it, and verify the folder")
    bundle = Bundle({}, digest(content))
    for member in members:
        name, start = member.filename, member.header_offset + HEADER + len(member.filename.encode())
        bundle.files[name] = content[start : start + member.file_size]
        if not NAME.fullmatch(name):
            bundle.changed[name] = "not a file of a bundle"
        elif zlib.crc32(bundle.files[name]) != member.CRC:
            bundle.changed[name] = "changed: its check sum in the archive is of other bytes"
    if not bundle.changed and pack(bundle.files) != content:
        bundle.changed["archive"] = "not as `nmt cite` writes it"
    return bundle


def differing(files: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """Every file that is not as SHA256SUMS lists it, and how."""
    lines = files.get(SUMS, b"").decode(errors="replace").splitlines()[: 2 * MOST_FILES]
    matches = [SUM.fullmatch(line) for line in lines]
    yield from ((SUMS, f"line {at} is no SHA-256 and name") for at, match in enumerate(matches, 1) if not match)
    listed = {match[2]: match[1] for match in matches if match}
    for name in sorted({*files, *listed} - {SUMS}):
        if name not in files:
            yield name, f"missing, though {SUMS} lists it"
        elif name not in listed:
            yield name, f"not listed in {SUMS}"
        elif digest(files[name]) != listed[name]:
            yield name, f"changed: its SHA-256 is not the one in {SUMS}"
