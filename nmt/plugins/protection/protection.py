"""Translations that keep what is protected: placeholders, addresses and the like arrive exactly as they are.

A line is first translated as it is, or with symbols for its items if the model was trained to copy these. Only where an
item does not arrive, other ways are tried in turn: words that stand for the items, where lost ones are put by the word
alignment; and the line cut at its items. What even then does not arrive exactly once is flagged.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, count, islice, pairwise
from typing import TYPE_CHECKING, Any

from nmt.errors import NMTError
from nmt.text import Finder, Items, Stretch, is_counted, replaced
from nmt.translation import Details, RefusedLine, Segmenter

if TYPE_CHECKING:
    from nmt.translation import Translation, Translator

CUT, LOST = "cut", "protected"
"""How a line came out, and a flag: cut at its items, or with one that is not there exactly once."""
MARKS = frozenset(map(chr, range(0x10F000, 0x10F800)))
"""Characters for private use, at which a line is cut."""
WITH_MARKS = re.compile("[^\\w\\s\0]*+\0+(?:[^\\w\\s\0]*+\0+)*+[^\\w\\s\0]*+")
STAND_INS: tuple[Callable[[int], str], ...] = ("A{}".format, "[{}]".format)
"""Words that models copy well: docs/protect.md has how well."""


class Known(frozenset[str]):
    """All characters that a model knows, but for the marks."""

    characters: frozenset[str] | None = None

    def __contains__(self, character: object) -> bool:
        return character not in MARKS and (self.characters is None or character in self.characters)

    def issuperset(self, text: Iterable[object]) -> bool:
        return all(character in self for character in text)


@dataclass
class Line:
    """A line with something protected in it."""

    tag: str
    text: str
    """The rest of it."""
    stretches: list[Stretch]

    @cached_property
    def items(self) -> Items:
        return Items(self.text, self.stretches)

    @property
    def is_bare(self) -> bool:
        """True if nothing else in it has a letter or digit."""
        return not any(map(str.isalnum, Masked(self, [" "] * len(self.stretches)).text))

    @property
    def wide(self) -> "Line":
        """The line whose stretches also hold the marks beside them, such as quotes."""
        mask = Masked(self, ["\0" * (stretch.end - stretch.start) for stretch in self.stretches])
        return replace(self, stretches=[Stretch(*found.span()) for found in WITH_MARKS.finditer(mask.text)])

    def masked(self, names: Iterable[str]) -> "Masked | None":
        """The line with names that are not in it; None if there are too few."""
        unused = list(islice((name for name in names if name not in self.text), len(self.stretches)))
        return Masked(self, unused) if len(unused) == len(self.stretches) else None


class Masked:
    """A line with names in place of its items."""

    def __init__(self, line: Line, names: Sequence[str]) -> None:
        self.line, self.names = line, names
        self.text, self.places = replaced(line.text, line.stretches, names)

    @cached_property
    def items(self) -> Items:
        """The names, as items of the masked line."""
        return Items(self.text, self.places)

    def unmasked(self, text: str) -> str:
        return self.items.replaced(text, self.line.items.texts)

    def with_items(self, translation: "Translation") -> "Translation | None":
        """A translation of the masked line with the items, whose details are of the words of both; None if it fails."""
        text, names = translation.text, self.items.found(translation.text)
        items = dict(zip(self.names, self.line.items.texts, strict=True))
        # Of two equal items it is the names that tell in which order they are.
        counted = [[name for name in own if is_counted(items[name])] for own in (names, self.names)]
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
        copied = [self.unmasked(each) for each in translation.copied]
        return replace(translation, text=self.unmasked(text), details=details, copied=copied)

    def leaves(self, text: str) -> bool:
        """True for a digit, half a character, or a name's beginning, that is none of the source's: a garbled name."""
        source, found = (self.items.replaced(each, [" "] * len(self.names)) for each in (self.text, text))
        named = any(map(str.isdigit, self.names[0]))  # marks leave nothing
        stem = re.escape(re.split(r"\d", self.names[0])[0])
        remains = re.findall(rf"{stem}\d", found) if stem else []
        strange = [each for each in found if each.isdigit() or each == "\ufffd"] + remains
        return named and any(each not in source for each in strange)

    def first_words(self, text: str) -> list[int]:
        """The index of the first word that each word of a masked text becomes, and their number."""
        return [0, *accumulate(len(self.unmasked(word).split()) for word in text.split())]

    def aligned(self, translation: "Translation") -> "Translation":
        """A translation with each lost name where a word is aligned to it, if there is one.

        A word that is aligned to nothing else is taken for the name in another form, and replaced.
        """
        details, words, there = translation.details, translation.text.split(), self.items.found(translation.text)
        lost = [name for name in self.names if name not in there]
        if not details or not lost:
            return translation
        targets, sources, holders = (defaultdict[Any, list[int]](list) for _ in range(3))
        for source, target in details.alignment:
            targets[source].append(target)
            sources[target].append(source)
        for number, word in enumerate(self.text.split()):
            for name in self.items.found(word):
                holders[name].append(number)
        taken = {number for number, word in enumerate(words) if self.items.found(word)}
        behind = dict[int, list[int]]()
        """Of a word that a name was put behind, the source words of that name."""
        for name in lost:
            own = holders[name]
            if free := [target for source in own for target in targets[source] if target not in taken]:
                marks = re.fullmatch(r"(\W*).*?(\W*)", words[free[0]])
                assert marks
                if {*sources[free[0]]} <= {*own}:
                    words[free[0]] = f"{marks[1]}{name}{marks[2]}"
                else:
                    words[free[0]], behind[free[0]] = f"{words[free[0]]} {name}", own
                taken.add(free[0])
        first = [0, *accumulate(1 + (number in behind) for number in range(len(words)))]
        pairs = [(source, first[target]) for source, target in details.alignment]
        pairs += [(source, first[word] + 1) for word, own in behind.items() for source in own]
        scores = details.word_log_probabilities
        scores = [each for number, score in enumerate(scores) for each in [score, *[None] * (number in behind)]]
        details = replace(details, alignment=sorted(pairs), word_log_probabilities=scores)
        return replace(translation, text=" ".join(words), details=details)


Found = list["Translation"]
Way = Callable[["Translator", list[Line]], list[Found | None]]
"""Translations of lines, best first; None where the best one fails."""


def by_masks(translator: "Translator", masks: list[Masked | None]) -> list[Found | None]:
    """The translations of masked lines, with the items; lost ones are put by the word alignment, if it is there."""
    texts = [mask.line.tag + mask.text for mask in masks if mask]
    found = iter(translator.translate_unprotected(texts))
    results = list[Found | None]()
    for mask in masks:
        row = next(found) if mask else []
        if not mask or isinstance(row, RefusedLine):
            results.append(None)
            continue
        whole = [mask.with_items(mask.aligned(each)) for each in row]
        results.append([each for each in whole if each] if whole[0] else None)
    return results


def by_names(name: Callable[[int], str]) -> Way:
    """The way with words that stand for the items."""

    def way(translator: "Translator", lines: list[Line]) -> list[Found | None]:
        known = translator.limits.characters
        if known is not None and not known.issuperset(name(1)):  # the line would be cut there
            return [None] * len(lines)
        aligning = copy(translator)
        aligning.scorer = translator.engine.token_scores
        results = by_masks(aligning, [line.masked(map(name, count(1))) for line in lines])
        if not translator.scorer:
            for each in (each for row in results if row for each in row):
                each.details = None
        return results

    return way


def by_cutting(translator: "Translator", lines: list[Line]) -> list[Found | None]:
    """The lines cut at the items, and their parts translated each by itself."""
    cutting, known = copy(translator), Known()
    known.characters = translator.limits.characters
    cutting.limits = replace(translator.limits, characters=known)
    cutting.segmenter = Segmenter(translator.tokenizer, cutting.limits, translator.segmenter.source_prefix)
    results = by_masks(cutting, [line.wide.masked(sorted(MARKS)) for line in lines])
    for line, row in zip(lines, results, strict=True):
        for each in row or []:
            each.protected = "" if line.is_bare else CUT
            each.copied = []
    return results


class Protection:
    """What is protected, and the ways by which it arrives."""

    def __init__(self, finder: Finder, symbols: Sequence[str] = ()) -> None:
        self.finder, self.symbols = finder, symbols

    def line(self, translator: "Translator", line: str) -> Line | None:
        """A line with something protected in it; None for any other."""
        tag = translator.tokenizer.leading_tag(line.lstrip())
        text = line.lstrip().removeprefix(tag) if tag else line
        stretches = self.finder.stretches(text)
        return Line(f"{tag} " if tag else "", text, stretches) if stretches else None

    def spans(self, translator: "Translator", line: str, translation: str) -> list[tuple[int, int]]:
        """Where the items of a line stand in its translation."""
        found = self.line(translator, line)
        return [item.span() for item in found.items.pattern.finditer(translation)] if found else []

    def translate_each(self, translator: "Translator", lines: list[str]) -> list[Found | RefusedLine]:
        """As `Translator.translate_each`."""
        held, refused = dict[int, Line](), dict[int, RefusedLine]()
        for index, text in enumerate(lines):
            try:
                if found := self.line(translator, text):
                    held[index] = found
            except NMTError as error:
                refused[index] = RefusedLine(index, str(error))
        masks = {index: line.masked(self.symbols) for index, line in held.items()} if self.symbols else {}
        texts = [mask.line.tag + mask.text if (mask := masks.get(i)) else line for i, line in enumerate(lines)]
        texts = ["" if index in refused else text for index, text in enumerate(texts)]
        results = translator.translate_unprotected(texts)
        todo = dict[int, Line]()
        for index, line in held.items():
            row, mask = results[index], masks.get(index)
            if not isinstance(row, RefusedLine):
                results[index] = row = [(mask and mask.with_items(each)) or each for each in row]
                if not line.items.arrive(row[0].text):
                    todo[index] = line
        for way in (*map(by_names, STAND_INS), by_cutting):
            chosen = [index for index, line in todo.items() if way is by_cutting or not line.is_bare]
            for index, new in zip(chosen, way(translator, [todo[i] for i in chosen]) if chosen else [], strict=True):
                if new and todo[index].items.arrive(new[0].text):
                    results[index] = new
                    del todo[index]
        for index, line in held.items():
            flag(line, results[index])
        return [refused.get(index, row) for index, row in enumerate(results)]


def flag(line: Line, row: Found | RefusedLine) -> None:
    """Flag the translations that do not hold every item exactly once."""
    for each in row if not isinstance(row, RefusedLine) else []:
        if not line.items.arrive(each.text):
            each.protected, each.flags = LOST, [*each.flags, LOST]
