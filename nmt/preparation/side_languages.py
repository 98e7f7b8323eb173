"""The languages that the two sides of a corpus are really in."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nmt.preparation.places import Where, in_words
from nmt.text import (
    SOURCE,
    TARGET,
    Pair,
    are_close,
    is_identifiable,
    language_identifier,
    language_name,
    script,
    scripts_of_language,
    subtags,
)

GROUP_PAIRS = 20
"""Consecutive pairs whose language is identified together, because single lines are too short."""
LEAST_LETTERS = 150
"""With fewer letters in a group, its language is not identified."""
LEAST_SWAPPED = 0.05
"""The share of swapped groups that is reported. Chance hardly ever swaps both sides."""
MOSTLY_SWAPPED = 0.5
"""With this share of swapped groups, swapping the files corrects more pairs than it damages."""
MOST_CAPITALIZED = 0.7
"""With more capitalized words, a text may be a list of names. German text has up to 0.6."""
LEAST_SAME = 0.5
"""The share of groups in the language of the other side that is reported."""
LEAST_OTHER = 0.85
"""The same for a third language, which may also be guessed for text in no known language."""
WORD = re.compile(r"[^\W\d_]+")


def main_script(text: str) -> str:
    """The script of most letters of a text; "" if it has few letters."""
    counts = Counter(map(script, text))
    del counts[""]  # of blanks and signs
    if counts.total() < LEAST_LETTERS:
        return ""
    return max(counts, key=lambda name: counts[name])


def language_of_group(lines: Sequence[str], languages: tuple[str, str]) -> str:
    """The language of these lines: one of the two given, a third one, or "" if unknown."""
    text = "\n".join(lines)
    name = main_script(text)
    if not name:
        return ""
    # The script is certain and cheap. Only if both languages are written in it is the model needed.
    in_script = [code for code in languages if name in (scripts_of_language(code) or ())]
    if len(in_script) == 1:
        return in_script[0]
    if not in_script:
        return ""
    code = str(language_identifier().classify(text)[0])
    # A close language counts as the expected one: the model confuses them even in good corpora.
    for language in languages:
        if are_close(code, language):
            return language
    # The model mistakes every language that it does not know for another language.
    return code if all(is_identifiable(language) for language in in_script) else ""


def is_capitalized(text: str) -> bool:
    """Whether most words of a text begin with a capital, as in names, titles and warnings."""
    text_words: list[str] = WORD.findall(text)
    capitalized = sum(word[0].isupper() for word in text_words)
    return capitalized > MOST_CAPITALIZED * len(text_words)


def evidence(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    """What shows the language of lines whose translations are `others`."""
    if not is_capitalized("\n".join(lines)):
        return list(lines)
    # Names look like any language, and translations keep them. In capitals, so does all text.
    texts = []
    for line, other in zip(lines, others, strict=True):
        kept = set(WORD.findall(other.casefold()))
        texts.append(" ".join(word for word in WORD.findall(line.lower()) if word not in kept))
    return texts


@dataclass(frozen=True)
class Group:
    """Consecutive pairs, and the languages of their sides; "" if a language is unknown."""

    first: int
    """The number of the group's first pair."""
    languages: tuple[str, str]


