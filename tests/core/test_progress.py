"""What a terminal of any width shows of a training, and what a file gets."""

import io
import re

import pytest
from rich.console import Console

from nmt.training.metrics import REPORT as WORDS, ProgressLine

METRICS = {
    "loss": 3.1415,
    "perplexity": 12.345,
    "tokens_per_second": 12345.6,
    "learning_rate": 7.0e-4,
    "gradient_norm": 0.42,
    "padding": 0.016,
    "mfu": 0.41,
    "cost": 3.3e18,
}


def shown(width: int) -> str:
    """The line after the last report, as a terminal of that width shows it."""
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=True, color_system=None, soft_wrap=True)
    line = ProgressLine(console, max_seconds=None)
    line.start(12_000, 100_000)
    for step in (12_050, 12_100):
        line.made(step)
        line.report(step, METRICS)
    line.progress.refresh()
    line.progress.stop()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())
    lines = [part for part in re.split(r"[\r\n]+", text) if part.strip()]
    return lines[-1]


@pytest.mark.parametrize("width", [60, 80, 100, 150, 200])
def test_bar_updates_and_time_left_stand_on_any_line_and_metrics_as_far_as_there_is_room(width):
    line = shown(width)
    assert len(line) <= width
    found = re.fullmatch(r"training ━[━╸╺ ]{19} +12100/100000 \d:\d\d:\d\d ?(.*)", line.rstrip())
    assert found, line
    whole, room = WORDS.format(**METRICS), width - found.start(1)
    assert found[1] == (whole if len(whole) <= room else whole[: room - 1].rstrip() + "…" if room > 1 else "")
    assert (found[1] == whole) == (width >= 150)
    assert ("loss" in found[1] and "ppl" in found[1]) == (width >= 80)


def test_without_a_terminal_there_is_a_line_for_a_report_now_and_then_and_for_the_last(monkeypatch):
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    file = io.StringIO()
    line = ProgressLine(Console(file=file, width=80, soft_wrap=True), max_seconds=None)
    line.start(0, 100)
    for step in range(1, 101):
        now += 1.0
        line.made(step)
        if step % 3 == 0 or step == 100:
            line.report(step, METRICS)
    line.progress.stop()
    lines = file.getvalue().splitlines()
    assert [int(text.split()[1]) for text in lines] == [3, 15, 27, 39, 51, 63, 75, 87, 99, 100]
    assert lines[1].startswith("update 15 of 100, 0:01:25 left: loss 3.142  ppl 12.35  12,346 tokens/s")
    assert lines[-1].startswith("update 100 of 100, 0:00:00 left: loss")
    assert lines[-1].endswith("FLOP")


@pytest.mark.parametrize(
    ("max_seconds", "expected"), [(None, "2:46:40"), (900, "0:11:40"), (20_000, "2:46:40"), (100, "0:00:00")]
)
def test_time_left_is_as_updates_were_measured_and_ends_where_the_time_does(monkeypatch, max_seconds, expected):
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    line = ProgressLine(Console(quiet=True), max_seconds)
    line.start(500, 5600)
    now += 200
    assert line.left(600) == expected
