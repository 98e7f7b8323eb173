"""Find terms in texts as words, which may have particles and prefixes joined to them."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import regex

from nmt.plugins.protection.casing import in_any_case
from nmt.text import (
    ARABIC_ARTICLE,
    EXTENDING,
    before_pronouns,
    canonical,
    comparable,
    is_part_of_compound,
    is_word_border,
    may_begin,
    may_end,
)

APOSTROPHE = "\u02bc"  # a letter for Unicode
# Joiners (U+200C, U+200D) are part of words in Persian and Indic scripts. Other invisible
# characters (Cf) are not signs that a term could contain.
PIECE = regex.compile(
    rf"[[\p{{L}}\p{{M}}\p{{N}}_\u200c\u200d]--{APOSTROPHE}]+|{APOSTROPHE}"
    r"|[^\p{L}\p{M}\p{N}_\s\p{Cf}]",
    regex.V1,
)
"""A run of letters and digits, or any other single sign."""
Span = tuple[int, int]


def term_words(text: str) -> list[Span]:
    """The spans of a text's words and signs: the parts of terms.

    In scripts without blanks, each grapheme cluster is a word, but katakana is not divided.
    """
    spans = list[Span]()
    for piece in PIECE.finditer(text):
        begin, end = piece.span()
        # ASCII runs have no border within them, and most text is ASCII.
        if not piece[0].isascii():
            for at in range(begin + 1, end):
                if not EXTENDING.match(text[at]) and is_word_border(text, at):
                    spans.append((begin, at))
                    begin = at
        spans.append((begin, end))
    return spans


class Form(NamedTuple):
    """A form of a term, as it is written or `in_any_case` of its language."""

    text: str
    in_any_case: bool = False
    language: str = ""


@lru_cache(100_000)
def pattern_of_term(form: Form) -> re.Pattern[str]:
    """A pattern for a term in canonical text.

    Words that need no blank between them may have one.
    """
    # By words and not as a whole, because the blanks between them may differ.
    words = [form.text[begin:end] for begin, end in term_words(form.text)]
    pattern = pattern_of_word(words[0], form)
    for before, word in pairwise(words):
        needs_no_blank = is_word_border(before + word, len(before))
        pattern += r"\s*" if needs_no_blank else r"\s+"
        pattern += pattern_of_word(word, form)
    return re.compile(pattern)


def pattern_of_word(word: str, form: Form) -> str:
    return in_any_case(word, form.language) if form.in_any_case else re.escape(word)


@lru_cache(100_000)
def patterns_of_forms(form: Form) -> tuple[list[re.Pattern[str]], re.Pattern[str] | None]:
    """The patterns of a term in a form to compare, and of the form that it has before pronouns."""
    # The text is compared in the same form, for example without vowel points.
    form = form._replace(text=comparable(form.text))
    patterns = [pattern_of_term(form)]
    if form.text.startswith(ARABIC_ARTICLE):
        # The article merges with the preposition "for".
        merged = f"لل{form.text.removeprefix(ARABIC_ARTICLE)}"
        patterns.append(pattern_of_term(form._replace(text=merged)))
    text = before_pronouns(form.text)
    if text is None:
        return patterns, None
    return patterns, pattern_of_term(form._replace(text=text))


def occurrences(form: Form, text: str) -> Iterator[Span]:
    """The spans of a term in a text in a form to compare."""
    patterns, before_pronoun = patterns_of_forms(form)
    for pattern in patterns:
        at = 0
        # Not `finditer`: an occurrence within a longer word must not hide one that begins inside
        # it.
        while match := pattern.search(text, at):
            begin, end = match.span()
            is_word = may_begin(text, begin, end) and may_end(text, begin, end, plural=True)
            # Compounds count in translations: the Korean or Japanese translation has the term,
            # though not as a separate word.
            if is_word or is_part_of_compound(text, begin, end):
                yield begin, end
            at = begin + 1
    if before_pronoun:
        yield from occurrences_before_pronouns(before_pronoun, text)


def occurrences_before_pronouns(pattern: re.Pattern[str], text: str) -> Iterator[Span]:
    """The spans of an Arabic term with pronouns joined to it, if that changes its last letter."""
    for match in pattern.finditer(text):
        begin, end = match.span()
        # Without a pronoun, the changed letter makes it another word.
        has_pronoun = not is_word_border(text, end) and may_end(text, begin, end)
        if has_pronoun and may_begin(text, begin, end):
            yield begin, end


def which_are_used(terms: Sequence[Sequence[Form]], translation: str) -> list[bool]:
    """For each term, given by its acceptable forms, whether a translation uses it.

    A word counts for one term only; of equal terms, for the first.
    """
    text = comparable(canonical(translation))
    used = [False] * len(terms)
    taken = list[Span]()
    # A short term must not take a word from a longer one.
    for number in longest_first(terms):
        for free in free_occurrences(terms[number], text, taken):
            taken.append(free)
            used[number] = True
            break
    return used


def longest_first(terms: Sequence[Sequence[Form]]) -> list[int]:
    """The numbers of the terms, the longest first."""
    lengths = list[int]()
    for forms in terms:
        lengths.append(max(len(form.text) for form in forms))
    return sorted(range(len(terms)), key=lambda number: -lengths[number])


def free_occurrences(forms: Sequence[Form], text: str, taken: Sequence[Span]) -> Iterator[Span]:
    """The spans of the forms of a term that overlap with no span taken."""
    for form in forms:
        for begin, end in occurrences(form, text):
            if all(end <= first or last <= begin for first, last in taken):
                yield begin, end
