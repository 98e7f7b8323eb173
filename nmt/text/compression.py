"""Compressed files, including files of several streams, which parallel compressors write."""

import bz2
import gzip
import io
import lzma
import re
from collections.abc import Callable
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO
from weakref import finalize

MAGIC = {
    ".gz": re.compile(rb"\x1f\x8b"),
    ".bz2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    ".xz": re.compile(rb"\xfd7zXZ\x00"),
    ".zst": re.compile(rb"(\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)"),
}
"""The first bytes of compressed files; no text begins with them."""
CHUNK = 2**17
"""The bytes of decompressed content that are buffered."""
COMPRESSED_CHUNK = 2**14
"""The compressed bytes to read at a time: few, because decompressors copy what is left of them."""
COPY_AGAIN = "copy or download the file again"


class Streams(io.RawIOBase):
    """The content of all bz2 or xz streams in a file.

    Python's own readers end without an error at a later stream that is damaged, and so lose the
    rest of the file. Here everything after a stream must be another stream or legal padding.
    """

    def __init__(
        self,
        file: BufferedReader,
        decompressor: Callable[[], Any],
        padding_unit: int = 0,
    ) -> None:
        """`padding_unit`: zeros between streams come in multiples of this; 0: none are legal."""
        self.file = file
        self.new_decompressor = decompressor
        self.padding_unit = padding_unit
        self.decompressor: Any = decompressor()
        self.unread = b""  # compressed bytes after the end of a stream

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.decompressor = None  # frees its dictionary, which takes many MB
        self.unread = b""
        super().close()

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer) as view, view.cast("B") as target:
            content = self.next_content(len(target))
            target[: len(content)] = content
        return len(content)

    def next_content(self, size: int) -> bytes:
        """Up to `size` bytes; empty at the end; EOFError or OSError if the file is damaged."""
        content = b""
        # A decompressor may take input and return nothing yet. An empty result would mean the end.
        while not content:
            # A decompressor ends with its stream. Another stream needs a new one.
            if self.decompressor.eof:
                self.unread = self.decompressor.unused_data
                if not self.finds_stream():
                    return b""
                self.decompressor = self.new_decompressor()
            compressed = b""
            if self.decompressor.needs_input:
                compressed = self.next_compressed()
                # The file ends within a stream, as after an interrupted download.
                if not compressed:
                    raise EOFError(f"its compressed data is incomplete: {COPY_AGAIN}")
            try:
                content = self.decompressor.decompress(compressed, size)
            except (OSError, EOFError, ValueError, lzma.LZMAError) as error:
                problem = f"damaged compressed data, or something else after it ({error})"
                raise OSError(f"{problem}: {COPY_AGAIN}") from error
        return content

    def next_compressed(self) -> bytes:
        compressed = self.unread or self.file.read1(COMPRESSED_CHUNK)
        self.unread = b""
        return compressed

    def finds_stream(self) -> bool:
        """Skip padding; False at the end of the file."""
        padding = 0
        while compressed := self.next_compressed():
            # Only xz allows padding between streams, in units
            # of four bytes (section 2.2 of its specification).
            self.unread = compressed.lstrip(b"\0") if self.padding_unit else compressed
            padding += len(compressed) - len(self.unread)
            if self.unread:
                break
        if self.padding_unit and padding % self.padding_unit:
            raise OSError(f"damaged compressed data ({padding:,} bytes of padding): {COPY_AGAIN}")
        return bool(self.unread)


def new_xz_decompressor() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ)


def open_stream(file: BufferedReader, compression: str) -> Any:
    """A binary stream of the content of a compressed file; `compression` is one of MAGIC."""
    # Python's gzip module reads all streams of a file, and checks each of them.
    if compression == ".gz":
        return gzip.open(file)
    # The bzip2 command ignores what follows the last
    # stream. nmt refuses it, because it may be damage.
    if compression == ".bz2":
        return Streams(file, bz2.BZ2Decompressor)
    if compression == ".xz":
        return Streams(file, new_xz_decompressor, padding_unit=4)
    # Imported here, because it takes time that files with other compressions need not spend.
    import pyarrow

    return pyarrow.input_stream(file, compression="zstd")


def decompressed(file: BufferedReader, name: str) -> BufferedReader:
    """The decompressed content of a file, whose first bytes show whether it is compressed.

    EOFError if its name says that it is compressed but its content is not.
    """
    # `peek` leaves the bytes in place, even in a pipe, which cannot be rewound.
    first_bytes = file.peek(10)
    suffix = Path(name).suffix
    for compression, magic in MAGIC.items():
        if magic.match(first_bytes):
            content = BufferedReader(open_stream(file, compression), CHUNK)
            finalize(content, file.close)  # closing `content` does not close `file`
            return content
    # A compressed file is read under any name. But a file whose name ends in a compression suffix
    # must be compressed: otherwise, it may be the rest of a damaged file.
    if suffix not in MAGIC:
        return file
    file.close()
    if not first_bytes:
        raise EOFError(f"is empty, which no {suffix} file is: {COPY_AGAIN}")
    raise EOFError(
        f"its name ends in {suffix}, but it is not compressed: rename or compress it, or, "
        f"if it is damaged, {COPY_AGAIN}"
    )


def compressor(file: BinaryIO, suffix: str) -> Any:
    """A stream that writes compressed data to a file; `suffix` is one of MAGIC.

    The data contains no name and no time, so equal content becomes equal bytes.
    """
    if suffix == ".gz":
        # The level is that of the gzip command. Python's default, 9, takes longer for little gain.
        return gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0)
    if suffix == ".bz2":
        return bz2.BZ2File(file, "wb")
    if suffix == ".xz":
        return lzma.LZMAFile(file, "wb")
    import pyarrow

    return pyarrow.CompressedOutputStream(file, "zstd")
