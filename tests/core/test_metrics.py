"""What a run records about its training, and what it shows on a terminal."""

import io
import json
import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from rich.console import Console

from nmt.commands import compose
from nmt.config import BatchingConfig, ModelConfig
from nmt.data import BatchPlanner, open_corpus
from nmt.model import Transformer
from nmt.training import list_checkpoints, load_checkpoint, read_metrics
from nmt.training.cost import TrainingCost
from nmt.training.logbook import COLUMNS, Logbook
from nmt.training.module import TranslationModule
from nmt.training.progress import ProgressLine
from nmt.training.validation import Validation


@pytest.fixture(scope="module")
def corpus(toy):
    return open_corpus(Path(toy[-1].removeprefix("prepared=")))


@pytest.fixture(scope="module")
def planner(corpus) -> BatchPlanner:
    split = corpus.split("train")
    return BatchPlanner(split.source_lengths, split.target_lengths, BatchingConfig(240, 2), seed=1)


@pytest.fixture(scope="module")
def rows(finished) -> list[dict[str, str]]:
    return read_metrics(finished)


def test_metrics_csv_reports_training_and_validation_at_their_intervals(rows):
    assert list(rows[0]) == list(COLUMNS)
    assert [int(row["step"]) for row in rows if row["loss"]] == list(range(5, 61, 5))
    assert [int(row["step"]) for row in rows if row["valid_loss"]] == [20, 40, 60]


def test_the_optimizer_uses_the_learning_rate_of_equation_3(finished):
    for path in list_checkpoints(finished):
        content = torch.load(path, weights_only=True)
        step = content["global_step"]
        expected = 16**-0.5 * min(step**-0.5, step * 20**-1.5)
        (group,) = content["optimizer_states"][0]["param_groups"]
        assert group["lr"] == pytest.approx(expected, rel=1e-12)


def sums(model: Transformer, batch) -> list[float]:
    """The smoothed loss, the unsmoothed one, and the number of target tokens."""
    logits = model(batch.source, batch.target_in).flatten(0, 1)
    targets = batch.target_out.flatten()
    losses = []
    for smoothing in (0.1, 0.0):
        loss = F.cross_entropy(
            logits, targets, label_smoothing=smoothing, ignore_index=0, reduction="sum"
        )
        losses.append(loss.item())
    return [*losses, int((targets != 0).sum())]


@torch.no_grad()
def test_validation_reports_the_loss_of_the_checkpoint_sentence_by_sentence(finished, corpus, rows):
    content = torch.load(list_checkpoints(finished)[-1], weights_only=True)
    config = ModelConfig(**content["nmt"]["config"]["model"])
    model = Transformer(config, content["nmt"]["vocabulary_size"]).eval()
    weights = content["state_dict"].items()
    model.load_state_dict({name.removeprefix("model."): tensor for name, tensor in weights})
    valid = corpus.split("valid")
    parts = [sums(model, valid.batch(np.array([index]))) for index in range(len(valid))]
    loss, nll, tokens = np.sum(parts, axis=0)
    assert float(rows[-1]["valid_loss"]) == pytest.approx(loss / tokens, rel=1e-4)
    assert float(rows[-1]["valid_perplexity"]) == pytest.approx(np.exp(nll / tokens), rel=1e-4)


SHORT = (
    "model.dropout=0",
    "trainer.max_steps=10",
    "validation.every_steps=100",
)


