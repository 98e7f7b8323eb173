"""The served models: their processes, started when needed, and the lines of all clients that wait for them."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from prometheus_client import Counter, Gauge, Histogram

from nmt.config import require
from nmt.errors import NMTError, one_line
from nmt.files import find_model_directory, is_exported, is_parser
from nmt.hardware import available_memory, memory_of
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.worker import Failed, Line, Search, Worker, log
from nmt.translation import find_models, language_tag, languages

LONG = 1000
"""A line with more characters is long: it is searched apart, and one of them at a time."""
BATCH_CHARACTERS = 8000
"""Most characters of a batch."""
BATCH_SECONDS = 0.3
"""A batch has as many characters as take about this long, so that it does not keep the next one waiting."""
NEXT_TRY_SECONDS = 5.0
"""After a model could not be loaded, requests fail at once for this time."""
GIB = 2**30

# Names as in https://prometheus.io/docs/practices/naming.
LINES = Counter("nmt_lines", "Lines to translate, by model.", ["model"])
CHARACTERS = Counter("nmt_characters", "Characters of these lines.", ["model"])
BATCH_LINES = Histogram("nmt_batch_lines", "Lines that were searched together.", buckets=[2**n for n in range(9)])
LOADS = Counter("nmt_model_loads", "Times that a model was loaded.", ["model"])
DEATHS = Counter("nmt_model_deaths", "Processes of a model that ended by themselves.", ["model"])
WAITING = Gauge("nmt_waiting_lines", "Lines that wait for a model.", ["model"])
MEMORY = Gauge("nmt_model_memory_bytes", "Memory of a model's process.", ["model"])


@dataclass(eq=False)
class WaitingLine:
    """A line of a request."""

    text: str
    request: "Request"
    answer: "asyncio.Future[Line | Failed]"
    lost: bool = False
    """A process ended before it answered."""

    @property
    def is_long(self) -> bool:
        return len(self.text) > LONG

    def give(self, answer: Line | Failed) -> None:
        if not self.answer.done():  # else the client is gone
            self.answer.set_result(answer)


class Request:
    """Lines of one client, to be translated from one language into another; `lines` are those in no batch yet."""

    def __init__(self, search: Search, lines: Iterable[str], source: str = "", target: str = "") -> None:
        self.search, self.source, self.target = search, source, target
        loop = asyncio.get_running_loop()
        self.lines = deque(WaitingLine(line, self, loop.create_future()) for line in lines)
        self.answers = [line.answer for line in self.lines]

    async def answered(self) -> AsyncIterator[Line]:
        """The translations in order, each as soon as it is there; Failed for a line that has none."""
        for future in self.answers:
            answer = await future
            if isinstance(answer, Failed):
                raise answer
            yield answer


class Queue:
    """Requests in the order in which they get their turns."""

    def __init__(self) -> None:
        self.requests = deque[Request]()
        self.again = deque[WaitingLine]()
        """Lines whose batch was lost, perhaps through no fault of theirs."""
        self.new_first = True
        """The next batch begins with a new request; the one after it, with any."""
        self.most_characters = LONG
        """Characters that take about BATCH_SECONDS, as measured so far."""
        self.changed = asyncio.Event()

    @property
    def lines(self) -> int:
        return len(self.again) + sum(len(request.lines) for request in self.requests)

    def add(self, request: Request) -> None:
        if request.lines:
            self.requests.append(request)
            self.changed.set()

    def remove(self, request: Request) -> None:
        """Forget the lines of a request that are in no batch yet."""
        self.again = deque(line for line in self.again if line.request is not request)
        with suppress(ValueError):
            self.requests.remove(request)

    def fail(self, failure: Failed) -> None:
        """Answer all lines."""
        for line in [*self.again, *(line for request in self.requests for line in request.lines)]:
            line.give(failure)
        self.again.clear()
        self.requests.clear()

    def take(self, most: int, long_too: bool = True) -> list[WaitingLine]:
        """A batch of at most `most` lines with the same search; empty if there are none.

        The requests take turns, line by line, so that a long text does not keep short ones waiting. So do the kinds of
        search, and every second batch begins with a new request, however many documents there are. A long line, and
        one whose batch was lost, goes alone, and a long one with `long_too=False` not at all.
        """
        if self.again:
            return [self.again.popleft()]
        turns = deque(request for request in self.requests if long_too or not request.lines[0].is_long)
        new = (n for n, request in enumerate(turns) if self.new_first and len(request.lines) == len(request.answers))
        self.new_first = not self.new_first
        turns.rotate(-next(new, 0))
        turns = deque(request for request in turns if request.search == turns[0].search)
        batch, characters = list[WaitingLine](), 0
        while turns and len(batch) < most and characters < self.most_characters:
            request = turns.popleft()
            if batch and request.lines[0].is_long:
                continue
            batch.append(request.lines.popleft())
            characters += len(batch[-1].text)
            if batch[-1].is_long:
                break
            if request.lines:
                turns.append(request)
        served = {line.request for line in batch}
        self.requests = deque(request for request in sorted(self.requests, key=served.__contains__) if request.lines)
        return batch

    def took(self, characters: int, seconds: float) -> None:
        """Learn from a batch how many characters the next one may have."""
        most = self.most_characters
        if characters > most / 2:  # a smaller batch says little, and some kinds of search are slower
            in_time = round(BATCH_SECONDS * characters / max(seconds, 0.001))
            self.most_characters = max(LONG, min(BATCH_CHARACTERS, 2 * most, in_time))


class Directions(NamedTuple):
    """The source language of a model, and the tag of each target language with a blank; empty for the only one."""

    source: str
    tags: dict[str, str]


def read_directions(run: str, config: ServeConfig) -> Directions:
    """The directions of a model; NMTError where there is none that translates, or the engine cannot read it."""
    [folder], [description], tokenizer = find_models([run])
    ours = config.translator.compute.engine != "torch" or not is_exported(folder)
    require(ours, f"run={run}: exported for another program; pass engine=ctranslate2")
    require(not is_parser(description), f"run={run}: a parser; `nmt parse` uses it")
    tags = {language: language_tag(language, tokenizer) for language in languages(tokenizer)}
    return Directions(description.source, tags or {description.target: ""})


def state_of(run: str) -> dict[str, tuple[int, int, int]]:
    """Inode, size and time of each file of a model, which change when it is replaced; NMTError where there is none."""
    folder = find_model_directory(run).resolve()
    stats = {str(path): path.stat() for path in sorted(folder.iterdir()) if path.is_file()}
    return {name: (stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


class ModelWorker(Worker):
    """A process with a model."""

    def __init__(self, name: str, config: ServeConfig) -> None:
        self.directions = read_directions(name, config)
        target = next((target for target, tag in self.directions.tags.items() if tag), None)
        super().__init__("model", (config.options_for(name, target),), config.limits.seconds)
        self.batches = 0
        """Batches that are not answered yet."""

    async def end_when_idle(self) -> None:
        while self.batches:
            await asyncio.sleep(0.05)
        await self.end()


class ServedModel:
    """A model, in memory or not. `run` has to run beside everything else."""

    worker: ModelWorker | None = None
    failure, next_try = Failed(503, ""), -math.inf
    """Why the model could not be loaded, and until when requests fail for it."""
    problem = ""
    """Why the model is not replaced by what is on the disk, as logged."""
    long_lines = 0
    """Long lines in batches that are not answered yet."""

    def __init__(self, name: str, config: ServeConfig, make_room: Callable[[int], Awaitable[None]]) -> None:
        self.name, self.config, self.make_room = name, config, make_room
        self.state = self.seen = state_of(name)
        self.directions = read_directions(name, config)
        self.queue, self.loading = Queue(), asyncio.Lock()
        self.used = time.monotonic()
        self.tasks: set[asyncio.Task[None]] = set()
        WAITING.labels(name).set_function(lambda: self.queue.lines)
        MEMORY.labels(name).set_function(
            lambda: 0 if self.worker is None or self.worker.ended else memory_of(self.worker.process.pid)
        )

    @property
    def is_idle(self) -> bool:
        """True if it is in memory and nobody waits for it."""
        return bool(self.worker and not self.worker.batches and not self.queue.lines and not self.loading.locked())

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine beside the others; a task that nobody holds might be collected."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def start(self) -> ModelWorker:
        """A new process with the model that is on the disk; Failed if it cannot be loaded."""
        begun = time.monotonic()
        try:
            state = state_of(self.name)
            # Files are in memory twice while they are read, beside Python's libraries.
            await self.make_room(2 * sum(size for _, size, _ in state.values()) + 400 * 2**20)
            worker = ModelWorker(self.name, self.config)
            await worker.begin()
            if state_of(self.name) != state:
                await worker.end()
                raise NMTError("its files changed while it was loaded")
        except (NMTError, OSError, Failed) as error:
            raise Failed(503, f"the model cannot be loaded: {one_line(error)}", 1) from error
        LOADS.labels(self.name).inc()
        log(f"{self.name}: loaded in {time.monotonic() - begun:.1f} s as process {worker.process.pid}")
        self.directions = worker.directions
        return worker

    async def loaded(self) -> ModelWorker:
        """The process, which is started if there is none; Failed if it cannot be."""
        async with self.loading:
            if self.worker and self.worker.ended:
                log(f"{self.name}: process {self.worker.process.pid} has ended, {self.worker.ended}")
                DEATHS.labels(self.name).inc()
                self.worker = None
            if not self.worker:
                if time.monotonic() < self.next_try:
                    raise self.failure
                try:
                    self.worker = await self.start()
                except Failed as failure:
                    self.failure, self.next_try = failure, time.monotonic() + NEXT_TRY_SECONDS
                    log(f"{self.name}: {failure}")
                    raise
            self.used = time.monotonic()
            return self.worker

    async def run(self) -> None:
        """Answer the lines that wait, for as long as the server runs."""
        while True:
            self.queue.changed.clear()
            batch: list[WaitingLine] = []
            if self.queue.lines:
                try:
                    worker = await self.loaded()
                except Failed as failure:
                    self.queue.fail(failure)
                    continue
                if not worker.batches:
                    await asyncio.sleep(self.config.batch_wait)
                # While one task is searched, another is made tokens or text; one of them at most holds a long line.
                if worker.batches < max(2, worker.searches):
                    # Leave lines for each search that could run beside this one.
                    most = math.ceil(self.queue.lines / max(1, worker.searches - worker.batches))
                    batch = self.queue.take(min(most, self.config.batch_lines), long_too=not self.long_lines)
            if batch:
                worker.batches += 1
                self.long_lines += batch[0].is_long
                self.keep(self.translate(worker, batch))
            else:
                await self.queue.changed.wait()

    async def translate(self, worker: ModelWorker, batch: list[WaitingLine]) -> None:
        """Have a batch translated, and answer its lines."""
        begun, (source, tags) = time.monotonic(), worker.directions
        lines = [line for line in batch if line.request.source == source and line.request.target in tags]
        for line in set(batch) - set(lines):
            line.give(Failed(503, "the model was replaced by one for other languages", 1))
        texts = [tags[line.request.target] + line.text for line in lines]
        BATCH_LINES.observe(len(batch))
        try:
            answers = await worker.call("translate", batch[0].request.search, texts) if lines else []
            self.queue.took(sum(map(len, texts)), time.monotonic() - begun)
        except Failed as failure:
            answers = [failure] * len(lines)
        for line, answer in zip(lines, answers, strict=True):
            if isinstance(answer, Failed) and answer.lost and not line.lost and not line.answer.done():
                line.lost = True  # it is unknown which line a process died of: each gets a second try, alone
                self.queue.again.append(line)
            else:
                line.give(answer)
        worker.batches -= 1
        self.long_lines -= batch[0].is_long
        self.queue.changed.set()

    async def replace_if_changed(self) -> None:
        """Load the new model from the same place once its files have come to rest; requests are answered meanwhile."""
        state = await asyncio.to_thread(state_of, self.name)
        if state == self.state or state != self.seen:
            self.seen = state
            return
        self.state = state  # tried once, whatever comes of it
        self.next_try = -math.inf
        async with self.loading:
            if self.worker:
                before, self.worker = self.worker, await self.start()
                self.keep(before.end_when_idle())
            else:
                self.directions = await asyncio.to_thread(read_directions, self.name, self.config)

    async def unload(self) -> None:
        """Give the memory back."""
        worker, self.worker = self.worker, None
        if worker:
            log(f"{self.name}: unloaded")
            await worker.end_when_idle()

    async def watch(self) -> None:
        """Replace the model if it changed on the disk, and unload it if it is unused."""
        try:
            await self.replace_if_changed()
            self.problem = ""
        except (NMTError, Failed, OSError) as error:
            if self.problem != str(error):
                log(f"{self.name}: not replaced by what lies there now: {one_line(error)}")
            self.problem = str(error)
        minutes = self.config.unload_minutes
        if minutes and self.is_idle and time.monotonic() - self.used > 60 * minutes:
            await self.unload()


class Models:
    """The models in the order in which they were named; NMTError where one of them cannot be served."""

    def __init__(self, config: ServeConfig) -> None:
        self.config = config
        self.models = [ServedModel(name, config, self.make_room) for name in config.run]
        self.tasks: list[asyncio.Future[Any]] = []

    def begin(self) -> None:
        """Answer requests from now on, while the event loop runs."""
        loading = [model.loaded() for model in self.models if self.config.preload]
        self.tasks = [asyncio.create_task(work) for work in (self.watch(), *(model.run() for model in self.models))]
        self.tasks.append(asyncio.gather(*loading, return_exceptions=True))

    def pairs(self) -> dict[str, dict[str, ServedModel]]:
        """The models by source and target language; of two for the same languages, the first."""
        pairs: dict[str, dict[str, ServedModel]] = {}
        for model in self.models:
            for target in model.directions.tags:
                pairs.setdefault(model.directions.source, {}).setdefault(target, model)
        return pairs

    def languages(self) -> list[str]:
        """The codes of all languages."""
        pairs = self.pairs()
        return list(dict.fromkeys([*pairs, *(target for targets in pairs.values() for target in targets)]))

    async def make_room(self, needed: int) -> None:
        """Unload models that nobody uses, the longest unused one first, until there is memory for `needed` bytes."""
        for model in sorted((model for model in self.models if model.is_idle), key=lambda model: model.used):
            if available_memory() >= needed + self.config.free_memory * GIB:
                return
            await model.unload()

    async def watch(self) -> None:
        """Each second: replace models that changed on the disk, and unload those that are unused or have no room."""
        while True:
            await asyncio.sleep(1)
            for model in self.models:
                await model.watch()
            if sum(model.worker is not None for model in self.models) > 1:
                await self.make_room(0)

    async def end(self) -> None:
        """End all processes."""
        for task in self.tasks:
            task.cancel()
        for model in self.models:
            if model.worker:
                await model.worker.end()
