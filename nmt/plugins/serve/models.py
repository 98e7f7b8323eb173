"""The served models: their processes, started when needed, and the lines of all clients that wait for them."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from nmt.config import require
from nmt.files import is_parser
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.worker import Failed, Line, Search, Worker, log
from nmt.translation import find_models, language_tag, languages, stages_of

LONG = 1000
"""A line with more characters is long: it is searched apart, and one of them at a time."""
BATCH_LINES = 128
"""Most lines of a batch."""
BATCH_CHARACTERS = 8000
"""Most characters of a batch."""
BATCH_SECONDS = 0.3
"""A batch has as many characters as take about this long, so that it does not keep the next one waiting."""
BATCH_WAIT = 0.003
"""Seconds that the first line waits for others, to be searched with them."""
TURN_TOKENS = 1500
"""Most tokens that are searched at once, so that the next text is searched soon."""


@dataclass(eq=False)
class WaitingLine:
    """A line of a request."""

    text: str
    request: "Request"
    answer: "asyncio.Future[Line]"
    lost: bool = False
    """Its process ended before; a second time, it fails."""

    @property
    def is_long(self) -> bool:
        return len(self.text) > LONG

    def give(self, answer: Line | Failed) -> None:
        if not self.answer.done():  # else the client is gone
            give: Any = self.answer.set_exception if isinstance(answer, Failed) else self.answer.set_result
            give(answer)
            self.answer.exception()  # else an exception that nobody waits for is logged


class Request:
    """Lines of one client; `lines` are those in no batch yet."""

    def __init__(self, search: Search, lines: Iterable[str]) -> None:
        self.search, loop = search, asyncio.get_running_loop()
        self.lines = deque(WaitingLine(line, self, loop.create_future()) for line in lines)
        self.answers = [line.answer for line in self.lines]


class Queue:
    """Requests in the order in which they get their turns."""

    def __init__(self) -> None:
        self.requests, self.lost = deque[Request](), deque[WaitingLine]()
        self.new_first = True
        """The next batch begins with a new request; the one after it, with any."""
        self.most_characters = LONG
        """Characters that take about BATCH_SECONDS, as measured so far."""
        self.changed = asyncio.Event()

    @property
    def lines(self) -> int:
        return len(self.lost) + sum(len(request.lines) for request in self.requests)

    def add(self, request: Request) -> None:
        if request.lines:
            self.requests.append(request)
            self.changed.set()

    def remove(self, request: Request) -> None:
        """Forget the lines of a request that are in no batch yet."""
        self.lost = deque(line for line in self.lost if line.request is not request)
        with suppress(ValueError):
            self.requests.remove(request)

    def fail(self, failure: Failed) -> None:
        """Answer all lines."""
        for line in (*self.lost, *(line for request in self.requests for line in request.lines)):
            line.give(failure)
        self.requests.clear()
        self.lost.clear()

    def take(self, most: int = BATCH_LINES, long_too: bool = True) -> list[WaitingLine]:
        """A batch of at most `most` lines with the same search; empty if there are none.

        The requests take turns, line by line, so that a long text does not keep short ones waiting. So do the kinds of
        search, and every second batch begins with a new request, however many documents there are. A long line goes
        alone, and with `long_too=False` not at all. Lines that a process took with it go first and alone, because one
        of them may have ended it.
        """
        if self.lost:
            return [self.lost.popleft()]
        turns = deque(request for request in self.requests if long_too or not request.lines[0].is_long)
        new = (n for n, request in enumerate(turns) if self.new_first and len(request.lines) == len(request.answers))
        self.new_first = not self.new_first
        turns.rotate(-next(new, 0))
        batch, characters = list[WaitingLine](), 0
        while turns and len(batch) < most and characters < self.most_characters:
            request = turns.popleft()
            alone = request.lines[0].is_long
            if batch and (alone or request.search != batch[0].request.search):
                continue
            batch.append(request.lines.popleft())
            characters += len(batch[-1].text)
            if alone:
                break
            if request.lines:
                turns.append(request)
        served = {line.request for line in batch}
        self.requests = deque(request for request in sorted(self.requests, key=served.__contains__) if request.lines)
        return batch

    def took(self, characters: int, seconds: float) -> None:
        """Learn from a batch how many characters the next one may have."""
        if characters > self.most_characters / 2:  # a smaller batch says little
            in_time = round(BATCH_SECONDS * characters / max(seconds, 0.001))
            self.most_characters = max(LONG, min(BATCH_CHARACTERS, in_time))


class ServedModel:
    """A model and its process; NMTError where it does not translate, or cannot be read."""

    worker: Worker | None = None
    batches, long_lines = 0, 0
    """Batches that are not answered yet, and those of them that have a long line."""

    def __init__(self, name: str, config: ServeConfig) -> None:
        self.name, self.seconds, self.queue = name, config.limits.seconds, Queue()
        _, [description], tokenizer = find_models([name])
        require(not is_parser(description), f"run={name}: a parser; `nmt parse` uses it")
        targets = languages(tokenizer)
        self.source = description.source
        self.tags = {language: language_tag(language, tokenizer) for language in targets} or {description.target: ""}
        """The tag of each target language with a blank; empty for the only one."""
        decode = config.translator.decode
        decode = replace(decode, batch_tokens=min(TURN_TOKENS, decode.batch_tokens))
        self.options = replace(config.translator, run=[name], target=next(iter(targets), None), decode=decode)
        stages_of(self.options)  # which reads glossaries

    async def loaded(self) -> Worker:
        """The process, which is started if there is none; Failed if it cannot be."""
        if self.worker and self.worker.ended:
            log(f"{self.name}: process {self.worker.process.pid} has ended, {self.worker.ended}")
            self.worker = None
        if not self.worker:
            begun = time.monotonic()
            try:
                self.worker = await Worker(self.seconds).begin(self.options)
            except Failed as error:
                log(f"{self.name}: the model cannot be loaded: {error.detail}")
                raise Failed(503, f"the model cannot be loaded: {error.detail}", 1) from error
            seconds, (_, engine) = time.monotonic() - begun, self.worker.facts
            log(f"{self.name}: loaded by {engine} in {seconds:.1f} s as process {self.worker.process.pid}")
        return self.worker

    async def run(self) -> None:
        """Load the model, and answer the lines that wait, for as long as the server runs."""
        async with asyncio.TaskGroup() as group:
            while True:
                self.queue.changed.clear()
                try:
                    worker = await self.loaded()
                except Failed as failure:
                    self.queue.fail(failure)
                    await self.queue.changed.wait()
                    continue
                if self.queue.lines and not self.batches:
                    await asyncio.sleep(BATCH_WAIT)
                searches, batch = worker.facts[0], list[WaitingLine]()
                # While one task is searched, another is made tokens or text; one of them at most holds a long line.
                if self.queue.lines and self.batches < max(2, searches):
                    # Leave lines for each search that could run beside this one.
                    most = math.ceil(self.queue.lines / max(1, searches - self.batches))
                    batch = self.queue.take(min(most, BATCH_LINES), long_too=not self.long_lines)
                if batch:
                    self.batches += 1
                    self.long_lines += batch[0].is_long
                    group.create_task(self.translate(worker, batch))
                else:
                    await self.queue.changed.wait()

    async def translate(self, worker: Worker, batch: list[WaitingLine]) -> None:
        """Have a batch translated, and answer its lines."""
        begun, texts = time.monotonic(), [line.text for line in batch]
        try:
            answers = await worker.call(batch[0].request.search, texts)
            self.queue.took(sum(map(len, texts)), time.monotonic() - begun)
        except Failed as failure:
            answers = [failure] * len(batch)
        for line, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Failed) and answer.lost and not line.lost and not line.answer.done():
                line.lost = True
                self.queue.lost.append(line)
            else:
                line.give(answer)
        self.batches -= 1
        self.long_lines -= batch[0].is_long
        self.queue.changed.set()
