"""Table 4: constituency parsing."""

from pathlib import Path
from types import SimpleNamespace

from pages import NONE, NOT_RUN, NOTES, PUBLISHED, Grid, Page, shown
from plan import Row, how_trained, paths, read_figures
from results import Result, value

from nmt.commands import compose
from nmt.config import set_text
from nmt.errors import NMTError
from nmt.preparation import corpus_for


def rows(options: SimpleNamespace) -> list[Row]:
    """Table 4 (section 6.3): the parser trained only on its treebank."""
    prepared, run = options.work / "data" / "treebank", options.work / "runs" / "parser"
    data = [*corpus(options), *paths(prepared=prepared), f"seed={options.seed}"]
    trees, reference = run / "test.trees", prepared / "test.trees"
    commands = [
        ["nmt", "preprocess", *data],
        ["nmt", "train", *data, *how_trained(options, "parser", run)],
        [
            "nmt",
            "parse",
            "overwrite=true",
            *paths(run=run, input=prepared / "test.words", output=trees),
        ],
        [
            "nmt",
            "score",
            *paths(hypothesis=trees, reference=reference),
            "metrics=[brackets]",
            "format=json",
        ],
    ]
    return [Row("parser", commands, folders=(prepared, run))]


def corpus(options: SimpleNamespace) -> list[str]:
    """The overrides for the treebank: sections of the Wall Street Journal, or folders for train, valid and test."""
    folder = options.treebank or "TREEBANK"
    if options.scale.name == "paper":
        return [*options.scale.parser, set_text("data.path", folder)]
    test = "test" if (Path(folder) / "test").exists() else "valid"
    splits = {"train": "train", "valid": "valid", "test": test}
    return [
        *options.scale.parser,
        *(set_text(f"data.{key}", f"{folder}/{name}") for key, name in splits.items()),
    ]


def lacks(options: SimpleNamespace) -> str:
    """Why the treebank cannot be read; empty if every split has files."""
    if not options.treebank:
        free = (
            ""
            if options.scale.name == "paper"
            else "; recipes/treebank/README.md describes a free one"
        )
        return f"needs a treebank; pass treebank=FOLDER{free}"
    try:
        corpus_for(compose("preprocess", corpus(options)).data).digests()
    except NMTError as error:
        return f"treebank={options.treebank}: {error}"
    return ""


def page(scale: SimpleNamespace, results: dict[str, Result]) -> Page:
    result = results.get("parser")
    lines = []
    for parser in read_figures("table4"):
        name, f1 = parser["parser"], NOT_RUN
        if not name.startswith("Transformer"):
            name, f1 = name + PUBLISHED, NONE
        elif parser["training"] == "WSJ only":
            f1 = shown(value(result, "brackets"))
        lines.append([name, parser["training"], parser["F1"], f1])
    more = [
        shown(value(result, f"brackets_{part}")) for part in ("precision", "recall", "complete")
    ]
    grids = [
        Grid("Labeled bracketing F1", ["parser", "training", "paper", "ours"], lines, words=2),
        Grid("Our parser", ["precision", "recall", "complete match"], [more]),
    ]
    return Page(
        "table4",
        scale,
        scale.parser_said,
        NOTES["table4"]["page"],
        grids,
        [result] if result else [],
    )
