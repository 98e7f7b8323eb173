"""The served models: each has a queue of lines from all clients, and a process that translates them."""

import asyncio
import itertools
import math
import pickle
import sys
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from nmt.config import TranslatorOptions, require
from nmt.files import is_parser
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.worker import Failed, Line, Search, log
from nmt.translation import find_models, flagger, language_tag, languages, stages_of

LONG = 1000  # characters; each longer line forms a separate batch, and only one such batch runs at a time
BATCH_LINES, BATCH_CHARACTERS = 128, 8000  # maximum per batch
BATCH_SECONDS = 0.3  # target time per batch, so that no batch delays the next one for long
BATCH_WAIT = 0.003  # seconds that a batch's first line waits for more lines
TURN_TOKENS = 1500  # maximum tokens per torch search, so that the next text need not wait long
LOADING_SECONDS = 600  # a process that is not ready by then is killed


@dataclass(eq=False)
class WaitingLine:
    text: str
    request: "Request"
    answer: "asyncio.Future[Line]"
    lost: bool = False  # a process died while translating this line; the second time, the line fails

    def give(self, answer: Line | Failed) -> None:
        if not self.answer.done():  # the client may have disconnected
            give: Any = self.answer.set_exception if isinstance(answer, Failed) else self.answer.set_result
            give(answer)
            self.answer.exception()  # or asyncio would log an exception as never retrieved


class Request:
    """One client request; `lines` holds the lines that are not yet in a batch."""

    def __init__(self, search: Search, lines: Iterable[str]) -> None:
        self.search, loop = search, asyncio.get_running_loop()
        self.lines = deque(WaitingLine(line, self, loop.create_future()) for line in lines)
        self.answers = [line.answer for line in self.lines]


class Queue:
    """Requests in the order in which they take turns."""

    def __init__(self) -> None:
        self.requests, self.lost = deque[Request](), deque[WaitingLine]()
        self.new_first = True  # whether the next batch starts with a new request; alternates
        self.most_characters = LONG  # characters translated in about BATCH_SECONDS, as measured so far
        self.changed = asyncio.Event()

    @property
    def lines(self) -> int:
        return len(self.lost) + sum(len(request.lines) for request in self.requests)

    def add(self, request: Request) -> None:
        if request.lines:
            self.requests.append(request)
            self.changed.set()

    def remove(self, request: Request) -> None:
        """Drop a request's lines that are not yet in a batch."""
        self.lost = deque(line for line in self.lost if line.request is not request)
        self.requests = deque(other for other in self.requests if other is not request)

    def fail(self, failure: Failed) -> None:
        """Answer all queued lines with an error."""
        for line in (*self.lost, *(line for request in self.requests for line in request.lines)):
            line.give(failure)
        self.requests.clear()
        self.lost.clear()

    def take(self, most: int = BATCH_LINES, long_too: bool = True) -> list[WaitingLine]:
        """Take a batch of at most `most` lines with the same search settings; requests take turns line by line.

        Every second batch starts with a new request. A long line gets its own batch, or stays queued if `long_too` is
        false. Lines that may have crashed a process go first, one per batch.
        """
        if self.lost:
            return [self.lost.popleft()]
        turns = deque(request for request in self.requests if long_too or len(request.lines[0].text) <= LONG)
        new = (n for n, request in enumerate(turns) if self.new_first and len(request.lines) == len(request.answers))
        self.new_first = not self.new_first
        turns.rotate(-next(new, 0))
        batch, characters = list[WaitingLine](), 0
        while turns and len(batch) < most and characters < self.most_characters:
            request = turns.popleft()
            alone = len(request.lines[0].text) > LONG
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
        """Update the batch size based on a batch's translation time."""
        if characters > self.most_characters / 2:  # a smaller batch says little about speed
            in_time = round(BATCH_SECONDS * characters / max(seconds, 0.001))
            self.most_characters = max(LONG, min(BATCH_CHARACTERS, in_time))


