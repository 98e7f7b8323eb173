"""Which terms a translation has, by its text, while a search writes it token by token."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import regex

from nmt.plugins.protection.casing import folded
from nmt.plugins.protection.occurrences import Form, which_are_used
from nmt.text import Tokenizer

LETTER_BY_LETTER = regex.compile(r"[\p{Latin}\p{Cyrillic}\p{Greek}\P{L}]*")
"""Text whose words have no forms other than those listed. Arabic words may have prefixes."""
UNDECODED = "\ufffd"


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
        used = which_are_used(self.rows[index], self.tokenizer.decode(tokens))
        return sum(1 << number for number, is_used in enumerate(used) if is_used)

    @cached_property
    def endings(self) -> "list[Endings]":
        return [Endings(row) for row in self.rows]

    def may_end(self, index: int, token: int) -> bool:
        """Whether a term of a sentence may end within a token."""
        return self.endings[index].may_end_in(self.tokenizer, token)


class Endings:
    """The ends of a sentence's terms, to tell which tokens cannot complete any of them."""

    def __init__(self, terms: Sequence[Sequence[Form]]) -> None:
        texts = {form.text for forms in terms for form in forms}
        self.are_known = all(LETTER_BY_LETTER.fullmatch(text) for text in texts)
        self.language = next((form.language for row in terms for form in row if form.language), "")
        self.terms = {letters_of(text, self.language) for text in texts}
        self.ends = {term[at:] for term in self.terms for at in range(len(term))}
        self.verdicts = dict[int, bool]()

    def may_end_in(self, tokenizer: Tokenizer, token: int) -> bool:
        if token not in self.verdicts:
            self.verdicts[token] = self.judge(text_of_token(tokenizer, token))
        return self.verdicts[token]

    def judge(self, text: str) -> bool:
        if not self.are_known or UNDECODED in text:
            return True
        letters = letters_of(text, self.language)
        if not letters:
            # A mark changes the letter before it.
            return True
        begins_with_end = any(letters[:at] in self.ends for at in range(1, len(letters) + 1))
        return begins_with_end or any(term in letters for term in self.terms)


def letters_of(text: str, language: str) -> str:
    """A text without the case and the marks of its letters, and without blanks around it."""
    letters = unicodedata.normalize("NFKD", folded(text, language))
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).strip()


@lru_cache(100_000)
def text_of_token(tokenizer: Tokenizer, token: int) -> str:
    return tokenizer.decode([token])
