"""Protected items: placeholders, addresses and the like appear exactly as in the source.

A line is first translated unmodified, unless an item has characters that the model does not know; the model sees what
a document copies as text. If an item is lost, or a word of a copy is repeated, two fallbacks are tried in turn. First,
the items are replaced with stand-ins; any that are lost are put where the word alignment indicates. Then, the line is
cut at its items. If an item still does not appear as often as in the source, the translation is flagged.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, islice, zip_longest
from typing import Any

from nmt.config import NMTError, TranslatorOptions
from nmt.items import (
    COPIES,
    COPY,
    Finder,
    Items,
    Span,
    hidden,
    is_counted,
    readable,
    replaced,
)
from nmt.plugins.protection.rewriting import Change, Places, Rewriting, rewritten
from nmt.text import Tokenizer, clean, word_spans
from nmt.translation import Limits, Line, Outcome, RefusedLine, Rest, Stage, Translation

NOTES = {
    "cut": "translated in parts, because placeholders or addresses were lost otherwise",
    "protected": "protected items do not match the source; check the translation",
}
MARKS = "".join(
    map(chr, range(0x10F000, 0x10F800))
)  # private-use characters at which a line is cut
LONG_WORD = re.compile(r"[^\W\d_]{3,}")
WITH_MARKS = re.compile("[^\\w\\s\0]*+\0+(?>(?:[^\\w\\s\0]*+\0+)*)[^\\w\\s\0]*+")
STAND_INS: tuple[Callable[[int], str], ...] = (
    "A{}".format,
    "X{}".format,
    "[{}]".format,
)  # models copy them well: docs/guides/glossaries.md


class HeldLine:
    """A line with protected items."""

    def __init__(self, line: Line, stretches: list[Span]) -> None:
        self.line, self.stretches, self.items = line, stretches, Items(line.text, stretches)
        rest, _ = replaced(line.text, stretches, [" "] * len(stretches))
        self.is_bare = not any(map(str.isalnum, rest))

    def is_known(self, characters: frozenset[str] | None) -> bool:
        """True if the model knows all characters of the items, so that it can translate the line unmodified."""
        items = "".join(self.items.texts)
        if COPY.search(items):
            return False
        return characters is None or characters.issuperset(clean(items))

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
        names = (
            name
            for name in (map(stand_in, count(1)) if stand_in else MARKS)
            if name not in self.line.text
        )
        unused = list(islice(names, len(held.stretches)))
        return Masked(held, unused) if len(unused) == len(held.stretches) else None

    def with_texts(self, characters: frozenset[str] | None) -> "Masked | None":
        """The line with the texts of its copies in their place; None if the model would not see or could confuse them.

        Other items stay as they are.
        """
        items = dict(
            zip(self.items.texts, (readable(text, "\0") for text in self.items.texts), strict=True)
        )
        texts = "".join(items.values())
        is_known = characters is None or characters.issuperset(clean(texts))
        is_distinct = len({*items.values()}) == len(items)
        if (
            [*items] == [*items.values()]
            or self.is_bare
            or "\0" in texts
            or not (is_known and is_distinct)
        ):
            return None
        masked = Masked(self, [items[text] for text in self.items.texts])
        # The text of a copy may also occur elsewhere in the line.
        return masked if masked.items.find(masked.text) == masked.names else None


class Masked:
    """A line with names in place of its items; `items` finds the names."""

    def __init__(self, held: HeldLine, names: Sequence[str]) -> None:
        self.held, self.names, self.is_cut = held, list(names), names[0] in MARKS
        pairs = zip(names, held.items.texts, strict=True)
        self.shown = [name for name, item in pairs if COPY.search(item) and name == readable(item)]
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
        counted = [
            [name for name in side if is_counted(items[name])] for side in (names, self.names)
        ]
        if sorted(names) != sorted(self.names) or counted[0] != counted[1] or self.is_garbled(text):
            return None
        details = translation.details
        if details:
            details = rewritten(details, self.rewriting(text), self.rewriting(self.text))
        copied = [self.unmasked(copy) for copy in translation.copied]
        return replace(translation, text=self.unmasked(text), details=details, copied=copied)

    def rewriting(self, text: str) -> Rewriting:
        """A masked text with its items restored."""
        matches = self.items.pattern.finditer(text)
        return Rewriting(
            text, (Change(*match.span(), self.unmasked(match[0])) for match in matches)
        )

    def is_garbled(self, text: str) -> bool:
        """True if part of a name is left over: a digit, an invalid character, or the beginning of a name.

        If the names are the texts of copies, a repeated word is left over.
        """
        if self.is_cut:  # a mark is one character, so no part of it can be left over
            return False
        source, target = (
            self.items.replaced(side, [" "] * len(self.names)) for side in (self.text, text)
        )
        if self.shown:
            words = {word.casefold() for name in self.shown for word in LONG_WORD.findall(name)}
            counts = (
                Counter(map(str.casefold, LONG_WORD.findall(side))) for side in (source, target)
            )
            before, after = counts
            return any(after[word] > before[word] for word in words)
        stem = re.escape(re.split(r"\d", self.names[0])[0])
        parts = [character for character in target if character.isdigit() or character == "\ufffd"]
        return any(part not in source for part in parts + re.findall(rf"{stem}\d", target))

    def aligned(self, translation: Translation) -> Translation:
        """Put each lost name after the word aligned to it, or replace that word if it is aligned to nothing else."""
        details = translation.details
        arrived = self.items.find(translation.text)
        lost = [name for name in self.names if name not in arrived]
        if not details or not lost or self.shown:
            return translation
        places = Places(
            translation.text, details.alignment, self.words_with_names(translation.text)
        )
        words_of = self.words_with_names(self.text)
        changes = dict[Change, list[int]]()  # -> the source words of the name
        for name in lost:
            sources = words_of.get(name, [])
            if change := places.change(name, sources):
                changes[change] = sources
        rewriting = Rewriting(translation.text, changes)
        added = [
            (source, target)
            for change, (begin, end) in zip(sorted(changes), rewriting.added, strict=True)
            for source in changes[change]
            for target in rewriting.new_words.at(begin, end)
            if change.begin == change.end
        ]
        details = rewritten(details, rewriting, added=added)
        return replace(translation, text=rewriting.text, details=details)

    def words_with_names(self, text: str) -> dict[str, list[int]]:
        """The words of a masked text that contain each name."""
        words = defaultdict[str, list[int]](list)
        for number, (begin, end) in enumerate(word_spans(text)):
            for name in self.items.find(text[begin:end]):
                words[name].append(number)
        return words


def cut_at_copies(line: Line) -> Line:
    """The line with only the marks of its copies, at which it is cut: possible for any number of them."""
    return replace(line, text=COPY.sub(r"\1", line.text), cut_at=frozenset(COPIES))


def with_copies(translations: list[Translation], line: Line) -> list[Translation]:
    """Complete the marks in translations of a line that was cut at them, so that they are in the same order."""
    for translation in translations:
        copies = [copy[0] for copy in COPY.finditer(line.text)]
        pieces = re.split(f"[{COPIES[0]}-{COPIES[-1]}]", translation.text)
        translation.text = "".join(map("".join, zip_longest(pieces, copies, fillvalue="")))
    return translations


class Protection(Stage):
    """Keeps the items that a finder locates; `characters` are the characters that the model knows, or None for all."""

    def __init__(self, finder: Finder, characters: frozenset[str] | None) -> None:
        self.finder, self.characters = finder, characters
        # Words with unknown characters are copied, so they cannot serve as stand-ins.
        usable = [
            name for name in STAND_INS if characters is None or characters.issuperset(name(1))
        ]
        self.ways: list[tuple[Callable[[HeldLine], Masked | None], dict[str, Any]]] = [
            (lambda held: held.with_texts(characters), {}),
            *((partial(HeldLine.masked, stand_in=name), {"align": True}) for name in usable),
            (partial(HeldLine.masked, stand_in=None), {"cut_at": frozenset(MARKS)}),
        ]

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        kinds = [kind for kind, note in NOTES.items() if note in best.notes]
        return {"protection": kinds[0]} if kinds else {}

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        results, held = dict[int, Outcome](), dict[int, HeldLine]()
        for index, line in enumerate(lines):
            try:
                if stretches := self.finder.stretches(line.text):
                    held[index] = HeldLine(line, stretches)
            except NMTError as error:
                results[index] = RefusedLine(index, str(error))

        masked_first = [index for index, line in held.items() if not line.is_known(self.characters)]
        unmodified = [
            index for index in range(len(lines)) if index not in {*results, *masked_first}
        ]
        results |= self.outcomes(unmodified, [lines[index] for index in unmodified], rest)
        waiting = [index for index in held if not self.is_settled(held[index], results.get(index))]
        self.translate_masked(waiting, held, results, rest)

        left = [index for index in masked_first if index not in results]
        for index, outcome in self.outcomes(
            left, [cut_at_copies(lines[index]) for index in left], rest
        ).items():
            results[index] = (
                outcome if isinstance(outcome, RefusedLine) else with_copies(outcome, lines[index])
            )

        for index, held_line in held.items():
            outcome = results[index]
            self.describe(held_line, outcome if isinstance(outcome, list) else [])
        return [results[index] for index in range(len(lines))]

    def outcomes(self, indices: list[int], lines: list[Line], rest: Rest) -> dict[int, Outcome]:
        """The outcome of each line, by its index."""
        return dict(zip(indices, rest(lines) if lines else [], strict=True))

    def is_settled(self, held: HeldLine, outcome: Outcome | None) -> bool:
        """True if a line is refused, or if its best translation has all items."""
        return isinstance(outcome, RefusedLine) or (
            outcome is not None and held.items.arrive(outcome[0].text)
        )

    def translate_masked(
        self, waiting: list[int], held: dict[int, HeldLine], results: dict[int, Outcome], rest: Rest
    ) -> None:
        """Translate lines with stand-ins or cuts in place of their items, and add their translations to `results`.

        A translation that lacks items is kept only if the line has no other.
        """
        for mask_of, changes in self.ways:
            masks = {index: mask for index in waiting if (mask := mask_of(held[index]))}
            lines = [replace(mask.held.line, text=mask.text, **changes) for mask in masks.values()]
            for index, outcome in self.outcomes([*masks], lines, rest).items():
                row = masks[index].row(outcome) if isinstance(outcome, list) else []
                is_settled = bool(row) and self.is_settled(held[index], row)
                if row and (is_settled or index not in results):
                    results[index] = row
                if is_settled:
                    waiting.remove(index)

    def describe(self, held: HeldLine, row: list[Translation]) -> None:
        """Flag the translations that lack items, and keep the marks of documents out of what users are told."""
        for translation in row:
            not_marks = (text for text in translation.copied if COPY.sub("", text).strip())
            translation.copied = [*map(readable, not_marks)]
            if not held.items.arrive(translation.text):
                translation.notes.pop(NOTES["cut"], None)
                translation.notes[NOTES["protected"]] = ""
                translation.flags.append("protected")


def protection(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits) -> Protection:
    config = options.plugins.get("protection")
    return Protection(Finder(config.protect if config else []), limits.characters)
