"""Lines with other names in place of their protected items, and their translations."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count, islice

from nmt.items import COPY, Items, Span, hidden, is_counted, readable, replaced
from nmt.plugins.protection.rewriting import Change, Places, Rewriting, rewritten
from nmt.text import clean, word_spans
from nmt.translation import Line, Translation

# Plane 16 is for private use, so text hardly contains these. `nmt.items` uses other ones for
# copies.
FIRST_MARK = 0x10F000
MARK_COUNT = 2048
MARKS = "".join(chr(FIRST_MARK + number) for number in range(MARK_COUNT))
"""Private-use characters at which a line is cut."""
CUT = "translated in parts, because placeholders or addresses were lost otherwise"
"""The note for a translation of a line that was cut at its items."""
HIDDEN = "\0"
"""Stands for each character of an item in the result of `hidden`."""
# Atomic and possessive, so that the time is proportional to the length of the line. The group is
# atomic, not possessive: before Python 3.11.5, possessive groups match wrongly
# (python/cpython#106052).
WITH_MARKS = re.compile(
    f"[^\\w\\s{HIDDEN}]*+{HIDDEN}+(?>(?:[^\\w\\s{HIDDEN}]*+{HIDDEN}+)*)[^\\w\\s{HIDDEN}]*+"
)
"""Hidden items with the punctuation between and next to them."""
# Shorter words may repeat by chance; see `repeats_copies`.
LONG_WORD = re.compile(r"[^\W\d_]{3,}")

NameOf = Callable[[int], str]
"""Makes the name of the n-th item of a line, counted from 1."""


class ProtectedLine:
    """A line with protected items."""

    def __init__(self, line: Line, stretches: list[Span]) -> None:
        self.line = line
        self.stretches = stretches
        self.items = Items(line.text, stretches)
        # Without letters or digits around the items, there is nothing to translate, so a model
        # would get stand-ins alone.
        rest, _ = replaced(line.text, stretches, [" "] * len(stretches))
        self.is_bare = not any(map(str.isalnum, rest))

    def is_known(self, characters: frozenset[str] | None) -> bool:
        """Whether the model knows all characters of the items, and may see the line as it is.

        No model knows the marks of copies.
        """
        items = "".join(self.items.texts)
        if COPY.search(items):
            return False
        return characters is None or characters.issuperset(clean(items))

    def masked(self, name_of: NameOf) -> "MaskedLine | None":
        """The line with stand-ins in place of its items; None if these would have no context."""
        if self.is_bare:
            return None
        return self.with_unused_names(map(name_of, count(1)))

    def cut(self) -> "MaskedLine | None":
        """The line with a mark to cut at in place of each item and the punctuation next to it.

        None if there are more items than marks.
        """
        text = hidden(self.line.text, self.stretches)
        stretches = [match.span() for match in WITH_MARKS.finditer(text)]
        return ProtectedLine(self.line, stretches).with_unused_names(MARKS)

    def with_unused_names(self, names: Iterable[str]) -> "MaskedLine | None":
        """The line with the first names that it does not contain; None if there are too few."""
        # A name that occurs in the line already could not be told from it in the translation.
        free = (name for name in names if name not in self.line.text)
        unused = list(islice(free, len(self.stretches)))
        if len(unused) < len(self.stretches):
            return None
        return MaskedLine(self, unused)

    def with_readable_copies(self, characters: frozenset[str] | None) -> "MaskedLine | None":
        """The line with the text of each copy in place of the copy; other items stay.

        For example, code in a document is a copy: marks that no model knows, with the code between
        them. The masked line has only the code, such as "Run ls." None if that would be no change,
        if the line consists of items alone, if a copy has no text, if `characters`, those that the
        model knows, are not enough, or if a translation would not show which words are the copies.
        """
        items = self.items.texts
        names = [readable(item, otherwise=HIDDEN) for item in items]
        if names == items or self.is_bare:
            return None
        all_names = "".join(names)
        has_copy_without_text = HIDDEN in all_names
        if has_copy_without_text:
            return None
        if characters is not None and not characters.issuperset(clean(all_names)):
            return None
        # Two copies with the same text could trade places unnoticed.
        if len(set(names)) < len(set(items)):
            return None
        masked = MaskedLine(self, names)
        # The text of a copy may also occur elsewhere in the line.
        has_name_elsewhere = masked.items.find(masked.text) != masked.names
        return None if has_name_elsewhere else masked


class MaskedLine:
    """A line with names in place of its items; `items` finds the names."""

    def __init__(self, original: ProtectedLine, names: Sequence[str]) -> None:
        self.original = original
        self.names = list(names)
        self.is_cut = names[0] in MARKS
        self.shown = list[str]()
        """The names that are the texts of copies."""
        for name, item in zip(names, original.items.texts, strict=True):
            if COPY.search(item) and name == readable(item):
                self.shown.append(name)
        self.text, places = replaced(original.line.text, original.stretches, names)
        self.items = Items(self.text, places)

    def unmasked(self, text: str) -> str:
        return self.items.replaced(text, self.original.items.texts)

    def with_all_items(self, translations: list[Translation]) -> list[Translation]:
        """The translations of the masked line in which the items can be restored, if the best can.

        Otherwise, an empty list.
        """
        # Alternatives need not have all items, but the best translation is what users get.
        best = self.restored(translations[0])
        if best is None:
            return []
        row = [best]
        for translation in translations[1:]:
            other = self.restored(translation)
            if other is not None:
                row.append(other)
        for translation in row:
            # The fallback asked for an alignment only to place lost names.
            if not self.original.line.align:
                translation.details = None
            if self.is_cut:
                if not self.original.is_bare:
                    translation.notes[CUT] = ""
                # A cut copies its mark, which is not a word that the model lacks.
                translation.copied = []
        return row

    def restored(self, translation: Translation) -> Translation | None:
        """A translation with items instead of names, including lost ones if possible."""
        return self.with_items(self.aligned(translation))

    def with_items(self, translation: Translation) -> Translation | None:
        """A translation with items instead of names, in its text and its details.

        None if the names are not intact.
        """
        text = translation.text
        names = self.items.find(text)
        # Also not twice: a repeated name would repeat its item.
        if sorted(names) != sorted(self.names):
            return None
        # Names are distinct even if their items are equal, so they show the order of the items.
        # Only placeholders without a number depend on their order; a translation may move all
        # others.
        is_in_order = self.counted(names) == self.counted(self.names)
        if not is_in_order or self.is_garbled(text):
            return None
        details = translation.details
        if details:
            details = rewritten(details, self.rewriting(text), self.rewriting(self.text))
        copied = [self.unmasked(copy) for copy in translation.copied]
        return replace(translation, text=self.unmasked(text), details=details, copied=copied)

    def counted(self, names: Iterable[str]) -> list[str]:
        """The names that stand for placeholders for the next argument."""
        items = dict(zip(self.names, self.original.items.texts, strict=True))
        return [name for name in names if is_counted(items[name])]

    def rewriting(self, text: str) -> Rewriting:
        """A masked text with its items restored."""
        changes = list[Change]()
        for match in self.items.pattern.finditer(text):
            # One change per name, so that details can follow each word to its new place.
            begin, end = match.span()
            changes.append(Change(begin, end, self.unmasked(match[0])))
        return Rewriting(text, changes)

    def is_garbled(self, text: str) -> bool:
        """Whether a part of a name is left over in a translation."""
        if self.is_cut:  # a mark is one character, so no part of it can be left over
            return False
        blanks = [" "] * len(self.names)
        source = self.items.replaced(self.text, blanks)
        target = self.items.replaced(text, blanks)
        if self.shown:
            return self.repeats_copies(source, target)
        # All stand-ins of a line begin alike, such as A1, A2. A model that garbles one may leave a
        # number, an unknown character, or the beginning with another number.
        beginning_of_name = re.split(r"\d", self.names[0])[0]
        parts = re.findall(rf"{re.escape(beginning_of_name)}\d", target)
        for character in target:
            if character.isdigit() or character == "\ufffd":
                parts.append(character)
        return any(part not in source for part in parts)

    def repeats_copies(self, source: str, target: str) -> bool:
        """Whether a translation has a word of a copy more often than its source, apart from names.

        Then, it may be a translation of the copy, or a part of it.
        """
        before = Counter(long_words(source))
        after = Counter(long_words(target))
        for name in self.shown:
            for word in long_words(name):
                if after[word] > before[word]:
                    return True
        return False

    def aligned(self, translation: Translation) -> Translation:
        """Put each lost name where the alignment indicates.

        It follows the word aligned to it, or replaces that word if it is aligned to nothing else.
        """
        details = translation.details
        present = self.items.find(translation.text)
        lost = [name for name in self.names if name not in present]
        # The texts of copies are words that a translation may contain anyway, so they cannot be
        # placed.
        if not details or not lost or self.shown:
            return translation
        words_in_text = self.words_with_names(translation.text)
        places = Places(translation.text, details.alignment, words_in_text)
        words_of = self.words_with_names(self.text)
        # One pass for all names, because a line may have thousands.
        changes = dict[Change, list[int]]()  # -> the source words of the name
        for name in lost:
            sources = words_of.get(name, [])
            change = places.change(name, sources)
            if change:
                changes[change] = sources
        rewriting = Rewriting(translation.text, changes)
        details = rewritten(details, rewriting, added=pairs_of_insertions(rewriting, changes))
        return replace(translation, text=rewriting.text, details=details)

    def words_with_names(self, text: str) -> dict[str, list[int]]:
        """The words of a masked text that contain each name."""
        words = defaultdict[str, list[int]](list)
        for number, (begin, end) in enumerate(word_spans(text)):
            for name in self.items.find(text[begin:end]):
                words[name].append(number)
        return words


def long_words(text: str) -> list[str]:
    return [word.casefold() for word in LONG_WORD.findall(text)]


def pairs_of_insertions(
    rewriting: Rewriting,
    changes: dict[Change, list[int]],
) -> Iterator[tuple[int, int]]:
    """Pairs of a source word and a target word for the names that replace nothing.

    `changes` maps each change of a translation to the source words of the name.
    """
    for change, (begin, end) in zip(sorted(changes), rewriting.added, strict=True):
        if change.begin < change.end:
            continue  # the name takes over the alignment of the words that it replaces
        for source in changes[change]:
            for target in rewriting.new_words.at(begin, end):
                yield source, target
