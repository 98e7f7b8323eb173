"""Read a run directory: configuration, metrics, model, environment, corpus. No torch, no Lightning."""

import math
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from nmt.data.manifest import Manifest, read_manifest
from nmt.errors import NMTError
from nmt.model_directory.description import read_description
from nmt.storage.foreign import build, matches, parse_json, read_mapping
from nmt.training import run_folder
from nmt.training.run_folder import check_no_links, read_config

Row = dict[str, float]
SILENT_SECONDS = 600.0
"""Without a report, before a run may count as stopped."""
LARGEST_VALUE = 1e100
"""That can be drawn; beyond it differences overflow."""
PARENT_LEVELS = 4
"""Folders above a run in which training may have been started: a point of a sweep lies deeper than a run."""


def find_run(name: str) -> Path:
    """The folder of a run; NMTError where it is none."""
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
    """A cell's number; None where it is empty or was cut off."""
    try:
        value = float(text) if text else None
    except ValueError:
        return None
    return None if value is not None and LARGEST_VALUE < abs(value) < math.inf else value


def read_metrics(run: Path) -> list[Row]:
    """The rows of metrics.csv, each with the columns that it fills; NMTError where nothing is logged yet."""
    rows = [
        {key: value for key, content in cells.items() if key and (value := cell(content)) is not None}
        for cells in run_folder.read_metrics(run)
    ]
    if not rows:
        raise NMTError(f"run={run}: nothing is logged in metrics.csv yet; try again after the first report of training")
    return rows


def series(rows: list[Row], column: str) -> list[tuple[int, float]]:
    """A column's values by update."""
    return [(int(row["step"]), row[column]) for row in rows if column in row]


def last(rows: list[Row], column: str) -> float | None:
    """A column's last finite value; None where it has none."""
    return next((row[column] for row in reversed(rows) if math.isfinite(row.get(column, math.nan))), None)


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object; empty where there is none, or none that can be read."""
    try:
        return read_mapping(path, parse_json)
    except NMTError:
        return {}


@dataclass
class ModelScore:
    """The score of the averaged model on the validation set."""

    metric: str
    name: str
    value: float
    sentences: int
    signature: str


@dataclass
class Facts:
    """What a model directory or a checkpoint tells of the training behind it; models of older versions tell less."""

    updates: int
    vocabulary_size: int
    corpus: str
    """Fingerprint of the corpus."""
    tokens: int | None = None
    """Target tokens trained on."""
    devices: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    score: ModelScore | None = None


def read_facts(tree: dict[str, Any], updates: Any, vocabulary_size: int, where: str) -> Facts:
    """Facts from the mapping that a checkpoint or `config.json` holds; NMTError where they are of other types."""
    known = {key.name: tree[key.name] for key in fields(Facts) if tree.get(key.name) is not None}
    score = known.pop("score", None)
    facts = build(Facts, {**known, "updates": updates, "vocabulary_size": vocabulary_size}, where)
    facts.score = build(ModelScore, score, f"{where}, score") if score else None
    return facts


def model_facts(folder: Path) -> Facts | None:
    """What a model directory tells; None where there is none, or none that can be read."""
    try:
        description = read_description(folder)
        training = description.training
        return read_facts(training, training.get("updates"), description.vocabulary_size, str(folder))
    except NMTError:
        return None


@dataclass
class Run:
    """A run directory, read."""

    folder: Path
    config: dict[str, Any]
    rows: list[Row]
    written: float
    """When metrics.csv was last written, in seconds since 1970."""
    environment: dict[str, Any]
    model: Facts | None
    """Of the model directory; None before training has ended."""
    manifest: Manifest | None
    prepared: Path
    corpus_problem: str = ""
    """Why there is no manifest."""

    @property
    def name(self) -> str:
        return str(self.config.get("name") or self.folder.resolve().name)

    @property
    def update(self) -> int:
        return max(int(max(row["step"] for row in self.rows)), self.model.updates if self.model else 0)

    @property
    def updates(self) -> int:
        """All that the run is to make."""
        planned = self.config.get("trainer", {}).get("max_steps")
        return max(planned if matches(planned, int) else 0, self.update)

    @property
    def model_is_stale(self) -> bool:
        """Whether training went on after the model directory was written."""
        return self.model is not None and self.model.updates < self.update

    def state(self, now: float) -> str:
        """finished, running, or stopped: averaged before its last update, or for long nothing was reported."""
        if self.model and not self.model_is_stale:
            return "finished" if self.model.updates >= self.updates else "stopped"
        times = [seconds for _, seconds in series(self.rows, "seconds")]
        gaps = [b - a for a, b in pairwise(times)]
        return "running" if now - self.written < max(SILENT_SECONDS, 20 * median(gaps or [0.0])) else "stopped"


def find_corpus(run: Path, prepared: str) -> Path:
    """The corpus that a configuration names: as seen from here, or from a folder above the run."""
    folders = [Path(prepared), *(parent / prepared for parent in run.resolve().parents[:PARENT_LEVELS])]
    return next((folder for folder in folders if (folder / "manifest.json").is_file()), folders[0])


def open_run(folder: Path, prepared: str | None) -> Run:
    """Read a run's folder; NMTError where it holds no readable configuration, or no metrics yet."""
    config, rows = read_config(folder), read_metrics(folder)
    corpus = Path(prepared) if prepared else find_corpus(folder, str(config.get("prepared")))
    run = Run(
        folder=folder,
        config=config,
        rows=rows,
        written=(folder / "metrics.csv").stat().st_mtime,
        environment=read_object(folder / "environment.json"),
        model=model_facts(folder / "model"),
        manifest=None,
        prepared=corpus,
    )
    try:
        run.manifest = read_manifest(corpus)
    except NMTError:
        if prepared:
            raise
        run.corpus_problem = f"{corpus} holds no prepared corpus that can be read; pass prepared=FOLDER where it lies"
    return run
