"""What worker processes run: translation and document parsing; and errors and logging, which the server shares."""

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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from starlette.exceptions import HTTPException

from nmt.config import NMTError, TranslatorOptions, is_out_of_memory, require
from nmt.hardware import usable_cores
from nmt.plugins.documents import Document, Translated, read_document
from nmt.registry import entries_of
from nmt.search import Engine
from nmt.text import TARGET, Tokenizer

if TYPE_CHECKING:
    from nmt.translation import Translator

BEAM = 12  # the number of tokens to try as the beginning of another word
MOST_CLIENTS = 100_000  # the most clients to track; the one that has been idle longest is forgotten first
Line = list[Translated]  # the translations of a line, best first


class Failed(HTTPException):
    """A request or line that cannot be answered, with the message for the client."""

    def __init__(self, status: int, problem: str, retry_seconds: int = 5, lost: bool = False) -> None:
        self.lost = lost  # the worker process exited, perhaps for an unrelated reason
        super().__init__(status, problem, {"Retry-After": str(retry_seconds)} if status in (429, 503) else None)


class Rate:
    """A token bucket per client, sized for one minute's requests."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute, self.buckets = per_minute, OrderedDict[str, tuple[float, float]]()

    def wait(self, client: str, now: float | None = None) -> float:
        """Count a request; return 0 or, if it comes too soon, the number of seconds to wait."""
        now = time.monotonic() if now is None else now
        left, before = self.buckets.pop(client, (float(self.per_minute), now))
        left = min(self.per_minute, left + (now - before) * self.per_minute / 60)
        self.buckets[client] = (left - (left >= 1), now)
        if len(self.buckets) > MOST_CLIENTS:
            self.buckets.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) * 60 / self.per_minute


LOGGED = Rate(30)  # log lines per minute for each kind of event that a client can cause


def log(text: str) -> None:
    print(f"nmt: {text}", file=sys.stderr, flush=True)


def log_client(kind: str, text: str = "") -> None:
    """Log an event that a client caused, unless too many of its kind were logged recently."""
    if not LOGGED.wait(kind):
        log(f"{kind}{text}")


def log_error(error: BaseException) -> None:
    """Log where an error was raised, but not its message, which may contain a client's text."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-4:]))
    log_client(f"{type(error).__name__} at {where}")


class PlaceHandler(logging.Handler):
    """Logs where a library reported something, but not its message, which may contain a client's text."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            log_error(record.exc_info[1])
        else:
            log_client(f"{record.levelname.lower()} of {record.name} at {record.pathname}:{record.lineno}")


class Search(NamedTuple):
    """The search settings for a line; the same for all lines in a batch."""

    tag: str = ""  # the target language's tag, with a trailing space
    n_best: int = 1
    aligned: bool = False
    prefix: str | None = None  # what each translation begins with; the next word differs


class Turns:
    """A lock that threads acquire in the order in which they request it."""

    def __init__(self) -> None:
        self.entrance, self.room = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        with self.entrance:  # the next thread waits here; with a single lock, a leaving thread could re-enter first
            self.room.acquire()

    def __exit__(self, *error: object) -> None:
        self.room.release()


def other_words(engine: Engine, tokenizer: Tokenizer, words: list[str], ids: Sequence[Any], *more: Any) -> Any:
    """Search, but for the sentence with the word after `words`, return translations with different words there."""
    results = engine.search(ids, *more)
    for sentence, row in zip(ids, results, strict=True):
        best = tokenizer.decode(row[0].tokens).split()
        if len(best) > len(words) or best != words[: len(best)]:
            begin = tokenizer.encode([tokenizer.clean(" ".join(words))], TARGET)[0]
            # At a maximum length of one more token, the beam consists of the likeliest ones.
            extra = len(begin) + 1 - len(sentence)
            search = engine.with_search(replace(engine.config, beam_size=BEAM, n_best=BEAM, max_extra_length=extra))
            begun = [other.tokens[: len(begin) + 1] for other in search.search([sentence], [begin])[0]]
            row[:] = [other for [other] in engine.search([sentence] * len(begun), begun)]
            break
        words = words[len(best) :]
    return results


class ModelTasks:
    """The tasks of a model's process; the translators for all search settings share the weights."""

    def __init__(self, options: TranslatorOptions) -> None:
        from nmt.translation import load_translator, with_engine

        options = with_engine(options, log)
        translator = load_translator(options, log)
        self.translator, engine = replace(translator, ahead=False), cast(Any, translator.engine)
        self.variants: dict[Search, Translator] = {}
        searches = 1
        if translator.ahead:  # a CPU engine: each task uses one core
            searches, engine.workers = options.compute.threads or usable_cores(), 1
        else:
            engine.turn = Turns()
        self.facts = (searches, options.compute.engine)  # the number of parallel tasks, and the engine

    def translate(self, search: Search, lines: list[str]) -> list[Line | Failed]:
        usual, prefix = self.translator, search.prefix
        if (search := search._replace(prefix=None)) not in self.variants:
            beam_size = max(usual.engine.config.beam_size, search.n_best)
            engine = usual.engine.with_search(replace(usual.engine.config, n_best=search.n_best, beam_size=beam_size))
            tag = search.tag or usual.source_prefix
            self.variants[search] = replace(usual, engine=engine, details=search.aligned, source_prefix=tag)
        translator = self.variants[search]
        if prefix is not None:
            other: Any = copy(translator.engine)
            other.search = partial(other_words, translator.engine, usual.tokenizer, prefix.split())
            translator = replace(translator, engine=other)
        return [
            [Translated(t.text, t.details.alignment if t.details else None) for t in outcome]
            if isinstance(outcome, list)
            else Failed(400, outcome.problem)
            for outcome in translator.translate_each(lines)
        ]


