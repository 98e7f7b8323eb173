"""A pool whose only worker is this process, in place of a cluster."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nmt.plugins.cluster.worker import BlockWorker, WorkerFacts


class Stopped(Exception):
    """The pool has done as many blocks as it was asked for."""


class ThisProcess:
    """A pool of one worker, which answers in an order of its own, and may stop early."""

    def __init__(self, worker: BlockWorker, seed: int, blocks: int | None) -> None:
        self.worker = worker
        self.generator = random.Random(seed)
        self.blocks = blocks
        self.done = 0
        self.most_open = 0

    def run(self, tasks: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
        window = []
        for task in tasks:
            window.append(task)
            self.most_open = max(self.most_open, len(window))
            if len(window) == 4:
                yield self.answer(window)
        while window:
            yield self.answer(window)

    def answer(self, window: list[Any]) -> tuple[Any, Any]:
        if self.done == self.blocks:
            raise Stopped
        self.done += 1
        task = window.pop(self.generator.randrange(len(window)))
        return task, self.worker.compute(task.texts.lines, task.texts.rows)

    def state(self) -> str:
        return "1 worker"

    def summary(self) -> str:
        return "this process"


class Pools:
    """Opens pools of this process, and keeps them."""

    def __init__(self, seed: int = 1, blocks: int | None = None) -> None:
        self.seed = seed
        self.blocks = blocks
        self.opened: list[ThisProcess] = []

    @contextmanager
    def open(self, work: Any, identity: Any) -> Iterator[ThisProcess]:
        worker = BlockWorker(work)
        facts = worker.load()
        assert isinstance(facts, WorkerFacts)
        assert facts.identity.items() <= identity.items()
        self.opened.append(ThisProcess(worker, self.seed, self.blocks))
        yield self.opened[-1]
