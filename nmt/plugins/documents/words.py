"""The words, punctuation and copies in a sentence, and where they may be torn apart."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import NamedTuple

import regex

from nmt.plugins.documents.brackets import SIGN, Pair, find_brackets
from nmt.plugins.protection.copies import COPY
from nmt.plugins.protection.finder import USUAL, Finder
from nmt.text import (
    DEPENDENT,
    HIRAGANA,
    INFLECTED_WORD,
    KATAKANA_WORD,
    LEADING_VOWEL,
    NO_BLANK_BESIDE,
    PARTICLE,
    REPETITION,
    SYLLABLE,
    WITHOUT_BLANKS,
    WORD_CHARACTER,
    word_spans,
)

ONE = WITHOUT_BLANKS.pattern
LETTER = rf"(?:(?!{ONE})\w)"
WORD = regex.compile(
    rf"""
    {KATAKANA_WORD.pattern}
    | {INFLECTED_WORD.pattern}
    | (?: {LEADING_VOWEL} (?={ONE}) )? {SYLLABLE} {DEPENDENT}*+ (?:[ \u00a0]{REPETITION})?+
    | {LETTER} (?: (?: (?!{ONE}) \S )* {LETTER} )?
    | (?!{ONE}) (?={SIGN.pattern}) \X  # each bracket alone, because it has its own partner
    | (?!{ONE}) (?=[^\s\w]) (\X) \1*+  # a punctuation mark or an emoji
    """,
    regex.VERBOSE,
)
HAS_NO_BLANKS = regex.compile(f"{ONE}|{NO_BLANK_BESIDE.pattern}")
IN_HIRAGANA = regex.compile(rf"{HIRAGANA}+")
OPENING = regex.compile(r"[\p{Ps}\p{Pi}¿¡]")
CLOSING = regex.compile(r"[\p{Pe}\p{Pf}]")
FINAL_MARK = regex.compile(r"\p{Terminal_Punctuation}+")
PUNCTUATION = regex.compile(r"[\p{P}\p{S}]+")
DIALOG_MARK = regex.compile("[-\uff0d\u2010\u2011\u2012\u2013—―・·•*♪♫♬]+")
"""What a line of a dialog, a list or a song may begin with."""
NUMBER = regex.compile(r"\d+(?:[.,]\d+)*")
LONGEST_NUMBER = 40
DETOUR = 4
"""How many tokens away a line break goes to fall between phrases."""
NEVER = 1000
"""The detour around a place where a line must not break."""


class TokenPair(NamedTuple):
    """The tokens with the two signs of a pair of brackets or quotation marks."""

    opening: int
    closing: int
    is_quotation: bool


class Tokens:
    """The words, punctuation, protected items and copies in a text.

    `chunks` are the words that alignments count, which may consist of several tokens.
    """

    def __init__(
        self,
        text: str,
        marks: Collection[str] = (),
        edges: Iterable[int] = (),
        divided: Collection[str] = (),
    ) -> None:
        """Find the words of a text with these marks of copies.

        `edges` are those of elements. `divided` are the measurements of which an element has only a
        part on the other side, and the numbers that end there: also here, they are not one word
        with what follows.
        """
        self.text = text
        self.chunks = word_spans(text)
        edges = {*edges}
        copies = [copy.span() for copy in COPY.finditer(text) if copy[1] in marks] if marks else []
        stretches = Finder([USUAL]).stretches(text)
        items = [span for span in stretches if not is_divided(text[slice(*span)], divided)]
        in_items = set[int]()
        for begin, end in items:
            in_items.update(range(begin + 1, end))
        self.divided = {
            text[begin:end]
            for begin, end in items
            if text[begin].isdigit() and not edges.isdisjoint(range(begin + 1, end))
        }
        self.divided |= {number for edge in edges if (number := number_before(text, edge))}
        words = [word.span() for word in WORD.finditer(text)]
        brackets = find_brackets(text)
        words += split_brackets(brackets, words)
        cuts = {edge for span in [*items, *words] for edge in span}
        cuts = (cuts - in_items).union(edges, *copies)
        for begin, end in copies:
            cuts.difference_update(range(begin + 1, end))
        self.starts, self.ends = list[int](), list[int]()
        for begin, end in pairwise(sorted(cuts)):
            word = text[begin:end].strip()
            if word:
                start = text.index(word, begin)
                self.starts.append(start)
                self.ends.append(start + len(word))
        begins = {begin for begin, _ in copies}
        self.copies = [token for token, begin in enumerate(self.starts) if begin in begins]
        self.pair_at = dict[int, TokenPair]()
        for pair in self.token_pairs(brackets):
            self.pair_at[pair.opening] = pair
            self.pair_at[pair.closing] = pair

    def token_pairs(self, brackets: Iterable[Pair]) -> list[TokenPair]:
        """The pairs of brackets and quotation marks, in the order of their opening signs."""
        result = list[TokenPair]()
        for pair in brackets:
            opening = bisect_right(self.starts, pair.opening) - 1
            closing = bisect_right(self.starts, pair.closing) - 1
            if opening != closing:
                result.append(TokenPair(opening, closing, pair.is_quotation))
        return result

    def partner(self, token: int) -> int | None:
        """The token with the other sign of a pair of brackets, if a token has one of them."""
        pair = self.pair_at.get(token)
        if pair is None:
            return None
        return pair.closing if token == pair.opening else pair.opening

    def between(self, begin: int, end: int) -> range:
        """The tokens that overlap a span."""
        return range(bisect_right(self.ends, begin), bisect_left(self.starts, end))

    def of(self, token: int) -> str:
        return self.text[self.starts[token] : self.ends[token]]

    def is_word(self, token: int) -> bool:
        return WORD_CHARACTER.search(self.of(token)) is not None

    def is_final_mark(self, token: int) -> bool:
        """Whether a token is a mark such as a period, which ends a sentence or a part of one."""
        in_text = 0 <= token < len(self.starts)
        return in_text and FINAL_MARK.fullmatch(self.of(token)) is not None

    def is_sign(self, token: int) -> bool:
        """Whether a token is punctuation or a symbol."""
        return PUNCTUATION.fullmatch(self.of(token)) is not None

    def is_hiragana(self, token: int) -> bool:
        in_text = 0 <= token < len(self.starts)
        return in_text and IN_HIRAGANA.fullmatch(self.of(token)) is not None

    def is_particle(self, token: int) -> bool:
        """Whether a token is probably a Japanese particle, and not part of a word in hiragana."""
        if not PARTICLE.fullmatch(self.of(token)):
            return False
        neighbors = [other for other in (token - 1, token + 1) if self.is_hiragana(other)]
        return all(PARTICLE.fullmatch(self.of(other)) for other in neighbors)

    def is_content(self, token: int) -> bool:
        """Whether a token is a word, but not one in hiragana, which mostly serve grammar."""
        return self.is_word(token) and not self.is_hiragana(token)

    def detour(self, gap: int) -> int:
        """How many tokens a line break should rather move than be before a token.

        A line neither ends with an opening sign nor begins with a closing one. In scripts without
        blanks, lines break after punctuation, before an opening sign and between phrases, which in
        Japanese begin where hiragana end.
        """
        before = self.of(gap - 1)
        after = self.of(gap)
        if self.opens(gap - 1) or self.closes(gap):
            return NEVER
        if self.ends[gap - 1] < self.starts[gap] or self.opens(gap):
            return 0
        if not HAS_NO_BLANKS.search(before + after):
            return NEVER
        ends_phrase = IN_HIRAGANA.match(before[-1]) and not IN_HIRAGANA.match(after[0])
        return 0 if self.is_sign(gap - 1) or ends_phrase else DETOUR

    def opens(self, token: int) -> bool:
        """Whether a line may begin, but not end, with a token: an opening sign or a dialog mark."""
        pair = self.pair_at.get(token)
        if pair and not self.is_word(token):
            return token == pair.opening
        sign = self.of(token)
        if DIALOG_MARK.fullmatch(sign) and len(sign) == 1:
            return token == 0 or self.closes(token - 1)
        return OPENING.fullmatch(sign) is not None

    def closes(self, token: int) -> bool:
        """Whether a line may end, but not begin, with a token."""
        pair = self.pair_at.get(token)
        if pair and not self.is_word(token):
            return token == pair.closing
        sign = self.of(token)
        return (FINAL_MARK.fullmatch(sign) or CLOSING.fullmatch(sign)) is not None

    def sides(self, chunk: int) -> list[range]:
        """A chunk's leading punctuation, its words and copies, and its trailing punctuation."""
        tokens = self.between(*self.chunks[chunk])
        words = [token for token in tokens if self.is_word(token) or COPY.match(self.of(token))]
        first, *_, last = [*words, *words] or [tokens.start, tokens.stop - 1]
        return [
            range(tokens.start, first),
            range(first, last + 1),
            range(last + 1, tokens.stop),
        ]


def split_brackets(brackets: Iterable[Pair], words: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans of the signs that are inside words, without their partners, as in `(a)b`."""
    begins = [begin for begin, _ in words]
    spans = list[tuple[int, int]]()
    for pair in brackets:
        if bisect_right(begins, pair.opening) != bisect_right(begins, pair.closing):
            spans += [(at, at + 1) for at in (pair.opening, pair.closing)]
    return spans


def number_before(text: str, edge: int) -> str:
    """The digits of the number that ends at an edge of an element, or ""."""
    before = text[max(0, edge - LONGEST_NUMBER) : edge].rstrip()
    numbers = NUMBER.findall(before)
    return digits_of(numbers[-1]) if numbers and before.endswith(numbers[-1]) else ""


def digits_of(number: str) -> str:
    """A number without its separators, which depend on the language."""
    return "".join(filter(str.isdigit, number))


def is_divided(item: str, divided: Collection[str]) -> bool:
    """Whether an element of the other side ends inside an item, such as after its number."""
    number = NUMBER.match(item)
    is_measure = number is not None and number.end() < len(item)
    return item in divided or (is_measure and digits_of(number[0]) in divided)
