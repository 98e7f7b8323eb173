"""The served models: each has a queue of lines of all clients, and threads that translate them."""

import asyncio
import math
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product
from typing import Any, cast

from nmt import files, hardware, translation
from nmt.config import TranslatorOptions, require
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.failures import Failed, failure_of, log
from nmt.plugins.serve.other_words import OtherWordSearch, SplitText, joined
from nmt.plugins.serve.parsing import Line
from nmt.plugins.serve.queues import BATCH_LINES, LONG_LINE, Queue, Search, WaitingLine
from nmt.plugins.serve.reloading import version_of
from nmt.translation import Direction, Translated

BATCH_WAIT = 0.003
"""Seconds that a batch's first line waits for more lines, if there are several clients."""
TURN_TOKENS = 1500
"""The maximum number of tokens per torch search, so that the next text need not wait long."""
MOST_DIRECTIONS = 1000
"""The maximum number of pairs of languages, or of translators for them, that a model keeps."""


# Two batches of a torch engine are in progress at a time, but only one of them searches.
class Turns:
    """A lock that threads acquire in the order in which they request it."""

    def __init__(self) -> None:
        self.entrance = threading.Lock()
        self.room = threading.Lock()

    def __enter__(self) -> None:
        # The next thread waits at the entrance. With a single lock, a leaving thread could re-enter
        # first.
        with self.entrance:
            self.room.acquire()

    def __exit__(self, *error: object) -> None:
        self.room.release()


def is_long(batch: Sequence[WaitingLine]) -> bool:
    """Whether a batch is a single long line."""
    return len(batch[0].text) > LONG_LINE


