"""Parallel text, plain or compressed: two files side by side, tab-separated, JSON Lines, or a plugin's format."""

import codecs
import gzip
import io
import json
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import BufferedReader
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from nmt.config import IF_LATIN_1, DataConfig, NMTError, exists, require, without_compression
from nmt.registry import entries_of
from nmt.text.compression import COPY_AGAIN, MAGIC, decompressed

Pair = tuple[str, str]
Line = TypeVar("Line", bytes, str)
Notice = Callable[[str], None]
LINE_BYTES = 2**20
"""The maximum length of a line in bytes, about the length of a book."""
TOO_LONG = f"longer than {LINE_BYTES:,} bytes: is it a text file?"
UTF_16 = re.compile(rb"\xff\xfe(?!\0\0)|\xfe\xff")
"""The byte order marks of UTF-16, but not of UTF-32."""
BINARY = {
    rb"PK[\3\5]": "a ZIP archive or Office document, not text: save it as plain text or TSV",
    rb"\xd0\xcf\x11\xe0|{\\rtf": "an Office document, not text: run soffice --convert-to docx FILE",
    rb"%PDF-": "a PDF, not text: run pdftotext FILE to extract its text",
}
"""The first bytes of files that people mistake for text."""


class MalformedLine(Exception):
    """A line that is not a sentence pair; `counted_as` is the reason under which the manifest counts it."""

    def __init__(self, counted_as: str, problem: str) -> None:
        super().__init__(problem)
        self.counted_as = counted_as


@contextmanager
def reading(name: str | Path) -> Iterator[None]:
    """Turn errors from a missing or damaged file into an NMTError."""
    try:
        yield
    except gzip.BadGzipFile as error:
        problem = f"damaged compressed data, or something else after it ({error}): {COPY_AGAIN}"
        raise NMTError(f"{name}: cannot be read ({problem})") from error
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise NMTError(
            f"{name}: cannot be read ({getattr(error, 'strerror', None) or error})"
        ) from error


def open_text(name: str) -> BufferedReader:
    """Open the file that the user named ("-": standard input) for `raw_lines`; NMTError if that fails."""
    require(
        name != "-" or sys.stdin is not None,
        "standard input is closed: pass a file, for example input=FILE",
    )
    require(not Path(name).is_dir(), f"{name}: is a folder, but must be a file")
    try:
        if name != "-":
            return decompressed(Path(name).open("rb"), name)
        # Not sys.stdin: Python closes it at exit, when a thread may still be reading.
        file = os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)
        return (
            file if file.isatty() else decompressed(file, name)
        )  # peeking at a terminal would block
    except (OSError, EOFError) as error:
        raise NMTError(f"{name}: {getattr(error, 'strerror', None) or error}") from error


def bounded_lines(file: BufferedReader, name: str | Path) -> Iterator[bytes]:
    """UTF-8 lines with line endings, yielded as soon as read; lines over LINE_BYTES are cut but stay longer than it."""
    with reading(name):
        lines = iter(partial(file.readline, LINE_BYTES + 1), b"")
        if UTF_16.match(file.peek(4)):
            text = io.TextIOWrapper(file, "utf-16", "replace", newline="\n")
            lines = (line.encode() for line in iter(partial(text.readline, LINE_BYTES + 1), ""))
        for number, line in enumerate(lines, 1):
            if number <= 10 and (problem := problem_of(line, number == 1)):
                raise NMTError(f"{name}, line {number}: {problem}")
            rest = line
            while len(rest) > LINE_BYTES and not rest.endswith(b"\n"):
                rest = next(lines, b"")
            yield line


def raw_lines(file: BufferedReader, name: str | Path) -> Iterator[bytes]:
    """UTF-8 lines with line endings, yielded as soon as they are read; NMTError if a line is too long or not text."""
    for number, line in enumerate(bounded_lines(file, name), 1):
        if len(line) > LINE_BYTES:
            raise NMTError(f"{name}, line {number}: {TOO_LONG}")
        yield line


def problem_of(content: bytes, first: bool = True) -> str:
    """Why a line is not text; empty if it is text. `first` says whether it is the first line of its file."""
    if first and (
        problem := next((words for magic, words in BINARY.items() if re.match(magic, content)), "")
    ):
        return problem
    if 8 <= len(content) <= content.count(0) * 4:
        return "UTF-16 or UTF-32, not UTF-8: convert it with iconv -f UTF-16 -t UTF-8 FILE > OTHER"
    is_binary = b"\0" in content and "\ufffd" in content.decode(errors="replace")
    return "not text: it contains NUL bytes and invalid UTF-8" if is_binary else ""


def without_end(line: bytes) -> bytes:
    """A line without the LF or CRLF at its end."""
    return line.removesuffix(b"\n").removesuffix(b"\r")


def read_lines(name: str | Path) -> Iterator[bytes]:
    """A file's lines without line endings or a byte order mark; long lines are cut as in `bounded_lines`."""
    with open_text(str(name)) as file:
        for number, line in enumerate(map(without_end, bounded_lines(file, name))):
            yield line.removeprefix(codecs.BOM_UTF8) if number == 0 else line


