"""What a run directory tells: configuration, metrics, model card, environment, corpus. No torch, no Lightning."""

import json
import math
import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from nmt.errors import NMTError, one_line
from nmt.storage.markdown import unescaped
from nmt.text.manifest import Manifest, read_manifest
from nmt.training import run_folder

Row = dict[str, float]
PATIENCE = 600.0
"""Seconds without a report before a run may count as stopped."""


def find_run(name: str) -> Path:
    """The folder of a run; NMTError where it is none."""
    folder = Path(name)
    if (folder / "config.yaml").is_file():
        return folder
    if not folder.is_dir():
        hint = "train a model first: `nmt preprocess`, then `nmt train`" if name == "runs/latest" else "no such folder"
        raise NMTError(f"run={name}: {hint}")
    if (folder / "config.json").is_file():
        raise NMTError(f"run={name}: a model directory, which holds no metrics; give the run that it was trained in")
    raise NMTError(f"run={name}: not a training run (no config.yaml); give a folder that `nmt train` wrote")


def read_config(run: Path) -> dict[str, Any]:
    """The configuration of a run as it was written; NMTError where it cannot be read."""
    path = run / "config.yaml"
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if not isinstance(tree, dict):
        raise NMTError(f"{path}: not the configuration of a run")
    return tree


def cell(text: str | None) -> float | None:
    """A cell's number; None where it is empty or was cut off."""
    try:
        return float(text) if text else None
    except ValueError:
        return None


def read_metrics(run: Path) -> list[Row]:
    """The rows of metrics.csv, each with the columns that it fills; NMTError where nothing is logged yet."""
    try:
        written = run_folder.read_metrics(run)
    except OSError as error:
        raise NMTError(f"{run / 'metrics.csv'}: {error.strerror}") from error
    rows = []
    for cells in written:
        row = {key: value for key, content in cells.items() if key and (value := cell(content)) is not None}
        if math.isfinite(row.get("step", math.nan)):
            rows.append(row)
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
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return tree if isinstance(tree, dict) else {}


def read_card(model: Path) -> dict[str, str]:
    """The table of a model card, and the version that wrote it as "nmt"; empty where there is no card."""
    try:
        text = (model / "README.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    # Cards of earlier versions have signatures with bars of their own.
    rows = [(key, unescaped(value)) for key, value in re.findall(r"^\| ([A-Z]\w*) \| (.+) \|$", text, flags=re.M)]
    version = re.search(r"^Trained with nmt (\S+)\.$", text, flags=re.M)
    return {**dict(rows), **({"nmt": version[1]} if version else {})}


@dataclass
class Facts:
    """What a model directory or a checkpoint tells of the training behind it."""

    updates: int
    vocabulary_size: int
    corpus: str
    """Fingerprint of the corpus."""
    tokens: int | None = None
    """Target tokens trained on."""
    devices: str | None = None
    versions: dict[str, str] = field(default_factory=dict)


@dataclass
class Run:
    """A run directory, read."""

    folder: Path
    config: dict[str, Any]
    rows: list[Row]
    written: float
    """When metrics.csv was last written, in seconds since 1970."""
    environment: dict[str, Any]
    card: dict[str, str]
    model: Facts | None
    """Of the model directory; None before training has ended."""
    manifest: Manifest | None
    prepared: Path
    corpus_problem: str = ""
    """Why there is no manifest."""

    @property
    def update(self) -> int:
        return int(max(row["step"] for row in self.rows))

    @property
    def updates(self) -> int:
        """All that the run is to make."""
        return max(int(self.config.get("trainer", {}).get("max_steps") or 0), self.update)

    def state(self, now: float) -> str:
        """finished, running, or stopped: for long, nothing was reported."""
        if self.model and self.model.updates >= self.update:
            return "finished"
        times = [seconds for _, seconds in series(self.rows, "seconds")]
        gaps = [b - a for a, b in pairwise(times)]
        return "running" if now - self.written < max(PATIENCE, 20 * median(gaps or [0.0])) else "stopped"


def model_facts(folder: Path, card: dict[str, str]) -> Facts | None:
    """What a model directory tells; None where there is none."""
    description = read_object(folder / "config.json")
    try:
        training = description["training"]
        facts = Facts(int(training["updates"]), int(description["vocabulary_size"]), str(training["corpus"]))
    except (KeyError, TypeError, ValueError):
        return None
    tokens = re.search(r"([\d,]+) target tokens", card.get("Training", ""))
    facts.tokens = int(tokens[1].replace(",", "")) if tokens else None
    facts.devices = card["Cost"].partition(" on ")[2] if "Cost" in card else None
    facts.versions = {"nmt": card["nmt"]} if "nmt" in card else {}
    return facts


def open_run(folder: Path, prepared: str | None) -> Run:
    """Read a run's folder; NMTError where it holds no readable configuration, or no metrics yet."""
    config, rows, card = read_config(folder), read_metrics(folder), read_card(folder / "model")
    corpus = Path(prepared or str(config.get("prepared")))
    run = Run(
        folder=folder,
        config=config,
        rows=rows,
        written=(folder / "metrics.csv").stat().st_mtime,
        environment=read_object(folder / "environment.json"),
        card=card,
        model=model_facts(folder / "model", card),
        manifest=None,
        prepared=corpus,
    )
    try:
        run.manifest = read_manifest(corpus)
    except (NMTError, ValueError, TypeError):
        if prepared:
            raise
        run.corpus_problem = f"{corpus} holds no prepared corpus that can be read; pass prepared=FOLDER where it lies"
    return run
