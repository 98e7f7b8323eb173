"""Tables of corrections, and the report on a new model."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.config import title_of_metric
from nmt.files import SMALL, printable, read_text, write_file
from nmt.plugins.learn.reading import Correction
from nmt.plugins.learn.rejection import Sifted
from nmt.plugins.learn.store import NAME_LENGTH, TESTS, WORSE, Record
from nmt.plugins.learn.trial import Verdict, WorseLine

if TYPE_CHECKING:
    from rich.console import Console

CARD = "README.md"
SHOWN_WORSE = 10
"""The maximum number of lines to print that became worse; the file has all of them."""


def digest_of(corrections: Sequence[Correction]) -> str:
    """The SHA-256 of sources and targets, in any order."""
    rows = sorted(f"{item.source}\t{item.target}\n" for item in corrections)
    return hashlib.sha256("".join(rows).encode()).hexdigest()


def rows_of(corrections: Sequence[Correction]) -> str:
    return "".join(f"{item.source}\t{item.target}\n" for item in corrections)


def rows_of_rejected(rejected: Sequence[tuple[Correction, str]]) -> str:
    """A table of the rejected corrections: reason, file, place, source and correction."""
    rows = ["reason\tfile\tplace\tsource\tcorrection\n"]
    for item, reason in rejected:
        # Other characters could control the terminal of whoever looks at the file.
        texts = [printable(text) for text in (item.source, item.target)]
        rows.append("\t".join([reason, item.file, item.place, *texts]) + "\n")
    return "".join(rows)


def rows_of_worse(lines: Sequence[WorseLine]) -> str:
    """A table of the lines that became worse, with the translations before and after."""
    rows = ["source\tcorrection\tbefore\tafter\n"]
    for line in lines:
        cells = (line.correction.source, line.correction.target, line.before, line.after)
        rows.append("\t".join(cells) + "\n")
    return "".join(rows)


def report_sifted(sifted: Sifted, skipped: Counter[str], path: Path, console: "Console") -> None:
    """Print which corrections are not used and why, and write the rejected ones to a table."""
    for reason, count in skipped.items():
        console.print(f"skipped: {count:,} {reason}")
    total = len(sifted.usable) + len(sifted.rejected)
    console.print(f"corrections: {len(sifted.usable):,} of {total:,} are usable")
    for reason, count in sifted.counts().most_common():
        console.print(f"rejected: {count:,} {reason}")
    write_file(path, rows_of_rejected(sifted.rejected))
    if sifted.rejected:
        console.print(f"rejected corrections: {path}")


def report_verdict(verdict: Verdict, metric: str, folder: Path, console: "Console") -> None:
    """Print the scores, and write the held-out lines that became worse to worse.tsv."""
    title = title_of_metric(metric)
    for name, difference in (
        ("held-out corrections", verdict.held_out),
        ("general test set", verdict.general),
    ):
        p = f", p = {max(difference.p.values()):.4f}" if difference.p else ""
        change = f"{difference.before:.2f} -> {difference.after:.2f}"
        console.print(f"{name}: {title} {change}{p}  {difference.signature}")
    change = f"{verdict.loss_before:.4f} -> {verdict.loss_after:.4f}"
    console.print(f"general test set: loss {change} nats per token")
    path = folder / WORSE
    write_file(path, rows_of_worse(verdict.worse))
    console.print(f"held-out lines that got worse: {len(verdict.worse):,} ({path})")
    if not verdict.problem:
        return
    for line in verdict.worse[:SHOWN_WORSE]:
        console.print(f"  source:     {line.correction.source}")
        console.print(f"  correction: {line.correction.target}")
        console.print(f"  before:     {line.before}")
        console.print(f"  after:      {line.after}")


def add_to_card(folder: Path, record: Record) -> None:
    """Add the scores before and after to the model card that was written for this model."""
    title = title_of_metric(record.settings["metric"])
    corrections = record.corrections
    names = (f"{corrections['held_out']:,} held-out corrections", "general test set")
    rows = []
    for name, test in zip(names, TESTS, strict=True):
        scores = record.tests[test]
        p = f"{max(scores['p'].values()):.4f}" if scores["p"] else "equal translations"
        rows.append(f"| {name} | {scores['before']:.2f} | {scores['after']:.2f} | {p} |")
    table = "\n".join(rows)
    section = (
        f"## Learned from corrections\n\n"
        f"`nmt learn` trained this model on {corrections['training']:,} corrections and on "
        f"general text. The model before has the weights `{record.parent[:NAME_LENGTH]}`.\n\n"
        f"| | {title} before | after | p |\n|---|---|---|---|\n{table}\n\n"
        f"Signature: `{record.tests[TESTS[0]]['signature']}`\n"
    )
    card = read_text(folder / CARD, SMALL)
    write_file(folder / CARD, f"{card.rstrip()}\n\n{section}")
