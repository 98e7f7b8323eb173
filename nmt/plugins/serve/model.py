"""A model that is served: its process, which is started when the model is first asked for, and the lines that wait."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

from nmt.errors import NMTError, one_line
from nmt.plugins.serve.config import ServeConfig
from nmt.plugins.serve.directions import Directions, bytes_of, files_of, read_directions
from nmt.plugins.serve.metrics import Metrics
from nmt.plugins.serve.process import ModelProcess, NotLoaded
from nmt.plugins.serve.tasks import Answer, Batch, Failure, WordAlternatives
from nmt.plugins.serve.waiting import LONG, Item, Request, Waiting, answer
from nmt.plugins.serve.worker import log

NEXT_TRY_SECONDS = 5.0
"""After a model could not be loaded, requests fail at once for so long."""


def of_directions(items: list[Item], directions: Directions) -> tuple[list[Item], list[Item]]:
    """Lines of the languages of a model, and those of others."""
    own: list[Item] = []
    others: list[Item] = []
    for request, index in items:
        fits = request.source == directions.source and request.target in directions.targets
        (own if fits else others).append((request, index))
    return own, others


class ServedModel:
    """A model, whether it is in memory or not. `run` has to run beside everything else."""

    def __init__(
        self, name: str, config: ServeConfig, metrics: Metrics, make_room: Callable[[int], Awaitable[None]]
    ) -> None:
        self.name, self.config, self.metrics, self.make_room = name, config, metrics, make_room
        self.files, self.directions = files_of(name), read_directions(name, config.engine)
        self.seen = self.files
        self.failed: tuple[float, str] = (-math.inf, "")
        """When the model could not be loaded, and why."""
        self.problem = ""
        """Why the model is not replaced by what lies there."""
        self.long_lines = 0
        """Long lines that are translated."""
        self.waiting = Waiting()
        self.process: ModelProcess | None = None
        self.loading = asyncio.Lock()
        self.used = time.monotonic()
        self.tasks: set[asyncio.Task[None]] = set()

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a coroutine run beside the others; a task that nobody holds might be collected."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    @property
    def is_idle(self) -> bool:
        """True if it is in memory, and nobody waits for it."""
        process = self.process
        return process is not None and not process.pending and not self.waiting.lines and not self.loading.locked()

    async def begin_process(self) -> ModelProcess:
        """A new process with the model as it is now on disk; NotLoaded where that fails."""
        begun = time.monotonic()
        try:
            files = files_of(self.name)
            await self.make_room(bytes_of(self.name))
            directions = read_directions(self.name, self.config.engine)
            settings = self.config.translating(self.name, directions.default)
            process = ModelProcess(settings, directions, self.config.limits.seconds)
            await process.begin()
            if files_of(self.name) != files:
                process.end()
                raise NotLoaded("its files changed while it was loaded")
        except (NMTError, OSError) as error:
            raise NotLoaded(one_line(error)) from error
        self.metrics.loads.labels(self.name).inc()
        log(f"{self.name}: loaded in {time.monotonic() - begun:.1f} s as process {process.process.pid}")
        return process

    async def loaded(self) -> ModelProcess:
        """The model's process; it is started if there is none. NotLoaded where that fails."""
        async with self.loading:
            if self.process and self.process.ended:
                log(f"{self.name}: process {self.process.process.pid} has ended, {self.process.how_it_ended}")
                self.metrics.deaths.labels(self.name).inc()
                self.process = None
            if not self.process:
                when, why = self.failed
                if time.monotonic() < when + NEXT_TRY_SECONDS:
                    raise NotLoaded(why)
                self.process = await self.first_process()
            self.used = time.monotonic()
            return self.process

    async def first_process(self) -> ModelProcess:
        """`begin_process`, whose failure is logged, and remembered for a while."""
        try:
            process = await self.begin_process()
        except NotLoaded as error:
            self.failed = time.monotonic(), str(error)
            log(f"{self.name}: cannot be loaded: {error}")
            raise
        self.directions = process.directions
        return process

    async def preload(self) -> None:
        """Load the model before anybody asks for it."""
        with suppress(NotLoaded):  # which is logged
            await self.loaded()

    async def run(self) -> None:
        """Answer the lines that wait, for as long as the server runs."""
        while True:
            await self.waiting.arrived.wait()
            try:
                process = await self.loaded()
            except NotLoaded as error:
                self.waiting.fail(Failure(f"the model cannot be loaded: {error}", broken=True))
                continue
            if not process.pending:
                await asyncio.sleep(self.config.batch_wait)
            await process.free.acquire()
            items: list[Item] = []
            self.waiting.changed.clear()
            if process is self.process and not process.ended:
                # Some for each search that could go on beside this one.
                most = math.ceil(self.waiting.lines / max(1, process.searches - len(process.pending)))
                items = self.waiting.take(min(most, self.config.batch_lines), long_too=not self.long_lines)
            if items:
                self.keep(self.translate(process, items))
                continue
            process.free.release()
            if self.waiting.lines and process is self.process and not process.ended:
                await self.waiting.changed.wait()  # a long line waits for the end of another one

    async def translate(self, process: ModelProcess, items: list[Item]) -> None:
        """Have a batch translated by a free place of a process, and answer its lines."""
        items, others = of_directions(items, process.directions)
        answer(others, [Failure("the model was replaced by one for other languages", broken=True)] * len(others))
        lines = [process.directions.targets[request.target] + request.lines[index] for request, index in items]
        long_lines = sum(len(line) > LONG for line in lines)
        self.long_lines += long_lines
        self.metrics.batch_lines.observe(len(items))
        begun = time.monotonic()
        found = await process.answer(Batch(items[0][0].search, lines)) if items else []
        self.long_lines -= long_lines
        self.waiting.changed.set()
        process.free.release()
        if isinstance(found, Failure):
            # Which line a process died of is not known: each gets a second try, alone.
            again = [(request, index) for request, index in items if found.again and index not in request.lost]
            for request, index in again:
                request.lost.add(index)
            self.waiting.retry(again)
            answer([item for item in items if item not in again], [found] * (len(items) - len(again)))
        else:
            self.waiting.took(sum(map(len, lines)), time.monotonic() - begun)
            answer(items, found)

    async def alternatives(self, target: str, task: WordAlternatives) -> Answer | Failure:
        """The answer to a click on a word; NotLoaded where the model cannot be."""
        lost = False
        while True:
            process = await self.loaded()
            async with process.free:
                if process is self.process and not process.ended:  # else it was replaced while this one waited
                    tag = process.directions.targets.get(target, "")
                    found = await process.answer(replace(task, line=tag + task.line))
                    if lost or not isinstance(found, Failure) or not found.again:
                        return found
                    lost = True

    def add(self, request: Request) -> None:
        """Have the lines of a request translated."""
        self.used = time.monotonic()
        self.waiting.add(request)

    async def replace_if_changed(self) -> None:
        """Take over a new model from the same place, once its files have come to rest; requests go on meanwhile."""
        files = await asyncio.to_thread(files_of, self.name)
        if files == self.files or files != self.seen:
            self.seen = files
            return
        self.files = files  # tried once, whatever comes of it
        self.failed = (-math.inf, "")
        async with self.loading:
            if self.process:
                before, self.process = self.process, await self.begin_process()
                self.keep(before.end_when_idle())
                self.directions = self.process.directions
            else:
                self.directions = await asyncio.to_thread(read_directions, self.name, self.config.engine)

    async def unload(self) -> None:
        """Give the memory back."""
        before, self.process = self.process, None
        if before:
            log(f"{self.name}: unloaded")
            await before.end_when_idle()
