"""Plural forms that a catalog needs in the language of its translation."""

from collections.abc import Collection, Mapping

from nmt.plugins.documents import plural_categories

OTHER = "other"
ZERO = "zero"


def forms_of_target(
    forms: Collection[str],
    language: str,
    keeps_zero: bool = False,
) -> Mapping[str, str]:
    """For each plural category of a language, the category of the source's form to translate.

    The source's form of the same category is translated if there is one, else its form `other`. So
    {"one": ..., "other": ...} becomes {"one": "one", "few": "other", ...}. Categories that the
    language lacks are left out; with `keeps_zero`, the source's form for `zero` stays, as in
    formats where it is for the number 0 in all languages. Without a language, or without a form
    `other`, the forms are those of the source.
    """
    if not language or OTHER not in forms:
        return {form: form for form in forms}
    sources = dict[str, str]()
    if keeps_zero and ZERO in forms:
        sources[ZERO] = ZERO
    for category in plural_categories(language):
        sources[category] = category if category in forms else OTHER
    return sources
