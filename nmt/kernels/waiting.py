"""Threads that wait for work sleep soon while other programs need the cores.

On a CPU, torch computes with threads of libgomp. Between two kernels, each thread looks for work
for milliseconds before it sleeps. On an idle machine, that is fastest. Beside a busy program, a
thread that only looks for work takes the core from a thread that computes, and all threads wait for
its result: a busy program on two cores makes training ten times as slow (benchmarks/busy.py).

libgomp looks for work only briefly if it manages more threads than the process has cores (wait.h
in its source code). So `LoadWatch` adds threads that do nothing, as long as other programs keep
cores busy. Kernels use as many threads as before, so their results have the same bits.
"""

import atexit
import os
import sys
import threading
import time
from contextlib import suppress
from math import ceil
from pathlib import Path

import torch

FIRST_INTERVAL = 0.25
"""Seconds until the first check of the load, because a program may be busy from the start."""

INTERVAL = 1.0
"""Seconds between two checks of the load."""

NEGLIGIBLE = 0.2
"""Cores that other programs may keep busy before waiting threads sleep soon."""

PARALLEL = 1 << 20
"""The size of a tensor that torch sums with all its threads."""

SET_BY_USER = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME", "KMP_LIBRARY")
"""The environment variables that decide how the threads of OpenMP wait."""


def busy_seconds(cores: set[int]) -> float:
    """The CPU time that all programs have used on these cores since the machine started."""
    ticks = 0
    statistics = Path("/proc/stat").read_text(encoding="ascii")
    for line in statistics.splitlines():
        name, *times = line.split()
        # The line "cpu" alone is the sum of all cores. Times after the third are idle time, waiting
        # for disks, interrupts and other virtual machines (proc(5)).
        core = name.removeprefix("cpu")
        if core.isdecimal() and int(core) in cores:
            user, nice, system = times[:3]
            ticks += int(user) + int(nice) + int(system)
    return ticks / os.sysconf("SC_CLK_TCK")


def is_crowded(others: float, threads: int, cores: int) -> bool:
    """Whether programs that keep `others` cores busy leave too few cores for this many threads."""
    # A single thread waits for no other.
    return threads > 1 and threads + others > cores + NEGLIGIBLE


class IdleThreads:
    """More threads of libgomp than the process has cores, until `end` is called."""

    def __init__(self, threads: int, cores: int) -> None:
        self.is_over = threading.Event()
        # libgomp counts the threads of all teams. Each team adds its threads but one.
        missing = max(1, cores + 1 - threads)
        teams = ceil(missing / (threads - 1))
        self.owners: list[threading.Thread] = []
        try:
            for _ in range(teams):
                # A daemon, because Python waits for other threads before it calls atexit functions,
                # so `end` would never run.
                owner = threading.Thread(target=self.keep_team, daemon=True)
                owner.start()
                self.owners.append(owner)
        except RuntimeError:  # no memory for another thread
            self.end()

    def keep_team(self) -> None:
        # libgomp starts a team for each thread that needs one, and ends the team with that thread.
        torch.ones(PARALLEL).sum()
        self.is_over.wait()

    def end(self) -> None:
        self.is_over.set()
        for owner in self.owners:
            owner.join()


class LoadWatch:
    """Looks at the load of the machine each second, and chooses between long and short waits."""

    def __init__(self) -> None:
        self.cores = os.sched_getaffinity(0)
        self.idle_threads: IdleThreads | None = None
        self.lock = threading.Lock()
        self.is_over = False
        self.look_after(FIRST_INTERVAL)
        # Python ends daemon threads at their next instruction. In torch, that aborts the process.
        atexit.register(self.end)

    def look_after(self, seconds: float) -> None:
        self.began = time.monotonic()
        self.others = self.seconds_of_others()
        # `end` may run at the same time. After it, no timer may start.
        with self.lock:
            if self.is_over:
                return
            # A new thread each time: a thread sees torch's number of threads as of its start.
            self.timer = threading.Timer(seconds, self.look)
            self.timer.daemon = True
            with suppress(RuntimeError):  # no memory for another thread: the choice remains
                self.timer.start()

    def seconds_of_others(self) -> float:
        """The CPU time of all other programs since the machine started, less a constant."""
        # Both clocks count from different times, so only differences of this value mean something.
        return busy_seconds(self.cores) - time.process_time()

    def look(self) -> None:
        seconds = time.monotonic() - self.began
        others = (self.seconds_of_others() - self.others) / seconds
        self.choose(others, torch.get_num_threads())
        self.look_after(INTERVAL)

    def choose(self, others: float, threads: int) -> None:
        """Make waits short while other programs, which keep `others` cores busy, need the cores."""
        crowded = is_crowded(others, threads, len(self.cores))
        if crowded and self.idle_threads is None:
            self.idle_threads = IdleThreads(threads, len(self.cores))
        elif not crowded and self.idle_threads is not None:
            self.idle_threads.end()
            self.idle_threads = None

    def end(self) -> None:
        with self.lock:
            self.is_over = True
        self.timer.cancel()
        # A timer for which there was no memory never started, and cannot be joined.
        if self.timer.ident is not None:
            self.timer.join()
        if self.idle_threads is not None:
            self.idle_threads.end()


_is_watching = threading.Lock()


def watch_load() -> None:
    """Watch the load from now on, once in a process, unless the user decides how threads wait."""
    by_user = any(name in os.environ for name in SET_BY_USER)
    if sys.platform != "linux" or by_user:
        return
    # Never released: only the first call in a process starts a watch, even if threads race.
    if _is_watching.acquire(blocking=False):
        LoadWatch()
