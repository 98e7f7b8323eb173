"""Directives of printf, such as %d, which a translation may number in order to reorder them.

`%d of %d` and `%2$d / %1$d` take the same arguments. A translation numbers all of them or none.
"""

import re

DIRECTIVE = re.compile(
    r"%(?:(?P<number>[1-9]\d?)\$|\[(?P<index>[1-9]\d?)\]|)"
    r"(?P<type>[-+0#',]{0,5}\d{0,9}+(?:\.\d{1,9}+)?(?:hh|ll|[hlzjtL])?[diouxXaAeEfFgGcsSp@v])"
)
"""Without * for a width, which takes another argument."""
WITH_VARIABLE_WIDTH = re.compile(r"%[-+0#' \d$.]{0,12}\*")


def number_of(directive: re.Match[str]) -> int | None:
    number = directive["number"] or directive["index"]
    return int(number) if number else None


def arguments(directives: list[re.Match[str]]) -> list[int] | None:
    """The number of the argument that each directive takes, from 1.

    None unless either all or none are numbered, and each argument occurs once.
    """
    numbers = [number for directive in directives if (number := number_of(directive))]
    if not numbers:
        return list(range(1, len(directives) + 1))
    is_complete = sorted(numbers) == list(range(1, len(directives) + 1))
    return numbers if is_complete else None


def as_in_source(source: str, translation: str) -> str | None:
    """The translation with the source's own directives in place of those for the same arguments.

    None if they do not take the same arguments of the same types, or have the same numbering.
    """
    if WITH_VARIABLE_WIDTH.search(source) or WITH_VARIABLE_WIDTH.search(translation):
        return None
    sides = [[*DIRECTIVE.finditer(text)] for text in (source, translation)]
    originals, others = sides
    if not originals or len(originals) != len(others):
        return None
    if bool(number_of(originals[0])) == bool(number_of(others[0])):
        return None
    taken, taken_here = arguments(originals), arguments(others)
    if taken is None or taken_here is None:
        return None
    if not number_of(others[0]) and taken != taken_here:
        # A translation that only drops the numbers would swap the arguments.
        return None
    by_argument = dict(zip(taken, originals, strict=True))
    text, end = "", 0
    for argument, directive in zip(taken_here, others, strict=True):
        original = by_argument[argument]
        if original["type"] != directive["type"]:
            return None
        text += translation[end : directive.start()] + original[0]
        end = directive.end()
    return text + translation[end:]
