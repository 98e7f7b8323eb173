"""Files of translation memories: find and read them in the direction of a model."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from nmt.config import DataConfig, NMTError, TranslatorOptions
from nmt.extensions import PairsEntry, import_attribute
from nmt.files import identity_of
from nmt.plugins.memory.memory import Memories, Memory
from nmt.plugins.memory.suggestions import is_of_suggestions, read_suggestions
from nmt.registry import entries_of
from nmt.text import (
    Pair,
    read_files,
    read_texts,
    resolve,
    subtags,
    table_format,
    with_code,
)
from nmt.translation import Direction, find_models, warn

MOST_MEMORIES = 64
"""The number of memories to keep: a server has one for each file and direction."""
JSON_LINES = ".jsonl"
NOT_LINES = (".tmx", ".parquet")
"""Formats whose readers report damage themselves."""
OTHER_COLUMNS = "other number of columns"
"""What the reader of tables counts rows as that have more or fewer columns than most rows."""
WITH_ENTITIES = "with entities"
"""What the reader of TMX counts units as whose text has entities, which it does not read."""
UNKNOWN = Direction("source", "target")
"""Names for the languages of a model that does not say which they are."""


class MemoryKey(NamedTuple):
    """What decides the content of a memory, besides the content of its files."""

    entry: str
    """As in the option `memory`."""
    direction: Direction
    minimum: float


States = tuple[object, ...]
"""What changes when one of some files is replaced or written to."""
kept = dict[MemoryKey, tuple[States, Memory]]()
"""The memories read so far, and the states of their files; the one used last is last."""
reading = Lock()
"""Held while memories are read, so that threads do not read the same one twice."""


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
            f"memory={entry}: {why_unreadable(entry)}; name a file of pairs ({formats}), "
            "SOURCE:TARGET, or the prefix of two files with the suffixes "
            f".{config.source} and .{config.target}"
        ) from None


def why_unreadable(entry: str) -> str:
    """Why an entry of the option names no memory."""
    path = Path(entry)
    if path.is_dir():
        return "is a folder"
    if path.exists():
        kind = path.suffix
        return f"{kind} is not a format of memories" if kind else "its name has no known suffix"
    return "no such file"


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


def states_of(entries: Sequence[str], direction: Direction) -> States:
    """The states of the files of entries; raises NMTError if a file is missing."""
    return tuple(identity_of(path) for path in all_paths(entries, direction))


def load_memory(entries: Sequence[str], direction: Direction, minimum: float) -> Memories:
    """Read memories, or only those whose files have changed.

    Raises NMTError if a file is missing or damaged.
    """
    memories = list[Memory]()
    # One memory per entry: a large one need not be read again because a small one has changed.
    with reading:
        for entry in entries:
            memories.append(kept_memory(MemoryKey(entry, direction, minimum)))
    return Memories(memories)


def kept_memory(key: MemoryKey) -> Memory:
    """The memory of an entry, which is read only if its files have changed."""
    # Before the files are read, so that a later change is noticed.
    states = states_of([key.entry], key.direction)
    known = kept.pop(key, None)
    if known is None or known[0] != states:
        known = states, read_memory(key)
    kept[key] = known
    if len(kept) > MOST_MEMORIES:
        del kept[next(iter(kept))]
    return known[1]


def read_memory(key: MemoryKey) -> Memory:
    config = config_of(key.direction)
    skipped = Counter[str]()
    pairs = pairs_of(key.entry, config, skipped)
    memory = Memory(pairs, key.minimum)
    if skipped:
        for path in all_paths([key.entry], key.direction):
            check_lines(path)
    # The names of the columns are no entry.
    del skipped["header row"]
    if skipped or memory.empty:
        warn_of_ignored(key.entry, config, skipped, memory.empty)
    elif not memory:
        warn(f"memory={key.entry}: contains no pair yet")
    return memory


def warn_of_ignored(entry: str, config: DataConfig, skipped: Counter[str], empty: int) -> None:
    """Print how many entries were skipped, and why; `empty` have a side without text."""
    shifted = skipped[OTHER_COLUMNS]
    if shifted:
        rows = "ignoring 1 row" if shifted == 1 else f"ignoring {shifted:,} rows"
        advice = "a row of a memory has a source and a target, so write other tabs as spaces"
        warn(f"memory={entry}: {rows} with another number of columns than most rows; {advice}")
    unread = skipped[WITH_ENTITIES]
    if unread:
        entries = "ignoring 1 entry" if unread == 1 else f"ignoring {unread:,} entries"
        warn(f"memory={entry}: {entries} with XML entities other than &amp;; write their text")
    ignored = skipped.total() - shifted - unread + empty
    if ignored:
        languages = f"{with_code(config.source)} and {with_code(config.target)}"
        entries = "ignoring 1 entry" if ignored == 1 else f"ignoring {ignored:,} entries"
        warn(f"memory={entry}: {entries} without a pair of {languages}")


def pairs_of(entry: str, config: DataConfig, skipped: Counter[str]) -> Iterator[Pair]:
    """The pairs of an entry's files, in the order in which later ones replace earlier ones."""
    for paths in paths_of(entry, config):
        dated = dated_reader(paths)
        if dated:
            yield from by_date(paths[0], config, skipped, dated)
        elif is_of_suggestions(paths):
            yield from read_suggestions(paths[0], config)
        else:
            yield from read_files([":".join(map(str, paths))], config, skipped)


def can_be_empty(entries: Sequence[str], direction: Direction) -> bool:
    """Whether some files may have no pair yet, because suggestions will be added to them."""
    config = config_of(direction)
    return any(is_of_suggestions(paths) for entry in entries for paths in paths_of(entry, config))


def check_lines(path: Path) -> None:
    """Raise NMTError for the first damaged line of a file of text.

    Entries in other languages are skipped while a file is read, but damage would lose entries.
    """
    kind = table_format(path)
    if kind in NOT_LINES:
        return
    for number, line in enumerate(read_texts(path), 1):
        if kind != JSON_LINES or not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise NMTError(f"{path}, line {number}: not JSON; fix the line") from error
        if not isinstance(record, dict):
            raise NMTError(f"{path}, line {number}: not a JSON object; fix the line")


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
        if is_of_suggestions(paths):
            continue
        if len(paths) == 1:
            if not entries_of(PairsEntry)[table_format(paths[0])].names_languages:
                return False
        # Both files of SOURCE:TARGET are named by the user, those of a prefix by their suffixes.
        elif ":" in entry:
            return False
    return True
