"""Plural forms (CLDR) that the language of a translation needs and ICU messages lack."""

from collections.abc import Iterator, Sequence
from functools import cache

from babel import Locale, UnknownLocaleError
from babel.core import parse_locale

from nmt.plugins.documents.icu import CATEGORIES, PLURAL, Argument, Message
from nmt.text import language_tag

NUMBERS = range(1000)  # from which the integers that belong to a category are known


def lacking(messages: Sequence[Message], language: str) -> tuple[str, int]:
    """A notice about messages that lack plural forms of a language, and their number."""
    lacks = 0
    missing = set[str]()
    for message in messages:
        forms = missing_forms(message, language)
        if forms:
            lacks += 1
            missing |= forms
    names = ", ".join(form for form in CATEGORIES if form in missing)
    return f"messages without plural forms that {language} has ({names})", lacks


def missing_forms(message: Message, language: str) -> set[str]:
    """The plural forms that a language has and that a plural of the message lacks."""
    missing = set[str]()
    for argument in choices(message):
        if argument.kind in PLURAL:
            missing |= missing_forms_of(argument, language)
    return missing


def missing_forms_of(argument: Argument, language: str) -> set[str]:
    """The plural forms that a language has and that a plural lacks."""
    missing = set[str]()
    for form, numbers in numbers_of_forms(language, argument.kind).items():
        # =1 can stand for a category to which only 1 belongs.
        explicit = {f"={number}" for number in numbers}
        has_numbers = bool(numbers) and explicit <= argument.branches.keys()
        if form not in argument.branches and not has_numbers:
            missing.add(form)
    return missing


def choices(message: Message) -> Iterator[Argument]:
    """The arguments of a message with branches, including arguments inside branches."""
    for argument in message.arguments:
        if argument.branches:
            yield argument
            for branch in argument.branches.values():
                yield from choices(branch)


def plural_categories(language: str) -> tuple[str, ...]:
    """The CLDR plural categories of a language for cardinal numbers, such as ("one", "other").

    They are in the order of CLDR, and "other" is the last one. Only "other" if the language is
    unknown.
    """
    forms = numbers_of_forms(language, "plural")
    return (*(form for form in CATEGORIES if form in forms), "other")


@cache
def numbers_of_forms(language: str, kind: str) -> dict[str, list[int]]:
    """The plural forms of a language besides "other", and the small integers of each."""
    # NLLB's codes have three letters, such as deu_Latn, which Babel does not know.
    code = language_tag(language) or language
    try:
        locale = Locale(parse_locale(code.replace("-", "_"))[0])
    # Without rules for the language, no form is missing.
    except (ValueError, UnknownLocaleError):
        return {}
    rule = locale.plural_form if kind == "plural" else locale.ordinal_form
    # Babel does not list "other", which every message has.
    numbers: dict[str, list[int]] = {form: [] for form in CATEGORIES if form in rule.tags}
    for number in NUMBERS:
        form = rule(number)
        if form in numbers:
            numbers[form].append(number)
    return numbers
