"""Placeholders in a text, such as `%s`, `{name}` and tags, and whether a translation has them."""

import re
from collections import Counter
from collections.abc import Iterator

from nmt.text import AMBIGUOUS, BLOCKS, INLINE, SEPARATORS

DIRECTIVE = (
    r"%(?P<key>\(\w+\)|\d+\$|\{\w+\})?"
    r"(?P<format>[-+0#]*\d*(?:\.\d+)?(?:hh?|ll?|[qjzt])?[sdifuxXgGcr@])"
)
"""A directive of printf, such as %s, %1$s, %(name)d and %ld."""
# The bounds and lookbehinds keep the time proportional to a line's length, even for thousands of
# letters or braces. Letters of other scripts may be next to a placeholder.
BRACES = r"\$?(?<!\{)\{++[^{}\s]*+\}+|\{\{ [^{}]{1,60} \}\}"
"""{name}, {{name}}, ${name} and {{ name }}."""
ATTRIBUTE = r"[\w:-]+=(?:\"[^\"]*\"|'[^']*'|[^\s>\"']+)"
TAG = rf"</?(?P<tag>[A-Za-z][\w-]*)(?:\s+{ATTRIBUTE})*\s*/?>"
PLACEHOLDER = re.compile(f"{BRACES}|{DIRECTIVE}|{TAG}")
APART = re.compile(rf"{BRACES}|(?<![A-Za-z0-9_]){DIRECTIVE}(?![A-Za-z0-9_])|{TAG}")
"""A placeholder that is not part of a Latin word. `100%sure` has no directive, but `ID%s` may have
one: scripts without blanks write it for `ID %s`."""
ELEMENTS = (INLINE | SEPARATORS | BLOCKS | {"wbr"}) - AMBIGUOUS
NUMBER_IN_BRACES = re.compile(r"\{\d+\}")
FIRST_IN_BRACES = 0
FIRST_IN_PRINTF = 1
"""The number of the first argument: {0} is the same as the first {}, and %1$s as the first %s."""


def are_numbered(text: str) -> bool:
    """Whether placeholders such as %2$s or {0} state the argument that they stand for."""
    for match in PLACEHOLDER.finditer(text):
        key = match["key"] or ""
        if key.endswith("$") or NUMBER_IN_BRACES.fullmatch(match[0]):
            return True
    return False


def names_of(matches: list["re.Match[str]"], is_numbering: bool) -> Iterator[str]:
    """Names of placeholders; with `is_numbering`, %s and {} get the numbers of their arguments."""
    # printf numbers its arguments from 1 (%1$s), and Python's str.format from 0 ({0}).
    next_in_printf = FIRST_IN_PRINTF
    next_in_braces = FIRST_IN_BRACES
    for match in matches:
        if is_numbering and match["format"] and not match["key"]:
            yield f"%{next_in_printf}${match['format']}"
            next_in_printf += 1
        elif is_numbering and match[0] == "{}":
            yield f"{{{next_in_braces}}}"
            next_in_braces += 1
        else:
            yield match[0]


def placeholders(text: str, pattern: "re.Pattern[str]", is_numbering: bool = False) -> Counter[str]:
    """The placeholders in a text; tags are listed without attributes, which may be translated.

    A word in angle brackets that is no HTML element is text, such as `<none>`, unless it is closed.
    """
    matches = list(pattern.finditer(text))
    tags = [match for match in matches if match["tag"]]
    others = [match for match in matches if not match["tag"]]
    counts = Counter(names_of(others, is_numbering))
    counts.update(names_of_tags(tags))
    return counts


def names_of_tags(matches: list["re.Match[str]"]) -> Iterator[str]:
    """<name> or </name> for each tag that is not text."""
    closed = {tag["tag"].lower() for tag in matches if tag[0].startswith("</")}
    for tag in matches:
        name = tag["tag"].lower()
        # Text has neither attributes nor slashes in angle brackets.
        is_tag = "=" in tag[0] or "/" in tag[0]
        if is_tag or name in ELEMENTS or name in closed:
            slash = "/" if tag[0].startswith("</") else ""
            yield f"<{slash}{name}>"


def is_gloss(name: str, source: str) -> bool:
    """True for a word in braces that is text.

    It is a word of the source that had no braces there, or one in another alphabet than the names
    in programs.
    """
    if not name.startswith("{"):
        return False
    if not name.isascii():
        return True
    return name not in source and name.strip("{}") in source


def is_placeholder_wrong(source: str, translation: str) -> bool:
    """True if a translation lacks a placeholder of the source, or has another.

    A translation may number the placeholders to reorder them. A directive inside a Latin word
    counts only if the other text has the directive, too.
    """
    if missing_placeholders(source, translation):
        return True
    added = missing_placeholders(translation, source)
    return any(not is_gloss(name, source) for name in added)


def missing_placeholders(source: str, translation: str) -> Counter[str]:
    """The placeholders of a source that its translation lacks."""
    # If both or neither are numbered, they can be compared as they are.
    is_numbering = are_numbered(source) != are_numbered(translation)
    before = placeholders(source, APART, is_numbering)
    after = placeholders(translation, APART, is_numbering)
    all_after = placeholders(translation, PLACEHOLDER, is_numbering)
    # `|` takes the larger count, so what one text has apart may be inside a word of the other.
    return before - (after | all_after)


def without_placeholders(text: str) -> str:
    return PLACEHOLDER.sub(" ", text)


def with_distinct_placeholders(text: str) -> str:
    """A text with a number for each placeholder that follows another without a word between them.

    Such a list is not a repetition: `%s, %s, %s`.
    """
    parts = []
    end = 0
    for count, match in enumerate(PLACEHOLDER.finditer(text)):
        between = text[end : match.start()]
        is_in_list = count > 0 and not any(map(str.isalnum, between))
        parts.append(between)
        parts.append(f" {count} " if is_in_list else match[0])
        end = match.end()
    return "".join(parts) + text[end:]
