"""The progress of training on a terminal."""

import math
import time
from datetime import timedelta

from rich.console import Console

REPORT_SECONDS = 10
"""Minimum seconds between two lines."""


class ProgressLine:
    """Shows the number of updates, the time left and the last report.

    `max_seconds` is this process's time limit; None: no limit. On a terminal, one line changes in
    place. Otherwise each report is a new line, at most one every REPORT_SECONDS.
    """

    def __init__(self, console: Console, max_seconds: float | None) -> None:
        self.console = console
        self.status = console.status("training")
        self.max_seconds = math.inf if max_seconds is None else max_seconds
        self.report = ""
        # Seconds since the start.
        self.printed = -math.inf
        self.reported = -math.inf

    def start(self, step: int, total: int) -> None:
        """Begin after update `step` of `total`."""
        self.first = step
        self.total = total
        self.begin = time.monotonic()
        if self.console.is_terminal:
            self.status.start()

    def is_due(self) -> bool:
        """Whether there was no report yet, or none for REPORT_SECONDS."""
        return time.monotonic() - self.begin - self.reported >= REPORT_SECONDS

    def show(self, step: int, report: str = "") -> None:
        """Show that update `step` is done, with the report; empty: repeat the last report."""
        seconds = time.monotonic() - self.begin
        if report:
            self.report = report
            self.reported = seconds
        # From this process's updates only: an earlier process may have had another speed.
        left = seconds / (step - self.first) * (self.total - step)
        left = min(left, max(self.max_seconds - seconds, 0.0))
        time_left = timedelta(seconds=int(left))
        line = f"update {step:,} of {self.total:,}, {time_left} left: {self.report}"
        if self.console.is_terminal:
            self.status.update(line[: self.console.width - 3])  # beside the spinner
            return
        is_due = seconds - self.printed >= REPORT_SECONDS or step == self.total
        if report and is_due:
            self.printed = seconds
            self.console.print(line)
