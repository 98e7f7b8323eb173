"""Protected items: placeholders, addresses and the like appear exactly as in the source.

A line is first translated unmodified, unless an item has characters that the model does not know;
the model sees what a document copies as text. If an item is lost, or a word of a copy is repeated,
two fallbacks are tried in turn. First, the items are replaced with stand-ins; any that are lost are
put where the word alignment indicates. Then, the line is cut at its items. If an item still does
not appear as often as in the source, the translation is flagged.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

from nmt.config import NMTError, TranslatorOptions
from nmt.items import COPIES, COPY, Finder, readable
from nmt.plugins.protection.masking import CUT, MARKS, MaskedLine, NameOf, ProtectedLine
from nmt.text import Tokenizer
from nmt.translation import Limits, Line, Outcome, RefusedLine, Rest, Stage, Translation

MISMATCH = "protected items do not match the source; check the translation"
"""The note for a translation that lacks items."""
NOTES = {"cut": CUT, "protected": MISMATCH}
"""Name in a report -> note."""
# In this order: A1 suits both messages and documents better than X1.
STAND_INS: tuple[NameOf, ...] = ("A{}".format, "X{}".format, "[{}]".format)
"""Names that models copy well: see docs/guides/glossaries.md."""
MARK_OF_COPY = re.compile(f"[{COPIES[0]}-{COPIES[-1]}]")


@dataclass(frozen=True)
class Fallback:
    """A way to translate a line whose items would otherwise be lost."""

    mask: Callable[[ProtectedLine], MaskedLine | None]
    changes: Mapping[str, Any]
    """Fields of the masked line that differ from those of the original one."""

    def line_of(self, mask: MaskedLine) -> Line:
        return replace(mask.original.line, text=mask.text, **self.changes)


class Protection(Stage):
    """Keeps the items that a finder locates.

    `characters` are the characters that the model knows, or None for all.
    """

    def __init__(self, finder: Finder, characters: frozenset[str] | None) -> None:
        self.finder = finder
        self.characters = characters
        self.fallbacks = fallbacks(characters)

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        for kind, note in NOTES.items():
            if note in best.notes:
                return {"protection": kind}
        return {}

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        # Each round passes all of its lines to the rest of the pipeline in one call, so that they
        # share batches.
        protected, results = self.find_items(lines)
        unmodified = dict[int, Line]()
        for index, line in enumerate(lines):
            is_refused = index in results
            # Models change or drop items with unknown characters, such as ½, and none knows the
            # marks of copies.
            must_mask = index in protected and not protected[index].is_known(self.characters)
            if not is_refused and not must_mask:
                unmodified[index] = line
        # Each step adds results or replaces those that lack items; refused lines stay refused.
        results |= outcomes(unmodified, rest)
        self.translate_masked(protected, results, rest)
        translate_without_masks(protected, results, rest)
        for index, protected_line in protected.items():
            outcome = results[index]
            # Only now, because a fallback may still have found a translation with all items.
            if not isinstance(outcome, RefusedLine):
                flag_lost_items(protected_line, outcome)
        return [results[index] for index in range(len(lines))]

    def find_items(self, lines: list[Line]) -> tuple[dict[int, ProtectedLine], dict[int, Outcome]]:
        """The lines with items, and the lines refused because of a user's pattern."""
        protected = dict[int, ProtectedLine]()
        refused = dict[int, Outcome]()
        for index, line in enumerate(lines):
            try:
                stretches = self.finder.stretches(line.text)
            # A user's pattern may take too long for one line; the other lines are translated.
            except NMTError as error:
                refused[index] = RefusedLine(index, str(error))
                continue
            if stretches:
                protected[index] = ProtectedLine(line, stretches)
        return protected, refused

    def translate_masked(
        self,
        protected: Mapping[int, ProtectedLine],
        results: dict[int, Outcome],
        rest: Rest,
    ) -> None:
        """Translate the lines whose translation lacks items with the fallbacks, one after another.

        `protected` are the lines with items, and `results` the outcomes so far, both by the line's
        index. Lines that must be masked have no result yet. A better translation replaces the
        result, and a translation that lacks items is kept only if there is none.
        """
        unsettled = list[int]()
        for index, line in protected.items():
            if not is_settled(line, results.get(index)):
                unsettled.append(index)
        # Each fallback only gets the lines that those before it could not settle.
        for fallback in self.fallbacks:
            lines = {index: protected[index] for index in unsettled}
            for index, translations in translated_with(fallback, lines, rest).items():
                if is_settled(protected[index], translations):
                    results[index] = translations
                    unsettled.remove(index)
                else:
                    # The first attempt stays, because it changes the line least.
                    results.setdefault(index, translations)


