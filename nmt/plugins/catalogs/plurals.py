"""Plural forms that a catalog needs in the language of its translation."""

from collections.abc import Collection, Mapping

from nmt.items import USUAL, Finder
from nmt.plugins.documents import numbers_of_forms, plural_categories

ONE = "one"
OTHER = "other"
ZERO = "zero"


def forms_of_target(
    forms: Collection[str],
    language: str,
    keeps_zero: bool = False,
    is_exactly_one: bool = False,
) -> Mapping[str, str]:
    """For each plural category of a language, the category of the source's form to translate.

    The source's form of the same category is translated if there is one, else its form `other`. So
    {"one": ..., "other": ...} becomes {"one": "one", "few": "other", ...}. Categories that the
    language lacks are left out; with `keeps_zero`, the source's form for `zero` stays, as in
    formats where it is for the number 0 in all languages. With `is_exactly_one`, the source's form
    `one` is for the number 1 only, so `other` is translated if the language also uses `one` for
    other numbers, as Russian does for 21. Without a language, or without a form `other`, the forms
    are those of the source.
    """
    if not language or OTHER not in forms:
        return {form: form for form in forms}
    sources = dict[str, str]()
    if keeps_zero and ZERO in forms:
        sources[ZERO] = ZERO
    for category in plural_categories(language):
        sources[category] = category if category in forms else OTHER
    if ONE in sources and is_exactly_one and numbers_of_forms(language, "plural")[ONE] != [1]:
        sources[ONE] = OTHER
    return sources


def sources_of_forms(
    texts: Mapping[str, str],
    language: str,
    keeps_zero: bool = False,
) -> Mapping[str, str]:
    """For each plural category of a language, the form of the source to translate.

    `texts` are the forms of the source.
    """
    is_exactly_one = omits_number(texts.get(ONE, ""), texts.get(OTHER, ""))
    return forms_of_target(texts, language, keeps_zero, is_exactly_one)


def omits_number(one: str, other: str) -> bool:
    """Whether the form `one` has fewer placeholders than `other`, as `One file` and `%d files`."""
    return placeholders(one) < placeholders(other)


def placeholders(text: str) -> int:
    items = [text[begin] for begin, _ in Finder([USUAL]).stretches(text)]
    return sum(sign in "%{$" for sign in items)
