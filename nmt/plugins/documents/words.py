"""The words, punctuation and copies in a sentence, and where they may be torn apart."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import NamedTuple

import regex

from nmt.items import COPY, USUAL, Finder
from nmt.plugins.documents.brackets import SIGN, Pair, find_brackets
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
# In this order: a word in katakana, a Japanese word with its ending, a syllable of another script
# without blanks, a word of a script with blanks, and signs.
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
"""A mark at the beginning of a line of a dialog, a list or a song."""
NUMBER = regex.compile(r"\d+(?:[.,]\d+)*")
LONGEST_NUMBER = 40
"""The number of characters before the edge of an element to search for a number."""
DETOUR = 4
"""The maximum number of tokens by which a line break moves to fall between phrases."""
NEVER = 1000
"""The detour around a place where a line must not break."""
Span = tuple[int, int]
"""The first index of a stretch of text, and the index after its last character."""


class TokenPair(NamedTuple):
    """The tokens with the two signs of a pair of brackets or quotation marks."""

    opening: int
    closing: int
    is_quotation: bool


class Sides(NamedTuple):
    """The tokens of a chunk: leading punctuation, words and copies, and trailing punctuation."""

    before: range
    words: range
    after: range


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

        `edges` are the offsets where elements begin or end. `divided` are the measurements of which
        an element has only a part on the other side, and the numbers that end there: also here,
        they are not one word with what follows.
        """
        self.text = text
        self.chunks = word_spans(text)
        edges = frozenset(edges)
        # No token ends inside a copy or a protected item: markup must not tear it apart.
        copies = spans_of_copies(text, marks)
        items = list[Span]()
        for begin, end in Finder([USUAL]).stretches(text):
            if not is_divided(text[begin:end], divided):
                items.append((begin, end))
        self.divided = items_with_edges(text, items, edges)
        brackets = find_brackets(text)
        words = [word.span() for word in WORD.finditer(text)]
        # WORD takes `(a)b` for one word, whose signs belong to a pair of their own.
        words += split_brackets(brackets, words)
        cuts = find_cuts(words, items, copies, edges)
        # The tokens are the stretches between the cuts, without their white space.
        self.starts = list[int]()
        self.ends = list[int]()
        for begin, end in pairwise(cuts):
            word = text[begin:end].strip()
            if word:
                start = text.index(word, begin)
                self.starts.append(start)
                self.ends.append(start + len(word))
        begins = {begin for begin, _ in copies}
        self.copies = [token for token, begin in enumerate(self.starts) if begin in begins]
        self.pair_at = dict[int, TokenPair]()  # for both tokens of each pair
        for pair in self.token_pairs(brackets):
            self.pair_at[pair.opening] = pair
            self.pair_at[pair.closing] = pair

    def token_pairs(self, brackets: Iterable[Pair]) -> list[TokenPair]:
        """The pairs of brackets and quotation marks, in the order of their opening signs.

        Pairs inside a single token, such as a protected item, are left out.
        """
        result = list[TokenPair]()
        for pair in brackets:
            # The token with a sign is the last one that begins at the sign or before it.
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
        # Tokens that only touch the span are not included.
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
        # Callers also ask about the neighbors of the first and the last token.
        in_text = 0 <= token < len(self.starts)
        return in_text and IN_HIRAGANA.fullmatch(self.of(token)) is not None

    def is_particle(self, token: int) -> bool:
        """Whether a token is probably a Japanese particle, and not part of a word in hiragana."""
        if not PARTICLE.fullmatch(self.of(token)):
            return False
        # Other hiragana beside it are of the same word.
        for neighbor in (token - 1, token + 1):
            if self.is_hiragana(neighbor) and not PARTICLE.fullmatch(self.of(neighbor)):
                return False
        return True

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
            return NEVER  # inside a word of a script with blanks
        if self.is_sign(gap - 1):
            return 0
        ends_phrase = IN_HIRAGANA.match(before[-1]) and not IN_HIRAGANA.match(after[0])
        return 0 if ends_phrase else DETOUR

    def opens(self, token: int) -> bool:
        """Whether a line may begin, but not end, with a token: an opening sign or a dialog mark."""
        pair = self.pair_at.get(token)
        if pair and not self.is_word(token):
            # A mark that looks the same on both sides, such as a straight one, opens by its place
            # in the pair.
            return token == pair.opening
        sign = self.of(token)
        # A repeated mark is a pause, and may end a line.
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

    def sides(self, chunk: int) -> Sides:
        """The parts of a chunk; all of it counts as words if it has only punctuation."""
        begin, end = self.chunks[chunk]
        tokens = self.between(begin, end)
        if len(tokens) == 1:  # usual, and worth the speed
            return Sides(range(tokens.start, tokens.start), tokens, range(tokens.stop, tokens.stop))
        # A copy stands for a word, even if its mark is not a letter.
        words = [token for token in tokens if self.is_word(token) or COPY.match(self.of(token))]
        if not words:
            # Nothing is paired with an empty side.
            nothing_before = range(tokens.start, tokens.start)
            nothing_after = range(tokens.stop, tokens.stop)
            return Sides(nothing_before, tokens, nothing_after)
        return Sides(
            before=range(tokens.start, words[0]),
            words=range(words[0], words[-1] + 1),
            after=range(words[-1] + 1, tokens.stop),
        )


