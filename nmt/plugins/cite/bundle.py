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

from nmt.config import LANGUAGE, require
from nmt.errors import NMTError, one_line
from nmt.files import read_bytes

STATEMENT, SUMS = "bundle.json", "SHA256SUMS"
CARD, DESCRIPTION = "README.md", "config.json"
MODEL_AND_RUN = (CARD, DESCRIPTION, "config.yaml", "environment.json")
NAME = re.compile(
    "|".join(map(re.escape, (STATEMENT, SUMS, *MODEL_AND_RUN))) + rf"|(hypotheses|source|reference)\.{LANGUAGE.pattern}"
)


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


def sums(files: dict[str, bytes]) -> bytes:
    """SHA256SUMS of these files."""
    return "".join(f"{digest(content)}  {name}\n" for name, content in sorted(files.items())).encode()


def read_bundle(path: Path) -> tuple[dict[str, bytes], str, dict[str, str]]:
    """The files of a bundle, packed or unpacked; the SHA-256 of its archive; and file -> how it differs from cite's.

    Raises NMTError where it is no bundle. Every byte of an archive is checked: the files by check sums, and the rest
    against what `pack` writes.
    """
    changed = dict[str, str]()
    if path.is_dir():
        names = sorted(file.name for file in path.iterdir())
        files = {name: read_bytes(path / name) for name in names if NAME.fullmatch(name)}
        archive = pack(files)
    else:
        archive = read_bytes(path)
        members = list(read_members(path, archive))
        names, files = [name for name, *_ in members], {name: content for name, content, _ in members}
        for name, content, crc in members:
            if zlib.crc32(content) != crc:
                changed[name] = "changed: its check sum in the archive is of other bytes"
    changed |= {name: "not a file of a bundle" for name in names if not NAME.fullmatch(name)}
    if not changed and pack(files) != archive:
        changed["archive"] = "not as `nmt cite` writes it"
    require(STATEMENT in files, f"{path}: not a bundle of `nmt cite`, which holds a {STATEMENT}")
    listed, others = files.get(SUMS, b""), {name: content for name, content in files.items() if name != SUMS}
    for line in {*listed.split(b"\n")} ^ {*sums(others).split(b"\n")}:
        changed.setdefault(line.decode(errors="replace").split("  ")[-1], f"not as {SUMS} lists it")
    return files, digest(archive), dict(sorted(changed.items()))


def read_members(path: Path, content: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Name, bytes and check sum of each member of an archive without compression; NMTError for another file."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    # zipfile raises these for damaged archives, and NotImplementedError for those of a later version of the format.
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OverflowError, OSError) as error:
        raise NMTError(f"{path}: not a bundle of `nmt cite`, or damaged ({one_line(error)})") from error
    stored = sum(member.file_size for member in members) <= len(content)
    require(stored, f"{path}: not a bundle of `nmt cite`, or compressed; unpack it, and verify the folder")
    for member in members:
        start = member.header_offset + 30 + len(member.filename.encode())  # 30 bytes stand before the name
        yield member.filename, content[start : start + member.file_size], member.CRC
