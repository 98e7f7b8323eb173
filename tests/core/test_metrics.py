"""What a run writes about itself."""

import csv
import json
import time
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from nmt.config import BatchingConfig, ModelConfig
from nmt.data import BatchPlanner, open_corpus
from nmt.model import Transformer
from nmt.training import list_checkpoints, load_checkpoint
from nmt.training.metrics import COLUMNS, Logbook


@pytest.fixture(scope="module")
def corpus(toy):
    return open_corpus(Path(toy[-1].removeprefix("prepared=")))


@pytest.fixture(scope="module")
def planner(corpus) -> BatchPlanner:
    split = corpus.split("train")
    return BatchPlanner(split.source_lengths, split.target_lengths, BatchingConfig(240, 2), seed=1)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def rows(finished) -> list[dict[str, str]]:
    return read(finished / "metrics.csv")


def test_training_is_reported_every_five_updates_and_validation_every_twenty(rows):
    assert list(rows[0]) == list(COLUMNS)
    assert [int(row["step"]) for row in rows if row["loss"]] == list(range(5, 61, 5))
    assert [int(row["step"]) for row in rows if row["valid_loss"]] == [20, 40, 60]


def test_the_optimizer_used_the_learning_rate_that_is_reported(finished):
    for path in list_checkpoints(finished):
        content = torch.load(path, weights_only=True)
        step = content["global_step"]
        expected = 16**-0.5 * min(step**-0.5, step * 20**-1.5)
        assert content["optimizer_states"][0]["param_groups"][0]["lr"] == pytest.approx(expected, rel=1e-12)


def sums(logits: torch.Tensor, targets: torch.Tensor) -> list[float]:
    """The smoothed loss, the unsmoothed one, and the number of target tokens."""
    flat, labels = logits.flatten(0, 1), targets.flatten()
    losses = [
        F.cross_entropy(flat, labels, ignore_index=0, label_smoothing=smoothing, reduction="sum").item()
        for smoothing in (0.1, 0.0)
    ]
    return [*losses, int((targets != 0).sum())]


def checkpointed_model(path: Path) -> Transformer:
    content = torch.load(path, weights_only=True)
    model = Transformer(ModelConfig(**content["nmt"]["config"]["model"]), content["nmt"]["vocabulary_size"])
    model.load_state_dict({k.removeprefix("model."): v for k, v in content["state_dict"].items()})
    return model.eval()


@torch.no_grad()
def test_validation_loss_and_perplexity_are_those_of_the_checkpoint_sentence_by_sentence(finished, corpus, rows):
    model, valid = checkpointed_model(list_checkpoints(finished)[-1]), corpus.split("valid")
    batches = (valid.batch(np.array([index])) for index in range(len(valid)))
    loss, nll, tokens = np.sum([sums(model(b.source, b.target_in), b.target_out) for b in batches], axis=0)
    assert float(rows[-1]["valid_loss"]) == pytest.approx(loss / tokens, rel=1e-4)
    assert float(rows[-1]["valid_perplexity"]) == pytest.approx(np.exp(nll / tokens), rel=1e-4)


@pytest.fixture(scope="module")
def each_update(toy, trained) -> list[dict[str, str]]:
    """The rows of a run without dropout that reports every update."""
    options = ["model.dropout=0", "trainer.max_steps=10", "trainer.log_every_n_steps=1", "validation.every_steps=100"]
    return [row for row in read(trained(*toy, *options) / "metrics.csv") if row["loss"]]


@torch.no_grad()
def test_the_first_row_is_the_untrained_models_loss_on_the_first_update(each_update, toy, corpus, planner):
    from nmt.commands import compose

    config = compose("train", [*toy, "model.dropout=0"])
    torch.manual_seed(config.seed)
    model = Transformer(config.model, corpus.manifest.vocabulary_size)
    indices = np.concatenate([micro_batch.indices for micro_batch in planner.update(0)])
    batch = corpus.split("train").batch(indices)
    loss, nll, tokens = sums(model(batch.source, batch.target_in), batch.target_out)
    assert float(each_update[0]["loss"]) == pytest.approx(loss / tokens, rel=1e-5)
    assert float(each_update[0]["perplexity"]) == pytest.approx(np.exp(nll / tokens), rel=1e-4)


