"""Parallel text files: plain or compressed, side by side, tab-separated, or JSON lines."""

import bz2
import gzip
import io
import json
import lzma
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO, cast

from nmt.config import DataConfig
from nmt.errors import NMTError

Pair = tuple[str, str]
COMPRESSIONS = ("", ".gz", ".bz2", ".xz", ".zst")
BOM = b"\xef\xbb\xbf"


class MalformedLine(Exception):
    """A line that is no pair of texts; `counted_as` names the reason in the manifest."""

    def __init__(self, counted_as: str, problem: str) -> None:
        super().__init__(problem)
        self.counted_as = counted_as


def open_binary(path: Path) -> BinaryIO:
    """Open a plain or compressed file, by its suffix, for reading bytes."""
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path))
    if path.suffix == ".bz2":
        return cast(BinaryIO, bz2.open(path))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path))
    if path.suffix == ".zst":
        import pyarrow

        return io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd"))
    return path.open("rb")


def read_lines(path: Path) -> Iterator[bytes]:
    """Lines without their ends (LF or CRLF) and without a byte order mark. Only LF separates lines."""
    try:
        with open_binary(path) as file:
            for number, line in enumerate(file):
                line = line.removesuffix(b"\n").removesuffix(b"\r")
                yield line.removeprefix(BOM) if number == 0 else line
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise NMTError(f"{path}: cannot be read ({error})") from error


def decode(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedLine("invalid UTF-8", f"invalid UTF-8 at byte {error.start + 1}") from error


def find(path: str) -> Path | None:
    """The file of that name, or of that name with a suffix of a compression."""
    return next((Path(path + suffix) for suffix in COMPRESSIONS if Path(path + suffix).is_file()), None)


def resolve(entry: str, config: DataConfig) -> list[Path]:
    """The files behind an entry of data.train, data.valid or data.test: one (TSV, JSONL), or source and target.

    Raises NMTError where a file is missing.
    """
    plain = entry
    for suffix in COMPRESSIONS[1:]:
        plain = plain.removesuffix(suffix)
    if plain.endswith((".tsv", ".jsonl")):
        names = [entry]
    elif ":" in entry:
        names = entry.split(":", 1)
    else:
        names = [f"{entry}.{config.source}", f"{entry}.{config.target}"]
    paths = []
    for name in names:
        path = find(name)
        if path is None:
            raise NMTError(f"{name}: no such file (from {entry!r} in data.train, data.valid or data.test)")
        paths.append(path)
    return paths


def parse_tsv(line: bytes) -> Pair:
    columns = decode(line).split("\t")
    if len(columns) < 2:
        raise MalformedLine("malformed", "no tab between source and target")
    return columns[0], columns[1]


def parse_json(line: bytes, config: DataConfig) -> Pair:
    try:
        record = json.loads(decode(line))
        record = record.get("translation", record)
        source, target = record[config.source], record[config.target]
        source.encode(), target.encode()  # an escape may spell half a surrogate pair, which no file can hold
    except (json.JSONDecodeError, AttributeError, KeyError, TypeError, UnicodeEncodeError) as error:
        raise MalformedLine("malformed", f"no object with texts {config.source} and {config.target}") from error
    return source, target


def side_by_side(paths: list[Path]) -> Iterator[tuple[bytes, bytes]]:
    """Lines of the same number from two files; NMTError with both counts where these differ."""
    count = [0, 0]
    for lines in zip_longest(*map(read_lines, paths)):
        count = [n + (line is not None) for n, line in zip(count, lines, strict=True)]
        if count[0] == count[1]:
            yield cast(tuple[bytes, bytes], lines)
    if count[0] != count[1]:
        raise NMTError(f"{paths[0]} has {count[0]} lines but {paths[1]} has {count[1]}: they are not parallel")


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
