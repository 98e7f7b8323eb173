"""A job that processes the lines of an input, and can resume after it was killed."""

import hashlib
import io
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

from nmt.config import JobConfig, NMTError, TranslateConfig
from nmt.files import LARGE
from nmt.text import decoded, open_bytes, raw_lines, reading, without_end
from nmt.translation.identity import Identity, options_before, what_affects_output
from nmt.translation.inputs import HEAD_BYTES, check_content
from nmt.translation.output import Output, open_output
from nmt.translation.parts import check_can_be_cut, open_slice, slice_of
from nmt.translation.progress import progress_of
from nmt.translation.reporting import warn

Result = TypeVar("Result")


def input_lines(file: Iterable[bytes], first: int = 1) -> Iterator[str]:
    """Decode lines, numbered from `first`; a warning names the first line with invalid UTF-8."""
    has_warned = False

    def warn_once(words: str) -> None:
        nonlocal has_warned
        if not has_warned:
            warn(f"{words}; further such lines are not reported")
        has_warned = True

    texts = decoded(map(without_end, file), "", first, warn_once)
    # A job that resumes does not read the first line, which may begin with a byte order mark.
    for number, text in enumerate(texts, first):
        yield text.removeprefix("\ufeff") if number == 1 else text


def name_of_input(config: JobConfig) -> str:
    """The name of the input in messages."""
    return "standard input" if config.input == "-" else config.input


def open_source(config: JobConfig, stack: ExitStack) -> "io.BufferedReader[Any]":
    """Open the input; NMTError if that fails or the output would overwrite it."""
    # As bytes, text from the command line is decoded and cut into lines in the same way as a file.
    if config.text is not None:
        return io.BufferedReader(cast(Any, io.BytesIO(config.text.encode())))
    source = open_input(config)
    # `check_lines` has already read the beginning of a file, and a user at a terminal types text.
    is_pipe = not Path(config.input).is_file() and not source.isatty()
    if isinstance(config, TranslateConfig) and config.is_guess and is_pipe:
        name = name_of_input(config)
        with reading(name):
            # Unlike `read`, `peek` leaves the bytes in the
            # buffer, because a pipe cannot be rewound.
            head = source.peek(HEAD_BYTES)
        check_content(name, head)
    # Standard input stays open: at the end, a thread may still be reading it.
    if config.input != "-":
        stack.enter_context(source)
    check_not_input(Path(config.output), config.input)
    return source


def open_input(config: JobConfig) -> "io.BufferedReader[Any]":
    """Open the input, or the part of it that the job processes."""
    part = config.part_of_input
    if part is None:
        return open_bytes(config.input)
    check_can_be_cut(config)
    cut = slice_of(config.input, part)
    return open_slice(config.input, cut.begin, cut.end)


def check_not_input(output: Path, source: str) -> None:
    """Raise NMTError if the output would overwrite the input."""
    if not output.is_file():  # a terminal, in contrast, may be both input and output
        return
    # Standard input may come from the output, too, as in `nmt translate output=x < x`.
    status = os.fstat(sys.stdin.fileno()) if source == "-" else Path(source).stat()
    if os.path.samestat(status, output.stat()):
        raise NMTError(f"output={output}: would overwrite the input; name another file")


def read_content(config: JobConfig, stack: ExitStack) -> bytes:
    """Read a document; NMTError if it is too large."""
    name = name_of_input(config)
    with reading(name):
        # One byte more than allowed reveals a file that is too large without reading all of it.
        content = open_source(config, stack).read(LARGE + 1)
    if len(content) > LARGE:
        raise NMTError(f"{name}: larger than {LARGE:,} bytes, the limit for a document")
    return content


def open_document(config: JobConfig, stack: ExitStack) -> tuple[bytes, Output]:
    """Read a document, and open an output for its translation."""
    content = read_content(config, stack)
    # Without an identity, because a document cannot be resumed: it is written in one piece.
    output = open_output(config.output, overwrite=config.overwrite)
    return content, stack.enter_context(output)


ReadLines = Callable[[Iterable[bytes], int], Iterator[Any]]
"""Reads the lines of an input, which are numbered from a first number, see `input_lines`."""


def undecoded(file: Iterable[bytes], first: int = 1) -> Iterator[bytes]:
    """Lines as they are, with their ends."""
    return iter(file)


