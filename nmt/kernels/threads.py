"""OpenMP's threads on cores that other programs use too.

The threads of a training wait for one another hundreds of times in an update. With libgomp they do so awake, for up to
milliseconds, which is fastest on cores of their own. Where another program has one of the cores, they wait for a thread
that is not running, and use up its time: beside one busy program, a training on two cores fell to a thirtieth of its
speed. But libgomp lets them sleep at once where it has more threads than cores. So on crowded cores `ShortWaits` makes
it start some more, which do nothing. Products are shared out among as many threads as before, and stay the same to the
bit.
"""

import threading
from pathlib import Path

import torch

from nmt.hardware import usable_cores

PARALLEL_NUMBERS = 2**20
"""Numbers of an operation that torch shares out among its threads."""


def seconds_waited() -> dict[str, float]:
    """Thread of this process -> how long it has been ready to run and had no core; empty where that is unknown."""
    waited = {}
    for task in Path("/proc/self/task").glob("*"):
        try:
            waited[task.name] = int((task / "schedstat").read_text().split()[1]) / 1e9
        except (OSError, IndexError):  # the thread has just ended, or the kernel does not count
            continue
    return waited


class ShortWaits:
    """While started, the threads of this process that wait for others sleep; only libgomp's need it."""

    def __init__(self) -> None:
        self.ended: threading.Event | None = None

    @property
    def started(self) -> bool:
        return self.ended is not None

    def start(self) -> None:
        """Start so many threads that do nothing that libgomp has more of them than there are cores."""
        assert self.ended is None
        self.ended, threads = threading.Event(), torch.get_num_threads()
        groups = max(usable_cores() - threads, 0) // max(threads - 1, 1) + 1
        begun = threading.Barrier(groups + 1)
        for _ in range(groups):
            threading.Thread(target=hold_threads, args=(begun, self.ended), daemon=True).start()
        begun.wait()

    def stop(self) -> None:
        """End these threads."""
        if self.ended:
            self.ended.set()
            self.ended = None


def hold_threads(begun: threading.Barrier, ended: threading.Event) -> None:
    """Keep the threads that OpenMP starts for a thread of ours, which are as many as those of the training."""
    torch.ones(PARALLEL_NUMBERS).neg_()
    begun.wait()
    ended.wait()
