"""Lines to lines: a chain of stages around a search, which restores the order. No torch: an engine searches.

A stage changes lines on the way in, calls the rest of the chain, and undoes that in the translations on the way out. It
may call the rest again. The registry has all stages, as kind "stage", with the `order` in which lines pass them.
"""

import queue
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from nmt.config import TranslatorOptions
from nmt.errors import NMTError
from nmt.search import Constraints, Engine, Hypothesis, penalty
from nmt.text import TARGET, Tokenizer
from nmt.translation.segments import Limits, Line, Segment, Segmenter, join

if TYPE_CHECKING:
    from nmt.translation.load import Models
    from nmt.translation.scores import Details

Item = TypeVar("Item")
LANGUAGE_TAG = re.compile(r"\s*(<2[\w-]{1,30}>|>>[\w-]{1,30}<<)")
LOOK_ALIKES = dict(zip("\u2018\u2019\u201c\u201d\u2010\u2011\u2013\u2014", "''\"\"----", strict=True))
AHEAD = 128  # lines of a search, during which the next lines are prepared


class RefusedLine(NMTError):
    """The line at `index`, counted from 0, cannot be translated."""

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(index, problem)
        self.index, self.problem = index, problem

    def __str__(self) -> str:
        return f"line {self.index + 1}: {self.problem}"


@dataclass
class Translation:
    """One of a line's translations; its score is log P(Y|X) / lp(Y)."""

    text: str
    score: float
    log_probability: float
    details: "Details | None" = None
    copied: list[str] = field(default_factory=list)  # stretches whose characters the model does not know
    flags: list[str] = field(default_factory=list)  # likely failures
    notes: dict[str, str] = field(default_factory=dict)  # what a user should know about it, by kind


Outcome = list[Translation] | RefusedLine
"""The translations of a line, best first, or why it is refused."""
Rest = Callable[[list[Line]], list[Outcome]]
"""The rest of a chain of stages, which ends with the search."""
Notice = Callable[[str], None]
"""Called with what a user should know."""


class Stage:
    """A stage of translation, which by itself does nothing."""

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        return rest(lines)

    def constraints(self, segments: Sequence[Segment]) -> Constraints | None:
        """What the translations of segments must have."""

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        """More fields for the record of a line; it may add notes to the translation."""
        return {}


def with_refused(lines: Sequence[Line | RefusedLine], rest: Rest) -> list[Outcome]:
    """The outcomes of lines, some of which are refused."""
    outcomes = iter(rest([line for line in lines if isinstance(line, Line)]))
    return [next(outcomes) if isinstance(line, Line) else line for line in lines]


def split_tag(line: str, tokenizer: Tokenizer) -> tuple[str, str]:
    """The tag that a line begins with, and a blank, and its rest; NMTError for a tag that the model does not have."""
    if not tokenizer.tags:
        return "", line
    if tag := tokenizer.leading_tag(line.lstrip()):
        return f"{tag} ", line.lstrip().removeprefix(tag)
    other = LANGUAGE_TAG.match(line)
    if other and any(tag[:2] == other[1][:2] for tag in tokenizer.tags):
        raise NMTError(f"{other[1]}: the model has {', '.join(tokenizer.tags)}")
    return "", line


