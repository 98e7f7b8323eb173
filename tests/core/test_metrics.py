"""What a run writes about itself, and what a terminal shows of it."""

import io
import json
import re
import time
from functools import cache
from pathlib import Path

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
from nmt.training.metrics import COLUMNS, Logbook, MetricsCallback, ProgressLine
from nmt.training.module import TranslationModule
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


def test_training_is_reported_every_five_updates_and_validation_every_twenty(rows):
    assert list(rows[0]) == list(COLUMNS)
    assert [int(row["step"]) for row in rows if row["loss"]] == list(range(5, 61, 5))
    assert [int(row["step"]) for row in rows if row["valid_loss"]] == [20, 40, 60]


def test_the_optimizer_used_the_learning_rate_that_is_reported(finished):
    for path in list_checkpoints(finished):
        content = torch.load(path, weights_only=True)
        step = content["global_step"]
        expected = 16**-0.5 * min(step**-0.5, step * 20**-1.5)
        assert content["optimizer_states"][0]["param_groups"][0]["lr"] == pytest.approx(
            expected, rel=1e-12
        )


def sums(model: Transformer, batch) -> list[float]:
    """The smoothed loss, the unsmoothed one, and the number of target tokens."""
    flat, labels = model(batch.source, batch.target_in).flatten(0, 1), batch.target_out.flatten()
    options = {"ignore_index": 0, "reduction": "sum"}
    losses = [
        F.cross_entropy(flat, labels, label_smoothing=smoothing, **options).item()
        for smoothing in (0.1, 0.0)
    ]
    return [*losses, int((labels != 0).sum())]


@torch.no_grad()
def test_validation_loss_and_perplexity_are_those_of_the_checkpoint_sentence_by_sentence(
    finished, corpus, rows
):
    content = torch.load(list_checkpoints(finished)[-1], weights_only=True)
    model = Transformer(
        ModelConfig(**content["nmt"]["config"]["model"]), content["nmt"]["vocabulary_size"]
    ).eval()
    model.load_state_dict({k.removeprefix("model."): v for k, v in content["state_dict"].items()})
    valid = corpus.split("valid")
    parts = [sums(model, valid.batch(np.array([index]))) for index in range(len(valid))]
    loss, nll, tokens = np.sum(parts, axis=0)
    assert float(rows[-1]["valid_loss"]) == pytest.approx(loss / tokens, rel=1e-4)
    assert float(rows[-1]["valid_perplexity"]) == pytest.approx(np.exp(nll / tokens), rel=1e-4)


@torch.no_grad()
def test_a_row_is_the_mean_over_tokens_of_its_updates_and_the_first_that_of_the_untrained_model(
    toy, trained, corpus, planner
):
    options = [*toy, "model.dropout=0", "trainer.max_steps=10", "validation.every_steps=100"]
    each, five = (
        [
            row
            for row in read_metrics(trained(*options, f"trainer.log_every_n_steps={every}"))
            if row["loss"]
        ]
        for every in (1, 5)
    )
    config = compose("train", options)
    torch.manual_seed(config.seed)
    model = Transformer(config.model, corpus.manifest.vocabulary_size)
    indices = np.concatenate([micro_batch.indices for micro_batch in planner.update(0)])
    loss, nll, count = sums(model, corpus.split("train").batch(indices))
    assert float(each[0]["loss"]) == pytest.approx(loss / count, rel=1e-5)
    assert float(each[0]["perplexity"]) == pytest.approx(np.exp(nll / count), rel=1e-4)
    tokens = [planner.update(number)[0].size.target_tokens for number in range(10)]
    single = np.array([[float(row["loss"]), np.log(float(row["perplexity"]))] for row in each])
    for row, part in zip(five, (slice(0, 5), slice(5, 10)), strict=True):
        loss, nll = np.average(single[part], axis=0, weights=tokens[part])
        assert float(row["loss"]) == pytest.approx(loss, rel=1e-5)
        assert float(row["perplexity"]) == pytest.approx(np.exp(nll), rel=1e-4)


def test_the_model_directory_tells_of_its_training_what_the_last_checkpoint_does(
    finished, corpus, rows
):
    training = json.loads((finished / "model" / "config.json").read_text())["training"]
    state = load_checkpoint(list_checkpoints(finished)[-1])["nmt"]
    for key in ("tokens", "seconds", "devices", "versions", "corpus", "config"):
        assert training[key] == state[key], key
    assert training["updates"] == training["averaged"][-1] == 60
    assert training["seconds"] == pytest.approx(
        float(rows[-1]["seconds"] or rows[-2]["seconds"]), abs=1
    )
    assert {"nmt", "torch", "lightning"} <= training["versions"].keys()
    manifest = corpus.manifest  # what training held
    assert (training["lengths"], training["characters"]) == (
        manifest.counts["train"]["lengths"],
        manifest.characters,
    )
    score = training["score"]
    quality = f"validation BLEU {score['value']:.2f} on 4 sentences, `{score['signature']}`"
    assert quality.replace("|", "\\|") in (finished / "model" / "README.md").read_text()


def test_a_logbook_drops_rows_after_the_update_it_resumes_from(tmp_path):
    for step, loss in ((5, 0.5), (10, 1.0), (15, 1.5)):
        Logbook(tmp_path, 100).log_metrics({"loss": loss}, step)
    Logbook(tmp_path, 12).log_metrics({"loss": 9.0}, 15)
    assert [(row["step"], row["loss"]) for row in read_metrics(tmp_path)] == [
        ("5", "0.5"),
        ("10", "1"),
        ("15", "9"),
    ]
    Logbook(tmp_path, 15, whole=False)
    assert [row["step"] for row in read_metrics(tmp_path)] == ["5", "10"]


