"""Translations that keep what is protected: placeholders, addresses and the like arrive exactly as they are.

A line is first translated as it is. Only where an item does not arrive, other ways are tried in turn: words that stand
for the items, where lost ones are put by the word alignment; and the line cut at its items. What even then does not
arrive exactly once is flagged.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, count, islice, pairwise
from typing import Any

from nmt.config import TranslatorOptions
from nmt.errors import NMTError
from nmt.text import Finder, Items, Stretch, Tokenizer, is_counted, replaced
from nmt.translation import Details, Limits, Line, Outcome, RefusedLine, Rest, Stage, Translation, with_refused

NOTES = {
    "cut": "cut at what is protected, as that did not arrive otherwise, and translated in parts",
    "protected": "what is protected did not arrive exactly once; look at it",
}
"""How a line came out: cut at its items, or with one that is not there exactly once, which is a flag, too."""
MARKS = frozenset(map(chr, range(0x10F000, 0x10F800)))
"""Characters for private use, at which a line is cut."""
WITH_MARKS = re.compile("[^\\w\\s\0]*+\0+(?:[^\\w\\s\0]*+\0+)*+[^\\w\\s\0]*+")
STAND_INS: tuple[Callable[[int], str], ...] = ("A{}".format, "[{}]".format)
"""Words that models copy well: docs/protect.md has how well."""


@dataclass
class HeldLine:
    """A line with something protected in it."""

    line: Line
    stretches: list[Stretch]

    @cached_property
    def items(self) -> Items:
        return Items(self.line.text, self.stretches)

    @property
    def is_bare(self) -> bool:
        """True if nothing else in it has a letter or digit."""
        return not any(map(str.isalnum, Masked(self, [" "] * len(self.stretches)).text))

    @property
    def wide(self) -> "HeldLine":
        """The line whose stretches also hold the marks beside them, such as quotes."""
        mask = Masked(self, ["\0" * (stretch.end - stretch.start) for stretch in self.stretches])
        return HeldLine(self.line, [Stretch(*match.span()) for match in WITH_MARKS.finditer(mask.text)])

    def masked(self, names: Iterable[str]) -> "Masked | None":
        """The line with names that are not in it; None if there are too few."""
        unused = list(islice((name for name in names if name not in self.line.text), len(self.stretches)))
        return Masked(self, unused) if len(unused) == len(self.stretches) else None


class Masked:
    """A line with names in place of its items."""

    def __init__(self, held: HeldLine, names: Sequence[str]) -> None:
        self.held, self.names = held, names
        self.text, self.places = replaced(held.line.text, held.stretches, names)

    @cached_property
    def items(self) -> Items:
        """The names, as items of the masked line."""
        return Items(self.text, self.places)

    def unmasked(self, text: str) -> str:
        return self.items.replaced(text, self.held.items.texts)

    def with_items(self, translation: Translation) -> Translation | None:
        """A translation of the masked line with the items, whose details are of the words of both; None if it fails."""
        text, names = translation.text, self.items.find(translation.text)
        items = dict(zip(self.names, self.held.items.texts, strict=True))
        # Of two equal items it is the names that tell in which order they are.
        counted = [[name for name in side if is_counted(items[name])] for side in (names, self.names)]
        if sorted(names) != sorted(self.names) or counted[0] != counted[1] or self.leaves(text):
            return None
        if details := translation.details:
            sources, targets = self.first_words(self.text), self.first_words(text)
            lengths = [after - first for first, after in pairwise(targets)]
            probabilities = zip(details.word_log_probabilities, lengths, strict=True)
            details = Details(
                details.tokens,
                details.token_log_probabilities,
                [(sources[source], targets[target]) for source, target in details.alignment],
                [probability for probability, length in probabilities for _ in range(length)],
            )
        copied = [self.unmasked(copy) for copy in translation.copied]
        return replace(translation, text=self.unmasked(text), details=details, copied=copied)

    def leaves(self, text: str) -> bool:
        """True for a digit, half a character, or a name's beginning, that is none of the source's: a garbled name."""
        source, target = (self.items.replaced(side, [" "] * len(self.names)) for side in (self.text, text))
        named = any(map(str.isdigit, self.names[0]))  # marks leave nothing
        stem = re.escape(re.split(r"\d", self.names[0])[0])
        remains = re.findall(rf"{stem}\d", target) if stem else []
        strange = [character for character in target if character.isdigit() or character == "\ufffd"] + remains
        return named and any(part not in source for part in strange)

    def first_words(self, text: str) -> list[int]:
        """The index of the first word that each word of a masked text becomes, and their number."""
        return [0, *accumulate(len(self.unmasked(word).split()) for word in text.split())]

    def aligned(self, translation: Translation) -> Translation:
        """A translation with each lost name where a word is aligned to it, if there is one.

        A word that is aligned to nothing else is taken for the name in another form, and replaced.
        """
        details, words, there = translation.details, translation.text.split(), self.items.find(translation.text)
        lost = [name for name in self.names if name not in there]
        if not details or not lost:
            return translation
        targets, sources, holders = (defaultdict[Any, list[int]](list) for _ in range(3))
        for source, target in details.alignment:
            targets[source].append(target)
            sources[target].append(source)
        for number, word in enumerate(self.text.split()):
            for name in self.items.find(word):
                holders[name].append(number)
        taken = {number for number, word in enumerate(words) if self.items.find(word)}
        behind = dict[int, list[int]]()
        """Of a word that a name was put behind, the source words of that name."""
        for name in lost:
            words_of_name = holders[name]
            if free := [target for source in words_of_name for target in targets[source] if target not in taken]:
                marks = re.fullmatch(r"(\W*).*?(\W*)", words[free[0]])
                assert marks
                if {*sources[free[0]]} <= {*words_of_name}:
                    words[free[0]] = f"{marks[1]}{name}{marks[2]}"
                else:
                    words[free[0]], behind[free[0]] = f"{words[free[0]]} {name}", words_of_name
                taken.add(free[0])
        first = [0, *accumulate(1 + (number in behind) for number in range(len(words)))]
        pairs = [(source, first[target]) for source, target in details.alignment]
        pairs += [(source, first[word] + 1) for word, holding in behind.items() for source in holding]
        scores = details.word_log_probabilities
        scores = [
            score_or_none
            for number, score in enumerate(scores)
            for score_or_none in [score, *[None] * (number in behind)]
        ]
        details = replace(details, alignment=sorted(pairs), word_log_probabilities=scores)
        return replace(translation, text=" ".join(words), details=details)


def by_masks(masks: list[Masked | None], rest: Rest, **changes: Any) -> list[list[Translation] | None]:
    """The translations of masked lines, with the items; None where the best one fails.

    Lost names are put by the word alignment, if it is there.
    """
    outcomes = iter(rest([replace(mask.held.line, text=mask.text, **changes) for mask in masks if mask]))
    results = list[list[Translation] | None]()
    for mask in masks:
        row = next(outcomes) if mask else None
        whole = [mask.with_items(mask.aligned(one)) for one in row] if mask and isinstance(row, list) else [None]
        results.append([translation for translation in whole if translation] if whole[0] else None)
        for translation in results[-1] or []:
            translation.details = translation.details if mask and mask.held.line.align else None
    return results


def by_cutting(lines: list[HeldLine], rest: Rest) -> list[list[Translation] | None]:
    """The lines cut at the items, and their parts translated each by itself."""
    results = by_masks([held.wide.masked(sorted(MARKS)) for held in lines], rest, cut_at=MARKS)
    for held, row in zip(lines, results, strict=True):
        for translation in row or []:
            translation.notes |= {} if held.is_bare else {"cut": NOTES["cut"]}
            translation.copied = []
    return results


class Protection(Stage):
    """Keeps what a finder finds; `characters` are those that the model knows, None: all."""

    name = "protected"

    def __init__(self, finder: Finder, characters: frozenset[str] | None) -> None:
        self.finder, self.characters = finder, characters

    def spans(self, line: str, translation: str) -> list[tuple[int, int]]:
        stretches = self.finder.stretches(line)
        return [item.span() for item in Items(line, stretches).pattern.finditer(translation)] if stretches else []

    def report(self, line: str, translations: list[Translation], counts: dict[str, int]) -> dict[str, Any]:
        kinds = [kind for kind in NOTES if kind in translations[0].notes]
        return {"protection": kinds[0]} if kinds else {}

    def ways(self, rest: Rest) -> Iterator[Callable[[list[HeldLine]], list[list[Translation] | None]]]:
        for name in STAND_INS:
            # Where the model does not know the words, it would copy them.
            if self.characters is None or self.characters.issuperset(name(1)):
                yield lambda lines, name=name: by_masks(  # type: ignore[misc]
                    [None if held.is_bare else held.masked(map(name, count(1))) for held in lines], rest, align=True
                )
        yield lambda lines: by_cutting(lines, rest)

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        checked, held = list[Line | RefusedLine](lines), dict[int, HeldLine]()
        for index, line in enumerate(lines):
            try:
                if stretches := self.finder.stretches(line.text):
                    held[index] = HeldLine(line, stretches)
            except NMTError as error:
                checked[index] = RefusedLine(index, str(error))
        results = with_refused(checked, rest)
        rows = {index: row for index in held if isinstance(row := results[index], list)}
        todo = [index for index, row in rows.items() if not held[index].items.arrive(row[0].text)]
        for way in self.ways(rest):
            for index, better in zip(todo, way([held[index] for index in todo]) if todo else (), strict=True):
                if better and held[index].items.arrive(better[0].text):
                    results[index] = rows[index] = better
            todo = [index for index in todo if not held[index].items.arrive(rows[index][0].text)]
        for index, row in rows.items():
            for translation in row:
                if not held[index].items.arrive(translation.text):
                    translation.notes.pop("cut", None)
                    translation.notes["protected"] = NOTES["protected"]
                    translation.flags.append("protected")
        return results


def protection(
    options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits, notice: Callable[[str], None]
) -> Protection | None:
    keys = options.plugins.get("protection")
    return Protection(Finder(keys.protect), limits.characters) if keys and keys.protect else None
