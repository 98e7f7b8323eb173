"""Translations that keep what is protected: placeholders, addresses and the like arrive exactly as they are.

A line is first translated as it is. Only where an item does not arrive, other ways are tried in turn: words that stand
for the items, where lost ones are put by the word alignment; and the line cut at its items. What even then does not
arrive exactly once is flagged.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, count, islice, pairwise
from typing import Any

from nmt.config import TranslatorOptions
from nmt.errors import NMTError
from nmt.plugins.protection.items import Finder, Items, Stretch, is_counted, replaced
from nmt.text import Tokenizer
from nmt.translation import Limits, Line, Outcome, RefusedLine, Rest, Stage, Translation, with_refused

# How a line came out: cut at its items, or with one that is not there exactly once, which is a flag, too.
NOTES = {
    "cut": "cut at what is protected, as that did not arrive otherwise, and translated in parts",
    "protected": "what is protected did not arrive exactly once; look at it",
}
MARKS = "".join(map(chr, range(0x10F000, 0x10F800)))  # for private use; a line is cut at them
WITH_MARKS = re.compile("[^\\w\\s\0]*+\0+(?:[^\\w\\s\0]*+\0+)*+[^\\w\\s\0]*+")
# Words that models copy well: docs/protect.md has how well.
STAND_INS: tuple[Callable[[int], str], ...] = ("A{}".format, "[{}]".format)


class HeldLine:
    """A line with something protected in it."""

    def __init__(self, line: Line, stretches: list[Stretch]) -> None:
        self.line, self.stretches, self.items = line, stretches, Items(line.text, stretches)

    @property
    def is_bare(self) -> bool:
        """True if nothing else in it has a letter or digit."""
        return not any(map(str.isalnum, replaced(self.line.text, self.stretches, [" "] * len(self.stretches))[0]))

    def masked(self, stand_in: Callable[[int], str] | None) -> "Masked | None":
        """The line with names that are not in it in place of its items; None if there are too few, or nothing else.

        Without a `stand_in`, the names are marks to cut at, in place of quotes and the like beside items, too.
        """
        held = self
        if stand_in is None:
            nulls = ["\0" * (stretch.end - stretch.start) for stretch in self.stretches]
            text, _ = replaced(self.line.text, self.stretches, nulls)
            held = HeldLine(self.line, [Stretch(*match.span()) for match in WITH_MARKS.finditer(text)])
        elif self.is_bare:
            return None
        names = (name for name in (map(stand_in, count(1)) if stand_in else MARKS) if name not in self.line.text)
        unused = list(islice(names, len(held.stretches)))
        return Masked(held, unused) if len(unused) == len(held.stretches) else None


class Masked:
    """A line with names in place of its items; `items` are the names, as items of the masked line."""

    def __init__(self, held: HeldLine, names: Sequence[str]) -> None:
        self.held, self.names, self.is_cut = held, names, names[0] in MARKS
        self.text, places = replaced(held.line.text, held.stretches, names)
        self.items = Items(self.text, places)

    def unmasked(self, text: str) -> str:
        return self.items.replaced(text, self.held.items.texts)

    def row(self, translations: list[Translation]) -> list[Translation]:
        """Translations of the masked line with the items, lost ones put by the alignment; none if the best fails."""
        with_items = [self.with_items(self.aligned(translation)) for translation in translations]
        row = [translation for translation in with_items if translation] if with_items[0] else []
        for translation in row:
            translation.details = translation.details if self.held.line.align else None
            if self.is_cut:
                translation.notes |= {} if self.held.is_bare else {"cut": NOTES["cut"]}
                translation.copied = []
        return row

    def with_items(self, translation: Translation) -> Translation | None:
        """A translation of the masked line with the items, whose details are of the words of both; None if it fails."""
        text, names = translation.text, self.items.find(translation.text)
        items = dict(zip(self.names, self.held.items.texts, strict=True))
        # Of two equal items it is the names that tell in which order they are.
        counted = [[name for name in side if is_counted(items[name])] for side in (names, self.names)]
        if sorted(names) != sorted(self.names) or counted[0] != counted[1] or self.leaves(text):
            return None
        if details := translation.details:
            # The first word that each word of a masked text becomes, and the number of words.
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

    def leaves(self, text: str) -> bool:
        """True for a digit, half a character, or a name's beginning, that is none of the source's: a garbled name."""
        if self.is_cut:  # marks leave nothing
            return False
        source, target = (self.items.replaced(side, [" "] * len(self.names)) for side in (self.text, text))
        stem = re.escape(re.split(r"\d", self.names[0])[0])
        parts = [character for character in target if character.isdigit() or character == "\ufffd"]
        return any(part not in source for part in parts + re.findall(rf"{stem}\d", target))

    def aligned(self, translation: Translation) -> Translation:
        """A translation with each lost name where a word is aligned to it, if there is one.

        A word that is aligned to nothing else is taken for the name in another form, and replaced.
        """
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
        behind = dict[int, list[int]]()  # of a word that a name was put behind, the source words of that name
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
    """Keeps what a finder finds; `characters` are those that the model knows, None: all."""

    def __init__(self, finder: Finder, characters: frozenset[str] | None) -> None:
        self.finder = finder
        # Where the model does not know the words, it would copy them.
        usable = [name for name in STAND_INS if characters is None or characters.issuperset(name(1))]
        self.ways = [*usable, None]

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        kinds = [kind for kind in NOTES if kind in best.notes]
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
                    translation.notes.pop("cut", None)
                    translation.notes["protected"] = NOTES["protected"]
                    translation.flags.append("protected")
        return results


def protection(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits, *others: Any) -> Protection | None:
    keys = options.plugins.get("protection")
    return Protection(Finder(keys.protect), limits.characters) if keys and keys.protect else None
