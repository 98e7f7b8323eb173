"""Divide corrections into those to learn from and those to test with.

A correction's part depends on its source alone, so a later command with more corrections holds out
the same ones again. Near-copies count as one: otherwise, one sentence in many forms could train the
model or decide the test alone.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nmt.config import NMTError
from nmt.plugins.learn.reading import Correction

WORD = re.compile(r"[^\W\d_]+")
FEWEST_WORDS = 4
"""With fewer words, sentences that differ in one word are no near-copies."""
MOST_NEAR_COPIES = 10
"""The maximum number of corrections of a group of near-copies; a group is never split."""
HELD_OUT = 0.2
FEWEST_HELD_OUT = 10
"""The minimum number of groups of near-copies that are held out."""
TUNING = 0.15
"""The share of the corrections to learn from that choose the strength."""
FEWEST_TUNING = 5


def normalized(text: str) -> str:
    """A text without case, digits and punctuation; texts that differ only in these are the same."""
    words = WORD.findall(text.casefold())
    # A line without words, such as a number, is the same only as itself.
    return " ".join(words) or text.casefold()


def fraction_of(text: str, use: str) -> float:
    """A number from 0 to 1 that depends on a text only, evenly distributed."""
    digest = hashlib.sha256(f"{use} {text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def groups_of_near_copies(sources: Sequence[str]) -> list[list[int]]:
    """The numbers of the sources, grouped: near-copies differ in at most one word.

    Near-copies of near-copies are in the same group.
    """
    parents = list(range(len(sources)))

    def root(number: int) -> int:
        while parents[number] != number:
            parents[number] = parents[parents[number]]
            number = parents[number]
        return number

    first_with = dict[str, int]()
    for number, source in enumerate(sources):
        for key in keys_of(normalized(source)):
            other = first_with.setdefault(key, number)
            parents[root(number)] = root(other)
    groups = defaultdict[int, list[int]](list)
    for number in range(len(sources)):
        groups[root(number)].append(number)
    return list(groups.values())


def keys_of(text: str) -> Iterable[str]:
    """The text, and its variants that lack one word: near-copies have one of them in common."""
    yield text
    words = text.split()
    if len(words) < FEWEST_WORDS:
        return
    for index in range(len(words)):
        yield " ".join([*words[:index], "*", *words[index + 1 :]])
        yield " ".join([*words[:index], *words[index + 1 :]])


def kinds_of(corrections: Sequence[Correction]) -> list[list[Correction]]:
    """The corrections in groups of near-copies."""
    groups = groups_of_near_copies([correction.source for correction in corrections])
    return [[corrections[number] for number in group] for group in groups]


def surplus_near_copies(corrections: Sequence[Correction]) -> set[Correction]:
    """All corrections of each group of near-copies beyond the first MOST_NEAR_COPIES.

    The order within a group depends on the sources alone, like the parts.
    """
    surplus = set[Correction]()
    for kind in kinds_of(corrections):
        # The source after the fraction, so that the order never depends on the files.
        ordered = sorted(kind, key=lambda item: (fraction_of(item.source, "copy"), item.source))
        surplus.update(ordered[MOST_NEAR_COPIES:])
    return surplus


def check_kinds(corrections: Sequence[Correction], least: int) -> None:
    """Raise NMTError if there are too few corrections; near-copies count as one."""
    kinds = len(kinds_of(corrections))
    if kinds >= least:
        return
    if kinds == len(corrections):
        raise NMTError(
            f"{kinds} usable corrections, but {least} are needed: nothing changed; collect more"
        )
    name = "kind" if kinds == 1 else "kinds"
    raise NMTError(
        f"{len(corrections)} usable corrections of {kinds} {name} (near-copies count once), but "
        f"{least} kinds are needed: nothing changed; correct other sentences"
    )


@dataclass(frozen=True)
class Division:
    """The parts of the corrections, each in the order of the files."""

    training: list[Correction]
    tuning: list[Correction]
    """Choose the strength; never trained on."""
    held_out: list[Correction]
    """Decide whether the model is delivered; nothing else depends on them."""


def divide(corrections: Sequence[Correction]) -> Division:
    """Hold out a fifth, at least 10 without near-copies, and choose the corrections for tuning."""
    held_out = chosen(corrections, HELD_OUT, FEWEST_HELD_OUT, "held out")
    rest = [item for number, item in enumerate(corrections) if number not in held_out]
    tuning = chosen(rest, TUNING, FEWEST_TUNING, "tuning")
    return Division(
        training=[item for number, item in enumerate(rest) if number not in tuning],
        tuning=[rest[number] for number in sorted(tuning)],
        held_out=[corrections[number] for number in sorted(held_out)],
    )


def chosen(corrections: Sequence[Correction], share: float, fewest: int, use: str) -> set[int]:
    """The numbers of about this share of the corrections, in whole groups of near-copies."""
    groups = groups_of_near_copies([correction.source for correction in corrections])

    def fraction(group: list[int]) -> float:
        # The smallest text represents the group, whatever the order of the files.
        return fraction_of(min(normalized(corrections[number].source) for number in group), use)

    numbers = set[int]()
    for count, group in enumerate(sorted(groups, key=fraction)):
        # By the fraction and not by the number, so that more corrections do not change the part of
        # the earlier ones.
        if fraction(group) >= share and count >= fewest:
            break
        numbers.update(group)
    return numbers
