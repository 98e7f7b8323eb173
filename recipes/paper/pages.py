"""The page of a table as Markdown, and as one HTML file that asks nothing of any other place."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup
from plan import HERE, read_yaml
from results import Result

import nmt
from nmt.report.numbers import duration
from nmt.storage.markdown import block, code, plain
from nmt.storage.whole import write_file

NOTES = read_yaml("notes.yaml")
NOT_RUN = "not run"
NONE = "–"  # noqa: RUF001
"""Stands where the paper has no figure, or there is nothing of ours to measure."""
PUBLISHED = " (published)"
"""Behind the first cell of a row whose numbers are the paper's alone: other people's systems."""
MACHINE = "{processor}, {cores} cores, {memory_gib:.0f} GiB"


@dataclass
class Grid:
    """Columns and rows under a heading."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)
    words: int = 1
    """The first so many columns are words, the others numbers."""


@dataclass
class Page:
    """All that the page of a table tells, beside its title in notes.yaml."""

    table: str
    scale: SimpleNamespace
    said: str
    """The sentence that describes ours."""
    notes: list[str]
    grids: list[Grid]
    results: list[Result]
    """Of the rows that were measured, in their order."""
    figure: str = ""
    """An SVG."""


def write_pages(folder: Path, page: Page) -> list[Path]:
    """Write both pages, and the figure that the Markdown one shows; the paths of the pages."""
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
    style = (Path(nmt.__file__).parent / "report" / "templates" / "page.css").read_text(encoding="utf-8")
    own = {"published": PUBLISHED, "nothing": NONE, "style": Markup(style), "figure": Markup(page.figure)}
    sources = [(result, provenance(result)) for result in page.results]
    title = NOTES[page.table]["title"]
    return environment.get_template(f"page.{kind}").render(page=page, title=title, sources=sources, **own)


def provenance(result: Result) -> list[tuple[str, list[str]]]:
    """Where a result comes from: heading -> lines."""
    origins = result["origins"]
    facts = {
        "commit": [origin["commit"] for origin in origins],
        "seed": [str(result["seed"])],
        "machine": [MACHINE.format(**origin["machine"]) for origin in origins],
        "trained on": [result["devices"]],
        "time": [", ".join(f"{name}: {duration(seconds)}" for name, seconds in result["seconds"].items())],
        "packages": [", ".join(f"{k} {v}" for k, v in origin["packages"].items()) for origin in origins],
    }
    return [(name, list(dict.fromkeys(lines))) for name, lines in facts.items()]


def shown(value: float | None, form: str = ",.2f") -> str:
    """A number of ours as the paper writes them, such as 3.3e18 with form=.1e; or that it was not run."""
    return NOT_RUN if value is None else f"{value:{form}}".replace("-", "−").replace("e+", "e")  # noqa: RUF001
