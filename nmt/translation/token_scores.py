"""What is told of translations beside their texts: tokens, their log probabilities, which words answer which. No torch.

Words are what blanks separate in a line, or in a translation, as users see it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from nmt.config import EOS
from nmt.search.engine import Hypothesis, Judge, Judgement
from nmt.text.tokenizers import META, SYMBOLS, Tokenizer, clean
from nmt.translation.segments import Piece, tell, text

END = SYMBOLS[EOS]
Item = TypeVar("Item")


@dataclass
class Details:
    """What a model thinks of a translation, token by token.

    The end symbol comes last, without standing among the tokens; where a line was translated in pieces, that of each
    piece but the last does. What was copied has no tokens. `alignment` are pairs of a source word and a target word,
    counted from 0.
    """

    tokens: list[str]
    token_log_probabilities: list[float]
    alignment: list[tuple[int, int]]


def words_of_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> list[int]:
    """The word that each token belongs to, in the text that all of them decode to; a blank belongs to the next word."""
    words, before, begin = list[int](), 0, 0
    for end, symbol in enumerate(tokenizer.subwords(ids), 1):
        own = tokenizer.decode(ids[end - 1 : end])
        if (
            words
            and own.isprintable()
            and "\ufffd" not in own
            and not (symbol.startswith(META) or " " in own or not own)
        ):
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
    """The words of a line that the tokens of its pieces belong to."""

    def __init__(self, tokenizer: Tokenizer, line: str, prefix: str) -> None:
        self.tokenizer, self.prefix = tokenizer, prefix
        # Normalisation may make several words of one, never one of several.
        self.owners = [number for number, word in enumerate(line.split()) for _ in clean(word).split()]
        spans = [found.span() for found in re.finditer(r"\S+", clean(line))]
        self.starts, self.ends = [start for start, _ in spans], [end for _, end in spans]
        self.encoded: dict[str, list[int]] = {}
        """The words of the tokens of a text that several pieces are parts of."""

    def first(self, start: int) -> int:
        """The word that stands at a character of the clean line, or ends before it without a blank, or comes next."""
        place = bisect_left(self.starts, start)
        return place - 1 if place and self.ends[place - 1] >= start else place

    def words(self, text: str) -> list[int]:
        if text not in self.encoded:
            self.encoded[text] = words_of_tokens(self.tokenizer, self.tokenizer.encode([text])[0])
        return self.encoded[text]

    def of(self, piece: Piece) -> list[int | None]:
        """The word of each token; None where that is a word of the prefix alone. Of what is copied, each word of it."""
        first, own = self.first(piece.start), clean(piece.text)
        if piece.copied:
            return list(self.owners[first : first + len(own.split())])
        whole = own if piece.prefixed else clean(self.prefix + piece.text)
        before = len(whole.split()) - len(own.split())
        words = self.words(whole)[piece.skipped : piece.skipped + len(piece.ids) - piece.prefixed]
        none: list[int | None] = [None] * piece.prefixed
        return none + [self.owners[first + word - before] if word >= before else None for word in words]


def alignment(judgement: Judgement, sources: list[int | None], targets: list[int]) -> set[tuple[int, int]]:
    """Pairs of words, of which a token of the target word looks most at a token of the source word."""
    places = [place for place, word in enumerate(sources) if word is not None]
    owners = [word for word in sources if word is not None]
    if not places or not targets:
        return set()
    assert judgement.attention is not None
    # Of a prefix that is not told again, the first tokens have no words.
    best = judgement.attention[-len(targets) :, places].argmax(axis=1)
    return {(owners[place], target) for place, target in zip(best, targets, strict=True)}


class Describer:
    """Finds the details of translations, whichever engine has found these."""

    def __init__(
        self, judge: Judge, tokenizer: Tokenizer, source_prefix: str = "", target_prefix: Sequence[int] = ()
    ) -> None:
        """`target_prefix` are the tokens that all translations begin with."""
        self.judge, self.tokenizer, self.source_prefix = judge, tokenizer, source_prefix
        self.target_prefix = target_prefix

    def describe(
        self, lines: list[str], pieces: list[list[Piece]], found: list[list[list[Hypothesis]]]
    ) -> list[list[Details]]:
        """The details of each line's translations, all judged together; `found` are the hypotheses of each piece."""
        pairs = [
            (piece.ids, hypothesis.tokens)
            for line_pieces, line_found in zip(pieces, found, strict=True)
            for piece, hypotheses in zip(line_pieces, line_found, strict=True)
            for hypothesis in hypotheses
            if not piece.copied
        ]
        judged = iter(self.judge(pairs))
        return [
            self.line_details(
                line,
                line_pieces,
                [
                    [(h, Judgement([]) if piece.copied else next(judged)) for h in hypotheses]
                    for piece, hypotheses in zip(line_pieces, line_found, strict=True)
                ],
            )
            for line, line_pieces, line_found in zip(lines, pieces, found, strict=True)
        ]

    def line_details(
        self, line: str, pieces: list[Piece], judged: list[list[tuple[Hypothesis, Judgement]]]
    ) -> list[Details]:
        """Of the translations of one line."""
        source = SourceWords(self.tokenizer, line, self.source_prefix)
        words = [source.of(piece) for piece in pieces]
        return [self.join(pieces, words, parts) for parts in nth_of_each(judged)]

    def join(
        self, pieces: list[Piece], sources: list[list[int | None]], parts: list[tuple[Hypothesis, Judgement]]
    ) -> Details:
        """The details of a translation that is made of these parts; `sources` are the words of their pieces' tokens."""
        details = Details([], [], [])
        told = tell(self.tokenizer, pieces, [hypothesis for hypothesis, _ in parts], self.target_prefix)
        pairs = set[tuple[int, int]]()
        for number, (words, (hypothesis, judgement)) in enumerate(zip(sources, parts, strict=True)):
            first = told.first_words[number]
            if pieces[number].copied:
                pairs |= {(source, first + place) for place, source in enumerate(words) if source is not None}
                continue
            # Without a text there is no word to align.
            tokens = told.tokens[number] if text(self.tokenizer, told.tokens[number]) else []
            found = alignment(judgement, words, words_of_tokens(self.tokenizer, tokens))
            pairs |= {(source, first + target) for source, target in found}
            details.tokens += [END] * bool(details.token_log_probabilities)
            details.tokens += self.tokenizer.subwords(hypothesis.tokens)
            details.token_log_probabilities += judgement.log_probabilities
        details.alignment += sorted(pairs)
        return details


def nth_of_each(lists: list[list[Item]]) -> Iterator[list[Item]]:
    """The first of each list, the second of each, ...; of a list that is too short its last. [] once, of no lists."""
    for n in range(max(map(len, lists), default=1)):
        yield [items[min(n, len(items) - 1)] for items in lists]
