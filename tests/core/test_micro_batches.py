"""Updates are whole, on any number of devices, and however a run was stopped before."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.training import list_checkpoints
from nmt.training.run_folder import checkpoint_path


@pytest.fixture(scope="module")
def toy(toy: list[str]) -> list[str]:
    """Updates of four micro-batches, so that two processes accumulate too."""
    return [*toy, "batching.micro_batches=4"]


@pytest.fixture(scope="module")
def finished(toy: list[str], trained: Callable[..., Path]) -> Path:
    """A run of 60 updates on one process."""
    return trained(*toy, "checkpoints.every_steps=12")


def test_a_checkpoint_of_twice_as_many_devices_goes_on_with_whole_updates(toy, finished, nmt, training_state):
    """Two devices count half as many micro-batches; at an odd update, half of that is no whole update of one."""
    run = Path(shutil.copytree(finished, "run"))
    for path in list_checkpoints(run)[1:]:
        path.unlink()
    [first] = list_checkpoints(run)
    content = torch.load(first, weights_only=True)
    progress = content["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    for counts in (progress["total"], progress["current"]):
        # As after an odd number of micro-batches of two devices.
        counts |= {key: value // 2 + 1 for key, value in counts.items()}
    torch.save(content, first)
    shutil.rmtree(run / "model")
    assert nmt("train", *toy, "run=run", "checkpoints.every_steps=12").code == 0
    torch.testing.assert_close(training_state(run), training_state(finished), rtol=0, atol=0)


def test_time_that_is_up_ends_a_run_behind_a_whole_update(toy, nmt, training_state, finished):
    options = [*toy, "run=run", "checkpoints.every_steps=12", "checkpoints.keep=2"]
    outcome = nmt("train", *options, "trainer.max_time=1s")
    assert outcome.code == 0
    [*_, last] = list_checkpoints(Path("run"))
    if last != checkpoint_path(Path("run"), 60):
        assert "stopped by trainer.max_time" in outcome.err
        assert "of 60; the same command resumes there" in outcome.err
    assert nmt("train", *options).code == 0
    torch.testing.assert_close(training_state(Path("run")), training_state(finished), rtol=0, atol=0)
