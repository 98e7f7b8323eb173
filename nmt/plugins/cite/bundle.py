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
from dataclasses import dataclass, field
from pathlib import Path

from nmt.config import LANGUAGE
from nmt.errors import NMTError, one_line
from nmt.files import read_bytes

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
    """The archive of these files: sorted by name, dated 1980, and uncompressed, as compressors differ."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in sorted(files.items()):
            member = zipfile.ZipInfo(name)
            member.create_system, member.external_attr = 3, 0o100644 << 16  # as on Unix, wherever it is written
            archive.writestr(member, content)
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
    names = sorted(path.name for path in folder.iterdir())
    check_count(folder, len(names))
    files = {name: read_bytes(folder / name) for name in names if NAME.fullmatch(name)}
    strange = {name: "not a file of a bundle" for name in names if name not in files}
    return Bundle(files, digest(pack(files)), strange)


def check_count(path: Path, count: int) -> None:
    if count > MOST_FILES:
        raise NMTError(f"{path}: not a bundle of `nmt cite`: it holds {count:,} files")


def read_archive(path: Path) -> Bundle:
    """A packed bundle, every byte of which is checked: its files by check sums, the rest against what `pack` writes."""
    content = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    # zipfile raises these for damaged archives, and NotImplementedError for those of a later version of the format.
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError, OSError) as error:
        raise NMTError(f"{path}: not a bundle of `nmt cite`, or damaged ({one_line(error)})") from error
    check_count(path, len(members))
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise NMTError(f"{path}: compressed, which `nmt cite` does not do; unpack it, and verify the folder")
    if sum(member.file_size for member in members) > len(content):
        raise NMTError(f"{path}: not a bundle of `nmt cite`, or damaged (it claims to hold more than its own bytes)")
    files, changed = dict[str, bytes](), dict[str, str]()
    for member in members:
        name, start = member.filename, member.header_offset + HEADER + len(member.filename.encode())
        files[name] = content[start : start + member.file_size]
        if not NAME.fullmatch(name):
            changed[name] = "not a file of a bundle"
        elif zlib.crc32(files[name]) != member.CRC:
            changed[name] = "changed: its check sum in the archive is of other bytes"
    if not changed and (place := first_difference(content, files)):
        changed[place[0]] = f"the archive is not as `nmt cite` writes it, first at byte {place[1]:,}"
    return Bundle(files, digest(content), changed)


def first_difference(content: bytes, files: dict[str, bytes]) -> tuple[str, int] | None:
    """The first byte, counted from 1, that `pack` writes otherwise, and the file in whose entry it is."""
    packed = pack(files)
    if packed == content:
        return None
    pairs = enumerate(zip(content, packed, strict=False))
    place = next((at for at, (found, wanted) in pairs if found != wanted), min(len(content), len(packed)))
    end = 0
    for name, data in sorted(files.items()):
        end += HEADER + len(name.encode()) + len(data)
        if place < end:
            return f"{name}, its entry in the archive", place + 1
    return "the index of the archive", place + 1


def differing(files: dict[str, bytes]) -> list[tuple[str, str]]:
    """Every file that is not as SHA256SUMS lists it, and how."""
    lines = files.get(SUMS, b"").decode(errors="replace").splitlines()[: 2 * MOST_FILES]
    found = [SUM.fullmatch(line) for line in lines]
    listed = {match[2]: match[1] for match in found if match}
    problems = [(SUMS, f"line {at} is no SHA-256 and name") for at, match in enumerate(found, 1) if not match]
    for name in sorted({*files, *listed} - {SUMS}):
        if name not in files:
            problems.append((name, f"missing, though {SUMS} lists it"))
        elif name not in listed:
            problems.append((name, f"not listed in {SUMS}"))
        elif digest(files[name]) != listed[name]:
            problems.append((name, f"changed: its SHA-256 is not the one in {SUMS}"))
    return problems
