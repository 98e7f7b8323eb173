"""The rows of the GPU benchmark: what was measured beside what was expected."""

# So that an old Python gets as far as the message about its version.
from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

TOLERANCE = 0.7
"""A figure is a MISS if it is worse than the estimate by more than this factor."""


@dataclass(frozen=True)
class Estimate:
    """What a figure was estimated to be before anybody measured it."""

    h100: float
    h200: float | None = None
    """None: as on an H100."""
    lower_is_better: bool = False

    def on(self, card: str) -> float:
        if card == "H200" and self.h200 is not None:
            return self.h200
        return self.h100

    def goodness(self, value: float, card: str) -> float:
        """1 if the value is as estimated, more if it is better."""
        if self.lower_is_better:
            return self.on(card) / value if value else 1.0
        return value / self.on(card)


# Where the estimates come from. Nobody has measured them.
#
# Ceilings. The product and the copies follow public figures: about 80 % of the dense bfloat16 peak
# of 989 TFLOP/s, and 90 % of the memory's nominal 3.35 (H100) or 4.8 (H200) TB/s.
#
# Training speed. The operations, bytes and FLOPs of an update were counted on a CPU (as in
# tests/core/test_gpu_costs.py), for 25,000 tokens per side, including padding; 21,300
# of the target tokens are not padding. The time of an update is
#     FLOPs of matrix products / speed of products + bytes of all other kernels / speed of memory
# with these assumptions:
#     600 TFLOP/s in the products of big, with d_model=1024: three quarters of the ceiling;
#     480 TFLOP/s in those of base, with d_model=512: smaller products are slower;
#     50 TFLOP/s in float32, of a peak of 67;
#     2.6 of 3.0 TB/s (H100) or 3.7 of 4.3 TB/s (H200) in all other kernels.
# Compilation leaves about 0.6 of these bytes; its fusions were counted by hand. With 8
# micro-batches, base waits for Python, which takes 11 to 13 ms per micro-batch: a time measured on
# a CPU.
#
# Memory and kernels: counted, as are the shares of matrix products with the assumptions above.
#
# Search: with small batches, Python takes 1.3 ms per step for about 165 operations, a time measured
# on a CPU. With large batches, the GPU limits the speed; these are the least certain estimates.
#
# Quickstart: 3,200 updates of about 10 ms, and some seconds to start and validate.
ESTIMATES = {
    # Ceilings.
    "8192^3 product in bfloat16": Estimate(785),
    "copy of 4 GB": Estimate(3.0, 4.3),
    "launch of an empty kernel": Estimate(4, lower_is_better=True),
    # Training speed.
    "base, eager, the CPU's chunks": Estimate(430_000, 530_000),
    "base, eager": Estimate(500_000),
    "base, compiled": Estimate(730_000, 830_000),
    "base, eager, 8 micro-batches": Estimate(220_000),
    "base, eager, float32": Estimate(105_000),
    "big, eager, the CPU's chunks": Estimate(206_000, 245_000),
    "big, eager": Estimate(237_000, 276_000),
    "big, compiled": Estimate(302_000, 335_000),
    "big, eager, 8 micro-batches": Estimate(170_000),
    "big, eager, float32": Estimate(34_000),
    "big, eager, TF32": Estimate(150_000),
    # Memory and kernels.
    "base, eager: memory": Estimate(8, lower_is_better=True),
    "big, eager: memory": Estimate(17, lower_is_better=True),
    "base, eager: kernels per update": Estimate(1_045, lower_is_better=True),
    "big, eager: kernels per update": Estimate(1_045, lower_is_better=True),
    "base, compiled: kernels per update": Estimate(600, lower_is_better=True),
    "big, compiled: kernels per update": Estimate(600, lower_is_better=True),
    "big, eager: share of matrix products": Estimate(46),
    "big, compiled: share of matrix products": Estimate(65),
    # Whole programs.
    "quickstart: training": Estimate(40, lower_is_better=True),
    "search, float32, small batches": Estimate(30_000),
    "search, bfloat16, small batches": Estimate(30_000),
    "search, float32, large batches": Estimate(80_000),
    "search, bfloat16, large batches": Estimate(200_000),
}


@dataclass
class Row:
    step: str
    what: str
    measured: str
    expected: str = ""
    verdict: str = ""
    """A ratio to the estimate, ok or MISS."""
    numbers: dict[str, Any] = field(default_factory=dict)


def in_words(value: float, unit: str) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f} {unit}".rstrip()
    return f"{value:.3g} {unit}".rstrip()


class Report:
    """Turns the figures of one step into rows and hands each to `send` at once."""

    def __init__(
        self,
        step: str,
        card: str,
        is_dry: bool,
        send: Callable[[dict[str, Any]], None],
    ) -> None:
        self.step = step
        self.card = card
        self.is_dry = is_dry
        self.send = send

    def add(self, row: Row) -> None:
        self.send({"row": asdict(row)})

    def figure(self, what: str, value: float, unit: str, remark: str = "", **numbers: Any) -> None:
        """A number, compared with its estimate if there is one for it."""
        measured = in_words(value, unit)
        if remark:
            measured += f", {remark}"
        row = Row(self.step, what, measured, numbers={"value": value, "unit": unit, **numbers})
        estimate = ESTIMATES.get(what)
        if estimate is not None:
            row.expected = in_words(estimate.h100, unit)
            if estimate.h200 is not None:
                row.expected += f"; {in_words(estimate.h200, unit)}"
        if estimate is not None and self.card:
            goodness = estimate.goodness(value, self.card)
            row.verdict = f"{value / estimate.on(self.card):.2f}"
            if goodness < TOLERANCE:
                row.verdict += " MISS"
        self.add(row)

    def check(self, what: str, passed: bool, measured: str, expected: str, **numbers: Any) -> None:
        """A property that holds or does not."""
        verdict = "ok" if passed else "MISS"
        self.add(Row(self.step, what, measured, expected, verdict, numbers))

    def check_full_size(
        self,
        what: str,
        passed: bool,
        measured: str,
        expected: str,
        **numbers: Any,
    ) -> None:
        """A property of a full-size run, which a dry run cannot check."""
        verdict = "ok" if passed else "MISS"
        if self.is_dry:
            verdict = ""
        self.add(Row(self.step, what, measured, expected, verdict, numbers))

    def note(self, what: str, measured: str, **numbers: Any) -> None:
        """Something to know, without a judgement."""
        self.add(Row(self.step, what, measured, numbers=numbers))

    def skip(self, what: str, reason: str) -> None:
        self.add(Row(self.step, what, f"skipped: {reason}"))


def table(rows: list[Row]) -> str:
    """The rows as a table in Markdown."""
    lines = ["| step | what | measured | expected (H100; H200) | ratio |", "|---|---|---|---|---|"]
    for row in rows:
        cells = [row.step, row.what, row.measured, row.expected, row.verdict]
        safe = [cell.replace("|", "/").replace("\n", " ") for cell in cells]
        lines.append("| " + " | ".join(safe) + " |")
    return "\n".join(lines) + "\n"
