"""The page of a table as Markdown, and as one HTML file that asks nothing of any other place."""

import re
from pathlib import Path

from nmt.report.content import duration, signature
from nmt.report.markup import Markup, tag
from nmt.report.page import head, style_sheet
from nmt.reproduce.document import Document, Grid, Line
from nmt.reproduce.origin import in_words
from nmt.reproduce.results import Result
from nmt.storage.markdown import block, code, plain
from nmt.storage.whole import write_file

PUBLISHED = "published"
NOTHING = "Nothing was run at this scale yet."


def write_pages(folder: Path, document: Document) -> list[Path]:
    """Write both pages, and the pictures that the Markdown one shows; the paths of the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for title, picture in document.pictures.items():
        write_file(folder / picture_name(document, title), picture + "\n")
    pages = {folder / f"{document.name}.md": markdown(document), folder / f"{document.name}.html": page(document)}
    for path, text in pages.items():
        write_file(path, text)
    return list(pages)


def picture_name(document: Document, title: str) -> str:
    return f"{document.name}-{re.sub(r'[^a-z0-9]+', '-', title.lower())}.svg"


def label(document: Document) -> str:
    return f"Scale: {document.scale}. {document.said}"


def provenance(result: Result) -> list[tuple[str, list[str]]]:
    """Where a result comes from: what it is called -> its lines."""
    commits = [str(origin["commit"]) for origin in result.origins]
    machines = [in_words(origin["machine"]) for origin in result.origins]
    packages = [", ".join(f"{k} {v}" for k, v in origin["packages"].items()) for origin in result.origins]
    times = [f"{name}: {duration(seconds)}" for name, seconds in result.seconds.items()]
    return [
        ("commit", list(dict.fromkeys(commits))),
        ("seed", [str(result.seed)]),
        ("machine", list(dict.fromkeys(machines))),
        ("trained on", [result.devices] if result.devices else []),
        ("time", [", ".join(times)]),
        ("packages", list(dict.fromkeys(packages))),
    ]


def score_lines(result: Result) -> list[tuple[str, str]]:
    """Each score with its signature."""
    return [(f"{score['name']} = {score['value']:.2f}", str(score["signature"])) for score in result.scores]


def markdown(document: Document) -> str:
    parts = [f"# {document.title}", f"**{label(document)}**", *document.notes]
    for grid in document.grids:
        parts += [f"## {grid.title}", markdown_grid(grid), *grid.notes]
    parts += [f"![{title}]({picture_name(document, title)})" for title in document.pictures]
    parts += ["## Where the numbers come from"]
    for result in document.results:
        parts += [f"### {plain(result.row)}", markdown_provenance(result)]
    if not document.results:
        parts.append(NOTHING)
    return "\n\n".join(parts) + "\n"


def markdown_grid(grid: Grid) -> str:
    rows = [
        [f"{line.cells[0]} ({PUBLISHED})", *line.cells[1:]] if line.published else line.cells for line in grid.lines
    ]
    rows = [list(map(plain, grid.columns)), ["---"] * len(grid.columns), *(list(map(plain, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def markdown_provenance(result: Result) -> str:
    facts = [f"- {name}: {plain('; '.join(lines))}" for name, lines in provenance(result) if lines]
    scores = [f"- {plain(score)} {code(how)}" for score, how in score_lines(result)]
    return "\n".join([*scores, *facts, "", block("\n".join(result.commands))])


def page(document: Document) -> str:
    """The HTML page."""
    sources = [html_provenance(result) for result in document.results] or [tag("p", NOTHING)]
    body = tag(
        "body",
        tag("header", tag("h1", document.title), tag("p", label(document), class_="scale")),
        *(tag("p", note) for note in document.notes),
        *map(html_grid, document.grids),
        *(tag("section", tag("h2", title), picture) for title, picture in document.pictures.items()),
        tag("section", tag("h2", "Where the numbers come from"), *sources),
        tag("footer", tag("code", f"nmt reproduce {document.name} scale={document.scale}")),
    )
    style = style_sheet("page.css"), STYLE
    return f"<!DOCTYPE html>\n{tag('html', head(document.title, *style), body, lang='en')}\n"


def html_line(line: Line, words: int) -> Markup:
    first = tag("th", line.cells[0], tag("small", f" {PUBLISHED}") if line.published else None, scope="row")
    cells = [tag("td", text, class_=column_class(place, words)) for place, text in enumerate(line.cells[1:], 1)]
    return tag("tr", first, *cells, class_=PUBLISHED if line.published else None)


def column_class(place: int, words: int) -> str | None:
    return None if place < words else "number"


def html_grid(grid: Grid) -> Markup:
    heads = [tag("th", c, scope="col", class_=column_class(i, grid.words)) for i, c in enumerate(grid.columns)]
    body = tag("tbody", *(html_line(line, grid.words) for line in grid.lines))
    table = tag("table", tag("thead", tag("tr", *heads)), body)
    notes = [tag("p", note, class_="note") for note in grid.notes]
    return tag("section", tag("h2", grid.title), tag("div", table, class_="scroll"), *notes)


def html_provenance(result: Result) -> Markup:
    facts = [(name, tag("div", *(tag("div", line) for line in lines))) for name, lines in provenance(result) if lines]
    scores = [tag("div", score, " ", signature(code)) for score, code in score_lines(result)]
    rows = [("scores", tag("div", *scores)), *facts] if scores else facts
    listing = tag("table", *(tag("tr", tag("th", name, scope="row"), tag("td", text)) for name, text in rows))
    return tag("details", tag("summary", result.row), listing, tag("pre", "\n".join(result.commands)))


STYLE = """
.scale { margin: 10px 0; padding: 8px 12px; border: 1px solid var(--warn); font-weight: 600; }
body > p { margin: 8px 0; }
table { border-collapse: collapse; }
th, td { padding: 3px 14px 3px 0; text-align: left; vertical-align: top; font-weight: 400; }
thead th { color: var(--quiet); border-bottom: 1px solid var(--hair); }
tbody tr:last-child th { border-bottom: 0; }
.number { text-align: right; white-space: normal; }
.published, .published small { color: var(--quiet); }
summary { margin-top: 10px; font-weight: 600; cursor: pointer; }
details th { color: var(--quiet); }
pre { white-space: pre-wrap; }
"""
