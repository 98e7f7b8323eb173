"""The format directives of gettext messages, such as %s, which a translation must keep."""

import re
from collections import Counter

from nmt.items import is_counted

FORMAT = re.compile(r"(?!no-|possible-|impossible-)([a-z][a-z+-]*)-format")
"""A flag that names the format of a message, such as c-format."""
ARGUMENT = (
    r"(?>"
    r"\d{1,3}+\$"  # by number: %1$s
    r"|\([^()%]{1,60}+\)"  # by name: %(name)s
    r"|<(?!PRI)\w{1,60}+>"  # by name in Ruby: %<name>d
    r"|)"
)
WIDTH = r"(?>\d{1,9}+|\*(?>\d{1,3}+\$|)|)"
PRINTF = (
    r"%(?:"
    r"%"
    r"|\{\w{1,60}+\}"
    rf"|{ARGUMENT}[-+#0' ,I]{{0,5}}+{WIDTH}(?>\.{WIDTH}|)"
    r"(?:hh|ll|[hlLqjzZt])?(?:[A-Za-z@]|<PRI\w{1,20}+>)"
    r")"
)
BRACES = r"\{\{|\}\}|\{(?>(?:[^{}]|\{[^{}]{0,60}+\}){0,100})\}"
DIRECTIVE = re.compile(rf"{BRACES}|{PRINTF}|%L?+(?:\d{{1,2}}+|n)")
WITHOUT_ARGUMENT = ("%%", "{{", "}}", "%m")
MOVABLE = frozenset(
    [
        "awk",
        "c",
        "c++",
        "csharp",
        "java-printf",
        "javascript",
        "kde",
        "lua",
        "objc",
        "php",
        "python",
        "python-brace",
        "qt",
        "qt-plural",
    ]
)
"""Formats in which a translation may move directives, but not add their characters elsewhere."""
SPECIAL_WORD = re.compile(r"(?<!\S)\S*?[%~{}<>&$'|@](?:\S+|(?:(?<=~)\s*| *)\S*)")
"""In all other formats, words with these characters must stay unchanged and in the same order.

A space after a sign may be a flag, as in `% d`. A line break is part of a directive only in Lisp.
"""


def same_directives(format: str, source: str, translation: str) -> bool:
    """True if a translation takes the arguments of the source, as `msgfmt --check` requires."""
    if format not in MOVABLE:
        return SPECIAL_WORD.findall(source) == SPECIAL_WORD.findall(translation)
    before = directives(source)
    after = directives(translation)
    if Counter(before) != Counter(after):
        return False
    # Directives without a name or number take the arguments in order.
    if list(filter(is_counted, before)) != list(filter(is_counted, after)):
        return False
    return not adds_signs(source, translation)


def directives(text: str) -> list[str]:
    """The directives of a text that take an argument."""
    return [word for word in DIRECTIVE.findall(text) if word not in WITHOUT_ARGUMENT]


def adds_signs(source: str, translation: str) -> bool:
    """True if a translation has more signs of directives in its text than the source."""
    before = DIRECTIVE.sub("", source)
    after = DIRECTIVE.sub("", translation)
    return any(after.count(sign) > before.count(sign) for sign in "%{}")
