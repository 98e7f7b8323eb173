"""Share the order of a large corpus's pairs among the processes of a machine.

The order, in a file of the cache folder, is mapped into memory by every process. The name of the
file is a digest of everything that decides the order, so a resumed run finds it again, and another
corpus or budget has another file.

A file consists of a header, the groups' starts and widths as int64, and the order. It is used only
if its checksum is correct and no one else could have written it. nmt replaces any other file. A
process computes the checksum only if the file has changed since another process computed it.
"""

import fcntl
import hashlib
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np

from nmt.data.grouping import Division, Groups, divide, groups_in_memory
from nmt.data.lengths import GrownLengths, Ints, Lengths, Rows, digest_of
from nmt.data.sorting import Pairs, order_type, stretches_by_group
from nmt.errors import NMTError
from nmt.files import (
    lock_if_possible,
    open_private,
    opened_private,
    private_folder,
    remembered,
    remove_unused,
    turn_of,
    whole_file,
)

SHARED_PAIRS = 10_000_000
"""A smaller corpus is sorted in memory: that takes less than a second and 40 MB."""

FORMAT = b"nmt order 1"
"""Change the number whenever the same lengths get other groups or another order."""

SEAL = struct.Struct("<16s32s")
"""The format, and the SHA-256 of the rest of the file."""

COUNTS = struct.Struct("<32sqq")
"""What follows the seal: the key, and the numbers of pairs and groups."""

HEADER_BYTES = SEAL.size + COUNTS.size


class MappedOrder:
    """The order in a memory-mapped file. Supports the parts of NumPy that planning needs."""

    def __init__(self, path: Path, key: bytes, content: mmap.mmap, start: int, pairs: int) -> None:
        self.path = path
        self.key = key
        self.pairs: Pairs = np.frombuffer(content, order_type(pairs), pairs, start)

    @classmethod
    def open(cls, path: Path, key: bytes) -> "MappedOrder":
        groups = read_groups(path, key)
        if groups is None or not isinstance(groups.order, MappedOrder):
            raise NMTError(f"{path} was removed or changed: start the command again")
        return groups.order

    def __reduce__(self) -> tuple[Any, tuple[Path, bytes]]:
        # A worker process maps the file again instead of receiving its content.
        return type(self).open, (self.path, self.key)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.pairs.dtype

    @property
    def nbytes(self) -> int:
        return self.pairs.nbytes

    def __getitem__(self, places: slice | Rows) -> Pairs:
        return self.pairs[places]


def shared_groups(
    source_lengths: Lengths | GrownLengths, target_lengths: Lengths | GrownLengths, budget: int
) -> tuple[Groups, str]:
    """Groups as `group_by_lengths` returns them, and why a large order is not shared, or ''."""
    if len(source_lengths) < SHARED_PAIRS:
        return groups_in_memory(divide(source_lengths, target_lengths, budget)), ""
    key = key_of(source_lengths, target_lengths, budget)
    try:
        path = private_folder("orders") / f"{key.hex()}.order"
        # Before the lock, which a process cannot take if the folder is read-only.
        groups = read_groups(path, key)
        if groups is None:
            with turn_of(path):
                # Another process may have written the file while this one waited.
                groups = read_groups(path, key)
                if groups is None:
                    remove_unused(path.parent)
                    write_groups(path, key, divide(source_lengths, target_lengths, budget))
                    groups = read_groups(path, key)
                if groups is None:  # such as on a file system that does not store permissions
                    path.unlink()
        problem = f"{path} cannot be read back as it was written"
    except (NMTError, OSError) as error:
        groups = None
        problem = str(error)
    if groups:
        return groups, ""
    # The same order in private memory: each process makes its own copy.
    return groups_in_memory(divide(source_lengths, target_lengths, budget)), problem


def key_of(
    source_lengths: Lengths | GrownLengths, target_lengths: Lengths | GrownLengths, budget: int
) -> bytes:
    """The SHA-256 of everything that decides the groups and their order."""
    digest = hashlib.sha256(FORMAT + struct.pack("<qq", len(source_lengths), budget))
    for side in (source_lengths, target_lengths):
        digest.update(digest_of(side))
    return digest.digest()


def write_groups(path: Path, key: bytes, division: Division) -> None:
    """Write a file that `read_groups` accepts; NMTError if the disk is full, for example."""
    pairs = division.pairs
    head = COUNTS.pack(key, pairs, len(division.starts) - 1)
    head += division.starts.astype("<i8").tobytes() + division.widths.astype("<i8").tobytes()
    order_start = SEAL.size + len(head)
    item_bytes = order_type(pairs).itemsize
    with (
        whole_file(path) as temporary,
        open(temporary, "x+b", buffering=0, opener=open_private) as file,
    ):
        descriptor = file.fileno()
        # `remove_unused` removes temporary files that are not locked.
        lock_if_possible(descriptor, fcntl.LOCK_EX)
        write_all(descriptor, head, SEAL.size)
        # Written, not mapped: writing to a mapped file on a full disk would kill the process.
        for place, stretch in stretches_by_group(division.group_blocks(), division.starts):
            write_all(descriptor, stretch.data, order_start + place * item_bytes)
        with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as content:
            seal = SEAL.pack(FORMAT, checksum_of(content))
        write_all(descriptor, seal, 0)


def write_all(descriptor: int, content: bytes | memoryview, place: int) -> None:
    rest = memoryview(content).cast("B")
    while rest:
        written = os.pwrite(descriptor, rest, place)
        rest = rest[written:]
        place += written


def checksum_of(content: mmap.mmap) -> bytes:
    with memoryview(content) as whole, whole[SEAL.size :] as rest:
        return hashlib.sha256(rest).digest()


def is_intact(content: mmap.mmap, descriptor: int) -> bool:
    """Whether the checksum in an open file is correct, as perhaps an earlier process knows."""
    _, checksum = SEAL.unpack_from(content)

    def examine() -> str:
        return "yes" if checksum_of(content) == checksum else "no"

    return remembered(descriptor, "is its order intact?", examine, is_large=True) == "yes"


def read_groups(path: Path, key: bytes) -> Groups | None:
    """The groups in a file; None if it is missing, damaged, or not only in the user's control."""
    try:
        with opened_private(path) as file:
            # The mapping keeps the file open and locked.
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            if len(content) < HEADER_BYTES or not is_intact(content, file.fileno()):
                return None
    except (OSError, ValueError):  # ValueError: an empty file
        return None
    return groups_of(content, path, key)


def groups_of(content: mmap.mmap, path: Path, key: bytes) -> Groups | None:
    """The groups in the content of an intact file; None if it is another file."""
    form, _ = SEAL.unpack_from(content)
    actual_key, pairs, groups = COUNTS.unpack_from(content, SEAL.size)
    if form.rstrip(b"\0") != FORMAT or actual_key != key or pairs < 1 or groups < 1:
        return None
    starts_end = HEADER_BYTES + 8 * (groups + 1)
    order_start = starts_end + 8 * 2 * groups
    if len(content) != order_start + pairs * order_type(pairs).itemsize:
        return None
    # Copies, because these small arrays are sent to worker processes.
    starts: Ints = np.frombuffer(content, "<i8", groups + 1, HEADER_BYTES).astype(np.int64)
    widths: Ints = np.frombuffer(content, "<i8", 2 * groups, starts_end).astype(np.int64)
    order = MappedOrder(path, key, content, order_start, pairs)
    return Groups(order, starts, widths.reshape(2, groups))
