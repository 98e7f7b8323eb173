"""`compile=true`: a run that trains, goes on exactly, and leaves checkpoints like any other's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
SHORT = ("compile=true", "validation.bleu_sentences=0", "validation.every_steps=100", "run=run")


@needs_compiler
def test_a_compiled_run_goes_on_exactly_and_has_checkpoints_like_any_other(toy, nmt, finished, training_state, metrics):
    for run, stops in (("stopped", (15, 30)), ("whole", (30,))):
        for steps in stops:
            outcome = nmt("train", *toy, *SHORT, f"run={run}", f"trainer.max_steps={steps}")
            assert outcome.code == 0, outcome.err
    states = [training_state(Path(run)) for run in ("stopped", "whole")]
    torch.testing.assert_close(*states, rtol=0, atol=0)
    assert states[0]["weights"].keys() == training_state(finished)["weights"].keys()
    losses = [float(row["loss"]) for row in metrics(Path("whole")) if row["loss"]]
    plain = [float(row["loss"]) for row in metrics(finished) if row["loss"]][: len(losses)]
    assert losses[0] == pytest.approx(plain[0], rel=0.02)
    assert losses[-1] < 0.8 * losses[0]


def test_a_run_does_not_change_to_being_compiled(toy, nmt, finished):
    nmt("train", *toy, f"run={finished}", "compile=true").refused("compile: False -> True", "name=")


@pytest.mark.slow
def test_a_missing_compiler_is_told_in_one_line(toy, tmp_path):
    environment = {**os.environ, "CXX": "/nowhere/g++", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "nmt", "train", *toy, *SHORT, f"run={tmp_path / 'run'}"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("nmt: compile=true: torch.compile failed")
    assert "C++ compiler" in ended.stderr
