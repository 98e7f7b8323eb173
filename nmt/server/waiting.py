"""Lines of many clients that wait for a model, and the batches that are made of them."""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from nmt.server.tasks import Failure, Line, Search


@dataclass(eq=False)
class Request:
    """Lines of one client; its `answers` are futures, one for each line."""

    search: Search
    lines: list[str]
    answers: list["asyncio.Future[Line | Failure]"] = field(init=False)
    next: int = 0
    """The index of the first line that is in no batch yet."""

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.answers = [loop.create_future() for _ in self.lines]


Item = tuple[Request, int]
"""A line, as its request and its index there."""


def answer(futures: "Iterable[asyncio.Future[Line | Failure]]", found: Iterable[Line | Failure]) -> None:
    """Set results; some may have been cancelled, as their client is gone, or answered by a failure."""
    for future, each in zip(futures, found, strict=True):
        if not future.done():
            future.set_result(each)


class Waiting:
    """Requests in the order of their arrival."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.lines = 0
        self.arrived = asyncio.Event()

    def add(self, request: Request) -> None:
        self.requests.append(request)
        self.lines += len(request.lines)
        self.arrived.set()

    def remove(self, request: Request) -> None:
        """Forget the lines of a request that are in no batch yet."""
        self.keep([other for other in self.requests if other is not request])

    def take(self, most: int) -> list[Item]:
        """At most this many lines of one kind of search, that of the request that has waited longest; [] if none waits.

        The requests take turns, line by line, so that a long text does not keep short ones waiting.
        """
        turns = deque(request for request in self.requests if request.search == self.requests[0].search)
        items: list[Item] = []
        while turns and len(items) < most:
            request = turns.popleft()
            items.append((request, request.next))
            request.next += 1
            if request.next < len(request.lines):
                turns.append(request)
        self.keep([request for request in self.requests if request.next < len(request.lines)])
        return items

    def keep(self, requests: list[Request]) -> None:
        """Forget all but these requests."""
        self.requests = deque(requests)
        self.lines = sum(len(request.lines) - request.next for request in requests)
        if not requests:
            self.arrived.clear()

    def fail(self, failure: Failure) -> None:
        """Answer all lines that wait."""
        for request in self.requests:
            answer(request.answers, [failure] * len(request.answers))
        self.keep([])
