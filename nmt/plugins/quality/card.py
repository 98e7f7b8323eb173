"""The section about probabilities in a model's README.md."""

from pathlib import Path

from nmt.files import SMALL, read_text, write_file
from nmt.plugins.quality.drawing import NAME_OF_CHART, svg_of
from nmt.plugins.quality.record import Record
from nmt.plugins.quality.summary import SHARES, rows_of

CARD = "README.md"
BEGIN = "<!-- nmt calibrate: begin -->"
END = "<!-- nmt calibrate: end -->"


def section_of(record: Record) -> str:
    table = rows_of(record)
    rows = "\n".join(f"| {row.kept:.0%} | {row.risk:.1%} | {row.minimum} |" for row in table)
    # A value that this model's translations reach.
    example = table[SHARES.index(0.5)].minimum or "PROBABILITY"
    return (
        f"{BEGIN}\n## Probability of good translations\n\n"
        f"`nmt translate minimum={example}` marks translations that are less probable to be good, "
        f"which means a sentence chrF2 of at least {record.threshold:g}. "
        f"On {record.lines:,} validation lines, {record.good / record.lines:.1%} of the "
        "translations are good. The chart and the table keep these lines by falling probability, "
        "as estimated by models that had not seen them.\n\n"
        f"![Lines kept, and the share of them that is not good]({NAME_OF_CHART})\n\n"
        f"| lines kept | not good | `minimum` |\n|---|---|---|\n{rows}\n{END}\n"
    )


def add_to_card(folder: Path, record: Record) -> None:
    """Write the chart, and add the section to README.md or replace it; what users wrote stays."""
    write_file(folder / NAME_OF_CHART, svg_of(record))
    path = folder / CARD
    text = read_text(path, SMALL) if path.is_file() else ""
    section = section_of(record)
    begin = text.find(BEGIN)
    end = text.find(END)
    if 0 <= begin < end:
        text = text[:begin] + section.rstrip("\n") + text[end + len(END) :]
    else:
        text = f"{text.rstrip()}\n\n{section}".lstrip("\n")
    write_file(path, text)
