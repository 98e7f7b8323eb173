"""What a log shows of a job that runs for hours."""

import os
import pty
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from nmt.config import JobConfig, NMTError
from nmt.translation import naming_part, warn
from nmt.translation.progress import Progress, duration, progress_of, show_progress
from tests.helpers.options import translate_config


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def logged(progress: Progress) -> Progress:
    return show_progress(progress, translate_config(), "translate", ExitStack(), in_log=True)


def test_a_log_has_one_line_per_minute_from_the_first_minute_on(clock, capsys):
    progress = logged(Progress(0, 2_000, 20_000, clock=clock))
    lines = progress.watched([b"ka lo mi.\n"] * 2_000)
    for number in range(1, 1_001):
        next(lines)
        clock.seconds += 0.25
        progress(number)
    assert capsys.readouterr().err.splitlines() == [
        "nmt: 12% of 20,000 bytes, 4.00 lines/s, 7 min left",
        "nmt: 24% of 20,000 bytes, 4.00 lines/s, 6 min left",
        "nmt: 36% of 20,000 bytes, 4.00 lines/s, 5 min left",
        "nmt: 48% of 20,000 bytes, 4.00 lines/s, 4 min left",
    ]


def test_lines_that_were_read_ahead_are_not_done(clock, capsys):
    progress = logged(Progress(0, 4, 100, clock=clock))
    lines = [b"a" * 9 + b"\n", b"b" * 39 + b"\n", b"c" * 29 + b"\n", b"d" * 19 + b"\n"]
    assert list(progress.watched(lines)) == lines
    clock.seconds += 60
    progress(2)
    assert capsys.readouterr().err == "nmt: 50% of 100 bytes, 0.03 lines/s, 60 s left\n"


def test_the_rate_is_that_of_this_command_and_of_the_last_minutes(clock, capsys):
    progress = logged(Progress(600, 100_000, 1_000_000, clock=clock))
    lines = progress.watched([b"ka lo mi.\n"] * 100_000)
    for _ in range(100_000):
        next(lines)
    done = 600
    for rate in [100] * 10 + [10] * 10:
        done += 60 * rate
        clock.seconds += 60
        progress(done)
    shown = capsys.readouterr().err.splitlines()
    assert len(shown) == 20
    assert shown[0] == "nmt: 6% of 1,000,000 bytes, 100 lines/s, 16 min left"
    assert "10 lines/s" in shown[-1]


def test_blocks_on_a_cluster_show_the_workers(clock, capsys):
    progress = logged(Progress(size=1_000, clock=clock))
    progress.keep(10, 100)
    progress.workers = lambda: "16 workers"
    clock.seconds += 60
    progress.add(40, 400)
    unknown = logged(Progress(clock=clock))
    clock.seconds += 60
    unknown.add(1_200)
    assert capsys.readouterr().err.splitlines() == [
        "nmt: 50% of 1,000 bytes, 0.67 lines/s, 75 s left, 16 workers",
        "nmt: 1,200 lines, 20 lines/s",
    ]


def test_only_bulk_jobs_write_to_a_log(clock, capsys):
    with ExitStack() as stack:
        progress = progress_of(JobConfig(), "translate", 0, 10, stack)
        progress.clock = clock
        clock.seconds += 600
        progress(5)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (119.4, "119 s"),
        (121, "2 min"),
        (7_100, "118 min"),
        (7_300, "2 h"),
        (47.4 * 3600, "47 h"),
        (72 * 3600, "3 days"),
    ],
)
def test_durations(seconds, words):
    assert duration(seconds) == words


def test_a_terminal_shows_the_rate_and_the_time_left(clock, monkeypatch):
    outer, inner = pty.openpty()
    with os.fdopen(inner, "w") as terminal, ExitStack() as stack:
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        config = translate_config(output="mono.de")
        progress = Progress(0, 400, clock=clock)
        show_progress(progress, config, "translate", stack)
        clock.seconds += 10
        progress(150)
        stack.close()
        terminal.flush()
        written = ""
        while "left" not in written:
            written += os.read(outer, 100_000).decode()
    os.close(outer)
    assert "translate: 150 of 400 lines" in written
    assert "15 lines/s, 17 s left" in written


def test_messages_and_errors_name_the_part(capsys):
    with naming_part("3/16"):
        warn("engine=torch")
        warn("part 3/16 is complete: x")
    with pytest.raises(NMTError, match=r"^part 3/16: line 4: too long$"), naming_part("3/16"):
        raise NMTError("line 4: too long")
    with pytest.raises(NMTError, match=r"^part=3/16: needs a file$"), naming_part("3/16"):
        raise NMTError("part=3/16: needs a file")
    with naming_part(None):
        warn("engine=torch")
    assert capsys.readouterr().err.splitlines() == [
        "nmt: part 3/16: engine=torch",
        "nmt: part 3/16 is complete: x",
        "nmt: engine=torch",
    ]


def test_a_part_writes_to_its_log(checkpoint, here, monkeypatch, nmt):
    """The whole command, with a minute between two looks at the clock."""
    Path("mono.en").write_text("ka lo\n" * 12)
    ticks = iter(range(0, 10**6, 60))
    monkeypatch.setattr("nmt.translation.part_job.monotonic", lambda: next(ticks))
    words = [f"run={checkpoint}", "output=mono.de", "device=cpu", "decode=greedy"]
    outcome = nmt("translate", "mono.en", *words, "part=2/2", "decode.max_extra_length=3")
    assert outcome.code == 0
    lines = [line for line in outcome.err.splitlines() if "bytes" in line]
    assert len(lines) == 6
    assert lines[0].startswith("nmt: part 2/2: 16% of 36 bytes, ")
    assert lines[-1].startswith("nmt: part 2/2: 100% of 36 bytes, ")
