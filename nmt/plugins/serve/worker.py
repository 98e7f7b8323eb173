"""In the processes of the server: load a model and answer tasks by several threads, or parse documents."""

import logging
import math
import os
import re
import resource
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from nmt.config import TranslateConfig
from nmt.errors import NMTError, is_out_of_memory, one_line
from nmt.hardware import usable_cores
from nmt.plugins.serve.rate import Rate
from nmt.plugins.serve.tasks import (
    Answer,
    Batch,
    Failure,
    Line,
    Lines,
    Read,
    Ready,
    Search,
    SentDocument,
    WordAlternatives,
    Write,
)
from nmt.plugins.serve.turns import TurnsEngine
from nmt.preparation import begin
from nmt.translation import RefusedLine

if TYPE_CHECKING:
    from nmt.plugins.documents import Document
    from nmt.translation import Translation, Translator


LOGGED = Rate(30)
"""Lines of the log in a minute, of each kind that a client may cause."""


def tasks_at_once(config: TranslateConfig) -> int:
    """Tasks that are answered at the same time: by CTranslate2 one for each core, and one to wait in any case.

    While one is searched, another is made tokens or text; one of them at most holds a long line.
    """
    return max(2, config.threads or usable_cores()) if config.engine == "ctranslate2" else 2


def log(words: str) -> None:
    print(f"nmt: {words}", file=sys.stderr, flush=True)


def log_client(kind: str, words: str = "") -> None:
    """Log what a client caused, unless there was much of its kind."""
    if not LOGGED.wait(kind):
        log(f"{kind}{words}")


def log_error(error: BaseException) -> None:
    """Log where an error happened, without its message, which may hold a text of a client."""
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


def log_places() -> None:
    """Have libraries write nothing else into the log."""
    logging.lastResort = PlaceHandler(logging.ERROR)


def word_details(translator: "Translator", line: str, translation: "Translation") -> dict[str, Any]:
    """The words of a line and of its translation, which belong together, and how sure the model is of each.

    The confidence in a word is the probability of its tokens given all before them; copied words have none. Words that
    hold something protected, or are of a term, are told by their indices.
    """
    details = translation.details
    assert details
    return {
        "sourceWords": line.split(),
        "words": translation.text.split(),
        "alignment": details.alignment,
        "confidence": [None if p is None else round(math.exp(p), 4) for p in details.word_log_probabilities],
        **marks(translator, line, translation.text),
    }


def marks(translator: "Translator", line: str, text: str) -> dict[str, list[int]]:
    """The words of a translation that hold something protected, and those that a glossary gave."""
    protection, terms = translator.protection, translator.terms
    spans = {
        "protected": protection.spans(translator, line, text) if protection else [],
        "terms": terms.spans(line, text) if terms else [],
    }
    return {kind: words_at(text, own) for kind, own in spans.items()}


def words_at(text: str, spans: list[tuple[int, int]]) -> list[int]:
    """The indices of the words that are in these spans of a text."""
    words = enumerate(re.finditer(r"\S+", text))
    return [n for n, word in words if any(word.start() < end and begin < word.end() for begin, end in spans)]


class Answers:
    """Answers tasks by a translator, whose variants for other searches share its weights."""

    def __init__(self, translator: "Translator", alone: bool) -> None:
        self.translator = translator
        self.translator.engine = TurnsEngine(translator.engine, alone)
        self.variants: dict[Search, Translator] = {}

    def variant(self, search: Search) -> "Translator":
        """The translator for a search; those with a glossary of a request are not kept."""
        if search.glossary:
            return self.variant(replace(search, glossary=())).with_glossary(search.glossary)
        if search not in self.variants:
            usual = self.translator.engine.config
            decode = replace(usual, n_best=search.n_best, beam_size=max(usual.beam_size, search.n_best))
            self.variants[search] = self.translator.with_search(decode, search.details)
        return self.variants[search]

    def answer(self, task: Batch | WordAlternatives) -> Answer:
        """The answer to a task; NMTError where there is none."""
        if isinstance(task, WordAlternatives):
            found = self.translator.alternatives(task.line, task.before, task.count)
            return [Line([each.text], {"word": each.word, "probability": each.probability}) for each in found]
        answers, translator = list[Line | Failure](), self.variant(task.search)
        for line, translations in zip(task.lines, translator.translate_each(task.lines), strict=True):
            if isinstance(translations, RefusedLine):
                answers.append(Failure(translations.problem))
                continue
            words = word_details(translator, line, translations[0]) if task.search.details else {}
            answers.append(Line([each.text for each in translations], words, translations[0].flags))
        return answers


