"""Sentence pairs in files: find the files of a corpus, and pair their lines."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from nmt.config import DataConfig, NMTError, exists, without_compression
from nmt.extensions import PairsEntry
from nmt.registry import entries_of
from nmt.text.compression import MAGIC
from nmt.text.files import MalformedLine

Pair = tuple[str, str]
"""A source sentence and its translation."""
Line = TypeVar("Line", bytes, str)


def not_parallel(names: Sequence[str | Path], counts: Sequence[int]) -> NMTError:
    """The error for two files with different numbers of lines."""
    first, second = ("standard input" if str(name) == "-" else name for name in names)
    lines = "line" if counts[0] == 1 else "lines"
    return NMTError(
        f"{first} has {counts[0]:,} {lines} but {second} has {counts[1]:,}: they are not parallel"
    )


def parallel(
    names: Sequence[str | Path],
    sides: Sequence[Iterator[Line]],
) -> Iterator[tuple[Line, Line]]:
    """Pair the lines of two files; NMTError after the last pair if the line counts differ."""
    sources = 0
    targets = 0
    for source, target in zip_longest(*sides):
        # `zip_longest` fills the shorter side with None. The other side is counted to its end, so
        # that the error has both numbers.
        if source is not None:
            sources += 1
        if target is not None:
            targets += 1
        if sources == targets:  # no more once one side has ended
            yield source, target
    if sources != targets:
        raise not_parallel(names, (sources, targets))


def existing(name: str) -> Path | None:
    """The file with this name, or with this name and a compression suffix."""
    # The plain name comes first; the user need not type the suffix of a compressed file.
    for suffix in ("", *MAGIC):
        path = Path(name + suffix)
        if path.is_file():
            return path
    return None


def table_format(name: str | Path) -> str:
    """The suffix of a file that contains both sides; empty for other files."""
    suffix = Path(without_compression(str(name))).suffix
    return suffix if suffix in entries_of(PairsEntry) else ""


def resolve(entry: str, config: DataConfig) -> list[tuple[Path, ...]]:
    """The files of an entry in data.train, data.valid or data.test.

    Each element is one file of pairs, or source and target. An entry is a file of pairs, the common
    prefix of two files, either of these files, SOURCE:TARGET, or a pattern. As names may contain
    colons, the files that exist determine which of these it is. Raises NMTError if a file is
    missing.
    """
    # A file whose name contains these signs is that file, not a pattern.
    if re.search("[*?[]", entry) and not exists(entry):
        resolved = list[tuple[Path, ...]]()
        for name in matching(entry):
            resolved += resolve(name, config)
        if resolved:
            return list(dict.fromkeys(resolved))  # both files of a pair may match
    readings = readings_of(entry, config)
    for names in readings:
        paths = [path for path in map(existing, names) if path]
        if len(paths) == len(names):
            return [tuple(paths)]
    # The reading that the user probably meant, so that
    # the error names a file that is really missing.
    is_table = table_format(entry) and ":" not in entry
    raise no_such_file(entry, readings[0] if is_table else readings[-1])


def no_such_file(entry: str, names: list[str]) -> NMTError:
    """The error for an entry that probably means files with these names."""
    missing = next(name for name in names if not existing(name))
    advice = "; write several entries as [A,B]" if "," in entry else ""
    return NMTError(
        f"{missing}: no such file (from {entry!r} in data.train, data.valid or data.test{advice})"
    )


def matching(pattern: str) -> list[str]:
    """The names that match a pattern, in order."""
    # `Path.glob` accepts only relative patterns.
    root = Path(pattern).anchor
    return sorted(map(str, Path(root).glob(pattern.removeprefix(root))))


def readings_of(entry: str, config: DataConfig) -> list[list[str]]:
    """The names of files that an entry may mean: one file of pairs, or source and target."""
    languages = (config.source, config.target)
    prefixes = [entry]
    for language in languages:
        name = without_compression(entry)
        if name.endswith(f".{language}"):
            prefixes.append(name.removesuffix(f".{language}"))
    readings = []
    if table_format(entry):
        readings.append([entry])
    for prefix in prefixes:
        readings.append([f"{prefix}.{language}" for language in languages])
    # Each colon may be the separator, because names may contain colons, too.
    for colon in re.finditer(":", entry):
        readings.append([entry[: colon.start()], entry[colon.end() :]])
    return readings


def is_text(value: Any) -> TypeGuard[str]:
    """True for a string that UTF-8 can encode.

    A JSON escape can produce half of a surrogate pair, which it cannot.
    """
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)


def texts_of(record: Any, config: DataConfig) -> Pair:
    """Source and target of a record that maps languages to text.

    Raises MalformedLine for anything else.
    """
    if isinstance(record, dict):
        source = record.get(config.source)
        target = record.get(config.target)
        if is_text(source) and is_text(target):
            return source, target
    problem = f"not an object with strings {config.source} and {config.target}"
    raise MalformedLine("malformed", problem)


def pair_of(texts: Sequence[str], config: DataConfig) -> Pair:
    """The sentence pair in two lines, or in one line of JSON; MalformedLine if there is none."""
    if len(texts) == 2:
        return texts[0], texts[1]
    record = None
    # Deep nesting raises RecursionError; a line like that is malformed, not a crash.
    with suppress(ValueError, RecursionError):
        # Parsing many digits is slow.
        record = json.loads(texts[0], parse_int=bool, parse_float=bool)
    if isinstance(record, dict):
        # The form of Hugging Face's translation data sets: {"translation": {"en": ..., "de": ...}}.
        record = record.get("translation", record)
    return texts_of(record, config)
