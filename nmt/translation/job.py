"""A job that processes lines: its input, output, notes and progress, and how it resumes after being killed.

An output file appears once it is complete. Until then, the lines written so far are in `.NAME.nmt-partial`. Next to it,
`.NAME.nmt-partial.json` records the input, model and options, and how much of the output is on disk.

Partial files are not compressed, so that a job can resume after any line. nmt compresses an
output such as `out.gz` when it is complete.
"""

import fcntl
import hashlib
import io
import json
import os
import shutil
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TypeVar, cast

from nmt import config as configuration
from nmt.config import JobConfig, NMTError, build_stored, require, shown
from nmt.files import LARGE, cannot_write, parse_json, read_mapping, sync, write_file
from nmt.text import MAGIC, compressor, decoded, open_text, raw_lines, reading, without_end
from nmt.translation.identity import changed_names, is_same, options_before, what_affects_output
from nmt.translation.inputs import HEAD_BYTES, check_content
from nmt.translation.translator import Stage, Translation

Result = TypeVar("Result")
COPY_BYTES = 2**20  # how much of an output to compress at once
SAVE_SECONDS = 5.0  # between saves, which sync the file to disk


def warn(words: str) -> None:
    print(f"nmt: {words}", file=sys.stderr)


def input_lines(file: Iterable[bytes], first: int = 1) -> Iterator[str]:
    """Decode lines, numbered from `first`; a warning names the first line with invalid UTF-8."""
    warnings = iter([warn])

    def warn_once(words: str) -> None:
        for give in warnings:
            give(f"{words}; further such lines are not reported")

    for number, text in enumerate(decoded(map(without_end, file), "", first, warn_once), first):
        yield text.removeprefix("\ufeff") if number == 1 else text


@dataclass
class Notes:
    """What has been written to an output by this command and by any earlier ones that it resumes."""

    # What determines the output, or a name for it; empty if the command cannot be resumed.
    identity: str | dict[str, Any] = ""
    lines: int = 0  # input lines that are done
    bytes: int = 0  # output bytes written for them
    counts: dict[str, int] = field(
        default_factory=Counter
    )  # note -> number of lines with it, for the final summary


class Output:
    """A file or stream to write lines to; `partial` is the file's path until it is complete."""

    def __init__(self, name: str, file: BinaryIO, partial: Path | None = None) -> None:
        self.name, self.file, self.partial, self.notes, self.saved = (
            name,
            file,
            partial,
            Notes(),
            0.0,
        )

    def write(self, text: str | bytes, lines: int) -> None:
        """Write and flush the output up to input line `lines`; NMTError if the disk is full."""
        # Save first: here, all earlier lines have been counted, whether callers count before or after writing.
        if time.monotonic() - self.saved > SAVE_SECONDS:
            self.save()
        content = text.encode() if isinstance(text, str) else text
        try:
            self.file.write(content)
            self.file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(Path(self.name), error) from error
        self.notes.lines, self.notes.bytes = lines, self.notes.bytes + len(content)

    def recorded(self) -> Notes | None:
        """What an earlier command noted about the partial file; None if it noted nothing that fits the file."""
        assert self.partial
        try:
            notes = build_stored(Notes, read_mapping(notes_of(self.partial), parse_json), "notes")
        except NMTError:
            return None
        self.file.seek(max(notes.bytes - 1, 0))
        ends_line = notes.bytes > 0 and self.file.read(1) == b"\n"
        return notes if notes.identity and notes.lines > 0 and ends_line else None

    def check_same(self, identity: str | dict[str, Any], before: Mapping[str, Any]) -> None:
        """Raise NMTError if the lines in the partial file are those of another command."""
        notes = self.recorded()
        if notes is None or is_same(notes.identity, identity, before):
            return
        others = ", ".join(changed_names(notes.identity, identity, before))
        raise NMTError(
            f"output={self.name}: a stopped command has written {notes.lines:,} lines with another {others}; "
            "repeat that command to resume it, or pass overwrite=true to start again"
        )

    def resume(self, identity: str | dict[str, Any], before: Mapping[str, Any]) -> None:
        """Continue where an earlier command with the same identity stopped, if the partial file matches its notes.

        `before` has the values of options that the earlier command may not have had.
        """
        notes = self.recorded()
        self.notes.identity = identity
        if notes and identity and is_same(notes.identity, identity, before):
            notes.counts = Counter(notes.counts)
            self.notes = notes
        self.file.truncate(self.notes.bytes)
        self.file.seek(self.notes.bytes)

    def save(self) -> bool:
        """Sync the output to disk, then record how much is done; return False if there would be nothing to resume."""
        if self.partial is None or not self.notes.identity or not self.notes.lines:
            return False
        sync(self.partial)
        write_file(notes_of(self.partial), json.dumps(vars(self.notes)) + "\n")
        self.saved = time.monotonic()
        return True


