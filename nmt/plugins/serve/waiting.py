"""Lines of many clients that wait for a model, and the batches that are made of them."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nmt.plugins.serve.tasks import Failure, Line, Search

LONG = 1000
"""A line with more characters is long: it is searched apart, and one of them at a time."""
BATCH_CHARACTERS = 8000
"""Most characters of a batch."""
BATCH_SECONDS = 0.3
"""A batch has as many characters as take about this long, so that it does not keep the next one waiting."""


@dataclass(eq=False)
class Request:
    """Lines of one client, to be translated from one language into another; `answers` has a future for each."""

    search: Search
    lines: list[str]
    source: str = ""
    target: str = ""
    answers: list["asyncio.Future[Line | Failure]"] = field(init=False)
    next: int = 0
    """The index of the first line that is in no batch yet."""
    lost: set[int] = field(default_factory=set)
    """Indices of lines whose process ended before it answered."""

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.answers = [loop.create_future() for _ in self.lines]

    @property
    def is_long(self) -> bool:
        """True if its next line is long."""
        return len(self.lines[self.next]) > LONG


Item = tuple[Request, int]
"""A line, as its request and its index there."""


def answer(items: Sequence[Item], found: Iterable[Line | Failure]) -> None:
    """Set results; some may have been cancelled, as their client is gone, or answered by a failure."""
    for (request, index), each in zip(items, found, strict=True):
        if not request.answers[index].done():
            request.answers[index].set_result(each)


class Waiting:
    """Requests in the order in which they get their turns."""

    def __init__(self) -> None:
        self.requests: deque[Request] = deque()
        self.new_first = True
        """The next batch is of a request that has had none; the one after it, of any."""
        self.most_characters = LONG
        """Characters that take about BATCH_SECONDS, as far as is known."""
        self.again: list[Item] = []
        """Lines whose batch was lost through no fault of theirs."""
        self.lines = 0
        self.arrived = asyncio.Event()
        """Set while lines wait."""
        self.changed = asyncio.Event()
        """Set when there may be lines that could not be taken before."""

    def add(self, request: Request) -> None:
        self.requests.append(request)
        self.lines += len(request.lines)
        self.arrived.set()
        self.changed.set()

    def retry(self, items: list[Item]) -> None:
        """Have these lines translated before all others, if anybody still waits for them."""
        self.again += [(request, index) for request, index in items if not request.answers[index].done()]
        self.keep(list(self.requests))
        self.changed.set()

    def remove(self, request: Request) -> None:
        """Forget the lines of a request that are in no batch yet."""
        self.again = [item for item in self.again if item[0] is not request]
        self.keep([other for other in self.requests if other is not request])

    def take(self, most: int, long_too: bool = True) -> list[Item]:
        """At most this many lines of one kind of search; [] if none waits.

        The requests take turns, line by line, so that a long text does not keep short ones waiting. So do the kinds of
        search, and every second batch is for a new request, however many documents there are. A long line is taken
        alone, and with `long_too=False` not at all.
        """
        if self.again:
            items, self.again = self.again[:1], self.again[1:]
            self.keep(list(self.requests))
            return items
        ready = [request for request in self.requests if long_too or not request.is_long]
        new = [request for request in ready if not request.next] if self.new_first else []
        self.new_first = not self.new_first
        turns = deque[Request]()
        if ready:
            first = (new or ready)[0]
            turns = deque(request for request in ready if request.search == first.search)
            turns.rotate(-turns.index(first))
        items, characters = [], 0
        while turns and len(items) < most and characters < self.most_characters:
            request = turns.popleft()
            if request.is_long and items:
                continue
            alone = request.is_long
            items.append((request, request.next))
            characters += len(request.lines[request.next])
            request.next += 1
            if alone:
                break
            if request.next < len(request.lines):
                turns.append(request)
        served = {request for request, _ in items}
        ordered = sorted(self.requests, key=served.__contains__)
        self.keep([request for request in ordered if request.next < len(request.lines)])
        return items

    def took(self, characters: int, seconds: float) -> None:
        """Learn from a batch how many characters the next one may have."""
        most = self.most_characters
        if characters > most / 2:  # a smaller batch says little, and some kinds of search are slower
            in_time = round(BATCH_SECONDS * characters / max(seconds, 0.001))
            self.most_characters = max(LONG, min(BATCH_CHARACTERS, 2 * most, in_time))

    def keep(self, requests: list[Request]) -> None:
        """Forget all but these requests, and what is to be translated again."""
        self.requests = deque(requests)
        self.lines = sum(len(request.lines) - request.next for request in requests) + len(self.again)
        if self.lines:
            self.arrived.set()
        else:
            self.arrived.clear()

    def fail(self, failure: Failure) -> None:
        """Answer all lines that wait."""
        for request in self.requests:
            answer([(request, index) for index in range(len(request.lines))], [failure] * len(request.lines))
        answer(self.again, [failure] * len(self.again))
        self.again = []
        self.keep([])