def spans_of_copies(text: str, marks: Collection[str]) -> list[Span]:
    """The spans of the copies with these marks, in order."""
    if not marks:  # usual, and worth the speed
        return []
    return [copy.span() for copy in COPY.finditer(text) if copy[1] in marks]


def find_cuts(
    words: Iterable[Span],
    items: Iterable[Span],
    copies: Iterable[Span],
    edges: Iterable[int],
) -> list[int]:
    """The offsets at which a text is cut into tokens, in order."""
    cuts = set[int]()
    for span in words:
        cuts.update(span)
    for begin, end in items:
        cuts.update((begin, end))
        # An item is one token, whatever words are in it.
        cuts.difference_update(range(begin + 1, end))
    # An element may end inside an item, but not inside a copy.
    cuts.update(edges)
    for begin, end in copies:
        cuts.update((begin, end))
    for begin, end in copies:
        cuts.difference_update(range(begin + 1, end))
    return sorted(cuts)


def split_brackets(brackets: Iterable[Pair], words: Iterable[Span]) -> list[Span]:
    """The spans of the signs that are inside words, without their partners, as in `(a)b`."""
    begins = [begin for begin, _ in words]
    spans = list[Span]()
    for pair in brackets:
        # A pair in one word, such as the (s) of file(s), stays part of the word.
        if bisect_right(begins, pair.opening) != bisect_right(begins, pair.closing):
            spans.append((pair.opening, pair.opening + 1))
            spans.append((pair.closing, pair.closing + 1))
    return spans


def items_with_edges(text: str, items: Iterable[Span], edges: frozenset[int]) -> set[str]:
    """The measurements in which an element begins or ends, and the numbers at whose end it does."""
    divided = set[str]()
    for begin, end in items:
        if text[begin].isdigit() and not edges.isdisjoint(range(begin + 1, end)):
            divided.add(text[begin:end])
    for edge in edges:
        number = number_before(text, edge)
        if number:
            divided.add(number)
    return divided


def number_before(text: str, edge: int) -> str:
    """The digits of the number that ends at an edge of an element, or ""."""
    # A window, so that an edge costs the same in a long text.
    before = text[max(0, edge - LONGEST_NUMBER) : edge].rstrip()
    numbers: list[str] = NUMBER.findall(before)
    if not numbers or not before.endswith(numbers[-1]):
        return ""
    return digits_of(numbers[-1])


def digits_of(number: str) -> str:
    """A number without its separators, which depend on the language."""
    return "".join(filter(str.isdigit, number))


def is_divided(item: str, divided: Collection[str]) -> bool:
    """Whether an element of the other side ends inside an item, such as after its number."""
    if item in divided:
        return True
    number = NUMBER.match(item)
    is_measure = number is not None and number.end() < len(item)
    return is_measure and digits_of(number[0]) in divided
