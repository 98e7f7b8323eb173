"""`nmt train minutes=` settles the configuration of a run once; memory runs out before the first update or never."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from rich.console import Console
from test_safety import SHORT, train_with

from nmt.commands import compose
from nmt.config import ModelConfig, NMTError, OptimConfig
from nmt.data import open_corpus
from nmt.plugins.minutes import minutes, trials
from nmt.plugins.minutes.minutes import settle_minutes
from nmt.training import list_checkpoints, noam, read_metrics
from nmt.training.module import learning_rate


@pytest.fixture
def corpus(toy: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(trials, "TIMED_SECONDS", 0.1)
    monkeypatch.setattr(minutes, "CHOOSING_SHARE", 100)
    monkeypatch.setattr(minutes, "FEWEST_UPDATES", 1)
    monkeypatch.setattr(minutes, "SECONDS_BESIDE", 0)
    return next(word.split("=")[1] for word in toy if word.startswith("prepared="))


def size(d_model: int) -> ModelConfig:
    return ModelConfig("tiny", encoder_layers=1, decoder_layers=1, d_model=d_model, d_ff=2 * d_model, heads=2)


def settled(run: str) -> dict[str, Any]:
    return yaml.safe_load(Path(run, "config.yaml").read_text())


def test_a_run_resumes_with_its_settings_and_more_minutes_continue_it(corpus, nmt, training_state, monkeypatch):
    monkeypatch.setattr(trials.Trial, "pace", lambda *arguments: trials.Pace(10, 200, 1000))  # as if slow
    words = [corpus, "model=tiny", "model.d_model=16", "model.heads=2", "logger=csv", "name=toy"]
    said, first, second = nmt("train", *words, "minutes=3").err, "runs/toy", "runs/toy-6min"
    updates = settled(first)["trainer"]["max_steps"]
    assert f"{updates} updates" in said
    assert settled(first)["minutes_settles"] == ["optim", "batching", "checkpoints", "validation"]
    assert settled(first)["validation"]["every_steps"] == -(-updates // 4)
    assert (settled(first)["optim"]["decay_steps"], settled(first)["optim"]["optimizer"]) == (updates, "muon")
    assert f"is already trained for {updates:,} updates" in nmt("train", *words, "minutes=3").err

    said = nmt("train", *words, "minutes=6").err
    assert f"continuing the model of {first} from its update {updates:,} for 3 minutes in {second};" in said
    assert settled(second)["init"] == first
    assert settled(second)["model"] == settled(first)["model"]
    assert settled(second)["optim"]["learning_rate"] == pytest.approx(minutes.HIGHEST_RATE / 16)
    assert Path("runs/latest").resolve() == Path(second).resolve()
    before, state = settled(second), training_state(Path(second))
    shutil.rmtree(f"{second}/model")  # as if killed after the second checkpoint from the end
    list_checkpoints(Path(second))[-1].unlink()
    assert nmt("train", *words, "minutes=6").code == 0
    assert settled(second) == before
    torch.testing.assert_close(training_state(Path(second)), state, rtol=0, atol=0)

    nmt("train", *words, "minutes=5").refused(f"{second} has already trained for minutes=6: pass more")
    nmt("train", *words, "minutes=9", f"init={first}").refused(f"{second} has already", "without init=")
    nmt("train", *words, "minutes=9", "seed=2").refused(f"run in {second}", "different configuration", "seed")
    shutil.rmtree(f"{second}/model")
    nmt("train", *words, "minutes=9").refused(f"{second} is not finished: pass minutes=6 to finish it")
    assert not Path("runs/toy-9min").exists()


def test_a_larger_model_is_tried_if_there_is_time_and_chosen_if_it_pays(corpus, monkeypatch, tmp_path):
    tried, pace = list[int](), trials.Trial.pace
    monkeypatch.setattr(trials.Trial, "pace", lambda self, s: tried.append(self.config.model.d_model) or pace(self, s))
    monkeypatch.setattr(minutes, "sizes", lambda: [size(16), size(32)])
    config = compose("train", [corpus, "minutes=0.05", f"run={tmp_path}/run"])
    for needed, share, chosen, sizes in (
        (0.0, 100, 32, {16, 32}),
        (1e9, 100, 16, {16, 32}),
        (0.0, 0, 16, {16}),  # the time for choosing is over
    ):
        monkeypatch.setattr(minutes, "TOKENS_PER_PARAMETER", needed)
        monkeypatch.setattr(minutes, "CHOOSING_SHARE", share)
        assert settle_minutes(config, open_corpus(Path(corpus)), Console()).model.d_model == chosen
        assert set(tried) == sizes
        tried.clear()


def test_too_little_time_is_refused_before_anything_is_written(corpus, nmt, monkeypatch):
    monkeypatch.setattr(minutes, "FEWEST_UPDATES", 10**6)
    refused = nmt("train", corpus, "minutes=0.05", "model=tiny", "run=run")
    assert refused.code == 2
    assert "that leaves fewer than" in refused.err
    assert not Path("run/config.yaml").exists()


def test_a_schedule_that_ends_ends_with_max_time(corpus, nmt, toy):
    words = [*toy[:-1], corpus, "optim.schedule=cosine", "trainer.max_time=2s", "logger=csv", "run=run"]
    words = [word for word in words if not word.startswith("trainer.max_steps")]
    given = compose("train", words).optim
    assert nmt("train", *words).code == 0
    before = settled("run")
    updates, optim = before["trainer"]["max_steps"], before["optim"]
    assert optim["decay_steps"] == updates
    assert optim["warmup"] == min(given.warmup, -(-updates // 8))
    assert optim["learning_rate"] == pytest.approx(noam(given.warmup, 16, given.warmup))
    assert learning_rate(OptimConfig(**optim), 16, updates) < optim["learning_rate"] / 5
    # Resuming measures nothing: the run has its number of updates.
    for path in list_checkpoints(Path("run"))[-1:]:
        path.unlink()
    shutil.rmtree("run/model")
    assert nmt("train", *words).code == 0
    assert settled("run") == before


def test_time_settles_the_updates_unless_a_key_does(corpus):
    for words, max_steps in (
        ("optim.schedule=linear", None),
        ("optim.schedule=cosine", None),
        ("optim.schedule=noam", 100_000),  # noam and constant never end: max_time is a limit
        ("optim.schedule=constant", 100_000),
        ("optim.schedule=linear trainer.max_steps=5000", 5_000),
        ("optim.schedule=linear optim.decay_steps=5000", 100_000),
    ):
        assert compose("train", [corpus, "trainer.max_time=1h", *words.split()]).trainer.max_steps == max_steps
    with pytest.raises(NMTError, match=r"minutes= chooses trainer\.max_steps"):
        compose("train", [corpus, "minutes=3", "trainer.max_steps=100"])
    assert compose("train", [corpus, "minutes=3"]).run == "runs/toy-3min"


def test_max_tokens_settles_the_micro_batches(toy, nmt, monkeypatch):
    words = ("train", *toy, "trainer.max_steps=2", "validation.bleu_sentences=0")
    assert nmt(*words, "batching.max_tokens=100", "run=run").code == 0
    assert "micro_batches: 3\n" in Path("run/config.yaml").read_text()  # 240 tokens in micro-batches of at most 100
    assert nmt(*words, "batching.max_tokens=100", "run=run", "trainer.max_steps=3").code == 0
    nmt(*words, "batching.max_tokens=50", "run=run").refused("a different configuration", "max_tokens")
    monkeypatch.setattr(trials.Trial, "fits", lambda trial, x: x.tokens_per_update // x.micro_batches <= 70)
    assert nmt(*words, "batching.max_tokens=auto", "run=auto").code == 0
    assert "micro_batches: 4\n" in Path("auto/config.yaml").read_text()
    monkeypatch.setattr(trials.Trial, "fits", lambda *arguments: False)
    nmt(*words, "batching.max_tokens=auto", "run=other").refused("max_tokens=auto", "longest sentence")


def test_what_fits_is_tried_with_the_largest_batches(toy, monkeypatch):
    shapes = []
    monkeypatch.setattr(trials, "try_shapes", lambda trainer, module, tried: shapes.extend(tried))
    config = compose("train", toy)
    trial = trials.Trial(config, open_corpus(Path(config.prepared)))
    assert trial.fits(config.batching)
    assert all(240 / 2 < rows * max(widths) <= 1.25 * 240 / 2 * 1.1 for rows, *widths in shapes)
    monkeypatch.setattr(trials, "try_shapes", lambda *arguments: torch.empty(2**60))
    assert not trial.fits(config.batching)


STARVED = """
import resource
from nmt.cli import main
from nmt.plugins.minutes.trials import MemoryCheck

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
    assert nmt("train", *toy, *SHORT).code == 0
    monkeypatch.setattr(trials.MemoryCheck, "on_train_start", lambda *arguments: None)
    assert nmt("train", *toy, *SHORT, "run=other").code == 0
    torch.testing.assert_close(*(training_state(Path(run)) for run in ("run", "other")), rtol=0, atol=0)
    assert read_metrics(Path("run"))[0]["loss"] == read_metrics(Path("other"))[0]["loss"]
