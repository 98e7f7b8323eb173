"""Token scores and word alignments of translations.

A word is a run of characters without white space, in the raw line or in the text of the translation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from nmt.config import EOS
from nmt.search import Hypothesis
from nmt.text import META, SOURCE, SYMBOLS, TARGET, Tokenizer
from nmt.translation.segments import JoinedText, Segment, text


@dataclass
class PairScore:
    """The tokens of a translation, and the log probabilities of its tokens and of the end symbol."""

    tokens: list[str]
    token_log_probabilities: list[float]

    @property
    def log_probability(self) -> float:
        return sum(self.token_log_probabilities)


@dataclass
class Details(PairScore):
    """Scores and word alignment. `tokens` leaves out copied text and has an end symbol between segments."""

    alignment: list[tuple[int, int]]  # (source word, target word) pairs, counted from 0
    word_log_probabilities: list[float | None]  # None for a word that was copied


def words_of_tokens(tokenizer: Tokenizer, ids: Sequence[int], side: int = TARGET) -> list[int]:
    """The index of each token's word in the decoded text; a space belongs to the word after it."""
    words, before, begin = list[int](), 0, 0
    for end, symbol in enumerate(tokenizer.subwords(ids, side), 1):
        piece = tokenizer.decode(ids[end - 1 : end], side)
        printable = bool(piece) and piece.isprintable() and "\ufffd" not in piece
        if words and printable and not symbol.startswith(META) and " " not in piece:
            words.append(words[-1])
            continue
        # Decode only from the last space on: decoding all earlier tokens every time would take hours for a long line.
        closed = tokenizer.decode(ids[begin : end - 1], side).split() if symbol.startswith(META) else []
        text = tokenizer.decode(ids[begin:end], side)
        if closed and closed + piece.split() == text.split():
            before, begin, text = before + len(closed), end - 1, piece
        words.append(before + max(len(text.split()) - (not text[-1:].isspace()), 0))
    last = max(len(tokenizer.decode(ids, side).split()) - 1, 0)
    return [min(word, last) for word in words]


class Describer:
    """Computes token scores and word alignments for the translations of a line."""

    def __init__(self, tokenizer: Tokenizer, line: str, prefix: str) -> None:
        self.tokenizer, self.prefix, clean = tokenizer, prefix, tokenizer.clean
        # Normalization may split a word, but never joins words.
        self.owners = [number for number, word in enumerate(line.split()) for _ in clean(word).split()]
        self.words = [begun - 1 for begun in accumulate(before == " " for before in " " + clean(line)[:-1])]
        self.encoded: dict[str, list[int]] = {}  # text -> the word index of each token; segments may share a text

    def of(self, segment: Segment) -> list[int | None]:
        """Each token's source word index (None in the prefix); for a copied segment, the indices of all its words."""
        clean = self.tokenizer.clean
        first, text = self.words[segment.start], clean(segment.text)
        if segment.copied:
            return list(self.owners[first : first + len(text.split())])
        whole = text if segment.prefixed else clean(self.prefix + segment.text)
        before = len(whole.split()) - len(text.split())
        if whole not in self.encoded:
            self.encoded[whole] = words_of_tokens(self.tokenizer, self.tokenizer.encode([whole])[0], SOURCE)
        words = self.encoded[whole][segment.skipped : segment.skipped + len(segment.ids) - segment.prefixed]
        owners = [self.owners[first + word - before] if word >= before else None for word in words]
        return [None] * segment.prefixed + owners

    def describe(self, segments: list[Segment], parts: list[Hypothesis], joined: JoinedText) -> Details:
        """The details of a translation that consists of one hypothesis per segment."""
        details, pairs = Details([], [], [], [None] * len(joined.text.split())), set[tuple[int, int]]()
        for segment, part, tokens, first in zip(segments, parts, joined.tokens, joined.first_words, strict=True):
            sources = [(index, word) for index, word in enumerate(self.of(segment)) if word is not None]
            if segment.copied:
                pairs |= {(source, first + index) for index, source in sources}
                continue
            assert part.token_scores
            # Without text, there are no words to align.
            targets = words_of_tokens(self.tokenizer, tokens) if text(self.tokenizer, tokens) else []
            if sources and targets:
                assert part.token_scores.attention is not None
                # Skip target prefix tokens that are not in the text: they come first and belong to no word.
                best = part.token_scores.attention[-len(targets) :, [index for index, _ in sources]].argmax(axis=1)
                pairs |= {(sources[index][1], first + target) for index, target in zip(best, targets, strict=True)}
            log_probabilities, of_words = part.token_scores.log_probabilities, details.word_log_probabilities
            of_text = log_probabilities[: len(part.tokens)][-len(targets) :]
            for target, log_probability in zip(targets, of_text, strict=bool(targets)):
                of_words[first + target] = (of_words[first + target] or 0.0) + log_probability
            details.tokens += [SYMBOLS[EOS]] * bool(details.token_log_probabilities)
            details.tokens += self.tokenizer.subwords(part.tokens)
            details.token_log_probabilities += log_probabilities
        details.alignment += sorted(pairs)
        return details
