"""What the page of a table tells, before it is Markdown or HTML."""

from dataclasses import dataclass, field

from nmt.report.markup import Markup
from nmt.reproduce.results import Result

NOT_RUN = "not run"
NONE = "–"  # noqa: RUF001
"""Where the paper has no figure, or there is nothing of ours to measure."""


@dataclass
class Line:
    """A row of a grid."""

    cells: list[str]
    published: bool = False
    """Its numbers are the paper's alone: other people's systems."""


@dataclass
class Grid:
    """Columns and rows under a heading."""

    title: str
    columns: list[str]
    lines: list[Line]
    notes: list[str] = field(default_factory=list)
    words: int = 1
    """How many of the first columns are words; the others are numbers."""


@dataclass
class Document:
    """The page of a table."""

    name: str
    """table1 to table4."""
    title: str
    scale: str
    said: str
    """What ours are at this scale: a sentence."""
    notes: list[str]
    """How they were measured, whichever row it is."""
    grids: list[Grid]
    results: list[Result]
    """Of the rows that were measured, in their order."""
    pictures: dict[str, Markup] = field(default_factory=dict)
    """Title -> SVG."""


def shown(value: float | None, digits: int = 2) -> str:
    """A number of ours, or that it was not run."""
    return NOT_RUN if value is None else f"{value:,.{digits}f}"


def signed(value: float | None, digits: int = 2) -> str:
    """A difference of ours."""
    return NOT_RUN if value is None else f"{value:+,.{digits}f}".replace("-", "−")  # noqa: RUF001


def power(value: float | None) -> str:
    """A number of FLOPs as the paper writes them: 3.3e18."""
    if value is None:
        return NOT_RUN
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def given(figure: str | None) -> str:
    """A figure of the paper, as it is printed there."""
    return NONE if figure is None else figure