def test_tensorboard_holds_the_same_numbers(finished, rows):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished / "tensorboard"))
    events.Reload()
    for column in ("loss", "valid_perplexity"):
        in_file = [(int(row["step"]), float(row[column])) for row in rows if row[column]]
        shown = [(event.step, event.value) for event in events.Scalars(column)]
        assert shown == [(step, pytest.approx(value, rel=1e-4)) for step, value in in_file]


def test_time_and_cost_are_those_of_updates_over_restarts_without_validation(
    toy, nmt, monkeypatch, planner
):
    step, sums = TranslationModule.on_before_optimizer_step, Validation.domain_sums
    monkeypatch.setattr(
        TranslationModule, "on_before_optimizer_step", lambda *a: time.sleep(0.1) or step(*a)
    )
    monkeypatch.setattr(Validation, "domain_sums", lambda *a: time.sleep(1.5) or sums(*a))
    options = (
        "trainer.log_every_n_steps=10",
        "validation.every_steps=5",
        "validation.bleu_sentences=0",
        "run=run",
    )
    for updates in (9, 10):
        assert nmt("train", *toy, *options, f"trainer.max_steps={updates}").code == 0
    (row,) = [row for row in read_metrics(Path("run")) if row["loss"]]
    seconds, tokens = (
        float(row["seconds"]),
        sum(planner.update(number)[0].size.target_tokens for number in range(10)),
    )
    assert 1 < seconds < 2.5
    assert float(row["tokens_per_second"]) == pytest.approx(tokens / seconds, rel=0.05)
    peak = json.loads(Path("run/environment.json").read_text())["peak_flops_per_second"]
    assert float(row["cost"]) == pytest.approx(
        seconds * peak, rel=0.5
    )  # each start measures the peak


def test_the_peak_is_measured_again_if_training_is_faster(toy, trained, monkeypatch):
    measured = iter([1.0])  # while another program uses the device
    monkeypatch.setattr(
        "nmt.training.metrics.peak_flops_per_second",
        cache(lambda device, dtype: next(measured, 1e15)),
    )
    rows = read_metrics(trained(*toy, "trainer.max_steps=10", "validation.every_steps=100"))
    assert all(float(row["mfu"]) <= 1e-3 for row in rows if row["mfu"])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def test_a_terminal_shows_the_last_report_as_far_as_there_is_room(monkeypatch, clock):
    shown: list[str] = []
    line = ProgressLine(
        Console(file=io.StringIO(), width=40, force_terminal=True), max_seconds=None
    )
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


def test_without_a_terminal_there_is_a_line_for_a_report_now_and_then_and_for_the_last(clock):
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
def test_time_left_ends_where_the_time_does(clock, max_seconds, left):
    line = ProgressLine(Console(file=io.StringIO(), width=80), max_seconds)
    line.start(500, 5600)
    clock[0] += 200
    line.show(600, "loss")
    assert line.console.file.getvalue() == f"update 600 of 5,600, {left} left: loss\n"


def test_lines_follow_the_clock_and_rows_follow_the_updates(
    toy, trained, nmt, metrics, monkeypatch
):
    words = [*toy, "trainer.max_steps=12", "trainer.log_every_n_steps=6", "run=run"]
    reported = r"update (\d+) of 12, .* loss \d"
    said = nmt("train", *words).err
    assert re.findall(reported, said) == ["1", "12"], (
        said
    )  # the first at once, the last in any case
    monkeypatch.setattr("nmt.training.metrics.REPORT_SECONDS", 0)
    said = nmt("train", *words[:-1], "run=often").err
    assert re.findall(reported, said) == [str(step) for step in range(1, 13)]
    assert metrics(Path("run")) == metrics(Path("often"))


def test_a_resumed_run_keeps_the_greater_peak_of_the_same_devices(toy, trained, nmt, monkeypatch):
    """Other programs can keep the devices busy when a run starts or resumes, which only lowers the peak."""
    peaks = [3e15, 2e15, 4e15, 1e15]
    monkeypatch.setattr(
        "nmt.training.metrics.peak_flops_per_second", lambda device, dtype: peaks.pop(0)
    )
    words = [*toy, "checkpoints.every_steps=2", "run=run"]
    file = Path("run/environment.json")
    for steps, expected in ((2, 3e15), (4, 3e15), (6, 4e15)):
        assert nmt("train", *words, f"trainer.max_steps={steps}").code == 0
        assert json.loads(file.read_text())["peak_flops_per_second"] == expected
    file.write_text(json.dumps(json.loads(file.read_text()) | {"processor": "another"}))
    assert nmt("train", *words, "trainer.max_steps=8").code == 0
    assert json.loads(file.read_text())["peak_flops_per_second"] == 1e15


def test_a_greater_peak_corrects_the_cost_of_this_process():
    callback = MetricsCallback({"run": "run", "trainer": {"log_every_n_steps": 5}}, None)
    callback.peak = 2e9
    callback.cost = 70.0 + 10 * 2e9  # 70 before this process
    callback.own_seconds = 10.0
    callback.raise_peak(1e9)
    assert (callback.peak, callback.cost) == (2e9, 70.0 + 10 * 2e9)
    callback.raise_peak(5e9)
    assert (callback.peak, callback.cost) == (5e9, 70.0 + 10 * 5e9)
