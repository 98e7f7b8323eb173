"""Properties of a source, by which lines are put into buckets, and faults of translations."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from nmt.plugins.report.pages import MAX_BUCKETS, length_bucket, length_label
from nmt.text import SOURCE, load_tokenizer, read_texts
from nmt.translation import TestSet

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
MOST_LINES = 200_000
"""Training lines that are counted; of a larger prepared corpus, as many that are spread over it evenly."""


@dataclass(frozen=True)
class Line:
    """A line of a test set."""

    source: str | None
    reference: str

    @property
    def text(self) -> str:
        """The source, or the reference where that is unknown."""
        return self.reference if self.source is None else self.source

    @property
    def numbers(self) -> Counter[str]:
        """The numbers that a translation should have: those of source and reference."""
        return numbers_of(self.reference) & numbers_of(self.text)


class Division(NamedTuple):
    """Buckets that every line falls into one of."""

    title: str
    labels: list[str]
    bucket: Callable[[Line], int]


class Fault(NamedTuple):
    """Something wrong with a translation; `applies` tells in which lines it can be."""

    title: str
    has: Callable[[Line, str], bool]
    applies: Callable[[Line], bool] = lambda line: True


def words_of(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def numbers_of(text: str) -> Counter[str]:
    """The numbers in a text, without separators, which languages write differently: 1,000 and 1.000 are one."""
    return Counter(re.sub(r"\D", "", number) for number in NUMBER.findall(text))


def repetitions(text: str) -> set[tuple[str, ...]]:
    """The words, or sequences of some words, that follow upon themselves at once."""
    words = words_of(text)
    spans = [(at, n) for n in range(1, LONGEST_REPETITION + 1) for at in range(len(words) - 2 * n + 1)]
    return {tuple(words[at : at + n]) for at, n in spans if words[at : at + n] == words[at + n : at + 2 * n]}


def wrong_case(line: Line, text: str) -> bool:
    """A word of the reference is there in another case only."""
    words = set(WORD.findall(text))
    folded = {word.casefold() for word in words}
    return any(word not in words and word.casefold() in folded for word in WORD.findall(line.reference))


def is_lost(line: Line, text: str) -> bool:
    return bool(line.numbers - numbers_of(text))


def is_added(line: Line, text: str) -> bool:
    return bool(numbers_of(text) - (numbers_of(line.reference) | numbers_of(line.text)))


def is_repeated(line: Line, text: str) -> bool:
    return bool(repetitions(text) - repetitions(line.reference) - repetitions(line.text))


def is_copied(line: Line, text: str) -> bool:
    """The translation is the source, which the reference is not."""
    return line.source is not None and text.split() == line.source.split() != line.reference.split()


def too_long(line: Line, text: str) -> bool:
    return len(text) - len(line.reference) >= FEW_CHARACTERS and len(text) > LONG * len(line.reference)


def too_short(line: Line, text: str) -> bool:
    return len(line.reference) - len(text) >= FEW_CHARACTERS and len(text) < SHORT * len(line.reference)


FAULTS = (
    Fault("a number is lost", is_lost, lambda line: bool(line.numbers)),
    Fault("a number of its own", is_added),
    Fault("words repeated", is_repeated),
    Fault(f"under-translated: shorter than {SHORT:.0%} of the reference", too_short),
    Fault(f"over-translated: longer than {LONG:.0%} of the reference", too_long),
    Fault("only the case of a word is wrong", wrong_case),
    Fault("the source, untranslated", is_copied),
)


def casing(line: Line) -> int:
    capitals = [character.isupper() for character in line.text if character.isalpha()]
    if len(capitals) > 1 and all(capitals):
        return 3
    return 2 if any(capitals[1:]) else int(any(capitals))


def divisions(frequency: Counter[str] | None, of_source: bool) -> list[Division]:
    """The divisions of a test set; `frequency` counts the words of training, None where they are unknown."""
    side = "the source" if of_source else "the reference"

    def rarity(line: Line) -> int:
        counts = frequency or Counter[str]()
        rarest = min((counts[word] for word in words_of(line.text)), default=FREQUENCIES[-1])
        return sum(rarest >= bound for bound in FREQUENCIES)

    times = ["never", "1 to 9 times", "10 to 99 times", "100 times or more"]
    cases = ["none", "the first letter alone", "others too", "nothing but capitals"]
    lengths = [length_label(n) for n in range(MAX_BUCKETS)]
    return [
        Division(f"Words of {side}", lengths, lambda line: length_bucket(line.text)),
        *([] if frequency is None else [Division("Its rarest word was in training", times, rarity)]),
        Division(f"Numbers in {side}", ["none", "some"], lambda line: bool(NUMBER.search(line.text))),
        Division(f"Capitals in {side}", cases, casing),
    ]


def training_words(test: TestSet, training: str | None) -> tuple[Counter[str] | None, str]:
    """The counts of words, and a phrase that says where; None where nothing is known of the training text.

    `training` is a file of source lines; else those of the prepared corpus are decoded from subwords.
    """
    if training is not None:
        lines = list(islice(read_texts(training), MOST_LINES))
        where = f"the first {len(lines):,} lines of {training}"
    elif test.corpus is None or test.sources is None:
        return None, ""
    else:
        import numpy as np

        tokenizer, split = load_tokenizer(test.corpus.tokenizer_file), test.corpus.split("train")
        chosen = np.unique(np.linspace(0, len(split) - 1, min(len(split), MOST_LINES)).astype(np.int64))
        lines = [tokenizer.decode(ids, SOURCE) for ids in split.table[chosen].column("source").to_pylist()]
        where = f"{len(lines):,} of the {len(split):,} training sources of {test.corpus.folder}"
    return Counter(word for line in lines for word in words_of(line)), where
