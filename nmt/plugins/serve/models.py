"""The served models: each has a queue of lines from all clients, and threads that translate them."""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple, cast

from nmt import files, hardware, translation
from nmt.config import require
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.failures import Failed, failure_of, log
from nmt.plugins.serve.parsing import Line
from nmt.search import Engine
from nmt.text import NO_BLANK_BESIDE, TARGET, WITHOUT_BLANKS, Tokenizer, word_spans
from nmt.translation import Translated

LONG = 1000  # characters; each longer line forms a separate batch, and only one such batch runs at a time
BATCH_LINES, BATCH_CHARACTERS = 128, 8000  # maximum per batch
BATCH_SECONDS = 0.3  # target time per batch, so that no batch delays the next one for long
BATCH_WAIT = (
    0.003  # seconds that a batch's first line waits for more lines, if there are several clients
)
TURN_TOKENS = 1500  # maximum tokens per torch search, so that the next text need not wait long
BEAM = 12  # the number of tokens to try as the beginning of another word
MOST_REPLACED = 40  # the most words of a line that a user can replace and still get alternatives for later words


class Search(NamedTuple):
    """The search settings for a line; the same for all lines in a batch."""

    tag: str = ""  # the target language's tag, with a trailing space
    n_best: int = 1
    aligned: bool = False
    prefix: str | None = None  # what each translation begins with; the next word differs
    rest: str = ""  # the translation so far after the prefix


class Turns:
    """A lock that threads acquire in the order in which they request it."""

    def __init__(self) -> None:
        self.entrance, self.room = threading.Lock(), threading.Lock()

    def __enter__(self) -> None:
        with (
            self.entrance
        ):  # the next thread waits here; with a single lock, a leaving thread could re-enter first
            self.room.acquire()

    def __exit__(self, *error: object) -> None:
        self.room.release()


class Words:
    """The words of a text, as alignments count them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans = word_spans(text)
        self.words = [text[begin:end] for begin, end in self.spans]

    def text_of(self, begin: int, end: int) -> str:
        """The text from word `begin` to before word `end`."""
        if begin >= end:
            return ""
        return self.text[self.spans[begin][0] : self.spans[end - 1][1]]


def joined(prefix: str, rest: str) -> str:
    """A translation from its two parts, between which clients may omit a blank."""
    ends = prefix[-1:], rest[:1]
    is_apart = any(map(str.isspace, ends))
    has_no_blanks = any(map(WITHOUT_BLANKS.match, ends)) or any(map(NO_BLANK_BESIDE.match, ends))
    return prefix + rest if is_apart or has_no_blanks else f"{prefix} {rest}"


def other_words(
    engine: Engine, tokenizer: Tokenizer, text: Words, at: int, ids: Sequence[Any], *more: Any
) -> Any:
    """Search; the sentence with word `at` gets translations with other words there, others keep those of `text`."""
    results, searches = engine.search(ids, *more), MOST_REPLACED
    first = 0  # the first word of the sentence in `text`

    def beginning(count: int) -> list[int]:
        """The tokens of the sentence's first words."""
        end = min(first + count, len(text.words))
        return tokenizer.encode([tokenizer.clean(text.text_of(first, end), TARGET)], TARGET)[0]

    for index, sentence in enumerate(ids):
        forced, best, words = 0, list[str](), text.words[first:]
        other: int | None = None
        while results[index]:
            best = Words(tokenizer.decode(results[index][0].tokens)).words
            other = next(
                (n for n, pair in enumerate(zip(best, words, strict=False)) if pair[0] != pair[1]),
                None,
            )
            if other is None or forced == len(words) or not searches:
                break
            forced, searches = max(forced, other) + 1, searches - 1
            results[index] = engine.search([sentence], [beginning(forced)])[0]
        if results[index] and at >= first and (at < first + len(best) or other is not None):
            begin, at = beginning(at - first), -1
            # At a maximum length of one more token, the beam consists of the likeliest ones.
            extra = len(begin) + 1 - len(sentence)
            search = engine.with_search(
                replace(engine.config, beam_size=BEAM, n_best=BEAM, max_extra_length=extra)
            )
            begun = [
                begun.tokens[: len(begin) + 1] for begun in search.search([sentence], [begin])[0]
            ]
            results[index] = [
                row[0] for row in engine.search([sentence] * len(begun), begun) if row
            ]
        first += len(best)
    return results


@dataclass(eq=False)
class WaitingLine:
    text: str
    request: "Request"
    answer: "asyncio.Future[Line]"

    def give(self, answer: Line | Failed) -> None:
        if not self.answer.done():  # the client may have disconnected
            give: Any = (
                self.answer.set_exception if isinstance(answer, Failed) else self.answer.set_result
            )
            give(answer)
            self.answer.exception()  # or asyncio would log an exception as never retrieved


