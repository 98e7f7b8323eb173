"""Training depends only on configuration, seed and update: not on clocks, stops or devices."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from nmt.commands import compose
from nmt.data import BatchPlanner, UpdateDataModule, open_corpus, sharing
from nmt.files import read_description
from nmt.model import Transformer
from nmt.preparation import arrow_blocks, arrow_writer
from nmt.training import list_checkpoints, read_metrics
from nmt.training.run_folder import latest_link

SHORT = (
    "trainer.max_steps=6",
    "validation.every_steps=100",
    "validation.bleu_sentences=0",
    "run=run",
)


def assert_same(state, other) -> None:
    torch.testing.assert_close(state, other, rtol=0, atol=0)


def files(folder: Path) -> dict[Path, bytes]:
    """The contents of all files in a folder."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def weights(run: Path):
    return load_file(run / "model" / "model.safetensors")


@pytest.mark.slow
def test_stops_and_saving_by_the_clock_do_not_change_a_run(
    toy, nmt, finished, training_state, metrics
):
    run = Path("run")
    options = ["checkpoints.every_steps=12", "checkpoints.every_minutes=0.0001", "run=run"]
    for steps in (7, 33, 60):
        assert nmt("train", *toy, *options, f"trainer.max_steps={steps}").code == 0
    assert_same(training_state(run), training_state(finished))
    # The last update of a run is always validated.
    regular = [row for row in metrics(run) if row["step"] not in {"7", "33"}]
    assert regular == metrics(finished)
    kept = [path.name for path in list_checkpoints(run)]
    assert kept == [path.name for path in list_checkpoints(finished)]
    assert_same(weights(run), weights(finished))


