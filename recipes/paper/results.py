"""Results: a JSON file for each row of a table, with all that is needed to believe it, or to repeat it."""

import csv
import json
import math
import os
import platform
import re
import shutil
import subprocess
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from plan import Row
from safetensors import safe_open

import nmt
from nmt.errors import NMTError
from nmt.hardware import processor, usable_cores
from nmt.storage.whole import write_file

PACKAGES = ("torch", "lightning", "sentencepiece", "tokenizers", "sacrebleu", "sacremoses")
COLUMNS = {
    "updates": "step",
    "training_seconds": "seconds",
    "training_flops": "flops",
    "training_cost": "cost",
    "perplexity": "valid_perplexity",
}
"""Figure of a result -> column of metrics.csv, whose last value it is."""


@dataclass
class Result:
    """A row of a table as it was measured."""

    table: str
    row: str
    scale: str
    seed: int
    commands: list[str]
    origins: list[dict[str, Any]]
    """Commit, machine and packages; more than one where it was interrupted and went on with others."""
    seconds: dict[str, float]
    """Of each command, interrupted ones included."""
    devices: str | None = None
    """The devices of the training."""
    scores: list[dict[str, Any]] = field(default_factory=list)
    """Each with its signature, as `nmt score` gives them."""
    figures: dict[str, Any] = field(default_factory=dict)
    """All else that was measured or counted."""

    def value(self, name: str) -> float | None:
        """A figure, or the score of a metric; None where there is none."""
        scores = {score["metric"]: score["value"] for score in self.scores}
        return (scores | self.figures).get(name)

    def is_of(self, row: Row) -> bool:
        """True where it was measured by the row's commands, on whatever devices."""
        return list(map(anywhere, self.commands)) == list(map(anywhere, row.lines))


def anywhere(line: str) -> str:
    """A command line without the devices that it trains on, which may change as it goes on."""
    return re.sub(r" trainer\.devices=\S+", "", line)


def write_result(folder: Path, result: Result) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(result), indent=2, ensure_ascii=False) + "\n"
    write_file(folder / f"{result.row}.json", text)


def read_results(folder: Path, seed: int) -> dict[str, Result]:
    """Row -> result of all of that seed that lie in a folder; NMTError where one is broken."""
    results = {}
    for path in sorted(folder.glob("*.json")):
        try:
            result = Result(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise NMTError(f"{path}: is no result of a table; remove it, and it is measured again") from error
        if result.seed == seed:  # rows are compared with one another
            results[result.row] = result
    return results


def findings(row: Row, printed: str) -> dict[str, Any]:
    """Fields of a row's result, from what its last command printed and from its run."""
    if not row.folders:
        return dict(json.loads(printed))
    _, run = row.folders
    with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
        reports = list(csv.DictReader(file))
    values = {name: [float(report[column] or "nan") for report in reports] for name, column in COLUMNS.items()}
    figures = {name: next(filter(math.isfinite, reversed(column)), None) for name, column in values.items()}
    figures["parameters"] = count_parameters(run / "model" / "model.safetensors")
    devices = json.loads((run / "environment.json").read_text(encoding="utf-8"))["devices"]
    return {"scores": json.loads(printed), "devices": devices, "figures": figures}


def count_parameters(path: Path) -> int:
    """The numbers in a file of weights, a matrix that several layers share once."""
    with safe_open(path, framework="numpy") as weights:
        return sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118


def origin() -> dict[str, Any]:
    """Commit, machine and versions, as they are now."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = {"processor": processor(), "cores": usable_cores(), "memory_gib": round(memory, 1)}
    packages = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    return {"commit": commit(Path(nmt.__file__).parents[1]), "machine": machine, "packages": packages}


def commit(root: Path) -> str:
    """The commit of nmt's own repository, with -dirty where its code or groups are others; else the version of nmt."""

    def git(*words: str) -> str | None:
        result = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
        return result.stdout.strip() if result.returncode == 0 else None

    # A wheel may lie in an environment within somebody else's repository.
    if not shutil.which("git") or git("ls-files", "--error-unmatch", "nmt/__init__.py") is None:
        return f"nmt {nmt.__version__}"
    changed = git("status", "--porcelain", "--", "nmt", "conf", "recipes/paper")
    return f"{git('rev-parse', 'HEAD')}{'-dirty' if changed else ''}"
