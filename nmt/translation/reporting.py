"""The reports of a job about its lines: warnings, notes and progress, all on standard error."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from nmt.config import JobConfig, shown
from nmt.translation.stages import Stage, Translation


def warn(words: str) -> None:
    print(f"nmt: {words}", file=sys.stderr)


def report(
    stages: Sequence[Stage],
    line: str,
    best: Translation,
    where: str,
    counts: dict[str, int],
) -> dict[str, Any]:
    """The fields that stages add to a line's record.

    Counts the notes of the translation, and prints each note when it first occurs.
    """
    fields = dict[str, Any]()
    if best.copied:
        fields["copied"] = best.copied
        copied = ", ".join(map(repr, best.copied))
        best.notes["characters that the model did not learn were copied"] = shown(copied)
    for stage in reversed(stages):  # translations leave the stages in reverse order
        fields |= stage.report(line, best)
    for note, details in best.notes.items():
        # One warning per kind of note: a corpus may have
        # millions of such lines. `summarize` has the rest.
        if not counts[note]:
            warn(f"{where}: {note}: {details}" if details else f"{where}: {note}")
        counts[note] += 1
    return fields


def summarize(counts: Mapping[str, int]) -> None:
    """For each note that applies to more than one line, print the number of lines."""
    for note, count in counts.items():
        if count > 1:
            warn(f"{count:,} lines: {note}")


def progress_of(
    config: JobConfig,
    verb: str,
    done: int,
    total: int | None,
    stack: ExitStack,
) -> Callable[[int], None]:
    """A function that shows how many lines are done.

    It shows nothing unless standard error is a terminal and the output is not.
    """
    # Python sets `sys.stderr` to None if the process starts with it closed.
    has_terminal = sys.stderr is not None and sys.stderr.isatty()
    if not has_terminal or (config.output == "-" and sys.stdout.isatty()):
        return lambda number: None
    # Imported here, because it takes time that a job without a terminal need not spend.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    of_total = "" if total is None else " of {task.total:,.0f}"
    bar = Progress(
        TextColumn("{task.description}: {task.completed:,.0f}" + of_total + " lines"),
        BarColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        speed_estimate_period=600,  # long, because lines come in blocks
    )
    task = stack.enter_context(bar).add_task(verb, completed=done, total=total)
    return lambda number: bar.update(task, completed=number)
