"""`nmt train minutes=` settles the configuration of a run once; memory runs out before the first update or never."""

import math
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from rich.console import Console
from test_safety import SHORT, train_with

from nmt.commands import compose, minutes
from nmt.config import ExperimentConfig, ModelConfig, OptimConfig, build, to_tree
from nmt.training import (
    TranslationModule,
    list_checkpoints,
    pacer,
    read_metrics,
    time_limit as limit,
    train,
    trial,
)


@pytest.fixture
def corpus(toy: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(trial, "TIMED_SECONDS", 0.1)
    monkeypatch.setattr(minutes, "CHOOSING_SHARE", 100)
    monkeypatch.setattr(minutes, "FEWEST_UPDATES", 1)
    monkeypatch.setattr(limit, "VALIDATION_SECONDS", 0.0)
    monkeypatch.setattr(limit, "VALIDATION_UPDATES", 0.0)
    return next(word.split("=")[1] for word in toy if word.startswith("prepared="))


def size(d_model: int) -> ModelConfig:
    return ModelConfig(
        "tiny", encoder_layers=1, decoder_layers=1, d_model=d_model, d_ff=2 * d_model, heads=2
    )


def settled(run: str) -> dict[str, Any]:
    return yaml.safe_load(Path(run, "config.yaml").read_text())


def test_a_run_resumes_with_its_settings_and_more_minutes_continue_it(
    corpus, nmt, training_state, monkeypatch
):
    monkeypatch.setattr(
        minutes, "measured_pace", lambda *arguments: minutes.Pace(10, 200)
    )  # as if slow
    monkeypatch.setattr(pacer, "TOLERANCE", math.inf)
    monkeypatch.setattr(limit, "AIM", 0.95)
    words = [corpus, "model=tiny", "model.d_model=16", "model.heads=2", "logger=csv", "name=toy"]
    said, first, second = nmt("train", *words, "minutes=3").err, "runs/toy", "runs/toy-6min"
    updates = settled(first)["trainer"]["max_steps"]
    assert f"to update {updates};" in said
    assert settled(first)["minutes_settles"] == ["optim", "batching", "checkpoints", "validation"]
    assert settled(first)["validation"]["every_steps"] == -(-updates // 4)
    optim, rate = (
        settled(first)["optim"],
        pytest.approx(2 * minutes.HIGHEST_RATE / 16),
    )  # doubled in short runs
    assert (optim["decay_steps"], optim["optimizer"], optim["learning_rate"]) == (
        updates,
        "muon",
        rate,
    )
    assert optim["learning_rate"] * optim["weight_decay"] * updates == pytest.approx(minutes.DECAY)
    assert f"is already trained for {updates:,} updates" in nmt("train", *words, "minutes=3").err

    said = nmt("train", *words, "minutes=6").err
    assert (
        f"continuing the model of {first} from its update {updates:,} for 3 minutes in {second};"
        in said
    )
    assert settled(second)["init"] == first
    assert settled(second)["model"] == settled(first)["model"]
    assert settled(second)["optim"]["learning_rate"] == pytest.approx(minutes.HIGHEST_RATE / 16)
    assert nmt("train", *words[:-1], "minutes=3", "run=adapted", f"init={first}").code == 0
    expected = {
        "learning_rate": 0.0167705,
        "schedule": "linear",
        "optimizer": "adam",
        "weight_decay": 0.0,
    }
    assert expected.items() <= settled("adapted")["optim"].items()
    assert Path("runs/latest").resolve() == Path(second).resolve()
    before, state = settled(second), training_state(Path(second))
    shutil.rmtree(f"{second}/model")  # as if killed after the second checkpoint from the end
    list_checkpoints(Path(second))[-1].unlink()
    assert nmt("train", *words, "minutes=6").code == 0
    assert settled(second) == before
    torch.testing.assert_close(training_state(Path(second)), state, rtol=0, atol=0)

    nmt("train", *words, "minutes=5").refused(f"{second} was started with minutes=6: pass more")
    nmt("train", *words, "minutes=9", f"init={first}").refused(
        f"{second} was started", "without init="
    )
    nmt("train", *words, "minutes=9", "seed=2").refused(
        f"run in {second}", "different configuration", "seed"
    )
    assert nmt("train", *words, "minutes=8").code == 0
    assert settled("runs/toy-8min")["optim"]["learning_rate"] < minutes.HIGHEST_RATE / 16
    shutil.rmtree("runs/toy-8min/model")
    nmt("train", *words, "minutes=9").refused(
        "toy-8min is not finished, or its corpus has changed: pass minutes=8"
    )
    assert not Path("runs/toy-9min").exists()


def test_a_larger_model_is_tried_if_there_is_time_and_chosen_if_it_pays(
    corpus, monkeypatch, tmp_path
):
    tried = list[int]()

    def pace(config, *arguments):
        tried.append(config.model.d_model)
        return minutes.Pace(0.01 if tried[-1] == 16 else 0.1, 200)

    monkeypatch.setattr(minutes, "measured_pace", pace)
    monkeypatch.setattr(minutes, "sizes", lambda config: [size(16), size(32)])
    config = compose(
        "train", [corpus, "minutes=0.05", "trainer.precision=32-true", f"run={tmp_path}/run"]
    )
    for needed, share, chosen, sizes in (
        (0.0, 100, 32, {16, 32}),
        (1.0, 100, 16, {16, 32}),
        (1e9, 100, 16, {16}),  # the small model already sees too few tokens
        (0.0, 0, 16, {16}),  # the time for choosing is over
    ):
        monkeypatch.setattr(minutes, "TOKENS_PER_PARAMETER", needed)
        monkeypatch.setattr(minutes, "CHOOSING_SHARE", share)
        assert minutes.settle(config, Console()).model.d_model == chosen
        assert set(tried) == sizes
        tried.clear()


def test_a_launched_process_takes_the_settings_of_the_first(corpus, here, monkeypatch):
    monkeypatch.setattr(minutes, "measured_pace", lambda *arguments: minutes.Pace(0.01, 200))
    words = [corpus, "minutes=3", "model=tiny", "run=run", "trainer.devices=2"]
    config = compose("train", [*words, "trainer.precision=32-true"])
    first = minutes.settle(config, Console(quiet=True))
    Path("run").mkdir()
    Path("run/config.yaml").write_text(yaml.safe_dump(to_tree(first)))
    for name, value in {"LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert minutes.settle(config, Console(quiet=True)) == first


def test_too_little_time_is_refused_before_anything_is_written(corpus, nmt, monkeypatch):
    monkeypatch.setattr(minutes, "FEWEST_UPDATES", 10**6)
    refused = nmt("train", corpus, "minutes=0.05", "model=tiny", "run=run")
    assert refused.code == 2
    assert "that leaves fewer than" in refused.err
    assert not Path("run/config.yaml").exists()


@pytest.mark.slow
def test_a_run_ends_in_time_on_a_machine_whose_speed_changes_and_can_be_repeated(
    corpus, finished, nmt, training_state, monkeypatch
):
    """The machine becomes slower after a third of the time, and faster for the last quarter."""
    seconds = 30.0
    before = 0.04  # seconds per update, on a real clock; test_pacer.py simulates more machines
    after = 0.2
    monkeypatch.setattr(limit, "VALIDATION_SECONDS", 0.8)  # until one is measured
    step = TranslationModule.optimizer_step
    begin = time.monotonic()

    def slow_step(module: TranslationModule, *arguments: Any) -> None:
        passed = (time.monotonic() - begin) / seconds
        time.sleep(after if 0.33 < passed < 0.75 else before)
        step(module, *arguments)

    monkeypatch.setattr(minutes, "measured_pace", lambda *arguments: minutes.Pace(before, 200))
    words = [corpus, "model=tiny", "model.d_model=16", "model.heads=2", "logger=csv", "run=run"]
    words += ["validation.bleu_sentences=0", "trainer.accelerator=cpu"]
    with monkeypatch.context() as slowed:
        slowed.setattr(TranslationModule, "optimizer_step", slow_step)
        begin = time.monotonic()
        said = nmt("train", *words, f"minutes={seconds / 60}").err
    assert time.monotonic() - begin == pytest.approx(seconds, rel=0.1), said
    assert said.count("fit in the time") >= 1
    recorded = settled("run")
    changes = recorded["optim"]["decay_changes"]
    updates = recorded["trainer"]["max_steps"]
    assert changes[-1][1] == updates == training_state(Path("run"))["step"]
    assert recorded["optim"]["decay_steps"] != updates
    config = build(ExperimentConfig, recorded | {"run": "again", "minutes": None})
    assert train(config, Console(quiet=True)) is None
    torch.testing.assert_close(
        training_state(Path("again")), training_state(Path("run")), rtol=0, atol=0
    )
    # As if killed with an older checkpoint than the last change: the recorded changes are repeated.
    shutil.rmtree("run/model")
    list_checkpoints(Path("run"))[-1].unlink()
    monkeypatch.setattr(pacer, "TOLERANCE", math.inf)
    monkeypatch.setattr(limit, "AIM", 100)
    assert nmt("train", *words, f"minutes={seconds / 60}").code == 0
    assert settled("run") == recorded
    torch.testing.assert_close(
        training_state(Path("run")), training_state(Path("again")), rtol=0, atol=0
    )


@pytest.mark.parametrize("limit", ["minutes=0.08", "trainer.max_time=5s"])
def test_a_schedule_of_the_user_ends_with_the_time(limit, corpus, nmt, toy):
    words = [word for word in toy if not word.startswith("trainer.max_steps")]
    words += ["optim.schedule=cosine", "optim.warmup=2", limit, "run=run", "logger=csv"]
    for _ in range(2):
        assert nmt("train", *words).code == 0
        assert (
            build(OptimConfig, settled("run")["optim"]).end
            == settled("run")["trainer"]["max_steps"]
            < 100_000
        )


def test_which_limits_set_the_number_of_updates(corpus, nmt, tmp_path):
    nmt("train", corpus, "minutes=3", "trainer.max_steps=100").refused("minutes= sets this key")
    assert compose("train", [corpus, "minutes=3"]).run == "runs/toy-3min"
    assert "Examples\n  nmt train data/corpus minutes=30\n" in nmt("train", "--help").out
    words = "optim.label_smoothing=0 model.dropout=0 batching=paper checkpoints.keep=3 validation.bleu_sentences=0"
    config = compose("train", [corpus, "minutes=3", *words.split()])
    assert config.minutes_settles == ["model", "optim", "checkpoints", "validation"]
    assert config.minutes_keeps == ["model.dropout", "checkpoints.keep"]
    for words, settled_minutes in (
        ("optim.schedule=linear", 90),
        ("optim.schedule=noam", None),  # noam and constant never end
        ("optim.schedule=linear trainer.max_steps=5000", None),
        ("optim.schedule=linear optim.decay_steps=5000", None),
        ("optim.schedule=linear optim.warmup=9 minutes=5", 5),
    ):
        config = compose("train", [corpus, "trainer.max_time=1h30m", *words.split()])
        run = "runs/toy-5min" if settled_minutes == 5 else "runs/toy-base"
        assert (config.minutes, config.run) == (settled_minutes, run)
    words = [corpus, "trainer.max_time=1h30m", "optim.schedule=linear"]
    (tmp_path / "conf/experiment").mkdir(parents=True)
    (tmp_path / "conf/experiment/saved.yaml").write_text(nmt("train", *words, "--cfg").out)
    assert compose("train", [corpus, "experiment=saved"]) == compose("train", words)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("model.norm=post", {"name": "tiny", "norm": "post", "d_model": 128, "encoder_layers": 3}),
        ("model.d_model=32", {"name": "tiny", "norm": "pre", "d_model": 32, "d_k": 8}),
        ("model.dropout=0.07", {"name": "tiny", "dropout": 0.07}),
        ("model=small model.norm=post", {"name": "small", "norm": "post", "dropout": 0.1}),
        ("optim.weight_decay=0.3", {"weight_decay": 0.3, "schedule": "linear", "warmup": 84}),
        ("optim.schedule=cosine", {"schedule": "cosine", "warmup": 84, "decay_steps": 1000}),
        ("optim.schedule=noam", {"schedule": "noam", "warmup": 84, "decay_steps": None}),
        ("optim.learning_rate=0.01", {"learning_rate": 0.01, "weight_decay": 0.8}),
        ("batching.micro_batches=2", {"micro_batches": 2, "tokens_per_update": 768}),
        ("checkpoints.keep=7", {"keep": 7, "every_steps": 40}),
        ("experiment=laptop optim.warmup=50", {"warmup": 50, "decay_steps": 1000}),
        ("experiment=bergamot", {"warmup": 84, "schedule": "linear"}),
    ],
)
def test_minutes_keeps_the_keys_of_the_user_and_chooses_the_rest(
    words, expected, corpus, monkeypatch, capsys
):
    monkeypatch.setattr(minutes, "measured_pace", lambda *arguments: minutes.Pace(0.01, 200))
    monkeypatch.setattr(minutes, "updates_that_fit", lambda *arguments: 1000)
    config = compose(
        "train", [corpus, "minutes=0.05", "run=run", "trainer.precision=32-true", *words.split()]
    )
    config = minutes.settle(config, Console())
    last = words.split()[-1]
    group = getattr(config, "optim" if "experiment" in words else last.partition(".")[0])
    assert {key: getattr(group, key) for key in expected} == pytest.approx(expected)
    is_key = "." in last and not words.startswith("model=")
    assert (
        f"keeps {last.partition('=')[0]} as you set" in " ".join(capsys.readouterr().out.split())
    ) == is_key


STARVED = """
import resource
from nmt.cli import main
from nmt.training.trial import MemoryCheck

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
    words = [*toy, *SHORT, "optim.weight_decay=9"]
    assert nmt("train", *words).code == 0
    monkeypatch.setattr(trial.MemoryCheck, "on_train_start", lambda *arguments: None)
    assert nmt("train", *words, "run=other").code == 0
    torch.testing.assert_close(
        *(training_state(Path(run)) for run in ("run", "other")), rtol=0, atol=0
    )
    assert read_metrics(Path("run"))[0]["loss"] == read_metrics(Path("other"))[0]["loss"]
