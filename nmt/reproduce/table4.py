"""Table 4: constituency parsing."""

import json
from pathlib import Path
from typing import Any

from nmt.commands import compose
from nmt.commands.reproduce import ReproduceConfig
from nmt.compose import set_text
from nmt.config import DataConfig
from nmt.errors import NMTError
from nmt.parsing.treebank import treebank_files
from nmt.reproduce.document import NONE, Document, Grid, Line, shown
from nmt.reproduce.paper import PARSERS, Parser
from nmt.reproduce.results import Result
from nmt.reproduce.scales import Scale
from nmt.reproduce.stages import Stage
from nmt.reproduce.table import Row, Table
from nmt.reproduce.translation import how_trained, training_findings

NAME = "parser"
METRICS = ("brackets_precision", "brackets_recall", "brackets_complete")


def rows(config: ReproduceConfig, scale: Scale) -> list[Row]:
    """Table 4 (section 6.3): the parser that is trained on nothing but its treebank."""
    work = Path(config.work)
    prepared, run = work / "data" / "treebank", work / "runs" / NAME
    trees, scores = run / "test.trees", run / "test.scores.json"
    data = (*scale.parser, *corpus(config, scale), set_text("prepared", str(prepared)), f"seed={config.seed}")
    train = (*data, *how_trained(config, scale.trainings[NAME], run))
    parse = (
        set_text("run", str(run)),
        set_text("input", str(prepared / "test.words")),
        set_text("output", str(trees)),
    )
    score = (
        set_text("hypothesis", str(trees)),
        set_text("reference", str(prepared / "test.trees")),
        "metrics=[brackets]",
        "format=json",
    )
    stages = [
        Stage("preprocess treebank", ("preprocess", *data), prepared / "manifest.json"),
        Stage("train parser", ("train", *train), run / "model"),
        Stage("parse", ("parse", *parse), trees),
        Stage("score parser", ("score", *score), scores, captured=True),
    ]
    return [Row(NAME, stages, lambda: findings(run, scores), training=train)]


def is_wsj(scale: Scale) -> bool:
    return "experiment=table4/wsj" in scale.parser


def corpus(config: ReproduceConfig, scale: Scale) -> tuple[str, ...]:
    """The words that name the treebank: sections of the Wall Street Journal, or folders for train, valid and test."""
    folder = config.treebank or "TREEBANK"
    if is_wsj(scale):
        return (set_text("data.path", folder),)
    test = "test" if (Path(folder) / "test").exists() else "valid"
    splits = (("train", "train"), ("valid", "valid"), ("test", test))
    return tuple(set_text(f"data.{split}", f"{folder}/{name}") for split, name in splits)


def findings(run: Path, scores: Path) -> dict[str, Any]:
    return {**training_findings(run), "scores": json.loads(scores.read_text(encoding="utf-8"))}


def lacks(config: ReproduceConfig, scale: Scale) -> str:
    """What is wrong with the treebank; empty: every split has its files."""
    if config.treebank is None:
        free = "" if is_wsj(scale) else "; recipes/treebank/README.md leads to a free one"
        return f"give its treebank with treebank=FOLDER{free}"
    data: DataConfig = compose("preprocess", [*scale.parser, *corpus(config, scale)]).data
    try:
        treebank_files(data)
    except NMTError as error:
        return f"treebank={config.treebank}: {error}"
    return ""


def document(scale: Scale, results: dict[str, Result]) -> Document:
    result = results.get(NAME)
    lines = [Line([p.name, p.training, p.f1, f1(p, result)], published=not p.transformer) for p in PARSERS]
    more = [shown(result.score(metric) if result else None) for metric in METRICS]
    return Document(
        "table4",
        "Table 4: constituency parsing",
        scale.name,
        scale.parser_said,
        notes=[
            "The paper's F1 is of section 23 of the Wall Street Journal. Sentences are parsed with beam 21, length "
            "penalty 0.3 and at most 300 tokens more than they have; brackets are counted as EVALB does with "
            "COLLINS.prm. Rows marked as published are the paper's figures of other people's parsers.",
            "Ours is trained on its treebank only, and scored on its validation set where a folder holds no test/. The "
            "semi-supervised one needs trees that another parser made (experiment=table4/wsj_semi), and is not run.",
        ],
        grids=[
            Grid("Labelled bracketing F1", ["parser", "training", "paper", "ours"], lines, words=2),
            Grid("Ours", ["precision", "recall", "complete match"], [Line(more)]),
        ],
        results=[result] if result else [],
    )


def f1(parser: Parser, result: Result | None) -> str:
    """Ours, which is trained on nothing but its treebank."""
    if not parser.transformer:
        return NONE
    return shown(result.score("brackets") if result and parser.training == "WSJ only" else None)


TABLE = Table("table4", rows, document, lacks)
