"""A bundle: one zip archive whose bytes depend on its files alone, read as what a stranger may have made. No torch.

bundle.json                     the statement (verify.py)
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
from pathlib import Path

from nmt.config import LANGUAGE
from nmt.errors import NMTError, one_line
from nmt.files import read_bytes

STATEMENT, SUMS = "bundle.json", "SHA256SUMS"
CARD, DESCRIPTION = "README.md", "config.json"
MODEL_AND_RUN = (CARD, DESCRIPTION, "config.yaml", "environment.json")
NAME = re.compile(
    "|".join(map(re.escape, (STATEMENT, SUMS, *MODEL_AND_RUN))) + rf"|(hypotheses|source|reference)\.{LANGUAGE.pattern}"
)
SUM = re.compile(r"([0-9a-f]{64})  (\S{1,100})")
MAX_FILES = 100
"""Of these, a bundle of `nmt cite` has at most nine."""
HEADER = 30
"""Bytes before the name in the entry of a zip archive."""


def digest(content: bytes) -> str:
    """SHA-256, in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def pack(files: dict[str, bytes]) -> bytes:
    """The archive of these files, sorted by name; nothing in it depends on time or machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # uncompressed, because compressors differ
        for name, content in sorted(files.items()):
            member = zipfile.ZipInfo(name)  # dated 1980
            member.create_system, member.external_attr = 3, 0o100644 << 16  # as on Unix, wherever it is written
            archive.writestr(member, content)
    return buffer.getvalue()


def pack_with_sums(files: dict[str, bytes]) -> bytes:
    """The archive of these files and of SHA256SUMS."""
    sums = "".join(f"{digest(content)}  {name}\n" for name, content in sorted(files.items()))
    return pack({**files, SUMS: sums.encode()})


def read_bundle(path: Path) -> tuple[dict[str, bytes], str, dict[str, str]]:
    """The files of a bundle, packed or unpacked; the SHA-256 of its archive; and file -> how it differs from cite's.

    Raises NMTError where it is no bundle. Every byte of an archive is checked: the files by check sums, and the rest
    against what `pack` writes.
    """
    files, changed = dict[str, bytes](), dict[str, str]()
    if path.is_dir():
        for name in sorted(file.name for file in path.iterdir())[:MAX_FILES]:
            if NAME.fullmatch(name):
                files[name] = read_bytes(path / name)
            else:
                changed[name] = "not a file of a bundle"
        archive = pack(files)
    else:
        archive = read_bytes(path)
        for name, content, crc in read_members(path, archive):
            files[name] = content
            if not NAME.fullmatch(name):
                changed[name] = "not a file of a bundle"
            elif zlib.crc32(content) != crc:
                changed[name] = "changed: its check sum in the archive is of other bytes"
        if not changed and pack(files) != archive:
            changed["archive"] = "not as `nmt cite` writes it"
    if STATEMENT not in files:
        raise NMTError(f"{path}: not a bundle of `nmt cite`, which holds a {STATEMENT}")
    return files, digest(archive), changed | {name: how for name, how in differing(files) if name not in changed}


def read_members(path: Path, content: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Name, bytes and check sum of each member of an archive without compression; NMTError for another file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    # zipfile raises these for damaged archives, and NotImplementedError for those of a later version of the format.
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError, OSError) as error:
        raise NMTError(f"{path}: not a bundle of `nmt cite`, or damaged ({one_line(error)})") from error
    if len(members) > MAX_FILES or sum(member.file_size for member in members) > len(content):
        raise NMTError(f"{path}: not a bundle of `nmt cite`, or compressed; unpack it, and verify the folder")
    for member in members:
        start = member.header_offset + HEADER + len(member.filename.encode())
        yield member.filename, content[start : start + member.file_size], member.CRC


def differing(files: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    """Every file that is not as SHA256SUMS lists it, and how."""
    lines = files.get(SUMS, b"").decode(errors="replace").splitlines()[: 2 * MAX_FILES]
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
