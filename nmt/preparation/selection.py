"""Choose training pairs at random, in a small part of the memory that a list of all pairs needs."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]
BLOCK = 1 << 16
FIRST_WINDOW = 1 << 16
WINDOW_GROWTH = 8
LARGEST_WINDOW = 1 << 24


def shuffled_range(count: int, seed: int) -> Iterator[Rows]:
    """The parts of `np.random.default_rng(seed).permutation(count)`, in a byte per number.

    The random generator alone decides how a shuffle moves its items, not what they are. So the
    bytes of the numbers are shuffled one after the other, and only a part of each result is kept.
    """
    start = 0
    window = FIRST_WINDOW
    while start < count:
        yield shuffled_part(count, seed, slice(start, start + window))
        start += window
        window = min(window * WINDOW_GROWTH, LARGEST_WINDOW)


def shuffled_part(count: int, seed: int, part: slice) -> Rows:
    numbers = np.zeros(len(range(count)[part]), np.int64)
    for shift in range(0, count.bit_length(), 8):
        digits = np.empty(count, np.uint8)
        for start in range(0, count, BLOCK):
            end = min(start + BLOCK, count)
            digits[start:end] = (np.arange(start, end) >> shift) & 0xFF
        np.random.default_rng(seed).shuffle(digits)
        numbers |= digits[part].astype(np.int64) << shift
    return numbers


def random_rows(count: int, size: int, seed: int) -> Rows:
    """Draw `size` of the numbers below `count`, ascending, in a byte of memory per number."""
    random = np.random.default_rng(seed)
    # If most numbers are drawn, the others are fewer.
    fewer = min(size, count - size)
    is_among = np.zeros(count, np.bool_)
    while missing := fewer - np.count_nonzero(is_among):
        is_among[random.integers(0, count, missing)] = True
    return np.flatnonzero(is_among if fewer == size else ~is_among)


def nth_flagged(flags: Flags, numbers: Rows) -> Rows:
    """The same as `np.flatnonzero(flags)[numbers]`, without a list of all flagged rows."""
    blocks = range(0, len(flags), BLOCK)
    counts = [np.count_nonzero(flags[start : start + BLOCK]) for start in blocks]
    begins = np.cumsum([0, *counts])
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], begins)
    rows = np.empty(len(numbers), np.int64)
    for block in np.flatnonzero(np.diff(edges)):
        inside = order[edges[block] : edges[block + 1]]
        flagged = np.flatnonzero(flags[block * BLOCK : (block + 1) * BLOCK])
        rows[inside] = block * BLOCK + flagged[numbers[inside] - begins[block]]
    return rows
