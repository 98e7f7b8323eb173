"""`nmt verify RUN` trains again between checkpoints and finds one changed bit."""

import shutil
from pathlib import Path

import pytest
import torch

EMBEDDING = "model.source_embedding.weight"


@pytest.fixture
def run(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "mine"))


def test_a_run_trained_as_claimed_has_equal_bits_and_does_not_change(nmt, run):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    outcome = nmt("verify", "mine")
    assert outcome.code == 0, outcome.err
    rows = [line.split(": ")[0] for line in outcome.out.splitlines()]
    assert rows == [f"same       update {start} to {start + 12}" for start in (12, 24, 36, 48)]
    assert nmt("verify", "mine", "step=0").out.startswith("same       update 0 to 12: ")
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_one_changed_bit_is_found_and_named_with_the_environment(nmt, run):
    path = run / "checkpoints/step=00000036.ckpt"
    content = torch.load(path, weights_only=True)
    content["nmt"]["versions"]["torch"] = "1.0"
    tensors, weights = content["optimizer_states"][0]["state"][0], content["state_dict"]
    for tensor, name in ((tensors["exp_avg"], "optimizer.0.exp_avg"), (weights[EMBEDDING], f"weights.{EMBEDDING}")):
        tensor.view(torch.int32)[7, 7] ^= 1
        torch.save(content, path)
        outcome = nmt("verify", "mine", "step=24")
        assert outcome.code == 1
        assert outcome.out.startswith(f"DIFFERS    update 24 to 36: {name} differs by up to ")
        assert f"environment: torch: 1.0 -> {torch.__version__}\n" in outcome.out


def test_what_is_missing_or_changed_is_named(nmt, run, toy, finished):
    nmt("verify", "mine", "step=13").refused("mine, step=13: no next checkpoint", "use 0, 12, 24, 36, 48")
    nmt("verify", "mine", "prepared=nowhere").refused("nowhere")
    prepared = Path(shutil.copytree(toy[-1].removeprefix("prepared="), "prepared"))
    [path] = prepared.glob("train/*.arrow")
    path.write_bytes(path.read_bytes() + b"\0")
    nmt("verify", "mine", "prepared=prepared").refused("trained with a different train/")
    nmt("verify", "run=mine/model").refused("no next checkpoint", "use a run that has checkpoints")
