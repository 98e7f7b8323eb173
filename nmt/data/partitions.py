"""Divide a corpus into rows of one or more consecutive pairs, which training joins (data.join).

Whether a row that begins at a pair has further pairs, and how many, depends on the seed, the number
of the partition and the pair alone. Rows follow each other, so every pair is in one row of each
partition.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nmt.data.consecutive import Flags
from nmt.data.lengths import Ints, Lengths
from nmt.data.shuffling import shifted, shuffle_key
from nmt.data.sorting import order_type

BLOCK_PAIRS = 1 << 20
"""Pairs processed at a time, so that temporary arrays need little memory."""

DRAWS = 2
"""Random numbers for each pair: whether to join it, and with how many pairs."""


class JoinRule(NamedTuple):
    """Which pairs of a source are joined."""

    most: int
    """The maximum number of pairs in a row."""
    probability: float
    limits: tuple[int, int]
    """The maximum length of a joined source and target, with their end symbol."""
    tags: tuple[int, int]
    """The number of tokens of a tag, which a row has only once."""


@dataclass(frozen=True)
class Partition:
    """Rows of consecutive pairs. Lengths include the end symbol."""

    starts: NDArray[np.signedinteger]
    """The first pair of each row, then the number of pairs, [rows + 1]."""
    source_lengths: NDArray[np.unsignedinteger]
    target_lengths: NDArray[np.unsignedinteger]
    bounds: Ints
    """Each source's first row, then the end, [sources + 1]."""

    def pairs_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """The first pair of each of these rows, and how many pairs it has."""
        firsts = self.starts[rows].astype(np.int64)
        return firsts, self.starts[rows + 1] - firsts


class Sizes(NamedTuple):
    """What rows that begin at each pair of a block would have, [pairs]."""

    pairs: Ints
    lengths: tuple[Ints, Ints]


class Pairs(NamedTuple):
    """The pairs of a split, as far as partitions depend on them."""

    source_lengths: Lengths
    target_lengths: Lengths
    continues: Flags
    """Whether each pair follows the one before it in the original text, [pairs]."""
    bounds: Ints
    """Each source's first pair, then the end, [sources + 1]."""


def uniform(*numbers: int | Ints) -> NDArray[np.float64]:
    """Numbers in [0, 1) that depend on all arguments."""
    # 53 bits, which a float holds exactly.
    return np.asarray(shifted(shuffle_key(*numbers), 11) * 2.0**-53)


def drawn_pairs(rule: JoinRule, pairs: Ints, seed: int, number: int) -> Ints:
    """How many pairs a row that begins at each of these pairs should have."""
    is_joined = uniform(seed, number * DRAWS, pairs) < rule.probability
    # From 2 to `most`, all equally likely.
    joined = 2 + uniform(seed, number * DRAWS + 1, pairs) * (rule.most - 1)
    return np.where(is_joined, joined.astype(np.int64), 1).clip(max=rule.most)


def row_sizes(rule: JoinRule, pairs: Pairs, begin: int, end: int, drawn: Ints) -> Sizes:
    """The sizes of rows that begin at the pairs from `begin` to `end`, and have `drawn` pairs.

    They have fewer if the text is not continued, or if their lengths would exceed the limits.
    """
    # The rows of the last pairs may end after `end`.
    last = min(end + rule.most - 1, len(pairs.continues))
    continues = pairs.continues[begin:last]
    sides = (pairs.source_lengths[begin:last], pairs.target_lengths[begin:last])
    count = end - begin
    lengths = [side[:count].astype(np.int64) for side in sides]
    totals = lengths
    sizes = np.ones(count, np.int64)
    grows = np.ones(count, np.bool_)
    for further in range(1, rule.most):
        next_pairs = np.arange(further, further + count)
        # The first pair of the next source continues nothing, and neither does a missing one.
        exists = next_pairs < len(continues)
        next_pairs = next_pairs.clip(max=len(continues) - 1)
        grows = grows & (drawn > further) & exists & continues[next_pairs]
        if not grows.any():
            break
        totals = [
            total + side[next_pairs] - 1 - tags
            for total, side, tags in zip(totals, sides, rule.tags, strict=True)
        ]
        grows &= (totals[0] <= rule.limits[0]) & (totals[1] <= rule.limits[1])
        sizes += grows
        lengths = [np.where(grows, *both) for both in zip(totals, lengths, strict=True)]
    return Sizes(sizes, (lengths[0], lengths[1]))


def rows_from(first: int, sizes: Ints) -> Ints:
    """Where the rows of a block begin, and where the next row begins after it.

    `first` is the place of the first one, and `sizes` are those of rows at each place.
    """
    # A loop, because each row begins where the last one ends. Lists are faster than arrays here.
    sizes_of_rows = sizes.tolist()
    count = len(sizes_of_rows)
    starts = []
    place = first
    while place < count:
        starts.append(place)
        place += sizes_of_rows[place]
    return np.array([*starts, place], np.int64)


def partition(pairs: Pairs, rules: list[JoinRule], seed: int, number: int) -> Partition:
    """The rows of partition `number`; `rules` are those of the sources."""
    item = order_type(len(pairs.continues))
    longest = max(int(pairs.source_lengths.max()), int(pairs.target_lengths.max()))
    length_type = np.min_scalar_type(max(longest, *(max(rule.limits) for rule in rules)))
    starts: list[NDArray[np.signedinteger]] = []
    lengths: tuple[list[NDArray[np.unsignedinteger]], ...] = ([], [])
    bounds = [0]
    for source, rule in enumerate(rules):
        first = 0
        end_of_source = int(pairs.bounds[source + 1])
        rows = 0
        for begin in range(int(pairs.bounds[source]), end_of_source, BLOCK_PAIRS):
            end = min(begin + BLOCK_PAIRS, end_of_source)
            drawn = drawn_pairs(rule, np.arange(begin, end), seed, number)
            sizes = row_sizes(rule, pairs, begin, end, drawn)
            row_starts = rows_from(first, sizes.pairs)
            places = row_starts[:-1]
            # Counted from the beginning of the next block.
            first = int(row_starts[-1]) - (end - begin)
            rows += len(places)
            starts.append((begin + places).astype(item))
            for side in (0, 1):
                lengths[side].append(sizes.lengths[side][places].astype(length_type))
        bounds.append(bounds[-1] + rows)
    starts.append(np.array([len(pairs.continues)], item))
    source_lengths, target_lengths = map(np.concatenate, lengths)
    return Partition(np.concatenate(starts), source_lengths, target_lengths, np.array(bounds))
