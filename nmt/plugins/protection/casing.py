"""Capital and small letters of words, as the languages of the words write them."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from nmt.text import comparable, subtags

WITH_DOTLESS_I = ("tr", "az")
"""Languages in which I is the capital of \u0131, and \u0130 that of i."""
WITH_CAPITAL_NOUNS = ("de", "lb")
"""Languages in which a capital distinguishes words."""
WITH_CAPITAL_IJ = ("nl",)
"""Languages in which the digraph ij has a capital of two letters."""
WITHOUT_ACCENTS_ON_CAPITALS = ("el",)
ACCENT = "\u0301"
DIAERESIS = "\u0308"
I_WITH_DOT_ABOVE = "i\u0307"
"""The lowercase form of \u0130 by Unicode's rules."""
SEPARATE_VOWELS = re.compile(f"([\u03b1\u03b5\u03bf\u03c5]){ACCENT}([\u03b9\u03c5])(?!{DIAERESIS})")
"""Greek vowels that only the accent on the first one keeps from being read as one sound."""
SIGMAS = "\u03c3\u03c2"


def is_one_of(language: str, languages: Sequence[str]) -> bool:
    """Whether a language code, "" for an unknown one, is of one of some languages."""
    return bool(language) and subtags(language).language in languages


def folded(word: str, language: str) -> str:
    """A word of a language in a form to compare, without its case."""
    word = comparable(word)
    if is_one_of(language, WITH_DOTLESS_I):
        # Before `casefold`, which would make i of I and a dotted i of U+0130 in every language.
        word = word.replace("I", "\u0131").replace("\u0130", "i")
    return word.casefold().replace(I_WITH_DOT_ABOVE, "i")


def capitalized(text: str, language: str) -> str:
    """The text with a capital at its beginning, if sentences of its script begin with one."""
    if text.startswith("i") and is_one_of(language, WITH_DOTLESS_I):
        return f"\u0130{text[1:]}"
    if text.startswith("ij") and is_one_of(language, WITH_CAPITAL_IJ):
        return f"IJ{text[2:]}"
    # The capitals of Georgian are for text in capitals only; `title` knows that.
    return text[:1].title() + text[1:]


def uncapitalized(text: str, language: str) -> str:
    """The text with a small letter at its beginning."""
    if text.startswith("I") and is_one_of(language, WITH_DOTLESS_I):
        return f"\u0131{text[1:]}"
    if text.startswith("IJ") and is_one_of(language, WITH_CAPITAL_IJ):
        return f"ij{text[2:]}"
    first = text[:1].lower().replace(I_WITH_DOT_ABOVE, "i")
    return first + text[1:]


def in_capitals(text: str, language: str) -> str:
    """The text as headings in capitals write it."""
    if is_one_of(language, WITH_DOTLESS_I):
        # `upper` would make I of both letters.
        text = text.replace("i", "\u0130")
    if is_one_of(language, WITHOUT_ACCENTS_ON_CAPITALS):
        # Decomposed, so that the accent is a character of its own. "Μάιος" becomes "ΜΑΪΟΣ": without
        # accent or diaeresis, its two vowels would be read as one sound.
        letters = unicodedata.normalize("NFD", text)
        letters = SEPARATE_VOWELS.sub(rf"\1\2{DIAERESIS}", letters)
        text = unicodedata.normalize("NFC", letters.replace(ACCENT, ""))
    return text.upper()


def is_in_capitals(text: str) -> bool:
    """Whether the letters of a text, more than one, are all capitals."""
    capitals = sum(map(str.isupper, text))
    # A single capital, as in "I" or "Vitamin C", shows no case.
    return text.isupper() and capitals > 1


@lru_cache(10_000)
def in_any_case(word: str, language: str) -> str:
    """A regular expression for a word in every case in which a text may write it.

    Abbreviations and words such as iPhone have one case only. Where a capital distinguishes words,
    a word that begins with one keeps it.
    """
    first = word[0]
    rest = word[1:]
    has_inner_capital = rest != rest.lower()
    is_single_capital = len(word) == 1 and word.isupper()
    if has_inner_capital or is_single_capital:
        return re.escape(word)
    if first.isupper() and is_one_of(language, WITH_CAPITAL_NOUNS):
        # German "Essen" (food) is not "essen" (to eat); the other letters may be capitals in a
        # heading.
        return re.escape(first) + any_case_of_letters(rest, language)
    return any_case_of_letters(word, language)


def any_case_of_letters(text: str, language: str) -> str:
    return "".join(any_case_of_letter(letter, language) for letter in text)


def any_case_of_letter(letter: str, language: str) -> str:
    small = uncapitalized(letter, language)
    forms = {
        letter,
        small,
        capitalized(letter, language),
        in_capitals(letter, language),
    }
    if not is_one_of(language, WITH_DOTLESS_I):
        # With its accent, a Greek capital begins a sentence.
        forms.add(letter.upper())
    # The same letter in the middle and at the end of a word, and an ending may follow.
    if small in SIGMAS:
        forms.update(SIGMAS)
    # `upper` gives SS; the capital sharp s (U+1E9E) is the other way to write it.
    if small == "\u00df":
        forms.add("\u1e9e")
    alternatives = "|".join(re.escape(form) for form in sorted(forms))
    return f"(?:{alternatives})" if len(forms) > 1 else alternatives