class Request:
    """One client request; `lines` holds the lines that are not yet in a batch."""

    def __init__(self, search: Search, lines: Iterable[str] = ()) -> None:
        self.search = search
        self.lines, self.answers = deque[WaitingLine](), list[asyncio.Future[Line]]()
        self.extend(lines)

    def extend(self, lines: Iterable[str]) -> None:
        """Add lines, before the request is queued."""
        loop = asyncio.get_running_loop()
        for text in lines:
            line = WaitingLine(text, self, loop.create_future())
            self.lines.append(line)
            self.answers.append(line.answer)


class Queue:
    """Requests in the order in which they take turns."""

    def __init__(self) -> None:
        self.requests = deque[Request]()
        self.new_first = True  # whether the next batch starts with a new request; alternates
        self.most_characters = (
            LONG  # characters translated in about BATCH_SECONDS, as measured so far
        )

    @property
    def lines(self) -> int:
        return sum(len(request.lines) for request in self.requests)

    def add(self, request: Request) -> None:
        if request.lines:
            self.requests.append(request)

    def remove(self, request: Request) -> None:
        """Drop a request's lines that are not yet in a batch."""
        self.requests = deque(other for other in self.requests if other is not request)

    def take(self, most: int = BATCH_LINES, long_too: bool = True) -> list[WaitingLine]:
        """Take a batch of at most `most` lines with the same search settings; requests take turns line by line.

        Every second batch starts with a new request. A long line gets its own batch, or stays queued if `long_too` is
        false.
        """
        turns = deque(
            request for request in self.requests if long_too or len(request.lines[0].text) <= LONG
        )
        new = (
            n
            for n, request in enumerate(turns)
            if self.new_first and len(request.lines) == len(request.answers)
        )
        self.new_first = not self.new_first
        turns.rotate(-next(new, 0))
        batch, characters = list[WaitingLine](), 0
        while turns and len(batch) < most and characters < self.most_characters:
            request = turns.popleft()
            alone = len(request.lines[0].text) > LONG
            if batch and (alone or request.search != batch[0].request.search):
                continue
            batch.append(request.lines.popleft())
            characters += len(batch[-1].text)
            if alone:
                break
            if request.lines:
                turns.append(request)
        served = {line.request for line in batch}
        self.requests = deque(
            request for request in sorted(self.requests, key=served.__contains__) if request.lines
        )
        return batch

    def took(self, characters: int, seconds: float) -> None:
        """Update the batch size based on a batch's translation time."""
        if characters > self.most_characters / 2:  # a smaller batch says little about speed
            in_time = round(BATCH_SECONDS * characters / max(seconds, 0.001))
            self.most_characters = max(LONG, min(BATCH_CHARACTERS, in_time))


