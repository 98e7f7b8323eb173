"""Translate lines, in order, with a chain of stages around a search. No torch.

A stage changes lines on their way in, calls the rest of the chain, and reverses the change in the translations. It may
call the rest more than once. Plugins register entries of kind "stage"; lines pass through them in ascending `order`.
"""

import math
import queue
import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from nmt.config import NMTError, TranslatorOptions, require
from nmt.search import Constraints, Engine, Hypothesis, Pair, penalty
from nmt.text import SOURCE, TARGET, Tokenizer, with_code
from nmt.translation.alignment import Describer, Details, PairScore
from nmt.translation.foreign import foreign_source
from nmt.translation.joining import join
from nmt.translation.segments import Limits, Line, Segment, Segmenter

if TYPE_CHECKING:
    from nmt.translation.load import Models

Item = TypeVar("Item")
LANGUAGE_TAG = re.compile(r"\s*(<2[\w-]{1,30}>|>>[\w-]{1,30}<<)")
NO_TRANSLATION = "no translation: the model has non-finite weights, or min_length conflicts with no_repeat_ngram_size"
AHEAD = 128  # lines per search; while a search runs, the next lines are prepared


class RefusedLine(NMTError):
    """The line at `index`, counted from 0, cannot be translated."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(index, problem)
        self.index, self.problem = index, problem

    def __str__(self) -> str:
        return f"line {self.index + 1}: {self.problem}"


@dataclass
class Translation:
    """A translation of a line; its score is log P(Y|X) / lp(Y)."""

    text: str
    score: float
    log_probability: float
    details: Details | None = None
    copied: list[str] = field(
        default_factory=list
    )  # stretches with characters that the model does not know
    flags: list[str] = field(default_factory=list)  # likely failures
    notes: dict[str, str] = field(default_factory=dict)  # what the user should know -> details


Outcome = (
    list[Translation] | RefusedLine
)  # the translations of a line, best first, or why there are none
Rest = Callable[
    [list[Line]], list[Outcome]
]  # the remaining stages of a chain, which ends with the search
Notice = Callable[[str], None]


class Stage:
    """A translation stage; this base class changes nothing."""

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        return rest(lines)

    def constraints(self, segments: Sequence[Segment]) -> Constraints | None:
        """What the translations of segments must contain."""

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        """Additional fields for a line's record; may add notes to the translation."""
        return {}


def with_refused(lines: Sequence[Line | RefusedLine], rest: Rest) -> list[Outcome]:
    """The outcomes of lines, some of which have already been refused."""
    outcomes = iter(rest([line for line in lines if isinstance(line, Line)]))
    return [next(outcomes) if isinstance(line, Line) else line for line in lines]


def ignore(lines: int) -> None:
    """The default of `Translator.searched`."""


def untagged(text: str, tokenizer: Tokenizer, align: bool = False) -> Line | RefusedLine:
    """A line stripped of its leading language tag; refused if the model lacks that tag."""
    if tag := tokenizer.leading_tag(text.lstrip()):
        return Line(text.lstrip().removeprefix(tag), f"{tag} ", align)
    unknown = LANGUAGE_TAG.match(text)
    if unknown and any(tag[:2] == unknown[1][:2] for tag in tokenizer.tags):
        return RefusedLine(0, f"{unknown[1]}: the model supports {', '.join(tokenizer.tags)}")
    return Line(text, align=align)