def decode(line: bytes) -> str:
    """Decode a line; MalformedLine if it is too long or not UTF-8."""
    if len(line) > LINE_BYTES:
        raise MalformedLine("too long (bytes)", TOO_LONG)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedLine(
            "invalid UTF-8", f"invalid UTF-8 at byte {error.start + 1} {IF_LATIN_1}"
        ) from error


def decoded(
    lines: Iterable[bytes], where: str, first: int = 1, notice: Notice | None = None
) -> Iterator[str]:
    """Decode lines; NMTError for a malformed line. With `notice`, invalid UTF-8 is replaced and reported instead."""
    for number, line in enumerate(lines, first):
        try:
            yield decode(line)
        except MalformedLine as error:
            if notice is None or error.counted_as != "invalid UTF-8":
                raise NMTError(f"{where}line {number}: {error}") from error
            notice(f"{where}line {number}: {error}, replaced")
            yield line.decode(errors="replace")


def read_texts(name: str | Path, notice: Notice | None = None) -> Iterator[str]:
    return decoded(read_lines(name), f"{name}, ", notice=notice)


def not_parallel(names: Sequence[str | Path], counts: Sequence[int]) -> NMTError:
    """The error for two files with different numbers of lines."""
    titles = ("standard input" if str(name) == "-" else name for name in names)
    (first, number), (second, other) = zip(titles, counts, strict=True)
    lines = "line" if number == 1 else "lines"
    return NMTError(
        f"{first} has {number:,} {lines} but {second} has {other:,}: they are not parallel"
    )


def parallel(
    names: Sequence[str | Path], sides: Sequence[Iterator[Line]]
) -> Iterator[tuple[Line, Line]]:
    """Pair the lines of two files; NMTError after the last pair if the line counts differ."""
    counts = [0, 0]
    for lines in zip_longest(*sides):
        counts = [number + (line is not None) for number, line in zip(counts, lines, strict=True)]
        if counts[0] == counts[1]:
            yield lines[0], lines[1]
    if counts[0] != counts[1]:
        raise not_parallel(names, counts)


def existing(name: str) -> Path | None:
    """The file with this name, or with this name and a compression suffix."""
    return next((path for suffix in ("", *MAGIC) if (path := Path(name + suffix)).is_file()), None)


def table_format(name: str | Path) -> str:
    """The suffix of a file that contains both sides; empty for other files."""
    suffix = Path(without_compression(str(name))).suffix
    return suffix if suffix in entries_of("pairs") else ""


def resolve(entry: str, config: DataConfig) -> list[tuple[Path, ...]]:
    """The files of an entry in data.train, data.valid or data.test: one file of pairs, or source and target.

    An entry is a file of pairs, the common prefix of two files, either of these files, SOURCE:TARGET, or a pattern. As
    names may contain colons, the files that exist determine which of these it is. NMTError if a file is missing.
    """
    if re.search("[*?[]", entry) and not exists(entry):
        root = Path(entry).anchor
        if names := sorted(map(str, Path(root).glob(entry.removeprefix(root)))):
            return list(dict.fromkeys(paths for name in names for paths in resolve(name, config)))
    languages, side = (config.source, config.target), without_compression(entry)
    prefixes = [
        entry,
        *(side.removesuffix(f".{code}") for code in languages if side.endswith(f".{code}")),
    ]
    ways = [[entry]] if table_format(entry) else []
    ways += [[f"{prefix}.{code}" for code in languages] for prefix in prefixes]
    ways += [[entry[: colon.start()], entry[colon.end() :]] for colon in re.finditer(":", entry)]
    for names in ways:
        paths = tuple(path for name in names if (path := existing(name)))
        if len(paths) == len(names):
            return [paths]
    likely = ways[0] if table_format(entry) and ":" not in entry else ways[-1]
    missing = next(name for name in likely if not existing(name))
    several = "; write several entries as [A,B]" if "," in entry else ""
    raise NMTError(
        f"{missing}: no such file (from {entry!r} in data.train, data.valid or data.test{several})"
    )


def is_text(value: Any) -> TypeGuard[str]:
    """True for a string that UTF-8 can encode, unlike half of a surrogate pair, which a JSON escape can produce."""
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def texts_of(record: Any, config: DataConfig) -> Pair:
    """Source and target of a record that maps languages to text; MalformedLine for anything else."""
    texts = record if isinstance(record, dict) else {}
    source, target = texts.get(config.source), texts.get(config.target)
    if is_text(source) and is_text(target):
        return source, target
    raise MalformedLine(
        "malformed", f"not an object with strings {config.source} and {config.target}"
    )


def pair_of(texts: Sequence[str], config: DataConfig) -> Pair:
    """The sentence pair in two lines, or in one line of JSON; MalformedLine if there is none."""
    if len(texts) == 2:
        return texts[0], texts[1]
    record = None
    with suppress(ValueError, RecursionError):
        # Parsing many digits is slow.
        record = json.loads(texts[0], parse_int=bool, parse_float=bool)
    if isinstance(record, dict):
        record = record.get("translation", record)
    return texts_of(record, config)
