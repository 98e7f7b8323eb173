"""Training is a function of configuration, seed and update: not of clocks, stops, devices or earlier ends."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

from nmt.commands import compose
from nmt.data import BatchPlanner, UpdateDataModule, open_corpus
from nmt.files import read_description
from nmt.model import Transformer
from nmt.preparation import arrow_blocks, arrow_writer
from nmt.training import list_checkpoints, read_metrics

SHORT = (
    "trainer.max_steps=6",
    "validation.every_steps=100",
    "validation.bleu_sentences=0",
    "run=run",
)


def assert_same(state, other) -> None:
    torch.testing.assert_close(state, other, rtol=0, atol=0)


def files(folder: Path) -> dict[Path, bytes]:
    """Everything that lies in a folder."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_neither_earlier_ends_nor_saving_by_the_clock_change_a_run(
    toy, nmt, finished, training_state, metrics
):
    run, options = (
        Path("run"),
        [*toy, "checkpoints.every_steps=12", "checkpoints.every_minutes=0.0001", "run=run"],
    )
    for steps in (7, 33, 60):
        assert nmt("train", *options, f"trainer.max_steps={steps}").code == 0
    assert_same(training_state(run), training_state(finished))
    # The last update of a run is always validated.
    assert [row for row in metrics(run) if row["step"] not in {"7", "33"}] == metrics(finished)
    assert [path.name for path in list_checkpoints(run)] == [
        path.name for path in list_checkpoints(finished)
    ]
    assert_same(*(load_file(folder / "model/model.safetensors") for folder in (run, finished)))


FIFTY = ("trainer.max_steps=50", "batching.micro_batches=4", "checkpoints.every_steps=20")


def test_any_processes_give_the_same_weights_and_reports(
    toy, trained, train_on, tmp_path, training_state, metrics
):
    runs = (trained(*toy, *FIFTY), tmp_path / "run")
    for devices, steps in ((4, 21), (1, 24), (2, 50)):
        train_on(devices, *toy, *FIFTY, f"trainer.max_steps={steps}", f"run={runs[1]}")
    assert_same(*(training_state(run) for run in runs))
    rows, others = (metrics(run) for run in runs)
    assert [row for row in others if row["step"] not in {"21", "24"}] == rows


def test_the_accumulated_gradient_is_that_of_the_whole_update_at_once(toy, nmt, training_state):
    options = (*toy, *SHORT, "model.dropout=0", "trainer.max_steps=1")
    assert nmt("train", *options).code == 0
    config = compose("train", list(options))
    corpus = open_corpus(Path(config.prepared))
    split = corpus.split("train")
    update = BatchPlanner(
        split.source_lengths, split.target_lengths, config.batching, config.seed
    ).update(0)
    batch = split.batch(np.concatenate([micro_batch.indices for micro_batch in update]))
    torch.manual_seed(config.seed)
    model = Transformer(config.model, corpus.manifest.vocabulary_size)
    logits = model(batch.source, batch.target_in)
    F.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1
    ).backward()
    # After one update, Adam's first moment is (1 - beta1) times the gradient.
    moments = training_state(Path("run"))["adam"]
    for index, (name, parameter) in enumerate(model.named_parameters()):
        gradient = moments[index]["exp_avg"] / (1 - 0.9)
        assert (gradient - parameter.grad).norm() <= 1e-5 * parameter.grad.norm(), name


def test_time_that_is_up_ends_a_run_after_a_whole_update(toy, nmt, training_state):
    options = [*toy, "validation.bleu_sentences=0", "validation.every_steps=100000", "run=run"]
    outcome = nmt("train", *options, "trainer.max_time=1s", "trainer.max_steps=100000")
    assert outcome.code == 0
    assert "stopped by trainer.max_time" in outcome.err
    assert "of 100,000; the same command resumes from there" in outcome.err
    made = training_state(Path("run"))["step"]
    assert nmt("train", *options, f"trainer.max_steps={made}", "run=straight").code == 0
    assert_same(training_state(Path("run")), training_state(Path("straight")))


def test_a_run_that_is_trained_says_so_and_a_deleted_model_is_averaged_again(toy, nmt, finished):
    run = Path(shutil.copytree(finished, "run"))
    before, expected = files(run), load_file(run / "model" / "model.safetensors")
    command = ("train", *toy, "checkpoints.every_steps=12", "run=run")
    outcome = nmt(*command)
    assert outcome.code == 0
    assert "already trained for 60 updates" in outcome.err
    assert files(run) == before
    shutil.rmtree(run / "model")
    assert nmt(*command).code == 0
    assert_same(load_file(run / "model" / "model.safetensors"), expected)


