"""Files of translation memories: find and read them in the direction of a model."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from nmt.config import DataConfig, NMTError, TranslatorOptions
from nmt.extensions import PairsEntry, import_attribute
from nmt.files import identity_of
from nmt.plugins.memory.memory import Memory
from nmt.registry import entries_of
from nmt.text import Pair, read_files, resolve, subtags, table_format, with_code
from nmt.translation import Direction, find_models, warn

MOST_MEMORIES = 16
"""The number of memories to keep: a server has one for each direction."""
UNKNOWN = Direction("source", "target")
"""Names for the languages of a model that does not say which they are."""


class MemoryFiles(NamedTuple):
    """What a memory is read from; equal if nothing has changed."""

    entries: tuple[str, ...]
    """As in the option `memory`."""
    states: tuple[object, ...]
    """What changes when a file is replaced or written to."""
    direction: Direction
    minimum: float


def short_code(code: str) -> str:
    """A model's code as files of pairs have it: en for eng_Latn, but pt-BR for pt_BR."""
    if len(code) == 2:
        return code
    language, _, region, _ = subtags(code)
    return f"{language}-{region}" if region else language


def config_of(direction: Direction) -> DataConfig:
    """The options for reading pairs in a direction."""
    source = short_code(direction.source) if direction.source else UNKNOWN.source
    target = short_code(direction.target) if direction.target else UNKNOWN.target
    # A unit of a TMX file may lack one of the languages.
    return DataConfig("memory", "files", source, target, errors="skip")


def paths_of(entry: str, config: DataConfig) -> list[tuple[Path, ...]]:
    """The files of an entry of the option, each alone or with its parallel file."""
    try:
        return resolve(entry, config)
    except NMTError:
        missing = missing_partner(entry, config)
        if missing:
            raise NMTError(
                f"memory={entry}: {missing}, the other one of two parallel files, is missing"
            ) from None
        formats = ", ".join(entries_of(PairsEntry))
        raise NMTError(
            f"memory={entry}: no such file; name a file of pairs ({formats}), SOURCE:TARGET, or "
            f"the prefix of two files with the suffixes .{config.source} and .{config.target}"
        ) from None


def missing_partner(entry: str, config: DataConfig) -> str:
    """The missing one of two parallel files if the other one exists, or else empty."""
    prefixes = [entry]
    for language in (config.source, config.target):
        if entry.endswith(f".{language}"):
            prefixes.append(entry.removesuffix(f".{language}"))
    for prefix in prefixes:
        names = [f"{prefix}.{language}" for language in (config.source, config.target)]
        missing = [name for name in names if not Path(name).is_file()]
        if len(missing) == 1:
            return missing[0]
    return ""


def all_paths(entries: Sequence[str], direction: Direction) -> list[Path]:
    config = config_of(direction)
    paths = list[Path]()
    for entry in entries:
        for files in paths_of(entry, config):
            paths += files
    return paths


def files_of(entries: Sequence[str], options: TranslatorOptions) -> list[Path]:
    """The files whose content decides what a memory has for a model."""
    return all_paths(entries, find_models(options.run).direction(options))


def load_memory(entries: Sequence[str], direction: Direction, minimum: float) -> Memory:
    """Read memories, or return the same one as before if no file has changed.

    Raises NMTError if a file is missing or damaged.
    """
    states = [identity_of(path) for path in all_paths(entries, direction)]
    return read_memory(MemoryFiles(tuple(entries), tuple(states), direction, minimum))


@lru_cache(MOST_MEMORIES)
def read_memory(files: MemoryFiles) -> Memory:
    config = config_of(files.direction)
    skipped = Counter[str]()
    pairs = pairs_of(files.entries, config, skipped)
    memory = Memory(pairs, files.minimum)
    # The names of the columns are no entry.
    ignored = skipped.total() - skipped["header row"] + memory.empty
    if ignored:
        languages = f"{with_code(config.source)} and {with_code(config.target)}"
        names = ", ".join(files.entries)
        warn(f"memory={names}: {ignored:,} entries without a pair of {languages} are ignored")
    return memory


def pairs_of(entries: Sequence[str], config: DataConfig, skipped: Counter[str]) -> Iterator[Pair]:
    """The pairs of all files, in the order in which later ones replace earlier ones."""
    for entry in entries:
        for paths in paths_of(entry, config):
            dated = dated_reader(paths)
            if dated:
                yield from by_date(paths[0], config, skipped, dated)
            else:
                yield from read_files([":".join(map(str, paths))], config, skipped)


def dated_reader(paths: Sequence[Path]) -> str | None:
    """The function that reads the dates of a file's pairs, too; None if they have none."""
    if len(paths) > 1:
        return None
    return entries_of(PairsEntry)[table_format(paths[0])].dated


def by_date(path: Path, config: DataConfig, skipped: Counter[str], reader: str) -> Iterator[Pair]:
    """The pairs of a file, the oldest first; those without a date come before all others."""
    dated = list(import_attribute(reader)(path, config, skipped))
    # Stable: of pairs with the same date, the last one in the file stays the last one.
    dated.sort(key=lambda row: row[0])
    for _, pair in dated:
        yield pair


def names_languages(entry: str, direction: Direction) -> bool:
    """Whether the files of an entry say which languages their texts are in."""
    for paths in paths_of(entry, config_of(direction)):
        if len(paths) == 1:
            if not entries_of(PairsEntry)[table_format(paths[0])].names_languages:
                return False
        # Both files of SOURCE:TARGET are named by the user, those of a prefix by their suffixes.
        elif ":" in entry:
            return False
    return True
