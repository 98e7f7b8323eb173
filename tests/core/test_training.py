"""Training is a function of configuration, seed and update; what goes wrong is told in one line."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import yaml
from preloaded import python
from safetensors.torch import load_file

from nmt.commands import compose
from nmt.data import UpdateDataModule, arrow_blocks, arrow_writer, open_corpus
from nmt.evaluation import scores
from nmt.files import read_description
from nmt.training import read_metrics
from nmt.training.trials import BeforeTraining

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


def test_another_seed_gives_other_weights(toy, nmt, training_state):
    for seed in (1, 2):
        assert nmt("train", *toy, *SHORT, f"seed={seed}", f"run=run{seed}").code == 0
    weights = [training_state(Path(run))["weights"]["model.output.weight"] for run in ("run1", "run2")]
    assert not torch.equal(*weights)


# At the toy's own learning rate, 0.05, differences of rounding have grown to 1e-3 by then.
FIFTY = ("trainer.max_steps=50", "optim.factor=0.1", "batching.micro_batches=4")


@pytest.fixture(scope="module")
def one_process(toy, tmp_path_factory) -> Path:
    """50 updates of one process, which accumulates each over its four micro_batches."""
    from rich.console import Console

    from nmt.training import train

    run = tmp_path_factory.mktemp("one") / "run"
    train(compose("train", [*toy, *FIFTY, f"run={run}"]), Console(quiet=True))
    return run


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
        ("optim.warmup=10", "optim.warmup: 20 -> 10"),
        ("batching.tokens_per_update=480", "batching.tokens_per_update: 240 -> 480"),
        ("trainer.gradient_clip_val=1", "trainer.gradient_clip_val: None -> 1"),
        ("trainer.precision=bf16-mixed", "trainer.precision: 32-true -> bf16-mixed"),
    ],
)
def test_a_changed_configuration_is_refused_with_the_key(toy, nmt, finished, change, shown):
    before = files(finished)
    nmt("train", *toy, f"run={finished}", change).refused(str(finished), shown, "name=")
    assert files(finished) == before


def test_validation_splits_words_by_its_tokenizer(toy, nmt, monkeypatch):
    options = (*toy, "trainer.max_steps=2", "run=run")
    assert nmt("train", *options, "validation.tokenize=char").code == 0
    assert "tok:char" in Path("run/model/README.md").read_text()
    report = nmt("report", "run", "output=page.html", "decode=greedy")
    assert report.code == 0, report.err
    assert "tok:char" in Path("page.html").read_text()
    monkeypatch.setattr(scores, "command_for", lambda tokenize: "pip install it")
    refused = nmt("train", *toy, "trainer.max_steps=2", "run=other", "validation.tokenize=ja-mecab")
    refused.refused("tokenize=ja-mecab: not installed; run `pip install it`")
    assert not Path("other").exists()


def test_a_run_ends_with_its_own_tokenizer(toy, nmt, monkeypatch):
    prepared = Path(shutil.copytree(toy[-1].removeprefix("prepared="), "prepared"))
    tokenizer = (prepared / "tokenizer.model").read_bytes()
    monkeypatch.setattr(BeforeTraining, "on_train_start", lambda *_: (prepared / "tokenizer.model").unlink())
    assert nmt("train", *toy, *SHORT, "validation.bleu_sentences=2", "prepared=prepared", "run=run").code == 0
    assert Path("run/model/tokenizer.model").read_bytes() == tokenizer


@pytest.mark.parametrize("name", ["gl.tsv", "train"])
def test_a_file_that_decides_updates_and_has_changed_is_refused(toy, nmt, name):
    prepared = Path(shutil.copytree(toy[-1].removeprefix("prepared="), "prepared"))
    Path("gl.tsv").write_text("ka\tlo\n")
    noise = ("data.noise.terms=0.5", "data.noise.glossary=gl.tsv")
    options = (*toy, *SHORT, *noise, "prepared=prepared", "run=run")
    assert nmt("train", *options).code == 0
    if name == "train":  # pairs in another order
        (path,) = (prepared / "train").glob("*.arrow")
        (block,) = arrow_blocks(path)
        with arrow_writer(path, block.schema) as write:
            write(block.take(list(range(len(block)))[::-1]))
    else:
        Path("gl.tsv").write_text("ka\tmi\n")
    nmt("train", *options, "trainer.max_steps=8").refused("step=00000006.ckpt was trained with another", name)


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


def test_a_corpus_that_is_not_prepared_is_refused(other_text, nmt):
    nmt("train", *other_text).refused("data/toy", "no prepared corpus", "nmt preprocess")


def test_a_corpus_prepared_with_another_tokenizer_is_refused(toy, nmt):
    nmt("train", *toy, "tokenizer.vocabulary_size=310").refused("tokenizer.vocabulary_size: 300 -> 310")
    assert not Path("runs").exists()


def test_devices_that_do_not_divide_the_micro_batches_are_refused(toy, nmt):
    outcome = nmt("train", *toy, "trainer.devices=3", "trainer.strategy=ddp")
    outcome.refused("3 devices", "batching.micro_batches=2", "use 1, 2 devices")


def test_a_sentence_longer_than_a_micro_batch_is_refused(toy, nmt):
    nmt("train", *toy, "batching.tokens_per_update=16").refused(
        "batching.tokens_per_update=16", "raise batching.tokens_per_update"
    )


@pytest.mark.parametrize("flag", ["accelerator=abacus", "precision=7", "strategy=chess", "devices=0"])
def test_a_wrong_trainer_flag_is_refused(toy, nmt, flag):
    nmt("train", *toy, f"trainer.{flag}").refused("trainer", flag.split("=")[1])


def test_the_last_checkpoints_are_kept_over_restarts_too(toy, nmt):
    options = (*toy, *SHORT, "checkpoints.every_steps=2", "checkpoints.keep=3", "run=run")
    for steps, kept in ((4, [2, 4]), (9, [6, 8, 9]), (11, [8, 10, 11])):
        assert nmt("train", *options, f"trainer.max_steps={steps}").code == 0
        assert sorted(path.name for path in Path("run/checkpoints").iterdir()) == [f"step={n:08d}.ckpt" for n in kept]


def test_a_checkpoint_needs_no_room_in_the_folder_for_temporary_files(toy, nmt, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("tempfile.tempdir", "/dev/null/nowhere")
        assert nmt("train", *toy, *SHORT, "run=run").code == 0


@pytest.mark.parametrize(
    "change", [lambda lines: [line.replace("ka", "ba") for line in lines], reversed], ids=["other words", "other order"]
)
def test_a_corpus_prepared_anew_does_not_fit_the_old_checkpoints(other_text, nmt, change):
    assert nmt("preprocess", *other_text).code == 0
    assert nmt("train", *other_text, *SHORT, "run=run").code == 0
    before = files(Path("run"))
    for file in Path().glob("train.*"):
        file.write_text("".join(change(file.read_text().splitlines(keepends=True))))
    assert nmt("preprocess", *other_text, "overwrite=true").code == 0
    outcome = nmt("train", *other_text, *SHORT, "trainer.max_steps=9", "run=run")
    outcome.refused("step=00000006.ckpt", "trained with another")
    assert files(Path("run")) == before


def test_a_corpus_with_a_foreign_tokenizer_is_refused(toy, nmt):
    prepared = Path(shutil.copytree(toy[-1].removeprefix("prepared="), "prepared"))
    with (prepared / "tokenizer.model").open("ab") as file:
        file.write(b"\0")
    nmt("train", *toy[:-1], "prepared=prepared").refused(
        "prepared/tokenizer.model", "not the tokenizer", "overwrite=true"
    )


@pytest.mark.parametrize("run", ["/dev/null/run", "file", "file/run"])
def test_a_run_directory_that_cannot_be_written_is_refused(toy, nmt, run):
    Path("file").touch()
    nmt("train", *toy, *SHORT, f"run={run}").refused(run, "run=")


def test_a_folder_in_the_way_of_the_link_to_the_latest_run_is_told(toy, nmt):
    Path("runs/latest").mkdir(parents=True)
    nmt("train", *toy, *SHORT).refused("latest")
    assert {path.name for path in Path("runs").iterdir()} <= {"latest", "toy-tiny"}


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
    assert {path.name for path in finished.iterdir()} == {*names, "validation.jsonl", ".lock"}


def test_the_configuration_in_a_run_trains_it_again(toy, nmt, finished):

    tree = yaml.safe_load((finished / "config.yaml").read_text())
    config = compose("train", [*toy, f"run={finished}", "checkpoints.every_steps=12"])
    assert tree["model"] == vars(config.model)
    assert tree["trainer"] == vars(config.trainer)


def test_a_long_path_is_told_in_one_piece(toy, nmt):
    run = "/".join(["a_folder_as_they_are_on_clusters"] * 4)
    outcome = nmt("train", *toy, *SHORT, f"run={run}")
    assert f"{run}/model\n" in outcome.err


def test_training_ends_saved_when_its_time_is_over(toy, nmt):
    options = ("trainer.max_steps=1000000", "trainer.max_time='00:00:00:01'", "validation.every_steps=1000000")
    outcome = nmt("train", *toy, *options, "run=run")
    assert outcome.code == 0, outcome.err
    assert list(Path("run/checkpoints").iterdir())
