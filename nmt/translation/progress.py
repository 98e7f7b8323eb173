"""How much of a job is done, which a terminal shows as a bar, and a log as one line per minute."""

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from nmt.config import JobConfig
from nmt.translation.reporting import warn

SAMPLE_SECONDS = 60.0
"""The time between two lines of a log."""
SAMPLES = 10
"""Rates are those of the last ten minutes, because lines come in blocks."""
UNITS = ((86400, "days"), (3600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True)
class Sample:
    """What the command had computed at some time."""

    time: float
    lines: int
    bytes: int


@dataclass
class Progress:
    """How much of a job is done, by earlier commands and by this one."""

    kept: int = 0
    """Lines, or other units, that earlier commands have computed."""
    total: int | None = None
    """All lines; None: unknown."""
    size: int | None = None
    """The number of bytes of all lines; None: unknown."""
    unit: str = "lines"
    clock: Callable[[], float] = time.monotonic
    computed: int = 0
    """Lines that this command has computed."""
    kept_bytes: int = 0
    computed_bytes: int = 0
    workers: Callable[[], str] = str
    """The workers of the moment, in words."""
    display: Callable[["Progress"], None] | None = None
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    open: deque[int] = field(default_factory=deque)
    """The sizes of lines that have been read, but are not computed yet."""

    def __post_init__(self) -> None:
        self.samples.append(self.now())

    def now(self) -> Sample:
        return Sample(self.clock(), self.computed, self.computed_bytes)

    def watched(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Pass all lines of the job on, and count their bytes once they are done."""
        for number, line in enumerate(lines):
            if number < self.kept:
                self.kept_bytes += len(line)
            else:
                self.open.append(len(line))
            yield line

    def __call__(self, done: int) -> None:
        """Show that this number of lines is done, including lines of earlier commands."""
        lines = done - self.kept - self.computed
        size = 0
        for _ in range(min(lines, len(self.open))):
            size += self.open.popleft()
        self.add(lines, size)

    def add(self, lines: int, size: int = 0) -> None:
        """Show that more lines, which have `size` bytes, have been computed."""
        self.computed += lines
        self.computed_bytes += size
        if self.display:
            self.display(self)

    def keep(self, lines: int, size: int = 0) -> None:
        """Count more lines that earlier commands have computed."""
        self.kept += lines
        self.kept_bytes += size
        if self.display:
            self.display(self)

    @property
    def done(self) -> int:
        return self.kept + self.computed

    def share(self) -> str:
        """How much is done, such as `41% of 1,234,567 bytes`."""
        if not self.size:
            return f"{self.done:,} {self.unit}"
        percent = min(100, 100 * (self.kept_bytes + self.computed_bytes) // self.size)
        return f"{percent}% of {self.size:,} bytes"

    def pace(self) -> list[str]:
        """The rate and the time left, such as `980 lines/s` and `2 h left`, if they are known."""
        now = self.now()
        oldest = self.samples[0]
        if now.time - oldest.time >= SAMPLE_SECONDS * len(self.samples):
            self.samples.append(now)
        seconds = now.time - oldest.time
        lines = now.lines - oldest.lines
        if seconds <= 0 or lines <= 0:
            return []
        rate = lines / seconds
        digits = 0 if rate >= 10 else 2
        words = [f"{rate:,.{digits}f} {self.unit}/s"]
        size = now.bytes - oldest.bytes
        if self.size and size:
            left = self.size - self.kept_bytes - self.computed_bytes
            words.append(f"{duration(left * seconds / size)} left")
        elif self.total is not None:
            words.append(f"{duration((self.total - self.done) / rate)} left")
        return words


def duration(seconds: float) -> str:
    """A duration as at least two of its largest unit, such as 90 min or 2 h; at most in seconds."""
    for length, name in UNITS:
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


class Log:
    """Prints a line per minute."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.printed = clock()

    def __call__(self, progress: Progress) -> None:
        if self.clock() - self.printed < SAMPLE_SECONDS:
            return
        self.printed = self.clock()
        words = [progress.share(), *progress.pace()]
        workers = progress.workers()
        if workers:
            words.append(workers)
        warn(", ".join(words))


def progress_of(
    config: JobConfig,
    verb: str,
    done: int,
    total: int | None,
    stack: ExitStack,
    unit: str = "lines",
) -> Progress:
    """The progress of a job, which a terminal shows."""
    return show_progress(Progress(done, total, unit=unit), config, verb, stack)


def show_progress(
    progress: Progress, config: JobConfig, verb: str, stack: ExitStack, in_log: bool = False
) -> Progress:
    """Show a progress.

    Shows nothing if standard output is the output and the same terminal, or, without `in_log`, if
    standard error is no terminal.
    """
    # Python sets `sys.stderr` to None if the process starts with it closed.
    if sys.stderr is None:
        return progress
    if not sys.stderr.isatty():
        if in_log:
            progress.display = Log(progress.clock)
        return progress
    if config.output != "-" or not sys.stdout.isatty():
        progress.display = bar_of(progress, verb, stack)
    return progress


def bar_of(progress: Progress, verb: str, stack: ExitStack) -> Callable[[Progress], None]:
    """A function that shows a progress as a bar in the terminal."""
    # Imported here, because it takes time that a job without a terminal need not spend.
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn

    bar = Bar(
        TextColumn("{task.description}: {task.fields[share]}"),
        BarColumn(),
        TextColumn("{task.fields[pace]}"),
        console=Console(stderr=True),
    )
    total = progress.size or progress.total
    task = stack.enter_context(bar).add_task(verb, total=total, share="", pace="")

    def show(progress: Progress) -> None:
        share = f"{progress.done:,} {progress.unit}"
        if progress.total is not None:
            share = f"{progress.done:,} of {progress.total:,} {progress.unit}"
        elif progress.size:
            share = progress.share()
        completed = progress.done
        if progress.size:
            completed = progress.kept_bytes + progress.computed_bytes
        words = [*progress.pace(), progress.workers()]
        pace = ", ".join(filter(None, words))
        bar.update(task, completed=completed, share=share, pace=pace)

    show(progress)
    return show
