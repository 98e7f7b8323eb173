"""Training is a function of configuration, seed and update; what goes wrong is told in one line."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from preloaded import python
from safetensors.torch import load_file

from nmt.commands import compose
from nmt.data import UpdateDataModule, open_corpus
from nmt.files import read_description
from nmt.preparation import arrow_blocks, arrow_writer
from nmt.training import read_metrics

SHORT = ("trainer.max_steps=6", "validation.every_steps=100", "validation.bleu_sentences=0")


def assert_same(state, other) -> None:
    torch.testing.assert_close(state, other, rtol=0, atol=0)


def files(folder: Path) -> dict[Path, bytes]:
    """Everything that lies in a folder."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_extended_twice_equals_one_never_stopped(toy, nmt, finished, training_state, metrics, card_tokens):
    for steps in (7, 33, 60):
        assert nmt("train", *toy, f"trainer.max_steps={steps}", "run=run").code == 0
    assert_same(training_state(Path("run")), training_state(finished))
    assert card_tokens(Path("run")) == card_tokens(finished)
    # The last update of a run is always validated.
    assert [row for row in metrics(Path("run")) if row["step"] not in {"7", "33"}] == metrics(finished)


def test_other_devices_logs_and_checkpoints_do_not_change_the_weights(toy, nmt, finished, training_state):
    options = ("checkpoints.every_steps=7", "trainer.log_every_n_steps=1", "validation.every_steps=9", "run=run")
    assert nmt("train", *toy, *options).code == 0
    assert_same(training_state(Path("run")), training_state(finished))


# At the toy's own learning rate, 0.05, differences of rounding have grown to 1e-3 by then.
FIFTY = ("trainer.max_steps=50", "optim.factor=0.1", "batching.micro_batches=4")


@pytest.fixture(scope="module")
def one_process(toy, trained) -> Path:
    """50 updates of one process, which accumulates each over its four micro_batches."""
    return trained(*toy, *FIFTY)


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_processes_together_and_one_that_accumulates_give_the_same_weights(
    toy, one_process, tmp_path, training_state, metrics, card_tokens, processes
):
    runs = (one_process, tmp_path / "run")
    flags = [*toy, *FIFTY, f"trainer.devices={processes}", "trainer.strategy=ddp", f"run={runs[1]}"]
    ended = subprocess.run([python(), "-m", "nmt", "train", *flags], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    for part in ("weights", "adam"):
        one, other = (flat(training_state(run)[part]) for run in runs)
        for name, tensor in one.items():
            assert (tensor - other[name]).norm() <= 1e-5 * tensor.norm(), name
    for row, other in zip(*(metrics(run) for run in runs), strict=True):
        assert {k: float(v or 0) for k, v in row.items()} == pytest.approx(
            {k: float(v or 0) for k, v in other.items()}, rel=1e-4
        )
    assert card_tokens(one_process) == card_tokens(runs[1])


def flat(tree: dict) -> dict[str, torch.Tensor]:
    return {
        f"{key}.{name}": tensor
        for key, value in tree.items()
        for name, tensor in (value.items() if isinstance(value, dict) else [("", value)])
    }


def test_the_accumulated_gradient_is_that_of_the_whole_update_at_once(toy, nmt, training_state):
    from nmt.data import BatchPlanner
    from nmt.model import Transformer

    options = (*toy, *SHORT, "model.dropout=0", "trainer.max_steps=1", "run=run")
    assert nmt("train", *options).code == 0
    config = compose("train", list(options))
    corpus = open_corpus(Path(config.prepared))
    split = corpus.split("train")
    update = BatchPlanner(split.source_lengths, split.target_lengths, config.batching, config.seed).update(0)
    batch = split.batch(np.concatenate([micro_batch.indices for micro_batch in update]))
    torch.manual_seed(config.seed)
    model = Transformer(config.model, corpus.manifest.vocabulary_size)
    logits = model(batch.source, batch.target_in)
    F.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0, label_smoothing=0.1).backward()
    # After one update, Adam's first moment is (1 - beta1) times the gradient.
    moments = training_state(Path("run"))["adam"]
    for index, (name, parameter) in enumerate(model.named_parameters()):
        gradient = moments[index]["exp_avg"] / (1 - 0.9)
        assert (gradient - parameter.grad).norm() <= 1e-5 * parameter.grad.norm(), name


def test_a_run_that_is_trained_says_so_and_changes_nothing(toy, nmt, finished):
    before = files(finished)
    outcome = nmt("train", *toy, "checkpoints.every_steps=12", f"run={finished}")
    assert outcome.code == 0
    assert "already trained for 60 updates" in outcome.err
    assert files(finished) == before


