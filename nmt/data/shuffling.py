"""Shuffles with random access: the item at any index of a shuffled range, without shuffling the range.

A cipher on the numbers below n is a permutation of them, and its key chooses which. This one is a Feistel network on
the numbers below a square (method 3 of Black and Rogaway 2002, "Ciphers with arbitrary finite domains"), repeated until
it lands below n.
"""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from torch import Tensor

Ints = NDArray[np.int64]
Integers = TypeVar("Integers", Ints, "Tensor")

# Ranges of a few dozen items need this many: with six rounds some of their orders are too frequent.
ROUNDS = 8
# Signed, because torch has no unsigned arithmetic. The increment is 2^64 divided by the golden ratio.
INCREMENT = 0x9E3779B97F4A7C15 - 2**64
MIXERS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64))


def shifted(values: Integers, bits: int) -> Integers:
    """64-bit integers shifted to the right, with zeros shifted in."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def splitmix(states: Integers) -> Integers:
    """The outputs of SplitMix64 for these states, which are overwritten (Steele, Lea and Flood 2014, figure 17)."""
    for bits, factor in MIXERS:
        states ^= shifted(states, bits)
        states *= factor
    states ^= shifted(states, 31)
    return states


def integers(numbers: ArrayLike) -> Ints:
    # At least one dimension: numpy warns when the product of 64-bit scalars wraps around.
    return np.atleast_1d(np.asarray(numbers)).astype(np.int64)


def shuffle_key(*numbers: ArrayLike) -> Ints:
    """A key that depends on each of `numbers`; an array of keys where some of them are arrays."""
    key = integers(0)
    for number in numbers:
        key = splitmix((key ^ integers(number)) + INCREMENT)
    return key


def shuffled(indices: NDArray[Any], size: ArrayLike, key: Ints) -> Ints:
    """The items at `indices` of range(size) after shuffling by `key`; each index may have its own size and key."""
    sizes, keys = (np.broadcast_to(integers(values), indices.shape) for values in (size, key))
    # The square is hardly larger than the range. Below 2**52 the root is exact enough.
    sides = np.ceil(np.sqrt(sizes)).astype(np.int64)
    items, outside = integers(indices), np.arange(len(indices))
    while len(outside):
        side, round_key = sides[outside], keys[outside]
        left, right = np.divmod(items[outside], side)
        for _ in range(ROUNDS):
            round_key = round_key + INCREMENT
            left, right = right, (left + (shifted(splitmix((right ^ round_key) + INCREMENT), 32) * side >> 32)) % side
        items[outside] = left * side + right
        outside = outside[items[outside] >= sizes[outside]]
    return items
