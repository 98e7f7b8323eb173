"""Languages in the names of files and folders, as in en.yml, values-fr and index.de.md."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from nmt.text import is_language, language_tag, match_language

LANGUAGE = r"(?P<language>[A-Za-z]{2,3})"
CODES = (
    rf"b\+{LANGUAGE}(?:\+\w{{2,4}}){{1,2}}",  # of Android: b+sr+Latn
    rf"{LANGUAGE}-r(?P<region>[A-Z]{{2}})",  # of Android: pt-rBR
    rf"{LANGUAGE}[-_][A-Z][a-z]{{3}}",  # zh-Hant
    rf"{LANGUAGE}[-_](?P<region>[A-Za-z]{{2}}|\d{{3}})",  # en-US, es_419
    LANGUAGE,
)
"""Languages with a region or script before those without."""
PATTERNS = [re.compile(rf"(?P<before>|.*[._-]){code}") for code in CODES]
"""Names without suffix that are a language, or end in one."""
PROSE = re.compile(r"\.(?:md|mdx|markdown|rst|adoc|asciidoc|txt|html?|ipynb|dita|xml|docx|odt)")
"""Suffixes of files whose names are words: in how_to.md, `to` is not Tongan."""
BASE = "Base.lproj"
"""Apple's folder for the language in which an app is developed."""


class LanguageName(NamedTuple):
    """A name of a file or folder that shows a language."""

    before: str
    language: str
    """The tag of the language, without region and script."""
    after: str


def language_names(name: str) -> Iterator[LanguageName]:
    """The ways to read a name as one that shows a language."""
    # The suffix is that of a format, although .arb and .md are languages, too.
    suffix = PurePosixPath(name).suffix
    for pattern in PATTERNS:
        match = pattern.fullmatch(name.removesuffix(suffix))
        if not match:
            continue
        region = match.groupdict().get("region")
        tag = language_tag(match["language"]) if is_language(match["language"]) else ""
        # In app_en, EN is no region.
        if tag and (not region or region.upper() in regions()):
            yield LanguageName(match["before"], tag.partition("-")[0], suffix)


@cache
def regions() -> frozenset[str]:
    """The codes of all countries and of some larger regions, such as US and 419."""
    from babel import Locale  # takes 30 ms, which other commands need not spend

    return frozenset(Locale("en").territories)


def in_target_language(part: str, source: str, target: str) -> str:
    """A part of a path in which the target language stands for the source language.

    For English and German, en.yml becomes de.yml, app_en-US.arb app_de.arb, en.lproj de.lproj, and
    index.en.md index.de.md.
    """
    for name in language_names(part):
        if name.language == source.partition("-")[0]:
            return f"{name.before}{target}{name.after}"
    return part


class NamedLanguages:
    """The languages that the names in a folder show."""

    def __init__(self, names: Iterable[str], source: str) -> None:
        """`names` are the paths of all files; `source` is the tag of the source language."""
        self.source = source.partition("-")[0]
        self.paths = set[str]()
        """All files and folders."""
        for name in names:
            path = PurePosixPath(name)
            self.paths.update(map(str, (path, *path.parents)))
        self.in_source = set[tuple[str, str, str]]()
        """The folder, beginning and end of each name that shows the source language."""
        for path in map(PurePosixPath, self.paths):
            for shown in language_names(path.name):
                if shown.language == self.source:
                    self.in_source.add((str(path.parent), shown.before, shown.after))

    def is_translation(self, name: str) -> bool:
        """Whether a file is the translation of another file, into any language.

        Its name, or that of a folder, shows another language than the source, and the same name
        with the source language or without a language is there, too.
        """
        if not self.source:
            return False
        path = PurePosixPath(name)
        return any(self.shows_other_language(place) for place in (path, *path.parents))

    def shows_other_language(self, place: PurePosixPath) -> bool:
        names = [*language_names(place.name)]
        if any(match_language(self.source, [name.language]) for name in names):
            return False
        for name in names:
            if (str(place.parent), name.before, name.after) in self.in_source:
                return True
            if any(str(place.parent / other) in self.paths for other in originals_of(name)):
                return True
        return False


def originals_of(name: LanguageName) -> list[str]:
    """The names that a file or folder may have without its language."""
    if name.after == ".lproj":
        return [BASE]
    if not name.before:
        return []
    without_language = name.before[:-1] + name.after
    # Names of texts consist of words, which dashes and underscores separate.
    is_of_text = PROSE.fullmatch(name.after) is not None
    if name.before.endswith(".") or (name.before.endswith("_") and not is_of_text):
        return [without_language]
    # A folder, such as values-fr of Android.
    return [] if name.after else [without_language]
