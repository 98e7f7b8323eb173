"""Documents: parsed by processes that may be killed, and kept in memory until they are fetched."""

import asyncio
import re
import secrets
import time
from collections import OrderedDict
from pathlib import PurePath
from typing import Any

from fastapi import HTTPException

from nmt.plugins.serve.process import NotLoaded, WorkerProcess
from nmt.plugins.serve.tasks import Failure, Read, Write
from nmt.plugins.serve.worker import serve_documents

SMALL_BYTES = 2**15
"""Documents of so many bytes together have a process of their own, so that they do not wait for large ones."""
PARSING_BYTES = 2**30
"""Memory of such a process."""
PARSING_SECONDS = 10
"""Seconds of processor time that documents may take to be read, or to be written."""
AT_ONCE = 16
"""Uploads that are held in memory at the same time."""
KEPT_SECONDS = 600
MOST_BYTES = 64 * 2**20
"""Bytes of all files together; the oldest ones make room."""


def safe_name(name: str, target: str) -> str:
    """The name of the translation of a file: letters, digits, dots and dashes alone."""
    path = PurePath(name.replace("\\", "/"))
    stem = re.sub(r"[^\w.-]+", "_", path.stem, flags=re.ASCII).strip("._")[:80]
    return f"{stem or 'file'}_{target}{path.suffix.lower()}"


class Downloads:
    """Files by names that nobody can guess."""

    def __init__(self) -> None:
        self.files: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    def add(self, name: str, content: bytes) -> str:
        """The name to fetch a file by."""
        token = f"{secrets.token_urlsafe(16)}.{name}"
        self.files[token] = (time.monotonic() + KEPT_SECONDS, content)
        while self.files and (
            next(iter(self.files.values()))[0] < time.monotonic()
            or sum(len(content) for _, content in self.files.values()) > MOST_BYTES
        ):
            self.files.popitem(last=False)
        return token

    def find(self, token: str) -> tuple[str, bytes] | None:
        """The file's own name and its content; None where there is none any more."""
        until, content = self.files.get(token, (0.0, b""))
        return (token.partition(".")[2], content) if until > time.monotonic() else None


class Parser:
    """A process that answers one task after the other; a task that is given up is ended with its process."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.process: WorkerProcess | None = None
        self.turn = asyncio.Lock()

    async def answer(self, task: Read | Write) -> Any:
        """The answer to a task; HTTPException where there is none."""
        async with self.turn:
            try:
                if not self.process or self.process.ended:
                    self.process = WorkerProcess(serve_documents, (PARSING_BYTES, PARSING_SECONDS), 1, self.seconds)
                    await self.process.begin()
                found = await self.process.answer(task)
            except NotLoaded as error:
                raise HTTPException(503, f"documents cannot be parsed: {error}", {"Retry-After": "5"}) from error
            except BaseException:
                self.end()
                raise
        if isinstance(found, Failure):
            if found.again:
                most = f"{PARSING_SECONDS} seconds or {PARSING_BYTES // 2**20:,} MiB of memory"
                raise HTTPException(400, f"file: it takes more than {most}; divide it")
            raise HTTPException(503 if found.broken else 400, f"file: {found.problem}")
        return found

    def end(self) -> None:
        if self.process:
            self.process.end()
            self.process = None


class Parsers:
    """The processes that parse."""

    def __init__(self, seconds: float) -> None:
        self.small, self.large = Parser(seconds), Parser(seconds)
        self.uploads = asyncio.Semaphore(AT_ONCE)

    async def answer(self, task: Read | Write) -> Any:
        """The answer to a task; HTTPException where there is none."""
        size = sum(len(document.content) for document in task.documents)
        return await (self.small if size <= SMALL_BYTES else self.large).answer(task)

    def end(self) -> None:
        self.small.end()
        self.large.end()
