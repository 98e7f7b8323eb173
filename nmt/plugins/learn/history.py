"""What a run has learned: list it, undo it, remove old models."""

import shutil
from datetime import datetime
from typing import TYPE_CHECKING

from nmt import files
from nmt.commands import talker
from nmt.config import NMTError
from nmt.plugins.learn.command import LearnConfig
from nmt.plugins.learn.store import Store

if TYPE_CHECKING:
    from rich.console import Console
HEADER = ("number", "state", "date", "corrections", "held-out", "general", "verdict")
"""The columns of the table; the scores are those before and after."""


def bring_back(config: LearnConfig) -> int:
    """Put the model before the one in use in its place."""
    console = talker()
    store = Store(config.run)
    with files.only_process(store.home, "run"):
        record = store.latest()
        if record is None:
            raise NMTError(f"run={config.run}: nothing to undo; its model has not learned anything")
        exports = store.use(record.parent)
    console.print(f"undone: {store.model} is as it was before learning {record.number}")
    report_lost(exports, console)
    return 0


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
        for test in ("held_out", "general"):
            scores = record.tests[test]
            cells.append(f"{scores['before']:.2f} -> {scores['after']:.2f}")
        print("\t".join([*cells, record.verdict]))
    return 0


def prune(config: LearnConfig) -> int:
    """Remove all kept models but the one in use."""
    store = Store(config.run)
    with files.only_process(store.home, "run"):
        before = store.disk_bytes()
        kept = store.folder_of(store.current())
        for path in store.home.glob("models/*"):
            if path != kept:
                shutil.rmtree(path)
    megabytes = (before - store.disk_bytes()) / 1e6
    talker().print(f"removed the models before: {megabytes:,.0f} MB")
    return 0


def report_lost(exports: list[str], console: "Console") -> None:
    if exports:
        names = ", ".join(exports)
        console.print(
            f"removed exports of the model before: {names} (`nmt export` writes new ones)"
        )
