"""`nmt average`: which checkpoints become a model, and where."""

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
    paths = list_checkpoints(run)[-2:]
    assert (
        nmt("average", "run=run", "last=2").out
        == "run/model is the mean of the checkpoints at updates 48, 60\n"
    )
    states = [torch.load(path, weights_only=True)["state_dict"] for path in paths]
    for name, tensor in load_file(run / "model" / "model.safetensors").items():
        mean = (states[0][f"model.{name}"].double() + states[1][f"model.{name}"].double()) / 2
        assert torch.equal(tensor, mean.float()), name
    assert json.loads((run / "model/config.json").read_text())["training"]["averaged"] == [48, 60]


def test_without_a_number_it_is_the_model_that_training_delivers(run, finished, nmt):
    shutil.rmtree(run / "model")
    assert nmt("average", str(run)).code == 0
    weights = [(folder / "model" / "model.safetensors").read_bytes() for folder in (run, finished)]
    assert weights[0] == weights[1]


def test_exports_of_the_model_before_are_named_when_they_go(run, nmt):
    pytest.importorskip("nmt.plugins.exchange")
    assert nmt("export", "run", "precision=int8").code == 0
    [export] = (path for path in (run / "model").iterdir() if path.is_dir())
    out = nmt("average", "run=run", "last=2").out
    assert f"removed exports of the previous model: {export.name}" in out
    assert not export.exists()


def test_an_average_waits_for_no_other_command(run, nmt):
    with FileLock(run / ".lock"):
        nmt("average", "run=run").refused("run: another nmt is using it")
        assert nmt("average", "run=run", "output=elsewhere").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "has no checkpoints"),
        (["run", "last=6"], "last=6: run has only 5 checkpoints"),
        (["run", "other"], "run, but run is also given"),
    ],
)
def test_what_cannot_be_averaged_is_refused_in_one_line(run, nmt, words, said):
    nmt("average", *words).refused(said)