class SideLanguages:
    """Counts groups of pairs by the languages that their sides are in."""

    def __init__(self, source: str, target: str) -> None:
        self.languages = (subtags(source).language, subtags(target).language)
        self.names = (language_name(source), language_name(target))
        self.groups: list[Group] = []
        # Dialects, scripts and close languages cannot be told apart.
        self.is_decidable = not are_close(*self.languages)

    def load_model(self) -> None:
        """Load the model if it may be needed, so that processes that fork later share its memory.

        Languages without a common script are told apart by their script.
        """
        source, target = (scripts_of_language(code) or frozenset() for code in self.languages)
        if self.is_decidable and source & target:
            language_identifier()

    def add(self, pairs: Sequence[Pair], first: int, most_groups: int) -> None:
        """Identify the languages of at most that many groups, spread over consecutive pairs.

        `first` is the number of the first pair.
        """
        if not self.is_decidable:
            return
        step = max(GROUP_PAIRS, math.ceil(len(pairs) / most_groups))
        for begin in range(0, len(pairs), step):
            # Lines that are the same on both sides have no language.
            group = [pair for pair in pairs[begin : begin + GROUP_PAIRS] if pair[0] != pair[1]]
            sources = [pair[0] for pair in group]
            targets = [pair[1] for pair in group]
            source = language_of_group(evidence(sources, targets), self.languages)
            target = language_of_group(evidence(targets, sources), self.languages)
            self.groups.append(Group(first + begin, (source, target)))

    def merge(self, later: "SideLanguages", shift: int) -> None:
        """Add the groups of later pairs, whose numbers are too low by `shift`."""
        for group in later.groups:
            self.groups.append(Group(group.first + shift, group.languages))

    @property
    def identified(self) -> list[Group]:
        """The groups whose languages are both known: a swap is visible only in both together."""
        return [group for group in self.groups if "" not in group.languages]

    @property
    def swapped(self) -> list[Group]:
        """The swapped groups; empty if they are too few to be reported."""
        identified = self.identified
        target_source = self.languages[::-1]
        swapped = [group for group in identified if group.languages == target_source]
        return swapped if is_frequent(swapped, identified, LEAST_SWAPPED) else []

    @property
    def is_filterable(self) -> bool:
        """Whether `data.filters.languages` can identify both languages in single lines."""
        return self.is_decidable and all(map(is_identifiable, self.languages))

    @property
    def is_mostly_swapped(self) -> bool:
        """Whether the files as a whole are swapped."""
        swapped = self.swapped
        return bool(swapped) and len(swapped) >= MOSTLY_SWAPPED * len(self.identified)

    def notices(self, where: Where = in_words) -> list[str]:
        """Notices about wrong languages of whole sides, at most one for each kind of problem."""
        identified = self.identified
        if self.is_mostly_swapped:
            # A swap explains all other notices of languages, so they are omitted.
            return [
                f"{self.swapped_in_words(where)}: swap the files or columns, or data.source and "
                f"data.target{self.advice_for_unswapped()}"
            ]
        of_sources = self.side_notices(SOURCE, identified, where)
        return [*of_sources, *self.side_notices(TARGET, identified, where)]

    def notice_of_swapped_part(self, where: Where, advice: str) -> str:
        """A notice about swapped sides of a smaller part of the pairs; empty if there is none."""
        if not self.swapped or self.is_mostly_swapped:
            return ""
        return f"{self.swapped_in_words(where)}: {advice}"

    def swapped_in_words(self, where: Where) -> str:
        return (
            f"{counted(self.swapped, self.identified, where)} have {self.names[1]} sources and "
            f"{self.names[0]} targets"
        )

    def advice_for_unswapped(self) -> str:
        """What to do about the other pairs if the files as a whole are swapped."""
        identified = self.identified
        unswapped = [group for group in identified if group.languages == self.languages]
        if not is_frequent(unswapped, identified, LEAST_SWAPPED):
            return ""
        share = len(unswapped) / len(identified)
        return f"; first swap or remove those in {share:.1%} of the samples, which are right"

    def side_notices(self, side: int, identified: Sequence[Group], where: Where) -> Iterator[str]:
        """Notices of the other languages in which a side often is."""
        groups_of_language: dict[str, list[Group]] = {}
        for group in identified:
            language = group.languages[side]
            if language != self.languages[side]:
                groups_of_language.setdefault(language, []).append(group)
        sides = "sources" if side == SOURCE else "targets"
        key = "data.source" if side == SOURCE else "data.target"
        for language, groups in groups_of_language.items():
            least_share = LEAST_SAME if language in self.languages else LEAST_OTHER
            if is_frequent(groups, identified, least_share):
                yield (
                    f"{counted(groups, identified, where)} have {sides} that look like "
                    f"{language_name(language)}, not {self.names[side]}: "
                    f"check the files and {key}"
                )


def counted(groups: Sequence[Group], identified: Sequence[Group], where: Where) -> str:
    """Such as "7 of 50 samples of 20 pairs (first: pair 81)"."""
    samples = f"{len(groups):,} of {len(identified):,} samples of {GROUP_PAIRS} pairs"
    return f"{samples} (first: {where(groups[0].first)})"


def is_frequent(groups: Sequence[Group], identified: Sequence[Group], least_share: float) -> bool:
    """Whether groups are a share of the identified ones, and more than one if there are several."""
    # One group may be a quotation in another language.
    least = min(2, len(identified))
    if len(groups) < max(1, least):
        return False
    return len(groups) >= least_share * len(identified)
