"""What else could stand at a word of a translation: whole translations that begin alike and go on with another word.

Words are what blanks separate in the text of the translation.
"""

from itertools import islice
from typing import NamedTuple

import numpy as np

from nmt.config import UNK
from nmt.search import Hypothesis
from nmt.text import META, TARGET
from nmt.translation import (
    JoinedText,
    Line,
    Outcome,
    RefusedLine,
    Translator,
    join,
    text,
    words_of_tokens,
)

TRIED = 2
"""Tokens that are tried for each alternative: several may begin the same word."""


class Alternative(NamedTuple):
    """A word, the probability of its first token, and the whole translation with it."""

    word: str
    probability: float
    translation: str


class Place(NamedTuple):
    """A place before a word of a translation: the tokens of the segment before it, and the token after it, if known."""

    segment: int
    word: int
    tokens: list[int]
    following: list[int]


class BestTranslation:
    """What the search finds for a line after all stages; RefusedLine as of `translate`."""

    def __init__(self, translator: Translator, line: str) -> None:
        self.tokenizer, self.prefix, self.language = translator.tokenizer, translator.prefix, translator.limits.target
        ends = list[Line]()

        def end(lines: list[Line]) -> list[Outcome]:
            ends.extend(lines)
            return [RefusedLine(0, "") for _ in lines]

        [outcome] = translator.chain(end)([Line(line)])
        self.segments = translator.segmenter.segment(ends)[0] if ends else []
        problem = translator.segmenter.too_long(self.segments)
        if isinstance(outcome, RefusedLine) and (outcome.problem or problem):
            raise RefusedLine(0, outcome.problem or problem)
        [rows] = translator.hypotheses([self.segments], [False])
        self.parts = [row[0] for row in rows]
        self.joined = self.join(self.parts)
        self.words = self.joined.text.split()

    def join(self, parts: list[Hypothesis]) -> JoinedText:
        return join(self.tokenizer, self.segments, parts, self.prefix, self.language)

    def segment_of(self, word: int) -> int | None:
        """The segment in which a word of the translation begins, the last one after the last word, or None."""
        sides = zip(self.segments, self.joined.tokens, self.joined.first_words, strict=True)
        for index, (segment, tokens, first) in enumerate(sides):
            count = len((segment.text if segment.copied else text(self.tokenizer, tokens)).split())
            if first <= word < first + count:
                return index
        return len(self.segments) - 1 if self.segments else None

    def find_place(self, words: list[str]) -> Place | None:
        """The place after these words, with which the translation may begin or not.

        None where the next word was copied or belongs to the prefix.
        """
        first_words = self.joined.first_words
        word = next((n for n, word in enumerate(words) if self.words[n : n + 1] != [word]), len(words))
        index = self.segment_of(word)
        if index is not None and word < len(words):
            after = first_words[index + 1] if index + 1 < len(self.segments) else len(self.words)
            further = words_after_change(words[word:], self.words, after)
            if further is None:  # the translation of the segment does not begin so
                if self.segments[index].copied or (index and self.segments[index].glued):
                    return None
                changed = self.tokenizer.clean(" ".join(words[first_words[index] :]))
                begun = self.tokenizer.encode([changed], TARGET)[0]
                return Place(index, len(words), [*(self.prefix if index else []), *begun], [])
            word = after + further
            index = self.segment_of(word)
        if index is None or self.segments[index].copied:
            return None
        tokens, part = self.joined.tokens[index], self.parts[index].tokens
        owners = words_of_tokens(self.tokenizer, tokens) if text(self.tokenizer, tokens) else []
        local = word - first_words[index]
        begin = len(part) - len(tokens) + next((n for n, owner in enumerate(owners) if owner >= local), len(tokens))
        return Place(index, word, part[:begin], part[begin : begin + 1]) if begin >= len(self.prefix) else None


def find_alternatives(translator: Translator, line: str, before: str, count: int) -> list[Alternative]:
    """Translations of a line that begin with `before` and continue with different words, at most `count`.

    They are ordered by the probability of the token that the word begins with. The translation that the search finds by
    itself is one of them where it begins so. There are none where the word was copied, or is one that every translation
    begins with. Raises RefusedLine as `translate` does.
    """
    engine, tokenizer = translator.engine, translator.tokenizer
    best, words = BestTranslation(translator, line), before.split()
    if (place := best.find_place(words)) is None:
        return []
    source = best.segments[place.segment].ids
    longest = len(source) + engine.config.max_extra_length
    if len(place.tokens) >= min(longest, translator.limits.positions or longest):
        return []
    logp = engine.next_token((source, place.tokens))
    # Any token begins a word where the text begins, and elsewhere those with a blank before them.
    begins = place.tokens == (best.prefix if place.segment else [])
    likeliest = (int(token) for token in np.argsort(-logp, kind="stable") if token > UNK)
    tried = (token for token in likeliest if begins or tokenizer.subwords([token])[0].startswith(META))
    others = [token for token in islice(tried, TRIED * count) if token not in place.following]
    completed = engine.search([source] * len(others), [[*place.tokens, token] for token in others])
    rows = [(token, best.parts[place.segment]) for token in place.following]
    alternatives: dict[str, Alternative] = {}
    for token, part in rows + [(token, row[0]) for token, row in zip(others, completed, strict=True)]:
        parts = [*best.parts[: place.segment], part, *best.parts[place.segment + 1 :]]
        rest = best.join(parts).text.split()[place.word :]
        if rest and len(alternatives) < count:
            whole = " ".join([*words, *rest])
            alternatives.setdefault(rest[0], Alternative(rest[0], float(np.exp(logp[token])), whole))
    return sorted(alternatives.values(), key=lambda alternative: -alternative.probability)


def words_after_change(changed: list[str], words: list[str], start: int) -> int | None:
    """How many words of the segment that begins with word `start` follow a changed one; None if none does.

    The changed one ends as it did, with a full stop or so.
    """
    end = words[start - 1][-1] if 0 < start < len(words) else ""
    if not end or end.isalnum():
        return None
    for count in range(len(changed) - 1, -1, -1):
        last = len(changed) - count
        if changed[last - 1].endswith(end) and changed[last:] == words[start : start + count]:
            return count
    return None
