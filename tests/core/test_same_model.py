"""The model directory is a function of configuration, seed and update: not of clocks, stops, or earlier ends."""

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from preloaded import python

from nmt.training import list_checkpoints
from nmt.training.run_folder import kept

OPTIONS = [
    "checkpoints.average=best",
    "checkpoints.every_steps=5",
    "checkpoints.keep=3",
    "validation.every_steps=10",
    "validation.bleu_sentences=0",
]


@pytest.mark.parametrize(
    ("updates", "every", "keep", "wanted"),
    [
        ([5, 10, 13], 5, 5, [5, 10, 13]),
        ([5, 10, 13, 15], 5, 5, [5, 10, 15]),
        ([5, 10, 13, 15, 20], 5, 3, [10, 15, 20]),
        ([72, 81], 1400, 5, [81]),
        ([], 5, 3, []),
    ],
)
def test_updates_decide_which_checkpoints_are_averaged(updates, every, keep, wanted):
    assert kept(updates, every, keep) == wanted


@pytest.fixture(scope="module")
def straight(toy, trained) -> Path:
    return trained(*toy, *OPTIONS, "trainer.max_steps=40")


def product(run: Path) -> dict[str, object]:
    """The part of a model directory that no clock decides; weights to the byte."""
    model = run / "model"
    description = json.loads((model / "config.json").read_text())
    # Where the run lies, and how often it is saved for safety, is no matter of the model.
    assert description["training"].pop("seconds") > 0
    description["training"]["config"].pop("run")
    description["training"]["config"]["checkpoints"].pop("every_minutes")
    content = {
        path.name: path.read_bytes() for path in model.iterdir() if path.name not in ("config.json", "README.md")
    }
    return {**content, "config.json": description}


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(["trainer.max_steps=13"], marks=pytest.mark.slow),
        ["trainer.max_steps=22", "checkpoints.every_minutes=0.0001"],
    ],
)
def test_a_run_that_was_extended_has_the_model_of_one_that_went_straight_on(toy, nmt, straight, first):
    options = [*toy, *OPTIONS, "run=run"]
    assert nmt("train", *options, *first).code == 0
    assert nmt("train", *options, "trainer.max_steps=40").code == 0
    assert product(Path("run")) == product(straight)
    assert [path.name for path in list_checkpoints(Path("run"))] == [path.name for path in list_checkpoints(straight)]


def test_minutes_save_for_safety_and_change_nothing(toy, nmt, straight):
    options = [*toy, *OPTIONS, "run=run", "trainer.max_steps=40", "checkpoints.every_minutes=0.0001"]
    assert nmt("train", *options).code == 0
    assert product(Path("run")) == product(straight)


def test_a_second_training_in_a_run_is_refused(toy, nmt):
    options = [*toy, "run=run"]
    Path("run").mkdir()
    with FileLock("run/.lock"):
        nmt("train", *options).refused("run: another nmt is at work there", "run=OTHER")
    assert nmt("train", *options, "trainer.max_steps=5").code == 0
    with FileLock("run/.lock"):
        nmt("average", "run=run").refused("run: another nmt is at work there")
        assert nmt("average", "run=run", "output=elsewhere").code == 0


def test_two_trainings_at_once_leave_one_whole_run(toy, nmt, metrics):
    again = "train", *toy, "run=run", "trainer.max_steps=600"  # so many that it is not done before the other one begins
    first = subprocess.Popen([python(), "-m", "nmt", *again], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not Path("run/metrics.csv").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    nmt(*again).refused("another nmt is at work")
    errors = first.communicate()[1]
    assert first.returncode == 0, errors
    steps = [int(row["step"]) for row in metrics(Path("run"))]
    assert steps == sorted(steps)
    assert len([row for row in metrics(Path("run")) if row["loss"]]) == 120


def test_what_is_refused_leaves_no_run_behind(toy, nmt):
    nmt("train", *toy, "run=runs/new", "trainer.devices=3").refused("devices")
    assert not Path("runs/new").exists()


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(toy, nmt, finished, damage):
    run = Path(shutil.copytree(finished, "run"))
    shutil.rmtree(run / "model")
    last = list_checkpoints(run)[-1]
    content = bytearray(last.read_bytes())
    if damage == "flipped":
        content[int(0.45 * len(content))] ^= 1
    last.write_bytes({"empty": b"", "cut": content[: len(content) // 2], "flipped": content}[damage])
    outcome = nmt("train", *toy, "run=run", "checkpoints.every_steps=12")
    assert outcome.code == 0
    assert f"{last} cannot be read" in outcome.err
    assert "step=00000048.ckpt" in outcome.err
    own, expected = (folder / "model" / "model.safetensors" for folder in (run, finished))
    assert own.read_bytes() == expected.read_bytes()
    assert last.with_suffix(".unreadable").exists()


def test_a_checkpoint_that_lightning_cannot_go_on_from_is_named(toy, nmt, finished):
    run = Path(shutil.copytree(finished, "run"))
    shutil.rmtree(run / "model")
    for path in list_checkpoints(run)[:-1]:
        path.unlink()
    [last] = list_checkpoints(run)
    content = torch.load(last, weights_only=True)
    del content["optimizer_states"][0]["param_groups"]
    content["global_step"] = 48
    torch.save(content, last)
    nmt("train", *toy, "run=run", "checkpoints.every_steps=12").failed("step=00000060.ckpt", "cannot resume from it")


def test_a_run_without_any_readable_checkpoint_says_so(toy, nmt, finished):
    run = Path(shutil.copytree(finished, "run"))
    for path in list_checkpoints(run):
        path.write_bytes(b"")
    nmt("train", *toy, "run=run", "checkpoints.every_steps=12").refused("step=00000060.ckpt", "none of run can be read")


@pytest.mark.parametrize("name", ["checkpoints", "model", "tensorboard"])
def test_a_folder_of_a_run_that_is_a_link_is_not_written_through(toy, nmt, finished, tmp_path, name):
    run = Path(shutil.copytree(finished, "run"))
    other = tmp_path / "other"
    (run / name).rename(other)
    (other / "old.tmp").mkdir()
    (run / name).symlink_to(other)
    before = sorted(path.name for path in other.iterdir())
    nmt("train", *toy, "run=run", "trainer.max_steps=70").refused(f"run/{name} is a link")
    assert sorted(path.name for path in other.iterdir()) == before


def test_a_tokenizer_that_is_a_link_is_replaced_and_not_written_through(toy, nmt, finished, tmp_path):
    run = Path(shutil.copytree(finished, "run"))
    (tmp_path / "precious").write_text("precious")
    (run / "tokenizer.model").unlink()
    (run / "tokenizer.model").symlink_to(tmp_path / "precious")
    shutil.rmtree(run / "model")
    assert nmt("train", *toy, "run=run", "checkpoints.every_steps=12").code == 0
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (run / "tokenizer.model").is_symlink()
