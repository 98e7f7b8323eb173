"""Parts of an input file, cut at line ends near equal numbers of bytes.

Part I of N begins at the first line that begins at or after byte (I - 1) * size // N and ends where
part I + 1 begins, so each line is in exactly one part. A job that computes blocks of lines cuts
only at blocks. A part's record says what its output was computed from.
"""

import hashlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from nmt.config import JobConfig, NMTError, Part, SettingError, build_stored, parts_folder
from nmt.files import cannot_write, parse_json, read_mapping, sha256, write_file
from nmt.text import MAGIC, UTF_16, open_bytes, reading
from nmt.translation.output import check_folder

READ_BYTES = 2**20
"""The number of bytes to search for line ends at once."""


@dataclass(frozen=True)
class Slice:
    """The bytes of an input that belong to a part."""

    begin: int
    end: int
    """The first byte after the slice."""
    size: int
    """The size of the whole input."""


@dataclass
class PartRecord:
    """What the output of a part was computed from, and its hash."""

    input: str
    """The absolute path of the input."""
    input_bytes: int
    """The size of the whole input."""
    begin: int
    end: int
    """The first byte after the part's lines."""
    lines_before: int
    """The number of lines in the parts before this one."""
    lines: int
    sha256: str
    """The hash of the part's lines."""
    identity: dict[str, Any]
    """The command, the model and the options; see `what_affects_output`."""
    output_bytes: int
    output_sha256: str
    counts: dict[str, int] = field(default_factory=dict)
    """The counts of the job, such as of pairs that were kept; older records have none."""


class SliceReader(io.RawIOBase):
    """Reads the bytes of a file from `begin` to `end`."""

    def __init__(self, file: io.FileIO, begin: int, end: int) -> None:
        self.file = file
        self.remaining = end - begin
        file.seek(begin)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer) as view, view.cast("B") as target:
            count = self.file.readinto(target[: self.remaining]) or 0
        self.remaining -= count
        return count

    def close(self) -> None:
        self.file.close()
        super().close()


def check_part(config: JobConfig) -> None:
    """Raise NMTError unless the input can be cut into parts, and the output is a file."""
    if config.part is None:
        return
    if config.output == "-":
        problem = "needs output=FILE, beside which the parts are written"
        raise SettingError(problem, key="part", value=config.part)
    check_can_be_cut(config)


def check_can_be_cut(config: JobConfig) -> None:
    """Raise NMTError unless the input is a plain file in UTF-8."""
    if config.text is not None or not Path(config.input).is_file():
        problem = "needs an input file; standard input, pipes and text cannot be cut into parts"
        raise SettingError(problem, key="part", value=config.part)
    # Its errors are those of a job without parts, such as for a damaged compressed file.
    open_bytes(config.input).close()
    with reading(config.input), Path(config.input).open("rb") as file:
        head = file.read(16)
    problem = ""
    if any(magic.match(head) for magic in MAGIC.values()):
        problem = "is compressed, which cannot be cut into parts; decompress it first"
    elif UTF_16.match(head):
        problem = "is UTF-16; convert it to UTF-8 with iconv -f UTF-16 -t UTF-8 FILE > OTHER"
    if problem:
        raise NMTError(f"part={config.part}: {config.input} {problem}")


def begin_of_line(file: BinaryIO, offset: int) -> int:
    """The first position at or after `offset` where a line begins, or the end of the file."""
    if offset == 0:
        return 0
    # A line begins at `offset` itself if the byte before it ends a line.
    position = offset - 1
    file.seek(position)
    while content := file.read(READ_BYTES):
        index = content.find(b"\n")
        if index >= 0:
            return position + index + 1
        position += len(content)
    return position


def slice_of(name: str, part: Part, block: int = 1) -> Slice:
    """The bytes of a file that belong to a part, cut at multiples of `block` lines."""
    with reading(name), Path(name).open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        begin = begin_of_line(file, (part.number - 1) * size // part.count)
        end = begin_of_line(file, part.number * size // part.count)
    if block > 1:
        begin = begin_of_block(name, begin, block)
        end = begin_of_block(name, end, block)
    return Slice(begin, end, size)


def begin_of_block(name: str, begin: int, block: int) -> int:
    """The first position at or after a line's `begin` where a block of lines begins, or the end."""
    missing = -count_lines_before(name, begin) % block
    with reading(name), Path(name).open("rb") as file:
        file.seek(begin)
        for _ in range(missing):
            # In pieces, because a file that is not text may have no line ends.
            while (piece := file.readline(READ_BYTES)) and not piece.endswith(b"\n"):
                pass
        return file.tell()


def open_slice(name: str, begin: int, end: int) -> "io.BufferedReader[Any]":
    with reading(name):
        return io.BufferedReader(SliceReader(io.FileIO(name), begin, end), READ_BYTES)


def measure(name: str, begin: int, end: int) -> tuple[int, str]:
    """The number of lines of a slice, and its SHA-256."""
    digest = hashlib.sha256()
    lines = 0
    last = b"\n"
    with reading(name), open_slice(name, begin, end) as file:
        while content := file.read(READ_BYTES):
            digest.update(content)
            lines += content.count(b"\n")
            last = content[-1:]
    return lines + unfinished(last), digest.hexdigest()


def count_lines_before(name: str, end: int) -> int:
    """The number of lines of a file that begin before byte `end`, where a line or the file ends."""
    lines = 0
    last = b"\n"
    with reading(name), open_slice(name, 0, end) as file:
        while content := file.read(READ_BYTES):
            lines += content.count(b"\n")
            last = content[-1:]
    return lines + unfinished(last)


def unfinished(last: bytes) -> int:
    """The number of lines without a line end, 0 or 1, in content that ends with this byte."""
    return 0 if last == b"\n" else 1


def make_folder(output: str) -> Path:
    """The folder of an output's parts, created if it is missing."""
    check_folder(output)
    folder = parts_folder(output)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    return folder


def read_record(path: Path) -> PartRecord:
    """Read a part's record; NMTError if it is missing or damaged."""
    return build_stored(PartRecord, read_mapping(path, parse_json), str(path))


def write_record(path: Path, record: PartRecord) -> None:
    write_file(path, json.dumps(vars(record), indent=2) + "\n")


def is_unchanged(output: Path, record: PartRecord) -> bool:
    """Whether the output of a part has the size and the hash in its record."""
    # The size first, because a truncated file need not be read.
    return output.stat().st_size == record.output_bytes and sha256(output) == record.output_sha256