class ServedModel:
    """A model and its threads.

    Raises NMTError if the model cannot be read or is not for translation.
    """

    def __init__(self, name: str, config: ServeConfig) -> None:
        self.name = name
        self.config = config
        # Without links: `runs/latest` may lead to a run of other languages tomorrow.
        self.folder = files.find_model_directory(name).resolve()
        # Before anything is read, so that a later change is noticed.
        self.version = version_of(self.folder)
        self.queue = Queue()
        self.batches = 0
        """The number of batches being translated."""
        self.long_lines = 0
        """The number of these batches that are a single long line."""
        self.crowded = False
        """Whether the last batch had lines of several requests."""
        self.is_scheduled = False
        """Whether `submit_batch` will run soon."""
        # Only descriptions and vocabularies; `load` reads the weights.
        self.models = translation.find_models([name])
        [description] = self.models.descriptions
        require(not files.is_parser(description), f"run={name}: is a parser; use `nmt parse`")
        self.sources = self.models.source_languages()
        self.targets = self.models.target_languages()
        self.flags_of = lru_cache(MOST_DIRECTIONS)(partial(translation.flagger, self.models))
        """Returns a function that flags the translations in a direction."""
        decode = config.translator.decode
        turn = min(TURN_TOKENS, decode.batch_tokens or TURN_TOKENS)
        options = replace(
            config.translator,
            run=[name],
            decode=replace(decode, batch_tokens=turn),
        )
        # Any languages, because each request names its own.
        self.options = self.options_for(options, next(self.directions()))
        translation.stages_of(self.options, self.models)  # checks glossaries

    def reopened(self) -> "ServedModel":
        """The model that is now in the folder, which `load` has to load; NMTError if it is bad."""
        model = ServedModel(str(self.folder), self.config)
        model.name = self.name
        return model

    def close(self) -> None:
        """Free the weights of a model that no request uses any longer."""
        self.pool.shutdown(wait=False)
        self.translator_for.cache_clear()
        del self.translator

    def directions(self) -> Iterator[Direction]:
        """All pairs of languages between which the model translates."""
        for source, target in product(self.sources, self.targets):
            # A model of two languages may have the same ones, such as one that corrects errors.
            if source != target or len(self.sources) == 1:
                yield Direction(source, target)

    def options_for(self, options: TranslatorOptions, direction: Direction) -> TranslatorOptions:
        """Options with the languages of a direction, where the model lets users choose."""
        source = direction.source if len(self.sources) > 1 else None
        target = direction.target if len(self.targets) > 1 else None
        return replace(options, source=source, target=target)

    def load(self) -> None:
        """Load the model; raises NMTError if that fails."""
        begin = time.monotonic()
        options = translation.with_engine(self.options, log)
        translator = translation.load_translator(options, log)
        engine = cast(Any, translator.engine)
        if translator.ahead:  # a CPU engine: each search uses one core
            # It would otherwise divide each call among all workers, which the other threads of this
            # server keep busy.
            engine.workers = 1
            self.searches = options.compute.threads or hardware.usable_cores()
        else:
            engine.turn = Turns()
            self.searches = 1
        # One batch more than searches: it is encoded or decoded while the others are searched.
        self.most_batches = self.searches + 1
        self.pool = ThreadPoolExecutor(self.most_batches)
        # The threads already overlap encoding, search and decoding.
        self.translator = replace(translator, ahead=False)
        # Clients choose from few settings, since `alternatives` has a limit, but possibly from
        # thousands of pairs of languages. Prefixes are free text, so translators for them are not
        # kept.
        self.translator_for = lru_cache(MOST_DIRECTIONS)(self.make_translator)
        seconds = time.monotonic() - begin
        log(f"{self.name}: loaded with {options.compute.engine} in {seconds:.1f} s")

    def schedule(self) -> None:
        """Schedule a batch if lines and a thread are waiting.

        If several clients send lines, leave time for more.
        """
        has_thread = self.batches < self.most_batches
        if self.queue.lines and has_thread and not self.is_scheduled:
            self.is_scheduled = True
            # A single client gains nothing from waiting.
            seconds = BATCH_WAIT if self.crowded else 0
            asyncio.get_running_loop().call_later(seconds, self.submit_batch)

    def submit_batch(self) -> None:
        """Submit the next batch to the threads."""
        self.is_scheduled = False
        # Leave some lines for further searches, which can run in parallel.
        # Otherwise, one of the cores would translate all lines.
        idle_searches = max(1, self.searches - self.batches)
        most = math.ceil(self.queue.lines / idle_searches)
        batch = self.queue.take(min(most, BATCH_LINES), long_too=not self.long_lines)
        if not batch:
            return
        # Recent batches show whether more lines are about to arrive.
        self.crowded = len({line.request for line in batch}) > 1
        self.batches += 1
        if is_long(batch):
            self.long_lines += 1
        # A batch is an item of work that cannot be cancelled; if its clients leave, its answers are
        # dropped.
        self.pool.submit(self.translate_batch, batch, asyncio.get_running_loop())
        # Another thread may be free, and the next lines may suit it.
        self.schedule()

    def translate_batch(self, batch: list[WaitingLine], loop: asyncio.AbstractEventLoop) -> None:
        """In a thread, translate a batch and send the result to the event loop."""
        begin = time.monotonic()
        texts = [line.text for line in batch]
        answers = self.translate(batch[0].request.search, texts)
        seconds = time.monotonic() - begin
        # The queue and the futures belong to the event loop's thread.
        loop.call_soon_threadsafe(self.finish_batch, batch, answers, seconds)

    def finish_batch(
        self, batch: list[WaitingLine], answers: "list[Line | Failed]", seconds: float
    ) -> None:
        """Deliver the result for each line of a batch."""
        for line, answer in zip(batch, answers, strict=True):
            line.give(answer)
        characters = sum(len(line.text) for line in batch)
        self.queue.adapt_size(characters, seconds)
        self.batches -= 1
        if is_long(batch):
            self.long_lines -= 1
        self.schedule()

    def make_translator(self, search: Search) -> translation.Translator:
        """A translator with search settings, which shares the model's weights."""
        usual = self.translator
        options = usual.options
        if search.direction != usual.direction:
            options = self.options_for(options, search.direction)
        # Only clients that ask for details read probabilities, which take time.
        options = replace(options, judged=search.aligned and search.prefix is None)
        if options != usual.options:
            usual = translation.in_languages(usual, options)
        config = usual.engine.config
        # A beam search has at most as many translations as its beam has hypotheses.
        beam_size = max(config.beam_size, search.n_best)
        engine = usual.engine.with_search(
            replace(config, n_best=search.n_best, beam_size=beam_size)
        )
        stages = usual.stages
        if search.prefix is not None:
            # An engine with another search: stages around it treat other words like any
            # translation.
            text = SplitText(joined(search.prefix, search.rest))
            at = len(SplitText(search.prefix).words)
            tag = usual.tokenizer.leading_tag(usual.source_prefix)
            start = usual.tokenizer.target_start(tag)
            other = cast(Any, copy(engine))
            other.search = OtherWordSearch(engine, usual.tokenizer, text, at, start).search
            engine = other
            # A line of a translation memory has other words, too, but only the model knows them.
            stages = tuple(stage for stage in stages if not stage.translates)
        return replace(usual, engine=engine, details=search.aligned, stages=stages)

    def drop_without_terms(
        self, search: Search, line: str, row: list[translation.Translation]
    ) -> None:
        """Drop alternatives that lack a glossary term that the replaced translation has."""
        if search.prefix is not None:
            usual = joined(search.prefix, search.rest)
        elif len(row) > 1:
            usual = row[0].text
        else:
            return
        # Only terms that the usual translation has: the search may have had to drop some.
        terms = self.terms_in(line, usual)
        row[:] = [other for other in row if terms <= self.terms_in(line, other.text)]
        if not row:  # the client then finds no other word
            row.append(translation.Translation(usual, 0.0, 0.0))

    def terms_in(self, line: str, text: str) -> set[int]:
        """The numbers of the glossary's terms in a line whose translation is in `text`."""
        used = set[int]()
        number = 0
        for stage in self.translator.stages:
            report = stage.report(line, translation.Translation(text, 0.0, 0.0))
            for term in report.get("terms", ()):
                if term["verdict"] == "used":
                    used.add(number)
                number += 1
        return used

    def translate(self, search: Search, lines: list[str]) -> list[Line | Failed]:
        """The answer for each line; the same failure for all lines after an unexpected error."""
        if search.prefix is None:
            # Then `rest`, which could have any value, has no effect.
            translator = self.translator_for(search._replace(rest=""))
            blocks = [lines]
        else:
            translator = self.make_translator(search)
            blocks = [[line] for line in lines]  # the prefix is that of a single line
        try:
            for stage in translator.stages:
                stage.refresh()
            outcomes = list[translation.Outcome]()
            for block in blocks:
                outcomes += translator.translate_each(block)
            answers = list[Line | Failed]()
            for line, outcome in zip(lines, outcomes, strict=True):
                answers.append(self.answer(search, line, outcome))
            return answers
        except Exception as error:
            # The thread must deliver an answer in any case, or its clients would wait until the
            # time limit.
            return [failure_of(error)] * len(lines)

    def answer(self, search: Search, line: str, outcome: translation.Outcome) -> Line | Failed:
        if isinstance(outcome, translation.RefusedLine):
            return Failed(400, outcome.problem)
        self.drop_without_terms(search, line, outcome)
        answer = list[Translated]()
        for row in outcome:
            alignment = row.details.alignment if row.details else None
            memory = row.memory.as_json() if row.memory else None
            translated = Translated(
                row.text,
                alignment,
                probability=row.probability,
                memory=memory,
            )
            answer.append(translated)
        return answer
