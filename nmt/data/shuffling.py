"""Shuffles with random access: the item at any index of a shuffled range, without shuffling the range.

An update is a few hundred pairs, and a run may start at any of them in any pass. A permutation of a pass of 40 million
pairs would be 160 MB in each process that builds batches, made anew for each pass and each start.

A cipher on the numbers below n is a permutation of them, and its key picks which. Ours is a Feistel network on the
numbers below a square (method 3 of Black and Rogaway 2002, "Ciphers with arbitrary finite domains"), repeated until it
lands below n.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

# Ranges of a few dozen items need this many: with six rounds some of their orders are too frequent.
ROUNDS = 8
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def words(numbers: ArrayLike) -> Words:
    # At least one dimension: numpy warns when the product of 64-bit scalars wraps around.
    return np.atleast_1d(np.asarray(numbers)).astype(np.uint64)


def mix(values: Words) -> Words:
    """Pseudo-random numbers from numbers of any pattern (SplitMix64: Steele, Lea and Flood 2014)."""
    values = values + GOLDEN
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def shuffle_key(*numbers: ArrayLike) -> Words:
    """A key that depends on each of `numbers`; an array of keys where some of them are arrays."""
    key = words(0)
    for number in numbers:
        key = mix(key ^ words(number))
    return key


def encipher(values: Words, side: Words, key: Words) -> Words:
    """A permutation of the numbers below side * side."""
    left, right = np.divmod(values, side)
    for _ in range(ROUNDS):
        key = key + GOLDEN
        below_side = (mix(right ^ key) >> np.uint64(32)) * side >> np.uint64(32)
        left, right = right, (left + below_side) % side
    return left * side + right


def shuffled(indices: NDArray[Any], size: ArrayLike, key: Words) -> Ints:
    """The items at `indices` of range(size) after shuffling by `key`; each index may have its own size and key."""
    sizes, keys = (np.broadcast_to(words(each), indices.shape) for each in (size, key))
    # The square is hardly larger than the range. Below 2**52 the root is exact enough.
    sides = np.ceil(np.sqrt(sizes)).astype(np.uint64)
    items = encipher(words(indices), sides, keys)
    while len(outside := np.flatnonzero(items >= sizes)):
        items[outside] = encipher(items[outside], sides[outside], keys[outside])
    return items.astype(np.int64)