class SentDocument(NamedTuple):
    """A client's document, which is parsed twice, to read and to write it, because parsing processes keep no state."""

    content: bytes
    name: str  # its suffix determines the format
    source: str = ""
    target: str = ""


def formats_of_documents() -> dict[str, str]:
    """Map file name suffixes to formats."""
    return {suffix: name for name, entry in entries_of("document").items() for suffix in entry.facts["suffixes"]}


def parsed(limits: tuple[int, int], sent: SentDocument) -> tuple[str, Document]:
    """Return a document's format and the parsed document; exceeding a limit raises MemoryError or kills the process."""
    for kind, most in zip((resource.RLIMIT_AS, resource.RLIMIT_CPU), limits, strict=True):
        used = math.ceil(time.process_time()) if kind == resource.RLIMIT_CPU else 0
        resource.setrlimit(kind, (used + most, resource.getrlimit(kind)[1]))
    os.nice(10 - os.nice(0))  # translation has priority
    formats = formats_of_documents()
    format = formats.get(PurePath(sent.name).suffix.lower(), "")
    require(bool(format), f"unsupported file type; supported: {', '.join(formats)}")
    return format, read_document(format, sent.content, sent.target, sent.source)


def read_lines(limits: tuple[int, int], sent: SentDocument, most: int) -> tuple[list[str], bool]:
    """The first `most` + 1 lines of a document, and whether its format has markup."""
    format, document = parsed(limits, sent)
    return document.lines[: most + 1], format != "text"


def write(limits: tuple[int, int], sent: SentDocument, lines: list[Line]) -> bytes:
    """The document with each line replaced by its best translation."""
    return parsed(limits, sent)[1].join([line[0] for line in lines])


def main() -> None:
    """Load a model and translate until the server closes the pipe."""
    logging.lastResort = PlaceHandler(logging.ERROR)
    calls, answers, lock = sys.stdin.buffer, os.fdopen(os.dup(1), "wb"), threading.Lock()
    os.dup2(2, 1)  # anything that libraries print goes to the log

    def answer(number: int, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            result = function(*arguments)
        except NMTError as error:
            result = Failed(400, str(error))
        except Exception as error:
            log_error(error)
            short = "out of memory; send less text per request"
            result = Failed(503, short if is_out_of_memory(error) else "internal error; see the server's log")
        message = pickle.dumps((number, result.facts if isinstance(result, ModelTasks) else result))
        with lock:
            answers.write(len(message).to_bytes(8) + message)
            answers.flush()
        return result

    with suppress(EOFError, OSError):  # the server exited
        number, options = pickle.load(calls)
        tasks = answer(number, ModelTasks, options)
        pool = ThreadPoolExecutor(1000)  # threads start only as needed
        while True:
            number, *arguments = pickle.load(calls)
            pool.submit(answer, number, tasks.translate, *arguments)
    os._exit(0)
