"""Processes that work for the server, from both ends: calls go in through a pipe, answers come out; and their log."""

import asyncio
import heapq
import itertools
import logging
import math
import operator
import os
import pickle
import re
import resource
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

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
    """A request or a line without an answer: the HTTP status and the text for the client.

    `lost`: a process ended before it answered, perhaps because of another task.
    """

    def __init__(self, status: int, problem: str, retry_seconds: int = 5, lost: bool = False) -> None:
        super().__init__(status, problem, {"Retry-After": str(retry_seconds)} if status in (429, 503) else None)
        self.lost = lost

    def __str__(self) -> str:
        return self.detail


class Rate:
    """A token bucket for each client, which holds the requests of a minute and refills evenly."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

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
    """Log where an error was raised, without its message, which may hold a text of a client."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-4:]))
    log_client(f"{type(error).__name__} at {where}")


class PlaceHandler(logging.Handler):
    """Logs where a library reported something, without its message, which may hold a text of a client."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            log_error(record.exc_info[1])
        else:
            log_client(f"{record.levelname.lower()} of {record.name} at {record.pathname}:{record.lineno}")


class Worker:
    """The server's end of a process, whose methods are those of a class of TASKS.

    A call that takes more than `seconds` kills the process.
    """

    reading: asyncio.Task[None]
    searches: int
    """Tasks that the process works on at once."""

    def __init__(self, tasks: str, arguments: tuple[Any, ...], seconds: float) -> None:
        self.tasks, self.arguments, self.seconds = tasks, arguments, seconds
        self.answers: dict[int, asyncio.Future[Any]] = {}
        self.numbers = itertools.count()
        self.ended = ""
        """How the process ended; empty while it runs."""

    async def begin(self) -> None:
        """Start the process; Failed if it does not become ready."""
        code = f"import sys; sys.path[:] = {sys.path!r}; from nmt.plugins.serve.worker import main; main()"
        command, pipe = (sys.executable, "-c", code), asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, limit=2**20, start_new_session=True
        )
        self.reading = asyncio.create_task(self.read())
        try:
            self.searches = await self.call(self.tasks, *self.arguments, seconds=LOADING_SECONDS)
        except BaseException:
            self.kill()
            raise

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

    async def call(self, method: str, *arguments: Any, seconds: float | None = None) -> Any:
        """The result of a method of the process; Failed if there is none."""
        seconds = seconds or self.seconds
        if self.ended:
            raise self.loss()
        number, future = next(self.numbers), asyncio.get_running_loop().create_future()
        self.answers[number] = future
        assert self.process.stdin
        try:
            async with asyncio.timeout(seconds):
                with suppress(OSError):  # `read` answers for a process that has just ended
                    self.process.stdin.write(pickle.dumps((number, method, arguments)))
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


class Parser:
    """A process that parses one task at a time, of those that wait the smallest first.

    A task that takes too much, or that nobody waits for any longer, ends the process; the next one starts it again.
    """

    worker: Worker | None = None

    def __init__(self, most_bytes: int, most_seconds: int, seconds: float) -> None:
        self.arguments, self.seconds = (most_bytes, most_seconds), seconds
        self.waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self.numbers, self.is_busy = itertools.count(), False

    def let_in(self) -> None:
        """Let the smallest task begin, if none is worked on."""
        while self.waiting and not self.is_busy:
            *_, turn = heapq.heappop(self.waiting)
            if not turn.done():
                self.is_busy = True
                turn.set_result(None)

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self.waiting, (size, next(self.numbers), turn))
        self.let_in()
        try:
            await turn
            yield
        finally:
            if not turn.cancelled():
                self.is_busy = False
                self.let_in()

    async def call(self, size: int, method: str, *arguments: Any) -> Any:
        """The result of a method of DocumentTasks for `size` bytes; Failed if there is none."""
        async with self.turn(size):
            if self.worker is None or self.worker.ended:
                worker = Worker("documents", self.arguments, self.seconds)
                await worker.begin()
                self.worker = worker
            try:
                return await self.worker.call(method, *arguments)
            except asyncio.CancelledError:
                self.worker.kill()
                raise

    async def end(self) -> None:
        if self.worker:
            await self.worker.end()


@dataclass(frozen=True)
class Search:
    """How a line is translated; only lines with the same search are batched."""

    n_best: int = 1
    details: bool = False
    glossary: tuple[tuple[str, str], ...] = ()
    """Terms with their translations, instead of those of the model's own glossary."""
    alternatives: tuple[str, int] | None = None
    """Instead of translations, at most this number of texts that begin alike and continue with different words."""


@dataclass
class Line:
    """The translations of a line, best first, with details and flags of the best one."""

    texts: list[str]
    details: dict[str, Any] = field(default_factory=dict)
    """The answer's `sourceWords`, `words`, `alignment`, `confidence`, `protected` and `terms`, or `alternatives`."""
    flags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SentDocument:
    """A document of a client. The process that parses it keeps nothing: it parses it again to write it."""

    content: bytes
    name: str = ""
    """The file name, whose suffix tells the format; empty for a text in `format`."""
    format: str = ""
    source: str = ""
    target: str = ""


