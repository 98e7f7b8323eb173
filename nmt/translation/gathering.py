"""Join the outputs of an input's parts into one file, after checking that they belong together."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from nmt.config import NMTError, Part, parts_folder
from nmt.text import open_bytes, reading
from nmt.translation.identity import changed_names
from nmt.translation.job import check_not_input
from nmt.translation.output import Output, open_output
from nmt.translation.part_states import check_all_are_complete, number_of_parts
from nmt.translation.parts import READ_BYTES, PartRecord, measure, read_record
from nmt.translation.score_counts import KEPT, PAIRS, kept_in_words


@dataclass(frozen=True)
class ComputedPart:
    """A part whose output and record exist."""

    part: Part
    output: Path
    record: PartRecord

    def refusal(self, problem: str) -> NMTError:
        """The error for a part that must be computed again."""
        advice = f"compute it again with part={self.part} overwrite=true"
        return NMTError(f"{self.output}: {problem}; {advice}")


@dataclass(frozen=True)
class Joined:
    """An output and its parts."""

    parts: list[ComputedPart]
    is_new: bool
    """Whether this command has written the output; False: it had been joined before."""


def gather(
    output: str,
    overwrite: bool = False,
    input: str | None = None,
    check_input: bool = True,
) -> Joined:
    """Join the parts of an output, in order.

    Writes nothing if the output has the content of these parts already. Compares the input's lines
    with the records of the parts, unless `check_input` is False. `input` is its path if it has been
    moved. The output appears once it is complete. Raises NMTError if parts are missing, do not
    belong together or have changed.
    """
    parts = computed_parts(output)
    check_same_input(parts)
    for item in parts:
        check_identity(item, parts[0].record.identity, f"than part {parts[0].part}")
    path = input or parts[0].record.input
    if check_input:
        check_lines_of_input(parts, path)
    # Also without the check, in case the paths are the same by mistake.
    if Path(path).exists():
        check_not_input(Path(output), path)
    if not overwrite and is_joined(output, parts):
        return Joined(parts, is_new=False)
    with open_output(output, overwrite=overwrite) as file:
        for item in parts:
            append(item, file)
    return Joined(parts, is_new=True)


def is_joined(output: str, parts: Sequence[ComputedPart]) -> bool:
    """Whether an output exists and has the content of these parts."""
    path = Path(output)
    if not path.is_file() or path.stat().st_size == 0:
        return False
    try:
        with open_bytes(output) as file:
            for item in parts:
                if sha256_of_next(file, item.record.output_bytes) != item.record.output_sha256:
                    return False
            return not file.read(1)
    # Not text, or damaged: something else, which `open_output` refuses to replace.
    except (NMTError, OSError, EOFError, ValueError):
        return False


def sha256_of_next(file: BinaryIO, size: int) -> str:
    """The SHA-256 of the next bytes of a file, which may end before."""
    digest = hashlib.sha256()
    while size and (content := file.read(min(size, READ_BYTES))):
        digest.update(content)
        size -= len(content)
    return digest.hexdigest()


def computed_parts(output: str) -> list[ComputedPart]:
    """All parts of an output with their records; NMTError if some are missing."""
    folder = parts_folder(output)
    if not folder.is_dir():
        advice = f"write them first, as in `nmt translate FILE RUN output={output} part=1/16`"
        raise NMTError(f"{folder}: no such folder of parts; {advice}")
    count = number_of_parts(folder)
    parts = [Part(number, count) for number in range(1, count + 1)]
    check_all_are_complete(folder, parts)
    return [computed_part(folder, part) for part in parts]


def computed_part(folder: Path, part: Part) -> ComputedPart:
    """A part with its record; NMTError if the record is damaged."""
    try:
        record = read_record(part.record_in(folder))
    except NMTError as error:
        advice = f"compute the part again with part={part} overwrite=true"
        raise NMTError(f"{error}; {advice}") from error
    return ComputedPart(part, part.output_in(folder), record)


def check_same_input(parts: Sequence[ComputedPart]) -> None:
    """Raise NMTError unless the parts together have each line of one input exactly once."""
    end = 0
    lines = 0
    size = parts[0].record.input_bytes
    for item in parts:
        record = item.record
        follows = (record.begin, record.lines_before) == (end, lines)
        if record.input_bytes != size or not follows:
            raise item.refusal("was computed from another input than the parts before it")
        end = record.end
        lines += record.lines
    if end != size:
        raise parts[-1].refusal("does not end with the input")


def check_identity(
    item: ComputedPart,
    identity: Mapping[str, Any],
    than: str,
    before: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Raise NMTError if a part was computed by another command, or with another model or option.

    `than` names what the part is compared with.
    """
    changed = changed_names(item.record.identity, dict(identity), before)
    if changed:
        raise item.refusal(f"was computed with another {', '.join(changed)} {than}")


def check_lines_of_input(parts: Sequence[ComputedPart], name: str) -> None:
    """Raise NMTError if the lines of a part have changed since it was computed."""
    if not Path(name).is_file():
        advice = "pass its path as input=FILE, or check_input=false"
        raise NMTError(f"{name}: the input is missing, so it cannot be checked; {advice}")
    size = Path(name).stat().st_size
    for item in parts:
        record = item.record
        lines, digest = measure(name, record.begin, record.end)
        if (size, lines, digest) != (record.input_bytes, record.lines, record.sha256):
            raise item.refusal(f"{name} has changed since this part was computed")


def append(item: ComputedPart, file: Output) -> None:
    """Write the output of a part to the joined output; NMTError if it has changed."""
    record = item.record
    digest = hashlib.sha256()
    size = 0
    with reading(item.output), item.output.open("rb") as source:
        while content := source.read(READ_BYTES):
            digest.update(content)
            size += len(content)
            file.write(content, record.lines_before + record.lines)
    if size != record.output_bytes:
        problem = f"has {size:,} bytes, but {record.output_bytes:,} were written"
        raise item.refusal(problem)
    if digest.hexdigest() != record.output_sha256:
        raise item.refusal("has changed since it was written")


def counts_of_parts(parts: Sequence[ComputedPart]) -> Counter[str]:
    """The counts of the jobs that have computed the parts."""
    counts = Counter[str]()
    for item in parts:
        counts.update(item.record.counts)
    return counts


def gathered_in_words(parts: Sequence[ComputedPart]) -> str:
    """What the joined output has, such as "30 lines of 2 parts"."""
    counts = counts_of_parts(parts)
    lines = sum(item.record.lines for item in parts)
    if counts[KEPT] < counts[PAIRS]:
        # A filter has left out lines.
        return f"{kept_in_words(counts)} ({len(parts):,} parts)"
    return f"{lines:,} lines of {len(parts):,} parts"


def remove_parts(parts: Sequence[ComputedPart]) -> None:
    """Remove parts that have been joined, and their folder if nothing else is in it."""
    folder = parts[0].output.parent
    for item in parts:
        # In this order: without its record, an output does not count as a part.
        item.part.record_in(folder).unlink(missing_ok=True)
        item.output.unlink(missing_ok=True)
    # Other files in the folder stay.
    with suppress(OSError):
        folder.rmdir()