def create(path: Path, flags: int) -> int:
    """Open a file of ours, which others may have replaced by a link, and return its descriptor."""
    return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def compressed(partial: Path, suffix: str) -> Path:
    """Write a compressed copy of a partial file next to it, and return its path; OSError if the disk is full."""
    path = partial.with_name(f"{partial.name}{suffix}")
    try:
        with (
            partial.open("rb") as source,
            os.fdopen(create(path, os.O_WRONLY | os.O_TRUNC), "wb") as file,
            compressor(file, suffix) as target,
        ):
            shutil.copyfileobj(source, target, COPY_BYTES)
        sync(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def notes_of(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


@contextmanager
def open_output(
    name: str,
    identity: str | dict[str, Any] = "",
    overwrite: bool = False,
    before: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Output]:
    """Open an output. A file appears once complete; after an error, a command with the same identity resumes it.

    `before` has the values of options that the notes of an older nmt lack.
    If its name ends in .gz, .bz2, .xz or .zst, it is compressed.
    Raises NMTError if the file exists, another process is writing it, or the partial file is a link.
    """
    path, partial, suffix = Path(name), None, ""
    if name == "-":
        require(sys.stdout is not None, "standard output is closed: name a file with output=FILE")
        yield Output("standard output", sys.stdout.buffer)
        return
    try:
        if path.exists() and not path.is_file():  # a device, or a pipe
            file: BinaryIO = path.open("wb")
        else:
            path = (
                path.resolve()
            )  # replace what a link names, not the link, which may be /dev/stdout
            is_new = overwrite or not path.exists() or path.stat().st_size == 0
            require(
                is_new,
                f"output={name} exists: pass overwrite=true to replace it, or name another file",
            )
            suffix = next((end for end in (Path(name).suffix, path.suffix) if end in MAGIC), "")
            partial = path.with_name(f".{path.name}.nmt-partial")
            file = os.fdopen(create(partial, os.O_RDWR), "r+b")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise NMTError(
            f"output={name}: another nmt process is writing it; name another file"
        ) from error
    except OSError as error:
        raise NMTError(f"{name}: {error.strerror}") from error
    output = Output(name, file, partial)
    if partial and not overwrite:
        try:
            output.check_same(identity, before)
        except NMTError:
            file.close()
            raise
    try:
        if partial is None:
            yield output
            return
        output.resume(identity, before)
        yield output
        try:
            sync(partial)
            whole = partial
            if suffix:
                output.save()  # if the computer stops now, all lines are done
                whole = compressed(partial, suffix)
            whole.replace(path)
            sync(path.parent)
        except OSError as error:
            raise cannot_write(path, error) from error
        for leftover in (partial, notes_of(partial)):
            leftover.unlink(missing_ok=True)
    except BaseException:
        with suppress(NMTError):  # if the disk is full, the last successful save counts
            if partial and not output.save():
                partial.unlink(missing_ok=True)
                notes_of(partial).unlink(missing_ok=True)
        raise
    finally:
        with suppress(OSError):  # `write` has already reported the error
            file.close()


def report(
    stages: Sequence[Stage], line: str, best: Translation, where: str, counts: dict[str, int]
) -> dict[str, Any]:
    """Return the fields that stages add to a line's record; count its notes, and print each when it first occurs."""
    fields = dict[str, Any]()
    if best.copied:
        fields["copied"], copied = (
            best.copied,
            "characters that the model did not learn were copied",
        )
        best.notes[copied] = shown(", ".join(map(repr, best.copied)))
    for stage in reversed(stages):  # translations leave the stages in reverse order
        fields |= stage.report(line, best)
    for note, details in best.notes.items():
        if not counts[note]:
            warn(f"{where}: {note}" + (f": {details}" if details else ""))
        counts[note] += 1
    return fields


def summarize(counts: Mapping[str, int]) -> None:
    """For each note that applies to more than one line, print the number of lines."""
    for note, count in counts.items():
        if count > 1:
            warn(f"{count:,} lines: {note}")


def open_source(config: JobConfig, stack: ExitStack) -> "io.BufferedReader[Any]":
    """Open the input; NMTError if that fails or the output would overwrite it."""
    if config.text is not None:
        return io.BufferedReader(cast(Any, io.BytesIO(config.text.encode())))
    source, output = open_text(config.input), Path(config.output)
    is_pipe = not Path(config.input).is_file() and not source.isatty()
    if isinstance(config, configuration.TranslateConfig) and config.is_guess and is_pipe:
        name = "standard input" if config.input == "-" else config.input
        with reading(name):
            head = source.peek(HEAD_BYTES)
        check_content(name, head)
    if (
        config.input != "-"
    ):  # standard input stays open: at the end, a thread may still be reading it
        stack.enter_context(source)
    if output.is_file():  # a terminal, in contrast, may be both input and output
        of_input = (
            os.fstat(sys.stdin.fileno()) if config.input == "-" else Path(config.input).stat()
        )
        is_input = os.path.samestat(of_input, output.stat())
        require(not is_input, f"output={output}: would overwrite the input; name another file")
    return source


def open_document(config: JobConfig, stack: ExitStack) -> tuple[bytes, Output]:
    """Read a document, and open an output for its translation."""
    name = "standard input" if config.input == "-" else config.input
    with reading(name):
        content = open_source(config, stack).read(LARGE + 1)
    require(len(content) <= LARGE, f"{name}: larger than {LARGE:,} bytes, the limit for a document")
    return content, stack.enter_context(open_output(config.output, overwrite=config.overwrite))


def progress_of(
    config: JobConfig, verb: str, done: int, total: int | None, stack: ExitStack
) -> Callable[[int], None]:
    """A function that shows how many lines are done, but only if standard error is a terminal and the output is not."""
    if (
        sys.stderr is None
        or not sys.stderr.isatty()
        or (config.output == "-" and sys.stdout.isatty())
    ):
        return lambda number: None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    of_total = "" if total is None else " of {task.total:,.0f}"
    columns = (
        TextColumn("{task.description}: {task.completed:,.0f}" + of_total + " lines"),
        BarColumn(),
    )
    # Lines come in blocks, so the speed is averaged over a long period.
    bar = Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), speed_estimate_period=600
    )
    task = stack.enter_context(bar).add_task(verb, completed=done, total=total)
    return lambda number: bar.update(task, completed=number)