def test_a_model_that_was_deleted_is_averaged_again(toy, nmt, finished):
    run = Path(shutil.copytree(finished, "run"))
    expected = load_file(run / "model" / "model.safetensors")
    shutil.rmtree(run / "model")
    assert nmt("train", *toy, "checkpoints.every_steps=12", "run=run").code == 0
    assert_same(load_file(run / "model" / "model.safetensors"), expected)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("model.dropout=0.3", "model.dropout: 0.2 -> 0.3"),
        ("seed=2", "seed: 1 -> 2"),
        ("checkpoints.every_steps=7", "checkpoints.every_steps: 12 -> 7"),
        ("trainer.precision=bf16-mixed", "trainer.precision: 32-true -> bf16-mixed"),
    ],
)
def test_a_changed_configuration_is_refused_with_the_key(toy, nmt, finished, change, shown):
    before = files(finished)
    nmt("train", *toy, f"run={finished}", change).refused(str(finished), shown, "name=")
    assert files(finished) == before


def test_training_pairs_that_have_changed_are_refused(toy, nmt):
    prepared = Path(shutil.copytree(toy[-1].removeprefix("prepared="), "prepared"))
    options = (*toy, *SHORT, "prepared=prepared", "run=run")
    assert nmt("train", *options).code == 0
    (path,) = (prepared / "train").glob("*.arrow")
    (block,) = arrow_blocks(path)
    with arrow_writer(path, block.schema) as write:
        write(block.take(list(range(len(block)))[::-1]))
    nmt("train", *options, "trainer.max_steps=8").refused("step=00000006.ckpt was trained with another", "train")


def test_updates_after_the_last_report_are_counted_and_reported(toy, nmt):
    """Training ends between two reports, and by the fourth validation that is no better."""
    options = (*toy, "run=run", "optim.factor=1e-12", "trainer.log_every_n_steps=50", "validation.bleu_sentences=0")
    early = ("validation.every_steps=3", "validation.patience=2")
    assert nmt("train", *options, *early).code == 0
    assert [row["step"] for row in read_metrics(Path("run")) if row["loss"]] == ["9"]
    training = read_description(Path("run/model")).training
    assert training["updates"] == 9
    size = UpdateDataModule(open_corpus(Path(toy[-1].removeprefix("prepared="))), compose("train", list(options)))
    assert training["tokens"] == sum(size.planner.update(update)[0].size.target_tokens for update in range(9))
    assert nmt("train", *options, "validation.every_steps=100", "trainer.max_steps=50").code == 0
    assert [row["step"] for row in read_metrics(Path("run")) if row["loss"]] == ["50"]
    planned = (size.planner.update(update)[0].size.target_tokens for update in range(50))
    assert read_description(Path("run/model")).training["tokens"] == sum(planned)


@pytest.mark.parametrize(
    "change", [lambda lines: [line.replace("ka", "ba") for line in lines], reversed], ids=["other words", "other order"]
)
def test_a_corpus_prepared_anew_does_not_fit_the_old_checkpoints(other_text, nmt, change):
    assert nmt("preprocess", *other_text).code == 0
    assert nmt("train", *other_text, *SHORT, "run=run").code == 0
    for file in Path().glob("train.*"):
        file.write_text("".join(change(file.read_text().splitlines(keepends=True))))
    assert nmt("preprocess", *other_text, "overwrite=true").code == 0
    outcome = nmt("train", *other_text, *SHORT, "trainer.max_steps=9", "run=run")
    outcome.refused("step=00000006.ckpt", "trained with another")


def test_latest_points_at_the_newest_run(toy, nmt):
    for run, updates in (("runs/one", 1), ("runs/two", 1), ("runs/one", 2)):
        assert nmt("train", *toy, *SHORT, f"trainer.max_steps={updates}", f"run={run}").code == 0
        assert Path("runs/latest").resolve() == Path(run).resolve()
    assert {path.name for path in Path("runs").iterdir()} == {"one", "two", "latest"}
    assert nmt("train", *toy, *SHORT, "model.dropout=0", "run=runs/begun", "optim.factor=1e6").code == 2
    assert Path("runs/begun/config.yaml").exists()
    assert Path("runs/latest").resolve() == Path("runs/one").resolve()
    shutil.move("runs", "moved")
    assert Path("moved/latest/model/config.json").is_file()


def test_a_run_directory_holds_what_is_promised_and_no_more(finished):
    names = {"config.yaml", "metrics.csv", "tensorboard", "checkpoints", "model", "tokenizer.model", "environment.json"}
    assert {path.name for path in finished.iterdir()} == {*names, ".lock"}