@pytest.mark.slow
def test_runs_with_and_without_a_shared_order_are_equal(
    toy, nmt, monkeypatch, tmp_path, training_state
):
    """A run resumes with the file of its first part, and then without any cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options = [*toy, *SHORT]
    assert nmt("train", *options, "run=in_memory").code == 0
    monkeypatch.setattr(sharing, "SHARED_PAIRS", 1)
    for steps in (2, 4):
        done = nmt("train", *options, f"trainer.max_steps={steps}")
        assert done.code == 0
        assert "notice" not in done.err
    (order,) = (tmp_path / "nmt" / "orders").glob("*.order")
    monkeypatch.setenv("XDG_CACHE_HOME", str(order))
    done = nmt("train", *options)
    assert "notice: each process plans in 0.0 GB of memory: cannot write" in done.err
    assert_same(training_state(Path("in_memory")), training_state(Path("run")))


FIFTY = ("trainer.max_steps=50", "batching.micro_batches=4", "checkpoints.every_steps=20")


def test_any_number_of_processes_gives_the_same_weights_and_reports(
    toy, trained, train_on, tmp_path, training_state, metrics
):
    one = trained(*toy, *FIFTY)
    several = tmp_path / "run"
    for devices, steps in ((4, 21), (1, 24), (2, 50)):
        train_on(devices, *toy, *FIFTY, f"trainer.max_steps={steps}", f"run={several}")
    assert_same(training_state(one), training_state(several))
    regular = [row for row in metrics(several) if row["step"] not in {"21", "24"}]
    assert regular == metrics(one)


def test_the_accumulated_gradient_is_that_of_the_whole_update(toy, nmt, training_state):
    options = [*toy, *SHORT, "model.dropout=0", "trainer.max_steps=1"]
    assert nmt("train", *options).code == 0
    config = compose("train", options)
    corpus = open_corpus(Path(config.prepared))
    split = corpus.split("train")
    planner = BatchPlanner(split.source_lengths, split.target_lengths, config.batching, config.seed)
    rows = np.concatenate([micro_batch.indices for micro_batch in planner.update(0)])
    batch = split.batch(rows)
    torch.manual_seed(config.seed)
    model = Transformer(config.model, corpus.manifest.vocabulary_size)
    logits = model(batch.source, batch.target_in).flatten(0, 1)
    targets = batch.target_out.flatten()
    F.cross_entropy(logits, targets, ignore_index=0, label_smoothing=0.1).backward()
    # After one update, Adam's first moment is (1 - beta1) times the gradient.
    moments = training_state(Path("run"))["adam"]
    for index, (name, parameter) in enumerate(model.named_parameters()):
        gradient = moments[index]["exp_avg"] / (1 - 0.9)
        assert (gradient - parameter.grad).norm() <= 1e-5 * parameter.grad.norm(), name


@pytest.mark.slow
def test_max_time_ends_a_run_after_a_whole_update(toy, nmt, training_state):
    options = [*toy, "validation.bleu_sentences=0", "validation.every_steps=100000", "run=run"]
    outcome = nmt("train", *options, "trainer.max_time=1s", "trainer.max_steps=100000")
    assert outcome.code == 0
    assert "stopped by trainer.max_time" in outcome.err
    assert "of 100,000; the same command resumes from there" in outcome.err
    made = training_state(Path("run"))["step"]
    assert nmt("train", *options, f"trainer.max_steps={made}", "run=straight").code == 0
    assert_same(training_state(Path("run")), training_state(Path("straight")))


def test_a_trained_run_is_left_as_it_is(toy, nmt, finished):
    run = Path(shutil.copytree(finished, "run"))
    before = files(run)
    outcome = nmt("train", *toy, "checkpoints.every_steps=12", "run=run")
    assert outcome.code == 0
    assert "already trained for 60 updates" in outcome.err
    assert files(run) == before


def test_a_deleted_model_is_averaged_again(toy, nmt, finished):
    run = Path(shutil.copytree(finished, "run"))
    shutil.rmtree(run / "model")
    assert nmt("train", *toy, "checkpoints.every_steps=12", "run=run").code == 0
    assert_same(weights(run), weights(finished))


def test_a_changed_configuration_is_rejected_with_its_keys(toy, nmt, finished):
    before = files(finished)
    changes = ("model.dropout=0.3", "checkpoints.every_steps=7", "trainer.precision=bf16-mixed")
    shown = (
        "model.dropout: 0.2 -> 0.3",
        "checkpoints.every_steps: 12 -> 7",
        "precision: 32-true -> bf16-mixed",
    )
    nmt("train", *toy, f"run={finished}", *changes).refused(str(finished), *shown, "name=")
    assert files(finished) == before


@pytest.mark.slow
def test_changed_training_pairs_are_rejected(toy, nmt):
    prepared = Path(shutil.copytree(toy[-1].removeprefix("prepared="), "prepared"))
    options = (*toy, *SHORT, "prepared=prepared")
    assert nmt("train", *options).code == 0
    (path,) = (prepared / "train").glob("*.arrow")
    (block,) = arrow_blocks(path)
    with arrow_writer(path, block.schema) as write:
        write(block.take(list(range(len(block)))[::-1]))
    nmt("train", *options, "trainer.max_steps=8").refused(
        "step=00000006.ckpt was trained with a different", "train"
    )


@pytest.mark.slow
def test_a_corpus_prepared_from_other_text_is_rejected(other_text, nmt):
    assert nmt("preprocess", *other_text).code == 0
    assert nmt("train", *other_text, *SHORT).code == 0
    for file in Path().glob("train.*"):
        file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    assert nmt("preprocess", *other_text, "overwrite=true").code == 0
    outcome = nmt("train", *other_text, *SHORT, "trainer.max_steps=9")
    outcome.refused("step=00000006.ckpt", "trained with a different")


@pytest.mark.slow
def test_updates_after_the_last_report_are_counted_and_reported(toy, nmt):
    """Training ends between two reports: after two validations without progress."""
    options = [
        *toy,
        "run=run",
        "optim.factor=1e-12",
        "trainer.log_every_n_steps=50",
        "validation.bleu_sentences=0",
    ]
    corpus = open_corpus(Path(toy[-1].removeprefix("prepared=")))
    planner = UpdateDataModule(corpus, compose("train", options)).planner
    tokens = [planner.update(update)[0].size.target_tokens for update in range(20)]

    def check(updates: int) -> None:
        assert [row["step"] for row in read_metrics(Path("run")) if row["loss"]] == [str(updates)]
        training = read_description(Path("run/model")).training
        assert training["updates"] == updates
        assert training["tokens"] == sum(tokens[:updates])

    early = ("validation.every_steps=3", "validation.patience=2")
    assert nmt("train", *options, *early).code == 0
    check(updates=9)
    longer = ("validation.every_steps=100", "trainer.max_steps=20")
    assert nmt("train", *options, *longer).code == 0
    check(updates=20)


@pytest.mark.slow
def test_latest_points_at_the_newest_run_with_a_model(toy, nmt):
    def train(run: str, *words: str):
        return nmt("train", *toy, *SHORT, f"run=runs/{run}", *words)

    for run, updates, latest in (
        ("one", 1, "one"),
        ("two", 1, "two"),
        ("one", 1, "two"),  # already trained
        ("one", 2, "one"),
    ):
        assert train(run, f"trainer.max_steps={updates}").code == 0
        assert Path("runs/latest").resolve() == Path("runs", latest).resolve()
    assert {path.name for path in Path("runs").iterdir()} == {"one", "two", "latest"}

    too_fast = ("optim.learning_rate=1000", "optim.factor=1e6", "optim.warmup=1")
    assert train("begun", "model.dropout=0", *too_fast).code == 2
    assert Path("runs/latest").resolve() == Path("runs/one").resolve()

    errors = train("deep/er", "trainer.max_steps=1").err
    moved = "the model is in runs/deep/er/model; runs/latest now leads to runs/deep/er\n"
    assert moved in errors
    assert nmt("average", "runs/one").code == 0
    assert Path("runs/latest").readlink() == Path("deep/er")
    shutil.move("runs", "moved")
    assert Path("moved/latest/model/config.json").is_file()


@pytest.mark.parametrize(
    ("run", "link"),
    [
        ("runs/a", "runs/latest"),
        ("runs/a/b/c", "runs/latest"),
        ("/home/me/runs/a/b", "/home/me/runs/latest"),
        ("elsewhere/a", "elsewhere/latest"),
        ("a", "latest"),
    ],
)
def test_the_link_to_the_newest_run_is_in_the_folder_of_the_runs(run, link):
    assert latest_link(Path(run)) == Path(link)


def test_a_run_folder_contains_only_the_documented_files(finished):
    names = {
        "config.yaml",
        "metrics.csv",
        "tensorboard",
        "checkpoints",
        "model",
        "tokenizer.model",
        "environment.json",
    }
    assert {path.name for path in finished.iterdir()} == {*names, ".lock"}


@pytest.mark.parametrize("name", ["checkpoints", "model", "tensorboard"])
def test_training_does_not_write_through_links(toy, nmt, finished, tmp_path, name):
    run = Path(shutil.copytree(finished, "run"))
    (run / name).rename(tmp_path / "other")
    (run / name).symlink_to(tmp_path / "other")
    before = files(tmp_path / "other")
    nmt("train", *toy, "run=run", "trainer.max_steps=70").refused(f"run/{name} is a link")
    assert files(tmp_path / "other") == before


def test_a_rejected_configuration_leaves_no_run_behind(toy, nmt):
    nmt("train", *toy, "run=runs/new", "trainer.devices=3").refused("devices")
    assert not Path("runs/new").exists()
    nmt("train", *toy, "run=runs/new", "trainer.precision=16-mixed").refused(
        "16-mixed", "needs a GPU"
    )
    assert not Path("runs/new").exists()
