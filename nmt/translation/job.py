"""A job over lines: its input, its output, progress, and resumption after a kill.

An output file is whole or not there. Lines go to `.NAME.nmt-partial`, which is renamed at the end.
`.NAME.nmt-partial.json` beside it records which input, model and options it is for, and how much of it is on the disk.
"""

import fcntl
import hashlib
import io
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from nmt.config import JobConfig, TranslatorOptions, build, flatten, keys_of, require, to_tree
from nmt.errors import NMTError
from nmt.files import LARGE, cannot_write, find_model_directory, parse_json, read_mapping, sha256, sync, write_file
from nmt.text import decoded, open_text, raw_lines, reading, without_end

Result = TypeVar("Result")
SAVE_SECONDS = 5.0
"""Seconds between saves, which bring the file to the disk."""


def warn(words: str) -> None:
    print(f"nmt: {words}", file=sys.stderr)


def input_lines(file: Iterable[bytes], first: int = 1, notice: Callable[[str], None] = warn) -> Iterator[str]:
    """The texts of lines, the first of which has number `first`; a notice names the first one of invalid UTF-8."""
    notices = iter([notice])  # which the first one takes

    def name_first(words: str) -> None:
        for give in notices:
            give(f"{words}; more such lines are not named")

    for number, text in enumerate(decoded(map(without_end, file), "", first, name_first), first):
        yield text.removeprefix("\ufeff") if number == 1 else text


def what_decides(config: JobConfig | TranslatorOptions) -> dict[str, Any]:
    """What decides what lines become: the SHA-256 of weights, and keys, or of their file (metadata `decides`)."""
    translator = config.translator if isinstance(config, JobConfig) else config
    weights = [sha256(find_model_directory(name) / "model.safetensors") for name in translator.run]
    decides, members = dict[str, Any](model=weights), keys_of(cast(Any, type(config)))
    for key, value in flatten(to_tree(config)).items():
        kind = members[key].metadata.get("decides") if key in members else None
        if kind != "nothing":
            decides[key] = sha256(Path(value).resolve()) if kind == "content" and value else value
    return decides


@dataclass
class Notes:
    """The content of an output."""

    identity: str = ""  # SHA-256 of all that decides what a file will hold; empty if the command cannot be resumed
    lines: int = 0  # of the input, that are done
    bytes: int = 0  # written for them
    counts: dict[str, int] = field(default_factory=Counter)  # lines of each kind, for the summary at the end


