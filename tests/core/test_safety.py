"""What would kill a run at night: the largest batch, gradients that are not finite."""

import re
import subprocess
from pathlib import Path

import pytest
import torch
from preloaded import python

from nmt.training import list_checkpoints, load_checkpoint, read_metrics
from nmt.training.trainer import MemoryCheck

SICK_UPDATE = 7
SICK = """
from nmt.cli import main
from nmt.training.module import TranslationModule

losses = TranslationModule.losses

def sick(module, batch):
    loss, likelihood = losses(module, batch)
    # The memory check's batches say that they are of update 0.
    return (loss * float("nan"), likelihood) if batch.update == 7 and batch.micro_batch == 1 else (loss, likelihood)

TranslationModule.losses = sick
main()
"""
SHORT = (
    *("run=run", "trainer.max_steps=12", "checkpoints.every_steps=3", "validation.every_steps=12"),
    "validation.bleu_sentences=0",
)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def train_with(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python(), "-c", code, "train", *options], capture_output=True, text=True, check=False)


def test_a_gradient_that_is_not_finite_stops_and_names_the_update(toy):
    ended = train_with(SICK, *toy, *SHORT)
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert f"update {SICK_UPDATE + 1}: the gradient is not finite" in ended.stderr.splitlines()[-1]
    last = load_checkpoint(list_checkpoints(Path("run"))[-1])
    assert last["global_step"] == 6
    assert all(tensor.isfinite().all() for tensor in last["state_dict"].values())


def test_by_configuration_such_an_update_is_skipped_and_counted(toy):
    ended = train_with(SICK, *toy, *SHORT, "trainer.log_every_n_steps=1", "optim.not_finite=skip")
    assert ended.returncode == 0, ended.stderr
    rows = [row for row in read_metrics(Path("run")) if row["loss"]]
    assert [int(row["skipped"]) for row in rows] == [0] * SICK_UPDATE + [1] * (12 - SICK_UPDATE)
    assert [row["loss"] == "nan" for row in rows] == [step == SICK_UPDATE for step in range(12)]
    final = load_checkpoint(list_checkpoints(Path("run"))[-1])
    assert all(tensor.isfinite().all() for tensor in final["state_dict"].values())
    assert {int(state["step"]) for state in final["optimizer_states"][0]["state"].values()} == {11}


@pytest.mark.parametrize(("bad", "code"), [("2 <= batch.update", 2), ("6 <= batch.update", 0)])
def test_a_run_most_of_whose_updates_were_skipped_has_no_model(toy, nmt, bad, code):
    ended = train_with(SICK.replace("batch.update == 7", bad), *toy, *SHORT, "optim.not_finite=skip")
    assert ended.returncode == code, ended.stderr
    assert Path("run/model").exists() == (code == 0)
    if code:
        assert "optim.not_finite=skip skipped 10 of the 12 updates" in ended.stderr
        nmt("average", "run").refused("run: no model was written")
        assert not Path("run/model").exists()


STARVED = """
import resource
from nmt.cli import main
from nmt.training.trainer import MemoryCheck

begin = MemoryCheck.on_train_start

def starve(callback, trainer, module):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, used + 2**27))
    begin(callback, trainer, module)

MemoryCheck.on_train_start = starve
main()
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_memory_runs_out_before_the_first_update_and_the_message_has_the_numbers(toy, nmt):
    wide = ("batching.tokens_per_update=20000", "model.d_model=256", "model.d_ff=4096")
    ended = train_with(STARVED, *toy, "run=run", *wide)
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False), ended.stderr
    assert "out of memory: a micro-batch of 10,000 source" in ended.stderr.splitlines()[-1]
    assert not read_metrics(Path("run"))
    # Nothing was trained, so nothing holds the run to its first options.
    (advice,) = re.findall(r"Pass (batching\.micro_batches=4)", ended.stderr)
    small = ("batching.tokens_per_update=240", "trainer.max_steps=2", "validation.bleu_sentences=0")
    assert nmt("train", *toy, "run=run", *wide[1:], *small, advice).code == 0


def test_the_memory_check_leaves_no_trace(toy, nmt, training_state, monkeypatch):
    assert nmt("train", *toy, *SHORT).code == 0
    monkeypatch.setattr(MemoryCheck, "on_train_start", lambda *arguments: None)
    assert nmt("train", *toy, *SHORT, "run=other").code == 0
    torch.testing.assert_close(*(training_state(Path(run)) for run in ("run", "other")), rtol=0, atol=0)
    assert read_metrics(Path("run"))[0]["loss"] == read_metrics(Path("other"))[0]["loss"]


def test_early_stopping_keeps_the_best_and_is_final(toy, nmt):
    """With a learning rate of nothing every validation is as good as the first, which stays the best."""
    options = (*toy, *SHORT, "trainer.max_steps=60", "optim.factor=1e-12", "validation.every_steps=3")
    first = nmt("train", *options, "validation.patience=3")
    assert first.code == 0, first.err
    assert "no better perplexity in 3 validations" in first.err
    assert load_checkpoint(list_checkpoints(Path("run"))[-1])["global_step"] == 12
    assert load_checkpoint(Path("run/checkpoints/best.ckpt"))["global_step"] == 3
    again = nmt("train", *options, "validation.patience=3")
    assert again.code == 0
    assert "already trained for 12 updates" in again.err


@pytest.mark.parametrize("file", ["valid.en", "train.de"])
def test_a_line_longer_than_learned_positions_is_told_before_training(other_text, nmt, file):
    path = Path(file)
    lines = path.read_text().splitlines()
    lines[2] = " ".join(["ka lo mi nu pe"] * 12)
    path.write_text("\n".join(lines) + "\n")
    unfiltered = ("data.filters.max_ratio=null", "data.filters.max_words=null", "batching.tokens_per_update=480")
    assert nmt("preprocess", *other_text, *unfiltered).code == 0
    learned = ("model.positions=learned", "model.max_positions=20", "run=run")
    nmt("train", *other_text, *unfiltered, *learned).refused(f"a line of {path.stem} has", "model.max_positions=20")
    assert not Path("run").exists()
