"""Read corrections from files: tables, suggestions of `nmt serve`, catalogs, XLIFF, memories."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nmt.config import DataConfig, NMTError
from nmt.plugins.learn.reviewed import Reviewed, catalog_entries, xliff_units
from nmt.text import match_language, read_files, read_texts, table_format

TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
"""The time of a suggestion, as in the last column of the file that `nmt serve` writes."""
SUGGESTION_CELLS = 5
"""Source, suggestion, both languages and time."""
TABLE = ".tsv"
REVIEWED = {
    ".po": catalog_entries,
    ".xlf": xliff_units,
    ".xliff": xliff_units,
}
"""Suffix -> the reader of files that say which translations people have reviewed."""
OTHER_DIRECTION = "in another direction"


@dataclass(frozen=True)
class Correction:
    """A source text and its translation as a person corrected it."""

    source: str
    target: str
    file: str
    place: str
    """Where the correction is in its file, such as `line 7`."""
    time: str = ""
    """When a suggestion was made, in ISO 8601; empty for other corrections."""


@dataclass(frozen=True)
class Languages:
    """The direction of a model."""

    source: str
    target: str

    def fit(self, source: str, target: str) -> bool:
        """Whether two codes name this direction."""
        is_source = match_language(source, [self.source]) is not None
        return is_source and match_language(target, [self.target]) is not None


def read_corrections(
    names: list[str], languages: Languages, skipped: Counter[str]
) -> Iterator[Correction]:
    """The corrections in files, in order; counts what is skipped by the reason.

    Raises NMTError for a file that is missing or malformed.
    """
    for name in names:
        if not Path(name).is_file():
            raise NMTError(f"{name}: no such file; pass a file of corrections")
        suffix = Path(name).suffix.lower()
        if suffix in REVIEWED:
            yield from read_reviewed(name, languages, skipped)
        elif suffix == TABLE:
            yield from read_table(name, languages, skipped)
        elif table_format(name):
            yield from read_pairs(name, languages)
        else:
            raise NMTError(
                f"{name}: unknown format; pass a table (.tsv), .tmx, .po, .xlf or .xliff"
            )


def read_reviewed(name: str, languages: Languages, skipped: Counter[str]) -> Iterator[Correction]:
    reader = REVIEWED[Path(name).suffix.lower()]
    for unit in reader(Path(name), skipped):
        if fits(unit, languages):
            yield Correction(unit.source, unit.target, name, f"line {unit.line}")
        else:
            skipped[OTHER_DIRECTION] += 1


def fits(unit: Reviewed, languages: Languages) -> bool:
    """Whether a unit is in a model's direction, as far as its file states its languages."""
    source = unit.source_language or languages.source
    target = unit.target_language or languages.target
    return languages.fit(source, target)


def read_table(name: str, languages: Languages, skipped: Counter[str]) -> Iterator[Correction]:
    """The rows of a table of two columns, or of suggestions.

    Cells are read as they are: `nmt serve` writes no quotation marks around them.
    """
    for number, line in enumerate(read_texts(name), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        place = f"line {number}"
        if len(cells) == 2:
            yield Correction(cells[0].strip(), cells[1].strip(), name, place)
            continue
        if len(cells) != SUGGESTION_CELLS or not TIME.fullmatch(cells[4].strip()):
            raise NMTError(
                f"{name}, line {number}: {len(cells)} cells; write source and correction, "
                "separated by a tab, or pass a file of `nmt serve suggestions=FILE`"
            )
        if languages.fit(cells[2], cells[3]):
            yield Correction(cells[0].strip(), cells[1].strip(), name, place, cells[4].strip())
        else:
            skipped[OTHER_DIRECTION] += 1


def read_pairs(name: str, languages: Languages) -> Iterator[Correction]:
    """The pairs of a file in a format of parallel corpora, such as TMX."""
    config = DataConfig(
        name="corrections",
        kind="files",
        source=languages.source,
        target=languages.target,
        # A memory may have units without a translation.
        errors="skip",
    )
    for number, pair in enumerate(read_files([name], config, Counter()), 1):
        source, target = (" ".join(text.split()) for text in pair)
        yield Correction(source, target, name, f"pair {number}")
