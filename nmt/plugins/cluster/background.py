"""Threads that wait for file systems while the driver works.

A remote file system needs a while for each request, and serves many at a time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from threading import Event
from typing import Any, Self, TypeVar

from nmt.config import NMTError

THREADS = 16
"""The largest number of requests of a kind at a time."""
LINES = 64_000
"""The lines of the blocks that are read ahead, or are being written, if blocks are large."""
JOINS = 4
"""Files that are joined at a time."""
QUEUE = 64
"""Files that are being joined or are waiting for that."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Calls:
    """Calls that threads make, a bounded number at a time.

    `submit` and `check` raise the error of a call that has failed.
    """

    def __init__(self, threads: int, most: int) -> None:
        self.executor = ThreadPoolExecutor(threads)
        self.most = most
        self.pending = list[Future[Any]]()

    def submit(self, call: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Make a call in a thread; waits while `most` calls are pending."""
        self.check()
        while len(self.pending) >= self.most:
            wait(self.pending, return_when=FIRST_COMPLETED)
            self.check()
        future = self.executor.submit(call, *arguments)
        self.pending.append(future)
        return future

    def check(self) -> None:
        done = [future for future in self.pending if future.done()]
        self.pending = [future for future in self.pending if future not in done]
        for future in done:
            future.result()

    def finish(self) -> None:
        """Wait for all calls."""
        wait(self.pending)
        self.check()


class Background:
    """The threads of a job, whose blocks have `lines` lines.

    At its end, the calls that write finish, also after an error.
    """

    def __init__(self, lines: int) -> None:
        self.blocks = max(1, min(THREADS, LINES // lines))
        """The blocks that are read ahead by the job and by each join, or are being written."""
        self.reads = ThreadPoolExecutor(THREADS)
        self.writes = Calls(self.blocks, self.blocks)
        self.joins = Calls(JOINS, QUEUE)
        self.is_ending = Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.is_ending.set()
        # A join that has begun ends at its next block, and leaves no output.
        self.joins.executor.shutdown(cancel_futures=True)
        self.writes.executor.shutdown()
        self.reads.shutdown(cancel_futures=True)

    def ahead(
        self, call: Callable[[Item], Result], items: Iterable[Item], most: int | None = None
    ) -> Iterator[Result]:
        """As `map`, but makes the calls for the next `most` items in advance.

        By default, `most` is the number of blocks that may be in memory.
        """
        window = deque[Future[Result]]()
        iterator = iter(items)
        for item in islice(iterator, most or self.blocks):
            window.append(self.reads.submit(call, item))
        while window:
            result = window.popleft().result()
            # Before the result is used, so that the threads work meanwhile.
            for item in islice(iterator, 1):
                window.append(self.reads.submit(call, item))
            if self.is_ending.is_set():
                raise NMTError("the job is ending")
            yield result

    def check(self) -> None:
        """Raise the error of a call that has failed."""
        self.writes.check()
        self.joins.check()

    def finish(self) -> None:
        """Wait until all blocks are written, and all files are joined."""
        self.writes.finish()
        self.joins.finish()
