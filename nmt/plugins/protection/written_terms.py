"""The terms in the text of a translation, while a search writes it token by token."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

import regex

from nmt.plugins.protection.casing import folded
from nmt.plugins.protection.occurrences import Form, which_are_used
from nmt.text import Tokenizer

LETTER_BY_LETTER = regex.compile(r"[\p{Latin}\p{Cyrillic}\p{Greek}\P{L}]*")
"""Text whose words have no forms other than those listed. Arabic words may have prefixes."""
UNDECODED = "\ufffd"


class Written(NamedTuple):
    """The text of a hypothesis so far."""

    tokens: tuple[int, ...] = ()
    met: int = 0  # its terms, one bit each
    is_open: bool = False  # a term may end in its last word
    letters: str = ""  # its last letters, in the form of `letters_of`


@dataclass(frozen=True)
class WrittenTerms:
    """Decides by the text of translations which terms they have.

    The tokens do not decide that: they may also cover characters next to a term where there is no
    blank, and particles and prefixes may be joined to it.
    """

    rows: Sequence[Sequence[Sequence[Form]]]
    """For each sentence, the acceptable forms of each term."""
    tokenizer: Tokenizer

    def of(self, indices: Sequence[int]) -> "WrittenTerms":
        return WrittenTerms([self.rows[index] for index in indices], self.tokenizer)

    def met(self, index: int, tokens: Sequence[int]) -> int:
        """The terms of a sentence that a translation has, one bit each."""
        # The same function judges finished translations, so search and report always agree.
        used = which_are_used(self.rows[index], self.tokenizer.decode(tokens))
        met = 0
        for number, is_used in enumerate(used):
            if is_used:
                met |= 1 << number
        return met

    @cached_property
    def endings(self) -> "list[Endings]":
        return [Endings(row) for row in self.rows]

    def after(self, index: int, written: Written, token: int, continues_word: bool) -> Written:
        """The text written so far plus another token, which may continue the last word.

        Reading the text again is slow. It is necessary only if the token may change which terms the
        text has.
        """
        endings = self.endings[index]
        text = text_of_token(self.tokenizer, token)
        tokens = (*written.tokens, token)
        may_end = endings.may_end_in(text, written.letters)
        # A term that has just ended may turn into another word, so the text is read until its word
        # ends.
        is_open = may_end or (written.is_open and continues_word)
        met = self.met(index, tokens) if is_open else written.met
        letters = endings.letters_after(text, written.letters)
        return Written(tokens, met, is_open, letters)


class Endings:
    """The terms of a sentence, to find which tokens cannot complete any term.

    Texts are compared by their letters, without case, marks and blanks: where the letters of no
    term end, no term does.
    """

    def __init__(self, terms: Sequence[Sequence[Form]]) -> None:
        forms = [*chain.from_iterable(terms)]
        # All forms are of the target language; forms that keep their case name none.
        languages = [form.language for form in forms if form.language]
        self.language = languages[0] if languages else ""
        self.terms = {letters_of(form.text, self.language) for form in forms}
        self.longest = max(map(len, self.terms), default=0)
        # A term of marks alone has no letters to compare, so any token may end it.
        has_letters = all(self.terms)
        self.are_known = has_letters and all(
            LETTER_BY_LETTER.fullmatch(form.text) for form in forms
        )

    def may_end_in(self, text: str, letters: str) -> bool:
        """Whether a term may end in the text of a token after these `letters`."""
        # In doubt, read the text: a wrong True costs time, a wrong False would miss a term.
        if not self.are_known or UNDECODED in letters or UNDECODED in text:
            return True
        new = letters_of(text, self.language)
        if not new:
            # A mark changes the letter before it, but a blank changes nothing.
            return bool(text.strip())
        both = letters + new
        for term in self.terms:
            # Only places where the term ends within the new letters; earlier ones were decided
            # before.
            first_place = max(0, len(letters) - len(term) + 1)
            if both.find(term, first_place) >= 0:
                return True
        return False

    def letters_after(self, text: str, letters: str) -> str:
        """The last letters that `may_end_in` needs after the text of another token.

        If the token is a part of a character, the sign for unknown characters is among them.
        """
        new = UNDECODED if UNDECODED in text else letters_of(text, self.language)
        both = letters + new
        return both[max(0, len(both) - self.longest) :]


@lru_cache(100_000)
def letters_of(text: str, language: str) -> str:
    """The letters and signs of a text, without their case and marks, and without blanks."""
    # Coarser than the comparison of terms, so that no term is missed.
    letters = unicodedata.normalize("NFKD", folded(text, language))
    return "".join(letter for letter in letters if is_compared(letter))


def is_compared(letter: str) -> bool:
    """Whether a character is not a mark, a blank or invisible."""
    if unicodedata.combining(letter) or letter.isspace():
        return False
    return not unicodedata.category(letter).startswith("C")


@lru_cache(100_000)
def text_of_token(tokenizer: Tokenizer, token: int) -> str:
    return tokenizer.decode([token])
