"""What else could stand at a word of a translation: whole translations that begin alike and go on with another word.

Words are what blanks separate in the text of the translation.
"""

from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from nmt.config import UNK
from nmt.search import Hypothesis
from nmt.text import META, TARGET, Tokenizer
from nmt.translation import (
    JoinedText,
    Line,
    Outcome,
    RefusedLine,
    Segment,
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


@dataclass
class Best:
    """The best translation of a line: of its segments, each of which begins with `prefix`, in a language."""

    segments: list[Segment]
    parts: list[Hypothesis]
    prefix: list[int]
    language: str

    def joined(self, tokenizer: Tokenizer, part: Hypothesis | None = None, index: int = 0) -> JoinedText:
        """The translation of the line, perhaps with another one of the segment at `index`."""
        parts = [*self.parts[:index], part, *self.parts[index + 1 :]] if part else self.parts
        return join(tokenizer, self.segments, parts, self.prefix, self.language)


class Place(NamedTuple):
    """A place before a word of a translation: the tokens of the segment before it, and the token after it, if known."""

    segment: int
    word: int
    tokens: list[int]
    following: list[int]


def best_translation(translator: Translator, line: str) -> Best:
    """What the search finds for a line after all stages; RefusedLine as of `translate`."""
    ends = list[Line]()

    def end(lines: list[Line]) -> list[Outcome]:
        ends.extend(lines)
        return [RefusedLine(0, "") for _ in lines]

    [outcome] = translator.chain(end)([Line(line)])
    segments = translator.segmenter.segment(ends)[0] if ends else []
    problem = translator.segmenter.too_long(segments)
    if isinstance(outcome, RefusedLine) and (outcome.problem or problem):
        raise RefusedLine(0, outcome.problem or problem)
    [parts] = translator.hypotheses([segments], [False])
    return Best(segments, [row[0] for row in parts], translator.prefix, translator.limits.target)


def find_alternatives(translator: Translator, line: str, before: str, count: int) -> list[Alternative]:
    """Translations of a line that begin with `before` and continue with different words, at most `count`.

    They are ordered by the probability of the token that the word begins with. The translation that the search finds by
    itself is one of them where it begins so. There are none where the word was copied, or is one that every translation
    begins with. Raises RefusedLine as `translate` does.
    """
    engine, tokenizer = translator.engine, translator.tokenizer
    best, words = best_translation(translator, line), before.split()
    if (place := find_place(tokenizer, best, words)) is None:
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
        rest = best.joined(tokenizer, part, place.segment).text.split()[place.word :]
        if rest and len(alternatives) < count:
            whole = " ".join([*words, *rest])
            alternatives.setdefault(rest[0], Alternative(rest[0], float(np.exp(logp[token])), whole))
    return sorted(alternatives.values(), key=lambda alternative: -alternative.probability)


def find_place(tokenizer: Tokenizer, best: Best, words: list[str]) -> Place | None:
    """The place after these words, with which the best translation may begin or not.

    None where the next word was copied or belongs to the prefix.
    """
    joined = best.joined(tokenizer)
    own_words = joined.text.split()
    word = next((n for n, word in enumerate(words) if own_words[n : n + 1] != [word]), len(words))
    index = segment_of(tokenizer, best, joined, word)
    if index is None:
        return None
    if word < len(words):
        after = joined.first_words[index + 1] if index + 1 < len(best.segments) else len(own_words)
        further = words_after_change(words[word:], own_words, after)
        if further is None:  # the best translation of the segment does not begin so
            if best.segments[index].copied or (index and best.segments[index].glued):
                return None
            begun = tokenizer.encode([tokenizer.clean(" ".join(words[joined.first_words[index] :]))], TARGET)[0]
            return Place(index, len(words), [*(best.prefix if index else []), *begun], [])
        word = after + further
        index = segment_of(tokenizer, best, joined, word)
    if index is None or best.segments[index].copied:
        return None
    tokens, part = joined.tokens[index], best.parts[index].tokens
    owners = words_of_tokens(tokenizer, tokens) if text(tokenizer, tokens) else []
    local = word - joined.first_words[index]
    begin = len(part) - len(tokens) + next((n for n, owner in enumerate(owners) if owner >= local), len(tokens))
    return Place(index, word, part[:begin], part[begin : begin + 1]) if begin >= len(best.prefix) else None


def segment_of(tokenizer: Tokenizer, best: Best, joined: JoinedText, word: int) -> int | None:
    """The segment in which a word of the translation begins, the last one after the last word, or None."""
    for index, (segment, tokens, first) in enumerate(
        zip(best.segments, joined.tokens, joined.first_words, strict=True)
    ):
        count = len((segment.text if segment.copied else text(tokenizer, tokens)).split())
        if first <= word < first + count:
            return index
    return len(best.segments) - 1 if best.segments else None


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
