"""Directives of printf, such as %d, which a translation may number in order to reorder them.

`%d of %d` and `%2$d / %1$d` take the same arguments. A translation numbers all of them or none.
"""

import re
from collections.abc import Sequence

DIRECTIVE = re.compile(
    r"%(?:(?P<number>[1-9]\d?)\$|\[(?P<index>[1-9]\d?)\]|)"
    r"(?P<type>[-+0#',]{0,5}\d{0,9}+(?:\.\d{1,9}+)?(?:hh|ll|[hlzjtL])?[diouxXaAeEfFgGcsSp@v])"
)
"""Directives of printf, without * as a width, which takes another argument."""
WITH_VARIABLE_WIDTH = re.compile(r"%[-+0#' \d$.]{0,12}\*")


def number_of(directive: re.Match[str]) -> int | None:
    number = directive["number"] or directive["index"]
    return int(number) if number else None


def arguments(directives: Sequence[re.Match[str]]) -> list[int] | None:
    """The number of the argument that each directive takes, from 1.

    None unless either all or none are numbered, and each argument occurs once.
    """
    in_order = list(range(1, len(directives) + 1))
    numbers = list[int]()
    for directive in directives:
        number = number_of(directive)
        if number:
            numbers.append(number)
    if not numbers:
        return in_order
    return numbers if sorted(numbers) == in_order else None


def as_in_source(source: str, translation: str) -> str | None:
    """The translation with the source's own directives in place of those for the same arguments.

    The result may have them in another order: `%d von %s` for `%s of %d` and `%2$d von %1$s`. None
    if the directives do not take the same arguments of the same types, or if both or neither of the
    texts number them.
    """
    if WITH_VARIABLE_WIDTH.search(source) or WITH_VARIABLE_WIDTH.search(translation):
        return None
    directives = [*DIRECTIVE.finditer(translation)]
    originals = reordered([*DIRECTIVE.finditer(source)], directives)
    if originals is None:
        return None
    text = ""
    end = 0
    for original, directive in zip(originals, directives, strict=True):
        if original["type"] != directive["type"]:
            return None
        text += translation[end : directive.start()] + original[0]
        end = directive.end()
    return text + translation[end:]


def reordered(
    originals: Sequence[re.Match[str]],
    directives: Sequence[re.Match[str]],
) -> list[re.Match[str]] | None:
    """For each directive of a translation, the source's own directive for the same argument.

    For %s and %d in the source and %2$d and %1$s in the translation, these are %d and %s. None if
    the translation must have the source's directives as they are.
    """
    if not originals or len(originals) != len(directives):
        return None
    is_numbered = bool(number_of(directives[0]))
    was_numbered = bool(number_of(originals[0]))
    # Then they can be compared as they are.
    if is_numbered == was_numbered:
        return None
    arguments_before = arguments(originals)
    arguments_after = arguments(directives)
    if arguments_before is None or arguments_after is None:
        return None
    # Without numbers, the directives of a translation take the arguments in their own order.
    if not is_numbered and arguments_before != arguments_after:
        return None
    by_argument = dict(zip(arguments_before, originals, strict=True))
    return [by_argument[argument] for argument in arguments_after]
