"""The last k checkpoints become a model directory (section 6.1)."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch.nn.functional import cross_entropy

from nmt.commands.average import AverageConfig, run as average
from nmt.config import CheckpointConfig
from nmt.data import open_corpus
from nmt.errors import NMTError
from nmt.training import Average, delivered_model, list_checkpoints


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A run of its own, with checkpoints at updates 12, 24, 36, 48 and 60."""
    return Path(shutil.copytree(finished, tmp_path / "runs" / "own"))


def numpy_mean(paths: list[Path]) -> dict[str, np.ndarray]:
    states = [torch.load(path, weights_only=True)["state_dict"] for path in paths]
    return {
        name.removeprefix("model."): np.mean([state[name].numpy().astype(np.float64) for state in states], axis=0)
        for name in states[0]
    }


def assert_averaged(model_directory: Path, paths: list[Path], updates: list[int]) -> None:
    """The weights are the mean of those checkpoints, correctly rounded, and its description says of which updates."""
    expected = numpy_mean(paths)
    weights = load_file(model_directory / "model.safetensors")
    assert weights
    for name, tensor in weights.items():
        assert tensor.dtype == np.float32
        np.testing.assert_array_equal(tensor, expected[name].astype(np.float32), err_msg=name)
    assert json.loads((model_directory / "config.json").read_text())["training"]["averaged"] == updates


def test_training_ends_in_the_mean_of_its_last_checkpoints(finished):
    assert_averaged(finished / "model", list_checkpoints(finished), [12, 24, 36, 48, 60])


def test_the_model_with_the_lowest_validation_loss_is_delivered(run, toy):
    """The losses are those of torch, line by line."""
    split = open_corpus(Path(toy[-1].removeprefix("prepared="))).split("valid")
    paths = list_checkpoints(run)
    best = run / "checkpoints" / "best.ckpt"
    shutil.copy(paths[1], best)  # as if validation had found update 24 to be the best
    delivered = delivered_model(run, CheckpointConfig(every_steps=12, keep=5), split, torch.device("cpu"))
    expected = {}
    for sources in ([best], *(paths[-count:] for count in range(1, 6))):
        average = Average(*sources)
        model = average.make_model()
        total = tokens = 0.0
        for row in range(len(split)):
            batch = split.batch(np.array([row]))
            logits = model(batch.source, batch.target_in)[0]
            total += cross_entropy(logits, batch.target_out[0], reduction="sum", label_smoothing=0.1).item()
            tokens += len(logits)
        expected[", ".join(map(str, average.updates))] = total / tokens
    assert delivered.losses == pytest.approx(expected, abs=1e-5)
    assert ", ".join(map(str, delivered.updates)) == min(expected, key=expected.__getitem__)
    assert delivered.made == 60


def test_different_models_are_refused_with_the_first_difference(run, toy, nmt):
    other = run.with_name("wider")
    options = ("model.d_model=32", "trainer.max_steps=1", "validation.bleu_sentences=0", f"run={other}")
    assert nmt("train", *toy, *options).code == 0
    paths = [str(list_checkpoints(folder)[-1]) for folder in (run, other)]
    with pytest.raises(NMTError, match=r"step=00000001\.ckpt is of another model.*model\.d_model: 16 -> 32"):
        average(AverageConfig(checkpoints=paths, output=str(run / "mixed")))
    assert not (run / "mixed").exists()


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    content = torch.load(path, weights_only=True)
    edit(content)
    torch.save(content, path)


NORM = "model.encoder_layers.0.residual_1.norm.weight"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda content: content["state_dict"].update({NORM: torch.ones(3)}), "is [3], where there should be [16]"),
        (lambda content: content["state_dict"].update({NORM: torch.ones(1).expand(2**40)}), "larger than its bytes"),
        (lambda content: content["nmt"].update(vocabulary_size=10**12), "where there should be [1000000000000, 16]"),
        (lambda content: content["nmt"]["config"].update(model=[]), "its model"),
        (lambda content: content.pop("callbacks"), "'callbacks' is missing"),
        (lambda content: content["nmt"]["config"].update(seed=torch.ones(1)), "not JSON"),
        (lambda content: content.update(epoch="a"), "'epoch' is missing or of another type"),
    ],
)
def test_a_checkpoint_that_training_cannot_have_written_is_named(run, nmt, toy, edit, words):
    last = list_checkpoints(run)[-1]
    change(last, edit)
    nmt("average", f"run={run}").refused(last.name, "no readable checkpoint", words)


def test_a_failed_write_leaves_the_old_model_directory_and_nothing_else(run, nmt, monkeypatch):
    before = {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nmt.model.weights.save_weights", fail)
    nmt("average", f"run={run}", "last=1").refused(str(run / "model"), "No space left")
    assert {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()} == before
    assert not list(run.glob(".model*"))
