"""Read lines of text from files, which may be compressed."""

import codecs
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from pathlib import Path

from nmt.config import IF_LATIN_1, NMTError
from nmt.text.compression import COPY_AGAIN, decompressed

Notice = Callable[[str], None]
"""Reports a message to the user."""
LINE_BYTES = 2**20
"""The maximum length of a line in bytes, about the length of a book."""
TOO_LONG = f"longer than {LINE_BYTES:,} bytes: is it a text file?"
INVALID_UTF_8 = "invalid UTF-8"
LINES_TO_CHECK = 10
"""The number of lines at the beginning of a file that are checked to be text."""
UTF_16 = re.compile(rb"\xff\xfe(?!\0\0)|\xfe\xff")
"""The byte order marks of UTF-16, but not of UTF-32."""
BINARY = {
    rb"PK[\3\5]": "a ZIP archive or Office document, not text: save it as plain text or TSV",
    rb"\xd0\xcf\x11\xe0|{\\rtf": "an Office document, not text: run soffice --convert-to docx FILE",
    rb"%PDF-": "a PDF, not text: run pdftotext FILE to extract its text",
}
"""The first bytes of files that people mistake for text."""


class MalformedLine(Exception):
    """A line that is not a sentence pair.

    `counted_as` is the reason under which the manifest counts it.
    """

    def __init__(self, counted_as: str, problem: str) -> None:
        super().__init__(problem)
        self.counted_as = counted_as


@contextmanager
def reading(name: str | Path) -> Iterator[None]:
    """Turn errors from a missing or damaged file into an NMTError."""
    try:
        yield
    # A subclass of OSError, so it comes first: its own message does not say what to do.
    except gzip.BadGzipFile as error:
        problem = f"damaged compressed data, or something else after it ({error}): {COPY_AGAIN}"
        raise NMTError(f"{name}: cannot be read ({problem})") from error
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        raise NMTError(f"{name}: cannot be read ({words_of(error)})") from error


def words_of(error: Exception) -> str:
    """The text of an error, without its number and the name of the file."""
    return getattr(error, "strerror", None) or str(error)


def open_bytes(name: str) -> BufferedReader:
    """Open the file that the user named ("-": standard input) for `raw_lines`.

    Its content is decompressed, but not decoded. Raises NMTError if the file cannot be opened.
    """
    if name == "-" and sys.stdin is None:
        raise NMTError("standard input is closed: pass a file, for example input=FILE")
    if Path(name).is_dir():
        raise NMTError(f"{name}: is a folder, but must be a file")
    try:
        if name != "-":
            return decompressed(Path(name).open("rb"), name)
        # Not sys.stdin: Python closes it at exit, when a thread may still be reading.
        descriptor = os.dup(sys.stdin.fileno())
        file = os.fdopen(descriptor, "rb", closefd=False)
        if file.isatty():  # peeking at a terminal would block
            return file
        return decompressed(file, name)
    except (OSError, EOFError) as error:
        raise NMTError(f"{name}: {words_of(error)}") from error


def bounded_lines(file: BufferedReader, name: str | Path, first: int = 1) -> Iterator[bytes]:
    """UTF-8 lines with line endings, yielded as soon as they are read, numbered from `first`.

    Lines over LINE_BYTES are cut, but stay longer than that. Raises NMTError for binary content.
    """
    with reading(name):
        # Cut, not refused: the caller decides whether a long line is an error or only counted.
        lines = pieces_of_lines(file, first)
        for number, line in enumerate(lines, first):
            # A binary file shows itself at once; checking every line would cost time.
            if number <= LINES_TO_CHECK:
                problem = problem_of(line, number == 1)
                if problem:
                    raise NMTError(f"{name}, line {number}: {problem}")
            # Skip the rest of a long line.
            piece = line
            while len(piece) > LINE_BYTES and not piece.endswith(b"\n"):
                piece = next(lines, b"")
            yield line