@dataclass(frozen=True, eq=False)
class Translator:
    """Translates raw text to detokenized text; `replace` makes another translator that shares the weights."""

    engine: Engine
    tokenizer: Tokenizer
    limits: Limits = field(default_factory=Limits)
    source_prefix: str = ""  # prepended to sources without a tag
    target_prefix: str = ""  # the beginning of each translation
    details: bool = False  # translations have details
    stages: tuple[Stage, ...] = ()  # in the order in which lines pass through them
    ahead: bool = (
        False  # the engine searches in its own threads and accepts more work in the meantime
    )
    options: TranslatorOptions = field(
        default_factory=TranslatorOptions
    )  # with engine=auto already resolved
    models: "Models | None" = None
    searched: Callable[[int], None] = ignore  # called with the number of lines after each search

    def __post_init__(self) -> None:
        source, target = len(self.segmenter.prefix_tokens(self.source_prefix)), len(self.prefix)
        positions = self.limits.positions or math.inf
        longest = self.limits.longest or positions
        require(
            source < longest,
            f"source_prefix: has {source} tokens, but must have fewer than {longest}",
        )
        require(
            target <= positions,
            f"target_prefix: has {target} tokens, but the model writes at most {positions}",
        )

    @cached_property
    def segmenter(self) -> Segmenter:
        return Segmenter(self.tokenizer, self.limits, self.source_prefix)

    @cached_property
    def prefix(self) -> list[int]:
        return self.tokenizer.encode([self.tokenizer.clean(self.target_prefix, TARGET)], TARGET)[0]

    def stream(self, lines: Iterable[str], buffer: int) -> Generator[list[Translation]]:
        """Yield the translations of a stream of lines as soon as possible; hold at most about 2 * `buffer` lines.

        A thread reads the lines until the generator is closed. Raises RefusedLine after the lines before it.
        """
        with closing(arriving_blocks(lines, buffer)) as blocks:
            yield from lines_of(map(self.translate_each, blocks))

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; a blank line has a single empty one. Raises RefusedLine."""
        return list(lines_of([self.translate_each(lines)]))

    def translate_each(self, lines: list[str]) -> list[Outcome]:
        """Like `translate`, but with an error in place of each refused line."""
        rest: Rest = self.search
        for stage in reversed(self.stages):
            rest = partial(stage.translate, rest=rest)
        return with_refused([untagged(line, self.tokenizer, self.details) for line in lines], rest)

    def search(self, lines: list[Line]) -> list[Outcome]:
        """Cut lines into segments and search for their translations; this ends the chain of stages."""
        if not self.ahead or len(lines) <= AHEAD:
            return self.search_at_once(lines)
        # Longest first, as in batches. While some lines are searched, others are encoded or decoded.
        order = sorted(
            range(len(lines)), key=lambda index: -len(lines[index].tag + lines[index].text)
        )
        parts = [
            [lines[index] for index in order[at : at + AHEAD]] for at in range(0, len(order), AHEAD)
        ]
        with ThreadPoolExecutor(2) as pool:
            outcomes = chain.from_iterable(pool.map(self.search_at_once, parts))
            results = dict(zip(order, outcomes, strict=True))
        return [results[index] for index in range(len(lines))]

    def search_at_once(self, lines: list[Line]) -> list[Outcome]:
        rows = self.segmenter.segment(lines)
        problems = [self.segmenter.too_long(row) for row in rows]
        searched = [
            (line, row)
            for line, row, problem in zip(lines, rows, problems, strict=True)
            if not problem
        ]
        parts = [(line, part) for line, row in searched for part in row if not part.copied]
        segments = [part for _, part in parts]
        constraints = next(
            filter(None, (stage.constraints(segments) for stage in self.stages)), None
        )
        results = self.engine.search(
            [part.ids for part in segments], [self.prefix] * len(segments), constraints
        )
        aligned = [
            (part.ids, hypothesis)
            for (line, part), hypotheses in zip(parts, results, strict=True)
            for hypothesis in hypotheses
            if line.align
        ]
        if aligned:
            scores = self.engine.token_scores(
                [(ids, hypothesis.tokens) for ids, hypothesis in aligned]
            )
            for (_, hypothesis), token_scores in zip(aligned, scores, strict=True):
                hypothesis.token_scores = token_scores
        remaining, copy = iter(results), [Hypothesis([], 0.0, 0.0)]
        of_lines = [
            [copy if part.copied else next(remaining) for part in row] for _, row in searched
        ]
        joined = (
            self.join(*pair, hypotheses) if all(hypotheses) else RefusedLine(0, NO_TRANSLATION)
            for pair, hypotheses in zip(searched, of_lines, strict=True)
        )
        outcomes = [RefusedLine(0, problem) if problem else next(joined) for problem in problems]
        self.searched(len(lines))
        return outcomes

    def join(
        self, line: Line, segments: list[Segment], hypotheses: list[list[Hypothesis]]
    ) -> list[Translation]:
        """The translations of a line, best first; each is joined from hypotheses of the same rank, one per segment."""
        notes, prefix = dict[str, str](), line.tag or self.source_prefix
        clean = self.segmenter.clean
        describer = Describer(self.tokenizer, line.text, prefix, clean) if line.align else None
        if length := max((segment.part for segment in segments), default=0):
            limit = self.limits.longest or 0
            notes["too long for the model, translated in parts"] = (
                f"a sentence of {length:,} tokens (limit: {limit:,})"
            )
        copied = [segment.text for segment in segments if segment.copied]
        source = (
            foreign_source(line.text, copied, self.models.descriptions[0]) if self.models else None
        )
        if source:
            notes[f"the text does not seem to be in {with_code(source)}"] = ""
        translations = []
        for n in range(max(map(len, hypotheses), default=1)):
            parts = [
                row[min(n, len(row) - 1)] for row in hypotheses
            ]  # a shorter row repeats its last hypothesis
            joined = join(self.tokenizer, segments, parts, self.prefix)
            log_probability = sum((part.log_probability for part in parts), start=0.0)
            if len(parts) == 1 and not copied:
                score = parts[0].score
            else:
                length = sum(
                    len(part.tokens) + 1
                    for part, at in zip(parts, segments, strict=True)
                    if not at.copied
                )
                score = log_probability / penalty(max(length, 1), self.engine.config)
            scores = describer.describe(segments, parts, joined) if describer else None
            row = Translation(
                joined.text, score, log_probability, scores, copied.copy(), notes=notes.copy()
            )
            translations.append(row)
        # With its own length penalty, a translation joined from second hypotheses may rank above that from the first.
        return sorted(translations, key=lambda translation: -translation.score)


def lines_of(blocks: Iterable[list[Outcome]]) -> Iterator[list[Translation]]:
    """The translations of each line, block by block; the index of a RefusedLine counts from the first block."""
    for index, outcome in enumerate(chain.from_iterable(blocks)):
        if isinstance(outcome, RefusedLine):
            raise RefusedLine(index, outcome.problem) from outcome
        yield outcome


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]]) -> list[Pair]:
    sides = [
        tokenizer.encode([tokenizer.clean(pair[side], side) for pair in pairs], side)
        for side in (SOURCE, TARGET)
    ]
    return list(zip(*sides, strict=True))


def score_pairs(translator: Translator, pairs: Sequence[tuple[str, str]]) -> list[PairScore]:
    """Score given translations; a source without a tag gets the translator's source prefix."""
    tokenizer, texts = translator.tokenizer, list[tuple[str, str]]()
    for index, (source, target) in enumerate(pairs):
        line = untagged(source, tokenizer)
        if isinstance(line, RefusedLine):
            raise RefusedLine(index, line.problem)
        texts.append(((line.tag or translator.source_prefix) + line.text, target))
    encoded = encode_pairs(tokenizer, texts)
    scores = translator.engine.token_scores(encoded, align=False)
    return [
        PairScore(tokenizer.subwords(target), score.log_probabilities)
        for (_, target), score in zip(encoded, scores, strict=True)
    ]


