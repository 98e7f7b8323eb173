"""A translation memory: exact and similar entries for a text."""

import unicodedata
from collections.abc import Iterable

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

    def similar(self, text: str) -> list[MemoryEntry]:
        """The entries that are similar to a text in canonical form, the most similar first."""
        if self.index is None:
            return []
        ranked = list[tuple[float, float, int]]()
        for number, score in self.index.similar(text):
            # Words decide. Of entries with equally similar words, the one is first whose letters
            # and signs differ least, then the first one of the memory.
            letters = Levenshtein.normalized_similarity(text, self.sources[number])
            ranked.append((-score, -letters, number))
        entries = list[MemoryEntry]()
        for negative_score, _, number in sorted(ranked)[:MOST_SIMILAR]:
            source = self.sources[number]
            score = -negative_score
            if source != text:
                score = min(score, SAME_WORDS)
            entries.append(MemoryEntry(source, self.targets[source], round(score, 4)))
        return entries
