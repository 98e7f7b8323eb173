"""Terms of a glossary: how a line writes them, and the texts that a translation may use."""

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from nmt.plugins.protection.casing import (
    WITH_CAPITAL_NOUNS,
    capitalized,
    in_capitals,
    is_in_capitals,
    is_one_of,
    uncapitalized,
)
from nmt.plugins.protection.occurrences import Form, term_words, which_are_used


class Casing(Enum):
    """How a line writes a term, compared with the glossary."""

    AS_LISTED = "as listed"
    CAPITALIZED = "begins with a capital"
    UNCAPITALIZED = "begins with a small letter"
    IN_CAPITALS = "in capitals"
    IN_LINE_OF_CAPITALS = "in capitals, like its line"


class Term(NamedTuple):
    """A term and its translations, all acceptable.

    With `case`, only this capitalization matches.
    """

    source: str
    targets: tuple[str, ...]
    case: bool = False

    def written(self, capital: bool, language: str = "") -> list[str]:
        """The translations, capitalized if `capital`.

        Terms to keep and mixed-case words (iPhone) stay as they are.
        """
        written = list[str]()
        for text in self.targets:
            # Only words in small letters change: the capital of iPhone would be an error.
            if capital and first_word(text).islower() and text != self.source:
                text = capitalized(text, language)
            written.append(text)
        return written

    def has_optional_capital(self, text: str, language: str) -> bool:
        """Whether a translation begins with a capital only because lists of terms often do."""
        if self.case or text == self.source or is_one_of(language, WITH_CAPITAL_NOUNS):
            return False
        return first_word(text).istitle()

    def without_capital(self, language: str) -> list[str]:
        """The translations, where possible with a small letter at the beginning."""
        written = list[str]()
        for text in self.targets:
            if self.has_optional_capital(text, language):
                text = uncapitalized(text, language)
            written.append(text)
        return written

    def in_capitals(self, language: str) -> list[str]:
        """The translations in a line of capitals; a term to keep may also stay as it is."""
        if self.case:
            return list(self.targets)
        written = [in_capitals(text, language) for text in self.targets]
        return written + [text for text in self.targets if text == self.source]

    def acceptable(self, language: str, of_capitals: bool) -> list[Form]:
        """The forms that a translation may use, in a line of capitals if `of_capitals`."""
        # All that `texts_of` demands must be acceptable; otherwise, the search would write a term
        # and not count it.
        texts = self.written(capital=False)
        texts += self.written(capital=True, language=language)
        texts += self.without_capital(language)
        if of_capitals:
            texts += self.in_capitals(language)
        forms = [Form(text) for text in texts]
        for text in self.targets:
            # A correct translation may write a term in another case than the glossary, such as
            # "L'assistant Diagramme". Forcing the term in again would repeat it.
            if not self.case and text != self.source:
                forms.append(Form(text, in_any_case=True, language=language))
        return [*dict.fromkeys(forms)]


def first_word(text: str) -> str:
    begin, end = term_words(text)[0]
    return text[begin:end]


class Match(NamedTuple):
    """A term in a line, from character `begin` to `end`."""

    term: Term
    begin: int
    end: int
    casing: Casing

    def acceptable(self, language: str = "") -> list[Form]:
        """The forms that a translation into a language may use."""
        return acceptable_forms(self.term, language, self.casing is Casing.IN_LINE_OF_CAPITALS)


@lru_cache(10_000)
def acceptable_forms(term: Term, language: str, of_capitals: bool) -> list[Form]:
    return term.acceptable(language, of_capitals)


def casing_of(written: str, term: Term) -> Casing:
    """How a line writes a term, apart from the case of the line."""
    # A term listed in capitals, such as USB, says nothing about the line.
    if is_in_capitals(written) and not is_in_capitals(term.source):
        return Casing.IN_CAPITALS
    if written[:1].isupper() and term.source[0].islower():
        return Casing.CAPITALIZED
    if written[:1].islower() and term.source[0].isupper():
        return Casing.UNCAPITALIZED
    return Casing.AS_LISTED


def with_case_of_line(matches: Sequence[Match], line: str) -> list[Match]:
    """The matches, marked if their line is in capitals apart from abbreviations in the glossary."""
    # Abbreviations are in capitals in any line, so they must not count as its case.
    rest = line
    for match in matches:
        if is_in_capitals(match.term.source):
            length = match.end - match.begin
            rest = rest[: match.begin] + " " * length + rest[match.end :]
    if not is_in_capitals(rest):
        return list(matches)
    return [match._replace(casing=Casing.IN_LINE_OF_CAPITALS) for match in matches]


def texts_of(match: Match, capital: bool, language: str) -> tuple[list[str], list[str]]:
    """The texts of a term at the beginning of a translation, and elsewhere.

    The search chooses among them where the line does not decide.
    """
    term = match.term
    plain = term.written(capital=False)
    with_capital = term.written(capital=True, language=language)
    # From the surest case to the least sure one: where the line does not show which case it means,
    # the search gets several texts.
    if match.casing is Casing.IN_LINE_OF_CAPITALS:
        in_capitals = term.in_capitals(language)
        return in_capitals, in_capitals
    if match.casing is Casing.UNCAPITALIZED:
        small = [*dict.fromkeys(term.without_capital(language) + plain)]
        return (with_capital if capital else small), small
    if match.casing is Casing.AS_LISTED:
        return (with_capital if capital else plain), plain
    elsewhere = plain + with_capital
    if match.casing is Casing.IN_CAPITALS:
        elsewhere += term.in_capitals(language)
        return elsewhere, elsewhere
    return (with_capital if capital else elsewhere), elsewhere


def judge(matches: Sequence[Match], translation: str, language: str = "") -> list[bool]:
    """For each term, whether a translation into a language uses it.

    A word counts for one term only.
    """
    forms = [match.acceptable(language) for match in matches]
    return which_are_used(forms, translation)
