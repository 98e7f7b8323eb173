"""The progress of a training: a line at the bottom of a terminal, or now and then a line in a log file."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

METRICS = (
    "loss {loss:.3f}  ppl {perplexity:.2f}  {tokens_per_second:,.0f} tokens/s  lr {learning_rate:.2e}  "
    "grad {gradient_norm:.2f}  padding {padding:.0%}  MFU {mfu:.0%}  {cost:.1e} FLOP"
)
"""The most important come first, because a narrow terminal cuts the line."""
REPORT_SECONDS = 10
"""Least time between two lines where there is no terminal. The last report is always printed."""


class MetricsColumn(ProgressColumn):
    """The last report, in the width that the other columns leave."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["metrics"], no_wrap=True, overflow="ellipsis")


def clock(seconds: float | None) -> str:
    """Hours, minutes and seconds; dashes where they are unknown."""
    if seconds is None:
        return "-:--:--"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


class ProgressLine:
    """Updates made, time left, and the last report."""

    def __init__(self, console: Console, max_seconds: float | None) -> None:
        """`max_seconds` is the time limit of this process, None without one."""
        self.console, self.max_seconds = console, max_seconds
        whole = Column(no_wrap=True)  # only the report is cut where the terminal is narrow
        self.progress = Progress(
            TextColumn("training"),
            BarColumn(bar_width=20, table_column=whole),
            MofNCompleteColumn(table_column=whole),
            TextColumn("{task.fields[left]}"),
            MetricsColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.told = -float(REPORT_SECONDS)

    def start(self, step: int, total: int) -> None:
        self.total, self.begin = total, time.monotonic()
        self.first: tuple[int, float] | None = None
        """The first update of this process, which takes longer than others, and the time when it ended."""
        self.task = self.progress.add_task("", total=total, completed=step, left=clock(None), metrics="")
        self.progress.start()

    def left(self, step: int) -> float | None:
        """Seconds left at the rate of this process so far, validations and saving included; None: not known yet."""
        now = time.monotonic()
        self.first = self.first or (step, now)
        made, seconds = step - self.first[0], now - self.first[1]
        left = seconds / made * (self.total - step) if made else None
        if self.max_seconds is not None:
            granted = max(self.max_seconds - (now - self.begin), 0.0)
            left = granted if left is None else min(left, granted)
        return left

    def made(self, step: int) -> None:
        """Show `step` updates as made."""
        self.progress.update(self.task, completed=step, left=clock(self.left(step)))

    def report(self, step: int, metrics: dict[str, float], shares: dict[str, float]) -> None:
        """Show metrics, and the shares of a mixture's sources."""
        text = "  ".join([METRICS.format(**metrics), *(f"{name} {share:.1%}" for name, share in shares.items())])
        self.progress.update(self.task, metrics=text)
        now, left = time.monotonic(), self.left(step)
        if self.console.is_terminal or (now - self.told < REPORT_SECONDS and step != self.total):
            return
        self.told = now
        to_go = f", {clock(left)} left" if left and step != self.total else ""
        self.console.print(f"update {step:,} of {self.total:,}{to_go}: {text}")

    def stop(self) -> None:
        self.progress.stop()
