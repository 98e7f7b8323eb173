"""A job of translating or parsing: lines from a file or stream, an output for each line, and progress."""

import hashlib
import io
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from nmt.config import JobConfig, require
from nmt.errors import NMTError
from nmt.files import LARGE
from nmt.text import decoded, open_text, raw_lines, reading, without_end
from nmt.translation.resumption import Output, close, output_file, what_decides

Found = TypeVar("Found")
NAMED_LINES = 5


def warn(words: str) -> None:
    print(f"nmt: {words}", file=sys.stderr)


def input_lines(file: Iterable[bytes], first: int = 1, notice: Callable[[str], None] = warn) -> Iterator[str]:
    """The texts of lines as they arrive, without a byte order mark; `first` is the number of the first line.

    Only the first lines of invalid UTF-8 are named.
    """
    named = count(1)

    def name_first(words: str) -> None:
        number = next(named)
        if number <= NAMED_LINES:
            notice(words if number < NAMED_LINES else f"{words}; more such lines are not named")

    for number, text in enumerate(decoded(map(without_end, file), "", first, name_first), first):
        yield text.removeprefix("\ufeff") if number == 1 else text


def is_input(config: JobConfig) -> bool:
    """True if the output file is the input under any name; a terminal may be both."""
    output = Path(config.output)
    if not output.is_file():
        return False
    if config.input == "-":
        return os.path.samestat(os.fstat(sys.stdin.fileno()), output.stat())
    return Path(config.input).exists() and output.samefile(config.input)


def open_output(config: JobConfig, identity: dict[str, Any] | None, stack: ExitStack) -> Output:
    """The output. `stack` closes a file: it is then whole, or the same command goes on with it later."""
    path = Path(config.output)
    if config.output == "-":
        return Output("standard output", sys.stdout.buffer)
    if path.exists() and not path.is_file():  # a device, or a pipe
        try:
            file = path.open("wb")
        except OSError as error:
            raise NMTError(f"{error.filename}: {error.strerror}") from error
        stack.callback(close, file)
        return Output(config.output, file)
    return stack.enter_context(output_file(path, identity))


def read_through(name: str) -> tuple[int, str]:
    """The number of lines of a file, and the SHA-256 of its text."""
    count, digest = 0, hashlib.sha256()
    with open_text(name) as file:
        for line in raw_lines(file, name):
            digest.update(line)
            count += 1
    return count, digest.hexdigest()


def progress(verb: str, done: int, total: int | None, stack: ExitStack) -> Callable[[int], None]:
    """Show the number of lines done, and the time left if `total` is known."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    of_total = "" if total is None else " of {task.total:,.0f}"
    bar = stack.enter_context(
        Progress(
            TextColumn("{task.description}: {task.completed:,.0f}" + of_total + " lines"),
            *(BarColumn(), TimeRemainingColumn()),
            console=Console(stderr=True),
            speed_estimate_period=600,  # lines come in blocks
        )
    )
    task = bar.add_task(verb, completed=done, total=total)
    return lambda number: bar.update(task, completed=number)


@dataclass
class Job:
    """The lines that are still to be done, and their output."""

    lines: Iterator[str]
    output: Output
    show: Callable[[int], None]

    def run(self, stream: Callable[[Iterator[str]], Iterator[Found]]) -> Iterator[tuple[int, str, Found]]:
        """The number of each line, counted from 1, the line, and what `stream` gives for it."""
        read = deque[str]()  # by the stream, which may be ahead of its results

        def remembered() -> Iterator[str]:
            for line in self.lines:
                read.append(line)
                yield line

        for number, found in enumerate(stream(remembered()), self.output.notes.lines + 1):
            yield number, read.popleft(), found
            self.show(number)


def open_source(config: JobConfig, stack: ExitStack) -> BinaryIO:
    """The input; NMTError if it, or standard output, cannot be used, or if the output would replace it."""
    no_input = config.input == "-" and config.text is None and sys.stdin is None
    require(not no_input, "standard input is closed: name a file with input=FILE")
    no_output = config.output == "-" and sys.stdout is None
    require(not no_output, "standard output is closed: name a file with output=FILE")
    source = open_text(config.input) if config.text is None else io.BytesIO(config.text.encode())
    if config.input != "-":  # a thread may still wait in standard input at the end
        stack.enter_context(source)
    if config.output != "-" and config.text is None and is_input(config):
        raise NMTError(f"output={config.output} is the input, which would be lost: name another file")
    return source


def open_document(config: JobConfig, stack: ExitStack) -> tuple[bytes, Output]:
    """The content of a document, and an output for its translation; NMTError if that fails."""
    name = "standard input" if config.input == "-" else config.input
    source = open_source(config, stack)
    with reading(name):
        content = source.read(LARGE + 1)
    require(len(content) <= LARGE, f"{name}: larger than the {LARGE:,} bytes that a document may have")
    return content, open_output(config, None, stack)


def progress_of(config: JobConfig, verb: str, done: int, total: int | None, stack: ExitStack) -> Callable[[int], None]:
    """`progress`, where standard error is a terminal and the output is not."""
    shown = sys.stderr is not None and sys.stderr.isatty() and not (config.output == "-" and sys.stdout.isatty())
    return progress(verb, done, total, stack) if shown else lambda number: None


def open_job(config: JobConfig, what: dict[str, Any], stack: ExitStack) -> Job:
    """Open input and output; NMTError if that fails.

    `what` decides what is written, together with models, keys and input: the command goes on with a partial output file
    only if all of it is the same.
    """
    source = open_source(config, stack)
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    total, identity = None, None
    if Path(config.input).is_file() and (config.output != "-" or on_terminal):
        total, digest = read_through(config.input)
        identity = {"input": digest, **what_decides(config), **what}
    output = open_output(config, identity, stack)
    lines = raw_lines(source, "standard input" if config.input == "-" else config.input)
    done = output.notes.lines
    deque(islice(lines, done), maxlen=0)
    if done:
        warn(f"{done:,} of {total:,} lines were done before: going on from there")
    if source.isatty():
        warn("type lines; Ctrl-D ends")
    return Job(input_lines(lines, done + 1), output, progress_of(config, what["command"], done, total, stack))