def translated_with(
    fallback: Fallback,
    lines: Mapping[int, ProtectedLine],
    rest: Rest,
) -> dict[int, list[Translation]]:
    """The translations of masked lines, best first, with their items restored, by index.

    Lines that cannot be masked, or whose items cannot be restored, are left out.
    """
    masks = dict[int, MaskedLine]()
    for index, line in lines.items():
        mask = fallback.mask(line)
        if mask:
            masks[index] = mask
    masked_lines = {index: fallback.line_of(mask) for index, mask in masks.items()}
    results = dict[int, list[Translation]]()
    for index, outcome in outcomes(masked_lines, rest).items():
        # Refused in this form, for example for its length; another fallback may still succeed.
        if isinstance(outcome, RefusedLine):
            continue
        translations = masks[index].with_all_items(outcome)
        if translations:
            results[index] = translations
    return results


def fallbacks(characters: frozenset[str] | None) -> list[Fallback]:
    """The fallbacks for a model that knows these characters, in the order in which to try them."""
    # Copies first: names in code help the model to translate the words around them.
    in_order = [Fallback(lambda line: line.with_readable_copies(characters), {})]
    for stand_in in STAND_INS:
        # Words with unknown characters are copied, so they cannot serve as stand-ins.
        if characters is None or characters.issuperset(stand_in(1)):
            # Models differ in which of the names they keep, so each is tried.
            in_order.append(masking_with(stand_in))
    # Cutting comes last: it keeps every item, but each piece lacks the context of the others.
    in_order.append(Fallback(ProtectedLine.cut, {"cut_at": frozenset(MARKS)}))
    return in_order


def masking_with(stand_in: NameOf) -> Fallback:
    # The alignment shows where to put a stand-in that the translation lost.
    return Fallback(lambda line: line.masked(stand_in), {"align": True})


def outcomes(lines: Mapping[int, Line], rest: Rest) -> dict[int, Outcome]:
    """Index of a line -> its outcome in the rest of the pipeline."""
    if not lines:
        return {}
    results = rest([*lines.values()])
    return dict(zip(lines, results, strict=True))


def translate_without_masks(
    protected: Mapping[int, ProtectedLine],
    results: dict[int, Outcome],
    rest: Rest,
) -> None:
    """Cut the lines that have no translation yet at their copies, and add the `results`.

    No fallback could mask them, such as a line with more items than there are marks.
    """
    lines = dict[int, Line]()
    for index, protected_line in protected.items():
        if index not in results:
            lines[index] = cut_at_copies(protected_line.line)
    for index, outcome in outcomes(lines, rest).items():
        if not isinstance(outcome, RefusedLine):
            restore_copies(outcome, protected[index].line)
        results[index] = outcome


def is_settled(line: ProtectedLine, outcome: Outcome | None) -> bool:
    """Whether a line is refused, or its best translation has all items; None is no translation."""
    if outcome is None:
        return False
    return isinstance(outcome, RefusedLine) or line.items.arrive(outcome[0].text)


def cut_at_copies(line: Line) -> Line:
    """The line with only the marks of its copies, any number of them, to be cut there."""
    return replace(line, text=COPY.sub(r"\1", line.text), cut_at=frozenset(COPIES))


def restore_copies(translations: Iterable[Translation], line: Line) -> None:
    """Complete the marks in translations of a line that was cut at them.

    They are in the same order as in the line.
    """
    copies = [copy[0] for copy in COPY.finditer(line.text)]
    for translation in translations:
        pieces = MARK_OF_COPY.split(translation.text)
        translation.text = ""
        for piece, copy in zip_longest(pieces, copies, fillvalue=""):
            translation.text += piece + copy


def flag_lost_items(line: ProtectedLine, translations: Iterable[Translation]) -> None:
    """Flag the translations that lack items, and hide the marks of documents from users."""
    for translation in translations:
        copied = list[str]()
        for text in translation.copied:
            is_more_than_marks = COPY.sub("", text).strip()
            if is_more_than_marks:
                copied.append(readable(text))
        # `copied` lists what was copied from the line; a bare mark means nothing to a user.
        translation.copied = copied
        if not line.items.arrive(translation.text):
            # The mismatch is the more serious of the two notes, and a report counts a line under
            # only one of them.
            translation.notes.pop(CUT, None)
            translation.notes[MISMATCH] = ""
            translation.flags.append("protected")


def protection(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits) -> Protection:
    config = options.plugins.get("protection")
    return Protection(Finder(config.protect if config else []), limits.characters)
