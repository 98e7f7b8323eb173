"""A translation memory: exact and similar entries for a text."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from nmt.plugins.memory.index import WordIndex
from nmt.text import canonical
from nmt.translation import MemoryEntry

MOST_SIMILAR = 3
"""The most similar entries to list for a text."""
SAME_WORDS = 0.99
"""The score of an entry with the same words, which differs in case, punctuation or signs."""


def without_controls(text: str) -> str:
    """A text without control characters, which no translation needs and which terminals obey.

    Noncharacters, which XML forbids, are left out, too; tabs and line breaks become blanks.
    """
    if text.isprintable():
        return text
    kept = []
    for character in text:
        is_noncharacter = ord(character) & 0xFFFE == 0xFFFE
        is_control = unicodedata.category(character) == "Cc" and not character.isspace()
        if not is_noncharacter and not is_control:
            kept.append(character)
    return "".join(kept)


class Ranked(NamedTuple):
    """An entry that is similar to a text."""

    entry: MemoryEntry
    words: float
    """The similarity of their words."""
    letters: float

    @property
    def rank(self) -> tuple[float, float]:
        """A key that sorts the most similar entry first."""
        # Words decide. Of entries with equally similar words, the one is first whose letters and
        # signs differ least.
        return -self.words, -self.letters


class Memory:
    """Entries by their sources; a later pair replaces an earlier one with the same source.

    Texts are the same if they are in Unicode's canonical form (NFC) and with single spaces. Pairs
    with an empty side are left out.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], minimum: float) -> None:
        self.targets: dict[str, str] = {}
        """Source -> target, both in canonical form."""
        self.empty = 0
        """The number of pairs that were left out."""
        for source, target in pairs:
            source = canonical(source)
            target = canonical(without_controls(target))
            if source and target:
                self.targets[source] = target
            else:
                self.empty += 1
        self.sources = list(self.targets)
        """The sources by their numbers in the index."""
        # Only one source is exactly similar to a text, and it needs no index.
        self.index = WordIndex(self.sources, minimum) if minimum < 1 else None

    def __len__(self) -> int:
        return len(self.targets)

    def exact(self, text: str) -> MemoryEntry | None:
        """The entry for a text in canonical form."""
        target = self.targets.get(text)
        return None if target is None else MemoryEntry(text, target, 1.0)

    def ranked(self, text: str) -> list[Ranked]:
        """The entries that are similar to a text in canonical form, the most similar first."""
        if self.index is None:
            return []
        entries = list[Ranked]()
        for number, words in self.index.similar(text):
            source = self.sources[number]
            score = words if source == text else min(words, SAME_WORDS)
            entry = MemoryEntry(source, self.targets[source], round(score, 4))
            letters = Levenshtein.normalized_similarity(text, source)
            entries.append(Ranked(entry, words, letters))
        # Stable: of equally similar entries, the first one of the memory is first.
        entries.sort(key=lambda ranked: ranked.rank)
        return entries[:MOST_SIMILAR]

    def similar(self, text: str) -> list[MemoryEntry]:
        return [ranked.entry for ranked in self.ranked(text)]


class Memories:
    """Several memories that are read as one; a later one replaces entries of an earlier one."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self.memories = memories

    def __len__(self) -> int:
        return sum(map(len, self.memories))

    def exact(self, text: str) -> MemoryEntry | None:
        """The entry for a text in canonical form."""
        for memory in reversed(self.memories):
            entry = memory.exact(text)
            if entry:
                return entry
        return None

    def similar(self, text: str) -> list[MemoryEntry]:
        """The entries that are similar to a text in canonical form, the most similar first."""
        # An entry of a later memory replaces the target, and keeps the place of the first one.
        by_source = dict[str, Ranked]()
        for memory in self.memories:
            for ranked in memory.ranked(text):
                by_source[ranked.entry.source] = ranked
        entries = sorted(by_source.values(), key=lambda ranked: ranked.rank)
        return [ranked.entry for ranked in entries[:MOST_SIMILAR]]
