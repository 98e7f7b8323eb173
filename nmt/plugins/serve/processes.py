"""The processes that parse documents.

Clients take turns, and short documents do not wait for long ones.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from anyio import BrokenWorkerProcess, CapacityLimiter, to_process

from nmt.config import NMTError
from nmt.plugins.serve.failures import Failed
from nmt.plugins.serve.parsing import SentDocument, file_name

T = TypeVar("T")
MEMORY = 2**30
"""The maximum memory of a process, in bytes."""
SHORT_SECONDS = 2
"""Maximum CPU time to parse or write a short document."""
LONG_SECONDS = 10
"""Maximum CPU time for a long document."""
# Apart from the long ones, or a few documents that use up their time would delay all uploads until
# requests run into the time limit.
SHORT_PROCESSES = 2
LONG_PROCESSES = 1
LONG_BYTES = 2**18
"""Documents above this size count as long without an attempt."""
MOST_OF_NAME = 100
"""Characters of a file's name in a message."""
NEWEST = 0.2
"""The weight of the newest document in the average time."""


class Lane:
    """A number of processes for documents that take up to some seconds of CPU time."""

    def __init__(self, processes: int, seconds: int, average: float) -> None:
        # Passed to the process, which sets them for itself; see `parsed`.
        self.limits = (MEMORY, seconds)
        self.processes = processes
        self.free = processes
        # By client, so that one with a hundred documents delays each of the others by one document.
        self.waiting = OrderedDict[str, deque[asyncio.Future[None]]]()
        """The waiting documents by client; the first client is next."""
        self.average = average
        """The seconds that a document occupies a process."""

    def wait_of(self, client: str) -> float:
        """The seconds that a client's next document has to wait.

        Clients take turns, so each of the client's documents waits for one of every other client.
        """
        if self.free:
            return 0.0
        turns = len(self.waiting.get(client, ())) + 1
        ahead = 0
        for documents in self.waiting.values():
            ahead += min(len(documents), turns)
        return (ahead + 1) * self.average / self.processes

    @asynccontextmanager
    async def turn(self, client: str, patience: float) -> AsyncIterator[None]:
        """Wait for a process and occupy it; raises Failed if none is free in `patience` seconds."""
        if self.free:
            self.free -= 1
        else:
            try:
                async with asyncio.timeout(patience):
                    await self.wait(client)
            except TimeoutError as error:
                raise too_busy(self.wait_of(client)) from error
        # Without the wait, because the average is the time that a document occupies a process.
        begin = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - begin
            self.average += NEWEST * (seconds - self.average)
            self.leave()

    async def wait(self, client: str) -> None:
        place = asyncio.get_running_loop().create_future()
        self.waiting.setdefault(client, deque()).append(place)
        try:
            await place
        except asyncio.CancelledError:
            # A place that has been given to the client must be passed on, or its process would be
            # lost.
            if place.cancelled():
                with suppress(KeyError, ValueError):
                    self.waiting[client].remove(place)
            else:  # the process became free at the same moment
                self.leave()
            raise

    def leave(self) -> None:
        """Pass a process on to the next client."""
        while self.waiting:
            client, places = self.waiting.popitem(last=False)
            # The others have disconnected.
            waiting = deque(place for place in places if not place.done())
            if not waiting:
                continue
            # The process goes to its successor directly. If it became free in between, a newcomer
            # could take it.
            waiting.popleft().set_result(None)
            if waiting:
                self.waiting[client] = waiting  # at the end
            return
        self.free += 1


class Parsers:
    """Parses documents in processes with limits.

    `patience` is how many seconds a document may have to wait.
    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.short = Lane(SHORT_PROCESSES, SHORT_SECONDS, average=0.2)
        self.long = Lane(LONG_PROCESSES, LONG_SECONDS, average=10.0)
        # The lanes limit the processes already. anyio's own limit is the number of cores, which
        # could be lower.
        self.limiter = CapacityLimiter(SHORT_PROCESSES + LONG_PROCESSES)

    async def run(
        self, client: str, function: Callable[..., T], document: SentDocument, *arguments: Any
    ) -> T:
        """Run a function on a document. The process is killed if the client disconnects.

        Raises Failed if the document is unsuitable or has to wait for too long.
        """
        if len(document.content) <= LONG_BYTES:
            try:
                return await self.run_in(self.short, client, function, document, *arguments)
            # SIGXCPU ended it; see `RLIMIT_CPU` in `parsed`. The document then counts as a long
            # one.
            except BrokenWorkerProcess:  # killed: the document takes longer
                pass
        try:
            return await self.run_in(self.long, client, function, document, *arguments)
        except BrokenWorkerProcess as error:
            raise too_large(document) from error

    async def run_in(
        self,
        lane: Lane,
        client: str,
        function: Callable[..., T],
        document: SentDocument,
        *arguments: Any,
    ) -> T:
        # Refused at once, and not after the wait, so that a client can try again elsewhere or
        # later.
        wait = lane.wait_of(client)
        if wait > self.patience:
            raise too_busy(wait)
        async with lane.turn(client, self.patience):
            try:
                return await to_process.run_sync(
                    function,
                    lane.limits,
                    document,
                    *arguments,
                    # A client that leaves ends its process: anyio kills it.
                    cancellable=True,
                    limiter=self.limiter,
                )
            except NMTError as error:
                raise Failed(400, f"{label_of(document)}: {error}") from error
            # Exceeding the memory is an exception in the process, which survives.
            except MemoryError as error:
                raise too_large(document) from error


def too_busy(wait: float) -> Failed:
    problem = "too many documents are waiting; try again later"
    return Failed(503, problem, retry_seconds=max(1, round(wait)))


def label_of(document: SentDocument) -> str:
    """The name of a client's file for messages."""
    return file_name(document.name)[:MOST_OF_NAME] or "file"


def too_large(document: SentDocument) -> Failed:
    most = f"{MEMORY // 2**20:,} MiB of memory or {LONG_SECONDS} seconds"
    return Failed(400, f"{label_of(document)}: parsing takes more than {most}; split the file")
