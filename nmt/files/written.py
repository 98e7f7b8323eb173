"""The only list of the files that nmt writes: the kind of a folder, and files that are not nmt's.

Plugins add to it with an `ExporterEntry` or a `FolderEntry`: `marker` is the name of a file in each
such folder, and `files` is a regular expression for the names of the files in the folder.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from nmt.config import NMTError
from nmt.extensions import ExporterEntry, FolderEntry, StageEntry
from nmt.files.reading import LARGE, parse_json, read_mapping
from nmt.registry import entries_of

TEMPORARY_FILES = r"(.*/)?\.[^/]+\.nmt-tmp(/.*)?"
MODEL_NAMES = r"model\.safetensors|config\.json|tokenizer\.model|README\.md"
RUN_NAMES = "|".join(
    (
        r"config\.yaml|metrics\.csv|environment\.json|tokenizer\.model|\.lock",
        r"(report|compare|attention)\.html|citation-[^/]+\.zip",
        r"checkpoints/(step=\d+|best)\.ckpt",
        r"tensorboard/(events\.out\.tfevents\.[^/]+|hparams\.yaml)",
        r"wandb/.*",
        rf"model/({MODEL_NAMES})",
    )
)
CORPUS_NAMES = "|".join(
    (
        r"manifest\.json|tokenizer\.model",
        r"(valid|test)\.\w[\w.-]*",
        r"(train|valid|test)(/[\w-]+\.arrow)?",
    )
)
# A pattern that never matches.
NO_NAMES = "(?!)"
CORPUS_MARK = "manifest.json"
RUN_MARK = "config.yaml"
MODEL_MARK = "config.json"


def added_files() -> list[str]:
    """The names of the files that plugins add to model directories."""
    names = list[str]()
    for entry in entries_of(StageEntry).values():
        if entry.file:
            names += [entry.file, *entry.pictures]
    return names


def markers() -> set[str]:
    """The names of the files that may identify a folder."""
    added = {entry.marker for entry in added_folders()}
    return {CORPUS_MARK, RUN_MARK, MODEL_MARK, *added}


def added_folders() -> list[ExporterEntry | FolderEntry]:
    """The plugins' entries for folders that they write."""
    return [*entries_of(ExporterEntry).values(), *entries_of(FolderEntry).values()]


def entry_of(folder: Path) -> ExporterEntry | FolderEntry | None:
    """The plugin's entry for a folder that a plugin wrote."""
    for entry in added_folders():
        marker = folder / entry.marker
        # A link could make any folder look like one that nmt wrote and may delete.
        is_file = marker.is_file() and not marker.is_symlink()
        if is_file and entry.key in keys_in(marker):
            return entry
    return None


def is_part_of_another(folder: Path) -> bool:
    """Whether a folder is inside one that a plugin wrote, such as a training for that plugin."""
    return any(entry_of(parent) for parent in folder.parents)


def keys_in(file: Path) -> set[str]:
    """The keys of a JSON mapping, `exported_by` only if it is nmt; empty for other files."""
    try:
        tree = read_mapping(file, parse_json, LARGE)
    except NMTError:
        return set()
    # Other programs may use the same key.
    if tree.get("exported_by") != "nmt":
        tree.pop("exported_by", None)
    return {*tree}


def kind_of_folder(folder: Path) -> str | None:
    """run (or a model directory), corpus, export or a plugin's kind; None if nmt did not write it.

    A damaged file counts as nmt's, so that the damage is reported.
    """
    # The order matters: the folder of a run may also contain the markers of other kinds.
    if (folder / RUN_MARK).is_file():
        return "run"
    if (folder / CORPUS_MARK).is_file():
        return "corpus"
    if (folder / "model" / MODEL_MARK).is_file():
        return "run"
    entry = entry_of(folder)
    if entry:
        return "export" if entry.name in entries_of(ExporterEntry) else entry.name
    description = folder / MODEL_MARK
    if description.is_file():
        # Many programs write a config.json; only nmt's has
        # a format version. An unreadable one has no keys.
        keys = keys_in(description)
        return "run" if not keys or "format_version" in keys else None
    return None


def is_training_run(folder: Path) -> bool:
    """Whether a folder of the kind "run" is a run, not a model directory."""
    return (folder / RUN_MARK).is_file() or (folder / "model" / MODEL_MARK).is_file()


def files_beside(entry: ExporterEntry | FolderEntry | None) -> list[str]:
    """The patterns for the files in a plugin's folder. All exports have the same mark."""
    if entry is None:
        return [NO_NAMES]
    # The mark does not say which exporter wrote a folder, so the files of all exporters count.
    if isinstance(entry, ExporterEntry):
        return [export.files for export in entries_of(ExporterEntry).values()]
    return [entry.files]


def names_in(folder: Path, kind: str) -> re.Pattern[str]:
    """The names of the files that nmt writes into a folder of a kind, relative to it."""
    if kind == "corpus":
        names = CORPUS_NAMES
    elif kind == "run" and is_training_run(folder):
        added = "|".join(map(re.escape, added_files())) or NO_NAMES
        names = f"{RUN_NAMES}|model/({added})"
    elif kind in ("run", "model"):
        names = "|".join([MODEL_NAMES, *map(re.escape, added_files())])
    else:
        names = "|".join(files_beside(entry_of(folder)))
    return re.compile(f"{names}|{TEMPORARY_FILES}")


def foreign_files(folder: Path, kind: str) -> Iterator[Path]:
    """The files in a folder of a kind that nmt did not write; a link is never nmt's.

    Exports inside the folder count as nmt's, but not other files in them.
    """
    # Each path is judged by the nearest folder above it whose kind is known.
    patterns = {folder: names_in(folder, kind)}
    # Sorted, so that a folder comes before the files in it, whose patterns it decides.
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            if kind in ("run", "model") and entry_of(path):
                patterns[path] = names_in(path, "export")
            continue
        root = next(parent for parent in path.parents if parent in patterns)
        is_ours = patterns[root].fullmatch(path.relative_to(root).as_posix())
        if path.is_symlink() or not is_ours:
            yield path
