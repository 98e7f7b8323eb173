"""Patterns of paths, with which users choose the files of a folder."""

import re
from collections.abc import Sequence

from nmt.config import FolderOptions

CONFIGURATION = [
    "CMakeLists.txt",
    "LICENSE*",
    "LICENCE*",
    "COPYING*",
    "ads.txt",
    "angular.json",
    "application*.properties",
    "composer.json",
    "constraints*.txt",
    "gradle*.properties",
    "jsconfig*.json",
    "local.properties",
    "log4j*.properties",
    "*-lock.json",
    "*.lock.json",
    "*.schema.json",
    "manifest.json",
    "package.json",
    "requirements*.txt",
    "robots.txt",
    "tsconfig*.json",
]
"""Files for programs, and licenses: nmt translates them only if a pattern of the user matches."""


class Patterns:
    """The patterns of a command, and which of them match no file."""

    def __init__(self, options: FolderOptions) -> None:
        self.include = compiled(options.include)
        self.exclude = compiled(options.exclude)
        self.configuration = compiled(CONFIGURATION)
        self.unused = {*options.include, *options.exclude}
        """The patterns that have not matched yet."""

    def is_chosen(self, name: str) -> bool:
        """Whether a file is to be translated if nmt can read it."""
        is_excluded = self.matches(name, self.exclude)
        if self.include:
            return self.matches(name, self.include) and not is_excluded
        return not is_excluded and not self.matches(name, self.configuration)

    def is_named(self, name: str) -> bool:
        """Whether a pattern of the user asks for this file."""
        return bool(self.include) and self.is_chosen(name)

    def matches(self, name: str, patterns: dict[str, re.Pattern[str]]) -> bool:
        """Whether one of the patterns matches a path."""
        matching = [text for text, pattern in patterns.items() if pattern.fullmatch(name)]
        self.unused.difference_update(matching)
        return bool(matching)


def compiled(patterns: Sequence[str]) -> dict[str, re.Pattern[str]]:
    return {text: pattern_of(text) for text in patterns}


def pattern_of(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression for paths.

    `*` and `?` match within a name, `**` any folders. As in .gitignore, a pattern without a slash
    matches names in all folders, and a pattern for a folder matches all files below it.
    """
    # Python 3.13 has PurePath.full_match, but nmt supports earlier versions.
    path = pattern.removeprefix("./").removeprefix("/").removesuffix("/")
    expression = "" if "/" in path else "(?:.*/)?"
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", path):
        if piece == "**/":
            expression += "(?:.*/)?"
        elif piece == "**":
            expression += ".*"
        elif piece == "*":
            expression += "[^/]*"
        elif piece == "?":
            expression += "[^/]"
        else:
            expression += re.escape(piece)
    return re.compile(f"{expression}(?:/.*)?", re.DOTALL)
