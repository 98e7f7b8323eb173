"""Processes that work for the server, as it sees them: tasks go in, futures come out."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from nmt.config import TranslateConfig
from nmt.plugins.serve.directions import Directions
from nmt.plugins.serve.tasks import Answer, Failure, Ready
from nmt.plugins.serve.worker import serve_model, tasks_at_once

LOADING_SECONDS = 600
"""A process that is not ready by then is ended."""


class NotLoaded(Exception):
    """A model could not be loaded; the message says why."""


class WorkerProcess:
    """A process that answers tasks, at most `places` at once; `begin` starts it."""

    def __init__(
        self, main: Callable[[Connection, Any], None], argument: Any, places: int, hang_seconds: float
    ) -> None:
        self.hang_seconds = hang_seconds
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=main, args=(theirs, argument), daemon=True)
        self.theirs = theirs
        self.loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[Ready | Failure] = self.loop.create_future()
        self.pending: dict[int, asyncio.Future[Answer | Failure]] = {}
        self.number = 0
        self.ended = False
        self.free = asyncio.Semaphore(places)
        """Whoever asks for an answer holds it until that has come."""
        self.sending = asyncio.Lock()

    async def begin(self) -> None:
        """Start the process and wait until it is ready; NotLoaded where that fails."""
        await asyncio.to_thread(self.process.start)
        self.theirs.close()
        threading.Thread(target=self.read, daemon=True).start()
        try:
            async with asyncio.timeout(LOADING_SECONDS):
                found = await self.ready
        except TimeoutError:
            found = Failure(f"it was not loaded within {LOADING_SECONDS} seconds")
        except BaseException:
            self.end()
            raise
        if isinstance(found, Failure):
            self.end()
            raise NotLoaded(found.problem)

    def read(self) -> None:
        """In a thread: pass on what the process answers, until it ends."""
        try:
            while True:
                self.tell(self.received, self.connection.recv())
        except (EOFError, OSError):
            self.process.join()
            self.tell(self.lost)

    def tell(self, function: Any, *arguments: Any) -> None:
        """Call a function in the thread of the server, unless that has ended."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, *arguments)

    def received(self, message: Any) -> None:
        if isinstance(message, Ready | Failure):
            if not self.ready.done():
                self.ready.set_result(message)
            return
        number, answer = message
        future = self.pending.pop(number, None)
        if future and not future.done():
            future.set_result(answer)

    def lost(self) -> None:
        """The process has ended: so have its tasks."""
        self.ended, how = True, self.how_it_ended
        if not self.ready.done():
            self.ready.set_result(Failure(f"its process ended {how} while it was loaded; is memory short?"))
        for future in self.pending.values():
            if not future.done():
                future.set_result(self.loss)
        self.pending.clear()

    @property
    def loss(self) -> Failure:
        """The answer to a task that the process took with it."""
        problem = f"the process that translated this ended {self.how_it_ended}; send it again"
        return Failure(problem, broken=True, again=True)

    @property
    def how_it_ended(self) -> str:
        code = self.process.exitcode
        return f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"

    async def answer(self, task: Any) -> Answer | Failure:
        """The answer to a task; a process that does not answer within `hang_seconds` is ended."""
        if self.ended:
            return self.loss
        self.number += 1
        number = self.number
        future: asyncio.Future[Answer | Failure] = self.loop.create_future()
        self.pending[number] = future
        try:
            async with asyncio.timeout(self.hang_seconds):
                # By a thread, because a process that does not read must not stop the server. `lost` answers for a
                # process that has just ended.
                async with self.sending:
                    with suppress(OSError):
                        await asyncio.to_thread(self.connection.send, (number, task))
                return await future
        except TimeoutError:
            self.end()
            return Failure(f"not translated within {self.hang_seconds:g} seconds; send less at once", broken=True)
        finally:
            self.pending.pop(number, None)

    def end(self) -> None:
        """End the process at once."""
        if self.process.pid is not None:
            self.process.kill()

    async def end_when_idle(self) -> None:
        """End the process once all its tasks are answered."""
        while self.pending:
            await asyncio.sleep(0.05)
        self.end()


class ModelProcess(WorkerProcess):
    """A process with a loaded model."""

    def __init__(self, config: TranslateConfig, directions: Directions, hang_seconds: float) -> None:
        super().__init__(serve_model, config, tasks_at_once(config), hang_seconds)
        self.searches = tasks_at_once(config) if config.engine == "ctranslate2" else 1
        """Tasks that are searched in parallel."""
        self.directions = directions
