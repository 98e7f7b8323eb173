"""Counts of scored pairs, which a job keeps when it resumes: how many, and how likely.

The counts are a histogram of log P per token with bins of equal width, so that a job of any size
needs little memory, and the counts of blocks and parts can be added.
"""

import math
from collections.abc import Mapping

from nmt.translation.reporting import warn

PAIRS = "pairs"
KEPT = "kept"
BIN = "log P per token, bin "
BINS = 10
"""The number of bins per unit of log P, so quantiles have one decimal."""
LOWEST = -50
"""Pairs with a lower log P per token are in the lowest bin."""
QUANTILES = (0.1, 0.25, 0.5, 0.75)
SMALL_SHARE = 0.01
"""A filter that keeps or drops a smaller share is probably a mistake."""


def bin_of(value: float) -> str:
    """The name of the count for pairs with this log P per token."""
    return f"{BIN}{math.floor(max(value, LOWEST) * BINS)}"


def notes_in(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of notes for the user, without those of this file."""
    notes = dict[str, int]()
    for name, count in counts.items():
        if name not in (PAIRS, KEPT) and not name.startswith(BIN):
            notes[name] = count
    return notes


def quantiles_of(counts: Mapping[str, int]) -> dict[float, float]:
    """Share of the pairs -> the lowest edge of a bin below which at least this share lies.

    Empty if no pair has a score.
    """
    bins = dict[int, int]()
    for name, count in counts.items():
        if name.startswith(BIN):
            bins[int(name.removeprefix(BIN))] = count
    total = sum(bins.values())
    quantiles = dict[float, float]()
    below = 0
    for number in sorted(bins):
        below += bins[number]
        for share in QUANTILES:
            if share not in quantiles and below >= share * total:
                quantiles[share] = (number + 1) / BINS
    return quantiles


def kept_in_words(counts: Mapping[str, int]) -> str:
    """How many of the pairs were kept, such as "kept 14 of 30 pairs"."""
    return f"kept {counts.get(KEPT, 0):,} of {counts[PAIRS]:,} pairs"


def pairs_in_words(counts: Mapping[str, int]) -> str:
    return "1 pair" if counts[PAIRS] == 1 else f"{counts[PAIRS]:,} pairs"


def report_quantiles(counts: Mapping[str, int]) -> None:
    """Print how likely the pairs are, from which a user can choose a minimum."""
    quantiles = quantiles_of(counts)
    if quantiles:
        shares = [f"{share:.0%} below {edge:.1f}" for share, edge in quantiles.items()]
        warn(f"log P per token of {pairs_in_words(counts)}: {', '.join(shares)}")


def report_scores(counts: Mapping[str, int], minimum: float | None, where: str) -> None:
    """Print how likely the pairs are, and a last line with their number and where they are."""
    pairs = counts.get(PAIRS, 0)
    if not pairs:
        return
    report_quantiles(counts)
    quantiles = quantiles_of(counts)
    if minimum is None:
        warn(f"scored {pairs_in_words(counts)}: {where}")
        return
    kept = counts.get(KEPT, 0)
    if quantiles and kept < SMALL_SHARE * pairs:
        warn(
            f"notice: minimum={minimum:g} keeps less than 1% of the pairs; choose a value by the "
            f"line above: minimum={quantiles[0.25]:.1f} would drop about 25%"
        )
    elif kept > (1 - SMALL_SHARE) * pairs:
        warn(f"notice: minimum={minimum:g} drops less than 1% of the pairs")
    warn(f"{kept_in_words(counts)}: {where}")
