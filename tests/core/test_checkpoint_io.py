"""Checkpoints that a thread writes while training continues, forced here on a CPU."""

import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config import NMTError
from nmt.training import list_checkpoints
from nmt.training.checkpoint_io import BackgroundCheckpointIO, DirectCheckpointIO, checkpoint_io
from tests.core.test_exact import names, tensors
from tests.core.test_interruption import LONGER, full_disk


class SlowDisk:
    """Lets `torch.save` wait until the test allows it, and keeps a list of what happened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[str] = []
        self.allowed = threading.Semaphore(0)
        self.error: Exception | None = None
        save = torch.save

        def slow_save(content: Any, path: Path) -> None:
            assert self.allowed.acquire(timeout=60)
            if self.error:
                raise self.error
            save(content, path)
            self.events.append(f"wrote {content['name']}")

        monkeypatch.setattr(torch, "save", slow_save)

    def after(self, name: str) -> Callable[[], None]:
        return partial(self.events.append, f"after {name}")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SlowDisk:
    return SlowDisk(monkeypatch)


@pytest.fixture
def writer(disk: SlowDisk) -> Iterator[BackgroundCheckpointIO]:
    writer = BackgroundCheckpointIO()
    yield writer
    disk.allowed.release(9)
    writer.teardown()


def test_only_a_cpu_waits_for_the_disk():
    kinds = {name: type(checkpoint_io(torch.device(name))) for name in ("cpu", "cuda", "mps")}
    background = BackgroundCheckpointIO
    assert kinds == {"cpu": DirectCheckpointIO, "cuda": background, "mps": background}


def test_a_file_contains_the_state_at_the_moment_of_the_save(tmp_path, disk, writer):
    weight = torch.arange(6.0).reshape(2, 3)
    moments = {0: {"step": torch.tensor(1.0), "exp_avg": weight.t().clone().t()}}
    counts = {"done": [1, (2, torch.ones(0))]}
    content = {"name": "a", "source": weight, "target": weight.view(2, 3), "row": weight[1]}
    content |= {"optimizer": moments, "counts": counts}
    writer.save_checkpoint(content, tmp_path / "a.ckpt")
    # What an update does: tensors change in place, and the optimizer replaces some.
    weight.zero_()
    moments[0]["step"] += 1
    moments[0]["exp_avg"] = None
    counts["done"][0] = 7
    content["name"] = "b"
    disk.allowed.release()
    writer.finish()
    saved = torch.load(tmp_path / "a.ckpt", weights_only=True)
    assert saved.pop("name") == "a"
    before = torch.arange(6.0).reshape(2, 3)
    expected = {"source": before, "target": before, "row": before[1]}
    expected |= {"optimizer": {0: {"step": torch.tensor(1.0), "exp_avg": before}}}
    expected |= {"counts": {"done": [1, (2, torch.ones(0))]}}
    torch.testing.assert_close(saved, expected, rtol=0, atol=0)
    assert saved["source"].data_ptr() == saved["target"].data_ptr()  # tied weights are written once


def test_a_save_waits_for_the_previous_write(tmp_path, disk, writer):
    def save(name: str) -> None:
        writer.save_checkpoint({"name": name}, tmp_path / name, disk.after(name))
        disk.events.append(f"saved {name}")

    save("a")
    second = threading.Thread(target=save, args=["b"])
    second.start()
    second.join(0.2)
    assert second.is_alive()
    assert disk.events == ["saved a"]
    disk.allowed.release()
    second.join(60)
    assert disk.events == ["saved a", "wrote a", "after a", "saved b"]
    disk.allowed.release()
    writer.finish()
    assert disk.events[4:] == ["wrote b", "after b"]


def test_a_copy_is_freed_as_soon_as_it_is_written(tmp_path, writer, disk, monkeypatch):
    copies = []
    empty_like = torch.empty_like

    def watched(*arguments, **named):
        copy = empty_like(*arguments, **named)
        copies.append(weakref.ref(copy))
        return copy

    monkeypatch.setattr(torch, "empty_like", watched)
    writer.save_checkpoint({"name": "a", "weight": torch.ones(3)}, tmp_path / "a")
    assert copies[0]() is not None
    disk.allowed.release()
    writer.finish()
    deadline = time.monotonic() + 10
    while copies[0]() is not None:  # the thread lets go of it just after the write has ended
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_failed_write_is_reported_by_the_next_save_and_at_the_end(tmp_path, disk, writer):
    disk.error = OSError(28, "No space left on device")
    disk.allowed.release()
    writer.save_checkpoint({"name": "a"}, tmp_path / "a", disk.after("a"))
    for report in (partial(writer.save_checkpoint, {"name": "b"}, tmp_path / "b"), writer.finish):
        with pytest.raises(NMTError, match=r"cannot write .*/a \(No space left on device\)"):
            report()
    assert disk.events == []
    assert list(tmp_path.iterdir()) == []


def test_an_abandoned_write_leaves_nothing(tmp_path, disk, writer):
    writer.save_checkpoint({"name": "a"}, tmp_path / "a", disk.after("a"))
    writer.abandon()
    disk.allowed.release()
    writer.teardown()
    assert disk.events == ["wrote a"]
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def in_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs in this process write their checkpoints like those on an accelerator."""
    monkeypatch.setattr(
        "nmt.training.trainer.checkpoint_io", lambda device: BackgroundCheckpointIO()
    )


SHORT = (
    "trainer.max_steps=40",
    "checkpoints.every_steps=6",
    "checkpoints.keep=2",
    "validation.every_steps=12",
)


@pytest.fixture
def direct(toy: list[str], trained: Callable[..., Path]) -> Path:
    """A run on a CPU, which waits for its writes."""
    return trained(*toy, *SHORT)


@pytest.mark.slow
def test_writing_in_the_background_produces_the_same_files(
    toy, trained, metrics, monkeypatch, direct, in_the_background
):
    save = torch.save
    in_threads = []

    def slow_save(*arguments: Any) -> None:
        in_threads.append(threading.current_thread() is not threading.main_thread())
        time.sleep(0.05)  # several updates
        save(*arguments)

    monkeypatch.setattr(torch, "save", slow_save)
    background = trained(*toy, *SHORT)
    assert in_threads
    assert all(in_threads)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("checkpoint")]
    assert names(background) == names(direct)
    assert (direct / "checkpoints" / "best.ckpt").is_file()
    torch.testing.assert_close(tensors(background), tensors(direct), rtol=0, atol=0)
    assert metrics(background) == metrics(direct)


@pytest.mark.slow
@pytest.mark.parametrize("last", [72, 80], ids=["at the next save", "at the end"])
def test_a_full_disk_ends_training_with_the_message_of_a_direct_write(
    toy, finished, nmt, here, last, in_the_background
):
    run = Path(shutil.copytree(finished, "run"))
    before = {path: path.read_bytes() for path in (run / "checkpoints").iterdir()}
    options = [*LONGER, "checkpoints.every_steps=12", f"trainer.max_steps={last}"]
    with full_disk(60_000):
        outcome = nmt("train", *toy, *options)
    outcome.failed("nmt: cannot write run/checkpoints/step=00000072.ckpt", "is the disk full")
    assert "the model is in" not in outcome.err
    assert {path: path.read_bytes() for path in (run / "checkpoints").iterdir()} == before
    assert nmt("train", *toy, *options).code == 0
    assert list_checkpoints(run)[-1].name == f"step={last:08d}.ckpt"