def answer_all(answers: Answers, tasks: "SimpleQueue[tuple[int, Any]]", connection: Connection, lock: Any) -> None:
    """Answer tasks until the process ends; a failure is the answer to its task alone."""
    while True:
        number, task = tasks.get()
        found: Answer | Failure
        try:
            found = answers.answer(task)
        except NMTError as error:
            found = Failure(str(error))
        except Exception as error:
            if is_out_of_memory(error):
                found = Failure("out of memory: send less text at once", broken=True)
            else:
                log_error(error)
                found = Failure("internal error, which the server's log names", broken=True)
        with lock:
            connection.send((number, found))


def serve_model(connection: Connection, config: TranslateConfig) -> None:
    """The main function of a model's process: tells Ready or a Failure, then answers numbered tasks."""
    begin()
    log_places()
    try:
        from nmt.translation import load_translator

        translator = load_translator(config, log)
        if config.engine == "ctranslate2":
            translator.engine.workers = 1  # type: ignore[attr-defined]  # a task is for one core: others have theirs
            translator.ahead = False
    except NMTError as error:
        connection.send(Failure(str(error)))
        return
    except Exception as error:  # the server has to learn of any, and answers with it
        log_error(error)
        connection.send(Failure(f"{type(error).__name__}: {one_line(error)}"))
        return
    connection.send(Ready())
    tasks: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    answers, lock = Answers(translator, alone=config.engine == "torch"), threading.Lock()
    for _ in range(tasks_at_once(config)):
        threading.Thread(target=answer_all, args=(answers, tasks, connection, lock), daemon=True).start()
    while True:
        try:
            tasks.put(connection.recv())
        except EOFError:  # the server ended
            return


def parse(document: SentDocument) -> "Document":
    """The document; NMTError where it is damaged."""
    from nmt.plugins.documents import read_document, read_file

    if document.format:
        return read_document(document.format, document.content)
    return read_file(document.name, document.content, document.target, document.source)


def answer_parsing(task: Read | Write) -> list[Lines] | list[list[bytes]] | Failure:
    """The lines of documents, or documents with the translations of their lines."""
    try:
        documents = map(parse, task.documents)
        if isinstance(task, Read):
            return [Lines(found.lines[: task.most + 1], type(found).__name__ != "PlainText") for found in documents]
        return [[found.join(lines) for lines in row] for found, row in zip(documents, task.variants, strict=True)]
    except NMTError as error:
        return Failure(str(error))
    except MemoryError:
        raise
    except Exception as error:  # a document may come from anyone
        log_error(error)
        return Failure("internal error, which the server's log names", broken=True)


def serve_documents(connection: Connection, most: tuple[int, int]) -> None:
    """The main function of a process that parses; a task that takes more than `most` bytes and seconds ends it."""
    most_bytes, most_seconds = most
    begin()
    log_places()
    os.nice(10)  # translation comes first
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    hard_limit = resource.getrlimit(resource.RLIMIT_CPU)[1]
    with suppress(EOFError, OSError, MemoryError):  # the server ended, or a task takes too much
        connection.send(Ready())
        while True:
            number, task = connection.recv()
            limit = math.ceil(time.process_time()) + most_seconds
            resource.setrlimit(resource.RLIMIT_CPU, (limit, hard_limit))
            connection.send((number, answer_parsing(task)))
