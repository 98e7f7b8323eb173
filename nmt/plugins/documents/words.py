"""The words, punctuation and copies in a sentence, and where they may be torn apart."""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from itertools import pairwise

import regex

from nmt.plugins.protection.items import COPY, USUAL, Finder
from nmt.text import (
    DEPENDENT,
    HIRAGANA,
    INFLECTED_WORD,
    KATAKANA_WORD,
    LEADING_VOWEL,
    NO_BLANK_BESIDE,
    PARTICLE,
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
    | (?: {LEADING_VOWEL} (?={ONE}) )? {SYLLABLE} {DEPENDENT}*+
    | {LETTER} (?: (?: (?!{ONE}) \S )* {LETTER} )?
    | (?!{ONE}) (?=[^\s\w]) (\X) \1*+  # a punctuation mark or an emoji
    """,
    regex.VERBOSE,
)
HAS_NO_BLANKS = regex.compile(f"{ONE}|{NO_BLANK_BESIDE.pattern}")
IN_HIRAGANA = regex.compile(rf"{HIRAGANA}+")
NEVER_BEFORE_BREAK = regex.compile(r"[\p{Ps}\p{Pi}]$")
NEVER_AFTER_BREAK = regex.compile(r"[\p{Pe}\p{Pf}\p{Po}]")
PUNCTUATION = regex.compile(r"\p{P}$")
FIRST_DIGITS = regex.compile(r"\d+")
DETOUR = 4
"""How many tokens away a line break goes to fall between phrases."""
NEVER = 1000
"""The detour around a place where a line must not break."""


def first_digits(item: str) -> str:
    """The digits at the beginning of an item; "" if it begins otherwise."""
    digits = FIRST_DIGITS.match(item)
    return digits[0] if digits else ""


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

        `edges` are those of elements, and `divided` the first digits of measurements of which an
        element has only a part on the other side: also here, they are not one word. Their units
        may be written otherwise.
        """
        self.text = text
        self.chunks = word_spans(text)
        edges = {*edges}
        copies = [copy.span() for copy in COPY.finditer(text) if copy[1] in marks] if marks else []
        stretches = Finder([USUAL]).stretches(text)
        items = [span for span in stretches if first_digits(text[slice(*span)]) not in divided]
        in_items = set[int]()
        for begin, end in items:
            in_items.update(range(begin + 1, end))
        self.divided = {
            first_digits(text[begin:end])
            for begin, end in items
            if first_digits(text[begin:end]) and not edges.isdisjoint(range(begin + 1, end))
        }
        # What follows may be a unit on the other side only, such as B for bytes.
        numbers = FIRST_DIGITS.finditer(text)
        self.divided.update(number[0] for number in numbers if number.end() in edges)
        words = [word.span() for word in WORD.finditer(text)]
        cuts = {edge for span in [*items, *words] for edge in span}
        cuts = (cuts - in_items).union(edges, *copies)
        for begin, end in copies:
            cuts.difference_update(range(begin + 1, end))
        spans = [(begin, end) for begin, end in pairwise(sorted(cuts)) if text[begin:end].strip()]
        self.starts = [begin for begin, _ in spans]
        self.ends = [end for _, end in spans]
        begins = {begin for begin, _ in copies}
        self.copies = [token for token, begin in enumerate(self.starts) if begin in begins]

    def between(self, begin: int, end: int) -> range:
        """The tokens that overlap a span."""
        return range(bisect_right(self.ends, begin), bisect_left(self.starts, end))

    def of(self, token: int) -> str:
        return self.text[self.starts[token] : self.ends[token]]

    def is_word(self, token: int) -> bool:
        return WORD_CHARACTER.search(self.of(token)) is not None

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

        In scripts without blanks, lines break after punctuation and between phrases, which in
        Japanese begin where hiragana end.
        """
        before = self.of(gap - 1)
        after = self.of(gap)
        if self.ends[gap - 1] < self.starts[gap] or not HAS_NO_BLANKS.search(before + after):
            return 0
        if NEVER_BEFORE_BREAK.search(before) or NEVER_AFTER_BREAK.match(after):
            return NEVER
        ends_phrase = IN_HIRAGANA.match(before[-1]) and not IN_HIRAGANA.match(after[0])
        return 0 if PUNCTUATION.search(before) or ends_phrase else DETOUR

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
