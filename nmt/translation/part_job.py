"""A job that processes one part of an input, and records what the part was computed from."""

import hashlib
import io
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

from nmt.config import JobConfig, NMTError, Part, SettingError
from nmt.files import sha256
from nmt.text import raw_lines
from nmt.translation.identity import changed_names, options_before, what_affects_output
from nmt.translation.job import Job, ReadLines, check_not_input, lines_to_do
from nmt.translation.output import Output, OutputFile, open_output
from nmt.translation.parts import (
    PartRecord,
    Slice,
    count_lines_before,
    is_unchanged,
    make_folder,
    open_slice,
    read_record,
    slice_of,
    write_record,
)
from nmt.translation.progress import Progress, show_progress
from nmt.translation.reporting import warn


def open_part(
    config: JobConfig, command: str, stack: ExitStack, read: ReadLines, block: int
) -> Job:
    """Open a part of the input, and its output in the folder of parts.

    A part that is complete has no lines left to process. Raises NMTError if the part was computed
    from something else, unless config.overwrite is set.
    """
    part = config.part_of_input
    assert part is not None
    check_not_input(Path(config.output), config.input)
    record = new_record(config, command, slice_of(config.input, part, block))
    folder = make_folder(config.output)
    path = part.output_in(folder)
    before = options_before(config)
    if not config.overwrite and is_complete(part, folder, record, before):
        warn(f"part {part} is complete: {path}")
        return Job(iter(()), Output(str(path), io.BytesIO()), lambda number: None)
    lines_in_words = "1 line" if record.lines == 1 else f"{record.lines:,} lines"
    # Before the output, so that it runs after the output has its name.
    stack.push(partial(report_end, f"part {part} is complete, {lines_in_words}: {path}"))
    opening = open_output(str(path), identity_of(record), config.overwrite, before)
    output = stack.enter_context(opening)
    assert isinstance(output, OutputFile)
    record_path = part.record_in(folder)
    # An output counts only together with its record, so the old ones do not mix with the new ones.
    record_path.unlink(missing_ok=True)
    if config.overwrite:
        output.path.unlink(missing_ok=True)
    # Before the output has its name: a kill between the two leaves a partial output to resume.
    output.before_renaming = partial(complete_record, record, record_path, output)
    source = stack.enter_context(open_slice(config.input, record.begin, record.end))
    size = record.end - record.begin
    progress = Progress(output.notes.lines, record.lines, size, clock=monotonic)
    lines = progress.watched(raw_lines(source, config.input, record.lines_before + 1))
    rest = lines_to_do(lines, output, record.lines, record.lines_before, read)
    # Parts run for hours in the background, so also in a log.
    show_progress(progress, config, f"{command} part {part}", stack, in_log=True)
    return Job(rest, output, progress, record.lines_before)


def new_record(config: JobConfig, command: str, cut: Slice) -> PartRecord:
    """The record of a part that is not computed yet; NMTError if its lines are not text."""
    lines_before = count_lines_before(config.input, cut.begin)
    lines = 0
    digest = hashlib.sha256()
    # Through `raw_lines`, so that a line that is too long is an error before the first translation.
    with open_slice(config.input, cut.begin, cut.end) as file:
        for line in raw_lines(file, config.input, lines_before + 1):
            digest.update(line)
            lines += 1
    return PartRecord(
        input=str(Path(config.input).absolute()),
        input_bytes=cut.size,
        begin=cut.begin,
        end=cut.end,
        lines_before=lines_before,
        lines=lines,
        sha256=digest.hexdigest(),
        identity={"command": command, **what_affects_output(config)},
        output_bytes=0,
        output_sha256="",
    )


def identity_of(record: PartRecord) -> dict[str, Any]:
    """Everything that determines the output of a part."""
    content = {
        "bytes": record.input_bytes,
        "begin": record.begin,
        "end": record.end,
        "lines_before": record.lines_before,
        "sha256": record.sha256,
    }
    return {"input": content, **record.identity}


def report_end(words: str, error_type: type[BaseException] | None, *details: object) -> None:
    """Print that a part is complete, unless an error ends its job."""
    if error_type is None:
        warn(words)


def complete_record(record: PartRecord, path: Path, file: Output, output: Path) -> None:
    """Write the record of a part with this complete output."""
    complete = replace(
        record,
        output_bytes=output.stat().st_size,
        output_sha256=sha256(output),
        counts=dict(file.notes.counts),
    )
    write_record(path, complete)


def is_complete(part: Part, folder: Path, record: PartRecord, before: Mapping[str, Any]) -> bool:
    """Whether a part has been computed; NMTError if it was computed from something else."""
    path = part.output_in(folder)
    record_path = part.record_in(folder)
    if not path.is_file() or not record_path.is_file():
        return False
    again = "pass overwrite=true to compute it again"
    try:
        recorded = read_record(record_path)
    except NMTError as error:
        raise NMTError(f"{error}; {again}") from error
    changed = changed_names(identity_of(recorded), identity_of(record), before)
    problem = ""
    if changed:
        problem = f"{path} was computed with another {', '.join(changed)}"
    elif not is_unchanged(path, recorded):
        problem = f"{path} has changed since it was written"
    if problem:
        raise SettingError(problem, key="part", value=str(part), advice=again)
    return True
