"""Lines to lines: normalise, encode, search, restore the order, decode. No torch: an engine searches."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nmt.errors import NMTError
from nmt.search.engine import Engine, Hypothesis, length_penalty
from nmt.text.tokenizers import Tokenizer, clean
from nmt.translation.limits import Limits
from nmt.translation.segments import LongLine, Segment, Segmenter, join, nth_of_each
from nmt.translation.token_scores import Describer, Details

COPY = Hypothesis([], 0.0, 0.0)
"""Stands for the translation of a segment that is copied."""


@dataclass
class Translation:
    """One of a line's translations: its score is log P(Y|X) / lp(Y)."""

    text: str
    score: float
    log_probability: float
    details: Details | None = None
    split: str = ""
    """Why its line was cut into sentences or their parts, where it was."""
    copied: list[str] = field(default_factory=list)
    """Stretches of its line that were copied, for characters that the model does not know."""


@dataclass
class Options:
    """Treatment of lines before and after the search."""

    length_penalty: float = 0.6
    source_prefix: str = ""
    """Stands before every line, as a tag of the wanted language does."""
    target_prefix: str = ""
    """Every translation begins with it."""
    limits: Limits = field(default_factory=Limits)
    """Limits by which lines are cut."""
    source: str = ""
    """The language of the lines, for finding their sentences."""


class Translator:
    """An engine with its tokenizer: raw text in, detokenised text out, and with a describer details of it."""

    describer: Describer | None = None

    def __init__(self, engine: Engine, tokenizer: Tokenizer, options: Options | None = None) -> None:
        self.engine, self.tokenizer, self.options = engine, tokenizer, options or Options()
        self.segmenter = Segmenter(tokenizer, self.options.limits, self.options.source_prefix, self.options.source)
        self.prefix = tokenizer.encode([clean(self.options.target_prefix)])[0]
        self.check_prefixes()

    def check_prefixes(self) -> None:
        """NMTError where a prefix leaves no room for anything else."""
        source, positions = len(self.segmenter.prefix), self.options.limits.positions
        longest = self.options.limits.longest or positions
        if longest is not None and source >= longest:
            raise NMTError(f"source_prefix has {source} tokens, but the model takes {longest} at most")
        if positions is not None and len(self.prefix) > positions:
            raise NMTError(f"target_prefix has {len(self.prefix)} tokens, but the model writes {positions} at most")

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; an empty line has one, the empty one.

        Raises LongLine for the first line that the model has no positions for.
        """
        segments = self.segmenter.segment(lines)
        searched = [segment.ids for line in segments for segment in line if not segment.copied]
        hypotheses = iter(self.engine.search(searched, [self.prefix] * len(searched)))
        found = [[[COPY] if segment.copied else next(hypotheses) for segment in line] for line in segments]
        translations = [self.join(*line) for line in zip(segments, found, strict=True)]
        if self.describer:
            for line, details in zip(translations, self.describer.describe(lines, segments, found), strict=True):
                for translation, described in zip(line, details, strict=True):
                    translation.details = described
        # Joined anew, the second best of segments may win by its length.
        return [sorted(line, key=lambda translation: -translation.score) for line in translations]

    def join(self, segments: list[Segment], found: list[list[Hypothesis]]) -> list[Translation]:
        """The translations of a line, the n-th of them made of the n-th of every segment."""
        cut_from, reason = max((segment.cut_from for segment in segments), default=0), self.options.limits.reason
        split = f"{cut_from:,} tokens, {reason}" if cut_from and reason else ""
        copied = [segment.text for segment in segments if segment.copied]
        translations = []
        for parts in nth_of_each(found):
            text = join(self.tokenizer, segments, parts, self.prefix).text
            log_probability = sum((part.log_probability for part in parts), start=0.0)
            length = sum(len(part.tokens) + 1 for part in parts if part is not COPY)
            score = log_probability / length_penalty(length, self.options.length_penalty)
            if len(parts) == 1 and not copied:
                score = parts[0].score
            translations.append(Translation(text, score, log_probability, split=split, copied=copied))
        return translations

    def translate_block(self, lines: list[str]) -> tuple[list[list[Translation]], LongLine | None]:
        """Translations of the lines before the first one that the model has no positions for, and that error."""
        try:
            return self.translate(lines), None
        except LongLine as error:
            return self.translate(lines[: error.index]), error

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[Translation]]:
        """Translations of a stream of lines, in order and as soon as can be.

        About twice `buffer` lines are in memory at most. What has arrived is translated together, not waiting for more.
        Raises LongLine where `translate` does, after the lines before it.
        """
        done = 0
        for block in arriving_blocks(lines, buffer):
            translations, error = self.translate_block(block)
            yield from translations
            if error:
                raise LongLine(done + error.index, error.problem) from error
            done += len(block)


def arriving_blocks(lines: Iterable[str], size: int, patience: float = 0.05) -> Iterator[list[str]]:
    """Blocks of at most `size` lines: those that arrive within `patience` seconds of the first.

    An exception from `lines` is raised here, after the lines before it.
    """
    arrived: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=size)

    def read() -> None:
        try:
            for line in lines:
                arrived.put(line)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    for first in iter(arrived.get, None):
        block, item = [], first
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
