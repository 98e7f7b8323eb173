"""A run killed at any moment, and started again, is bit for bit the run that nobody killed.

Each killed run is a process of its own.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from preloaded import python
from safetensors.torch import load_file

OPTIONS = [
    *("trainer.max_steps=40", "checkpoints.every_steps=6", "checkpoints.keep=2"),
    *("validation.every_steps=15", "validation.bleu_sentences=4", "optim.optimizer=muon"),
]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at(owner: Any, name: str, call: int, last_words: Callable[..., None] | None = None) -> None:
    """Let the process be killed at the `call`th call of a function, after `last_words` with its arguments."""
    function = getattr(owner, name)
    calls = 0

    def deadly(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            if last_words:
                last_words(function, *arguments, **named)
            die()
        return function(*arguments, **named)

    setattr(owner, name, deadly)


def while_starting() -> None:
    die_at(Path, "replace", 2)


def while_updating() -> None:
    from nmt.training.module import TranslationModule

    die_at(TranslationModule, "losses", 45)


def in_the_optimizer() -> None:
    die_at(torch.optim.Adam, "step", 23, lambda step, *arguments, **named: step(*arguments, **named))


def while_writing_a_checkpoint() -> None:
    from lightning import Trainer

    def half(save: Callable[..., None], trainer: Trainer, path: Path) -> None:
        save(trainer, path)
        os.truncate(path, path.stat().st_size // 2)

    die_at(Trainer, "save_checkpoint", 3, half)


def before_a_checkpoint_is_renamed() -> None:
    replace, checkpoints = Path.replace, count(1)

    def deadly(path: Path, target: Path) -> Path:
        if Path(target).suffix == ".ckpt" and next(checkpoints) == 2:
            die()
        return replace(path, target)

    Path.replace = deadly


def before_the_last_old_checkpoint_is_removed() -> None:
    die_at(Path, "unlink", 5)


def while_validating() -> None:
    from nmt.training.validation import Validation

    die_at(Validation, "domain_sums", 2)


def while_reporting() -> None:
    from nmt.training.metrics import Logbook

    def half_a_row(write: Callable[..., None], book: Logbook, metrics: dict[str, float], step: int) -> None:
        whole = book.path.stat().st_size
        write(book, metrics, step)
        os.truncate(book.path, (whole + book.path.stat().st_size) // 2)

    die_at(Logbook, "log_metrics", 6, half_a_row)


def while_averaging() -> None:
    from nmt.model import weights

    die_at(weights, "save_weights", 1)


MOMENTS = [
    while_writing_a_checkpoint,
    before_the_last_old_checkpoint_is_removed,
    while_validating,
    while_averaging,
    *(
        pytest.param(moment, marks=pytest.mark.slow)
        for moment in (
            while_updating,
            in_the_optimizer,
            while_starting,
            before_a_checkpoint_is_renamed,
            while_reporting,
        )
    ),
]


DOOMED = """
import sys, tempfile
import test_exact
from nmt.cli import main

tempfile.tempdir, doom = sys.argv[1:3]
if doom:
    getattr(test_exact, doom)()
sys.argv = ["nmt", "train", *sys.argv[3:]]
main()
"""
Process = subprocess.Popen[bytes]
Start = Callable[..., Process]


@pytest.fixture(scope="module")
def start(toy: list[str]) -> Start:
    """Starts `nmt train run=RUN` in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[:2]))}

    def start(run: Path, doom: Callable[[], None] | None = None, *more: str) -> Process:
        temporary = run.with_name("temporary")
        temporary.mkdir(exist_ok=True)
        words = [str(temporary), doom.__name__ if doom else "", *toy, *OPTIONS, f"run={run}", *more]
        return subprocess.Popen([python(), "-c", DOOMED, *words], env=environment)

    return start


def finish(process: Process) -> int:
    try:
        return process.wait(600)
    except subprocess.TimeoutExpired:
        process.kill()
        raise


@pytest.fixture(scope="module")
def undisturbed(start: Start, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    assert finish(start(run)) == 0
    return run


@pytest.fixture(scope="module")
def duration(start: Start, undisturbed: Path, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds that a run takes now that torch and Lightning are loaded."""
    begin = time.monotonic()
    assert finish(start(tmp_path_factory.mktemp("timed") / "run")) == 0
    return time.monotonic() - begin


@pytest.fixture
def assert_undisturbed(undisturbed: Path, metrics) -> Callable[[Path], None]:
    def tensors(run: Path) -> dict[str, Any]:
        """Of the checkpoints, weights, Adam's moments and unreported sums; of the model, its weights."""
        contents: dict[str, Any] = {"model": load_file(run / "model" / "model.safetensors")}
        for path in (run / "checkpoints").iterdir():
            content = torch.load(path, weights_only=True)
            contents[path.name] = {key: content[key] for key in ("state_dict", "optimizer_states", "sums")}
        return contents

    def names(run: Path) -> set[str]:
        """All that lies in a run, TensorBoard's files apart, which each start adds one to."""
        return {str(path.relative_to(run)) for path in run.rglob("*") if path.parent.name != "tensorboard"}

    def check(run: Path) -> None:
        assert names(run) == names(undisturbed)
        torch.testing.assert_close(tensors(run), tensors(undisturbed), rtol=0, atol=0)
        assert metrics(run) == metrics(undisturbed)
        assert list(run.with_name("temporary").iterdir()) == []

    return check


@pytest.mark.parametrize("doom", MOMENTS, ids=lambda doom: doom.__name__)
def test_a_run_killed_at_a_bad_moment_ends_as_if_it_had_not_been(start, assert_undisturbed, tmp_path, doom):
    run = tmp_path / "run"
    assert finish(start(run, doom)) == -signal.SIGKILL
    assert finish(start(run)) == 0
    assert_undisturbed(run)


def test_a_run_killed_before_it_was_averaged_again_does_not_keep_its_first_model(start, undisturbed, tmp_path):
    run = tmp_path / "run"
    assert finish(start(run, None, "trainer.max_steps=18")) == 0
    assert finish(start(run, while_averaging)) == -signal.SIGKILL
    assert finish(start(run)) == 0
    weights, expected = (load_file(folder / "model" / "model.safetensors") for folder in (run, undisturbed))
    torch.testing.assert_close(weights, expected, rtol=0, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_run_killed_at_any_moment_ends_as_if_it_had_not_been(start, duration, assert_undisturbed, tmp_path, seed):
    run = tmp_path / "run"
    process = start(run)
    with suppress(subprocess.TimeoutExpired):
        process.wait(random.Random(seed).uniform(0, duration))
    process.kill()
    assert finish(process) in (-signal.SIGKILL, 0)
    assert finish(start(run)) == 0
    assert_undisturbed(run)
