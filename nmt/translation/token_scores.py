"""Token scores and word alignment of a translation. No torch.

Words are what blanks separate in a line, or in a translation, as users see it.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.config import EOS
from nmt.search.engine import Hypothesis, Scorer, TokenScores
from nmt.text.tokenizers import META, SYMBOLS, Tokenizer, clean
from nmt.translation.segments import Segment, join, nth_of_each, text

END = SYMBOLS[EOS]


@dataclass
class Details:
    """A translation's tokens with their log probabilities, and its word alignment.

    The last log probability is the end symbol's, which does not stand among the tokens; where a line was cut into
    segments, the end symbol of each but the last does. What was copied has no tokens. `alignment` are pairs of a source
    word and a target word, counted from 0.
    """

    tokens: list[str]
    token_log_probabilities: list[float]
    alignment: list[tuple[int, int]]


def words_of_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """The word that each token belongs to, in the text that all of them decode to; a blank belongs to the next word."""
    words, before, begin = list[int](), 0, 0
    for end, symbol in enumerate(tokenizer.subwords(ids), 1):
        own = tokenizer.decode(ids[end - 1 : end])
        printable = bool(own) and own.isprintable() and "\ufffd" not in own
        if words and printable and not symbol.startswith(META) and " " not in own:
            words.append(words[-1])
            continue
        # From the last blank on: to decode all tokens before each would take hours for a long line.
        closed = tokenizer.decode(ids[begin : end - 1]).split() if symbol.startswith(META) else []
        text = tokenizer.decode(ids[begin:end])
        if closed and closed + own.split() == text.split():
            before, begin, text = before + len(closed), end - 1, own
        words.append(before + max(len(text.split()) - (not text[-1:].isspace()), 0))
    last = max(len(tokenizer.decode(ids).split()) - 1, 0)
    return [min(word, last) for word in words]


class SourceWords:
    """The words of a line that the tokens of its segments belong to."""

    def __init__(self, tokenizer: Tokenizer, line: str, prefix: str) -> None:
        self.tokenizer, self.prefix = tokenizer, prefix
        # Normalisation may make several words of one, never one of several.
        self.owners = [number for number, word in enumerate(line.split()) for _ in clean(word).split()]
        spans = [found.span() for found in re.finditer(r"\S+", clean(line))]
        self.starts, self.ends = [start for start, _ in spans], [end for _, end in spans]
        self.encoded: dict[str, list[int]] = {}
        """The words of the tokens of a text that several segments are parts of."""

    def first(self, start: int) -> int:
        """The word that stands at a character of the clean line, or ends before it without a blank, or comes next."""
        index = bisect_left(self.starts, start)
        return index - 1 if index and self.ends[index - 1] >= start else index

    def of(self, segment: Segment) -> list[int | None]:
        """The word of each token; None where that is a word of the prefix alone. Of what is copied, each word of it."""
        first, own = self.first(segment.start), clean(segment.text)
        if segment.copied:
            return list(self.owners[first : first + len(own.split())])
        whole = own if segment.prefixed else clean(self.prefix + segment.text)
        before = len(whole.split()) - len(own.split())
        if whole not in self.encoded:
            self.encoded[whole] = words_of_tokens(self.tokenizer, self.tokenizer.encode([whole])[0])
        words = self.encoded[whole][segment.skipped : segment.skipped + len(segment.ids) - segment.prefixed]
        none: list[int | None] = [None] * segment.prefixed
        return none + [self.owners[first + word - before] if word >= before else None for word in words]


def alignment(scores: TokenScores, sources: list[int | None], targets: list[int]) -> set[tuple[int, int]]:
    """Pairs of words, of which a token of the target word attends most to a token of the source word."""
    indices = [index for index, word in enumerate(sources) if word is not None]
    owners = [word for word in sources if word is not None]
    if not indices or not targets:
        return set()
    assert scores.attention is not None
    # The first tokens have no words where they are a prefix that the text does not repeat.
    best = scores.attention[-len(targets) :, indices].argmax(axis=1)
    return {(owners[index], target) for index, target in zip(best, targets, strict=True)}


class Describer:
    """Finds the details of translations. `target_prefix` are the tokens that all of them begin with."""

    def __init__(
        self, scorer: Scorer, tokenizer: Tokenizer, source_prefix: str = "", target_prefix: Sequence[int] = ()
    ) -> None:
        self.scorer, self.tokenizer, self.source_prefix = scorer, tokenizer, source_prefix
        self.target_prefix = target_prefix

    def describe(
        self, lines: list[str], segments: list[list[Segment]], found: list[list[list[Hypothesis]]]
    ) -> list[list[Details]]:
        """The details of each line's translations, all scored together; `found` are each segment's hypotheses."""
        rows = [list(zip(*row, strict=True)) for row in zip(segments, found, strict=True)]
        pairs = [(s.ids, h.tokens) for row in rows for s, hypotheses in row if not s.copied for h in hypotheses]
        scores = iter(self.scorer(pairs))
        details = []
        for line, row in zip(lines, rows, strict=True):
            source = SourceWords(self.tokenizer, line, self.source_prefix)
            words = [source.of(segment) for segment, _ in row]
            parts = [
                [(segment, h, TokenScores([]) if segment.copied else next(scores)) for h in hypotheses]
                for segment, hypotheses in row
            ]
            details.append([self.join(words, nth) for nth in nth_of_each(parts)])
        return details

    def join(self, words: list[list[int | None]], parts: list[tuple[Segment, Hypothesis, TokenScores]]) -> Details:
        """The details of a translation made of these parts; `words` are those of their segments' tokens."""
        details, pairs = Details([], [], []), set[tuple[int, int]]()
        segments, hypotheses = [part[0] for part in parts], [part[1] for part in parts]
        joined = join(self.tokenizer, segments, hypotheses, self.target_prefix)
        for number, (segment, hypothesis, scores) in enumerate(parts):
            sources, first, tokens = words[number], joined.first_words[number], joined.tokens[number]
            if segment.copied:
                pairs |= {(source, first + index) for index, source in enumerate(sources) if source is not None}
                continue
            # Without a text there is no word to align.
            targets = words_of_tokens(self.tokenizer, tokens) if text(self.tokenizer, tokens) else []
            pairs |= {(source, first + target) for source, target in alignment(scores, sources, targets)}
            details.tokens += [END] * bool(details.token_log_probabilities)
            details.tokens += self.tokenizer.subwords(hypothesis.tokens)
            details.token_log_probabilities += scores.log_probabilities
        details.alignment += sorted(pairs)
        return details
