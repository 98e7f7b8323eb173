"""Choose training pairs at random, in a small part of the memory that a list of all pairs needs."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]
BLOCK = 1 << 16
"""The numbers or flags that are handled at a time."""
# Held-out sets usually fit into the first window. Each further window shuffles all numbers again,
# so windows grow. The largest has 8 bytes for each of 2^24 numbers, 128 MiB.
FIRST_WINDOW = 1 << 16
WINDOW_GROWTH = 8
LARGEST_WINDOW = 1 << 24


def shuffled_range(count: int, seed: int) -> Iterator[Rows]:
    """The parts of `np.random.default_rng(seed).permutation(count)`, in a byte per number.

    The random generator alone decides how a shuffle moves its items, not what they are. So the
    bytes of the numbers are shuffled one after the other, and only a part of each result is kept.
    """
    # numpy's own order, so that a corpus prepared by an earlier version holds out the same pairs.
    start = 0
    window = FIRST_WINDOW
    while start < count:
        yield shuffled_part(count, seed, slice(start, start + window))
        start += window
        window = min(window * WINDOW_GROWTH, LARGEST_WINDOW)


def shuffled_part(count: int, seed: int, part: slice) -> Rows:
    numbers = np.zeros(len(range(count)[part]), np.int64)
    # One byte of the numbers per pass. All passes begin with the same seed, so all bytes of a
    # number move to the same place.
    for shift in range(0, count.bit_length(), 8):
        digits = np.empty(count, np.uint8)
        # In blocks, because the range of all numbers would have 8 bytes for each of them.
        for start in range(0, count, BLOCK):
            end = min(start + BLOCK, count)
            digits[start:end] = (np.arange(start, end) >> shift) & 0xFF
        np.random.default_rng(seed).shuffle(digits)
        numbers |= digits[part].astype(np.int64) << shift
    return numbers


def random_rows(count: int, size: int, seed: int) -> Rows:
    """Draw `size` of the numbers below `count`, ascending, in a byte of memory per number."""
    random = np.random.default_rng(seed)
    # If most numbers are drawn, draw the numbers to leave out, which are fewer.
    fewer = min(size, count - size)
    is_among = np.zeros(count, np.bool_)
    # Draws may repeat a number, so the loop draws the missing numbers again. At most half of all
    # numbers are drawn, so every round finds at least about half of its numbers, and few rounds
    # suffice.
    while missing := fewer - np.count_nonzero(is_among):
        is_among[random.integers(0, count, missing)] = True
    return np.flatnonzero(is_among if fewer == size else ~is_among)


def nth_flagged(flags: Flags, numbers: Rows) -> Rows:
    """The same as `np.flatnonzero(flags)[numbers]`, without a list of all flagged rows."""
    # Counts per block show which block contains each number. Only those blocks are then listed.
    blocks = range(0, len(flags), BLOCK)
    counts = [np.count_nonzero(flags[start : start + BLOCK]) for start in blocks]
    begins = np.cumsum([0, *counts])
    # Numbers may have any order, which the result keeps; sorted, those of a block are together.
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], begins)
    rows = np.empty(len(numbers), np.int64)
    for block in np.flatnonzero(np.diff(edges)):
        inside = order[edges[block] : edges[block + 1]]
        flagged = np.flatnonzero(flags[block * BLOCK : (block + 1) * BLOCK])
        rows[inside] = block * BLOCK + flagged[numbers[inside] - begins[block]]
    return rows