class Worker:
    """The server's side of a model's process; a call that exceeds its time limit kills the process."""

    facts: Any  # ModelTasks.facts
    ended = ""  # how the process ended; empty while it is running

    async def begin(self, options: TranslatorOptions) -> "Worker":
        """Start the process; raise Failed if it does not become ready."""
        self.numbers, self.answers = itertools.count(), dict[int, asyncio.Future[Any]]()
        code = f"import sys; sys.path[:] = {sys.path!r}; from nmt.plugins.serve.worker import main; main()"
        pipes: Any = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "limit": 2**20}
        self.process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, **pipes, start_new_session=True)
        self.reading = asyncio.create_task(self.read())
        try:
            self.facts = await self.call(LOADING_SECONDS, options)
        except BaseException:
            self.kill()
            raise
        return self

    async def read(self) -> None:
        """Relay the process's answers until it exits."""
        assert self.process.stdout
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                size = int.from_bytes(await self.process.stdout.readexactly(8))
                number, answer = pickle.loads(await self.process.stdout.readexactly(size))
                if (future := self.answers.get(number)) and not future.done():
                    future.set_result(answer)
        code = await self.process.wait()
        self.ended = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
        for future in self.answers.values():
            if not future.done():
                future.set_result(self.loss())

    def loss(self) -> Failed:
        return Failed(503, f"the worker process {self.ended}; send the request again", 1, lost=True)

    async def call(self, seconds: float, *arguments: Any) -> Any:
        """Create the process's `ModelTasks`; in later calls, call its `translate`. Raise Failed if that fails."""
        if self.ended:
            raise self.loss()
        number = next(self.numbers)
        future = self.answers[number] = asyncio.get_running_loop().create_future()
        assert self.process.stdin
        try:
            async with asyncio.timeout(seconds):
                with suppress(OSError):  # the process may have just exited; `read` then sets the answer
                    self.process.stdin.write(pickle.dumps((number, *arguments)))
                    await self.process.stdin.drain()
                answer = await future
        except TimeoutError as error:
            self.kill()
            raise Failed(503, f"not translated within {seconds:g} seconds; send less text per request") from error
        finally:
            del self.answers[number]
        if isinstance(answer, Failed):
            raise answer
        return answer

    def kill(self) -> None:
        self.ended = self.ended or "was killed by the server"
        with suppress(ProcessLookupError):
            self.process.kill()


class ServedModel:
    """A model and its process; raises NMTError if the model cannot be read or is not for translation."""

    worker: Worker | None = None
    batches, long_lines = 0, 0  # batches being translated, and how many of them are a single long line

    def __init__(self, name: str, config: ServeConfig) -> None:
        self.name, self.seconds, self.queue = name, config.limits.seconds, Queue()
        models = _, [description], tokenizer = find_models([name])
        self.flags_of = flagger(models)
        require(not is_parser(description), f"run={name}: is a parser; use `nmt parse`")
        targets = languages(tokenizer)
        self.source = description.source
        self.tags = {language: language_tag(language, tokenizer) for language in targets} or {description.target: ""}
        """Maps target languages to their tags with a trailing space; the tag of a sole target language is empty."""
        decode = config.translator.decode
        decode = replace(decode, batch_tokens=min(TURN_TOKENS, decode.batch_tokens))
        self.options = replace(config.translator, run=[name], target=next(iter(targets), None), decode=decode)
        stages_of(self.options)  # checks glossaries

    async def loaded(self) -> Worker:
        """The process, started if it is not running; raises Failed if the model cannot be loaded."""
        if self.worker and self.worker.ended:
            log(f"{self.name}: process {self.worker.process.pid} {self.worker.ended}")
            self.worker = None
        if not self.worker:
            begun = time.monotonic()
            try:
                self.worker = await Worker().begin(self.options)
            except Failed as error:
                log(f"{self.name}: the model cannot be loaded: {error.detail}")
                raise Failed(503, f"the model cannot be loaded: {error.detail}", 1) from error
            seconds, (_, engine) = time.monotonic() - begun, self.worker.facts
            log(f"{self.name}: loaded with {engine} in {seconds:.1f} s as process {self.worker.process.pid}")
        return self.worker

    async def run(self) -> None:
        """Load the model, and translate queued lines until the server stops."""
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
                # Allow at least two batches: while the search runs on one, the other is encoded or decoded.
                if self.queue.lines and self.batches < max(2, searches):
                    # Leave some lines for further searches, which can run in parallel.
                    most = math.ceil(self.queue.lines / max(1, searches - self.batches))
                    batch = self.queue.take(min(most, BATCH_LINES), long_too=not self.long_lines)
                if batch:
                    self.batches += 1
                    self.long_lines += len(batch[0].text) > LONG
                    group.create_task(self.translate(worker, batch))
                else:
                    await self.queue.changed.wait()

    async def translate(self, worker: Worker, batch: list[WaitingLine]) -> None:
        """Translate a batch and deliver the result for each of its lines."""
        begun, texts = time.monotonic(), [line.text for line in batch]
        try:
            answers = await worker.call(self.seconds, batch[0].request.search, texts)
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
        self.long_lines -= len(batch[0].text) > LONG
        self.queue.changed.set()
