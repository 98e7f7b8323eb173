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
    """Print a warning for each new kind of note on a line's best translation.

    Returns the fields that the line's record gets from copies and from the stages, such as
    {"copied": ["☃"]}. `where` names the line in warnings. `counts` are the numbers of lines with
    each note so far (0 for one without an entry), to which this line is added.
    """
    fields = fields_of(stages, line, best)
    for note, details in best.notes.items():
        # Only the first line with a note: a corpus may have millions of them. `summarize` prints
        # the number of all.
        if not counts[note]:
            warn_of_note(where, note, details)
        counts[note] += 1
    return fields


def fields_of(stages: Sequence[Stage], line: str, best: Translation) -> dict[str, Any]:
    """The fields that a line's record gets from copies and from the stages.

    Completes the notes on the translation.
    """
    fields = dict[str, Any]()
    if best.copied:
        fields["copied"] = best.copied
        copied = ", ".join(map(repr, best.copied))
        best.notes["characters that the model did not learn were copied"] = shown(copied)
    # Lines pass through the stages in order, and translations in reverse order.
    for stage in reversed(stages):
        # A stage may also add notes to the translation.
        fields |= stage.report(line, best)
    return fields


def warn_of_note(where: str, note: str, details: str) -> None:
    """Print a note on a translation; `where` names its line."""
    warning = f"{where}: {note}"
    if details:
        warning += f": {details}"
    warn(warning)


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
    unit: str = "lines",
) -> Callable[[int], None]:
    """A function that shows how many lines, or other units, are done.

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
        TextColumn("{task.description}: {task.completed:,.0f}" + of_total + f" {unit}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        speed_estimate_period=600,  # long, because lines come in blocks
    )
    task = stack.enter_context(bar).add_task(verb, completed=done, total=total)
    return lambda number: bar.update(task, completed=number)
