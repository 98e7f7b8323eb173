"""A sweep over real trainings: from a scheduler's line, through an interruption and a failed point, to the table."""

import csv
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from preloaded import python

import nmt.plugins.sweep.sweep as sweep_module
from nmt.plugins.sweep.sweep import FIGURES
from nmt.training import read_metrics

FOLDER = Path("runs/mine")


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`nmt` is the one under test, and so are the points of a sweep in this process."""
    monkeypatch.setattr(sweep_module, "TRAIN", [python(), *sweep_module.TRAIN[1:]])
    program = tmp_path / "bin" / "nmt"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {python()} -m nmt "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(sweep_module.__file__).parents[3]))


def table() -> list[dict[str, str]]:
    with (FOLDER / "sweep.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.usefixtures("shell")
def test_a_sweep_goes_on_from_a_schedulers_line_and_from_an_interruption(toy, nmt, metrics, finished):
    command = ["train", "--sweep", *toy, "model.heads=1,2", "seed=1,2", "name=mine"]
    lines = nmt(*command, "--dry-run").out.splitlines()
    assert len(lines) == 4
    subprocess.run(lines[2], shell=True, check=True, capture_output=True)
    by_hand = FOLDER / "model.heads-2+seed-1"
    assert metrics(by_hand) == metrics(finished)

    with subprocess.Popen(["nmt", *command], stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            deadline = time.monotonic() + 240
            while not read_metrics(FOLDER / "model.heads-1+seed-2"):
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.005)
            os.killpg(process.pid, signal.SIGINT)
            errors = process.communicate(timeout=120)[1]
        finally:
            os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
    assert process.returncode == 130, errors
    assert "stopped and saved in runs/mine/model.heads-1+seed-2" in errors
    assert "the sweep was stopped; the same command goes on from there" in errors
    assert "Traceback" not in errors
    assert [row["state"] for row in table()] == ["done", "stopped", "done", "not started"]

    ended = nmt(*command)
    assert ended.code == 0, ended.err
    assert [line for line in ended.err.splitlines() if line.startswith("point ")] == [
        "point 1 of 4: model.heads=1 seed=1: already trained",
        "point 2 of 4: model.heads=1 seed=2",
        "point 3 of 4: model.heads=2 seed=1: already trained",
        "point 4 of 4: model.heads=2 seed=2",
    ]
    assert {(row["state"], row["updates"]) for row in table()} == {("done", "60")}
    for row in table():
        last = metrics(Path(row["run"]))[-1]
        assert {key: row[key] for key in FIGURES} == {key: last[key] for key in FIGURES}
    (best,) = (row for row in table() if row["best"])
    assert float(best["valid_bleu"]) == max(float(row["valid_bleu"]) for row in table())
    assert Path("runs/latest").resolve() == Path(best["run"]).resolve()
    assert ended.out.count("\n") == 5
    assert nmt("translate", "input=/dev/null").code == 0
