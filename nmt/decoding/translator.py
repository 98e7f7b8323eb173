"""Lines to lines: normalise, encode, search, restore the order, decode. No torch: an engine searches."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from nmt.decoding.details import Describer, Details, Piece, nth_of_each
from nmt.decoding.engine import Engine, Hypothesis, length_penalty
from nmt.text.sentences import split_sentences
from nmt.text.tokenizers import Tokenizer, clean


@dataclass
class Translation:
    """One of a line's translations: its score is log P(Y|X) / lp(Y)."""

    text: str
    score: float
    log_probability: float
    details: Details | None = None


@dataclass
class Options:
    """What is done to lines before and after the search."""

    length_penalty: float = 0.6
    source_prefix: str = ""
    """Stands before every line, as a tag of the wanted language does."""
    target_prefix: str = ""
    """Every translation begins with it."""
    longest: int | None = None
    """Lines of more tokens are translated in pieces."""
    source: str = ""
    """The language of the lines, whose sentences the pieces are."""
    notice: Callable[[str], None] = field(default=lambda words: None)
    """Told once of lines that are translated in pieces."""


class Translator:
    """An engine with its tokenizer: raw text in, detokenised text out, and with a describer details of it."""

    describer: Describer | None = None

    def __init__(self, engine: Engine, tokenizer: Tokenizer, options: Options | None = None) -> None:
        self.engine, self.tokenizer, self.options = engine, tokenizer, options or Options()
        self.prefix = self.encode(self.options.target_prefix)

    def encode(self, line: str) -> list[int]:
        return self.tokenizer.encode([clean(line)])[0]

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; an empty line has one, the empty one."""
        prefix = self.options.source_prefix
        sentences = self.tokenizer.encode([clean(prefix + line) if line.strip() else "" for line in lines])
        pieces = [self.pieces(line, ids) for line, ids in zip(lines, sentences, strict=True)]
        flat = [piece.ids for line_pieces in pieces for piece in line_pieces]
        searched = iter(self.engine.search(flat, [self.prefix] * len(flat)))
        found = [[next(searched) for _ in line_pieces] for line_pieces in pieces]
        translations = [self.join(hypotheses) for hypotheses in found]
        if self.describer:
            for line, details in zip(translations, self.describer.describe(lines, pieces, found), strict=True):
                for translation, described in zip(line, details, strict=True):
                    translation.details = described
        return translations

    def pieces(self, line: str, ids: list[int]) -> list[Piece]:
        """What is searched for a line: its tokens, or those of its sentences where they are too many."""
        longest = self.options.longest
        if not ids:
            return []
        if longest is None or len(ids) <= longest:
            return [Piece(ids, line)]
        self.options.notice(
            f"a line of {len(ids):,} tokens is longer than the {longest:,} that the model was trained on: "
            "such lines are translated sentence by sentence (split=false: as one)"
        )
        self.options.notice = lambda words: None
        pieces, start = [], 0
        for sentence in split_sentences(line, self.options.source):
            start = line.index(sentence.strip(), start)
            skipped = 0
            for part in equal_parts(self.encode(self.options.source_prefix + sentence), longest):
                pieces.append(Piece(part, sentence, start, skipped))
                skipped += len(part)
            start += len(sentence.strip())
        return pieces

    def join(self, found: list[list[Hypothesis]]) -> list[Translation]:
        """The translations of a line: the n-th is made of the n-th of each piece."""
        if len(found) == 1:
            return [self.decode(hypothesis) for hypothesis in found[0]]
        joined = []
        for parts in nth_of_each(found):
            text = " ".join(filter(None, (self.decode(part).text for part in parts)))
            log_probability = sum(part.log_probability for part in parts)
            length = sum(len(part.tokens) + 1 for part in parts)
            score = log_probability / length_penalty(length, self.options.length_penalty)
            joined.append(Translation(text, score, log_probability))
        return joined

    def decode(self, hypothesis: Hypothesis) -> Translation:
        # Bytes that spell a line end must not become one: line i answers line i.
        text = " ".join(self.tokenizer.decode(hypothesis.tokens).split())
        return Translation(text, hypothesis.score, hypothesis.log_probability)

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[Translation]]:
        """Translations of a stream of lines, in order and as soon as can be.

        About twice `buffer` lines are in memory at most. What has arrived is translated together, not waiting for more.
        """
        for block in arriving_blocks(lines, buffer):
            yield from self.translate(block)


def equal_parts(ids: list[int], longest: int) -> Iterator[list[int]]:
    """A sentence that is too long itself, in parts of at most `longest` tokens: nothing is lost."""
    if ids:
        length = -(-len(ids) // -(-len(ids) // longest))
        yield from (ids[begin : begin + length] for begin in range(0, len(ids), length))


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