class ServedModel:
    """A model and its threads; raises NMTError if the model cannot be read or is not for translation."""

    batches, long_lines = (
        0,
        0,
    )  # batches being translated, and how many of them are a single long line
    crowded = False  # whether the last batch had lines of several requests
    is_scheduled = False  # whether `submit_batch` will run soon

    def __init__(self, name: str, config: ServeConfig) -> None:
        self.name, self.queue = name, Queue()
        models = _, [description], tokenizer = translation.find_models([name])
        self.flags_of = translation.flagger(models)
        require(not files.is_parser(description), f"run={name}: is a parser; use `nmt parse`")
        targets = translation.languages(tokenizer)
        self.source = description.source
        tags = {code: translation.language_tag(code, tokenizer) for code in targets}
        self.tags = tags or {description.target: ""}
        """Maps target languages to their tags with a trailing space; the tag of a sole target language is empty."""
        decode = config.translator.decode
        turn = min(TURN_TOKENS, decode.batch_tokens or TURN_TOKENS)
        decode = replace(decode, batch_tokens=turn)
        self.options = replace(
            config.translator, run=[name], target=next(iter(targets), None), decode=decode
        )
        translation.stages_of(self.options)  # checks glossaries

    def load(self) -> None:
        """Load the model; raises NMTError if that fails."""
        begun, options = time.monotonic(), translation.with_engine(self.options, log)
        translator = translation.load_translator(options, log)
        engine = cast(Any, translator.engine)
        self.searches = 1
        if translator.ahead:  # a CPU engine: each search uses one core
            self.searches, engine.workers = options.compute.threads or hardware.usable_cores(), 1
        else:
            engine.turn = Turns()
        # One batch more than searches: it is encoded or decoded while the others are searched.
        self.most_batches = self.searches + 1
        self.pool = ThreadPoolExecutor(self.most_batches)
        self.translator = replace(translator, ahead=False)
        self.translator_for = cache(self.make_translator)
        log(
            f"{self.name}: loaded with {options.compute.engine} in {time.monotonic() - begun:.1f} s"
        )

    def schedule(self) -> None:
        """Schedule a batch if lines and a thread are waiting; if several clients send lines, leave time for more."""
        if self.queue.lines and self.batches < self.most_batches and not self.is_scheduled:
            self.is_scheduled = True
            asyncio.get_running_loop().call_later(
                BATCH_WAIT if self.crowded else 0, self.submit_batch
            )

    def submit_batch(self) -> None:
        """Submit the next batch to the threads."""
        self.is_scheduled = False
        # Leave some lines for further searches, which can run in parallel.
        most = math.ceil(self.queue.lines / max(1, self.searches - self.batches))
        if batch := self.queue.take(min(most, BATCH_LINES), long_too=not self.long_lines):
            self.crowded = len({line.request for line in batch}) > 1
            self.batches += 1
            self.long_lines += len(batch[0].text) > LONG
            self.pool.submit(self.translate_batch, batch, asyncio.get_running_loop())
            self.schedule()

    def translate_batch(self, batch: list[WaitingLine], loop: asyncio.AbstractEventLoop) -> None:
        """In a thread, translate a batch and send the result to the event loop."""
        begun, texts = time.monotonic(), [line.text for line in batch]
        answers = self.translate(batch[0].request.search, texts)
        loop.call_soon_threadsafe(self.finish_batch, batch, answers, time.monotonic() - begun)

    def finish_batch(
        self, batch: list[WaitingLine], answers: "list[Line | Failed]", seconds: float
    ) -> None:
        """Deliver the result for each line of a batch."""
        for line, answer in zip(batch, answers, strict=True):
            line.give(answer)
        self.queue.took(sum(len(line.text) for line in batch), seconds)
        self.batches -= 1
        self.long_lines -= len(batch[0].text) > LONG
        self.schedule()

    def make_translator(self, search: Search) -> translation.Translator:
        usual = self.translator
        beam_size = max(usual.engine.config.beam_size, search.n_best)
        engine = usual.engine.with_search(
            replace(usual.engine.config, n_best=search.n_best, beam_size=beam_size)
        )
        if search.prefix is not None:
            other, at = cast(Any, copy(engine)), len(Words(search.prefix).words)
            text = Words(joined(search.prefix, search.rest))
            other.search = partial(other_words, engine, usual.tokenizer, text, at)
            engine = other
        return replace(
            usual,
            engine=engine,
            details=search.aligned,
            source_prefix=search.tag or usual.source_prefix,
        )

    def drop_without_terms(
        self, search: Search, line: str, row: list[translation.Translation]
    ) -> None:
        """Drop alternatives that lack a glossary's translation which the translation has that they would replace."""
        if len(row) < 2 and search.prefix is None:
            return
        usual = row[0].text if search.prefix is None else joined(search.prefix, search.rest)
        terms = self.terms_in(line, usual)
        row[:] = [other for other in row if terms <= self.terms_in(line, other.text)]
        if not row:  # the client then finds no other word
            row.append(translation.Translation(usual, 0.0, 0.0))

    def terms_in(self, line: str, text: str) -> set[int]:
        """The numbers of the glossary's terms in a line whose translation is in `text`."""
        reports = [
            stage.report(line, translation.Translation(text, 0.0, 0.0))
            for stage in self.translator.stages
        ]
        terms = [term for report in reports for term in report.get("terms", ())]
        return {number for number, term in enumerate(terms) if term["verdict"] == "used"}

    def translate(self, search: Search, lines: list[str]) -> list[Line | Failed]:
        if search.prefix is None:  # `rest`, which could have any value, then has no effect
            translator, blocks = self.translator_for(search._replace(rest="")), [lines]
        else:
            translator, blocks = self.make_translator(search), [[line] for line in lines]
        try:
            outcomes = [*chain.from_iterable(map(translator.translate_each, blocks))]
            for line, outcome in zip(lines, outcomes, strict=True):
                if isinstance(outcome, list):
                    self.drop_without_terms(search, line, outcome)
            return [
                [Translated(t.text, t.details.alignment if t.details else None) for t in outcome]
                if isinstance(outcome, list)
                else Failed(400, outcome.problem)
                for outcome in outcomes
            ]
        except Exception as error:
            return [failure_of(error)] * len(lines)
