"""The Arrow files of a split, to which the main process appends the blocks of worker processes."""

import errno
import os
from pathlib import Path
from typing import Self

from nmt.data import END_OF_STREAM, IDS_SCHEMA
from nmt.preparation.spools import Place

FILE_PAIRS = 1 << 24
"""A training split with more pairs is divided into files of about this many pairs."""
NOT_SUPPORTED = {errno.ENOSYS, errno.EXDEV, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM}
"""Errors of file systems and sandboxes that cannot copy within the kernel."""


class SplitWriter:
    """Writes pairs.arrow, or pairs-00001.arrow, pairs-00002.arrow, ... if there are many pairs.

    Each file is a complete Arrow stream with whole blocks. A split without pairs gets no file.
    """

    def __init__(self, folder: Path, most_pairs: int | None) -> None:
        """`most_pairs`: a file with as many pairs is full; None: there is one file."""
        self.folder = folder
        self.most_pairs = most_pairs
        self.pairs = list[int]()
        """The number of pairs in each file."""
        self.descriptor: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *others: object) -> None:
        # After an error, the whole folder is removed.
        if kind is None:
            self.finish_file()
        self.close()

    def append(self, place: Place) -> None:
        """Append a block, and remove the file that it is in."""
        is_full = self.pairs and self.most_pairs and self.pairs[-1] >= self.most_pairs
        if self.descriptor is None or is_full:
            self.finish_file()
            self.begin_file()
        assert self.descriptor is not None
        with Path(place.file).open("rb") as source:
            copy_content(source.fileno(), self.descriptor, place.size)
        Path(place.file).unlink()
        self.pairs[-1] += place.pairs

    def begin_file(self) -> None:
        self.pairs.append(0)
        number = len(self.pairs)
        # The first file gets its number with the second one: most splits have one file.
        if number == 2:
            (self.folder / "pairs.arrow").rename(self.folder / "pairs-00001.arrow")
        name = "pairs.arrow" if number == 1 else f"pairs-{number:05}.arrow"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self.descriptor = os.open(self.folder / name, flags, 0o666)
        write_content(self.descriptor, IDS_SCHEMA.serialize().to_pybytes())

    def finish_file(self) -> None:
        if self.descriptor is not None:
            write_content(self.descriptor, END_OF_STREAM)
            self.close()

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def write_content(descriptor: int, content: bytes) -> None:
    # A write may take only a part, such as 2 GiB on Linux.
    while content:
        content = content[os.write(descriptor, content) :]


def copy_content(source: int, target: int, size: int) -> None:
    """Append the first `size` bytes of one open file to another; OSError if the disk is full."""
    copied = 0
    while copied < size:
        count = copy_in_kernel(source, target, size - copied)
        if not count:
            content = os.read(source, size - copied)
            assert content
            write_content(target, content)
            count = len(content)
        copied += count


def copy_in_kernel(source: int, target: int, size: int) -> int:
    """The number of bytes that the kernel copied; 0 if it cannot copy between these files."""
    # macOS has no such call.
    if not hasattr(os, "copy_file_range"):
        return 0
    try:
        return os.copy_file_range(source, target, size)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise
        return 0