class Output:
    """A file or stream for lines, with notes of what was written to it, also by an earlier command."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name, self.file, self.notes = name, file, Notes()

    def write(self, text: str | bytes, lines: int) -> None:
        """Write the output for the input up to line `lines`, at once; NMTError if the disk is full."""
        content = text.encode() if isinstance(text, str) else text
        try:
            self.file.write(content)
            self.file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(Path(self.name), error) from error
        self.notes.lines, self.notes.bytes = lines, self.notes.bytes + len(content)

    def close(self) -> None:
        with suppress(OSError):  # `write` reported what could not be written
            self.file.close()


class PartialFile(Output):
    """An output file that is not whole yet; NMTError if it is a link, or another process is writing it."""

    def __init__(self, path: Path, identity: dict[str, Any] | None) -> None:
        self.saved, self.partial = 0.0, path.with_name(f".{path.name}.nmt-partial")
        self.notes_file = path.with_name(f".{path.name}.nmt-partial.json")
        try:
            file = os.fdopen(os.open(self.partial, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "r+b")
            super().__init__(str(path), file)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise NMTError(f"output={path}: another nmt is writing it; name another file") from error
        except OSError as error:
            raise NMTError(f"{path}: {error.strerror}") from error
        if identity:
            self.notes.identity = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
            with suppress(NMTError):
                self.resume()
        file.truncate(self.notes.bytes)
        file.seek(self.notes.bytes)

    def resume(self) -> None:
        """Take over the notes of an earlier command with the same identity, if the file agrees with them."""
        notes = build(Notes, read_mapping(self.notes_file, parse_json), str(self.notes_file))
        self.file.seek(max(notes.bytes - 1, 0))
        ends_line = notes.bytes > 0 and self.file.read(1) == b"\n"
        if notes.identity == self.notes.identity and notes.lines > 0 and ends_line:
            notes.counts, self.notes = Counter(notes.counts), notes

    def write(self, text: str | bytes, lines: int) -> None:
        # Notes are complete here: callers count a line before or after they write it.
        if self.notes.identity and self.notes.lines and time.monotonic() - self.saved > SAVE_SECONDS:
            self.save()
        super().write(text, lines)

    def save(self) -> None:
        """Bring what was written to the disk, then note how much that is."""
        sync(self.partial)
        write_file(self.notes_file, json.dumps(vars(self.notes)) + "\n")
        self.saved = time.monotonic()


@contextmanager
def output_file(path: Path, identity: dict[str, Any] | None) -> Iterator[Output]:
    """A file that is whole at the end. After an error, a command with the same identity resumes."""
    output = PartialFile(path, identity)
    try:
        yield output
        try:
            sync(output.partial)
            output.partial.replace(path)
            sync(path.parent)
        except OSError as error:
            raise cannot_write(path, error) from error
        output.notes_file.unlink(missing_ok=True)
    except BaseException:
        with suppress(NMTError):  # if the disk is full, the last save counts
            if output.notes.identity and output.notes.lines:
                output.save()
            else:
                output.partial.unlink(missing_ok=True)
                output.notes_file.unlink(missing_ok=True)
        raise
    finally:
        output.close()


def open_output(config: JobConfig, identity: dict[str, Any] | None, stack: ExitStack) -> Output:
    """The output. `stack` closes a file: it is then whole, or the same command resumes later."""
    path = Path(config.output)
    if config.output == "-":
        return Output("standard output", sys.stdout.buffer)
    if path.is_file() or not path.exists():
        return stack.enter_context(output_file(path, identity))
    try:
        output = Output(config.output, path.open("wb"))  # a device, or a pipe
    except OSError as error:
        raise NMTError(f"{error.filename}: {error.strerror}") from error
    stack.callback(output.close)
    return output


def open_source(config: JobConfig, stack: ExitStack) -> "io.BufferedReader[Any]":
    """The input; NMTError if it, or standard output, cannot be used, or if the output would replace it."""
    no_output = config.output == "-" and sys.stdout is None
    require(not no_output, "standard output is closed: name a file with output=FILE")
    typed = io.BytesIO((config.text or "").encode())
    source: io.BufferedReader = open_text(config.input) if config.text is None else io.BufferedReader(typed)
    if config.input != "-":  # a thread may still wait in standard input at the end
        stack.enter_context(source)
    output = Path(config.output)
    if output.is_file() and config.text is None:  # a terminal may be both
        of_input = os.fstat(sys.stdin.fileno()) if config.input == "-" else Path(config.input).stat()
        is_input = os.path.samestat(of_input, output.stat())
        require(not is_input, f"output={output} is the input, which would be lost: name another file")
    return source


def name_of(config: JobConfig) -> str:
    return "standard input" if config.input == "-" else config.input


def open_document(config: JobConfig, stack: ExitStack) -> tuple[bytes, Output]:
    """The content of a document, and an output for its translation; NMTError if that fails."""
    with reading(name_of(config)):
        content = open_source(config, stack).read(LARGE + 1)
    require(len(content) <= LARGE, f"{name_of(config)}: larger than the {LARGE:,} bytes that a document may have")
    return content, open_output(config, None, stack)


def progress_of(config: JobConfig, verb: str, done: int, total: int | None, stack: ExitStack) -> Callable[[int], None]:
    """What shows the number of lines done, if standard error is a terminal and the output is not."""
    if sys.stderr is None or not sys.stderr.isatty() or (config.output == "-" and sys.stdout.isatty()):
        return lambda number: None
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    of_total = "" if total is None else " of {task.total:,.0f}"
    columns = TextColumn("{task.description}: {task.completed:,.0f}" + of_total + " lines"), BarColumn()
    # Lines come in blocks, so the speed is that of a long period.
    bar = stack.enter_context(
        Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), speed_estimate_period=600)
    )
    task = bar.add_task(verb, completed=done, total=total)
    return lambda number: bar.update(task, completed=number)


@dataclass
class Job:
    """The lines that are still to be done, and their output."""

    lines: Iterator[str]
    output: Output
    show: Callable[[int], None]

    def run(self, stream: Callable[[Iterator[str]], Iterator[Result]]) -> Iterator[tuple[int, str, Result]]:
        """The number of each line, counted from 1, the line, and what `stream`, which may read ahead, gives for it."""
        read = deque[str]()

        def remembered() -> Iterator[str]:
            for line in self.lines:
                read.append(line)
                yield line

        for number, result in enumerate(stream(remembered()), self.output.notes.lines + 1):
            yield number, read.popleft(), result
            self.show(number)


def open_job(config: JobConfig, command: str, stack: ExitStack) -> Job:
    """Open input and output; a partial output is resumed if command, input, models and keys are the same."""
    source, total, identity = open_source(config, stack), None, None
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    if Path(config.input).is_file() and (config.output != "-" or on_terminal):
        total, digest = 0, hashlib.sha256()
        with open_text(config.input) as file:
            for total, line in enumerate(raw_lines(file, config.input), 1):  # noqa: B007
                digest.update(line)
        identity = {"command": command, "input": digest.hexdigest(), **what_decides(config)}
    output = open_output(config, identity, stack)
    lines, done = raw_lines(source, name_of(config)), output.notes.lines
    deque(islice(lines, done), maxlen=0)
    if done:
        warn(f"{done:,} of {total:,} lines were done before: going on from there")
    if source.isatty():
        warn("type lines; Ctrl-D ends")
    return Job(input_lines(lines, done + 1), output, progress_of(config, command, done, total, stack))
