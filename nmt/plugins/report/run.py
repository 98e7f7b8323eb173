"""Read a run directory: configuration, metrics, model, environment, corpus. No torch, no Lightning."""

import math
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from nmt.config import build, matches
from nmt.data import Manifest, read_manifest
from nmt.errors import NMTError
from nmt.evaluation import Score
from nmt.files import parse_json, read_description, read_mapping
from nmt.training import check_no_links, read_config, read_metrics as metrics_rows

Row = dict[str, float]
SILENT_SECONDS = 600.0
"""After so long without a report, a run may count as stopped."""
LARGEST_VALUE = 1e100
"""The largest that can be drawn; beyond it, differences overflow."""
PARENT_LEVELS = 4
"""How many folders above a run are searched for its corpus: a point of a sweep lies deeper than a run."""


def find_run(name: str) -> Path:
    """The folder of a run; NMTError if it is not one."""
    folder = Path(name)
    if (folder / "config.yaml").is_file():
        check_no_links(folder)
        return folder
    if not folder.is_dir():
        hint = "train a model first: `nmt preprocess`, then `nmt train`" if name == "runs/latest" else "no such folder"
        raise NMTError(f"run={name}: {hint}")
    if (folder / "config.json").is_file():
        raise NMTError(f"run={name}: a model directory, which holds no metrics; give the run that it was trained in")
    raise NMTError(f"run={name}: not a training run (no config.yaml); give a folder that `nmt train` wrote")


def cell(text: str | None) -> float | None:
    """The number in a cell; None if it is empty, cut off or too large."""
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return None if value is not None and LARGEST_VALUE < abs(value) < math.inf else value


def read_metrics(run: Path) -> list[Row]:
    """The rows of metrics.csv, each with its filled columns; NMTError if nothing is logged yet."""
    rows = [
        {key: value for key, content in cells.items() if key and (value := cell(content)) is not None}
        for cells in metrics_rows(run)
    ]
    if not rows:
        raise NMTError(f"run={run}: nothing is logged in metrics.csv yet; try again after the first report of training")
    return rows


def series(rows: list[Row], column: str) -> list[tuple[int, float]]:
    """The values of a column, with their updates."""
    return [(int(row["step"]), row[column]) for row in rows if column in row]


def last(rows: list[Row], column: str) -> float | None:
    """The last finite value of a column; None if there is none."""
    return next((row[column] for row in reversed(rows) if math.isfinite(row.get(column, math.nan))), None)


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if it is missing or unreadable."""
    try:
        return read_mapping(path, parse_json)
    except NMTError:
        return {}


@dataclass
class ModelScore(Score):
    """The score of the averaged model on the validation set."""

    sentences: int


@dataclass
class Facts:
    """A model directory's or checkpoint's record of its training; older versions recorded less."""

    updates: int
    vocabulary_size: int
    corpus: str
    """Its fingerprint."""
    tokens: int | None = None
    """Target tokens in training."""
    devices: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    score: ModelScore | None = None


def read_facts(tree: dict[str, Any], where: str) -> Facts:
    """The facts in a mapping from a checkpoint or `config.json`; NMTError for a value of another type."""
    known = {key.name: tree[key.name] for key in fields(Facts) if tree.get(key.name) is not None}
    score = known.pop("score", None)
    facts = build(Facts, known, where)
    facts.score = build(ModelScore, score, f"{where}, score") if score else None
    return facts


def model_facts(folder: Path) -> Facts | None:
    """The facts of a model directory; None if it is missing or unreadable."""
    try:
        description = read_description(folder)
        return read_facts({**description.training, "vocabulary_size": description.vocabulary_size}, str(folder))
    except NMTError:
        return None


@dataclass
class Run:
    """The content of a run directory."""

    folder: Path
    config: dict[str, Any]
    rows: list[Row]
    written: float
    """Time of the last write to metrics.csv, in seconds since 1970."""
    environment: dict[str, Any]
    model: Facts | None
    """From the model directory; None before training has ended."""
    manifest: Manifest | None
    prepared: Path
    corpus_problem: str = ""
    """The reason why there is no manifest."""

    @property
    def name(self) -> str:
        return str(self.config.get("name") or self.folder.resolve().name)

    @property
    def update(self) -> int:
        return max(int(max(row["step"] for row in self.rows)), self.model.updates if self.model else 0)

    @property
    def updates(self) -> int:
        """The planned number of updates, or the number made if that is higher."""
        planned = self.config.get("trainer", {}).get("max_steps")
        return max(planned if matches(planned, int) else 0, self.update)

    @property
    def model_is_stale(self) -> bool:
        """True if training continued after the model directory was written."""
        return self.model is not None and self.model.updates < self.update

    def state(self, now: float) -> str:
        """finished, running or stopped; stopped means averaged before its last update, or silent for long."""
        if self.model and not self.model_is_stale:
            return "finished" if self.model.updates >= self.updates else "stopped"
        times = [seconds for _, seconds in series(self.rows, "seconds")]
        gaps = [b - a for a, b in pairwise(times)]
        return "running" if now - self.written < max(SILENT_SECONDS, 20 * median(gaps or [0.0])) else "stopped"


def find_corpus(run: Path, prepared: str) -> Path:
    """Find the corpus that a configuration names, relative to here or to a folder above the run."""
    folders = [Path(prepared), *(parent / prepared for parent in run.resolve().parents[:PARENT_LEVELS])]
    return next((folder for folder in folders if (folder / "manifest.json").is_file()), folders[0])


def open_run(folder: Path, prepared: str | None) -> Run:
    """Read a run's folder; NMTError if it has no readable configuration, or no metrics yet."""
    config, rows = read_config(folder), read_metrics(folder)
    corpus = Path(prepared) if prepared else find_corpus(folder, str(config.get("prepared")))
    manifest, problem = None, ""
    try:
        manifest = read_manifest(corpus)
    except NMTError:
        if prepared:
            raise
        problem = f"{corpus} holds no prepared corpus that can be read; pass prepared=FOLDER where it lies"
    written, environment = (folder / "metrics.csv").stat().st_mtime, read_object(folder / "environment.json")
    return Run(folder, config, rows, written, environment, model_facts(folder / "model"), manifest, corpus, problem)
