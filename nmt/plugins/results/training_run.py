"""A run folder as a report reads it: configuration, metrics, environment, model and corpus."""

import math
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from nmt import data
from nmt.config import NMTError, build, matches
from nmt.evaluation import Score
from nmt.files import parse_json, read_description, read_mapping, within
from nmt.plugins.results.commands import metrics_of
from nmt.training import read_config

Row = dict[str, float]  # a column of metrics.csv -> its value, without empty cells


@dataclass
class ModelScore(Score):
    """The score of the model directory on the validation set."""

    sentences: int


@dataclass
class Facts:
    """The training record of a model directory."""

    updates: int
    vocabulary_size: int
    corpus: str
    """The fingerprint of the corpus."""
    averaged: list[int] = field(default_factory=list)
    """The updates of the averaged checkpoints."""
    tokens: int | None = None
    """The number of target tokens."""
    devices: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    score: ModelScore | None = None


@dataclass
class Run:
    """A run, finished or not."""

    folder: Path
    config: dict[str, Any]
    rows: list[Row]
    written: datetime
    """The last time that metrics.csv was written."""
    environment: dict[str, Any] = field(default_factory=dict)
    model: Facts | None = None
    """The delivered model; None before the end of training, or if its directory is unreadable."""
    corpus: data.PreparedCorpus | None = None
    corpus_problem: str = ""

    @property
    def model_update(self) -> int:
        """The update of the model directory; 0 without one."""
        return self.model.updates if self.model else 0

    @property
    def update(self) -> int:
        """The last update that metrics.csv or the model directory has."""
        last_row = int(max(row["step"] for row in self.rows))
        return max(last_row, self.model_update)

    @property
    def updates(self) -> int:
        """The number of updates that are planned, or that were made if they are more."""
        planned = within(self.config, "trainer", "max_steps")
        planned_updates = int(planned) if matches(planned, int) else 0
        return max(planned_updates, self.update)

    def series(self, column: str) -> list[tuple[int, float]]:
        """(update, value) for every value in a column of metrics.csv."""
        return [(int(row["step"]), row[column]) for row in self.rows if column in row]

    def last(self, column: str) -> float | None:
        """The last finite value in a column of metrics.csv."""
        for row in reversed(self.rows):
            if math.isfinite(row.get(column, math.nan)):
                return row[column]
        return None


def open_run(folder: Path, prepared: str | None) -> Run:
    """Read a run folder; NMTError if its configuration or its metrics are unreadable."""
    metrics_file = folder / "metrics.csv"
    config = read_config(folder)
    rows = [numbers_of(cells) for cells in metrics_of(folder)]
    written = datetime.fromtimestamp(metrics_file.stat().st_mtime).astimezone()
    run = Run(folder, config, rows, written)
    # A report on a run that still trains, or was copied without some of its files, shows what there
    # is.
    with suppress(NMTError):
        run.environment = read_mapping(folder / "environment.json", parse_json)
    with suppress(NMTError):
        run.model = read_facts(folder / "model")
    record = {"config": config, "corpus": run.model.corpus if run.model else None}
    try:
        run.corpus = data.corpus_of(folder, record, prepared)
    except NMTError as error:
        # The user named the folder, so its absence is a mistake.
        if prepared:
            raise
        run.corpus_problem = str(error)
    return run


def numbers_of(cells: dict[str, str]) -> Row:
    """The cells of a row of metrics.csv that are numbers."""
    row = {}
    for key, text in cells.items():
        # Cells are empty where a column was not measured at an update.
        with suppress(ValueError):
            row[key] = float(text)
    return row


def read_facts(model: Path) -> Facts:
    """The training record of a model directory; NMTError if it is not of these types."""
    description = read_description(model)
    record = {**description.training, "vocabulary_size": description.vocabulary_size}
    facts = {}
    # Only keys that the page shows, so that a later nmt may record others.
    for key in fields(Facts):
        value = record.get(key.name)
        if value is not None:
            facts[key.name] = value
    if "score" in facts:
        facts["score"] = build(ModelScore, facts["score"])
    return build(Facts, facts)
