"""What a calibration means, in words and numbers."""

from bisect import bisect_left
from typing import NamedTuple

from nmt.plugins.quality.record import Record

SHARES = (1.0, 0.9, 0.75, 0.5, 0.25)
"""The shares of lines that the table shows."""


class Row(NamedTuple):
    """A row of the table."""

    kept: float
    """The share of the lines that are kept by falling probability."""
    risk: float
    """The share of these that are not good."""
    minimum: str
    """The value of the option `minimum` that keeps them; empty if it is not known."""


def rows_of(record: Record) -> list[Row]:
    """The table of a calibration, for each of SHARES."""
    fit = record.fits[0]
    rows = []
    for share in SHARES:
        place = min(bisect_left(fit.kept, share - 1e-9), len(fit.kept) - 1)
        minimum = f"{fit.minimum[place]:.4f}" if fit.minimum else ""
        rows.append(Row(fit.kept[place], fit.risk[place], minimum))
    return rows


def summary_of(record: Record) -> str:
    lines = [
        f"{record.good:,} of {record.lines:,} translations are good "
        f"(chrF2 of at least {record.threshold:g})",
        "kept    not good  minimum",
    ]
    for row in rows_of(record):
        lines.append(f"{row.kept:>5.0%}  {row.risk:>8.1%}  {row.minimum:>7}".rstrip())
    return "\n".join(lines)
