"""Processes that work for the server, from both ends: calls go in through a pipe, answers come out; and their log."""

import asyncio
import itertools
import logging
import math
import os
import pickle
import resource
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from starlette.exceptions import HTTPException

from nmt.config import TranslatorOptions, require
from nmt.errors import NMTError, is_out_of_memory
from nmt.hardware import usable_cores
from nmt.registry import entries_of

if TYPE_CHECKING:
    from nmt.plugins.documents import Document
    from nmt.translation import Translator

LOADING_SECONDS = 600
"""A process that is not ready by then is killed."""
MOST_CLIENTS = 100_000
"""Clients whose requests are counted; the client that has been silent the longest is forgotten."""


class Failed(HTTPException):
    """A request or a line without an answer: the HTTP status and the text for the client."""

    def __init__(self, status: int, problem: str, retry_seconds: int = 5, lost: bool = False) -> None:
        self.lost = lost
        """The process that worked on it has ended, perhaps for another reason."""
        super().__init__(status, problem, {"Retry-After": str(retry_seconds)} if status in (429, 503) else None)


class Rate:
    """A token bucket for each client, which holds the requests of a minute and refills evenly."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute, self.buckets = per_minute, OrderedDict[str, tuple[float, float]]()

    def wait(self, client: str, now: float | None = None) -> float:
        """Seconds until the client may ask again; 0 if it may now, and this request is counted."""
        now = time.monotonic() if now is None else now
        left, before = self.buckets.pop(client, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - before) * self.per_minute / 60)
        self.buckets[client] = (left - (left >= 1), now)
        if len(self.buckets) > MOST_CLIENTS:
            self.buckets.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) * 60 / self.per_minute


LOGGED = Rate(30)
"""Log lines per minute, for each kind of event that a client can cause."""


def log(text: str) -> None:
    print(f"nmt: {text}", file=sys.stderr, flush=True)


def log_client(kind: str, text: str = "") -> None:
    """Log what a client caused, unless there was much of its kind."""
    if not LOGGED.wait(kind):
        log(f"{kind}{text}")


def log_error(error: BaseException) -> None:
    """Log where an error was raised, without its message, which may contain a text of a client."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-4:]))
    log_client(f"{type(error).__name__} at {where}")


