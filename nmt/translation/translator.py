"""Lines to lines: normalise, encode, search, restore the order, decode. No torch: an engine searches."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nmt.errors import NMTError
from nmt.search.engine import Engine, Hypothesis, length_penalty
from nmt.text.tokenizers import Tokenizer, clean
from nmt.translation.segments import Cutter, Limits, LongLine, Piece, tell
from nmt.translation.token_scores import Describer, Details, nth_of_each

COPY = Hypothesis([], 0.0, 0.0)
"""What is found for a piece that is copied."""


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
    """Stretches of its line that were copied, for characters that the model cannot know."""


@dataclass
class Options:
    """What is done to lines before and after the search."""

    length_penalty: float = 0.6
    source_prefix: str = ""
    """Stands before every line, as a tag of the wanted language does."""
    target_prefix: str = ""
    """Every translation begins with it."""
    limits: Limits = field(default_factory=Limits)
    """What lines are cut by."""
    source: str = ""
    """The language of the lines, whose sentences the pieces are."""


class Translator:
    """An engine with its tokenizer: raw text in, detokenised text out, and with a describer details of it."""

    describer: Describer | None = None

    def __init__(self, engine: Engine, tokenizer: Tokenizer, options: Options | None = None) -> None:
        self.engine, self.tokenizer, self.options = engine, tokenizer, options or Options()
        self.cutter = Cutter(tokenizer, self.options.limits, self.options.source_prefix, self.options.source)
        self.prefix = tokenizer.encode([clean(self.options.target_prefix)])[0]
        self.check_prefixes()

    def check_prefixes(self) -> None:
        """NMTError where a prefix leaves no room for anything else."""
        source, positions = len(self.cutter.prefix), self.options.limits.positions
        longest = self.options.limits.longest or positions
        if longest is not None and source >= longest:
            raise NMTError(f"source_prefix has {source} tokens, but the model takes {longest} at most")
        if positions is not None and len(self.prefix) > positions:
            raise NMTError(f"target_prefix has {len(self.prefix)} tokens, but the model writes {positions} at most")

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; an empty line has one, the empty one.

        Raises LongLine for the first line that the model has no positions for.
        """
        pieces = self.cutter.cut(lines)
        flat = [piece.ids for line_pieces in pieces for piece in line_pieces if not piece.copied]
        searched = iter(self.engine.search(flat, [self.prefix] * len(flat)))
        found = [[[COPY] if piece.copied else next(searched) for piece in line_pieces] for line_pieces in pieces]
        translations = [self.join(*line) for line in zip(pieces, found, strict=True)]
        if self.describer:
            for line, details in zip(translations, self.describer.describe(lines, pieces, found), strict=True):
                for translation, described in zip(line, details, strict=True):
                    translation.details = described
        return [best_first(line) for line in translations]

    def join(self, pieces: list[Piece], found: list[list[Hypothesis]]) -> list[Translation]:
        """The translations of a line, the n-th of them made of the n-th of every piece."""
        too_many, why = max((piece.of for piece in pieces), default=0), self.options.limits.why
        split = f"{too_many:,} tokens, {why}" if too_many and why else ""
        copied = [piece.text for piece in pieces if piece.copied]
        joined = []
        for parts in nth_of_each(found):
            told = tell(self.tokenizer, pieces, parts, self.prefix)
            log_probability = sum((part.log_probability for part in parts), start=0.0)
            length = sum(len(part.tokens) + 1 for part in parts if part is not COPY)
            score = log_probability / length_penalty(length, self.options.length_penalty)
            if len(parts) == 1 and not copied:
                score = parts[0].score
            joined.append(Translation(told.text, score, log_probability, split=split, copied=copied))
        return joined

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[Translation]]:
        """Translations of a stream of lines, in order and as soon as can be.

        About twice `buffer` lines are in memory at most. What has arrived is translated together, not waiting for more.
        Raises LongLine where `translate` does, after the lines before it.
        """
        done = 0
        for block in arriving_blocks(lines, buffer):
            try:
                yield from self.translate(block)
            except LongLine as error:
                yield from self.translate(block[: error.place])
                raise LongLine(done + error.place, error.problem) from error
            done += len(block)


def best_first(translations: list[Translation]) -> list[Translation]:
    return sorted(translations, key=lambda translation: -translation.score)


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
