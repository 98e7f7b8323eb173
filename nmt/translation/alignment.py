"""Details of the translation of a line: scores of its tokens and words, and a word alignment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nmt.config import EOS
from nmt.search import Hypothesis
from nmt.text import SOURCE, SYMBOLS, WITHOUT_BLANKS, WORD_CHARACTER, Tokenizer
from nmt.translation.joining import JoinedText
from nmt.translation.lines import Segment, Span
from nmt.translation.spans import Words, places_in, token_spans

WordPairs = set[tuple[int, int]]
"""(source word, target word) pairs, counted from 0."""


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
    """One per word; None for a copied word. Words share the value of a token that covers them."""


@dataclass
class TargetToken:
    """A token of a translation."""

    text: str
    words: range
    """The words of the translation that it covers."""


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
        # Text -> spans of its tokens, because the parts of a sentence share its text.
        self.encoded: dict[str, list[Span]] = {}

    def place(self, index: int) -> int:
        """The index in the line as typed for one in the cleaned line."""
        last = len(self.places) - 1
        return self.places[min(index, last)]

    def words_at(self, begin: int, end: int) -> range:
        """The source words at a span of the cleaned line."""
        typed_begin = self.place(begin)
        # Normalization may map both ends of a span to one character of the line as typed.
        typed_end = max(typed_begin, self.place(end))
        return self.words.at(typed_begin, typed_end)

    def encoding(self, segment: Segment) -> tuple[str, list[Span]]:
        """A text that the tokens of a segment are part of, and the spans of these tokens in it.

        The text is the prefix and the segment's text, as the model reads them. For a part of a long
        sentence that begins with the tokens of the prefix, it is the text of the sentence, and the
        tokens are those after the prefix.
        """
        if segment.prefixed:
            text = self.clean(segment.text)
        else:
            # As in `Segmenter`, prefix and text are encoded as
            # one string, because subwords may differ otherwise.
            text = self.clean(self.prefix + segment.text)
        if text not in self.encoded:
            [ids] = self.tokenizer.encode([text])
            self.encoded[text] = token_spans(self.tokenizer, ids, text, SOURCE)
        # The tokens of a part are a stretch of those of its sentence.
        first = segment.skipped
        count = len(segment.ids) - segment.prefixed
        return text, self.encoded[text][first : first + count]

    def source_words(self, segment: Segment) -> list[range]:
        """For each token of a segment, the words of the line that it covers.

        A token of the prefix covers none.
        """
        text, spans = self.encoding(segment)
        # The prefix is not in the line.
        prefix_end = len(text) - len(self.clean(segment.text))
        # From an index in this text to the index in the cleaned line, where the segment begins at
        # `start`.
        offset = segment.start - prefix_end
        words = [range(0)] * segment.prefixed
        for begin, end in spans:
            if end < prefix_end:
                words.append(range(0))
                continue
            # A token that crosses the end of the prefix counts from there on.
            begin = max(begin, prefix_end)
            words.append(self.words_at(begin + offset, end + offset))
        return words

    def has_letters(self, segment: Segment) -> list[bool]:
        """Whether each of a segment's tokens is part of a word, and not only of punctuation."""
        text, spans = self.encoding(segment)
        result = [False] * segment.prefixed
        for begin, end in spans:
            result.append(WORD_CHARACTER.search(text[begin:end]) is not None)
        return result

    def pairs_of_copy(self, segment: Segment, span: Span, targets: Words) -> WordPairs:
        """The pairs of words for a segment that was copied to a span of the translation."""
        begin, end = span
        source = self.place(segment.start)
        # A copy has the characters of its origin, so words are found by their distance.
        offset = source - begin
        pairs = WordPairs()
        for target in targets.at(begin, end):
            first, last = targets.spans[target]
            first = max(first, begin)
            last = min(last, end)
            for word in self.words.at(first + offset, last + offset):
                pairs.add((word, target))
        return pairs

    def describe(
        self,
        segments: list[Segment],
        parts: list[Hypothesis],
        joined: JoinedText,
    ) -> Details:
        """The details of a translation that consists of one hypothesis per segment."""
        words = Words(joined.text)
        details = Details(
            tokens=[],
            token_log_probabilities=[],
            alignment=[],
            word_log_probabilities=[None] * len(words),
        )
        pairs = WordPairs()
        rows = zip(segments, parts, joined.tokens, joined.spans, strict=True)
        for segment, part, ids, span in rows:
            # The model has neither read nor written what was copied, so it has no scores.
            if segment.copied:
                pairs |= self.pairs_of_copy(segment, span, words)
                continue
            tokens = self.target_tokens(ids, joined.text, span, words)
            pairs |= self.pairs_of(segment, part, tokens)
            self.add_scores(details, part, tokens)
        # Sorted, because a set has no order, and equal translations must have equal records.
        details.alignment += sorted(pairs)
        return details

    def target_tokens(
        self, ids: list[int], text: str, span: Span, words: Words
    ) -> list[TargetToken]:
        """The tokens that spell a span of the translation, which has the given words.

        Without text, there are none, because there are no words to align.
        """
        begin, end = span
        # An empty translation may still have tokens, such as a lone blank.
        if begin == end:
            return []
        tokens = []
        for first, last in token_spans(self.tokenizer, ids, text[begin:end]):
            covered = words.at(begin + first, begin + last)
            tokens.append(TargetToken(text[begin + first : begin + last], covered))
        return tokens

    def add_scores(self, details: Details, part: Hypothesis, tokens: Sequence[TargetToken]) -> None:
        """Add the scores of a segment's tokens, and of their words, to the details of its line."""
        assert part.token_scores
        scores = part.token_scores.log_probabilities
        # `tokens` lacks those of the target prefix that are not in the text; they come first.
        hidden = len(part.tokens) - len(tokens)
        scores_of_text = scores[hidden : len(part.tokens)]
        for token, score in zip(tokens, scores_of_text, strict=True):
            for word in token.words:
                # None until its first token: a word that only copies spell keeps None.
                before = details.word_log_probabilities[word] or 0.0
                details.word_log_probabilities[word] = before + score / len(token.words)
        # The end symbol of the segment before. That of the last segment has a score, but no name.
        if details.token_log_probabilities:
            details.tokens.append(SYMBOLS[EOS])
        details.tokens += self.tokenizer.subwords(part.tokens)
        details.token_log_probabilities += scores

    def pairs_of(
        self,
        segment: Segment,
        part: Hypothesis,
        tokens: Sequence[TargetToken],
    ) -> WordPairs:
        """The pairs of words for a segment, given the tokens of its translation.

        A target token is aligned with the source token that it attends to most. Where words have
        no blanks between them, punctuation of the source does not count as part of the word before
        it: much of the translation attends to a period.
        """
        # Tokens without source words, such as those of the prefix, are no candidates.
        words_of_tokens = enumerate(self.source_words(segment))
        sources = {index: words for index, words in words_of_tokens if words}
        if not sources or not tokens:
            return set()
        columns = list(sources)
        assert part.token_scores is not None
        assert part.token_scores.attention is not None
        # Skip target prefix tokens that are not in the text: they come first and belong to no word.
        attention = part.token_scores.attention[-len(tokens) :, columns]
        to_letters = self.attention_to_letters(segment, columns, attention)
        pairs = WordPairs()
        for row, token in enumerate(tokens):
            weights = to_letters if WITHOUT_BLANKS.search(token.text) else attention
            index = columns[weights[row].argmax()]
            for source in sources[index]:
                pairs.update((source, target) for target in token.words)
        return pairs

    def attention_to_letters(
        self,
        segment: Segment,
        columns: list[int],
        attention: npt.NDArray[np.float32],
    ) -> npt.NDArray[np.float32]:
        """Attention without that to punctuation; unchanged if nothing would be left.

        `columns` are the indices of the source tokens that the columns of `attention` belong to.
        """
        has_letters = self.has_letters(segment)
        is_punctuation = [not has_letters[index] for index in columns]
        # Copied, because other scripts in the same translation use the unchanged weights.
        to_letters = attention.copy()
        to_letters[:, is_punctuation] = 0
        return to_letters if to_letters.any() else attention
