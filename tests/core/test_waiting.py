"""Threads that wait for work sleep early while other programs need the cores.

Results stay the same.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.kernels.waiting import SET_BY_USER, busy_seconds, is_crowded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the load from /proc/stat")


@pytest.mark.parametrize(
    ("others", "threads", "cores", "crowded"),
    [
        (0.0, 2, 2, False),
        (0.1, 2, 2, False),  # a music player
        (1.0, 2, 2, True),
        (1.0, 4, 8, False),  # enough cores for all
        (6.0, 4, 8, True),
        (2.0, 1, 2, False),  # a single thread never waits
    ],
)
def test_cores_are_crowded_if_other_programs_leave_too_few(others, threads, cores, crowded):
    assert is_crowded(others, threads, cores) == crowded


def test_the_busy_time_of_all_cores_equals_the_first_row_of_proc_stat():
    first_line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    user, nice, system = map(int, first_line.split()[1:4])
    expected = (user + nice + system) / os.sysconf("SC_CLK_TCK")
    assert busy_seconds(set(range(os.cpu_count()))) == pytest.approx(expected, rel=0.01, abs=1)


def output_of(program: str, **variables: str) -> list[str]:
    """The words that a Python program prints."""
    environment = {name: value for name, value in os.environ.items() if name not in SET_BY_USER}
    environment["OMP_NUM_THREADS"] = "2"
    environment.update(variables)
    process = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout.split()


CHOICES = """
import os, time
import torch
from nmt.kernels import waiting

def threads():
    return len(os.listdir("/proc/self/task"))

def threads_become(is_reached):
    end = time.monotonic() + 20
    while not is_reached(threads()) and time.monotonic() < end:
        time.sleep(0.01)
    return is_reached(threads())

waiting.LoadWatch.wait = lambda *_: None  # this program chooses
watch = waiting.LoadWatch()
x = torch.rand(1 << 20)
total = x.sum()
before = threads()
cores = len(watch.cores)
# libgomp must manage more threads than there are cores: two per team of a thread.
idle_threads = 2 * max(1, cores - 1)
for _ in range(3):
    watch.choose(float(cores), 2)
    watch.choose(float(cores), 2)
    print(threads_become(lambda number: number - before >= idle_threads))
    print(bool(x.sum() == total))
    watch.choose(0.0, 2)
    # Fewer than before if another thread of the program has ended since.
    print(threads_become(lambda number: number <= before))
    print(bool(x.sum() == total))
"""


@pytest.mark.slow
def test_idle_threads_start_and_end_without_changing_a_sum():
    assert output_of(CHOICES) == ["True"] * 12


WATCHING = """
import threading
from nmt import kernels
kernels.prepare()
kernels.prepare()
print(sum(isinstance(thread, threading.Timer) for thread in threading.enumerate()))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variables", "watches"),
    [
        ({}, "1"),
        ({"GOMP_SPINCOUNT": "7"}, "0"),
        ({"OMP_WAIT_POLICY": "PASSIVE"}, "0"),
        ({"KMP_BLOCKTIME": "0"}, "0"),
    ],
)
def test_the_load_is_watched_unless_the_user_decides_how_threads_wait(variables, watches):
    assert output_of(WATCHING, **variables) == [watches]


BESIDE = """
import subprocess, sys, time
from nmt.kernels import waiting

def becomes(is_reached):
    end = time.monotonic() + 60
    while not is_reached() and time.monotonic() < end:
        time.sleep(0.1)
    return is_reached()

watch = waiting.LoadWatch()
busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in watch.cores]
print(becomes(lambda: watch.idle_threads is not None))
for process in busy:
    process.kill()
"""


@pytest.mark.slow
def test_busy_programs_are_noticed():
    assert output_of(BESIDE) == ["True"]
