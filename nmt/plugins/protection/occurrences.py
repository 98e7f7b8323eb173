"""Where terms occur in texts as words, which may have particles and prefixes joined to them."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

import regex

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
        if not piece[0].isascii():
            for at in range(begin + 1, end):
                if not EXTENDING.match(text[at]) and is_word_border(text, at):
                    spans.append((begin, at))
                    begin = at
        spans.append((begin, end))
    return spans


@lru_cache(100_000)
def pattern_of_term(term: str) -> re.Pattern[str]:
    """A pattern for a term in canonical text.

    Words that need no blank between them may have one.
    """
    words = [term[begin:end] for begin, end in term_words(term)]
    pattern = re.escape(words[0])
    for before, word in pairwise(words):
        is_border = is_word_border(before + word, len(before))
        pattern += (r"\s*" if is_border else r"\s+") + re.escape(word)
    return re.compile(pattern)


def occurrences(term: str, text: str) -> Iterator[Span]:
    """The spans of a term in a text, both in a form to compare."""
    forms = [term]
    if term.startswith(ARABIC_ARTICLE):
        # The article merges with the preposition "for".
        forms.append(f"لل{term.removeprefix(ARABIC_ARTICLE)}")
    for form in forms:
        pattern, at = pattern_of_term(form), 0
        while match := pattern.search(text, at):
            begin, end = match.span()
            is_word = may_begin(text, begin, end) and may_end(text, begin, end, plural=True)
            if is_word or is_part_of_compound(text, begin, end):
                yield begin, end
            at = begin + 1
    yield from occurrences_before_pronouns(term, text)


def occurrences_before_pronouns(term: str, text: str) -> Iterator[Span]:
    """The spans of an Arabic term with pronouns joined to it, if that changes its last letter."""
    form = before_pronouns(term)
    if not form:
        return
    for match in pattern_of_term(form).finditer(text):
        begin, end = match.span()
        has_pronoun = not is_word_border(text, end) and may_end(text, begin, end)
        if has_pronoun and may_begin(text, begin, end):
            yield begin, end


def which_are_used(terms: Sequence[Sequence[str]], translation: str) -> list[bool]:
    """For each term, given by its acceptable forms, whether a translation uses it.

    A word counts for one term only; of equal terms, for the first.
    """
    text = comparable(canonical(translation))
    used = [False] * len(terms)
    taken = list[Span]()
    # A short term must not take a word from a longer one.
    for number in sorted(range(len(terms)), key=lambda number: -max(map(len, terms[number]))):
        free = next(free_occurrences(terms[number], text, taken), None)
        if free:
            taken.append(free)
            used[number] = True
    return used


def free_occurrences(forms: Sequence[str], text: str, taken: Sequence[Span]) -> Iterator[Span]:
    """The spans of the forms of a term that overlap with no span taken."""
    for form in forms:
        for begin, end in occurrences(comparable(form), text):
            if all(end <= first or last <= begin for first, last in taken):
                yield begin, end
