"""All models that are served: which one translates between two languages, and which ones are in memory."""

import asyncio
import time

from nmt.errors import NMTError, one_line
from nmt.hardware import available_memory
from nmt.plugins.serve.config import ServeConfig
from nmt.plugins.serve.metrics import Metrics
from nmt.plugins.serve.model import ServedModel
from nmt.plugins.serve.process import NotLoaded
from nmt.plugins.serve.worker import log

WATCH_SECONDS = 1.0
GIB = 2**30


class Models:
    """The models in the order in which they were named; NMTError where one of them cannot be served."""

    def __init__(self, config: ServeConfig, metrics: Metrics) -> None:
        self.config = config
        self.models = [ServedModel(name, config, metrics, self.make_room) for name in config.run]
        self.tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Answer requests from now on, while the event loop runs."""
        self.tasks = [asyncio.create_task(model.run()) for model in self.models]
        if self.config.preload:
            self.tasks += [asyncio.create_task(model.preload()) for model in self.models]
        self.tasks.append(asyncio.create_task(self.watch()))

    def pairs(self) -> dict[str, dict[str, ServedModel]]:
        """The models by source and target language; of two for the same languages, the first."""
        found: dict[str, dict[str, ServedModel]] = {}
        for model in self.models:
            for target in model.directions.targets:
                found.setdefault(model.directions.source, {}).setdefault(target, model)
        return found

    def languages(self) -> list[str]:
        """The codes of all languages."""
        pairs = self.pairs()
        return list(dict.fromkeys([*pairs, *(target for targets in pairs.values() for target in targets)]))

    def loaded(self) -> list[ServedModel]:
        return [model for model in self.models if model.process and not model.process.ended]

    async def make_room(self, needed: int) -> None:
        """Unload models that nobody uses, the longest unused one first, until there is memory for `needed` bytes."""
        idle = sorted((model for model in self.loaded() if model.is_idle), key=lambda model: model.used)
        for model in idle:
            if available_memory() >= needed + self.config.free_memory * GIB:
                return
            await model.unload()

    async def watch(self) -> None:
        """Each second: take over models that were replaced, and unload those that are unused or have no room."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for model in self.models:
                try:
                    await model.replace_if_changed()
                    model.problem = ""
                except (NMTError, NotLoaded, OSError) as error:
                    if model.problem != str(error):  # told once
                        log(f"{model.name}: not replaced by what lies there now: {one_line(error)}")
                    model.problem = str(error)
                unused = time.monotonic() - model.used
                if self.config.unload_minutes and unused > 60 * self.config.unload_minutes and model.is_idle:
                    await model.unload()
            if len(self.loaded()) > 1:
                await self.make_room(0)

    def end(self) -> None:
        """End all processes."""
        for task in self.tasks:
            task.cancel()
        for model in self.models:
            if model.process:
                model.process.end()
                model.process.process.join()
