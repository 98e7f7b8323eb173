"""The page of a table as Markdown, and as one HTML file that loads nothing else."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from plan import HERE, read_yaml
from results import Result

import nmt
from nmt.files import block, code, duration, plain, write_file

NOTES = read_yaml("notes.yaml")
NOT_RUN = "not run"
NONE = "–"  # noqa: RUF001
"""Shown for a number that the paper does not give or that we do not measure."""
PUBLISHED = " (published)"
"""Appended to the first cell of a row that quotes the paper's numbers for other systems."""
MACHINE = "{processor}, {cores} cores, {memory_gib:.0f} GiB"


@dataclass
class Grid:
    """A table under a heading."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    words: int = 1
    """The number of leading columns that contain words; all others contain numbers."""


@dataclass
class Page:
    """The content of a table's page, except for its title, which is in notes.yaml."""

    table: str
    scale: SimpleNamespace
    said: str
    """Text that describes our measurements."""
    notes: list[str]
    grids: list[Grid]
    results: list[Result]
    """The results of the measured rows, in order."""
    figure: str = ""
    """An SVG."""


def write_pages(folder: Path, page: Page) -> list[Path]:
    """Write both pages and the Markdown page's figure; return the paths of the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    if page.figure:
        write_file(folder / f"{page.table}-time-and-memory.svg", page.figure)
    paths = [folder / f"{page.table}.{kind}" for kind in ("md", "html")]
    for path in paths:
        write_file(path, render(page, path.suffix[1:]))
    return paths


def render(page: Page, kind: str) -> str:
    """The page as md or html."""
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=kind == "html",
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"plain": plain, "code": code, "block": block}
    # The style sheet of nmt's own reports.
    style = (
        Path(nmt.__file__).parent / "plugins" / "results" / "templates" / "page.css"
    ).read_text(encoding="utf-8")
    own = {
        "published": PUBLISHED,
        "nothing": NONE,
        "style": Markup(style),
        "figure": Markup(page.figure),
    }
    sources = [(result, provenance(result)) for result in page.results]
    title = NOTES[page.table]["title"]
    return environment.get_template(f"page.{kind}").render(
        page=page, title=title, sources=sources, **own
    )


def provenance(result: Result) -> list[tuple[str, list[str]]]:
    """The origin of a result, as headings with lines."""
    origins = result["origins"]
    facts = {
        "commit": [origin["commit"] for origin in origins],
        "seed": [str(result["seed"])],
        "machine": [MACHINE.format(**origin["machine"]) for origin in origins],
        "trained on": [result["devices"]],
        "time": [
            ", ".join(f"{name}: {duration(seconds)}" for name, seconds in result["seconds"].items())
        ],
        "packages": [
            ", ".join(f"{k} {v}" for k, v in origin["packages"].items()) for origin in origins
        ],
    }
    if "note" in result:
        facts["commands"] = [result["note"]]
    return [(name, list(dict.fromkeys(lines))) for name, lines in facts.items()]


def shown(value: float | None, form: str = ",.2f") -> str:
    """One of our numbers in the paper's notation, such as 3.3e18 with form=.1e; "not run" for None."""
    return NOT_RUN if value is None else f"{value:{form}}".replace("-", "−").replace("e+", "e")  # noqa: RUF001
