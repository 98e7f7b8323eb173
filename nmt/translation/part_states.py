"""Which parts of an output are complete, partial or missing."""

from collections.abc import Sequence
from pathlib import Path

from nmt.config import NMTError, Part, part_of_name
from nmt.translation.output import PARTIAL_SUFFIX, lines_done, partial_of

MOST_RANGES = 10
"""The maximum number of ranges of parts that a message lists."""
MOST_PARTIAL = 40
"""The maximum number of partial parts that a message lists."""


def check_all_are_complete(folder: Path, parts: Sequence[Part]) -> None:
    """Raise NMTError, which lists the parts in each state, unless all are complete."""
    # Listed once: a folder on a network file system answers each question slowly.
    names = {path.name for path in folder.iterdir()}
    complete = list[int]()
    partial = list[Part]()
    missing = list[int]()
    for part in parts:
        output = part.output_in(folder)
        if {output.name, part.record_in(folder).name} <= names:
            complete.append(part.number)
        elif partial_of(output).name in names:
            partial.append(part)
        else:
            missing.append(part.number)
    unfinished = sorted([*missing, *(part.number for part in partial)])
    if not unfinished:
        return
    states = []
    if complete:
        states.append(f"complete: {ranges_in_words(complete)}")
    if partial:
        states.append(f"partial, with their lines so far: {partial_in_words(folder, partial)}")
    if missing:
        states.append(f"missing: {ranges_in_words(missing)}")
    first = Part(unfinished[0], len(parts))
    raise NMTError(
        f"{folder}: unfinished parts: {ranges_in_words(unfinished)} of {len(parts)} "
        f"({'; '.join(states)}); wait for them, or run the command of a part that has stopped "
        f"again, as with part={first}"
    )


def partial_in_words(folder: Path, parts: Sequence[Part]) -> str:
    """Parts with the number of their lines that are done, such as "3 (12,000), 7 (400)"."""
    words = []
    for part in parts[:MOST_PARTIAL]:
        lines = lines_done(partial_of(part.output_in(folder)))
        words.append(f"{part.number} ({lines:,})")
    if len(parts) > MOST_PARTIAL:
        words.append("...")
    return ", ".join(words)


def number_of_parts(folder: Path) -> int:
    """The number of parts into which an input was cut; NMTError if it is not the same for all."""
    complete = set[int]()
    partial = set[int]()
    for path in folder.iterdir():
        part = part_of_name(path.name.removesuffix(".json"))
        if part:
            complete.add(part.count)
        # The partial file of `003-of-016` is `.003-of-016.nmt-partial`.
        part = part_of_name(path.name.removeprefix(".").removesuffix(PARTIAL_SUFFIX))
        if part:
            partial.add(part.count)
    # Killed jobs may have left partial files of another number of parts.
    counts = complete or partial
    if not counts:
        raise NMTError(f"{folder}: has no parts; run commands with part=I/N first")
    if len(counts) > 1:
        numbers = " and ".join(str(count) for count in sorted(counts))
        _, _, of_count = Part(1, min(counts)).name.partition("-")
        advice = f"delete the files of one number, such as '*-{of_count}*'"
        raise NMTError(f"{folder}: has parts of {numbers}; {advice}")
    return counts.pop()


def ranges_in_words(numbers: Sequence[int]) -> str:
    """Ascending numbers as ranges, such as "3, 7-9"."""
    ranges = list[list[int]]()
    for number in numbers:
        if ranges and ranges[-1][-1] == number - 1:
            ranges[-1][1:] = [number]
        else:
            ranges.append([number])
    words = ["-".join(map(str, ends)) for ends in ranges[:MOST_RANGES]]
    if len(ranges) > MOST_RANGES:
        words.append("...")
    return ", ".join(words)