class Turns:
    """A lock for two threads that take turns, so that a long search does not delay a short one."""

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
        from nmt.translation import load_translator

        translator = load_translator(options, log)
        self.translator, engine = replace(translator, ahead=False), cast(Any, translator.engine)
        self.variants: dict[Search, Translator] = {}
        self.searches = 1
        if translator.ahead:  # an engine for processors: a task is for one core
            self.searches, engine.workers = options.compute.threads or usable_cores(), 1
        else:
            engine.turn = Turns()

    def variant(self, search: Search) -> "Translator":
        """The translator for a search; one with the glossary of a request is not kept."""
        if search.glossary:
            return self.variant(replace(search, glossary=())).with_request({"glossary": search.glossary})
        if search not in self.variants:
            usual = self.translator.engine
            beam_size = max(usual.config.beam_size, search.n_best)
            engine = usual.with_search(replace(usual.config, n_best=search.n_best, beam_size=beam_size))
            self.variants[search] = replace(self.translator, engine=engine, details=search.details)
        return self.variants[search]

    def translate(self, search: Search, lines: list[str]) -> list[Line | Failed]:
        if search.alternatives:
            from nmt.plugins.serve.alternatives import find_alternatives

            rows = [find_alternatives(self.translator, line, *search.alternatives) for line in lines]
            return [Line([], {"alternatives": [alternative._asdict() for alternative in row]}) for row in rows]
        answers, translator = list[Line | Failed](), self.variant(search)
        for line, translations in zip(lines, translator.translate_each(lines), strict=True):
            if isinstance(translations, list):
                best, texts = translations[0], [translation.text for translation in translations]
                answers.append(Line(texts, line_details(translator, line, best) if search.details else {}, best.flags))
            else:
                answers.append(Failed(400, translations.problem))
        return answers


def line_details(translator: "Translator", line: str, translation: Any) -> dict[str, Any]:
    """The words of a line and of its translation, their alignment, and marked words by index.

    The confidence in a word is the probability of its tokens given all before them; a copied word has none.
    """
    words = [word.span() for word in re.finditer(r"\S+", translation.text)]

    def inside(spans: list[tuple[int, int]]) -> list[int]:
        return [n for n, (first, last) in enumerate(words) if any(first < end and begin < last for begin, end in spans)]

    return {
        "sourceWords": line.split(),
        "words": translation.text.split(),
        "alignment": translation.details.alignment,
        "confidence": [
            None if log_p is None else round(math.exp(log_p), 4) for log_p in translation.details.word_log_probabilities
        ],
        **{"protected": [], "terms": []},
        **{stage.name: inside(stage.spans(line, translation.text)) for stage in translator.stages if stage.name},
    }


def formats_of_documents() -> dict[str, str]:
    """The format of a document by the suffix of its name."""
    return {suffix: name for name, entry in entries_of("document").items() for suffix in entry.facts["suffixes"]}


class DocumentTasks:
    """What a process that parses does; a task that takes more memory or processor time kills the process."""

    searches = 1

    def __init__(self, most_bytes: int, most_seconds: int) -> None:
        self.most_seconds, self.hard_limit = most_seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]
        os.nice(10)  # translation comes first
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))

    def parsed(self, documents: list[SentDocument]) -> "Iterator[tuple[str, Document]]":
        """The formats and the documents of a task, whose processor time is limited from now on."""
        from nmt.plugins.documents import read_document

        limit, formats = math.ceil(time.process_time()) + self.most_seconds, formats_of_documents()
        resource.setrlimit(resource.RLIMIT_CPU, (limit, self.hard_limit))
        for document in documents:
            format = document.format or formats.get(PurePath(document.name).suffix.lower(), "")
            require(bool(format), f"files of this kind are not translated; {', '.join(formats)} are")
            yield format, read_document(format, document.content, document.target, document.source)

    def read(self, documents: list[SentDocument], most: int) -> list[tuple[list[str], bool]]:
        """The lines of each document, at most `most` + 1, and whether it has markup."""
        return [(parsed.lines[: most + 1], format != "text") for format, parsed in self.parsed(documents)]

    def write(self, documents: list[SentDocument], variants: list[list[list[tuple[str, Any]]]]) -> list[list[bytes]]:
        """Each document in one or more variants: with the text and the alignment of each line."""
        from nmt.plugins.documents import Translated

        return [
            [parsed.join([Translated(*line) for line in lines]) for lines in rows]
            for (_, parsed), rows in zip(self.parsed(documents), variants, strict=True)
        ]


TASKS: dict[str, Callable[..., Any]] = {"model": ModelTasks, "documents": DocumentTasks}


def outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """What a function returns, or why it failed."""
    try:
        return function(*arguments)
    except NMTError as error:
        return Failed(400, str(error))
    except MemoryError:
        os._exit(1)
    except Exception as error:
        if is_out_of_memory(error):
            return Failed(503, "out of memory: send less text at once")
        log_error(error)
        return Failed(503, "internal error, which the server's log names")


def main() -> None:
    """In the process: make an object of TASKS, and answer calls of its methods until the server ends."""
    logging.lastResort = PlaceHandler(logging.ERROR)
    calls, answers, lock = sys.stdin.buffer, os.fdopen(os.dup(1), "wb"), threading.Lock()
    os.dup2(2, 1)  # libraries print to the log

    def send(number: int, answer: Any) -> None:
        message = pickle.dumps((number, answer))
        with lock:
            answers.write(len(message).to_bytes(8) + message)
            answers.flush()

    def answer(number: int, method: str, arguments: tuple[Any, ...]) -> None:
        send(number, outcome(getattr(tasks, method), arguments))

    with suppress(EOFError, OSError, MemoryError):  # the server ended, or a task takes too much
        number, name, arguments = pickle.load(calls)
        tasks = outcome(TASKS[name], arguments)
        send(number, tasks if isinstance(tasks, Failed) else tasks.searches)
        # Threads start when they are needed: the server makes as many calls at once as the model can search.
        submit: Callable[..., Any] = operator.call if name == "documents" else ThreadPoolExecutor(1000).submit
        while True:
            submit(answer, *pickle.load(calls))
    os._exit(0)
