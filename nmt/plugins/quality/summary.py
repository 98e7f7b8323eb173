"""What a calibration means, in words and numbers."""

from bisect import bisect_left

from nmt.plugins.quality.record import Record

SHARES = (1.0, 0.9, 0.75, 0.5, 0.25)
"""The shares of lines that the table shows."""


def rows_of(record: Record) -> list[tuple[float, float]]:
    """Shares of lines kept by falling probability, and the shares of these that are not good."""
    fit = record.fits[0]
    rows = []
    for share in SHARES:
        place = min(bisect_left(fit.kept, share - 1e-9), len(fit.kept) - 1)
        rows.append((fit.kept[place], fit.risk[place]))
    return rows


def summary_of(record: Record) -> str:
    lines = [
        f"{record.good:,} of {record.lines:,} translations are good "
        f"(chrF2 of at least {record.threshold:g})",
        "kept    not good",
    ]
    for kept, risk in rows_of(record):
        lines.append(f"{kept:>5.0%}  {risk:>8.1%}")
    return "\n".join(lines)
