"""`nmt train minutes=` chooses the settings of a run; memory runs out at the start or never."""

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

from nmt.commands import compose, minutes
from nmt.commands.minutes import choosing, settings
from nmt.config import ExperimentConfig, ModelConfig, OptimConfig, build, to_tree
from nmt.config.training import SETTLED
from nmt.training import (
    TranslationModule,
    list_checkpoints,
    memory,
    pacer,
    read_metrics,
    time_limit as limit,
    train,
    trial,
)
from tests.core.test_safety import SHORT, train_with


@pytest.fixture
def corpus(toy: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(trial, "TIMED_SECONDS", 0.1)
    monkeypatch.setattr(choosing, "CHOOSING_SHARE", 100)
    monkeypatch.setattr(choosing, "FEWEST_UPDATES", 1)
    monkeypatch.setattr(limit, "VALIDATION_SECONDS", 0.0)
    monkeypatch.setattr(limit, "VALIDATION_UPDATES", 0.0)
    return next(word.split("=")[1] for word in toy if word.startswith("prepared="))


def size(d_model: int) -> ModelConfig:
    return ModelConfig(
        "tiny", encoder_layers=1, decoder_layers=1, d_model=d_model, d_ff=2 * d_model, heads=2
    )


def settled(run: str) -> dict[str, Any]:
    return yaml.safe_load(Path(run, "config.yaml").read_text())


WORDS = ("model=tiny", "model.d_model=16", "model.heads=2", "logger=csv", "name=toy")


@pytest.fixture
def train_for(corpus, nmt, monkeypatch):
    """Run `nmt train minutes=` on a machine on which updates seem slow, so that runs are short."""
    monkeypatch.setattr(choosing, "measured_pace", lambda *arguments: trial.Pace(10, 200))
    monkeypatch.setattr(pacer, "TOLERANCE", math.inf)
    monkeypatch.setattr(limit, "AIM", 0.95)
    return lambda minutes, *words: nmt("train", corpus, *WORDS, f"minutes={minutes}", *words)


@pytest.mark.slow
def test_a_run_records_its_settings_and_keeps_them(train_for):
    output = train_for(3).err
    config = settled("runs/toy")
    updates = config["trainer"]["max_steps"]
    assert f"to update {updates};" in output
    assert config["minutes_settles"] == ["optim", "batching", "checkpoints", "validation"]
    assert config["validation"]["every_steps"] == math.ceil(updates / 4)
    optim = config["optim"]
    assert optim["decay_steps"] == updates
    assert optim["optimizer"] == "muon"
    # Doubled in short runs.
    assert optim["learning_rate"] == pytest.approx(2 * settings.HIGHEST_RATE / 16)
    decay = optim["learning_rate"] * optim["weight_decay"] * updates
    assert decay == pytest.approx(settings.DECAY)
    assert f"is already trained for {updates:,} updates" in train_for(3).err


@pytest.mark.slow
def test_more_minutes_continue_a_run_in_a_new_folder(train_for):
    train_for(3)
    updates = settled("runs/toy")["trainer"]["max_steps"]
    output = train_for(6).err
    begin = f"continuing the model of runs/toy from its update {updates:,} for 3 minutes"
    assert f"{begin} in runs/toy-6min;" in output
    longer = settled("runs/toy-6min")
    assert longer["init"] == "runs/toy"
    assert longer["model"] == settled("runs/toy")["model"]
    assert longer["optim"]["learning_rate"] == pytest.approx(settings.HIGHEST_RATE / 16)
    assert Path("runs/latest").resolve() == Path("runs/toy-6min").resolve()
    assert train_for(8).code == 0
    assert settled("runs/toy-8min")["optim"]["learning_rate"] < settings.HIGHEST_RATE / 16


@pytest.mark.slow
def test_a_run_that_starts_from_another_model_has_the_rate_of_adapt(train_for, corpus, nmt):
    train_for(3)
    words = [corpus, *WORDS[:-1], "minutes=3", "run=run", "init=runs/toy"]
    assert nmt("train", *words).code == 0
    optim = settled("run")["optim"]
    assert optim["learning_rate"] == 0.0167705
    assert optim["schedule"] == "linear"
    assert optim["optimizer"] == "adam"
    assert optim["weight_decay"] == 0.0


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_bits(train_for, training_state):
    train_for(3)
    train_for(6)
    run = Path("runs/toy-6min")
    config = settled(str(run))
    state = training_state(run)
    shutil.rmtree(run / "model")  # as if killed after the second checkpoint from the end
    list_checkpoints(run)[-1].unlink()
    assert train_for(6).code == 0
    assert settled(str(run)) == config
    torch.testing.assert_close(training_state(run), state, rtol=0, atol=0)


@pytest.mark.slow
def test_a_run_that_cannot_continue_another_is_rejected(train_for):
    train_for(3)
    train_for(6)
    train_for(5).refused("runs/toy-6min was started with minutes=6: pass more")
    train_for(9, "init=runs/toy").refused("runs/toy-6min was started", "without init=")
    train_for(9, "seed=2").refused("run in runs/toy-6min", "different configuration", "seed")
    shutil.rmtree("runs/toy-6min/model")
    train_for(9).refused("runs/toy-6min is not finished, or its corpus has changed: pass minutes=6")
    assert not Path("runs/toy-9min").exists()


@pytest.mark.parametrize(
    ("tokens_per_parameter", "choosing_share", "tried_sizes", "chosen"),
    [
        (0.0, 100, {16, 32}, 32),
        (1.0, 100, {16, 32}, 16),  # the large model would see too few tokens
        (1e9, 100, {16}, 16),  # the small model already sees too few tokens
        (0.0, 0, {16}, 16),  # the time for choosing is over
    ],
)
def test_a_larger_model_is_tried_if_there_is_time_and_chosen_if_it_pays(
    corpus, monkeypatch, tmp_path, tokens_per_parameter, choosing_share, tried_sizes, chosen
):
    tried: list[int] = []

    def pace(config, *arguments):
        tried.append(config.model.d_model)
        return trial.Pace(0.01 if config.model.d_model == 16 else 0.1, 200)

    monkeypatch.setattr(choosing, "measured_pace", pace)
    monkeypatch.setattr(minutes, "sizes", lambda config: [size(16), size(32)])
    monkeypatch.setattr(choosing, "TOKENS_PER_PARAMETER", tokens_per_parameter)
    monkeypatch.setattr(choosing, "CHOOSING_SHARE", choosing_share)
    words = [corpus, "minutes=0.05", "trainer.precision=32-true", f"run={tmp_path}/run"]
    config = compose("train", words)
    assert minutes.settle(config, Console()).model.d_model == chosen
    assert set(tried) == tried_sizes


def test_a_launched_process_reads_the_settings_of_the_first_process(corpus, here, monkeypatch):
    monkeypatch.setattr(choosing, "measured_pace", lambda *arguments: trial.Pace(0.01, 200))
    words = [corpus, "minutes=3", "model=tiny", "run=run", "trainer.devices=2"]
    config = compose("train", [*words, "trainer.precision=32-true"])
    first = minutes.settle(config, Console(quiet=True))
    Path("run").mkdir()
    Path("run/config.yaml").write_text(yaml.safe_dump(to_tree(first)))
    for name, value in {"LOCAL_RANK": "1", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    assert minutes.settle(config, Console(quiet=True)) == first


def test_too_little_time_is_rejected_before_anything_is_written(corpus, nmt, monkeypatch):
    monkeypatch.setattr(choosing, "FEWEST_UPDATES", 10**6)
    refused = nmt("train", corpus, "minutes=0.05", "model=tiny", "run=run")
    assert refused.code == 2
    assert "that leaves fewer than" in refused.err
    assert not Path("run/config.yaml").exists()


@pytest.mark.slow
def test_a_run_ends_in_time_at_changing_speed_and_can_be_repeated(
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

    monkeypatch.setattr(choosing, "measured_pace", lambda *arguments: trial.Pace(before, 200))
    words = [corpus, "model=tiny", "model.d_model=16", "model.heads=2", "logger=csv", "run=run"]
    words += ["validation.bleu_sentences=0", "trainer.accelerator=cpu"]
    with monkeypatch.context() as slowed:
        slowed.setattr(TranslationModule, "optimizer_step", slow_step)
        begin = time.monotonic()
        output = nmt("train", *words, f"minutes={seconds / 60}").err
    assert time.monotonic() - begin == pytest.approx(seconds, rel=0.1), output
    assert output.count("fit in the time") >= 1
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


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["minutes=0.08", "trainer.max_time=5s"])
def test_a_schedule_of_the_user_ends_with_the_time(limit, corpus, nmt, toy):
    words = [word for word in toy if not word.startswith("trainer.max_steps")]
    words += ["optim.schedule=cosine", "optim.warmup=2", limit, "run=run", "logger=csv"]
    for _ in range(2):
        assert nmt("train", *words).code == 0
        end = build(OptimConfig, settled("run")["optim"]).end
        assert end == settled("run")["trainer"]["max_steps"]
        assert end < 100_000


def test_minutes_and_max_steps_exclude_each_other(corpus, nmt):
    nmt("train", corpus, "minutes=3", "trainer.max_steps=100").refused("minutes= sets this key")


def test_minutes_name_the_run(corpus):
    assert compose("train", [corpus, "minutes=3"]).run == "runs/toy-3min"


def test_the_help_shows_an_example_with_minutes(nmt):
    assert "Examples\n  nmt train data/corpus minutes=30\n" in nmt("train", "--help").out


def test_groups_that_the_user_chooses_and_keys_that_the_user_sets_are_kept(corpus):
    words = [
        "optim.label_smoothing=0",
        "model.dropout=0",
        "batching=paper",
        "checkpoints.keep=3",
        "validation.bleu_sentences=0",
    ]
    config = compose("train", [corpus, "minutes=3", *words])
    assert config.minutes_settles == ["model", "optim", "checkpoints", "validation"]
    assert config.minutes_keeps == ["model.dropout", "checkpoints.keep"]


@pytest.mark.parametrize(
    ("word", "settled"),
    [
        ("minutes_settles=null", []),
        ("minutes_settles=optim", ["optim"]),
        ("minutes_keeps=null", [*SETTLED]),
        ("minutes_keeps=model.dropout", [*SETTLED]),
    ],
)
def test_lists_for_minutes_may_be_null_or_a_single_string(word, settled, corpus):
    assert compose("train", [corpus, "minutes=3", word]).minutes_settles == settled


def test_a_list_for_minutes_that_is_a_number_is_rejected(corpus, nmt):
    nmt("train", corpus, "minutes=3", "minutes_settles=5").refused("minutes_settles=[5]: must be")


@pytest.mark.parametrize(
    ("words", "expected", "run"),
    [
        ("optim.schedule=linear", 90, "runs/toy-base"),
        ("optim.schedule=noam", None, "runs/toy-base"),  # noam and constant never end
        ("optim.schedule=linear trainer.max_steps=5000", None, "runs/toy-base"),
        ("optim.schedule=linear optim.decay_steps=5000", None, "runs/toy-base"),
        ("optim.schedule=linear optim.warmup=9 minutes=5", 5, "runs/toy-5min"),
    ],
)
def test_max_time_sets_the_updates_of_a_schedule_that_ends(corpus, words, expected, run):
    config = compose("train", [corpus, "trainer.max_time=1h30m", *words.split()])
    assert config.minutes == expected
    assert config.run == run


def test_a_saved_max_time_composes_to_the_same_configuration(corpus, nmt, tmp_path):
    words = [corpus, "trainer.max_time=1h30m", "optim.schedule=linear"]
    (tmp_path / "conf/experiment").mkdir(parents=True)
    (tmp_path / "conf/experiment/saved.yaml").write_text(nmt("train", *words, "--cfg").out)
    assert compose("train", [corpus, "experiment=saved"]) == compose("train", words)


@pytest.mark.slow
@pytest.mark.plugins
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
    monkeypatch.setattr(choosing, "measured_pace", lambda *arguments: trial.Pace(0.01, 200))
    monkeypatch.setattr(choosing, "updates_that_fit", lambda *arguments: 1000)
    fixed = [corpus, "minutes=0.05", "run=run", "trainer.precision=32-true"]
    config = minutes.settle(compose("train", [*fixed, *words.split()]), Console())
    key = words.split()[-1].partition("=")[0]
    group = getattr(config, "optim" if "experiment" in words else key.partition(".")[0])
    assert {name: getattr(group, name) for name in expected} == pytest.approx(expected)
    # With a model that the user chooses, minutes= sets nothing there, so there is nothing to keep.
    is_kept = "." in key and not words.startswith("model=")
    output = " ".join(capsys.readouterr().out.split())
    assert (f"keeps {key} as you set" in output) == is_kept


STARVED = """
import resource
from nmt.cli import main
from nmt.training.memory import MemoryCheck

begin = MemoryCheck.on_train_start

def starve(callback, trainer, module):
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, used + 2**27))
    begin(callback, trainer, module)

MemoryCheck.on_train_start = starve
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_memory_runs_out_before_the_first_update_with_advice(toy, nmt):
    wide = ("batching.tokens_per_update=20000", "model.d_model=256", "model.d_ff=4096")
    ended = train_with(STARVED, *toy, "run=run", *wide)
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False), ended.stderr
    assert "out of memory: a micro-batch of 10,000 source" in ended.stderr.splitlines()[-1]
    assert not read_metrics(Path("run"))
    # Nothing was trained, so nothing holds the run to its first options.
    (advice,) = re.findall(r"Pass (batching\.micro_batches=4)", ended.stderr)
    small = ("batching.tokens_per_update=240", "trainer.max_steps=2", "validation.bleu_sentences=0")
    assert nmt("train", *toy, "run=run", *wide[1:], *small, advice).code == 0


@pytest.mark.slow
def test_the_memory_check_leaves_no_trace(toy, nmt, training_state, monkeypatch):
    words = [*toy, *SHORT, "optim.weight_decay=9"]
    assert nmt("train", *words).code == 0
    monkeypatch.setattr(memory.MemoryCheck, "on_train_start", lambda *arguments: None)
    assert nmt("train", *words, "run=other").code == 0
    state = training_state(Path("run"))
    torch.testing.assert_close(state, training_state(Path("other")), rtol=0, atol=0)
    assert read_metrics(Path("run"))[0]["loss"] == read_metrics(Path("other"))[0]["loss"]
