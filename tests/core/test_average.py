"""`nmt average`: which checkpoints it averages, and where it writes the model."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file

from nmt.training import list_checkpoints


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A run with checkpoints at updates 12, 24, 36, 48 and 60."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_the_model_is_the_mean_of_the_last_checkpoints(run, nmt):
    output = nmt("average", "run=run", "last=2").out
    assert output == "run/model is the mean of the checkpoints at updates 48, 60\n"
    paths = list_checkpoints(run)[-2:]
    first, second = [torch.load(path, weights_only=True)["state_dict"] for path in paths]
    for name, tensor in load_file(run / "model" / "model.safetensors").items():
        total = first[f"model.{name}"].double() + second[f"model.{name}"].double()
        mean = total / 2
        assert torch.equal(tensor, mean.float()), name
    assert json.loads((run / "model/config.json").read_text())["training"]["averaged"] == [48, 60]


def test_without_a_number_the_model_is_the_one_that_training_delivers(run, finished, nmt):
    shutil.rmtree(run / "model")
    assert nmt("average", str(run)).code == 0
    weights = Path("model", "model.safetensors")
    assert (run / weights).read_bytes() == (finished / weights).read_bytes()


def test_removed_exports_of_the_previous_model_are_named(run, nmt):
    pytest.importorskip("nmt.plugins.exchange")
    assert nmt("export", "run", "precision=int8").code == 0
    (export,) = [path for path in (run / "model").iterdir() if path.is_dir()]
    out = nmt("average", "run=run", "last=2").out
    assert f"removed exports of the previous model: {export.name}" in out
    assert not export.exists()


@pytest.mark.slow
def test_only_a_model_outside_the_run_is_averaged_while_the_run_trains(run, nmt):
    with FileLock(run / ".lock"):
        nmt("average", "run=run").refused("run: another nmt is using it")
        assert nmt("average", "run=run", "output=elsewhere").code == 0


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "has no checkpoints"),
        (["run", "last=6"], "last=6: run has only 5 checkpoints"),
        (["run", "other"], "run, but run is also given"),
    ],
)
def test_impossible_averages_are_rejected_in_one_line(run, nmt, words, problem):
    nmt("average", *words).refused(problem)
