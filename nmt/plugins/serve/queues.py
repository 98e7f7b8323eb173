"""The queue of a model, in which the requests of all clients take turns to fill batches."""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt.plugins.serve.failures import Failed
from nmt.plugins.serve.parsing import Line
from nmt.translation import UNKNOWN, Direction

LONG_LINE = 1000
"""In characters. Each longer line is a batch of its own, and only one such batch runs at a time."""
BATCH_LINES = 128
"""The maximum number of lines of a batch."""
BATCH_CHARACTERS = 8000
"""The maximum number of characters of a batch."""
BATCH_SECONDS = 0.3
"""The target time per batch, so that no batch delays the next one for long."""


class Search(NamedTuple):
    """The search settings for a line; the same for all lines in a batch."""

    direction: Direction = UNKNOWN
    """The source and the target language."""
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
        return len(self.lines[0].text) > LONG_LINE

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
        # True before the first batch, which thus starts with the request that has waited longest.
        self.preferred_new = True
        """Whether the latest batch gave its first turn to a new request; alternates."""
        self.most_characters = LONG_LINE
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
        turns = self.next_turns(long_too)
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
        self.move_to_end(batch)
        return batch

    def next_turns(self, long_too: bool) -> deque[QueuedRequest]:
        """The requests in the order of their turns in the next batch.

        In every second batch, the first new request is first. For example, if only C and D are new,
        the order is A B C D, then C D A B. Without `long_too`, requests whose next line is long are
        left out.
        """
        turns = deque[QueuedRequest]()
        for request in self.requests:
            if long_too or not request.begins_with_long_line:
                turns.append(request)
        # A short text thus waits for one batch of documents at most, and a document for one batch
        # of short texts.
        self.preferred_new = not self.preferred_new
        if self.preferred_new:
            for place, request in enumerate(turns):
                if request.is_new:
                    turns.rotate(-place)  # those before it go to the end
                    break
        return turns

    def move_to_end(self, batch: Sequence[WaitingLine]) -> None:
        """Move the requests in a batch behind all others, and drop those without further lines."""
        served = {line.request for line in batch}
        waiting = [request for request in self.requests if request.lines]
        # The sort is stable, so both groups keep their order.
        waiting.sort(key=lambda request: request in served)
        self.requests = deque(waiting)

    def adapt_size(self, characters: int, seconds: float) -> None:
        """Fit the size of batches to the speed of one: its number of `characters` and `seconds`."""
        # A batch of less than half the size says little about speed.
        if characters <= self.most_characters / 2:
            return
        in_time = round(BATCH_SECONDS * characters / max(seconds, 0.001))
        # Enough for any line of up to `LONG_LINE` characters, whatever was measured.
        self.most_characters = max(LONG_LINE, min(BATCH_CHARACTERS, in_time))
