"""Compressed files: readers return all lines or raise an error."""

import bz2
import gzip
import lzma
import shutil
import subprocess
from collections.abc import Callable
from io import BufferedReader, BytesIO
from pathlib import Path

import pytest

from nmt.config import NMTError
from nmt.text import read_lines
from nmt.text.compression import decompressed

LINES = [f"line {number} of a text ü" for number in range(12)]
FIRST = "".join(line + "\n" for line in LINES[:6]).encode()
SECOND = "".join(line + "\n" for line in LINES[6:]).encode()


def zstd_with_checksum(content: bytes) -> bytes:
    # pyarrow writes no checksums, so a damaged byte of text would be undetectable.
    return subprocess.run(["zstd", "-c"], input=content, capture_output=True, check=True).stdout


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda content: gzip.compress(content, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd_with_checksum,
}
SUFFIXES = [
    pytest.param(
        suffix,
        marks=pytest.mark.skipif(suffix == "zst" and not shutil.which("zstd"), reason="no zstd"),
    )
    for suffix in COMPRESS
]


def lines_of(path: Path, content: bytes) -> list[str] | None:
    """The lines, or None if the file is refused."""
    path.write_bytes(content)
    try:
        return [line.decode() for line in read_lines(path)]
    except NMTError:
        return None


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("damage", [1, 0x80, 0xFF])
def test_a_damaged_byte_never_shortens_a_file(tmp_path: Path, suffix: str, damage: int) -> None:
    path = tmp_path / f"text.{suffix}"
    intact = COMPRESS[suffix](FIRST) + COMPRESS[suffix](SECOND)
    assert lines_of(path, intact) == LINES
    for position in range(len(intact)):
        damaged = bytearray(intact)
        damaged[position] ^= damage
        assert lines_of(path, bytes(damaged)) in (LINES, None), position


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_truncated_file_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text.{suffix}"
    first = COMPRESS[suffix](FIRST)
    intact = first + COMPRESS[suffix](SECOND)
    for length in range(len(intact)):
        # A file that ends between two streams is a complete file.
        expected = LINES[:6] if length == len(first) else None
        assert lines_of(path, intact[:length]) == expected, length


ENDINGS = {
    # What `gzip -t`, `xz -t` and `zstd -t` accept is legal; bzip2 ignores garbage, which we refuse.
    "garbage": (lambda first, second, empty: first + second + bytes(range(256)), ""),
    "a short tail": (lambda first, second, empty: first + second + second[:2], ""),
    "text": (lambda first, second, empty: first + second + b"not compressed\n", ""),
    "zeros at the end": (lambda first, second, empty: first + second + bytes(8), "gz xz"),
    "one zero": (lambda first, second, empty: first + second + bytes(1), "gz"),
    "zeros between": (lambda first, second, empty: first + bytes(4) + second, "gz xz"),
    "empty streams": (
        lambda first, second, empty: empty + first + empty + second + empty,
        "gz bz2 xz zst",
    ),
}
"""Description -> the file's content, and the formats in which that is legal."""


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_follows_a_stream(tmp_path: Path, suffix: str, ending: str) -> None:
    join, legal = ENDINGS[ending]
    content = join(*map(COMPRESS[suffix], (FIRST, SECOND, b"")))
    expected = LINES if suffix in legal.split() else None
    assert lines_of(tmp_path / f"text.{suffix}", content) == expected


def test_a_decompressed_file_can_be_read_in_any_pieces() -> None:
    content = bytes(range(256)) * 3000
    for compress in (bz2.compress, lzma.compress):
        streams = compress(content[:300_000]) + compress(content[300_000:])
        file = BufferedReader(BytesIO(streams))  # type: ignore[arg-type]
        reader = decompressed(file, "name")
        pieces = iter(lambda reader=reader: reader.read1(777), b"")
        assert b"".join(pieces) == content
