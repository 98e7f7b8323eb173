"""Processes that work for the server, from both ends: tasks go in through a pipe, answers come out; and their log."""

import asyncio
import itertools
import logging
import math
import os
import pickle
import re
import resource
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from nmt.config import DecodeConfig, TranslateConfig
from nmt.errors import NMTError, is_out_of_memory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nmt.plugins.documents import Document
    from nmt.plugins.protection.constraints import Constraints
    from nmt.search import Engine, Hypothesis, Pair, TokenScores
    from nmt.translation import Translation, Translator

T = TypeVar("T")
LOADING_SECONDS = 600
"""A process that is not ready by then is killed."""
TURN_TOKENS = 1500
"""Source tokens of a turn: about two batches for each of two cores."""
MOST_CLIENTS = 100_000
"""Clients whose requests are counted; the one that has been silent the longest is forgotten."""


class Failed(Exception):
    """A request, or a line of one, that has no answer: the HTTP status and the text for the client."""

    def __init__(self, status: int, problem: str, retry_seconds: int = 5, lost: bool = False) -> None:
        super().__init__(status, problem, retry_seconds, lost)
        self.status, self.problem, self.retry_seconds = status, problem, retry_seconds
        self.lost = lost
        """The process ended before it answered, perhaps because of another task."""

    def __str__(self) -> str:
        return self.problem


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
    """The server's end of a process, whose methods are those of a class of TASKS; `begin` starts it.

    At most `places` calls run at once, the others wait in order. After `seconds`, a call ends its process.
    """

    def __init__(self, tasks: str, arguments: tuple[Any, ...], places: int, seconds: float) -> None:
        self.tasks, self.arguments, self.places, self.seconds = tasks, arguments, places, seconds
        self.free, self.numbers = asyncio.Semaphore(places), itertools.count()
        self.answers: dict[int, asyncio.Future[Any]] = {}
        self.calls = 0
        """Calls that run or wait."""
        self.ended = ""
        """How the process ended; empty until then."""

    async def begin(self) -> None:
        """Start the process and wait until it is ready; Failed if it does not become ready."""
        code = f"import sys; sys.path[:] = {sys.path!r}; from nmt.plugins.serve.worker import main; main()"
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", code), stdin=pipe, stdout=pipe, limit=2**20, start_new_session=True
        )
        self.reading = asyncio.create_task(self.read())
        try:
            await self.call(self.tasks, *self.arguments, seconds=LOADING_SECONDS)
        except BaseException:
            self.end()
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
        seconds, number = seconds or self.seconds, next(self.numbers)
        self.calls += 1
        try:
            async with self.free, asyncio.timeout(seconds):
                if self.ended:
                    raise self.loss()
                future = self.answers[number] = asyncio.get_running_loop().create_future()
                assert self.process.stdin
                with suppress(OSError):  # `read` answers for a process that has just ended
                    self.process.stdin.write(pickle.dumps((number, method, arguments)))
                    await self.process.stdin.drain()
                answer = await future
        except TimeoutError as error:
            self.end()
            raise Failed(503, f"not done within {seconds:g} seconds; send less at once") from error
        finally:
            self.calls -= 1
            self.answers.pop(number, None)
        if isinstance(answer, Failed):
            raise answer
        return answer

    def end(self) -> None:
        """Kill the process."""
        self.ended = self.ended or "by the server"
        with suppress(ProcessLookupError):
            self.process.kill()

    async def end_when_idle(self) -> None:
        """Kill the process once all calls are answered."""
        while self.calls:
            await asyncio.sleep(0.05)
        self.end()


@dataclass(frozen=True)
class Search:
    """How a line is translated; only lines with the same search are batched."""

    n_best: int = 1
    details: bool = False
    glossary: tuple[tuple[str, str], ...] = ()
    """Terms with their translations, instead of those of the model's own glossary."""


@dataclass
class Line:
    """The translations of a line, best first, with details and flags of the best one."""

    texts: list[str]
    details: dict[str, Any] = field(default_factory=dict)
    """`sourceWords`, `words`, `alignment`, `confidence`, `protected` and `terms` of the answer."""
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


class FairEngine:
    """An engine for two threads that take turns, so that a long search does not delay a short one."""

    def __init__(self, engine: "Engine", locks: tuple[threading.Lock, threading.Lock] | None = None) -> None:
        self.engine, self.config, self.longest = engine, engine.config, engine.longest
        self.entrance, self.room = self.locks = locks or (threading.Lock(), threading.Lock())

    def with_search(self, config: DecodeConfig) -> "FairEngine":
        return FairEngine(self.engine.with_search(config), self.locks)

    @contextmanager
    def turn(self) -> Iterator[None]:
        with self.entrance:  # the thread that waits here has the next turn; one lock would let the last thread in again
            self.room.acquire()
        try:
            yield
        finally:
            self.room.release()

    def in_turns(self, lengths: Sequence[int], answer: Callable[[list[int]], Sequence[T]]) -> list[T]:
        """The answers for all indices; a turn has at most TURN_TOKENS, but at least one item."""
        answers, part, tokens = dict[int, T](), list[int](), 0
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        for position, index in enumerate(order):
            part.append(index)
            tokens += lengths[index]
            if position + 1 == len(order) or tokens + lengths[order[position + 1]] > TURN_TOKENS:
                with self.turn():
                    answers |= zip(part, answer(part), strict=True)
                part, tokens = [], 0
        return [answers[index] for index in range(len(lengths))]

    def search(
        self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]], constraints: "Constraints | None" = None
    ) -> "list[list[Hypothesis]]":
        return self.in_turns(
            [len(ids) + 1 for ids in sentences],
            lambda part: self.engine.search(
                [sentences[index] for index in part],
                [prefixes[index] for index in part],
                constraints.of(part) if constraints else None,
            ),
        )

    def token_scores(self, pairs: "Sequence[Pair]") -> "list[TokenScores]":
        lengths = [max(map(len, pair)) + 1 for pair in pairs]
        return self.in_turns(lengths, lambda part: self.engine.token_scores([pairs[index] for index in part]))

    def next_token(self, pair: "Pair") -> "NDArray[np.float32]":
        with self.turn():
            return self.engine.next_token(pair)


