"""Results: a JSON file for each row of a table, to check or repeat the measurement.

It contains the table, row, scale, seed, commands and their seconds, the origin of the numbers
(commit, machine, packages), training devices, scores with their signatures, and figures: all other
measurements and counts. If keys were renamed later, the commands have the new names, and a note
lists the names at the commit.
"""

import json
import math
import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

from plan import Row
from safetensors import safe_open

import nmt
from nmt.errors import NMTError
from nmt.files import write_file
from nmt.hardware import processor, usable_cores
from nmt.training import read_metrics

PACKAGES = ("torch", "lightning", "sentencepiece", "tokenizers", "sacrebleu", "sacremoses")
COLUMNS = {
    "updates": "step",
    "training_seconds": "seconds",
    "training_flops": "flops",
    "training_cost": "cost",
    "perplexity": "valid_perplexity",
}
"""Figure of a result -> the column of metrics.csv from which its last value is taken."""
Result = dict[str, Any]


def value(result: Result | None, name: str) -> float | None:
    """A figure, or the score of a metric; None if there is none."""
    if result is None:
        return None
    scores = {score["metric"]: score["value"] for score in result["scores"]}
    found: float | None = (scores | result["figures"]).get(name)
    return found


def is_of(result: Result, row: Row) -> bool:
    """True if a result was measured by the commands of a row, on any devices."""

    def anywhere(lines: list[str]) -> list[str]:
        return [re.sub(r" trainer\.devices=\S+", "", line) for line in lines]

    return anywhere(result["commands"]) == anywhere(row.lines)


def write_result(folder: Path, result: Result) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_file(
        folder / f"{result['row']}.json", json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    )


def read_results(folder: Path, seed: int) -> dict[str, Result]:
    """Row -> result, for all results with this seed in a folder; NMTError for a malformed file."""
    results = {}
    for path in sorted(folder.glob("*.json")):
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            if result["seed"] == seed:  # rows are compared with one another
                results[result["row"]] = result
        except (ValueError, TypeError, LookupError) as error:
            raise NMTError(
                f"{path}: not the result of a table row; remove it to measure the row again"
            ) from error
    return results


def findings(row: Row, printed: str) -> Result:
    """Scores, devices and figures, from the output of a row's last command and from its run."""
    if not row.folders:
        return dict(json.loads(printed))
    _, run = row.folders
    rows = read_metrics(run)
    figures: dict[str, float | None] = {}
    for name, column in COLUMNS.items():
        values = (float(row.get(column) or math.nan) for row in reversed(rows))
        figures[name] = next(filter(math.isfinite, values), None)
    # Count a matrix that several layers share only once.
    with safe_open(run / "model" / "model.safetensors", framework="numpy") as weights:
        shapes = [weights.get_slice(name).get_shape() for name in weights.keys()]  # noqa: SIM118
    figures["parameters"] = sum(map(math.prod, shapes))
    devices = json.loads((run / "environment.json").read_text(encoding="utf-8"))["devices"]
    return {"devices": devices, "scores": json.loads(printed), "figures": figures}


def origin() -> dict[str, Any]:
    """The current commit, machine and versions."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = {"processor": processor(), "cores": usable_cores(), "memory_gib": round(memory, 1)}
    packages = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    return {
        "commit": commit(Path(nmt.__file__).parents[1]),
        "machine": machine,
        "packages": packages,
    }


def commit(root: Path) -> str:
    """The commit of nmt's repository, with -dirty if code or groups have changed; outside it, the version of nmt."""

    def git(*words: str) -> str | None:
        result = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
        return result.stdout.strip() if result.returncode == 0 else None

    # A wheel may be installed inside the repository of another project.
    if not shutil.which("git") or git("ls-files", "--error-unmatch", "nmt/__init__.py") is None:
        return f"nmt {nmt.__version__}"
    changed = git("status", "--porcelain", "--", "nmt", "conf", "recipes/paper")
    return f"{git('rev-parse', 'HEAD')}{'-dirty' if changed else ''}"
