"""Training beside other programs: threads that wait sleep, and nothing else changes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from nmt.kernels import ShortWaits, seconds_waited
from nmt.training import crowding


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def threads() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


@pytest.mark.usefixtures("two_threads")
def test_short_waits_change_no_bit_of_a_training(toy, nmt, training_state, monkeypatch):
    shorter = ("trainer.max_steps=20", "checkpoints.every_steps=20")
    monkeypatch.setattr(crowding, "SECONDS_BETWEEN", 1e9)
    assert "other programs" not in nmt("train", *toy, *shorter, "run=free").err
    monkeypatch.setattr(crowding, "CROWDED", -1.0)
    monkeypatch.setattr(crowding, "SECONDS_BETWEEN", 0.0)
    before = threads()
    crowded = nmt("train", *toy, *shorter, "run=crowded")
    assert crowded.err.count("other programs use the processor's cores") == 1
    torch.testing.assert_close(*(training_state(Path(run)) for run in ("free", "crowded")), rtol=0, atol=0)
    assert threads() <= before + 1  # a thread that was told to end may still do so


@pytest.mark.usefixtures("two_threads")
def test_there_are_more_threads_than_cores_while_waits_are_short():
    torch.ones(2**20).neg_()
    waits, before = ShortWaits(), threads()
    waits.start()
    assert waits.started
    assert threads() - before >= 2  # one of ours, and one that OpenMP started for it
    waits.stop()
    assert not waits.started


@pytest.mark.skipif(not seconds_waited(), reason="this kernel does not count how long threads wait for a core")
def test_a_thread_that_shares_a_core_waits_for_it():
    program = (
        "import os, time; from nmt.kernels.threads import seconds_waited\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "if os.fork() == 0:\n"
        "    while os.getppid() != 1 and time.process_time() < 5: pass\n"
        "    os._exit(0)\n"
        "begin = time.monotonic()\n"
        "while time.monotonic() < begin + 1: pass\n"
        "print(max(seconds_waited().values()))\n"
        "os._exit(0)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert float(done.stdout.split()[0]) > 0.2
