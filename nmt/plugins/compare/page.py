"""The page about a comparison. It needs no script to be read: a small one filters and sorts."""

import base64
import hashlib
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

import nmt.plugins.report
from nmt.evaluation import sentence_scorer
from nmt.plugins.compare import summary
from nmt.plugins.compare.buckets import Details, Gap, Row, strongest
from nmt.plugins.compare.lines import FAULTS, Line
from nmt.plugins.compare.significance import FEWEST_LINES, NAMES, TESTS
from nmt.plugins.compare.summary import Comparison
from nmt.plugins.report.pages import render
from nmt.plugins.report.quality import differences

FINDINGS = 6
"""On top of the page."""
SHOWN = 8
"""Examples that are not folded up."""
PLOT_WIDTH, PLOT_HEIGHT, PLOT_MARGIN = 150, 16, 5


@dataclass
class Example:
    """A line, and the translations of it by the first system and another."""

    number: int
    line: Line
    texts: tuple[str, str]
    scores: tuple[float, float]
    """chrF2 of each."""
    buckets: list[str]
    faults: list[str]
    """Of either translation."""

    @property
    def gap(self) -> float:
        return self.scores[1] - self.scores[0]


def examples(details: Details, first: list[str], other: list[str], count: int) -> tuple[list[Example], list[Example]]:
    """The `count` lines that the other system wins by most, and those that it loses by most."""
    chrf, lines, divisions = sentence_scorer("chrf"), details.lines, details.divisions
    scores = [[chrf(text, line.reference) for text, line in zip(texts, lines, strict=True)] for texts in (first, other)]
    gaps = [b - a for a, b in zip(*scores, strict=True)]
    order = sorted(range(len(lines)), key=lambda index: -gaps[index])

    def example(index: int) -> Example:
        line, texts = lines[index], (first[index], other[index])
        buckets = [f"{division.title}: {division.labels[division.bucket(line)]}" for division in divisions]
        faults = [fault.title for fault in FAULTS if any(fault.has(line, text) for text in texts)]
        return Example(index + 1, line, texts, (scores[0][index], scores[1][index]), buckets, faults)

    wins = [example(index) for index in order[:count] if gaps[index] > 0]
    losses = [example(index) for index in order[::-1][:count] if gaps[index] < 0]
    return wins, losses


def finding(found: Comparison, row: Row, index: int) -> str:
    """A sentence on a bucket or fault in which a system differs from the first."""
    first, other, gap = found.systems[0].name, found.systems[1 + index].name, row.gaps[index]
    if row.unit == "lines":
        before, after = number_of(row.values[0]), number_of(row.values[1 + index])
        said = f"in {after} lines by {other}, in {before} by {first}, of {row.count:,}"
        return f"{row.label[0].upper()}{row.label[1:]}: {said} ({interval(gap, 0)})"
    said = f"{row.unit} {row.values[1 + index]:.1f} by {other}, {row.values[0]:.1f} by {first}, in {row.count:,} lines"
    return f"{row.title}: {row.label}; {said} ({interval(gap)})"


def number_of(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def signed(value: float, digits: int = 1) -> str:
    return f"{value:+,.{digits}f}".replace("-", "−")  # noqa: RUF001


def interval(gap: Gap, digits: int = 1) -> str:
    low, high = signed(gap.low, digits), signed(gap.high, digits)
    return f"{signed(gap.value, digits)}, 95 % interval {low} to {high}"


def plot(gap: Gap, largest: float) -> Markup:
    """A difference and its interval as a small picture, zero in its middle."""
    middle, y = PLOT_WIDTH / 2, PLOT_HEIGHT / 2
    x = [middle + (middle - PLOT_MARGIN) * value / (largest or 1) for value in (gap.low, gap.value, gap.high)]
    kind = ("better" if gap.better else "worse") if gap.significant else "same"
    return Markup(
        '<svg class="plot {}" viewBox="0 0 {} {}" aria-hidden="true"><path class="zero" d="M{:.1f} 0V{}"></path>'
        '<path d="M{:.1f} {}H{:.1f}"></path><circle cx="{:.1f}" cy="{}" r="3.5"></circle></svg>'
    ).format(kind, PLOT_WIDTH, PLOT_HEIGHT, middle, PLOT_HEIGHT, x[0], y, x[2], x[1], y)


def script() -> tuple[Markup, str]:
    """The script of the page, and the hash by which browsers know it: no other runs, whatever a text holds."""
    text = (Path(nmt.plugins.report.__file__).parent / "templates" / "compare.js").read_text(encoding="utf-8")
    return Markup(text), base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def compare_page(found: Comparison, details: Details, count: int) -> str:
    """The HTML page; `count` is the number of wins and of losses."""
    rows = details.rows
    text, digest = script()
    first = found.translated[0][0]
    pairs = [
        (system, *examples(details, first.hypotheses, seeds[0].hypotheses, count))
        for system, seeds in zip(found.systems[1:], found.translated[1:], strict=True)
    ]
    shown = [each for _, *both in pairs for side in both for each in side]
    groups = [(title, list(own)) for title, own in groupby(rows, lambda row: row.title)]
    largest = {
        title: max(abs(bound) for row in own for gap in row.gaps for bound in (gap.low, gap.value, gap.high))
        for title, own in groups
    }
    return render(
        "compare_page.html",
        found=found,
        rows=rows,
        groups=groups,
        largest=largest,
        findings=[(row.gaps[index].better, finding(found, row, index)) for row, index in strongest(rows, FINDINGS)],
        least=FEWEST_LINES,
        marked=sum(gap.significant for row in rows for gap in row.gaps),
        tested=sum(len(row.gaps) for row in rows),
        pairs=pairs,
        shown=SHOWN,
        tags=sorted({tag for each in shown for tag in (*each.faults, *each.buckets)}),
        counted=details.counted,
        names=NAMES,
        tests=TESTS,
        script=text,
        digest=digest,
        now=datetime.now().astimezone(),
        **{f.__name__: f for f in (differences, number_of, plot, signed)},
        **{f.__name__: f for f in (summary.costs, summary.p_value, summary.how_tested, summary.how_translated)},
    )