class PlaceHandler(logging.Handler):
    """Logs where a library reported something, without its message, which may contain a text of a client."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            log_error(record.exc_info[1])
        else:
            log_client(f"{record.levelname.lower()} of {record.name} at {record.pathname}:{record.lineno}")


class Worker:
    """The server's end of a process with a model. A call that takes more than `seconds` kills the process."""

    facts: Any
    """What the process reports of itself when it is ready."""
    ended = ""
    """How the process ended; empty while it runs."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.numbers, self.answers = seconds, itertools.count(), dict[int, asyncio.Future[Any]]()

    async def begin(self, options: TranslatorOptions) -> "Worker":
        """Start the process; Failed if it does not become ready."""
        code = f"import sys; sys.path[:] = {sys.path!r}; from nmt.plugins.serve.worker import main; main()"
        pipes: Any = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "limit": 2**20}
        command = (sys.executable, "-c", code)
        self.process = await asyncio.create_subprocess_exec(*command, **pipes, start_new_session=True)
        self.reading = asyncio.create_task(self.read())
        try:
            self.facts = await self.call(options, seconds=LOADING_SECONDS)
        except BaseException:
            self.kill()
            raise
        return self

    async def read(self) -> None:
        """Pass on the answers of the process until it ends."""
        assert self.process.stdout
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                size = int.from_bytes(await self.process.stdout.readexactly(8))
                number, answer = pickle.loads(await self.process.stdout.readexactly(size))
                if (future := self.answers.get(number)) and not future.done():
                    future.set_result(answer)
        code = await self.process.wait()
        self.ended = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        for future in self.answers.values():
            if not future.done():
                future.set_result(self.loss())

    def loss(self) -> Failed:
        return Failed(503, f"the process that worked on this ended {self.ended}; send it again", 1, lost=True)

    async def call(self, *arguments: Any, seconds: float | None = None) -> Any:
        """What ModelTasks, or later its `translate`, makes of the arguments; Failed if there is no answer."""
        if self.ended:
            raise self.loss()
        seconds, number = seconds or self.seconds, next(self.numbers)
        future = self.answers[number] = asyncio.get_running_loop().create_future()
        assert self.process.stdin
        try:
            async with asyncio.timeout(seconds):
                with suppress(OSError):  # `read` answers for a process that has just ended
                    self.process.stdin.write(pickle.dumps((number, *arguments)))
                    await self.process.stdin.drain()
                answer = await future
        except TimeoutError as error:
            self.kill()
            raise Failed(503, f"not done within {seconds:g} seconds; send less at once") from error
        finally:
            del self.answers[number]
        if isinstance(answer, Failed):
            raise answer
        return answer

    def kill(self) -> None:
        self.ended = self.ended or "by the server"
        with suppress(ProcessLookupError):
            self.process.kill()

    async def end(self) -> None:
        """Kill the process, and wait for its end."""
        self.kill()
        await self.reading


class Search(NamedTuple):
    """How a line is translated; only lines with the same search are batched."""

    n_best: int = 1
    aligned: bool = False
    tag: str = ""
    """The tag of the target language, with a blank."""


class Line(NamedTuple):
    """The translations of a line, best first, and pairs of a source word and a word of the best one; None: unknown."""

    texts: list[str]
    alignment: list[tuple[int, int]] | None = None


class SentDocument(NamedTuple):
    """A document of a client. The process that parses it keeps nothing: it parses it again to write it."""

    content: bytes
    name: str
    """The file name, whose suffix tells the format."""
    source: str = ""
    target: str = ""


class Turns:
    """A lock that threads enter in the order in which they ask for it."""

    def __init__(self) -> None:
        self.entrance, self.room = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        with self.entrance:  # the thread that waits here is the next; one lock would let the last thread in again
            self.room.acquire()

    def __exit__(self, *error: object) -> None:
        self.room.release()


class ModelTasks:
    """What a process with a model does; variants of its translator for other searches share the weights."""

    def __init__(self, options: TranslatorOptions) -> None:
        from nmt.translation import load_translator, with_engine

        options = with_engine(options, log)
        translator = load_translator(options, log)
        self.translator, engine = replace(translator, ahead=False), cast(Any, translator.engine)
        self.variants: dict[Search, Translator] = {}
        searches = 1
        if translator.ahead:  # an engine for processors: a task is for one core
            searches, engine.workers = options.compute.threads or usable_cores(), 1
        else:
            engine.turn = Turns()
        self.facts = (searches, options.compute.engine)
        """Tasks that the process works on at once, and the engine."""

    def variant(self, search: Search) -> "Translator":
        if search not in self.variants:
            usual = self.translator
            beam_size = max(usual.engine.config.beam_size, search.n_best)
            engine = usual.engine.with_search(replace(usual.engine.config, n_best=search.n_best, beam_size=beam_size))
            prefix = search.tag or usual.source_prefix
            self.variants[search] = replace(usual, engine=engine, details=search.aligned, source_prefix=prefix)
        return self.variants[search]

    def translate(self, search: Search, lines: list[str]) -> list[Line | Failed]:
        answers = list[Line | Failed]()
        for translations in self.variant(search).translate_each(lines):
            if isinstance(translations, list):
                details = translations[0].details
                texts = [translation.text for translation in translations]
                answers.append(Line(texts, details.alignment if details else None))
            else:
                answers.append(Failed(400, translations.problem))
        return answers


def formats_of_documents() -> dict[str, str]:
    """The format of a document by the suffix of its name."""
    return {suffix: name for name, entry in entries_of("document").items() for suffix in entry.facts["suffixes"]}


def parsed(limits: tuple[int, int], sent: SentDocument) -> "tuple[str, Document]":
    """The format and the document; more memory or processor time than the limits of this task ends the process."""
    from nmt.plugins.documents import read_document

    for kind, most in zip((resource.RLIMIT_AS, resource.RLIMIT_CPU), limits, strict=True):
        used = math.ceil(time.process_time()) if kind == resource.RLIMIT_CPU else 0
        resource.setrlimit(kind, (used + most, resource.getrlimit(kind)[1]))
    os.nice(10 - os.nice(0))  # translation comes first
    formats = formats_of_documents()
    format = formats.get(PurePath(sent.name).suffix.lower(), "")
    require(bool(format), f"files of this kind are not translated; {', '.join(formats)} are")
    return format, read_document(format, sent.content, sent.target, sent.source)


def read_lines(limits: tuple[int, int], sent: SentDocument, most: int) -> tuple[list[str], bool]:
    """In a process that parses: the lines of a document, at most `most` + 1, and whether it has markup."""
    format, document = parsed(limits, sent)
    return document.lines[: most + 1], format != "text"


def write(limits: tuple[int, int], sent: SentDocument, lines: list[Line]) -> bytes:
    """In a process that parses: the document with the text and the alignment of each line."""
    from nmt.plugins.documents import Translated

    return parsed(limits, sent)[1].join([Translated(line.texts[0], line.alignment) for line in lines])


def main() -> None:
    """In the process: load the model, and translate until the server ends."""
    logging.lastResort = PlaceHandler(logging.ERROR)
    calls, answers, lock = sys.stdin.buffer, os.fdopen(os.dup(1), "wb"), threading.Lock()
    os.dup2(2, 1)  # libraries print to the log

    def answer(number: int, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            result = function(*arguments)
        except NMTError as error:
            result = Failed(400, str(error))
        except Exception as error:
            log_error(error)
            short = "out of memory: send less text at once"
            result = Failed(503, short if is_out_of_memory(error) else "internal error, which the server's log names")
        message = pickle.dumps((number, result.facts if isinstance(result, ModelTasks) else result))
        with lock:
            answers.write(len(message).to_bytes(8) + message)
            answers.flush()
        return result

    with suppress(EOFError, OSError):  # the server ended
        number, options = pickle.load(calls)
        tasks = answer(number, ModelTasks, options)
        # Threads start when they are needed: the server makes as many calls at once as the model can search.
        pool = ThreadPoolExecutor(1000)
        while True:
            number, *arguments = pickle.load(calls)
            pool.submit(answer, number, tasks.translate, *arguments)
    os._exit(0)
