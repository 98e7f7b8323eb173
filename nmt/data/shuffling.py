"""Permutations of the numbers below n, without a list of them: a keyed cipher.

The cipher is a Feistel network on the numbers below a square, applied until the result is below n
(method 3 of Black and Rogaway 2002, "Ciphers with arbitrary finite domains").
"""

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nmt.data.lengths import Ints

if TYPE_CHECKING:
    from torch import Tensor

Integers = TypeVar("Integers", Ints, "Tensor")

ROUNDS = 8
"""Rounds of the cipher; with six, some permutations of a few dozen items occur too often."""

INCREMENT = 0x9E3779B97F4A7C15 - 2**64
"""2^64 divided by the golden ratio. It is signed, because PyTorch lacks unsigned arithmetic."""

MIXERS = (
    (30, 0xBF58476D1CE4E5B9 - 2**64),
    (27, 0x94D049BB133111EB - 2**64),
)
"""The shifts and factors of SplitMix64."""


def shifted(values: Integers, bits: int) -> Integers:
    """Shift 64-bit integers right, filling with zeros."""
    return (values >> bits) & ((1 << (64 - bits)) - 1)


def splitmix(states: Integers) -> Integers:
    """Replace these states with their SplitMix64 outputs, in place.

    See Steele, Lea and Flood 2014, figure 17.
    """
    for bits, factor in MIXERS:
        states ^= shifted(states, bits)
        states *= factor
    states ^= shifted(states, 31)
    return states


def integers(numbers: ArrayLike) -> Ints:
    # Return at least one dimension, because NumPy warns if a product of 64-bit scalars overflows.
    return np.atleast_1d(np.asarray(numbers)).astype(np.int64)


def shuffle_key(*numbers: ArrayLike) -> Ints:
    """A key that depends on all `numbers`; an array of keys if some of the numbers are arrays."""
    key = integers(0)
    for number in numbers:
        key = splitmix((key ^ integers(number)) + INCREMENT)
    return key


def encrypted(items: Ints, sides: Ints, keys: Ints) -> Ints:
    """Permute the numbers below the square of their `sides` with a Feistel network."""
    left, right = np.divmod(items, sides)
    for _ in range(ROUNDS):
        keys = keys + INCREMENT
        # Below `sides`, without a division: 32 bits times a side below 2^26 fit into 63 bits.
        random_bits = shifted(splitmix((right ^ keys) + INCREMENT), 32)
        offsets = random_bits * sides >> 32  # below `sides`
        left, right = right, (left + offsets) % sides
    return np.asarray(left * sides + right)


def shuffled(indices: NDArray[Any], size: ArrayLike, key: Ints) -> Ints:
    """The items at `indices` after shuffling range(size) with `key`.

    Each index may have its own size and key.
    """
    sizes = np.broadcast_to(integers(size), indices.shape)
    keys = np.broadcast_to(integers(key), indices.shape)
    # The square is only slightly larger than the range. For sizes below 2**52, the root is exact
    # enough.
    sides = np.ceil(np.sqrt(sizes)).astype(np.int64)
    items = integers(indices)
    outside = np.arange(len(indices))  # the places of items that are not in the range yet
    # Encrypting again until the result is in the range keeps the map a permutation: each path
    # through the square leads from one item of the range to the next.
    while len(outside):
        items[outside] = encrypted(items[outside], sides[outside], keys[outside])
        outside = outside[items[outside] >= sizes[outside]]
    return items
