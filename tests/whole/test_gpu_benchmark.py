"""The GPU benchmark on a CPU, at about a fiftieth of its size."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


def benchmark(out, *options, is_dry=True):
    kind = ["--dry-run"] if is_dry else []
    return subprocess.run(
        [sys.executable, BENCHMARK, *kind, *options],
        # No GPU, whatever this machine has.
        env={**os.environ, "OUT": str(out), "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_every_step_runs_or_is_skipped_by_name(tmp_path):
    listed = benchmark(tmp_path, "--list").stdout.splitlines()
    names = [line.split()[0] for line in listed]
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
def test_steps_without_time_are_skipped_and_failed_steps_fail_the_run(tmp_path):
    done = benchmark(tmp_path, "--seconds", "1", "--only", "machine,search")
    assert done.returncode == 0
    steps = json.loads((tmp_path / "results.json").read_text())["steps"]
    assert {step["status"] for step in steps.values()} == {"skipped"}

    # A folder without a corpus.
    done = benchmark(tmp_path, "--only", "quickstart,search", "--quickstart", str(tmp_path))
    assert done.returncode == 1
    steps = json.loads((tmp_path / "results.json").read_text())["steps"]
    assert [step["status"] for step in steps.values()] == ["failed", "ok"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--seconds", "-1"], "--seconds: must be positive, not -1"),
        (["--only", "machine,speed"], "--only: no step is called speed; see --list"),
        (["--quickstart", "missing"], "--quickstart: there is no folder missing"),
        (["--cache", "missing"], "--cache: there is no file missing"),
        (["--cache", __file__], f"--cache: {__file__} is not a tar archive"),
        (["--wheels", "missing"], "--wheels: there is no folder missing"),
    ],
)
def test_wrong_options_end_in_one_line(tmp_path, options, problem):
    done = benchmark(tmp_path, *options)
    assert done.returncode == 2
    assert done.stderr == problem + "\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_wheels_for_another_python_end_in_one_line(tmp_path):
    for name in ("a-1-py3-none-any", "b-1-cp38-abi3-any", "c-1-cp399-cp399-any"):
        (tmp_path / f"{name}.whl").touch()
    done = benchmark(tmp_path, "--check", "--wheels", str(tmp_path))
    version = "{}.{}".format(*sys.version_info[:2])
    problem = f"--wheels: not for this Python ({version}): c-1-cp399-cp399-any.whl\n"
    assert (done.returncode, done.stderr) == (2, problem)

    (tmp_path / "c-1-cp399-cp399-any.whl").unlink()
    # An empty file is no wheel.
    done = benchmark(tmp_path, "--wheels", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.startswith("--wheels: pip cannot install them: ERROR: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_check_names_missing_packages_and_a_missing_gpu(tmp_path):
    assert benchmark(tmp_path, "--check").returncode == 0

    # Without site-packages, Python has only its own library.
    command = [sys.executable, "-S", BENCHMARK, "--dry-run", "--check"]
    done = subprocess.run(command, env={}, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("missing packages: annotated-doc, antlr4-python3-runtime, ")
    assert done.stderr.count("\n") == 1

    done = benchmark(tmp_path, "--check", is_dry=False)
    assert done.returncode == 2
    assert "torch finds no GPU" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_interrupted_steps_are_in_the_table(tmp_path):
    process = subprocess.Popen(
        [sys.executable, BENCHMARK, "--dry-run", "--only", "machine"],
        env={**os.environ, "OUT": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    log = tmp_path / "log.txt"
    while not log.exists() or "=== machine ===" not in log.read_text():
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate()
    assert process.returncode == 130
    assert "| machine | the step | interrupted after " in (tmp_path / "table.md").read_text()
    assert "| machine | interrupted after " in printed