class ModelTasks:
    """What a process with a model does; variants of its translator for other searches share the weights."""

    def __init__(self, translator: "Translator") -> None:
        self.translator = translator
        self.variants: dict[Search, Translator] = {}

    @classmethod
    def load(cls, config: TranslateConfig) -> "ModelTasks":
        from nmt.translation import load_translator

        translator = load_translator(config, log)
        if config.engine == "ctranslate2":
            translator.engine.workers = 1  # type: ignore[attr-defined]  # a task is for one core: others have theirs
            translator.ahead = False
        else:
            translator.engine = FairEngine(translator.engine)
        return cls(translator)

    def variant(self, search: Search) -> "Translator":
        """The translator for a search; one with the glossary of a request is not kept."""
        if search.glossary:
            return self.variant(replace(search, glossary=())).with_glossary(search.glossary)
        if search not in self.variants:
            usual = self.translator.engine.config
            decode = replace(usual, n_best=search.n_best, beam_size=max(usual.beam_size, search.n_best))
            self.variants[search] = self.translator.with_search(decode, search.details)
        return self.variants[search]

    def translate(self, search: Search, lines: list[str]) -> list[Line | Failed]:
        answers, translator = list[Line | Failed](), self.variant(search)
        for line, translations in zip(lines, translator.translate_each(lines), strict=True):
            if isinstance(translations, list):
                details = line_details(translator, line, translations[0]) if search.details else {}
                answers.append(Line([each.text for each in translations], details, translations[0].flags))
            else:
                answers.append(Failed(400, translations.problem))
        return answers

    def alternatives(self, line: str, before: str, count: int) -> list[dict[str, Any]]:
        """Translations that begin with `before` and continue with different words."""
        return [
            {"word": each.word, "probability": each.probability, "translation": each.text}
            for each in self.translator.alternatives(line, before, count)
        ]


def line_details(translator: "Translator", line: str, translation: "Translation") -> dict[str, Any]:
    """The words of a line and of its translation, their alignment, and marked words by index.

    The confidence in a word is the probability of its tokens given all before them; a copied word has none.
    """
    assert translation.details
    protection, terms = translator.protection, translator.terms
    spans = {
        "protected": protection.spans(translator, line, translation.text) if protection else [],
        "terms": terms.spans(line, translation.text) if terms else [],
    }
    words = [word.span() for word in re.finditer(r"\S+", translation.text)]
    return {
        "sourceWords": line.split(),
        "words": translation.text.split(),
        "alignment": translation.details.alignment,
        "confidence": [
            None if p is None else round(math.exp(p), 4) for p in translation.details.word_log_probabilities
        ],
        **{
            kind: [n for n, (a, z) in enumerate(words) if any(a < end and begin < z for begin, end in marked)]
            for kind, marked in spans.items()
        },
    }


class DocumentTasks:
    """What a process that parses does; a task that takes more memory or processor time kills the process."""

    def __init__(self, most_bytes: int, most_seconds: int) -> None:
        self.most_seconds, self.hard_limit = most_seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]
        os.nice(10)  # translation comes first
        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))

    def parse(self, document: SentDocument) -> "Document":
        from nmt.plugins.documents import read_document, read_file

        if document.format:
            return read_document(document.format, document.content)
        return read_file(document.name, document.content, document.target, document.source)

    def begin(self) -> None:
        """Begin to count the processor time of a task."""
        limit = math.ceil(time.process_time()) + self.most_seconds
        resource.setrlimit(resource.RLIMIT_CPU, (limit, self.hard_limit))

    def read(self, documents: list[SentDocument], most: int) -> list[tuple[list[str], bool]]:
        """The lines of each document, at most `most` + 1, and whether it has markup."""
        self.begin()
        parsed = map(self.parse, documents)
        return [(document.lines[: most + 1], type(document).__name__ != "PlainText") for document in parsed]

    def write(self, documents: list[SentDocument], variants: list[list[list[tuple[str, Any]]]]) -> list[list[bytes]]:
        """Each document in one or more variants: with the text and the alignment of each line."""
        from nmt.plugins.documents import Translated

        self.begin()
        return [
            [parsed.join([Translated(*line) for line in lines]) for lines in rows]
            for parsed, rows in zip(map(self.parse, documents), variants, strict=True)
        ]


TASKS: dict[str, Callable[..., Any]] = {"model": ModelTasks.load, "documents": DocumentTasks}


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
        send(number, tasks if isinstance(tasks, Failed) else None)
        # Threads start when they are needed: the server makes as many calls at once as the model can search.
        pool = ThreadPoolExecutor(1000) if isinstance(tasks, ModelTasks) else None
        while True:
            call = pickle.load(calls)
            if pool:
                pool.submit(answer, *call)
            else:
                answer(*call)
    os._exit(0)
