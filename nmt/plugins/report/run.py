"""The folder of a run: configuration, metrics, environment, the newest model's record, and the corpus."""

import math
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.config import build, matches, require
from nmt.errors import NMTError
from nmt.evaluation import Score
from nmt.files import parse_json, read_description, read_mapping
from nmt.training import check_no_links, read_config, read_metrics

if TYPE_CHECKING:
    from nmt.data import PreparedCorpus

SILENT_SECONDS = 3600.0  # a run without a report for this long counts as stopped


def find_run(name: str) -> Path:
    hint = "not a training run (no config.yaml); give a folder that `nmt train` wrote"
    hint = "train a model first: `nmt preprocess`, then `nmt train`" if name == "runs/latest" else hint
    require((Path(name) / "config.yaml").is_file(), f"run={name}: {hint}")
    check_no_links(Path(name))
    return Path(name)


def read_rows(run: Path) -> list[dict[str, float]]:
    """The numbers in every row of metrics.csv; NMTError if it has no rows yet."""
    rows = list[dict[str, float]]()
    for cells in read_metrics(run):
        rows.append({})
        for key, text in cells.items():
            with suppress(ValueError):
                rows[-1][key] = float(text)
    require(bool(rows), f"run={run}: nothing is logged in metrics.csv yet; try again after a report of training")
    return rows


@dataclass
class ModelScore(Score):
    """The score of the averaged model on the validation set."""

    sentences: int


@dataclass
class Facts:
    """The training record of a model directory; `corpus` is a fingerprint, `tokens` are target tokens."""

    updates: int
    vocabulary_size: int
    corpus: str
    tokens: int | None = None
    devices: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    score: ModelScore | None = None


@dataclass
class Run:
    folder: Path
    config: dict[str, Any]
    rows: list[dict[str, float]]
    written: float  # time of the last write to metrics.csv, in seconds since 1970
    environment: dict[str, Any] = field(default_factory=dict)
    model: Facts | None = None  # None before the end of training, or if the model directory is unreadable
    corpus: "PreparedCorpus | None" = None
    corpus_problem: str = ""

    @property
    def update(self) -> int:
        return max(int(max(row["step"] for row in self.rows)), self.model.updates if self.model else 0)

    @property
    def updates(self) -> int:
        planned = self.config.get("trainer", {}).get("max_steps")
        return max(planned if matches(planned, int) else 0, self.update)

    def series(self, column: str) -> list[tuple[int, float]]:
        """(update, value) for every value of a column of metrics.csv."""
        return [(int(row["step"]), row[column]) for row in self.rows if column in row]

    def last(self, column: str) -> float | None:
        return next((row[column] for row in reversed(self.rows) if math.isfinite(row.get(column, math.nan))), None)

    def state(self, now: float) -> str:
        """finished, running or stopped (averaged before the last update, or silent for long)."""
        if self.model and self.model.updates >= self.update:
            return "finished" if self.model.updates >= self.updates else "stopped"
        return "running" if now - self.written < SILENT_SECONDS else "stopped"


def open_run(folder: Path, prepared: str | None) -> Run:
    """Read the folder of a run; NMTError without a readable configuration and metrics."""
    from nmt.data import corpus_of

    run = Run(folder, read_config(folder), read_rows(folder), (folder / "metrics.csv").stat().st_mtime)
    with suppress(NMTError):
        run.environment = read_mapping(folder / "environment.json", parse_json)
    with suppress(NMTError):
        description = read_description(folder / "model")
        record = {**description.training, "vocabulary_size": description.vocabulary_size}
        facts = {key.name: record[key.name] for key in fields(Facts) if record.get(key.name) is not None}
        if "score" in facts:
            facts["score"] = build(ModelScore, facts["score"])
        run.model = build(Facts, facts)
    try:
        run.corpus = corpus_of(folder, {"config": run.config, "corpus": run.model and run.model.corpus}, prepared)
    except NMTError as error:
        if prepared:
            raise
        run.corpus_problem = str(error)
    return run
