"""Lines to lines: a chain of stages around a search, which restores the order. No torch: an engine searches."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import TypeVar

from nmt.errors import NMTError
from nmt.search import Engine, Hypothesis, penalty
from nmt.text import TARGET, Tokenizer
from nmt.translation.segments import Limits, Segment, Segmenter, join
from nmt.translation.stages import Line, Outcome, RefusedLine, Rest, Stage, Translation
from nmt.translation.token_scores import SourceWords, describe

Item = TypeVar("Item")
AHEAD = 128
"""Lines of a search, where the next one is prepared meanwhile."""
Block = tuple[list[list[Translation]], RefusedLine | None]
"""Translations of the lines of a block, up to the first line that cannot be translated, and that error."""


@dataclass(frozen=True, eq=False)
class Translator:
    """An engine with its tokenizer, within stages: raw text in, detokenised text out.

    `replace` of dataclasses makes one with another search or other stages, which shares the weights.
    """

    engine: Engine
    tokenizer: Tokenizer
    limits: Limits = field(default_factory=Limits)
    source_prefix: str = ""
    """What every source begins with that has no tag of its own."""
    target_prefix: str = ""
    """What every translation begins with."""
    details: bool = False
    """Translations have details."""
    stages: tuple[Stage, ...] = ()
    """In the order in which lines pass them."""
    ahead: bool = False
    """While the engine searches, it leaves this thread to others, and takes further work."""

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
        """The tokens that every translation begins with."""
        return self.tokenizer.encode([self.tokenizer.clean(self.target_prefix)], TARGET)[0]

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; an empty line has one, which is empty.

        Raises RefusedLine for the first line that the model has no positions or no tag for.
        """
        return list(lines_of([self.translate_block(lines)]))

    def translate_block(self, lines: list[str]) -> Block:
        """The translations of a block of lines."""
        translations = list[list[Translation]]()
        for index, outcome in enumerate(self.translate_each(lines)):
            if isinstance(outcome, RefusedLine):
                return translations, RefusedLine(index, outcome.problem)
            translations.append(outcome)
        return translations, None

    def translate_each(self, lines: list[str]) -> list[Outcome]:
        """As `translate`, with the error of a refused line in its place: it does no harm to the others."""
        return self.chain(self.search)([Line(line, align=self.details) for line in lines])

    def chain(self, end: Rest) -> Rest:
        """The stages, and `end` in place of the search."""
        for stage in reversed(self.stages):
            end = partial(stage.translate, rest=end)
        return end

    def search(self, lines: list[Line]) -> list[Outcome]:
        """The translations of lines that have passed the stages."""
        if not self.ahead or len(lines) <= AHEAD:
            return self.search_at_once(lines)
        # Longest first, as in batches. While some lines are searched, others are made tokens or text.
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
        hypotheses = self.hypotheses([row for _, row in searched], [line.align for line, _ in searched])
        joined = (self.join(*pair, parts) for pair, parts in zip(searched, hypotheses, strict=True))
        return [RefusedLine(0, problem) if problem else next(joined) for problem in problems]

    def hypotheses(self, rows: Sequence[Sequence[Segment]], align: Sequence[bool]) -> list[list[list[Hypothesis]]]:
        """The hypotheses of each segment of each line, best first; a segment that is copied has an empty one.

        Those of the lines to `align` have token scores.
        """
        segments = [part for row in rows for part in row if not part.copied]
        constraints = next(filter(None, (stage.constraints(segments) for stage in self.stages)), None)
        results = self.engine.search([part.ids for part in segments], [self.prefix] * len(segments), constraints)
        remaining, nothing = iter(results), [Hypothesis([], 0.0, 0.0)]
        hypotheses = [[nothing if part.copied else next(remaining) for part in row] for row in rows]
        aligned = [
            (part.ids, hypothesis)
            for row, parts, is_aligned in zip(rows, hypotheses, align, strict=True)
            for part, best in zip(row, parts, strict=True)
            for hypothesis in best
            if is_aligned and not part.copied
        ]
        if aligned:
            scores = self.engine.token_scores([(ids, hypothesis.tokens) for ids, hypothesis in aligned])
            for (_, hypothesis), token_scores in zip(aligned, scores, strict=True):
                hypothesis.token_scores = token_scores
        return hypotheses

    def join(self, line: Line, segments: list[Segment], hypotheses: list[list[Hypothesis]]) -> list[Translation]:
        """The translations of a line; the n-th one consists of the n-th hypotheses of its segments."""
        words = SourceWords(self.tokenizer, line.text, self.segmenter.prefix(line)) if line.align else None
        notes = {}
        if length := max((segment.part for segment in segments), default=0):
            most = f"translated in parts: the model knows {self.limits.longest or 0:,} at most"
            notes["split"] = f"a sentence of {length:,} tokens, {most}"
        copied = [segment.text for segment in segments if segment.copied]
        translations = []
        for n in range(max(map(len, hypotheses), default=1)):
            parts = [row[min(n, len(row) - 1)] for row in hypotheses]  # one with fewer hypotheses repeats its last
            joined = join(self.tokenizer, segments, parts, self.prefix, self.limits.target)
            if len(parts) == 1 and not copied:
                score, log_probability = parts[0].score, parts[0].log_probability
            else:
                log_probability = sum((part.log_probability for part in parts), start=0.0)
                lengths = [len(part.tokens) + 1 for part, at in zip(parts, segments, strict=True) if not at.copied]
                # Of a line that is only copied, nothing has a length.
                score = log_probability / penalty(max(sum(lengths), 1), self.engine.config)
            details = describe(self.tokenizer, words, segments, parts, joined) if words else None
            translations.append(
                Translation(joined.text, score, log_probability, details, copied.copy(), notes=notes.copy())
            )
        # The length penalty of the joined translation may rank the second hypotheses above the first.
        return sorted(translations, key=lambda translation: -translation.score)

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[Translation]]:
        """The translations of a stream of lines, in order and as soon as possible.

        At most about twice `buffer` lines are in memory. The lines that have arrived are translated together, without
        waiting for more. Raises RefusedLine where `translate` does, after the translations of the lines before.
        """
        return lines_of(map(self.translate_block, arriving_blocks(lines, buffer)))


def lines_of(blocks: Iterable[Block]) -> Iterator[list[Translation]]:
    """The translations of each line, block after block; RefusedLine counts from the first block's first line."""
    done = 0
    for translations, error in blocks:
        yield from translations
        done += len(translations)
        if error:
            raise RefusedLine(done, error.problem) from error


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
    """Blocks of at most `size` lines: those that arrive within `patience` seconds of the first.

    An exception from `lines` is raised here, after the lines before it.
    """
    arrived = read_by_thread(lines, size)
    item = arrived.get()
    while isinstance(item, str):
        block, deadline = [item], time.monotonic() + patience
        with suppress(queue.Empty):
            while len(block) < size and isinstance(
                item := arrived.get(timeout=max(deadline - time.monotonic(), 0.001)), str
            ):
                block.append(item)
        yield block
        if isinstance(item, str):
            item = arrived.get()
    if item is not None:
        raise item
