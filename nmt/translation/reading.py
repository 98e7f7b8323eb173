"""Read source text with the characters that a model has learned."""

import re
from collections.abc import Callable
from functools import cached_property

import regex

from nmt.text import Tokenizer, clusters, origins, single_blanks
from nmt.translation.limits import Limits

# Invisible characters, such as joiners and variation selectors (Unicode's UAX #44).
IGNORABLE = regex.compile(r"\p{Default_Ignorable_Code_Point}")
EMOJI = regex.compile(r"\p{Extended_Pictographic}")
BREAKING = re.compile("[\t-\r\x1c-\x1f\x85\u2028\u2029]")
"""White space that would break a line, or a row of a table."""
PLAIN_SIGNS = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2010": "-",
    "\u2011": "-",
    "\u2013": "-",
    "\u2014": "-",
    "\u2026": "...",
}
"""Plain signs that a model may know instead of typographic ones."""


class SourceReader:
    """Replaces characters that a model has not learned by similar ones that it has learned."""

    def __init__(self, tokenizer: Tokenizer, limits: Limits) -> None:
        self.tokenizer = tokenizer
        self.limits = limits

    @cached_property
    def plain_signs(self) -> dict[int, str]:
        """Plain signs to read instead of typographic ones that the model does not know."""
        characters = self.limits.characters
        if characters is None:
            return {}
        signs = dict[int, str]()
        for sign, plain in PLAIN_SIGNS.items():
            if sign not in characters and characters.issuperset(plain):
                signs[ord(sign)] = plain
        return signs

    @cached_property
    def learned(self) -> frozenset[str]:
        """The characters that occur often enough in the training sources."""
        characters = self.limits.characters or frozenset()
        return characters - self.limits.rare

    def in_learned_case(self, text: str) -> str:
        """The text, with letters that the model has learned only in the other case in that case."""
        cases = dict[int, str]()
        for letter in set(text) - self.learned:
            # One of the two is the letter itself, which is not learned.
            for other in (letter.lower(), letter.upper()):
                if other in self.learned:
                    cases[ord(letter)] = other
        return text.translate(cases) if cases else text

    def clean(self, text: str) -> str:
        """A text as the model reads it, without invisible characters that it does not know."""
        text = self.tokenizer.clean(text)
        characters = self.limits.characters
        if characters is None:
            return text
        text = self.in_learned_case(text)
        # Nothing below changes ASCII, and most English lines end here.
        if text.isascii():
            return text
        text = text.translate(self.plain_signs)
        unknown = {sign for sign in IGNORABLE.findall(text) if sign not in characters}
        if not unknown:
            return text
        pieces = list[str]()
        # By grapheme cluster, because only the neighbors
        # of an invisible character tell its purpose.
        for begin, end in clusters(text):
            cluster = text[begin:end]
            # In an emoji, such characters are joiners, or select a picture instead of a sign.
            if not unknown.isdisjoint(cluster) and not EMOJI.search(cluster):
                cluster = "".join(sign for sign in cluster if sign not in unknown)
            pieces.append(cluster)
        # A cluster may have become empty between two spaces.
        return single_blanks("".join(pieces))


class ReadLine:
    """A line as the model reads it: `text` is the normalized form of `typed`."""

    def __init__(self, typed: str, normalize: Callable[[str], str]) -> None:
        self.typed = typed
        self.normalize = normalize
        self.text = normalize(typed)

    @cached_property
    def origins(self) -> list[int] | None:
        """For each character of `text`, and for its end, its index in `typed`.

        None if both are the same, or if the origin of a character cannot be determined.
        """
        if self.text == self.typed:
            return None
        return origins(self.typed, self.normalize)

    def as_typed(self, begin: int, end: int) -> str:
        """The text that the user typed for a span of `text`, on a single line."""
        if self.origins:
            typed = self.typed[self.origins[begin] : self.origins[end]]
        else:
            typed = self.text[begin:end]
        # The output has one line per input line, so a copy must not bring a line break into it.
        return BREAKING.sub(" ", typed).strip()
