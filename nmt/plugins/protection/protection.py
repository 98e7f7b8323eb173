"""Translations that keep protected items: placeholders, addresses and the like appear exactly as in the source.

A line is first translated unmodified. If an item is lost, two fallbacks are tried in turn. First, the items are
replaced with stand-ins; any that are lost are put where the word alignment indicates. Then, the line is cut at its
items. If an item still does not appear as often as in the source, the translation is flagged.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, count, islice, pairwise
from typing import Any

from nmt.config import NMTError, TranslatorOptions
from nmt.plugins.protection.items import Finder, Items, Span, hidden, is_counted, replaced
from nmt.text import Tokenizer
from nmt.translation import Limits, Line, Outcome, RefusedLine, Rest, Stage, Translation, with_refused

NOTES = {
    "cut": "cut at protected items, which were lost otherwise, and translated in parts",
    "protected": "protected items do not match the source; check the translation",
}
MARKS = "".join(map(chr, range(0x10F000, 0x10F800)))  # private-use characters at which a line is cut
WITH_MARKS = re.compile("[^\\w\\s\0]*+\0+(?:[^\\w\\s\0]*+\0+)*+[^\\w\\s\0]*+")
STAND_INS: tuple[Callable[[int], str], ...] = (
    "A{}".format,
    "[{}]".format,
)  # models copy them well: docs/guides/glossaries.md


class HeldLine:
    """A line with protected items."""

    def __init__(self, line: Line, stretches: list[Span]) -> None:
        self.line, self.stretches, self.items = line, stretches, Items(line.text, stretches)
        rest, _ = replaced(line.text, stretches, [" "] * len(stretches))
        self.is_bare = not any(map(str.isalnum, rest))

    def masked(self, stand_in: Callable[[int], str] | None) -> "Masked | None":
        """The line with new names in place of its items; None if names run out or stand-ins would have no context.

        Without `stand_in`, the names are marks to cut at, which also replace the punctuation next to items.
        """
        held = self
        if stand_in is None:
            text = hidden(self.line.text, self.stretches)
            held = HeldLine(self.line, [match.span() for match in WITH_MARKS.finditer(text)])
        elif self.is_bare:
            return None
        names = (name for name in (map(stand_in, count(1)) if stand_in else MARKS) if name not in self.line.text)
        unused = list(islice(names, len(held.stretches)))
        return Masked(held, unused) if len(unused) == len(held.stretches) else None


class Masked:
    """A line with names in place of its items; `items` finds the names."""

    def __init__(self, held: HeldLine, names: Sequence[str]) -> None:
        self.held, self.names, self.is_cut = held, names, names[0] in MARKS
        self.text, places = replaced(held.line.text, held.stretches, names)
        self.items = Items(self.text, places)

    def unmasked(self, text: str) -> str:
        return self.items.replaced(text, self.held.items.texts)

    def row(self, translations: list[Translation]) -> list[Translation]:
        """Translations of the masked line with the items restored; empty if that fails for the best one."""
        with_items = [self.with_items(self.aligned(translation)) for translation in translations]
        row = [translation for translation in with_items if translation] if with_items[0] else []
        for translation in row:
            translation.details = translation.details if self.held.line.align else None
            if self.is_cut:
                translation.notes |= {} if self.held.is_bare else {NOTES["cut"]: ""}
                translation.copied = []
        return row

    def with_items(self, translation: Translation) -> Translation | None:
        """A translation with items instead of names, in its text and its details; None if the names are not intact."""
        text, names = translation.text, self.items.find(translation.text)
        items = dict(zip(self.names, self.held.items.texts, strict=True))
        # Names are distinct even if their items are equal, so they show the order of the items.
        counted = [[name for name in side if is_counted(items[name])] for side in (names, self.names)]
        if sorted(names) != sorted(self.names) or counted[0] != counted[1] or self.is_garbled(text):
            return None
        if details := translation.details:
            # For each word of the masked text, the index of its first word in the unmasked text.
            sources, targets = (
                [0, *accumulate(len(self.unmasked(word).split()) for word in side.split())]
                for side in (self.text, text)
            )
            lengths = [after - first for first, after in pairwise(targets)]
            probabilities = zip(details.word_log_probabilities, lengths, strict=True)
            details = replace(
                details,
                alignment=[(sources[source], targets[target]) for source, target in details.alignment],
                word_log_probabilities=[probability for probability, length in probabilities for _ in range(length)],
            )
        copied = [self.unmasked(copy) for copy in translation.copied]
        return replace(translation, text=self.unmasked(text), details=details, copied=copied)

    def is_garbled(self, text: str) -> bool:
        """True if part of a name is left over: a digit, an invalid character, or the beginning of a name."""
        if self.is_cut:  # a mark is one character, so no part of it can be left over
            return False
        source, target = (self.items.replaced(side, [" "] * len(self.names)) for side in (self.text, text))
        stem = re.escape(re.split(r"\d", self.names[0])[0])
        parts = [character for character in target if character.isdigit() or character == "\ufffd"]
        return any(part not in source for part in parts + re.findall(rf"{stem}\d", target))

    def aligned(self, translation: Translation) -> Translation:
        """Put each lost name after the word aligned to it, or replace that word if it is aligned to nothing else."""
        details, words, arrived = translation.details, translation.text.split(), self.items.find(translation.text)
        lost = [name for name in self.names if name not in arrived]
        if not details or not lost:
            return translation
        targets, sources, words_of = (defaultdict[Any, list[int]](list) for _ in range(3))
        for source, target in details.alignment:
            targets[source].append(target)
            sources[target].append(source)
        for number, word in enumerate(self.text.split()):
            for name in self.items.find(word):
                words_of[name].append(number)
        taken = {number for number, word in enumerate(words) if self.items.find(word)}
        behind = dict[int, list[int]]()  # word followed by a restored name -> the name's source words
        for name in lost:
            place = next((target for word in words_of[name] for target in targets[word] if target not in taken), None)
            if place is None:
                continue
            if {*sources[place]} <= {*words_of[name]}:
                marks = re.fullmatch(r"(\W*).*?(\W*)", words[place])
                assert marks
                words[place] = f"{marks[1]}{name}{marks[2]}"
            else:
                words[place], behind[place] = f"{words[place]} {name}", words_of[name]
            taken.add(place)
        first = [0, *accumulate(1 + (number in behind) for number in range(len(words)))]
        pairs = [(source, first[target]) for source, target in details.alignment]
        pairs += [(source, first[word] + 1) for word, of_name in behind.items() for source in of_name]
        scores = list[float | None]()
        for number, score in enumerate(details.word_log_probabilities):
            scores += [score, None] if number in behind else [score]
        details = replace(details, alignment=sorted(pairs), word_log_probabilities=scores)
        return replace(translation, text=" ".join(words), details=details)


class Protection(Stage):
    """Keeps the items that a finder locates; `characters` are the characters that the model knows, or None for all."""

    def __init__(self, finder: Finder, characters: frozenset[str] | None) -> None:
        self.finder = finder
        # Words with unknown characters are copied, so they cannot serve as stand-ins.
        usable = [name for name in STAND_INS if characters is None or characters.issuperset(name(1))]
        self.ways = [*usable, None]

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        kinds = [kind for kind, note in NOTES.items() if note in best.notes]
        return {"protection": kinds[0]} if kinds else {}

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
        lost = [index for index, row in rows.items() if not held[index].items.arrive(row[0].text)]
        for way in self.ways:
            masks = [(index, mask) for index in lost if (mask := held[index].masked(way))]
            changes: dict[str, Any] = {"align": True} if way else {"cut_at": frozenset(MARKS)}
            outcomes = rest([replace(mask.held.line, text=mask.text, **changes) for _, mask in masks]) if masks else []
            for (index, mask), outcome in zip(masks, outcomes, strict=True):
                row = mask.row(outcome) if isinstance(outcome, list) else []
                if row and held[index].items.arrive(row[0].text):
                    results[index] = rows[index] = row
                    lost.remove(index)
        for index, row in rows.items():
            for translation in row:
                if not held[index].items.arrive(translation.text):
                    translation.notes.pop(NOTES["cut"], None)
                    translation.notes[NOTES["protected"]] = ""
                    translation.flags.append("protected")
        return results


def protection(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits) -> Protection:
    return Protection(Finder(options.plugins["protection"].protect), limits.characters)
