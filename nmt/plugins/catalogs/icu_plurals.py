"""ICU messages with the plural forms of the language that they are translated into."""

from nmt.plugins.catalogs.plurals import OTHER
from nmt.plugins.documents import (
    CATEGORIES,
    PLURAL,
    Argument,
    UnknownSyntax,
    choices,
    is_message,
    missing_forms_of,
    parse_message,
)


def with_forms_of(text: str, language: str) -> str:
    """A message with all plural forms of a language: those that it lacks are copies of `other`.

    A plural whose form `other` contains another plural stays as it is.
    """
    if not language or not is_message(text):
        return text
    try:
        message = parse_message(text)
    except UnknownSyntax:
        return text
    insertions = list[tuple[int, str]]()
    for argument in choices(message):
        if argument.kind in PLURAL and is_simple(argument):
            insertions += copies_of_other(text, argument, language)
    # From the end, so that the offsets before it stay right.
    for at, copies in sorted(insertions, reverse=True):
        text = text[:at] + copies + text[at:]
    return text


def is_simple(argument: Argument) -> bool:
    """Whether copies of the form `other` cannot multiply: it contains no other choice."""
    other = argument.branches.get(OTHER)
    return other is not None and not any(choices(other))


def copies_of_other(text: str, argument: Argument, language: str) -> list[tuple[int, str]]:
    """The missing forms of a plural, and where to insert them: before its form `other`."""
    other = argument.branches[OTHER]
    # The form begins with its name and a brace, such as `other {`.
    begin = text.rindex(OTHER, argument.begin, other.begin)
    branch = text[begin : other.end + 1].removeprefix(OTHER)
    missing = missing_forms_of(argument, language)
    copies = [form + branch + " " for form in CATEGORIES if form in missing]
    return [(begin, "".join(copies))] if copies else []