class Tags(Stage):
    """Takes the tag off each line that begins with one."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        untagged = list[Line | RefusedLine]()
        for line in lines:
            try:
                tag, text = split_tag(line.text, self.tokenizer)
                untagged.append(replace(line, text=text, tag=tag))
            except NMTError as error:
                untagged.append(RefusedLine(0, str(error)))
        return with_refused(untagged, rest)


class Characters(Stage):
    """Writes plain quotes and dashes instead of typographic ones that the model does not know; reports copied text."""

    def __init__(self, characters: frozenset[str]) -> None:
        self.look_alikes = {ord(a): b for a, b in LOOK_ALIKES.items() if a not in characters and b in characters}

    def translate(self, lines: list[Line], rest: Rest) -> list[Outcome]:
        return rest([replace(line, text=line.text.translate(self.look_alikes)) for line in lines])

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        return {"copied": best.copied} if best.copied else {}


def tags(options: TranslatorOptions, tokenizer: Tokenizer, *others: Any) -> Tags | None:
    return Tags(tokenizer) if tokenizer.tags else None


def characters(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits, *others: Any) -> Characters | None:
    return None if limits.characters is None else Characters(limits.characters)


@dataclass(frozen=True, eq=False)
class Translator:
    """An engine with its tokenizer, within stages: raw text in, detokenized text out.

    `replace` of dataclasses makes one with another search or other stages, which shares the weights.
    """

    engine: Engine
    tokenizer: Tokenizer
    limits: Limits = field(default_factory=Limits)
    source_prefix: str = ""  # of every source without a tag of its own
    target_prefix: str = ""  # of every translation
    details: bool = False  # translations have details
    stages: tuple[Stage, ...] = ()  # in the order in which lines pass them
    ahead: bool = False  # while the engine searches, it leaves this thread to others, and takes further work
    options: TranslatorOptions = field(default_factory=TranslatorOptions)  # the engine is not auto
    models: "Models | None" = None

    def __post_init__(self) -> None:
        source, positions = len(self.segmenter.prefix_tokens(self.source_prefix)), self.limits.positions
        longest = self.limits.longest or positions
        if longest is not None and source >= longest:
            raise NMTError(f"source_prefix has {source} tokens, but the model takes {longest} at most")
        if positions is not None and len(self.prefix) > positions:
            raise NMTError(f"target_prefix has {len(self.prefix)} tokens, but the model writes {positions} at most")

    @cached_property
    def segmenter(self) -> Segmenter:
        return Segmenter(self.tokenizer, self.limits, self.source_prefix)

    @cached_property
    def prefix(self) -> list[int]:
        return self.tokenizer.encode([self.tokenizer.clean(self.target_prefix)], TARGET)[0]

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[Translation]]:
        """The translations of a stream of lines, in order and as soon as possible.

        At most about twice `buffer` lines are in memory. The lines that have arrived are translated together, without
        waiting for more. Raises RefusedLine where `translate` does, after the translations of the lines before.
        """
        return lines_of(map(self.translate_each, arriving_blocks(lines, buffer)))

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; an empty line has one, which is empty.

        Raises RefusedLine for the first line that the model has no positions or no tag for.
        """
        return list(lines_of([self.translate_each(lines)]))

    def translate_each(self, lines: list[str]) -> list[Outcome]:
        """As `translate`, with the error of a refused line in its place: other lines are translated."""
        rest: Rest = self.search
        for stage in reversed(self.stages):
            rest = partial(stage.translate, rest=rest)
        return rest([Line(line, align=self.details) for line in lines])

    def search(self, lines: list[Line]) -> list[Outcome]:
        """The translations of lines that have passed the stages."""
        if not self.ahead or len(lines) <= AHEAD:
            return self.search_at_once(lines)
        # Longest first, as in batches. While some lines are searched, others are encoded or decoded.
        order = sorted(range(len(lines)), key=lambda index: -len(lines[index].tag + lines[index].text))
        parts = [order[at : at + AHEAD] for at in range(0, len(order), AHEAD)]
        with ThreadPoolExecutor(2) as pool:
            outcomes = pool.map(self.search_at_once, [[lines[index] for index in part] for part in parts])
            results = dict(zip(order, chain.from_iterable(outcomes), strict=True))
        return [results[index] for index in range(len(lines))]

    def search_at_once(self, lines: list[Line]) -> list[Outcome]:
        rows = self.segmenter.segment(lines)
        problems = [self.segmenter.too_long(row) for row in rows]
        searched = [(line, row) for line, row, problem in zip(lines, rows, problems, strict=True) if not problem]
        segments = [part for _, row in searched for part in row if not part.copied]
        constraints = next(filter(None, (stage.constraints(segments) for stage in self.stages)), None)
        results = self.engine.search([part.ids for part in segments], [self.prefix] * len(segments), constraints)
        align = [line.align for line, row in searched for part in row if not part.copied]
        aligned = [
            (part.ids, hypothesis)
            for part, hypotheses, is_aligned in zip(segments, results, align, strict=True)
            for hypothesis in hypotheses
            if is_aligned
        ]
        if aligned:
            scores = self.engine.token_scores([(ids, hypothesis.tokens) for ids, hypothesis in aligned])
            for (_, hypothesis), token_scores in zip(aligned, scores, strict=True):
                hypothesis.token_scores = token_scores
        remaining, copy = iter(results), [Hypothesis([], 0.0, 0.0)]
        of_lines = [[copy if part.copied else next(remaining) for part in row] for _, row in searched]
        joined = (self.join(*pair, hypotheses) for pair, hypotheses in zip(searched, of_lines, strict=True))
        return [RefusedLine(0, problem) if problem else next(joined) for problem in problems]

    def join(self, line: Line, segments: list[Segment], hypotheses: list[list[Hypothesis]]) -> list[Translation]:
        """The translations of a line; the n-th one consists of the n-th hypotheses of its segments."""
        describer, notes = None, {}
        if line.align:
            from nmt.translation.scores import Describer

            describer = Describer(self.tokenizer, line.text, line.tag or self.source_prefix)
        if length := max((segment.part for segment in segments), default=0):
            limit = f"translated in parts: the model knows {self.limits.longest or 0:,} at most"
            notes["split"] = f"a sentence of {length:,} tokens, {limit}"
        copied = [segment.text for segment in segments if segment.copied]
        translations = []
        for n in range(max(map(len, hypotheses), default=1)):
            parts = [row[min(n, len(row) - 1)] for row in hypotheses]  # one with fewer hypotheses repeats its last
            joined = join(self.tokenizer, segments, parts, self.prefix)
            log_probability = sum((part.log_probability for part in parts), start=0.0)
            length = sum(len(part.tokens) + 1 for part, at in zip(parts, segments, strict=True) if not at.copied)
            is_whole = len(parts) == 1 and not copied
            score = parts[0].score if is_whole else log_probability / penalty(max(length, 1), self.engine.config)
            details = describer.describe(segments, parts, joined) if describer else None
            row = Translation(joined.text, score, log_probability, details, copied.copy(), notes=notes.copy())
            translations.append(row)
        # The length penalty of the joined translation may rank the second hypotheses above the first.
        return sorted(translations, key=lambda translation: -translation.score)