@dataclass
class Job:
    """The lines still to be processed, and the output for their results."""

    lines: Iterator[Any]
    output: Output
    show: Callable[[int], None]
    """Shows how many lines are done."""
    lines_before: int = 0
    """The number of lines of the input before the part that this job processes."""

    def run(
        self, stream: Callable[[Iterator[str]], Iterator[Result]]
    ) -> Iterator[tuple[int, str, Result]]:
        """Yield each line's number in the whole input (from 1), the line, and its result.

        `stream` yields the results of lines, and may read ahead.
        """
        # Lines that `stream` has read, but not answered yet.
        # Results come in input order, so the oldest one belongs to
        # the next result. A thread may append while this one pops.
        pending = deque[str]()

        def remembered() -> Iterator[str]:
            for line in self.lines:
                pending.append(line)
                yield line

        first = self.lines_before + self.output.notes.lines + 1
        for number, result in enumerate(stream(remembered()), first):
            yield number, pending.popleft(), result
            # After the yield: the caller has written the
            # line by now, so progress counts written lines.
            self.show(number - self.lines_before)

    def blocks(self, size: int) -> Iterator[tuple[int, list[Any]]]:
        """Yield lines in blocks, each with the number of its first line in the whole input.

        A block ends at a multiple of `size` lines of the whole input, wherever the job begins. So
        the same lines are together in a resumed job, and in a part that is cut at blocks.
        """
        done = self.lines_before + self.output.notes.lines
        while block := list(islice(self.lines, size - done % size)):
            yield done + 1, block
            done += len(block)
            self.show(done - self.lines_before)

    def write(self, text: str | bytes, number: int) -> None:
        """Write the output for the lines up to `number`; NMTError if the disk is full."""
        self.output.write(text, number - self.lines_before)


def open_job(
    config: JobConfig,
    command: str,
    stack: ExitStack,
    read: ReadLines = input_lines,
    block: int = 1,
) -> Job:
    """Open input and output.

    Resumes a partial output if the command, input, models and keys are the same, unless
    config.overwrite is set. A part is cut at multiples of `block` lines.
    """
    if config.part is not None:
        from nmt.translation.part_job import open_part  # it imports this module

        return open_part(config, command, stack, read, block)
    return open_whole(config, command, stack, read)


def open_whole(
    config: JobConfig, command: str, stack: ExitStack, read: ReadLines = input_lines
) -> Job:
    """Open the whole input, and an output for it."""
    source = open_source(config, stack)
    total: int | None = None
    identity: Identity = ""
    on_terminal = sys.stderr is not None and sys.stderr.isatty()
    # Only a file can be read twice; what it costs is lost if the job can neither resume nor show
    # its progress.
    if Path(config.input).is_file() and (config.output != "-" or on_terminal):
        total, digest = count_lines(config.input)
        identity = {"command": command, "input": digest, **what_affects_output(config)}
    # An option that this version adds must not invalidate the partial output of an older version.
    before = options_before(config)
    opening = open_output(config.output, identity, config.overwrite, before)
    output = stack.enter_context(opening)
    lines = lines_to_do(raw_lines(source, name_of_input(config)), output, total, read=read)
    if source.isatty():
        warn("type one line at a time; Ctrl-D ends the input")
    show = progress_of(config, command, output.notes.lines, total, stack)
    return Job(lines, output, show)


def lines_to_do(
    lines: Iterator[bytes],
    output: Output,
    total: int | None,
    lines_before: int = 0,
    read: ReadLines = input_lines,
) -> Iterator[Any]:
    """The lines after those that an earlier command has written to the output."""
    done = output.notes.lines
    # A resumed job splits the input again from its start, because lines have no index to seek by.
    skip(lines, done)
    if done:
        warn(f"resuming after {done:,} of {total:,} lines")
    return read(lines, lines_before + done + 1)


def count_lines(path: str) -> tuple[int, str]:
    """The number of lines of a text file, and the SHA-256 of its content without compression."""
    lines = 0
    digest = hashlib.sha256()
    with open_bytes(path) as file:
        for line in raw_lines(file, path):
            # A file that was compressed since the first attempt still counts as the same input.
            digest.update(line)
            lines += 1
    return lines, digest.hexdigest()


def skip(lines: Iterator[bytes], count: int) -> None:
    for _ in islice(lines, count):
        pass
