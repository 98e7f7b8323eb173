"""Parallel text files: plain or compressed, side by side, tab-separated, or JSON lines."""

import bz2
import gzip
import io
import json
import lzma
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard, cast

from nmt.config import DataConfig
from nmt.errors import NMTError

Pair = tuple[str, str]
BOM = b"\xef\xbb\xbf"
LINE = 2**20
"""Bytes of a line at most: a book has about so many."""
MAGIC = {
    ".gz": re.compile(rb"\x1f\x8b"),
    ".bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\x00"),
    ".zst": re.compile(rb"(\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)"),
}
"""How files of each compression begin; no text does."""
SURROGATE = re.compile("[\ud800-\udfff]")
COMPRESSIONS = ("", *MAGIC)


class MalformedLine(Exception):
    """A line that is no pair of texts; `counted_as` names the reason in the manifest."""

    def __init__(self, counted_as: str, problem: str) -> None:
        super().__init__(problem)
        self.counted_as = counted_as


@contextmanager
def reading(name: str | Path) -> Iterator[None]:
    """NMTError in one line for what a missing or damaged file raises."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise NMTError(f"{name}: cannot be read ({getattr(error, 'strerror', None) or error})") from error


class Decompressed(io.RawIOBase):
    """What a compressed file holds, as it comes; closing it closes the file too."""

    def __init__(self, stream: Any, file: BinaryIO) -> None:
        self.stream, self.file = stream, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self.stream.read1(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        if not self.closed:
            self.stream.close()
            self.file.close()
        super().close()


def decompress(file: BinaryIO, compression: str) -> BinaryIO:
    """The content of a compressed file; `compression` is its suffix."""
    stream: Any
    if compression == ".gz":
        stream = gzip.GzipFile(fileobj=file)
    elif compression == ".bz2":
        stream = bz2.BZ2File(file)
    elif compression == ".xz":
        stream = lzma.LZMAFile(file)  # noqa: SIM115
    else:
        import pyarrow

        stream = pyarrow.input_stream(file, compression="zstd")
    return io.BufferedReader(Decompressed(stream, file), 2**17)


def open_binary(path: Path) -> BinaryIO:
    """Open a plain or compressed file for reading bytes: its first bytes tell which, whatever its name says."""
    return plain_or_decompressed(path.open("rb"), path.name)


def plain_or_decompressed(file: io.BufferedReader, name: str) -> BinaryIO:
    begin = file.peek(10)
    found = next((suffix for suffix, magic in MAGIC.items() if magic.match(begin)), "")
    named = Path(name).suffix if begin else ""
    if not found and named in MAGIC:
        file.close()
        raise EOFError(f"its name ends in {named}, but it is not compressed so: rename it, or compress it again")
    return decompress(file, found) if found else file


def open_text(name: str) -> BinaryIO:
    """A user's file, plain or compressed, or standard input for "-"; NMTError where it cannot be opened.

    To be read by `raw_lines`. A terminal is not looked into, as that would wait for its first line.
    """
    if name == "-" and sys.stdin is None:
        raise NMTError("standard input is closed: name a file")
    try:
        if name != "-":
            return open_binary(Path(name))
        # A reader of its own on standard input: a thread may wait in it, and sys.stdin is closed when Python ends.
        file = os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)
        return file if file.isatty() else plain_or_decompressed(file, name)
    except (OSError, EOFError) as error:
        raise NMTError(f"{name}: {getattr(error, 'strerror', None) or error}") from error


def bounded_lines(file: BinaryIO, name: str | Path) -> Iterator[bytes]:
    """Lines with their ends as they arrive; of one longer than LINE bytes, so much and one more."""
    with reading(name):
        for number in count(1):
            line = file.readline(LINE + 1)
            if not line:
                return
            if number <= 10:
                check_utf8(line, name, number)
            rest = line
            while len(rest) > LINE and not rest.endswith(b"\n"):
                rest = file.readline(LINE + 1)
            yield line


def raw_lines(file: BinaryIO, name: str | Path) -> Iterator[bytes]:
    """Lines with their ends as they arrive, in constant memory; only LF separates lines.

    NMTError with its number for a line of more than LINE bytes, for UTF-16, and where the file is damaged.
    """
    for number, line in enumerate(bounded_lines(file, name), 1):
        if len(line) > LINE:
            raise NMTError(f"{name}, line {number}: longer than {LINE:,} bytes, the limit: is it text, in lines?")
        yield line


def check_utf8(line: bytes, name: str | Path, number: int) -> None:
    """NMTError where a line is of another Unicode encoding: text holds no NUL, of which UTF-16 is full."""
    marked = number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff"))
    if marked or (len(line) >= 8 and line.count(0) * 4 >= len(line)):
        raise NMTError(
            f"{name}, line {number}: UTF-16 or UTF-32, not UTF-8: convert it with iconv -f UTF-16 -t UTF-8 FILE > OTHER"
        )


def read_lines(name: str | Path) -> Iterator[bytes]:
    """Lines without their ends (LF or CRLF) and without a byte order mark, as those of `bounded_lines`."""
    with open_text(str(name)) as file:
        for number, line in enumerate(bounded_lines(file, name)):
            line = line.removesuffix(b"\n").removesuffix(b"\r")
            yield line.removeprefix(BOM) if number == 0 else line


def decode(line: bytes) -> str:
    if len(line) > LINE:
        raise MalformedLine("too long (bytes)", f"longer than {LINE:,} bytes, the limit: is it text, in lines?")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedLine("invalid UTF-8", f"invalid UTF-8 at byte {error.start + 1}") from error


def find(path: str) -> Path | None:
    """The file of that name, or of that name with a suffix of a compression."""
    return next((Path(path + suffix) for suffix in COMPRESSIONS if Path(path + suffix).is_file()), None)


def resolve(entry: str, config: DataConfig) -> list[Path]:
    """The files behind an entry of data.train, data.valid or data.test: one (TSV, JSONL), or source and target.

    What is there decides: a file of that very name, a prefix, or SOURCE:TARGET, as a name may hold a colon itself.
    Raises NMTError where a file is missing.
    """
    prefix = [f"{entry}.{config.source}", f"{entry}.{config.target}"]
    colons = [place for place, character in enumerate(entry) if character == ":"]
    ways = [*([[entry]] if is_table(entry) else []), prefix, *([entry[:at], entry[at + 1 :]] for at in colons)]
    for names in ways:
        paths = [path for name in names if (path := find(name))]
        if len(paths) == len(names):
            return paths
    meant = ways[0] if is_table(entry) and not colons else ways[-1]
    missing = next(name for name in meant if not find(name))
    several = "; several entries are written [A,B]" if "," in entry else ""
    raise NMTError(f"{missing}: no such file (from {entry!r} in data.train, data.valid or data.test{several})")


def is_table(name: str) -> bool:
    """Whether the name is that of a file that holds both sides."""
    for suffix in COMPRESSIONS[1:]:
        name = name.removesuffix(suffix)
    return name.endswith((".tsv", ".jsonl"))


def parse_tsv(line: bytes) -> Pair:
    columns = decode(line).split("\t")
    if len(columns) < 2:
        raise MalformedLine("malformed", "no tab between source and target")
    return columns[0], columns[1]


def is_text(value: Any) -> TypeGuard[str]:
    """Whether a value that was parsed is text; an escape may spell half a surrogate pair, which no file can hold."""
    return isinstance(value, str) and not SURROGATE.search(value)


def texts_of(record: Any, config: DataConfig) -> Pair:
    """Source and target of a record, a mapping from language to text; MalformedLine where it is none."""
    found = record if isinstance(record, dict) else {}
    source, target = found.get(config.source), found.get(config.target)
    if is_text(source) and is_text(target):
        return source, target
    raise MalformedLine("malformed", f"no object with texts {config.source} and {config.target}")


def nothing(number: str) -> None:
    """What stands for a number, of which a pair of texts has no need, however many digits it has."""


def parse_json(line: bytes, config: DataConfig) -> Pair:
    try:
        record = json.loads(decode(line), parse_int=nothing, parse_float=nothing, parse_constant=nothing)
    except (ValueError, RecursionError) as error:
        raise MalformedLine("malformed", f"no object with texts {config.source} and {config.target}") from error
    return texts_of(record.get("translation", record) if isinstance(record, dict) else None, config)


def side_by_side(paths: list[Path]) -> Iterator[tuple[bytes, bytes]]:
    """Lines of the same number from two files; NMTError with both counts where these differ."""
    read = [0, 0]
    for lines in zip_longest(*map(read_lines, paths)):
        read = [n + (line is not None) for n, line in zip(read, lines, strict=True)]
        if read[0] == read[1]:
            yield cast(tuple[bytes, bytes], lines)
    if read[0] != read[1]:
        raise NMTError(f"{paths[0]} has {read[0]} lines but {paths[1]} has {read[1]}: they are not parallel")


def read_entry(entry: str, config: DataConfig, counts: Counter[str]) -> Iterator[Pair]:
    """Pairs of one entry; malformed lines are an error, or counted and skipped with data.errors=skip."""
    paths = resolve(entry, config)
    lines = side_by_side(paths) if len(paths) == 2 else ((line,) for line in read_lines(paths[0]))
    for number, sides in enumerate(lines, 1):
        path = paths[0]
        try:
            if len(sides) == 2:
                source = decode(sides[0])
                path = paths[1]
                yield source, decode(sides[1])
            elif ".jsonl" in path.suffixes:
                yield parse_json(sides[0], config)
            else:
                yield parse_tsv(sides[0])
        except MalformedLine as error:
            if config.errors == "strict":
                raise NMTError(f"{path}, line {number}: {error}; mend it, or pass data.errors=skip") from error
            counts[error.counted_as] += 1


def read_files(entries: list[str], config: DataConfig, counts: Counter[str]) -> Iterator[Pair]:
    """Pairs of all entries, one after another."""
    for entry in entries:
        yield from read_entry(entry, config, counts)
