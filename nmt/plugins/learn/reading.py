"""Read corrections from files: tables, suggestions of `nmt serve`, catalogs, XLIFF, memories."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
MALFORMED = "malformed"
WITH_ENTITIES = "with entities"
"""What the reader of TMX counts units as whose text has entities, which it does not read."""
WITHOUT_PAIR = "without a pair in the model's languages"
MEMORIES = (".tmx",)
"""Suffixes of formats whose units need not have a text in both languages."""
ADVICE_OF_PREPROCESS = (", or pass data.errors=skip", ": pass data.source and data.target")
"""Ends of messages of readers, with options that `nmt learn` lacks."""


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


Rejected = list[tuple[Correction, str]]
"""Corrections, each with the reason why it was rejected."""


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
    names: list[str], languages: Languages, skipped: Counter[str], rejected: Rejected
) -> Iterator[Correction]:
    """The corrections in files, in order.

    Counts what is skipped by the reason, and appends malformed rows of tables to `rejected`.
    Raises NMTError for a file that is missing or malformed.
    """
    for name in names:
        if not Path(name).is_file():
            raise NMTError(f"{name}: no such file; pass a file of corrections")
        suffix = Path(name).suffix.lower()
        if suffix in REVIEWED:
            yield from read_reviewed(name, languages, skipped)
        elif suffix == TABLE:
            yield from read_table(name, languages, skipped, rejected)
        elif table_format(name):
            yield from read_pairs(name, languages, skipped)
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


def read_table(
    name: str, languages: Languages, skipped: Counter[str], rejected: Rejected
) -> Iterator[Correction]:
    """The rows of a table of two columns, or of suggestions.

    Cells are read as they are: `nmt serve` writes no quotation marks around them.
    """
    for number, line in enumerate(read_texts(name), 1):
        if not line.strip():
            continue
        source, *cells = [cell.strip() for cell in line.split("\t")]
        place = f"line {number}"
        problem = problem_of_row(cells)
        if problem:
            row = Correction(source, " ".join(cells), name, place)
            rejected.append((row, f"{MALFORMED}: {problem}"))
        elif len(cells) == 1:
            yield Correction(source, cells[0], name, place)
        elif languages.fit(cells[1], cells[2]):
            yield Correction(source, cells[0], name, place, cells[3])
        else:
            skipped[OTHER_DIRECTION] += 1


def problem_of_row(cells: list[str]) -> str:
    """Why the cells after the source are no correction; empty if they are one."""
    if len(cells) == 1:
        return ""
    if len(cells) + 1 != SUGGESTION_CELLS:
        columns = "column" if not cells else "columns"
        return f"{len(cells) + 1} {columns} instead of source and correction"
    time = cells[-1]
    return "" if TIME.fullmatch(time) else f"the time {time!r} of a suggestion"


def read_pairs(name: str, languages: Languages, skipped: Counter[str]) -> Iterator[Correction]:
    """The pairs of a file in a format of parallel corpora, such as TMX.

    Raises NMTError for a malformed row, and for a memory without any pair of these languages.
    """
    may_lack_texts = table_format(name) in MEMORIES
    config = DataConfig(
        name="corrections",
        kind="files",
        source=languages.source,
        target=languages.target,
        errors="skip" if may_lack_texts else "strict",
    )
    counts = Counter[str]()
    number = 0
    try:
        for number, pair in enumerate(read_files([name], config, counts), 1):
            source, target = (" ".join(text.split()) for text in pair)
            yield Correction(source, target, name, f"pair {number}")
    except NMTError as error:
        raise NMTError(without_advice(error)) from error
    unread = counts[MALFORMED] + counts[WITH_ENTITIES]
    if not unread:
        return
    problem = first_problem(name, config)
    if not number:
        direction = f"{languages.source} to {languages.target}"
        raise NMTError(f"{problem}: no unit of the file is a pair from {direction}")
    reason = f"{WITH_ENTITIES} or {WITHOUT_PAIR}" if counts[WITH_ENTITIES] else WITHOUT_PAIR
    skipped[f"{reason}, first {problem}"] += unread


def first_problem(name: str, config: DataConfig) -> str:
    """What is wrong with the first malformed unit of a file, and where."""
    # Only the strict reader says that.
    try:
        for _ in read_files([name], replace(config, errors="strict"), Counter()):
            pass
    except NMTError as error:
        return without_advice(error)
    raise AssertionError(f"{name}: all units are pairs")


def without_advice(error: NMTError) -> str:
    """The message of a reader without options that only `nmt preprocess` has."""
    message = str(error)
    for advice in ADVICE_OF_PREPROCESS:
        message = message.removesuffix(advice)
    return message
