"""Normalization of text: the form in which models read sources, and learn and write targets.

Sources are put into canonical form (Unicode's NFC), and signs that only look different are folded: ligatures,
presentation forms, half-width and full-width letters. Targets are only put into canonical form, because a model writes
what it learned. Nothing that readers would miss is changed: 2½, m², ™ and Chinese punctuation stay as they are.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import regex

SOURCE, TARGET = 0, 1
"""The sides of a sentence pair."""
PRESENTATION_FORMS = (
    *(
        (0xFB00, 0xFB06),
        (0xFB13, 0xFB17),
        (0xFB1D, 0xFB28),
        (0xFB2A, 0xFB4F),
    ),  # Latin, Armenian, Hebrew
    *((0xFB50, 0xFBB1), (0xFBD3, 0xFD3D), (0xFD50, 0xFDF9), (0xFE80, 0xFEFC)),  # Arabic letters
    (0xFF66, 0xFF9F),  # half-width katakana, but not its punctuation
    *((0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A)),  # full-width digits and Latin letters
)
"""Ranges of characters that mean the same as their compatibility forms."""
INVISIBLE = "\u00ad\u034f\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
"""Soft hyphens, marks of direction and the like, in the form of a character class: models read sources without them.

Joiners (U+200C, U+200D) and zero-width spaces are not among them: in some languages, they distinguish words."""
WITHOUT_INVISIBLE = re.compile(f"[{INVISIBLE}]+")


def foldings() -> dict[int, str]:
    """Maps each folded character to what models read instead."""
    characters = (
        chr(code) for first, last in PRESENTATION_FORMS for code in range(first, last + 1)
    )
    forms = {ord(character): unicodedata.normalize("NFKC", character) for character in characters}
    # Some forms of Arabic marks stand on a space, which would separate them from their word.
    return {code: form for code, form in forms.items() if form != chr(code) and " " not in form}


FOLDINGS = foldings()
TO_FOLD = re.compile(f"[{''.join(map(chr, FOLDINGS))}]")


def single_blanks(line: str) -> str:
    """Collapse white space, of whatever kind and width, to single spaces, and strip it from both ends."""
    return " ".join(line.split())


def canonical(line: str) -> str:
    """A target as models learn it: in canonical form (NFC), with single spaces."""
    return single_blanks(unicodedata.normalize("NFC", line))


def folded(line: str) -> str:
    """A source as models read it: in canonical form, folded, without invisible characters, with single spaces."""
    if line.isascii():
        return single_blanks(line)
    line = unicodedata.normalize("NFC", WITHOUT_INVISIBLE.sub("", line))
    if TO_FOLD.search(line):
        line = unicodedata.normalize("NFC", line.translate(FOLDINGS))
    return single_blanks(line)


def compatible(line: str) -> str:
    """A line in compatibility form (NFKC), with single spaces: what models of earlier versions read and write."""
    return single_blanks(unicodedata.normalize("NFKC", line))


@dataclass(frozen=True)
class Normalization:
    """How lines of each side are normalized before they are encoded. Both functions are idempotent."""

    name: str
    source: Callable[[str], str]
    target: Callable[[str], str]

    def of(self, line: str, side: int = SOURCE) -> str:
        return self.source(line) if side == SOURCE else self.target(line)


NORMALIZATIONS = {
    way.name: way
    for way in (
        Normalization("canonical", folded, canonical),
        Normalization("nfkc", compatible, compatible),
        Normalization("none", single_blanks, single_blanks),
    )
}
"""By the names that `tokenizer.normalization` accepts."""
CLUSTER = regex.compile(r"\s+|\X")
"""A run of white space, or a grapheme cluster: a character as readers see it, such as an emoji with its skin tone."""


def clusters(text: str) -> Iterator[tuple[int, int]]:
    """The spans of a text's grapheme clusters and runs of white space."""
    return (cluster.span() for cluster in CLUSTER.finditer(text))


def origins(line: str, normalize: Callable[[str], str]) -> list[int] | None:
    """For each character of the normalized line, and for its end, the index in `line` where its origin begins.

    Returns None if the line cannot be normalized cluster by cluster with the same result.
    """
    places = list[int]()
    normalized = list[str]()
    for begin, end in clusters(line.rstrip()):
        raw = line[begin:end]
        text = normalize(raw)
        if raw.isspace():
            text = " " if places else ""
        normalized.append(text)
        places += [begin] * len(text)
    if "".join(normalized) != normalize(line):
        return None
    return [*places, len(line.rstrip())]
