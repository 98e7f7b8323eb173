"""The ends of the lines of files, so that a process can cut blocks out of files without their text.

Decoding and splitting lines is the work of other processes. One process finds line ends in about
3 GB/s, which is enough for dozens of them.
"""

import codecs
import io
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nmt.config import NMTError
from nmt.text.files import LINE_BYTES, UTF_16, reading, utf_16_text

Offsets = NDArray[np.int64]
ReadInto = Callable[[bytearray], int]
CHUNK_BYTES = 2**22
"""The bytes to read at a time."""
LINE_FEED = 10


@dataclass(frozen=True)
class FileRange:
    """Consecutive lines of a file that is not compressed, by the offsets of their bytes."""

    path: Path
    begin: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.begin

    def read(self) -> bytes:
        """The bytes of the lines; NMTError if the file is now shorter."""
        with reading(self.path), self.path.open("rb") as file:
            file.seek(self.begin)
            content = file.read(self.size)
        if len(content) != self.size:
            raise changed(self.path)
        return content


def changed(path: Path) -> NMTError:
    return NMTError(f"{path}: changed while it was read; run the command again")


class LineEnds:
    """Finds the ends of the lines of a file that is not compressed; keeps only their offsets."""

    def __init__(self, path: Path, read_into: ReadInto | None = None) -> None:
        """`read_into` fills a buffer; None if a subclass reads the file in another way."""
        self.path = path
        self.read_into = read_into
        self.begin = 0
        """The offset of the first line that has not been taken."""
        self.ends: Offsets = np.empty(0, np.int64)
        """The offsets of the ends of the lines that have been found but not taken."""
        self.end_of_found = 0
        """The end of the last line that has been found."""
        self.offset = 0
        """The end of what has been read."""
        self.is_complete = False
        """Whether the ends of all lines have been found."""
        # One buffer for all chunks: new memory for each would cost as much as reading it.
        self.buffer = bytearray()

    def next_chunk(self) -> memoryview | bytes:
        """The next bytes of the file; sets `is_complete` at its end."""
        if not self.buffer:
            self.buffer = bytearray(CHUNK_BYTES)
        assert self.read_into
        with reading(self.path):
            count = self.read_into(self.buffer)
        self.is_complete = count == 0
        return memoryview(self.buffer)[:count]

    def find_more(self) -> None:
        """Read a chunk, and find the ends of the lines in it."""
        chunk = self.next_chunk()
        if self.offset == 0 and bytes(chunk[:3]) == codecs.BOM_UTF8:
            self.begin = len(codecs.BOM_UTF8)
        content = np.frombuffer(chunk, np.uint8)
        ends = np.flatnonzero(content == LINE_FEED) + (self.offset + 1)
        self.offset += len(chunk)
        if len(ends):
            self.end_of_found = int(ends[-1])
        # The last line of a file may lack its line end.
        if self.is_complete and self.offset > self.end_of_found:
            ends = np.append(ends, self.offset)
        self.ends = np.concatenate([self.ends, ends])

    def find(self, lines: int, step: int, size: int) -> None:
        """Find as many lines, or whole steps of lines with this size, or all that there are."""
        while len(self.ends) < lines and not self.is_complete:
            of_steps = self.sizes(len(self.ends) // step, step)
            if len(of_steps) and of_steps[-1] >= size:
                return
            self.find_more()

    def sizes(self, steps: int, step: int) -> Offsets:
        """The bytes before the end of each of the first steps; those of long lines are cut."""
        ends = self.ends[: steps * step]
        lengths = np.diff(ends, prepend=self.begin)
        # The sum begins with no line, because a file may have ended before the first step.
        sums = np.concatenate([[0], np.minimum(lengths, LINE_BYTES + 1).cumsum()])
        lines = np.arange(1, steps + 1) * step
        sizes: Offsets = sums[np.minimum(lines, len(ends))]
        return sizes

    def take(self, lines: int) -> FileRange | bytes:
        """The next lines. `find` must have found at least one of them."""
        taken = FileRange(self.path, self.begin, int(self.ends[lines - 1]))
        self.begin = taken.end
        self.ends = self.ends[lines:]
        return taken

    def count_rest(self) -> int:
        """The number of lines that have not been taken."""
        count = 0
        while len(self.ends) or not self.is_complete:
            if len(self.ends):
                count += len(self.ends)
                self.take(len(self.ends))
            else:
                self.find_more()
        return count


class ConvertedLines(LineEnds):
    """The lines of a file that a thread decompresses or converts to UTF-8.

    Offsets are those of the converted text. Long lines are cut, but stay longer than LINE_BYTES.
    """

    def __init__(
        self, path: Path, read: Callable[[int], bytes], thread: ThreadPoolExecutor
    ) -> None:
        super().__init__(path)
        self.read = read
        self.thread = thread
        self.text = bytearray()
        """What has been read but not taken."""
        # Decompressors release the interpreter's lock, so all files of a corpus are decompressed at
        # once, while the main process does other work.
        self.chunk: Future[bytes] = thread.submit(read, CHUNK_BYTES)

    def next_chunk(self) -> bytes:
        with reading(self.path):
            chunk = self.chunk.result()
        self.is_complete = not chunk
        self.chunk = self.thread.submit(self.read, CHUNK_BYTES)
        kept = self.without_middle(chunk)
        self.text += kept
        return kept

    def without_middle(self, chunk: bytes) -> bytes:
        """A chunk without the bytes that a long line from earlier chunks has beyond the limit."""
        # Without the cut, a file of one line would fill the memory.
        room = max(0, LINE_BYTES + 1 - (self.offset - self.end_of_found))
        end = chunk.find(b"\n")
        if end < 0:
            end = len(chunk)
        return chunk[:room] + chunk[end:] if end > room else chunk

    def take(self, lines: int) -> bytes:
        start = self.offset - len(self.text)
        begin = self.begin - start
        super().take(lines)
        end = self.begin - start
        taken = bytes(self.text[begin:end])
        del self.text[:end]
        return taken


@contextmanager
def line_ends(path: Path, file: BufferedReader) -> Iterator[LineEnds]:
    """Find the ends of the lines in a file from `open_bytes`."""
    with ExitStack() as stack:
        if UTF_16.match(file.peek(4)):
            text = stack.enter_context(utf_16_text(file))
            thread = stack.enter_context(ThreadPoolExecutor(1))
            yield ConvertedLines(path, lambda size: text.read(size).encode(), thread)
        elif isinstance(file.raw, io.FileIO):
            yield LineEnds(path, file.readinto)
        else:
            thread = stack.enter_context(ThreadPoolExecutor(1))
            yield ConvertedLines(path, file.read, thread)
