"""The GPU benchmark on a CPU, at about a fiftieth of its size."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def benchmark(out, *options):
    return subprocess.run(
        [sys.executable, BENCHMARK, "--dry-run", *options],
        env={**os.environ, "OUT": str(out)},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_every_step_runs_or_is_skipped_by_name(tmp_path):
    names = benchmark(tmp_path, "--list").stdout.split()
    done = benchmark(tmp_path, "--seconds", "3000")
    assert done.returncode == 0, done.stdout + (tmp_path / "log.txt").read_text()

    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results["steps"]) == names
    assert {step["status"] for step in results["steps"].values()} == {"ok"}
    skipped = [row["measured"] for row in results["rows"] if "skipped" in row["measured"]]
    assert all("needs CUDA" in text or "dry run" in text for text in skipped), skipped
    # What compares numbers does so here too, unlike what compares speeds.
    assert [row for row in results["rows"] if "MISS" in row["verdict"]] == []

    table = (tmp_path / "table.md").read_text()
    assert done.stdout.rstrip().endswith(table.rstrip())
    assert all(f"| {name} | " in table for name in names)


@pytest.mark.slow
def test_a_step_without_time_is_skipped_and_a_failed_one_fails_the_run(tmp_path):
    done = benchmark(tmp_path, "--seconds", "1", "--only", "machine,search")
    assert done.returncode == 0
    steps = json.loads((tmp_path / "results.json").read_text())["steps"]
    assert {step["status"] for step in steps.values()} == {"skipped"}

    # A folder without a corpus.
    done = benchmark(tmp_path, "--only", "quickstart,search", "--quickstart", str(tmp_path))
    assert done.returncode == 1
    steps = json.loads((tmp_path / "results.json").read_text())["steps"]
    assert [step["status"] for step in steps.values()] == ["failed", "ok"]
