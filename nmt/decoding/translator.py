"""Lines to lines: normalise, encode, search, restore the order, decode. No torch: an engine searches."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from nmt.decoding.details import Describer, Details, Piece, nth_of_each
from nmt.decoding.engine import Engine, Hypothesis, length_penalty
from nmt.errors import NMTError
from nmt.text.sentences import split_sentences
from nmt.text.tokenizers import Tokenizer, clean


@dataclass
class Translation:
    """One of a line's translations: its score is log P(Y|X) / lp(Y)."""

    text: str
    score: float
    log_probability: float
    details: Details | None = None


class LongLine(NMTError):
    """A line that the model has no positions for; `place` is counted from 0."""

    def __init__(self, place: int, problem: str) -> None:
        super().__init__(f"line {place + 1}: {problem}")
        self.place, self.problem = place, problem


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
    positions: int | None = None
    """The model has positions for so many tokens, and no more."""
    source: str = ""
    """The language of the lines, whose sentences the pieces are."""
    notice: Callable[[str], None] = field(default=lambda words: None)
    """Told once of lines that are translated in pieces."""


class Translator:
    """An engine with its tokenizer: raw text in, detokenised text out, and with a describer details of it."""

    describer: Describer | None = None

    def __init__(self, engine: Engine, tokenizer: Tokenizer, options: Options | None = None) -> None:
        self.engine, self.tokenizer, self.options = engine, tokenizer, options or Options()
        self.source_prefix, self.prefix = map(self.encode, (self.options.source_prefix, self.options.target_prefix))
        self.check_prefixes()

    def check_prefixes(self) -> None:
        """NMTError where a prefix leaves no room for anything else."""
        longest, positions = self.options.longest or self.options.positions, self.options.positions
        if longest is not None and len(self.source_prefix) >= longest:
            raise NMTError(f"source_prefix has {len(self.source_prefix)} tokens, but the model takes {longest} at most")
        if positions is not None and len(self.prefix) > positions:
            raise NMTError(f"target_prefix has {len(self.prefix)} tokens, but the model writes {positions} at most")

    def encode(self, line: str) -> list[int]:
        return self.tokenizer.encode([clean(line)])[0]

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; an empty line has one, the empty one.

        Raises LongLine for the first line that the model has no positions for.
        """
        prefix = self.options.source_prefix
        sentences = self.tokenizer.encode([clean(prefix + line) if line.strip() else "" for line in lines])
        self.check_lengths(sentences)
        pieces = [self.pieces(line, ids) for line, ids in zip(lines, sentences, strict=True)]
        flat = [piece.ids for line_pieces in pieces for piece in line_pieces]
        searched = iter(self.engine.search(flat, [self.prefix] * len(flat)))
        found = [[next(searched) for _ in line_pieces] for line_pieces in pieces]
        translations = [self.join(hypotheses) for hypotheses in found]
        if self.describer:
            for line, details in zip(translations, self.describer.describe(lines, pieces, found), strict=True):
                for translation, described in zip(line, details, strict=True):
                    translation.details = described
        return [best_first(line) for line in translations]

    def check_lengths(self, sentences: list[list[int]]) -> None:
        positions = self.options.positions
        if positions is None or self.options.longest is not None:
            return
        for place, ids in enumerate(sentences):
            if len(ids) > positions:
                raise LongLine(
                    place,
                    f"{len(ids):,} tokens and an end symbol are more than the model has positions for "
                    f"(model.max_positions={positions + 1}); split=true translates such lines in pieces",
                )

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
        cleaned = clean(line)
        sentences = split_sentences(cleaned, self.options.source)
        whole = self.tokenizer.encode([clean(self.options.source_prefix + sentence) for sentence in sentences])
        found, start = list[Piece](), 0
        for sentence, ids in zip(sentences, whole, strict=True):
            start = cleaned.index(sentence, start)
            found += [Piece(ids, sentence, start)] if len(ids) <= longest else self.parts(sentence, start, longest)
            start += len(sentence)
        return found

    def parts(self, sentence: str, start: int, longest: int) -> list[Piece]:
        """A sentence that is too long itself, in parts of at most `longest` tokens, behind the prefix each."""
        prefix, pieces, skipped = self.source_prefix, list[Piece](), 0
        for part in equal_parts(self.encode(sentence), longest - len(prefix)):
            pieces.append(Piece(prefix + part, sentence, start, skipped, len(prefix)))
            skipped += len(part)
        return pieces

    def join(self, found: list[list[Hypothesis]]) -> list[Translation]:
        """The translations of a line, the n-th of them made of the n-th of every piece."""
        if len(found) == 1:
            return [self.decode(hypothesis) for hypothesis in found[0]]
        joined = []
        for parts in nth_of_each(found):
            # The line's translation begins with the prefix, not every sentence in it.
            tokens = [parts[0].tokens, *(part.tokens[len(self.prefix) :] for part in parts[1:])] if parts else []
            text = " ".join(filter(None, map(self.text, tokens)))
            log_probability = sum((part.log_probability for part in parts), start=0.0)
            length = sum(len(part.tokens) + 1 for part in parts)
            score = log_probability / length_penalty(length, self.options.length_penalty)
            joined.append(Translation(text, score, log_probability))
        return joined

    def decode(self, hypothesis: Hypothesis) -> Translation:
        return Translation(self.text(hypothesis.tokens), hypothesis.score, hypothesis.log_probability)

    def text(self, tokens: list[int]) -> str:
        # Bytes that spell a line end must not become one: line i answers line i.
        return " ".join(self.tokenizer.decode(tokens).split())

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


def equal_parts(ids: list[int], longest: int) -> Iterator[list[int]]:
    """All of `ids`, in as few parts of at most `longest` as can be."""
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