def lines_of(blocks: Iterable[list[Outcome]]) -> Iterator[list[Translation]]:
    """The translations of each line, block after block; RefusedLine counts from the first block's first line."""
    for index, outcome in enumerate(chain.from_iterable(blocks)):
        if isinstance(outcome, RefusedLine):
            raise RefusedLine(index, outcome.problem) from outcome
        yield outcome


def read_by_thread(items: Iterable[Item], size: int) -> "queue.Queue[Item | BaseException | None]":
    """A queue of at most `size` items, which a thread fills; None follows the last one, or the exception instead."""
    arrived: queue.Queue[Item | BaseException | None] = queue.Queue(size)

    def read() -> None:
        try:
            for item in items:
                arrived.put(item)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    return arrived


def arriving_blocks(lines: Iterable[str], size: int, patience: float = 0.05) -> Iterator[list[str]]:
    """Blocks of at most `size` lines that arrive within `patience` seconds of their first line.

    An exception from `lines` is raised here, after the lines before it.
    """
    arrived = read_by_thread(lines, size)
    item: str | BaseException | None = ""
    while isinstance(item, str) and isinstance(item := arrived.get(), str):
        block, end = [item], time.monotonic() + patience
        with suppress(queue.Empty):
            while len(block) < size and isinstance(
                item := arrived.get(timeout=max(end - time.monotonic(), 0.001)), str
            ):
                block.append(item)
        yield block
    if item is not None:
        raise item