def test_a_row_of_several_updates_is_their_mean_over_tokens(each_update, planner, toy, nmt):
    options = ("model.dropout=0", "trainer.max_steps=10", "validation.every_steps=100", "run=five")
    assert nmt("train", *toy, *options).code == 0
    tokens = [planner.update(number)[0].size.target_tokens for number in range(10)]
    single = np.array([[float(row["loss"]), np.log(float(row["perplexity"]))] for row in each_update])
    for row, part in zip(read(Path("five/metrics.csv")), (slice(0, 5), slice(5, 10)), strict=False):
        loss, nll = np.average(single[part], axis=0, weights=tokens[part])
        assert float(row["loss"]) == pytest.approx(loss, rel=1e-5)
        assert float(row["perplexity"]) == pytest.approx(np.exp(nll), rel=1e-4)


def test_the_model_directory_tells_of_its_training_what_the_last_checkpoint_does(finished, rows):
    training = json.loads((finished / "model" / "config.json").read_text())["training"]
    state = load_checkpoint(list_checkpoints(finished)[-1])["nmt"]
    for key in ("tokens", "seconds", "devices", "versions", "corpus", "config"):
        assert training[key] == state[key], key
    assert training["updates"] == training["averaged"][-1] == 60
    assert training["seconds"] == pytest.approx(float(rows[-1]["seconds"] or rows[-2]["seconds"]), abs=1)
    assert {"nmt", "torch", "lightning"} <= training["versions"].keys()
    score = training["score"]
    quality = f"validation BLEU {score['value']:.2f} on 4 sentences, `{score['signature']}`"
    assert quality.replace("|", "\\|") in (finished / "model" / "README.md").read_text()


def test_a_logbook_forgets_what_lies_after_the_update_it_goes_on_from(tmp_path):
    path = tmp_path / "metrics.csv"
    first = Logbook(tmp_path, 0)
    for step in (5, 10, 15):
        first.log_metrics({"loss": step / 10}, step)
    Logbook(tmp_path, 12).log_metrics({"loss": 9.0}, 15)
    assert [(row["step"], row["loss"]) for row in read(path)] == [("5", "0.5"), ("10", "1"), ("15", "9")]


def test_tensorboard_holds_the_same_numbers(finished, rows):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished / "tensorboard"))
    events.Reload()
    for column in ("loss", "valid_perplexity"):
        in_file = [(int(row["step"]), float(row[column])) for row in rows if row[column]]
        shown = [(event.step, event.value) for event in events.Scalars(column)]
        assert shown == [(step, pytest.approx(value, rel=1e-4)) for step, value in in_file]


def seconds_and_cost(path: Path) -> tuple[list[float], list[float]]:
    rows = [row for row in read(path / "metrics.csv") if row["loss"]]
    return [float(row["seconds"]) for row in rows], [float(row["cost"]) for row in rows]


def test_validation_counts_neither_as_time_nor_as_cost(toy, nmt, monkeypatch):
    from nmt.training.validation import Validation

    sums = Validation.domain_sums
    monkeypatch.setattr(Validation, "domain_sums", lambda *arguments: time.sleep(0.5) or sums(*arguments))
    options = ("trainer.max_steps=9", "trainer.log_every_n_steps=1", "validation.every_steps=5", "run=run")
    assert nmt("train", *toy, *options).code == 0
    seconds, cost = seconds_and_cost(Path("run"))
    assert max(np.diff(seconds)) < 0.5
    peak = json.loads(Path("run/environment.json").read_text())["peak_flops_per_second"]
    assert cost[-1] == pytest.approx(seconds[-1] * peak, rel=1e-4)


def test_a_row_after_a_restart_has_the_speed_of_all_its_updates(toy, nmt, monkeypatch, planner):
    from nmt.training.module import TranslationModule

    step = TranslationModule.on_before_optimizer_step
    monkeypatch.setattr(TranslationModule, "on_before_optimizer_step", lambda *a: time.sleep(0.1) or step(*a))
    options = ("trainer.log_every_n_steps=10", "validation.every_steps=100", "validation.bleu_sentences=0", "run=run")
    for updates in (9, 10):
        assert nmt("train", *toy, *options, f"trainer.max_steps={updates}").code == 0
    (row,) = [row for row in read(Path("run/metrics.csv")) if row["loss"]]
    tokens = sum(planner.update(number)[0].size.target_tokens for number in range(10))
    assert 0.3 * tokens < float(row["tokens_per_second"]) < tokens
    assert float(row["seconds"]) > 1
