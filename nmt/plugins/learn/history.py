"""What a run has learned: list it, undo it, remove old models."""

import shutil
from datetime import datetime
from typing import TYPE_CHECKING

from nmt import files
from nmt.commands import talker
from nmt.config import NMTError
from nmt.plugins.learn.command import LearnConfig
from nmt.plugins.learn.store import TESTS, Store

if TYPE_CHECKING:
    from rich.console import Console
HEADER = ("number", "state", "date", "corrections", "held-out", "general", "verdict")
"""The columns of the table; the scores are those before and after."""


def bring_back(config: LearnConfig) -> int:
    """Put the model before the one in use in its place."""
    console = talker()
    store = Store(config.run)
    with files.only_process(store.home, "run"):
        parent = store.parent()
        record = store.latest()
        if parent is None or not (record or store.folder_of(parent).exists()):
            raise NMTError(f"run={config.run}: nothing to undo: {why_not(store, parent)}")
        exports = store.use(parent)
    number = f" {record.number}" if record else ""
    console.print(f"undone: {store.model} is as it was before learning{number}")
    if record:
        console.print("the same `nmt learn FILE...` brings the learned model back without training")
    report_lost(exports, console)
    return 0


def why_not(store: Store, parent: str | None) -> str:
    """Why there is no model to bring back, and what can be done by hand."""
    others = store.other_models()
    if parent is None and any(record.delivered for record in store.records()):
        return "all learnings have been undone"
    if not others:
        return "its model has not learned anything, or the models before were removed"
    newest = max(others, key=lambda path: path.stat().st_mtime)
    return (
        f"no record says which model was before; {len(others):,} kept in {newest.parent}: "
        f"to use one, run `rm -r {store.model} && cp -r {newest} {store.model}`"
    )


def print_history(config: LearnConfig) -> int:
    """Print a table with a row for each command that tried to learn."""
    store = Store(config.run)
    in_use = {record.number for record, is_part in store.history() if is_part}
    print("\t".join(HEADER))
    for record in store.records():
        state = "not delivered"
        if record.delivered:
            state = "in use" if record.number in in_use else "undone"
        time = store.path_of(record).stat().st_mtime
        cells = [
            str(record.number),
            state,
            datetime.fromtimestamp(time).strftime("%Y-%m-%d %H:%M"),
            str(record.corrections["training"]),
        ]
        for test in TESTS:
            scores = record.tests[test]
            cells.append(f"{scores['before']:.2f} -> {scores['after']:.2f}")
        print("\t".join([*cells, record.verdict]))
    for path in store.unreadable():
        print(f"{path.parent.name}\tunreadable\t\t\t\t\t{path}")
    return 0


def prune(config: LearnConfig) -> int:
    """Remove all kept models but the one in use, and what killed commands left."""
    store = Store(config.run)
    with files.only_process(store.home, "run"):
        before = store.disk_bytes()
        kept = store.folder_of(store.current())
        for path in store.home.glob("models/*"):
            if path != kept:
                shutil.rmtree(path)
        unfinished = store.remove_unfinished()
    megabytes = (before - store.disk_bytes()) / 1e6
    talker().print(f"removed the models before: {megabytes:,.0f} MB")
    if unfinished:
        talker().print(f"removed unfinished learnings: {unfinished:,}")
    return 0


def report_lost(exports: list[str], console: "Console") -> None:
    if exports:
        names = ", ".join(exports)
        console.print(
            f"removed exports of the model before: {names} (`nmt export` writes new ones)"
        )
