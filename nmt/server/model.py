"""A model that is served: its process, which is started when the model is first asked for, and the lines that wait."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from nmt.config.serving import ServeConfig
from nmt.errors import NMTError
from nmt.model_directory.description import find_model_directory, is_parser
from nmt.server.metrics import Metrics
from nmt.server.process import ModelProcess, NotLoaded
from nmt.server.tasks import Answer, Batch, Failure, WordAlternatives
from nmt.server.waiting import Item, Request, Waiting, answer
from nmt.server.worker import log
from nmt.translation.load import find_models
from nmt.translation.targets import language_tag, languages

Files = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and time of each file of a model."""


@dataclass
class Directions:
    """The languages of a model."""

    source: str
    targets: dict[str, str]
    """The tag of each target language with a blank; empty for the only one."""


def files_of(run: str) -> Files:
    """What tells a model from the one that replaces it; NMTError where there is none."""
    folder = find_model_directory(run).resolve()
    found = [(path, path.stat()) for path in sorted(folder.iterdir()) if path.is_file()]
    return tuple((str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns) for path, stat in found)


def bytes_of(run: str) -> int:
    """About the memory that a loaded model takes: its files twice while they are read, and Python's libraries."""
    return 2 * sum(size for _, _, size, _ in files_of(run)) + 400 * 2**20


def read_directions(run: str) -> Directions:
    """The directions of a model; NMTError where there is none that translates."""
    _, [description], tokenizer = find_models([run])
    if is_parser(description):
        raise NMTError(f"run={run}: a parser; `nmt parse` uses it")
    tags = {language: language_tag(language, tokenizer) for language in languages(tokenizer)}
    return Directions(description.source, tags or {description.target: ""})


class ServedModel:
    """A model, whether it is in memory or not. `run` has to run beside everything else."""

    def __init__(
        self, name: str, config: ServeConfig, metrics: Metrics, make_room: Callable[[int], Awaitable[None]]
    ) -> None:
        self.name, self.config, self.metrics, self.make_room = name, config, metrics, make_room
        self.files, self.directions = files_of(name), read_directions(name)
        self.seen = self.files
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
        try:
            await self.make_room(bytes_of(self.name))
        except NMTError as error:
            raise NotLoaded(str(error)) from error
        process = ModelProcess(self.config.translating(self.name), 2 * self.config.limits.seconds)
        begun = time.monotonic()
        await process.begin()
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
                self.process = await self.begin_process()
            self.used = time.monotonic()
            return self.process

    async def run(self) -> None:
        """Answer the lines that wait, for as long as the server runs."""
        while True:
            await self.waiting.arrived.wait()
            try:
                process = await self.loaded()
            except NotLoaded as error:
                log(f"{self.name}: cannot be loaded: {error}")
                self.waiting.fail(Failure(f"the model cannot be loaded: {error}", broken=True))
                continue
            if not process.pending:
                await asyncio.sleep(self.config.batch_wait)
            await process.free.acquire()
            items = [] if process is not self.process or process.ended else self.waiting.take(self.config.batch_lines)
            if items:
                self.keep(self.translate(process, items))
            else:
                process.free.release()

    async def translate(self, process: ModelProcess, items: list[Item]) -> None:
        """Have a batch translated by a free place of a process, and answer its lines."""
        self.metrics.batch_lines.observe(len(items))
        found = await process.answer(Batch(items[0][0].search, [request.lines[index] for request, index in items]))
        process.free.release()
        each = [found] * len(items) if isinstance(found, Failure) else found
        answer([request.answers[index] for request, index in items], each)

    async def alternatives(self, task: WordAlternatives) -> Answer | Failure:
        """The answer to a click on a word; NotLoaded where the model cannot be."""
        process = await self.loaded()
        async with process.free:
            return await process.answer(task)

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
        directions = await asyncio.to_thread(read_directions, self.name)
        async with self.loading:
            if self.process:
                before, self.process = self.process, await self.begin_process()
                self.keep(before.end_when_idle())
        self.directions = directions

    async def unload(self) -> None:
        """Give the memory back."""
        before, self.process = self.process, None
        if before:
            log(f"{self.name}: unloaded")
            await before.end_when_idle()
