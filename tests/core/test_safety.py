"""Runs that end early: gradients that are not finite, patience, and lines that are too long."""

import subprocess
from pathlib import Path

import pytest

from nmt.training import list_checkpoints, load_checkpoint, read_metrics
from tests.helpers.preloaded import python

pytestmark = pytest.mark.usefixtures("here")
SICK_UPDATE = 7
SICK = """
from nmt.cli import main
from nmt.training.module import TranslationModule

losses = TranslationModule.losses

def sick(module, batch):
    loss, likelihood = losses(module, batch)
    # The memory check's batches say that they are of update 0.
    if batch.update == 7 and batch.micro_batch == 1:
        loss = loss * float("nan")
    return loss, likelihood

TranslationModule.losses = sick
main()
"""
SHORT = (
    "run=run",
    "trainer.max_steps=12",
    "checkpoints.every_steps=3",
    "validation.every_steps=12",
    "validation.bleu_sentences=0",
)


def train_with(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [python(), "-c", code, "train", *options], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_gradient_that_is_not_finite_stops_training_with_its_update(toy):
    ended = train_with(SICK, *toy, *SHORT)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert f"update {SICK_UPDATE + 1}: the gradient is not finite" in ended.stderr.splitlines()[-1]
    last = load_checkpoint(list_checkpoints(Path("run"))[-1])
    assert last["global_step"] == 6
    assert all(tensor.isfinite().all() for tensor in last["state_dict"].values())


@pytest.mark.slow
def test_not_finite_skip_skips_and_counts_such_updates(toy):
    ended = train_with(SICK, *toy, *SHORT, "trainer.log_every_n_steps=1", "optim.not_finite=skip")
    assert ended.returncode == 0, ended.stderr
    rows = [row for row in read_metrics(Path("run")) if row["loss"]]
    assert [int(row["skipped"]) for row in rows] == [0] * SICK_UPDATE + [1] * (12 - SICK_UPDATE)
    assert [row["loss"] == "nan" for row in rows] == [step == SICK_UPDATE for step in range(12)]
    final = load_checkpoint(list_checkpoints(Path("run"))[-1])
    assert all(tensor.isfinite().all() for tensor in final["state_dict"].values())
    assert {int(state["step"]) for state in final["optimizer_states"][0]["state"].values()} == {11}


@pytest.mark.slow
@pytest.mark.parametrize(("bad", "code"), [("2 <= batch.update", 2), ("6 <= batch.update", 0)])
def test_a_run_that_skipped_most_updates_delivers_no_model(toy, nmt, bad, code):
    ended = train_with(
        SICK.replace("batch.update == 7", bad), *toy, *SHORT, "optim.not_finite=skip"
    )
    assert ended.returncode == code, ended.stderr
    assert Path("run/model").exists() == (code == 0)
    if code:
        assert "optim.not_finite=skip skipped 10 of the 12 updates" in ended.stderr


@pytest.mark.slow
def test_early_stopping_delivers_the_best_model_and_is_final(toy, nmt):
    """At a learning rate of almost 0, no validation is better than the first."""
    options = (
        *toy,
        *SHORT,
        "trainer.max_steps=60",
        "optim.factor=1e-12",
        "validation.every_steps=3",
    )
    first = nmt("train", *options, "validation.patience=3")
    assert first.code == 0, first.err
    assert "no better perplexity in 3 validations" in first.err
    assert load_checkpoint(list_checkpoints(Path("run"))[-1])["global_step"] == 12
    assert load_checkpoint(Path("run/checkpoints/best.ckpt"))["global_step"] == 3
    again = nmt("train", *options, "validation.patience=3")
    assert again.code == 0
    assert "already trained for 12 updates" in again.err


@pytest.mark.slow
@pytest.mark.parametrize("file", ["valid.en", "train.de"])
def test_a_line_longer_than_learned_positions_is_reported_before_training(other_text, nmt, file):
    path = Path(file)
    lines = path.read_text().splitlines()
    lines[2] = " ".join(["ka lo mi nu pe"] * 12)
    path.write_text("\n".join(lines) + "\n")
    unfiltered = (
        "data.filters.max_ratio=null",
        "data.filters.max_words=null",
        "batching.tokens_per_update=480",
    )
    assert nmt("preprocess", *other_text, *unfiltered).code == 0
    learned = ("model.positions=learned", "model.max_positions=20", "run=run")
    nmt("train", *other_text, *unfiltered, *learned).refused(
        f"a line of {path.stem} has", "model.max_positions=20"
    )
    assert not Path("run").exists()