@dataclass
class Job:
    """The lines still to be processed, and the output for their results."""

    lines: Iterator[str]
    output: Output
    show: Callable[[int], None]

    def run(
        self, stream: Callable[[Iterator[str]], Iterator[Result]]
    ) -> Iterator[tuple[int, str, Result]]:
        """Yield each line's number (from 1), the line, and its result from `stream`, which may read ahead."""
        read = deque[str]()

        def remembered() -> Iterator[str]:
            for line in self.lines:
                read.append(line)
                yield line

        for number, result in enumerate(stream(remembered()), self.output.notes.lines + 1):
            yield number, read.popleft(), result
            self.show(number)


def open_job(config: JobConfig, command: str, stack: ExitStack) -> Job:
    """Open input and output; resume a partial output if the command, input, models and keys are the same."""
    source = open_source(config, stack)
    total = None
    identity: str | dict[str, Any] = ""
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    if Path(config.input).is_file() and (config.output != "-" or on_terminal):
        total, digest = 0, hashlib.sha256()
        with open_text(config.input) as file:
            for line in raw_lines(file, config.input):
                digest.update(line)
                total += 1
        identity = {"command": command, "input": digest.hexdigest(), **what_affects_output(config)}
    before = options_before(config)
    output = stack.enter_context(open_output(config.output, identity, config.overwrite, before))
    lines = raw_lines(source, "standard input" if config.input == "-" else config.input)
    done = output.notes.lines
    deque(islice(lines, done), maxlen=0)
    if done:
        warn(f"resuming after {done:,} of {total:,} lines")
    if source.isatty():
        warn("type one line at a time; Ctrl-D ends the input")
    return Job(
        input_lines(lines, done + 1), output, progress_of(config, command, done, total, stack)
    )
