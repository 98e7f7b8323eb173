"""The notice about the damaged pairs of a corpus, from those of a sample."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from math import sqrt

import numpy as np

from nmt.preparation.kinds import HALF_TRANSLATED, KINDS, SHIFTED, UNRELATED, Kind
from nmt.preparation.meanings import (
    LEAST_ADVISED,
    LEAST_SAMPLED,
    RUN_PAIRS,
    SAMPLED,
    Inspected,
    Meanings,
)
from nmt.preparation.places import Where, in_words

LEAST_PAIRS = 3
"""Fewer pairs of a kind are not reported."""
DENSE_PAIRS = 10
"""With this many pairs of a kind among RUN_PAIRS consecutive ones, a block of them has damage."""
MOST_BEFORE = 0.25
"""If less of the range of damaged pairs precedes such a block, the first pair suffices."""
SHOWN_PAIRS = 10
"""The number of the worst pairs that are shown."""
LOW = 0.75
"""This share of unrelated pairs is less similar than almost all good pairs."""
DROPPED = 0.97
"""The share of unrelated pairs that the advised filter drops."""
MOST_ADVISED = 0.4
STEP = 0.05
"""Advised values are multiples of it."""
FILTERED = (SHIFTED, HALF_TRANSLATED, UNRELATED)
"""The kinds of damage that make sides less similar; the encoder hardly sees in which language."""


@dataclass
class Share:
    """The part of a corpus that has a kind of damage."""

    kind: Kind
    share: float
    """Estimated, of all pairs."""
    pairs: list[Inspected]
    """Those of the sample."""

    @property
    def has_foreign_side(self) -> bool:
        """Whether `data.filters.languages` drops pairs of this kind."""
        return any(pair.is_foreign for pair in self.pairs)

    def in_words(self, where: Where) -> str:
        """Such as "5.1% unrelated (first: pair 302)"."""
        numbers = sorted(pair.number for pair in self.pairs)
        places = f"first: {where(numbers[0])}"
        block = first_of_block(numbers)
        least = numbers[0] + MOST_BEFORE * (numbers[-1] - numbers[0])
        # Single pairs before it may be good ones with a free translation.
        if block and block > least:
            places += f"; many from about {where(block)} on"
        return f"{self.share:.1%} {self.kind.name} ({places})"


def first_of_block(numbers: Sequence[int]) -> int | None:
    """The first of ascending numbers that lie close together; None if they are scattered."""
    for first, last in zip(numbers, numbers[DENSE_PAIRS - 1 :], strict=False):
        if last - first < RUN_PAIRS:
            return first
    return None


@dataclass
class DamageNotice:
    """What is wrong with the pairs of a corpus."""

    text: str
    worst: list[Inspected]
    kinds: set[Kind]


def damage_notice(
    meanings: Meanings,
    pairs: int | None,
    known: Collection[Kind],
    whole: Meanings | None = None,
    where: Where = in_words,
) -> DamageNotice | None:
    """The notice about a corpus; None if it has no more damage than clean corpora have.

    `pairs` is the number of all pairs if filters apply to them. Kinds of damage that are already
    `known` are left out. `whole` is the whole sample if `meanings` lacks pairs with known damage.
    """
    whole = whole or meanings
    if len(meanings.pairs) < LEAST_SAMPLED:
        return None
    shares = [share for share in shares_of(meanings) if share.kind not in known]
    if not shares:
        return None
    # The shares are estimates, so their sum may be too large.
    total = min(1.0, sum(share.share for share in shares))
    kinds = ", ".join(share.in_words(where) for share in shares)
    which = "pairs" if len(meanings.pairs) == len(whole.pairs) else "other pairs"
    text = (
        f"about {total:.1%} of the {which} seem to be damaged, of {len(meanings.pairs):,} that nmt "
        f"compared: {kinds}"
    )
    worst = worst_pairs(shares)
    for pair in worst:
        pair.place = where(pair.number)
        pair.damage = (pair.kind or UNRELATED).name
    # The filters drop pairs with known damage, too.
    kinds_of_notice = {share.kind for share in shares}
    return DamageNotice(f"{text}: {advice(whole, shares, pairs)}", worst, kinds_of_notice)


def shares_of(meanings: Meanings) -> list[Share]:
    """The kinds of damage that are more frequent than in clean corpora."""
    shares = []
    for kind in KINDS:
        if kind is UNRELATED:
            pairs = unrelated_pairs(meanings)
            estimate = len(pairs) / LOW
        else:
            pairs = [pair for pair in meanings.pairs if pair.kind == kind]
            estimate = len(pairs)
        judged = sum(pair.is_judged(kind) for pair in meanings.pairs)
        share = min(1.0, estimate / max(1, judged))
        if len(pairs) >= LEAST_PAIRS and share >= least_share_of(kind, judged):
            shares.append(Share(kind, share, pairs))
    return shares


def least_share_of(kind: Kind, judged: int) -> float:
    """The lowest share of a kind to report, given the number of judged pairs.

    The limits of kinds are those of full samples. The share in a smaller one varies more, so two
    more standard errors are added.
    """
    variance = kind.least_share * (1 - kind.least_share)
    error = sqrt(variance / max(1, judged)) - sqrt(variance / SAMPLED)
    return kind.least_share + 2 * max(0.0, error)


def unrelated_pairs(meanings: Meanings) -> list[Inspected]:
    """The pairs that are as dissimilar as most unrelated pairs, and hardly any good ones."""
    # Relative to unrelated pairs of the same corpus: captions are alike, chats are not.
    low = float(np.quantile(meanings.shuffled or [0.0], LOW))
    return [pair for pair in meanings.pairs if pair.kind is None and pair.similarity < low]


def advised_similarity(meanings: Meanings) -> float:
    """The value of `data.filters.similarity` that drops almost all unrelated pairs."""
    value = float(np.quantile(meanings.shuffled or [0.0], DROPPED))
    value = min(max(value, LEAST_ADVISED), MOST_ADVISED)
    return round(round(value / STEP) * STEP, 2)


def advice(meanings: Meanings, shares: list[Share], pairs: int | None) -> str:
    """What to do about damage of these kinds."""
    filters = []
    dropped = set[int]()
    if any(share.kind in FILTERED for share in shares):
        least = advised_similarity(meanings)
        filters.append(f"data.filters.similarity={least:g}")
        dropped |= {pair.number for pair in meanings.pairs if pair.fit < least}
    if any(share.has_foreign_side for share in shares):
        filters.append("data.filters.languages=true")
        dropped |= {pair.number for pair in meanings.pairs if pair.is_foreign}
    # Held-out sets are not filtered, and the filters may be on already.
    if pairs is None or not dropped:
        return "correct or remove these pairs"
    count = round(len(dropped) / len(meanings.pairs) * pairs)
    verb = "drop" if len(filters) > 1 else "drops"
    return f"{' and '.join(filters)} {verb} about {count:,} of {pairs:,} pairs"


def worst_pairs(shares: list[Share]) -> list[Inspected]:
    """The least similar pairs, with some of each kind of damage."""
    by_kind = [sorted(share.pairs, key=lambda pair: pair.fit) for share in shares]
    # Pairs in a wrong language are similar, so they would not be among the least similar ones.
    in_turn = chain.from_iterable(zip_longest(*by_kind))
    return [pair for pair in in_turn if pair][:SHOWN_PAIRS]
