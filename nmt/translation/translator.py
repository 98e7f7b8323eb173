"""Lines to lines: normalise, encode, search, restore the order, decode. No torch: an engine searches."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from nmt.errors import NMTError
from nmt.search.engine import Engine, Hypothesis, Scorer, penalty
from nmt.text.tokenizers import TARGET, Tokenizer
from nmt.translation.segments import Limits, RefusedLine, Segment, Segmenter, join
from nmt.translation.targets import unknown_tag
from nmt.translation.token_scores import Details, SourceWords, describe

Item = TypeVar("Item")


@dataclass
class Translation:
    """One of a line's translations; its score is log P(Y|X) / lp(Y)."""

    text: str
    score: float
    log_probability: float
    details: Details | None = None
    split: str = ""
    """The reason why the line was cut into sentences or parts of them, if it was."""
    copied: list[str] = field(default_factory=list)
    """Stretches of the line that were copied, because the model does not know their characters."""
    flags: list[str] = field(default_factory=list)
    """Likely failures, as far as they were looked for (nmt/evaluation/flags.py)."""


Block = tuple[list[list[Translation]], RefusedLine | None]
"""Translations of the lines of a block, up to the first line that cannot be translated, and that error."""


class Translator:
    """An engine with its tokenizer: raw text in, detokenised text out.

    Every source begins with `source_prefix`, such as a tag of the target language, and every translation with
    `target_prefix`. With a `scorer`, translations have details.
    """

    def __init__(
        self,
        engine: Engine,
        tokenizer: Tokenizer,
        limits: Limits | None = None,
        source_prefix: str = "",
        target_prefix: str = "",
        scorer: Scorer | None = None,
    ) -> None:
        self.engine, self.tokenizer, self.scorer = engine, tokenizer, scorer
        self.segmenter = Segmenter(tokenizer, limits or Limits(), source_prefix)
        self.limits = self.segmenter.limits
        self.prefix = tokenizer.encode([tokenizer.clean(target_prefix)], TARGET)[0]
        self.check_prefixes()

    def check_prefixes(self) -> None:
        """Raise NMTError if a prefix leaves no room for anything else."""
        source, positions = len(self.segmenter.prefix), self.limits.positions
        longest = self.limits.longest or positions
        if longest is not None and source >= longest:
            raise NMTError(f"source_prefix has {source} tokens, but the model takes {longest} at most")
        if positions is not None and len(self.prefix) > positions:
            raise NMTError(f"target_prefix has {len(self.prefix)} tokens, but the model writes {positions} at most")

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; an empty line has one, which is empty.

        Raises RefusedLine for the first line that the model has no positions or no tag for.
        """
        prefixes, lines = self.split_tags(lines)
        segments = self.segments(prefixes, lines)
        searched = [segment.ids for row in segments for segment in row if not segment.copied]
        hypotheses = self.engine.search(searched, [self.prefix] * len(searched))
        if self.scorer:
            pairs = [(ids, each.tokens) for ids, row in zip(searched, hypotheses, strict=True) for each in row]
            for each, scores in zip((each for row in hypotheses for each in row), self.scorer(pairs), strict=True):
                each.token_scores = scores
        found = iter(hypotheses)
        nothing = [Hypothesis([], 0.0, 0.0)]  # for a segment that is copied
        return [
            self.join(
                SourceWords(self.tokenizer, line, prefix) if self.scorer else None,
                row,
                [nothing if segment.copied else next(found) for segment in row],
            )
            for prefix, line, row in zip(prefixes, lines, segments, strict=True)
        ]

    def split_tags(self, lines: list[str]) -> tuple[list[str], list[str]]:
        """The source prefix of each line, which is its own tag if it has one, and the rest of it.

        Raises RefusedLine for one that begins with a tag of another language.
        """
        prefixes, rest = list[str](), list[str]()
        for index, line in enumerate(lines):
            tag = self.tokenizer.leading_tag(line.lstrip())
            if not tag and (other := unknown_tag(line, self.tokenizer)):
                raise RefusedLine(index, f"{other}: the model has {', '.join(self.tokenizer.tags)}")
            prefixes.append(f"{tag} " if tag else self.segmenter.source_prefix)
            rest.append(line.lstrip().removeprefix(tag) if tag else line)
        return prefixes, rest

    def segments(self, prefixes: list[str], lines: list[str]) -> list[list[Segment]]:
        """The segments of each line; RefusedLine for the first one that the model has no positions for."""
        rows: list[list[Segment]] = [[] for _ in lines]
        too_long: list[RefusedLine] = []
        for prefix in sorted(set(prefixes)):
            own = [index for index, other in enumerate(prefixes) if other == prefix]
            plain = prefix == self.segmenter.source_prefix
            segmenter = self.segmenter if plain else Segmenter(self.tokenizer, self.limits, prefix)
            try:
                for index, row in zip(own, segmenter.segment([lines[index] for index in own]), strict=True):
                    rows[index] = row
            except RefusedLine as error:
                too_long.append(RefusedLine(own[error.index], error.problem))
        if too_long:
            raise min(too_long, key=lambda error: error.index)
        return rows

    def join(
        self, source_words: SourceWords | None, segments: list[Segment], found: list[list[Hypothesis]]
    ) -> list[Translation]:
        """The translations of a line; the n-th one consists of the n-th hypotheses of its segments."""
        cut_from, reason = max((segment.cut_from for segment in segments), default=0), self.limits.reason
        split = f"{cut_from:,} tokens, {reason}" if cut_from and reason else ""
        copied = [segment.text for segment in segments if segment.copied]
        translations = []
        for n in range(max(map(len, found), default=1)):
            parts = [row[min(n, len(row) - 1)] for row in found]  # a segment with fewer hypotheses repeats its last
            joined = join(self.tokenizer, segments, parts, self.prefix)
            log_probability = sum((part.log_probability for part in parts), start=0.0)
            length = sum(len(part.tokens) + 1 for part, own in zip(parts, segments, strict=True) if not own.copied)
            # Of a line that is only copied, nothing has a length.
            score = log_probability / penalty(max(length, 1), self.engine.config)
            if len(parts) == 1 and not copied:
                score = parts[0].score
            details = describe(self.tokenizer, source_words, segments, parts, joined) if source_words else None
            translations.append(Translation(joined.text, score, log_probability, details, split, copied))
        # The length penalty of the joined translation may rank the second hypotheses above the first.
        return sorted(translations, key=lambda translation: -translation.score)

    def translate_block(self, lines: list[str]) -> Block:
        """The translations of a block of lines."""
        try:
            return self.translate(lines), None
        except RefusedLine as error:
            return self.translate(lines[: error.index]), error

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
    for first in iter(arrived.get, None):
        block, item = list[str](), first
        deadline = time.monotonic() + patience
        while isinstance(item, str):
            block.append(item)
            if len(block) == size:
                break
            try:
                item = arrived.get(timeout=max(deadline - time.monotonic(), 0.001))
            except queue.Empty:
                break
        if block:
            yield block
        if isinstance(item, BaseException):
            raise item
        if item is None:
            return
