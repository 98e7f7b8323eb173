"""The reports of a job about its lines: warnings and notes, all on standard error."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from nmt.config import NMTError, shown
from nmt.translation.stages import Stage, Translation

contexts = list[str]()
"""What the process works on, such as `part 3/16`. No context variable: threads warn, too."""


def warn(words: str) -> None:
    context = contexts[-1] if contexts else ""
    # A message may name its part itself.
    if context and not words.startswith(context):
        words = f"{context}: {words}"
    print(f"nmt: {words}", file=sys.stderr)


@contextmanager
def naming_part(part: str | None) -> Iterator[None]:
    """Name the part I/N, if it is not None, in all messages and errors of the block.

    The messages of several processes may be in one log.
    """
    if part is None:
        yield
        return
    contexts.append(f"part {part}")
    try:
        yield
    except NMTError as error:
        if str(error).startswith("part"):
            raise
        raise error.within(f"part {part}") from error
    finally:
        contexts.pop()


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
    report_notes(best.notes, where, counts)
    return fields


def report_notes(notes: Mapping[str, str], where: str, counts: dict[str, int]) -> None:
    """Print a warning for each new kind of note on a line, and count the line; see `report`."""
    for note, details in notes.items():
        # Only the first line with a note: a corpus may have millions of them. `summarize` prints
        # the number of all.
        if not counts[note]:
            warn_of_note(where, note, details)
        counts[note] += 1


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


def summarize(counts: Mapping[str, int], named: Mapping[str, str] | None = None) -> None:
    """For each note that applies to more than one line, print the number of lines.

    `named` has words that name the lines with a note, if the caller knows which ones they are.
    """
    for note, count in counts.items():
        if count > 1:
            words = f"{count:,} lines: {note}"
            if named and note in named:
                words += f": {named[note]}"
            warn(words)