def reports(run: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv about training, without those about validation."""
    return [row for row in read_metrics(run) if row["loss"]]


@pytest.mark.slow
@torch.no_grad()
def test_the_first_update_reports_the_loss_of_the_untrained_model(toy, trained, corpus, planner):
    first = reports(trained(*toy, *SHORT, "trainer.log_every_n_steps=1"))[0]
    config = compose("train", [*toy, *SHORT])
    torch.manual_seed(config.seed)
    model = Transformer(config.model, corpus.manifest.vocabulary_size)
    indices = np.concatenate([micro_batch.indices for micro_batch in planner.update(0)])
    loss, nll, count = sums(model, corpus.split("train").batch(indices))
    assert float(first["loss"]) == pytest.approx(loss / count, rel=1e-5)
    assert float(first["perplexity"]) == pytest.approx(np.exp(nll / count), rel=1e-4)


@pytest.mark.slow
def test_a_report_averages_over_the_tokens_of_its_updates(toy, trained, planner):
    single = reports(trained(*toy, *SHORT, "trainer.log_every_n_steps=1"))
    grouped = reports(trained(*toy, *SHORT, "trainer.log_every_n_steps=5"))
    tokens = [planner.update(number)[0].size.target_tokens for number in range(10)]
    losses = np.array([float(row["loss"]) for row in single])
    likelihoods = np.log([float(row["perplexity"]) for row in single])
    for row, start in zip(grouped, (0, 5), strict=True):
        part = slice(start, start + 5)
        loss = np.average(losses[part], weights=tokens[part])
        nll = np.average(likelihoods[part], weights=tokens[part])
        assert float(row["loss"]) == pytest.approx(loss, rel=1e-5)
        assert float(row["perplexity"]) == pytest.approx(np.exp(nll), rel=1e-4)


@pytest.fixture
def training_record(finished) -> dict[str, Any]:
    """What the model directory says about its training."""
    return json.loads((finished / "model" / "config.json").read_text())["training"]


def test_the_model_records_the_state_of_the_last_checkpoint(finished, rows, training_record):
    state = load_checkpoint(list_checkpoints(finished)[-1])["nmt"]
    for key in ("tokens", "seconds", "devices", "versions", "corpus", "config"):
        assert training_record[key] == state[key], key
    assert training_record["updates"] == training_record["averaged"][-1] == 60
    seconds = float(rows[-1]["seconds"] or rows[-2]["seconds"])
    assert training_record["seconds"] == pytest.approx(seconds, abs=1)
    assert {"nmt", "torch", "lightning"} <= training_record["versions"].keys()


def test_the_model_records_what_the_corpus_contains(corpus, training_record):
    manifest = corpus.manifest
    assert training_record["lengths"] == manifest.counts["train"]["lengths"]
    assert training_record["characters"] == manifest.characters


def test_the_model_card_shows_the_validation_score(finished, training_record):
    score = training_record["score"]
    quality = f"validation BLEU {score['value']:.2f} on 4 sentences, `{score['signature']}`"
    assert quality.replace("|", "\\|") in (finished / "model" / "README.md").read_text()


def test_a_logbook_drops_rows_after_the_update_from_which_the_run_resumes(tmp_path):
    for step, loss in ((5, 0.5), (10, 1.0), (15, 1.5)):
        Logbook(tmp_path, 100).log_metrics({"loss": loss}, step)
    Logbook(tmp_path, 12).log_metrics({"loss": 9.0}, 15)
    rows = [(row["step"], row["loss"]) for row in read_metrics(tmp_path)]
    assert rows == [("5", "0.5"), ("10", "1"), ("15", "9")]


def test_a_logbook_drops_a_report_whose_updates_the_next_one_repeats(tmp_path):
    for step in (5, 10, 15):
        Logbook(tmp_path, 100).log_metrics({"loss": 1.0}, step)
    Logbook(tmp_path, 15, whole=False)
    assert [row["step"] for row in read_metrics(tmp_path)] == ["5", "10"]


def test_tensorboard_shows_the_numbers_of_metrics_csv(finished, rows):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished / "tensorboard"))
    events.Reload()
    for column in ("loss", "valid_perplexity"):
        in_file = [(int(row["step"]), float(row[column])) for row in rows if row[column]]
        shown = [(event.step, event.value) for event in events.Scalars(column)]
        assert shown == [(step, pytest.approx(value, rel=1e-4)) for step, value in in_file]


@pytest.mark.slow
def test_time_and_cost_add_up_over_restarts_without_validation(toy, nmt, monkeypatch, planner):
    step = TranslationModule.on_before_optimizer_step
    domain_sums = Validation.domain_sums

    def slow_step(*arguments: Any) -> None:
        time.sleep(0.1)
        step(*arguments)

    def slow_validation(*arguments: Any) -> list[float]:
        time.sleep(1.5)
        return domain_sums(*arguments)

    monkeypatch.setattr(TranslationModule, "on_before_optimizer_step", slow_step)
    monkeypatch.setattr(Validation, "domain_sums", slow_validation)
    options = (
        "trainer.log_every_n_steps=10",
        "validation.every_steps=5",
        "validation.bleu_sentences=0",
        "run=run",
    )
    for updates in (9, 10):
        assert nmt("train", *toy, *options, f"trainer.max_steps={updates}").code == 0
    (row,) = reports(Path("run"))
    seconds = float(row["seconds"])
    tokens = sum(planner.update(number)[0].size.target_tokens for number in range(10))
    assert 1 < seconds < 2.5
    assert float(row["tokens_per_second"]) == pytest.approx(tokens / seconds, rel=0.05)
    peak = json.loads(Path("run/environment.json").read_text())["peak_flops_per_second"]
    # Each start measures the peak.
    assert float(row["cost"]) == pytest.approx(seconds * peak, rel=0.5)


@pytest.mark.slow
def test_the_peak_is_measured_again_if_training_is_faster(toy, trained, monkeypatch):
    measured = iter([1.0])  # while another program uses the device
    monkeypatch.setattr(
        "nmt.training.cost.peak_flops_per_second",
        cache(lambda device, dtype: next(measured, 1e15)),
    )
    rows = read_metrics(trained(*toy, "trainer.max_steps=10", "validation.every_steps=100"))
    assert all(float(row["mfu"]) <= 1e-3 for row in rows if row["mfu"])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_a_terminal_shows_the_last_report_cut_to_its_width(monkeypatch, clock):
    shown: list[str] = []
    console = Console(file=io.StringIO(), width=40, force_terminal=True)
    line = ProgressLine(console, max_seconds=None)
    monkeypatch.setattr(line.status, "start", lambda: None)
    monkeypatch.setattr(line.status, "update", shown.append)
    line.start(0, 100)
    clock[0] += 10
    line.show(10, "loss 3.142  ppl 12.35  12,346 tokens/s")
    line.show(20)
    assert shown == [
        "update 10 of 100, 0:01:30 left: loss ",
        "update 20 of 100, 0:00:40 left: loss ",
    ]


def test_without_a_terminal_some_reports_and_the_last_are_printed(clock):
    file = io.StringIO()
    line = ProgressLine(Console(file=file, width=80, soft_wrap=True), max_seconds=None)
    line.start(0, 100)
    for step in range(1, 101):
        clock[0] += 1.0
        line.show(step, "loss 3" if step % 3 == 0 or step == 100 else "")
    lines = file.getvalue().splitlines()
    assert [int(text.split()[1]) for text in lines] == [3, 15, 27, 39, 51, 63, 75, 87, 99, 100]
    assert lines[1] == "update 15 of 100, 0:01:25 left: loss 3"


@pytest.mark.parametrize(
    ("max_seconds", "left"), [(None, "2:46:40"), (900, "0:11:40"), (100, "0:00:00")]
)
def test_time_left_is_limited_by_the_time_of_the_run(clock, max_seconds, left):
    line = ProgressLine(Console(file=io.StringIO(), width=80), max_seconds)
    line.start(500, 5600)
    clock[0] += 200
    line.show(600, "loss")
    assert line.console.file.getvalue() == f"update 600 of 5,600, {left} left: loss\n"


@pytest.mark.slow
def test_lines_depend_on_the_clock_but_rows_do_not(toy, trained, nmt, metrics, monkeypatch):
    options = [*toy, "trainer.max_steps=12", "trainer.log_every_n_steps=6"]
    reported = r"update (\d+) of 12, .* loss \d"
    output = nmt("train", *options, "run=run").err
    # The first report comes at once, the last in any case.
    assert re.findall(reported, output) == ["1", "12"], output
    monkeypatch.setattr("nmt.training.progress.REPORT_SECONDS", 0)
    output = nmt("train", *options, "run=often").err
    assert re.findall(reported, output) == [str(step) for step in range(1, 13)]
    assert metrics(Path("run")) == metrics(Path("often"))


@pytest.mark.slow
def test_a_resumed_run_keeps_the_greater_peak_of_the_same_devices(toy, trained, nmt, monkeypatch):
    """Other programs that keep the devices busy at a start only lower the measured peak."""
    peaks = [3e15, 2e15, 4e15, 1e15]
    monkeypatch.setattr(
        "nmt.training.cost.peak_flops_per_second", lambda device, dtype: peaks.pop(0)
    )
    words = [*toy, "checkpoints.every_steps=2", "run=run"]
    file = Path("run/environment.json")
    for steps, expected in ((2, 3e15), (4, 3e15), (6, 4e15)):
        assert nmt("train", *words, f"trainer.max_steps={steps}").code == 0
        assert json.loads(file.read_text())["peak_flops_per_second"] == expected
    file.write_text(json.dumps(json.loads(file.read_text()) | {"processor": "another"}))
    assert nmt("train", *words, "trainer.max_steps=8").code == 0
    assert json.loads(file.read_text())["peak_flops_per_second"] == 1e15


@pytest.mark.parametrize(("measured", "peak"), [(1e9, 2e9), (5e9, 5e9)])
def test_a_greater_peak_corrects_the_cost_of_this_process(measured, peak):
    training = TrainingCost()
    training.peak = 2e9
    training.cost = 70.0 + 10 * 2e9  # 70 before this process
    training.process_seconds = 10.0
    training.raise_peak(measured)
    assert training.peak == peak
    assert training.cost == 70.0 + 10 * peak
