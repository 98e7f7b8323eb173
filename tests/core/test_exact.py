"""A run that is killed at any moment and resumed has the bits of an undisturbed run.

Each killed run is a process of its own.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.helpers.preloaded import python

OPTIONS = [
    "trainer.max_steps=40",
    "checkpoints.every_steps=6",
    "checkpoints.keep=2",
    "validation.every_steps=15",
    "validation.bleu_sentences=4",
]

IN_THE_BACKGROUND = "writing a checkpoint in the background"


def die_at(owner: Any, name: str, call: int, last_words: Callable[..., None] | None = None) -> None:
    """Kill the process at a call of a function, after `last_words` with its arguments."""
    function = getattr(owner, name)
    calls = 0

    def deadly(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            if last_words:
                last_words(function, *arguments, **named)
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)

    setattr(owner, name, deadly)


def half_a_checkpoint(save: Callable[..., None], content: Any, path: Path) -> None:
    save(content, path)
    os.truncate(path, path.stat().st_size // 2)


def half_a_checkpoint_during_updates(save: Callable[..., None], content: Any, path: Path) -> None:
    half_a_checkpoint(save, content, path)
    time.sleep(0.3)  # the next updates are made meanwhile


def half_a_row(write: Callable[..., None], book: Any, metrics: dict[str, float], step: int) -> None:
    whole = book.path.stat().st_size
    write(book, metrics, step)
    os.truncate(book.path, (whole + book.path.stat().st_size) // 2)


def kill_while(moment: str) -> None:
    """Prepare this process to be killed at that moment."""
    from nmt.model import weights
    from nmt.training import trainer
    from nmt.training.checkpoint_io import BackgroundCheckpointIO
    from nmt.training.logbook import Logbook
    from nmt.training.module import TranslationModule
    from nmt.training.validation import Validation

    doom: dict[str, tuple[Any, ...]] = {
        "starting": (Path, "replace", 2),
        "updating": (TranslationModule, "losses", 45),
        "writing a checkpoint": (torch, "save", 3, half_a_checkpoint),
        IN_THE_BACKGROUND: (torch, "save", 3, half_a_checkpoint_during_updates),
        "renaming a checkpoint": (Path, "replace", 6),
        "removing old checkpoints": (Path, "unlink", 5),
        "validating": (Validation, "domain_sums", 2),
        "reporting": (Logbook, "log_metrics", 6, half_a_row),
        "averaging": (weights, "save_file", 1),
    }
    if moment == IN_THE_BACKGROUND:
        trainer.checkpoint_io = lambda device: BackgroundCheckpointIO()
    die_at(*doom[moment])


SLOW = [
    "starting",
    "updating",
    IN_THE_BACKGROUND,
    "renaming a checkpoint",
    "reporting",
    "removing old checkpoints",
]
MOMENTS = [
    "writing a checkpoint",
    "validating",
    "averaging",
    *(pytest.param(x, marks=pytest.mark.slow) for x in SLOW),
]
DOOMED = """
import sys, tempfile
from tests.core import test_exact
from nmt.cli import main

tempfile.tempdir, moment = sys.argv[1:3]
if moment:
    test_exact.kill_while(moment)
sys.argv = ["nmt", "train", *sys.argv[3:]]
main()
"""
Process = subprocess.Popen[bytes]
Start = Callable[..., Process]


@pytest.fixture(scope="module")
def start(toy: list[str]) -> Start:
    """Starts `nmt train run=RUN` in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    def start(run: Path, moment: str = "", *more: str) -> Process:
        temporary = run.with_name("temporary")
        temporary.mkdir(exist_ok=True)
        words = [str(temporary), moment, *toy, *OPTIONS, f"run={run}", *more]
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


def tensors(run: Path) -> dict[str, Any]:
    """The weights of the model; weights, Adam's moments and unreported sums of the checkpoints."""
    contents: dict[str, Any] = {"model": load_file(run / "model" / "model.safetensors")}
    for path in (run / "checkpoints").iterdir():
        content = torch.load(path, weights_only=True)
        contents[path.name] = {
            key: content[key] for key in ("state_dict", "optimizer_states", "sums")
        }
    return contents


def names(run: Path) -> set[str]:
    """The files and folders of a run, without those of TensorBoard: each start adds one."""
    paths = [path for path in run.rglob("*") if path.parent.name != "tensorboard"]
    return {str(path.relative_to(run)) for path in paths}


@pytest.fixture
def assert_undisturbed(undisturbed: Path, metrics) -> Callable[[Path], None]:
    def check(run: Path) -> None:
        assert names(run) == names(undisturbed)
        torch.testing.assert_close(tensors(run), tensors(undisturbed), rtol=0, atol=0)
        assert metrics(run) == metrics(undisturbed)
        assert list(run.with_name("temporary").iterdir()) == []

    return check


@pytest.mark.parametrize(
    "moment", [*MOMENTS, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8))]
)
def test_a_run_killed_at_any_moment_resumes_to_the_same_bits(
    start, assert_undisturbed, tmp_path, moment
):
    run = tmp_path / "run"
    if isinstance(moment, int):
        process = start(run)
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.Random(moment).uniform(0, 10))
        process.kill()
        finish(process)
    else:
        assert finish(start(run, moment)) == -signal.SIGKILL
    assert finish(start(run)) == 0
    assert_undisturbed(run)
