"""Normalization of text: the form in which models read sources, and learn and write targets.

Sources are put into canonical form (Unicode's NFC), and signs that only look different are folded:
ligatures, presentation forms, half-width and full-width letters. Targets are only put into
canonical form, because a model writes what it learned. Nothing that readers would miss is changed:
2½, m², ™ and Chinese punctuation stay as they are.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import regex

SOURCE = 0
"""The index of the source in a sentence pair."""
TARGET = 1
"""The index of the target in a sentence pair."""
PRESENTATION_FORMS = (
    (0xFB00, 0xFB06),  # Latin ligatures
    (0xFB13, 0xFB17),  # Armenian ligatures
    (0xFB1D, 0xFB28),  # Hebrew
    (0xFB2A, 0xFB4F),
    (0xFB50, 0xFBB1),  # Arabic letters
    (0xFBD3, 0xFD3D),
    (0xFD50, 0xFDF9),
    (0xFE80, 0xFEFC),
    (0xFF66, 0xFF9F),  # half-width katakana, but not its punctuation
    (0xFF10, 0xFF19),  # full-width digits
    (0xFF21, 0xFF3A),  # full-width Latin letters
    (0xFF41, 0xFF5A),
)
"""Ranges of characters that mean the same as their compatibility forms."""
INVISIBLE = "\u00ad\u034f\u061c\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
"""Soft hyphens, marks of direction and the like, in the form of a character class.

Models read sources without them. Joiners (U+200C, U+200D) and zero-width spaces are not among
them: in some languages, they distinguish words.
"""
WITHOUT_INVISIBLE = re.compile(f"[{INVISIBLE}]+")
CLUSTER = regex.compile(r"\s+|\X")
"""A run of white space, or a grapheme cluster: a character as readers see it.

An emoji with its skin tone, for example, is a single cluster.
"""


def foldings() -> dict[int, str]:
    """Folded character -> the text that models read instead."""
    forms = dict[int, str]()
    for first, last in PRESENTATION_FORMS:
        for code in range(first, last + 1):
            # NFKC is safe in these ranges only; in others, it would turn 25² into 252.
            form = unicodedata.normalize("NFKC", chr(code))
            # Some forms of Arabic marks stand on a space, which would cut them from their word.
            if form != chr(code) and " " not in form:
                forms[code] = form
    return forms


FOLDINGS = foldings()
TO_FOLD = re.compile(f"[{''.join(map(chr, FOLDINGS))}]")


def single_blanks(line: str) -> str:
    """Collapse white space of any kind and width to single spaces; strip it from both ends."""
    return " ".join(line.split())


def canonical(line: str) -> str:
    """A target as models learn it: in canonical form (NFC), with single spaces."""
    return single_blanks(unicodedata.normalize("NFC", line))


def folded(line: str) -> str:
    """A source as models read it: in canonical form and folded, with single spaces.

    Invisible characters are removed.
    """
    # ASCII is in canonical form and has nothing to fold. Most lines of English end here.
    if line.isascii():
        return single_blanks(line)
    # Invisible characters go first: between a letter and
    # its accent, they would keep NFC from composing.
    line = unicodedata.normalize("NFC", WITHOUT_INVISIBLE.sub("", line))
    if TO_FOLD.search(line):
        # Again, because a folded letter may combine with the mark
        # after it, such as half-width kana with a voiced sound mark.
        line = unicodedata.normalize("NFC", line.translate(FOLDINGS))
    return single_blanks(line)


def compatible(line: str) -> str:
    """A line in compatibility form (NFKC), with single spaces.

    This is what models of earlier versions read and write.
    """
    return single_blanks(unicodedata.normalize("NFKC", line))


@dataclass(frozen=True)
class Normalization:
    """The functions that normalize the lines of each side before they are encoded.

    Both functions are idempotent.
    """

    name: str
    source: Callable[[str], str]
    target: Callable[[str], str]

    def of(self, line: str, side: int = SOURCE) -> str:
        return self.source(line) if side == SOURCE else self.target(line)


NORMALIZATIONS = {
    "canonical": Normalization("canonical", folded, canonical),
    "nfkc": Normalization("nfkc", compatible, compatible),
    "none": Normalization("none", single_blanks, single_blanks),
}
"""Value of `tokenizer.normalization` -> the normalization."""


def clusters(text: str) -> Iterator[tuple[int, int]]:
    """The spans of a text's grapheme clusters and runs of white space."""
    return (cluster.span() for cluster in CLUSTER.finditer(text))


def origins(line: str, normalize: Callable[[str], str]) -> list[int] | None:
    """For each character of the normalized line, the index in `line` where its origin begins.

    The last element is the end of the line. For a line of e, a combining accent, two blanks and x,
    which becomes é, a blank and x, the result is [0, 2, 4, 5]. Returns None if the line cannot be
    normalized cluster by cluster with the same result.
    """
    places = list[int]()
    normalized = list[str]()
    # Normalization combines characters only within a grapheme cluster, so clusters can be mapped
    # one by one. The check below finds the exceptions.
    for begin, end in clusters(line.rstrip()):
        raw = line[begin:end]
        text = normalize(raw)
        if raw.isspace():
            # White space at the beginning vanishes, any other run becomes one space.
            text = " " if places else ""
        normalized.append(text)
        places += [begin] * len(text)
    if "".join(normalized) != normalize(line):
        return None
    places.append(len(line.rstrip()))
    return places
