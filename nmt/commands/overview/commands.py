"""`nmt runs`: list the runs and prepared corpora of a folder, or delete some; and `nmt plugins`."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt import files
from nmt.commands import find_folder, talker
from nmt.commands.overview.listing import Row, about, folders_of, place_of
from nmt.config import Command, NMTError, answer, choice, require
from nmt.registry import registry


@dataclass
class RunsConfig:
    """Options of `nmt runs`."""

    folder: str = "."
    """Folder that contains runs/ and data/, or runs themselves, or one run; may be given without
    folder=."""
    delete: list[str] = field(default_factory=list)
    """Runs and corpora to delete; may be given as `nmt runs delete NAME...`."""
    yes: bool = False
    """Delete without asking."""
    sort: str = choice("age", "age", "loss", "bleu", "f1")
    """Order of runs: age (newest first), or the validation score of that name (best first; runs
    without a score last)."""
    format: str = choice("text", "text", "json")
    """Output format: text or json."""


def run(config: RunsConfig) -> None:
    folder = Path(config.folder)
    rows = [about(path, kind) for path, kind in folders_of(folder)]
    rows.sort(key=newest_first)
    if config.sort != "age":
        rows.sort(key=lambda row: best_first(row, f"valid_{config.sort}"))
    if config.delete:
        # Late, because completion of `nmt runs` imports this file at each Tab.
        from nmt.commands.overview.deletion import delete

        # A name given twice counts once.
        names = list(dict.fromkeys(config.delete))
        try:
            delete(names, folder, rows, config.yes)
        # The folder disappeared between the listing and the deletion.
        except FileNotFoundError as error:
            raise NMTError(f"{error.filename}: another program has deleted this") from error
        return
    from nmt.commands.overview.details import details_of

    runs = [row["name"] for row in rows if row["kind"] == "run"]
    # The folder is itself the run, not a folder that contains one.
    details = details_of(folder) if runs == [str(folder)] else []
    if config.format == "json":
        tree: dict[str, Any] = {"folder": str(folder), "folders": rows}
        if details:
            tree["details"] = dict(details)
        print(json.dumps(tree, indent=2))
    elif rows:
        print_rows(rows, details)
    else:
        # On standard error, so that the output stays an empty table.
        talker().print(f"no runs or prepared corpora in {folder}; start with `nmt preprocess`")


def newest_first(row: Row) -> tuple[tuple[int, str], int]:
    """The sort key of a row: by kind, then by age."""
    return place_of(row["kind"]), -row["modified"]


def best_first(row: Row, score: str) -> tuple[tuple[int, str], float]:
    """The sort key of a row: by kind, then by a validation score."""
    value = row.get(score)
    if value is None:
        return place_of(row["kind"]), math.inf
    # The lowest loss is the best, but the highest value of any other score.
    return place_of(row["kind"]), value if score == "valid_loss" else -value


def print_rows(rows: list[Row], details: list[tuple[str, str]]) -> None:
    """Print tables of all folders and, below them, the details of a single run."""
    from nmt.commands.overview.tables import print_tables

    print_tables(rows)
    if details:
        print()
    for name, value in details:
        # Values come from untrusted files, which may contain control sequences of a terminal.
        print(files.printable(f"{name:12}{value}"))


def folder_or_names(words: list[str]) -> dict[str, Any]:
    name, *more = words
    if name == "delete":
        require(bool(more), "delete: name what to delete, as in `nmt runs delete runs/mine`")
        return {"delete": more}
    folder = find_folder(name)
    if folder is None:
        unknown = f"{name}: no such folder, run or corpus; `nmt runs` lists those in this folder"
        # The word may be a habit from another toolkit, for which a plugin has an answer.
        raise NMTError(answer("runs", [f"{name}="]) or unknown)
    if more:
        raise NMTError(f"{words[-1]}: give one folder or run, or `nmt runs delete NAME...`")
    return {"folder": str(folder)}


RUNS = Command(
    name="runs",
    config=RunsConfig,
    run=run,
    words=folder_or_names,
    usage="[FOLDER or RUN] or delete NAME...",
    examples=("", "delete runs/old data/old"),
    options={"--json": "format=json", "--yes": "yes=true"},
)


@dataclass
class PluginsConfig:
    """No options."""


def list_plugins(config: PluginsConfig) -> None:
    """Print what each plugin adds, by kind; the core comes first."""
    names: dict[tuple[str, str], list[str]] = {}
    for kind, entries in registry().items():
        for entry in entries.values():
            names.setdefault((entry.plugin, kind.kind), []).append(entry.name)
    for plugin, kind_name in sorted(names, key=core_first):
        added = ", ".join(names[plugin, kind_name])
        print(f"{plugin:12} {kind_name:9} {added}")


def core_first(plugin_and_kind: tuple[str, str]) -> tuple[bool, str, str]:
    plugin, kind = plugin_and_kind
    return plugin != "core", plugin, kind


PLUGINS = Command(
    name="plugins",
    config=PluginsConfig,
    run=list_plugins,
    examples=("", "| grep metric"),
)
