"""Processes that search for an engine on a processor, one thread each.

A step of a search is many small operations, which two threads do hardly faster than one. So each core gets a process
and batches of its own. The processes are forked: they begin within milliseconds, and share the weights in memory.
"""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

from nmt.errors import NMTError
from nmt.model import Transformer
from nmt.preparation import begin, worker_pool

Result = TypeVar("Result")

FORKS = sys.platform == "linux"
"""Elsewhere libraries of the system do not survive a fork."""
WORTH_SHARING = 250
"""Fewest tokens for each worker: with fewer, one process with all threads is as fast, for a worker begins in 25 ms."""

worker_models: Sequence[Transformer]
"""In a worker: the models of the process that it was forked from."""


def begin_worker(models: Sequence[Transformer]) -> None:
    """Begin a worker. With one thread it never waits for the threads of its parent, which a fork leaves behind."""
    global worker_models
    begin()
    torch.set_num_threads(1)
    worker_models = models


def work(task: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
    """In a worker: a task on its models."""
    return task(worker_models, *arguments)


class Workers:
    """`count` processes, which begin with the first tasks."""

    def __init__(self, pool: ProcessPoolExecutor, count: int) -> None:
        self.pool, self.count = pool, count

    def run(self, task: Callable[..., Result], each: Sequence[tuple[Any, ...]]) -> list[Result]:
        """The results of a task for each of these arguments; NMTError if a process was killed.

        Ctrl-C reaches all processes of a terminal, but this process ends the others: they are begun without the signal.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            futures = [self.pool.submit(work, task, arguments) for arguments in each]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            return [future.result() for future in futures]
        except BrokenProcessPool as error:
            raise NMTError("a process that translates died: is memory short? threads=1 is one process alone") from error


@contextmanager
def forked(models: Sequence[Transformer], count: int) -> Iterator[Workers]:
    """Workers that end with the block, and at once after an exception."""
    options = {"mp_context": get_context("fork"), "initializer": begin_worker, "initargs": (models,)}
    with worker_pool(count, **options) as pool:
        yield Workers(pool, count)