def test_a_changed_configuration_is_refused_with_the_keys(toy, nmt, finished):
    before = files(finished)
    changes = ("model.dropout=0.3", "checkpoints.every_steps=7", "trainer.precision=bf16-mixed")
    shown = (
        "model.dropout: 0.2 -> 0.3",
        "checkpoints.every_steps: 12 -> 7",
        "precision: 32-true -> bf16-mixed",
    )
    nmt("train", *toy, f"run={finished}", *changes).refused(str(finished), *shown, "name=")
    assert files(finished) == before


def test_training_pairs_that_have_changed_are_refused(toy, nmt):
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


def test_a_corpus_prepared_anew_does_not_fit_the_old_checkpoints(other_text, nmt):
    assert nmt("preprocess", *other_text).code == 0
    assert nmt("train", *other_text, *SHORT).code == 0
    for file in Path().glob("train.*"):
        file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
    assert nmt("preprocess", *other_text, "overwrite=true").code == 0
    outcome = nmt("train", *other_text, *SHORT, "trainer.max_steps=9")
    outcome.refused("step=00000006.ckpt", "trained with a different")


def test_updates_after_the_last_report_are_counted_and_reported(toy, nmt):
    """Training ends between two reports, and by the third validation, the second that is no better."""
    options = (
        *toy,
        "run=run",
        "optim.factor=1e-12",
        "trainer.log_every_n_steps=50",
        "validation.bleu_sentences=0",
    )
    early = ("validation.every_steps=3", "validation.patience=2")
    assert nmt("train", *options, *early).code == 0
    updates = UpdateDataModule(
        open_corpus(Path(toy[-1].removeprefix("prepared="))), compose("train", list(options))
    )
    tokens = [updates.planner.update(update)[0].size.target_tokens for update in range(20)]
    for count in (9, 20):
        assert [row["step"] for row in read_metrics(Path("run")) if row["loss"]] == [str(count)]
        training = read_description(Path("run/model")).training
        assert (training["updates"], training["tokens"]) == (count, sum(tokens[:count]))
        assert (
            nmt("train", *options, "validation.every_steps=100", "trainer.max_steps=20").code == 0
        )


def test_latest_points_at_the_newest_run_with_a_model(toy, nmt):
    too_fast = ("optim.learning_rate=1000", "optim.factor=1e6", "optim.warmup=1")
    for run, updates, latest in (
        ("one", 1, "one"),
        ("two", 1, "two"),
        ("one", 1, "two"),
        ("one", 2, "one"),
    ):
        assert (
            nmt("train", *toy, *SHORT, f"trainer.max_steps={updates}", f"run=runs/{run}").code == 0
        )
        assert Path("runs/latest").resolve() == Path("runs", latest).resolve()
    assert {path.name for path in Path("runs").iterdir()} == {"one", "two", "latest"}
    assert nmt("train", *toy, *SHORT, "model.dropout=0", "run=runs/begun", *too_fast).code == 2
    assert Path("runs/latest").resolve() == Path("runs/one").resolve()
    err = nmt("train", *toy, *SHORT, "trainer.max_steps=1", "run=runs/deep/er").err
    assert (
        f"the model is in runs/deep/er/model; {Path('runs/latest')} now leads to runs/deep/er\n"
        in err
    )
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
    from nmt.training.run_folder import latest_link

    assert latest_link(Path(run)) == Path(link)


def test_a_run_directory_holds_what_is_promised_and_no_more(finished):
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
def test_a_folder_of_a_run_that_is_a_link_is_not_written_through(
    toy, nmt, finished, tmp_path, name
):
    run = Path(shutil.copytree(finished, "run"))
    (run / name).rename(tmp_path / "other")
    (run / name).symlink_to(tmp_path / "other")
    before = files(tmp_path / "other")
    nmt("train", *toy, "run=run", "trainer.max_steps=70").refused(f"run/{name} is a link")
    assert files(tmp_path / "other") == before


def test_what_is_refused_leaves_no_run_behind(toy, nmt):
    nmt("train", *toy, "run=runs/new", "trainer.devices=3").refused("devices")
    assert not Path("runs/new").exists()
    nmt("train", *toy, "run=runs/new", "trainer.precision=16-mixed").refused(
        "16-mixed", "needs a GPU"
    )
    assert not Path("runs/new").exists()