def pieces_of_lines(file: BufferedReader, first: int = 1) -> Iterator[bytes]:
    """Lines in UTF-8, numbered from `first`; those over LINE_BYTES come in several pieces."""
    # One byte more than allowed: such a piece tells that
    # the line is too long without reading all of it.
    if first > 1 or not UTF_16.match(file.peek(4)):
        return iter(partial(file.readline, LINE_BYTES + 1), b"")
    return utf_16_lines(file)


def utf_16_lines(file: BufferedReader) -> Iterator[bytes]:
    """Lines of a file in UTF-16, converted to UTF-8; those over LINE_BYTES in several pieces."""
    with utf_16_text(file) as text:
        for line in iter(partial(text.readline, LINE_BYTES + 1), ""):
            yield line.encode()


@contextmanager
def utf_16_text(file: BufferedReader) -> Iterator[io.TextIOWrapper]:
    """The text of a file in UTF-16, which stays open."""
    # By default, a carriage return would end a line, too.
    text = io.TextIOWrapper(file, "utf-16", "replace", newline="\n")
    try:
        yield text
    finally:
        if not file.closed:
            text.detach()


def raw_lines(file: BufferedReader, name: str | Path, first: int = 1) -> Iterator[bytes]:
    """UTF-8 lines with line endings, yielded as soon as they are read, numbered from `first`.

    `first` is greater than 1 if the beginning of a file has been left out. Raises NMTError if a
    line is too long or not text.
    """
    for number, line in enumerate(bounded_lines(file, name, first), first):
        if len(line) > LINE_BYTES:
            raise NMTError(f"{name}, line {number}: {TOO_LONG}")
        yield line


def problem_of(content: bytes, first: bool = True) -> str:
    """Why a line is not text; empty if it is text.

    `first` says whether it is the first line of its file.
    """
    if first:
        for magic, problem in BINARY.items():
            if re.match(magic, content):
                return problem
    # In UTF-16 and UTF-32, half or more of the bytes of Latin text are zeros.
    if 8 <= len(content) <= content.count(0) * 4:
        return "UTF-16 or UTF-32, not UTF-8: convert it with iconv -f UTF-16 -t UTF-8 FILE > OTHER"
    is_binary = b"\0" in content and "\ufffd" in content.decode(errors="replace")
    return "not text: it contains NUL bytes and invalid UTF-8" if is_binary else ""


def without_end(line: bytes) -> bytes:
    """A line without the LF or CRLF at its end."""
    # Not `strip`: white space may be part of a line,
    # and a carriage return within it is not a line end.
    return line.removesuffix(b"\n").removesuffix(b"\r")


def read_lines(name: str | Path) -> Iterator[bytes]:
    """A file's lines without line endings or a byte order mark.

    Long lines are cut as in `bounded_lines`.
    """
    with open_bytes(str(name)) as file:
        lines = map(without_end, bounded_lines(file, name))
        for number, line in enumerate(lines, 1):
            yield line.removeprefix(codecs.BOM_UTF8) if number == 1 else line


def decode(line: bytes) -> str:
    """Decode a line; MalformedLine if it is too long or not UTF-8."""
    if len(line) > LINE_BYTES:
        raise MalformedLine("too long (bytes)", TOO_LONG)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"{INVALID_UTF_8} at byte {error.start + 1} {IF_LATIN_1}"
        raise MalformedLine(INVALID_UTF_8, problem) from error


def decoded(
    lines: Iterable[bytes],
    where: str,
    first: int = 1,
    notice: Notice | None = None,
) -> Iterator[str]:
    """Decode lines, numbered from `first`; NMTError for a malformed line.

    With `notice`, invalid UTF-8 is replaced and reported instead.
    """
    for number, line in enumerate(lines, first):
        try:
            yield decode(line)
        except MalformedLine as error:
            if notice is None or error.counted_as != INVALID_UTF_8:
                raise NMTError(f"{where}line {number}: {error}") from error
            # One damaged line must not stop a long translation,
            # and every input line needs an output line.
            notice(f"{where}line {number}: {error}, replaced")
            yield line.decode(errors="replace")


def read_texts(name: str | Path, notice: Notice | None = None) -> Iterator[str]:
    """The decoded lines of a file."""
    return decoded(read_lines(name), f"{name}, ", notice=notice)
