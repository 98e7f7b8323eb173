"""What else could stand at a word of a translation: whole translations that begin alike and go on with another word.

Words are what blanks separate in the text of the translation.
"""

from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from nmt.config import UNK
from nmt.search import Engine, Hypothesis
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
"""Tokens that are tried for each alternative that is wanted: several may begin the same word."""


@dataclass
class Alternative:
    """A translation, the word in which it differs, and the probability of that word's first token."""

    word: str
    text: str
    probability: float


@dataclass
class Best:
    """The best translation of a line: of its segments, each of which begins with `prefix`."""

    segments: list[Segment]
    parts: list[Hypothesis]
    prefix: list[int]
    language: str = ""
    """That of the translation."""

    def joined(self, tokenizer: Tokenizer, part: Hypothesis | None = None, index: int = 0) -> JoinedText:
        """The translation of the line, perhaps with another one of the segment at `index`."""
        parts = [*self.parts[:index], part, *self.parts[index + 1 :]] if part else self.parts
        return join(tokenizer, self.segments, parts, self.prefix, self.language)


@dataclass
class Place:
    """A place before a word of a translation."""

    segment: int
    word: int
    """Index of the word in the text of the translation."""
    tokens: list[int]
    """Those of the segment's translation before the place."""
    following: list[int]
    """The token with which the best translation goes on, if it begins so."""


def find_alternatives(translator: Translator, line: str, before: str, count: int) -> list[Alternative]:
    """Translations of a line that begin with `before` and continue with different words, at most `count`.

    They are ordered by the probability of the token that the word begins with. The translation that the search finds by
    itself is one of them where it begins so. There are none where the word was copied, or is one that every translation
    begins with. Raises RefusedLine as `translate` does.
    """
    ends = list[Line]()

    def end(lines: list[Line]) -> list[Outcome]:
        ends.extend(lines)
        return [RefusedLine(0, "") for _ in lines]

    [outcome] = translator.chain(end)([Line(line)])
    segmenter, tokenizer = translator.segmenter, translator.tokenizer
    segments = segmenter.segment(ends)[0] if ends else []
    if isinstance(outcome, RefusedLine) and (problem := outcome.problem or segmenter.too_long(segments)):
        raise RefusedLine(0, problem)
    [parts] = translator.hypotheses([segments], [False])
    best = Best(segments, [row[0] for row in parts], translator.prefix, translator.limits.target)
    words = before.split()
    place = find_place(tokenizer, best, words)
    if place is None:
        return []
    longest = len(segments[place.segment].ids) + translator.engine.config.max_extra_length
    if len(place.tokens) >= min(longest, translator.limits.positions or longest):
        return []
    others = alternatives(translator.engine, tokenizer, best, place, count)
    return [replace(other, text=" ".join([*words, other.text])) for other in others]


def alternatives(engine: Engine, tokenizer: Tokenizer, best: Best, place: Place, count: int) -> list[Alternative]:
    """At most `count` translations that go on at a place with different words, of which the texts are those from there.

    They are ordered by their probability.
    """
    source, known = best.segments[place.segment].ids, best.parts[place.segment]
    logp = engine.next_token((source, place.tokens))
    begins = place.tokens == (best.prefix if place.segment else [])
    tried = first_tokens(tokenizer, logp, TRIED * count, begins)
    others = [token for token in tried if token not in place.following]
    completed = engine.search([source] * len(others), [[*place.tokens, token] for token in others])
    found: dict[str, Alternative] = {}
    for token, part in [(token, known) for token in place.following] + [
        (token, row[0]) for token, row in zip(others, completed, strict=True)
    ]:
        rest = best.joined(tokenizer, part, place.segment).text.split()[place.word :]
        if rest and len(found) < count:
            found.setdefault(rest[0], Alternative(rest[0], " ".join(rest), float(np.exp(logp[token]))))
    return sorted(found.values(), key=lambda alternative: -alternative.probability)


def first_tokens(tokenizer: Tokenizer, logp: NDArray[np.float32], count: int, begins: bool) -> list[int]:
    """The likeliest tokens that a word can begin with; any token can where the text `begins`."""
    likeliest = (int(token) for token in np.argsort(-logp, kind="stable") if token > UNK)
    words = (token for token in likeliest if begins or tokenizer.subwords([token])[0].startswith(META))
    return list(islice(words, count))


def find_place(tokenizer: Tokenizer, best: Best, words: list[str]) -> Place | None:
    """The place after these words, which the best translation may begin with or not.

    None where the next word was copied or belongs to the prefix.
    """
    joined = best.joined(tokenizer)
    known = joined.text.split()
    same = next((n for n, word in enumerate(words) if known[n : n + 1] != [word]), len(words))
    index = segment_of(tokenizer, best, joined, same)
    if index is None:
        return None
    word = same
    if same < len(words):
        after = joined.first_words[index + 1] if index + 1 < len(best.segments) else len(known)
        further = words_after_change(words[same:], known, after)
        if further is None:
            return changed_place(tokenizer, best, index, words, joined.first_words[index])
        word = after + further
        index = segment_of(tokenizer, best, joined, word)
    if index is None or best.segments[index].copied:
        return None
    tokens, part = joined.tokens[index], best.parts[index].tokens
    owners = words_of_tokens(tokenizer, tokens) if text(tokenizer, tokens) else []
    local = word - joined.first_words[index]
    begin = len(part) - len(tokens) + next((n for n, owner in enumerate(owners) if owner >= local), len(tokens))
    if begin < len(best.prefix):
        return None
    return Place(index, word, part[:begin], part[begin : begin + 1])


def segment_of(tokenizer: Tokenizer, best: Best, joined: JoinedText, word: int) -> int | None:
    """The segment in which a word of the translation begins, the last one after the last word, or None."""
    for index, (segment, tokens, first) in enumerate(
        zip(best.segments, joined.tokens, joined.first_words, strict=True)
    ):
        count = len((segment.text if segment.copied else text(tokenizer, tokens)).split())
        if first <= word < first + count:
            return index
    return len(best.segments) - 1 if best.segments else None


def words_after_change(changed: list[str], known: list[str], start: int) -> int | None:
    """How many words of the segment that begins with the known word `start` follow a changed one; None if none does.

    The changed one ends as it did, with a full stop or so.
    """
    end = known[start - 1][-1] if 0 < start < len(known) else ""
    if not end or end.isalnum():
        return None
    for count in range(len(changed) - 1, -1, -1):
        last = len(changed) - count
        if changed[last - 1].endswith(end) and changed[last:] == known[start : start + count]:
            return count
    return None


def changed_place(tokenizer: Tokenizer, best: Best, index: int, words: list[str], first: int) -> Place | None:
    """The place after words with which the best translation of a segment, from word `first` on, does not begin."""
    segment = best.segments[index]
    if segment.copied or (index and segment.glued):
        return None
    tokens = tokenizer.encode([tokenizer.clean(" ".join(words[first:]))], TARGET)[0]
    return Place(index, len(words), [*(best.prefix if index else []), *tokens], [])