@contextmanager
def read_by_thread(
    items: Iterable[Item], size: int
) -> "Iterator[queue.Queue[Item | BaseException | None]]":
    """A queue of at most `size` items, filled by a thread until the block ends.

    After the last item, it holds None or an exception from `items`.
    """
    arrived: queue.Queue[Item | BaseException | None] = queue.Queue(size)
    closed = threading.Event()

    def read() -> None:
        try:
            for item in items:
                arrived.put(item)
                if closed.is_set():
                    return
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    try:
        yield arrived
    finally:
        closed.set()
        with suppress(queue.Empty):  # the thread may be waiting for room
            while True:
                arrived.get_nowait()


def arriving_blocks(
    lines: Iterable[str], size: int, patience: float = 0.05
) -> Generator[list[str]]:
    """Yield blocks of at most `size` lines: those that arrive within `patience` seconds of the first of them."""
    with read_by_thread(lines, size) as arrived:
        item: str | BaseException | None = ""
        while isinstance(item, str) and isinstance(item := arrived.get(), str):
            block, end = [item], time.monotonic() + patience
            with suppress(queue.Empty):
                while len(block) < size:
                    item = arrived.get(timeout=max(end - time.monotonic(), 0.001))
                    if not isinstance(item, str):
                        break
                    block.append(item)
            yield block
        if item is not None:
            raise item
