"""Notices that the model in a served folder was replaced, and serves the new one.

`nmt learn` replaces a model while programs use it. A request that has begun keeps its model; each
later one gets the new model as soon as that is loaded.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.config import NMTError, one_line
from nmt.files import MODEL_FILES
from nmt.plugins.serve.failures import log

if TYPE_CHECKING:
    from nmt.plugins.serve.models import ServedModel
    from nmt.plugins.serve.translation import Service

POLL_SECONDS = 1.0
"""The time between two looks at the folders. A notification of the system would not work on all
network file systems."""
Version = tuple[tuple[int, int, int], ...]
"""What changes when one of a model's files is replaced: inode, size and time of each."""


def version_of(folder: Path) -> Version | None:
    """The version of the model in a folder; None while it has no complete one."""
    version = list[tuple[int, int, int]]()
    for name in MODEL_FILES:
        try:
            status = (folder / name).stat()
        except OSError:  # a program may be about to write the file
            return None
        version.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(version)


class Reloader:
    """Looks at the folders of a service's models, and replaces the models whose files changed."""

    def __init__(self, service: "Service", seconds: float) -> None:
        """`seconds` is the time limit of requests, after which no request uses an old model."""
        self.service = service
        self.seconds = seconds
        self.refused = dict[Path, Version]()
        """The versions that could not be loaded, so that they are not tried again."""

    @asynccontextmanager
    async def running(self, app: object) -> AsyncIterator[None]:
        """Look at the folders as long as the application runs."""
        task = asyncio.create_task(self.watch())
        try:
            yield
        finally:
            task.cancel()

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for model in self.service.models:
                await self.check(model)

    async def check(self, old: "ServedModel") -> None:
        """Replace a model if its folder has another version."""
        version = version_of(old.folder)
        if version in (None, old.version, self.refused.get(old.folder)):
            return
        assert version is not None
        try:
            # In a thread, so that the server answers in the meantime.
            new = await asyncio.to_thread(self.load, old)
        # Whatever is wrong with the new model, the old one still works.
        except Exception as error:
            # Unless the folder was replaced again, the same error would come again.
            if version_of(old.folder) == version:
                self.refused[old.folder] = version
                log(f"{old.name}: keeping the old model, the new one fails: {one_line(error)}")
            return
        # Its parts may be of two versions; the next look finds the change.
        if version_of(old.folder) != new.version:
            return
        self.service.replace(old, new)
        log(f"{old.name}: serving the new model")
        # The weights are freed once no request can use them.
        asyncio.get_running_loop().call_later(self.seconds + POLL_SECONDS, old.close)

    def load(self, old: "ServedModel") -> "ServedModel":
        """Load the model that is now in a model's folder; raises NMTError if it does not fit."""
        new = old.reopened()
        if (new.sources, new.targets) != (old.sources, old.targets):
            raise NMTError("it translates between other languages; restart the server")
        new.load()
        return new
