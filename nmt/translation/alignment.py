"""Describe the translation of a line by the scores of its tokens and words, and a word alignment.

Tokens are located as spans of characters in the raw line and in the text of the translation. Words
are the spans that `nmt.text.word_spans` returns. In a script without blanks, a token may cover
several words; in any script, several tokens may cover one word.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmt.config import EOS
from nmt.search import Hypothesis
from nmt.text import (
    META,
    SOURCE,
    SYMBOLS,
    TARGET,
    WITHOUT_BLANKS,
    WORD_CHARACTER,
    Tokenizer,
    origins,
    word_spans,
)
from nmt.translation.joining import JoinedText
from nmt.translation.segments import Segment, Span

UNDECODED = "\ufffd"
"""What decoding returns for a byte without the others of its character."""
FAR = 64
"""How many characters the vocabulary may lack, or spell in another way, between two tokens."""


@dataclass
class PairScore:
    """The tokens of a translation, and the log probabilities of these and of the end symbol."""

    tokens: list[str]
    token_log_probabilities: list[float]

    @property
    def log_probability(self) -> float:
        return sum(self.token_log_probabilities)


@dataclass
class Details(PairScore):
    """Scores and word alignment.

    `tokens` leaves out copied text and has an end symbol between segments.
    """

    alignment: list[tuple[int, int]]
    """(source word, target word) pairs, counted from 0."""
    word_log_probabilities: list[float | None]
    """None for a word that was copied. A token that covers several words is divided among them."""


class Words:
    """The words of a text."""

    def __init__(self, text: str) -> None:
        self.spans = word_spans(text)
        self.begins = [begin for begin, _ in self.spans]
        self.ends = [end for _, end in self.spans]

    def __len__(self) -> int:
        return len(self.spans)

    def at(self, begin: int, end: int) -> range:
        """The words that a span of characters overlaps.

        A span of white space belongs to the word after it, and an empty one to the word that it
        touches. At the end of the text, the last word is returned; only a blank text has no words.
        """
        first = bisect_right(self.ends, begin)
        last = bisect_left(self.begins, end)
        if begin == end:
            first = bisect_left(self.ends, begin)
        if first < last:
            return range(first, last)
        first = min(first, len(self) - 1)
        return range(max(first, 0), first + 1)


def token_spans(
    tokenizer: Tokenizer,
    ids: Sequence[int],
    text: str,
    side: int = TARGET,
) -> list[Span]:
    """The span of each token's characters in the text that the tokens spell.

    White space belongs to the token after it. All bytes of a character have the span of that
    character. A token that is not in the text, such as an unknown one, has the span between its
    neighbors.
    """
    spans = list[Span | None]()
    first = 0  # the first token of those that spell a character together
    begin = 0  # where the text of these tokens begins
    at = 0  # where the text that is not spelled yet begins
    for end, symbol in enumerate(tokenizer.subwords(ids, side), 1):
        piece = tokenizer.decode(ids[first:end], side)
        if not piece and not symbol.startswith(META):
            spans.append((at, at))
            continue
        decoded = piece.rstrip(UNDECODED)
        has_other_blank = text[begin : begin + 1] == " " and piece[:1] != " "
        start = begin + has_other_blank
        is_incomplete = False
        if text.startswith(decoded, start):
            is_incomplete = not text.startswith(piece, start)
            stop = start + len(decoded if is_incomplete else piece)
            spans.append((at, stop + is_incomplete))
        else:
            alone = tokenizer.decode(ids[end - 1 : end], side).strip()
            found = text.find(alone, at, at + FAR) if alone else -1
            stop = max(at, found + len(alone))
            spans.append((found, stop) if found >= 0 else None)
        at = stop
        if not is_incomplete:
            first = end
            begin = at
    return with_gaps(spans, len(text))


def with_gaps(spans: Sequence[Span | None], size: int) -> list[Span]:
    """The spans, with the one between its neighbors for each that is None."""
    result = list[Span]()
    following = size
    for span in reversed(spans):
        if span:
            following = span[0]
        result.append(span or (-1, following))
    result.reverse()
    before = 0
    for index, (begin, end) in enumerate(result):
        if begin < 0:
            result[index] = before, max(before, end)
        else:
            before = end
    return result


def places_in(typed: str, clean: Callable[[str], str]) -> list[int]:
    """For each character of the cleaned line, and for its end, its index in the line as typed."""
    if clean(typed) == typed:
        return list(range(len(typed) + 1))
    places = list[int]()
    for chunk in re.finditer(r"\S+", typed):
        begin, end = chunk.span()
        size = len(clean(chunk[0]))
        if not size:
            continue
        exact = origins(chunk[0], clean)
        if places:
            places.append(begin - 1)
        if exact is None:
            exact = [number * (end - begin) // size for number in range(size + 1)]
        places += [begin + place for place in exact[:size]]
    return [*places, len(typed.rstrip())]


class Describer:
    """Computes token scores and word alignments for the translations of a line."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        line: str,
        prefix: str,
        clean: Callable[[str], str],
    ) -> None:
        self.tokenizer = tokenizer
        self.prefix = prefix
        self.clean = clean
        self.words = Words(line)
        self.places = places_in(line, clean)
        # Maps a text to the spans of its tokens, because segments may share a text.
        self.encoded: dict[str, list[Span]] = {}

    def place(self, index: int) -> int:
        """The index in the line as typed for one in the cleaned line."""
        return self.places[min(index, len(self.places) - 1)]

    def words_at(self, begin: int, end: int) -> range:
        """The source words at a span of the cleaned line."""
        first = self.place(begin)
        return self.words.at(first, max(first, self.place(end)))

    def encoding(self, segment: Segment) -> tuple[str, list[Span]]:
        """The text whose tokens a segment consists of, with its prefix, and the spans of the tokens.

        Tokens that a part of a sentence repeats from the prefix are left out.
        """
        text = self.prefix + segment.text
        whole = self.clean(segment.text if segment.prefixed else text)
        if whole not in self.encoded:
            ids = self.tokenizer.encode([whole])[0]
            self.encoded[whole] = token_spans(self.tokenizer, ids, whole, SOURCE)
        last = segment.skipped + len(segment.ids) - segment.prefixed
        return whole, self.encoded[whole][segment.skipped : last]

    def of(self, segment: Segment) -> list[range]:
        """The source words of each of a segment's tokens; none for tokens of the prefix."""
        whole, spans = self.encoding(segment)
        before = len(whole) - len(self.clean(segment.text))
        offset = segment.start - before
        words = [range(0)] * segment.prefixed
        for begin, end in spans:
            is_prefix = end < before
            span = max(begin, before) + offset, end + offset
            words.append(range(0) if is_prefix else self.words_at(*span))
        return words

    def has_letters(self, segment: Segment) -> list[bool]:
        """Whether each of a segment's tokens is part of a word, and not only of punctuation."""
        whole, spans = self.encoding(segment)
        texts = (whole[begin:end] for begin, end in spans)
        in_words = [WORD_CHARACTER.search(text) is not None for text in texts]
        return [False] * segment.prefixed + in_words

    def of_copy(self, segment: Segment, span: Span, targets: Words) -> set[tuple[int, int]]:
        """The pairs of words for a segment that was copied to a span of the translation."""
        begin, end = span
        source = self.place(segment.start)
        pairs = set[tuple[int, int]]()
        for target in targets.at(begin, end):
            first, last = targets.spans[target]
            copied = max(first, begin) - begin, min(last, end) - begin
            sources = self.words.at(source + copied[0], source + copied[1])
            pairs.update((word, target) for word in sources)
        return pairs

    def describe(
        self,
        segments: list[Segment],
        parts: list[Hypothesis],
        joined: JoinedText,
    ) -> Details:
        """The details of a translation that consists of one hypothesis per segment."""
        words = Words(joined.text)
        details = Details([], [], [], [None] * len(words))
        pairs = set[tuple[int, int]]()
        rows = zip(segments, parts, joined.tokens, joined.spans, strict=True)
        for segment, part, tokens, span in rows:
            if segment.copied:
                pairs |= self.of_copy(segment, span, words)
                continue
            assert part.token_scores
            begin, end = span
            spans = list[Span]()
            if begin < end:  # without text, there are no words to align
                spans = token_spans(self.tokenizer, tokens, joined.text[begin:end])
            targets = [words.at(first + begin, last + begin) for first, last in spans]
            texts = [joined.text[first + begin : last + begin] for first, last in spans]
            pairs |= self.pairs_of(segment, part, targets, texts)
            scores = part.token_scores.log_probabilities
            of_text = scores[: len(part.tokens)][-len(targets) :] if targets else []
            for of_token, score in zip(targets, of_text, strict=True):
                for word in of_token:
                    before = details.word_log_probabilities[word] or 0.0
                    details.word_log_probabilities[word] = before + score / len(of_token)
            if details.token_log_probabilities:
                details.tokens.append(SYMBOLS[EOS])
            details.tokens += self.tokenizer.subwords(part.tokens)
            details.token_log_probabilities += scores
        details.alignment += sorted(pairs)
        return details

    def pairs_of(
        self,
        segment: Segment,
        part: Hypothesis,
        targets: Sequence[range],
        texts: Sequence[str],
    ) -> set[tuple[int, int]]:
        """The pairs of words for a segment, given the words and the text of each target token.

        A target token is aligned with the source token that it attends to most. Where words have
        no blanks between them, punctuation of the source does not count as part of the word before
        it: much of the translation attends to a period.
        """
        sources = [(index, words) for index, words in enumerate(self.of(segment)) if words]
        if not (sources and targets):
            return set()
        assert part.token_scores is not None
        assert part.token_scores.attention is not None
        # Skip target prefix tokens that are not in the text: they come first and belong to no word.
        attention = part.token_scores.attention[-len(targets) :, [index for index, _ in sources]]
        has_letters = self.has_letters(segment)
        of_letters = attention.copy()
        for column, (index, _) in enumerate(sources):
            if not has_letters[index]:
                of_letters[:, column] = 0
        if not of_letters.any():
            of_letters = attention
        pairs = set[tuple[int, int]]()
        for row, (of_target, text) in enumerate(zip(targets, texts, strict=True)):
            weights = of_letters if WITHOUT_BLANKS.search(text) else attention
            of_source = sources[weights[row].argmax()][1]
            pairs.update((source, target) for source in of_source for target in of_target)
        return pairs
