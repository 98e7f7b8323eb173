"""What is told of a line: properties of its source, by which lines are put into buckets, and faults of translations."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from nmt.plugins.report.quality import MAX_BUCKETS, length_bucket, length_label

NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
WORD = re.compile(r"\w+")
LONGEST_REPETITION = 4
"""In words."""
SHORT, LONG = 0.6, 1.6
"""Shares of the reference's characters below and above which a translation is too short or too long."""
FEW_CHARACTERS = 10
"""A smaller difference in length is none."""
FREQUENCIES = (1, 10, 100)
"""Bounds between buckets of frequency."""


@dataclass(frozen=True)
class Line:
    """A line of a test set."""

    source: str | None
    reference: str

    @property
    def text(self) -> str:
        """The source, or the reference where that is unknown."""
        return self.reference if self.source is None else self.source


@dataclass(frozen=True)
class Division:
    """Buckets that every line falls into one of."""

    title: str
    labels: list[str]
    bucket: Callable[[Line], int]


@dataclass(frozen=True)
class Fault:
    """Something wrong with a translation; `applies` tells in which lines it can be."""

    title: str
    has: Callable[[Line, str], bool]
    applies: Callable[[Line], bool] = lambda line: True


def words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def numbers(text: str) -> Counter[str]:
    """The numbers in a text, without separators, which languages write differently: 1,000 and 1.000 are one."""
    return Counter(re.sub(r"\D", "", number) for number in NUMBER.findall(text))


def wanted_numbers(line: Line) -> Counter[str]:
    """The numbers that a translation should have: those of source and reference."""
    found = numbers(line.reference)
    return found if line.source is None else found & numbers(line.source)


def loses_number(line: Line, hypothesis: str) -> bool:
    return bool(wanted_numbers(line) - numbers(hypothesis))


def adds_number(line: Line, hypothesis: str) -> bool:
    return bool(numbers(hypothesis) - (numbers(line.reference) | numbers(line.text)))


def repetitions(text: str) -> set[tuple[str, ...]]:
    """The words, or sequences of some words, that follow upon themselves at once."""
    found, own = set(), words(text)
    for n in range(1, LONGEST_REPETITION + 1):
        for start in range(len(own) - 2 * n + 1):
            if own[start : start + n] == own[start + n : start + 2 * n]:
                found.add(tuple(own[start : start + n]))
    return found


def repeats(line: Line, hypothesis: str) -> bool:
    return bool(repetitions(hypothesis) - repetitions(line.reference) - repetitions(line.text))


def too_short(line: Line, hypothesis: str) -> bool:
    gap = len(line.reference) - len(hypothesis)
    return gap >= FEW_CHARACTERS and len(hypothesis) < SHORT * len(line.reference)


def too_long(line: Line, hypothesis: str) -> bool:
    gap = len(hypothesis) - len(line.reference)
    return gap >= FEW_CHARACTERS and len(hypothesis) > LONG * len(line.reference)


def wrong_case(line: Line, hypothesis: str) -> bool:
    """A word of the reference is there in another case only."""
    found = set(WORD.findall(hypothesis))
    folded = {word.casefold() for word in found}
    return any(word not in found and word.casefold() in folded for word in WORD.findall(line.reference))


def copies(line: Line, hypothesis: str) -> bool:
    """The translation is the source, which the reference is not."""
    return line.source is not None and hypothesis.split() == line.source.split() != line.reference.split()


FAULTS = (
    Fault("a number is lost", loses_number, lambda line: bool(wanted_numbers(line))),
    Fault("a number of its own", adds_number),
    Fault("words repeated", repeats),
    Fault(f"under-translated: shorter than {SHORT:.0%} of the reference", too_short),
    Fault(f"over-translated: longer than {LONG:.0%} of the reference", too_long),
    Fault("only the case of a word is wrong", wrong_case),
    Fault("the source, untranslated", copies),
)


def casing(line: Line) -> int:
    letters = [character for character in line.text if character.isalpha()]
    capitals = [character.isupper() for character in letters]
    if not any(capitals):
        return 0
    if len(capitals) > 1 and all(capitals):
        return 3
    return 2 if any(capitals[1:]) else 1


def divisions(frequency: Counter[str] | None, of_source: bool) -> list[Division]:
    """The divisions of a test set; `frequency` counts the words of training, None where they are unknown."""
    side = "the source" if of_source else "the reference"
    found = [
        Division(
            f"Words of {side}", [length_label(n) for n in range(MAX_BUCKETS)], lambda line: length_bucket(line.text)
        ),
        Division(f"Numbers in {side}", ["none", "some"], lambda line: bool(NUMBER.search(line.text))),
        Division(
            f"Capitals in {side}", ["none", "the first letter alone", "others too", "nothing but capitals"], casing
        ),
    ]
    if frequency is not None:
        known = frequency

        def rarity(line: Line) -> int:
            rarest = min((known[word] for word in words(line.text)), default=FREQUENCIES[-1])
            return sum(rarest >= bound for bound in FREQUENCIES)

        labels = ["never", *(f"{a} to {b - 1} times" for a, b in pairwise(FREQUENCIES))]
        found.insert(
            1, Division("Its rarest word was in training", [*labels, f"{FREQUENCIES[-1]} times or more"], rarity)
        )
    return found
