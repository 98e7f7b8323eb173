"""The queue of a model, in which the requests of all clients take turns to fill batches."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt.plugins.serve.failures import Failed
from nmt.plugins.serve.parsing import Line

LONG = 1000
"""In characters. Each longer line is a separate batch, and only one such batch runs at a time."""
BATCH_LINES = 128
"""The maximum number of lines of a batch."""
BATCH_CHARACTERS = 8000
"""The maximum number of characters of a batch."""
BATCH_SECONDS = 0.3
"""The target time per batch, so that no batch delays the next one for long."""


class Search(NamedTuple):
    """The search settings for a line; the same for all lines in a batch."""

    tag: str = ""
    """The target language's tag, with a trailing space."""
    n_best: int = 1
    aligned: bool = False
    prefix: str | None = None
    """The beginning of each translation; the next word differs."""
    rest: str = ""
    """The translation so far after the prefix."""


# Compared by identity: two lines with the same text are different lines.
@dataclass(eq=False)
class WaitingLine:
    text: str
    request: "QueuedRequest"
    answer: "asyncio.Future[Line]"

    def give(self, answer: Line | Failed) -> None:
        if self.answer.done():  # the client has disconnected
            return
        if isinstance(answer, Failed):
            self.answer.set_exception(answer)
        else:
            self.answer.set_result(answer)
        # Reading it marks it as retrieved. The request that waits for it may be gone already.
        self.answer.exception()  # or asyncio would log an exception as never retrieved


class QueuedRequest:
    """The lines of a client's request that share their search settings."""

    def __init__(self, search: Search, lines: Iterable[str] = ()) -> None:
        self.search = search
        self.lines = deque[WaitingLine]()
        """The lines that are not yet in a batch."""
        self.answers = list[asyncio.Future[Line]]()
        """The answers of all lines."""
        self.extend(lines)

    @property
    def is_new(self) -> bool:
        """Whether no line has been in a batch."""
        return len(self.lines) == len(self.answers)

    @property
    def begins_with_long_line(self) -> bool:
        return len(self.lines[0].text) > LONG

    def extend(self, lines: Iterable[str]) -> None:
        """Add lines, before the request is queued."""
        # A future for each line, because a request's lines may be in several batches.
        loop = asyncio.get_running_loop()
        for text in lines:
            line = WaitingLine(text, self, loop.create_future())
            self.lines.append(line)
            self.answers.append(line.answer)


class Queue:
    """Requests in the order in which they take turns."""

    def __init__(self) -> None:
        self.requests = deque[QueuedRequest]()
        # True at first, so that the first batch starts with the request that has waited longest.
        self.began_with_new = True
        """Whether the latest batch began with a new request if there was one; alternates."""
        self.most_characters = LONG
        """The characters translated in about BATCH_SECONDS, as measured so far."""

    @property
    def lines(self) -> int:
        return sum(len(request.lines) for request in self.requests)

    def add(self, request: QueuedRequest) -> None:
        if request.lines:
            self.requests.append(request)

    def remove(self, request: QueuedRequest) -> None:
        """Drop a request's lines that are not yet in a batch."""
        self.requests = deque(other for other in self.requests if other is not request)

    def take(self, most: int = BATCH_LINES, long_too: bool = True) -> list[WaitingLine]:
        """Take a batch of at most `most` lines with the same search settings.

        Requests take turns line by line. Every second batch starts with a new request. A long line
        gets its own batch, or stays queued if `long_too` is false.
        """
        turns = self.turns(long_too)
        batch = list[WaitingLine]()
        characters = 0
        # The last line may exceed the limit, so a batch is never empty.
        while turns and len(batch) < most and characters < self.most_characters:
            request = turns.popleft()
            is_long = request.begins_with_long_line
            # Lines that do not fit into this batch wait for a later one.
            if batch and (is_long or request.search != batch[0].request.search):
                continue
            line = request.lines.popleft()
            batch.append(line)
            characters += len(line.text)
            if is_long:
                break
            if request.lines:
                # Behind the others: each request has one line per turn, so a short one leaves with
                # the first batches, however long the others are.
                turns.append(request)
        self.let_wait(batch)
        return batch

    def turns(self, long_too: bool) -> deque[QueuedRequest]:
        """The requests that may take turns in the next batch, beginning with the first one."""
        turns = deque[QueuedRequest]()
        for request in self.requests:
            if long_too or not request.begins_with_long_line:
                turns.append(request)
        # So that a short text waits for one batch of documents at most.
        self.began_with_new = not self.began_with_new
        if self.began_with_new:
            for number, request in enumerate(turns):
                if request.is_new:
                    turns.rotate(-number)
                    break
        return turns

    def let_wait(self, batch: Sequence[WaitingLine]) -> None:
        """Move the requests in a batch behind the others, and drop those without further lines."""
        served = {line.request for line in batch}
        waiting = [request for request in self.requests if request.lines]
        # The sort is stable, so those that were not served keep their order.
        waiting.sort(key=lambda request: request in served)
        self.requests = deque(waiting)

    def took(self, characters: int, seconds: float) -> None:
        """Update the batch size based on a batch's translation time."""
        if characters > self.most_characters / 2:  # a smaller batch says little about speed
            in_time = round(BATCH_SECONDS * characters / max(seconds, 0.001))
            # Enough for any line of up to `LONG` characters, regardless of the measured speed.
            self.most_characters = max(LONG, min(BATCH_CHARACTERS, in_time))
