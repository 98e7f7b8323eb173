"""Lines to lines: normalise, encode, search, restore the order, decode. No torch: an engine searches."""

import queue
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from nmt.config import DecodeConfig
from nmt.errors import NMTError
from nmt.plugins.protection.glossary import Glossary
from nmt.plugins.protection.terms import Terms
from nmt.search import Engine, Hypothesis, Scorer, penalty
from nmt.text import TARGET, Finder, Tokenizer
from nmt.translation.alternatives import Alternative, Best, alternatives, find_place
from nmt.translation.segments import Limits, RefusedLine, Segment, Segmenter, join
from nmt.translation.targets import unknown_tag
from nmt.translation.token_scores import Details, SourceWords, describe

if TYPE_CHECKING:
    from nmt.plugins.protection.protection import Protection

Item = TypeVar("Item")
AHEAD = 128
"""Lines of a search, where the next one is prepared meanwhile."""


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
    """Likely failures, as far as they were looked for (registry kind "flags")."""
    protected: str = ""
    """For a line with something protected: cut at it, or "protected", a flag, if it did not arrive exactly once."""


@dataclass
class CutLine:
    """A line in segments."""

    prefix: str
    """The source prefix, or its own tag."""
    text: str
    """The rest of it, with the hints of a glossary."""
    segments: list[Segment] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    """With hints: the word of the line that each word of `text` belongs to."""


Block = tuple[list[list[Translation]], RefusedLine | None]
"""Translations of the lines of a block, up to the first line that cannot be translated, and that error."""


class Translator:
    """An engine with its tokenizer: raw text in, detokenised text out.

    Every source begins with `source_prefix`, such as a tag of the target language, and every translation with
    `target_prefix`. With a `scorer`, translations have details.
    """

    ahead = False
    """While the engine searches, it leaves this thread to others, and takes further work."""
    protection: "Protection | None" = None
    """What has to arrive as it is."""
    terms: Terms | None = None
    """What a glossary demands."""

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

    def with_search(self, decode: DecodeConfig, details: bool) -> "Translator":
        """A translator with the same weights and tokenizer, another search, and translations with details or without.

        Raises NMTError for a search that the engine does not have.
        """
        other = copy(self)
        other.engine = self.engine.with_search(decode)
        other.scorer = other.engine.token_scores if details else None
        return other

    def with_glossary(self, entries: Iterable[tuple[str, str]]) -> "Translator":
        """A translator with the same weights and other terms."""
        other, clean = copy(self), self.tokenizer.clean
        glossary = Glossary((clean(source), clean(target), False) for source, target in entries)
        finder = self.protection.finder if self.protection else Finder([])
        other.terms = Terms(glossary, self.tokenizer, self.terms is not None and self.terms.soft, finder)
        return other

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; an empty line has one, which is empty.

        Raises RefusedLine for the first line that the model has no positions or no tag for.
        """
        translations, refused = self.translate_block(lines)
        if refused:
            raise refused
        return translations

    def translate_block(self, lines: list[str]) -> Block:
        """The translations of a block of lines."""
        translations = list[list[Translation]]()
        for found in self.translate_each(lines):
            if isinstance(found, RefusedLine):
                return translations, RefusedLine(len(translations), found.problem)
            translations.append(found)
        return translations, None

    def translate_each(self, lines: list[str]) -> list[list[Translation] | RefusedLine]:
        """As `translate`, with the error of a refused line in its place: it does no harm to the others."""
        return self.protection.translate_each(self, lines) if self.protection else self.translate_unprotected(lines)

    def translate_unprotected(self, lines: list[str]) -> list[list[Translation] | RefusedLine]:
        """As `translate_each`, where nothing is protected."""
        if not self.ahead or len(lines) <= AHEAD:
            return self.translate_at_once(lines)
        # Longest first, as in batches. While some lines are searched, others are made tokens or text.
        order = sorted(range(len(lines)), key=lambda index: -len(lines[index]))
        parts = [order[at : at + AHEAD] for at in range(0, len(order), AHEAD)]
        with ThreadPoolExecutor(2) as pool:
            found = pool.map(self.translate_at_once, [[lines[index] for index in part] for part in parts])
            results = dict(zip(order, chain.from_iterable(found), strict=True))
        return [results[index] for index in range(len(lines))]

    def translate_at_once(self, lines: list[str]) -> list[list[Translation] | RefusedLine]:
        """As `translate_each`, by one search; the index of a refused line is among these."""
        cut = self.cut(lines)
        found = iter(self.translate_cut([line for line in cut if isinstance(line, CutLine)]))
        return [line if isinstance(line, RefusedLine) else next(found) for line in cut]

    def translate_cut(self, lines: list[CutLine]) -> list[list[Translation]]:
        """The n_best translations of each line."""
        return [self.join(line, row) for line, row in zip(lines, self.search(lines, self.scorer), strict=True)]

    def search(self, lines: list[CutLine], scorer: Scorer | None = None) -> list[list[list[Hypothesis]]]:
        """The hypotheses of each segment of each line, best first; a segment that is copied has an empty one."""
        parts = [part for line in lines for part in line.segments if not part.copied]
        searched = [part.ids for part in parts]
        constraints = self.terms.constraints(parts) if self.terms and not self.terms.soft else None
        hypotheses = self.engine.search(searched, [self.prefix] * len(searched), constraints)
        if scorer:
            pairs = [(ids, each.tokens) for ids, row in zip(searched, hypotheses, strict=True) for each in row]
            for each, scores in zip((each for row in hypotheses for each in row), scorer(pairs), strict=True):
                each.token_scores = scores
        found, nothing = iter(hypotheses), [Hypothesis([], 0.0, 0.0)]
        return [[nothing if part.copied else next(found) for part in line.segments] for line in lines]

    def split_tag(self, index: int, line: str) -> tuple[str, str]:
        """The source prefix of a line, which is its own tag if it has one, and the rest of it.

        Raises RefusedLine, with that index, for one that begins with a tag of another language.
        """
        if not self.tokenizer.tags:
            return self.segmenter.source_prefix, line
        tag = self.tokenizer.leading_tag(line.lstrip())
        if not tag and (other := unknown_tag(line, self.tokenizer)):
            raise RefusedLine(index, f"{other}: the model has {', '.join(self.tokenizer.tags)}")
        return (f"{tag} ", line.lstrip().removeprefix(tag)) if tag else (self.segmenter.source_prefix, line)

    def cut(self, lines: list[str]) -> list[CutLine | RefusedLine]:
        """The segments of each line, or why it is refused."""
        cut = list[CutLine | RefusedLine]()
        for index, line in enumerate(lines):
            try:
                cut.append(CutLine(*self.split_tag(index, line.translate(self.limits.look_alikes))))
            except RefusedLine as error:
                cut.append(error)
        if self.terms and self.terms.soft:
            for own_line in cut:
                if isinstance(own_line, CutLine):
                    own_line.text, own_line.owners = self.terms.hinted(own_line.text)
        for prefix in sorted({line.prefix for line in cut if isinstance(line, CutLine)}):
            own = [line for line in cut if isinstance(line, CutLine) and line.prefix == prefix]
            plain = prefix == self.segmenter.source_prefix
            segmenter = self.segmenter if plain else Segmenter(self.tokenizer, self.limits, prefix)
            for cut_line, row in zip(own, segmenter.segment([line.text for line in own]), strict=True):
                cut_line.segments = row
        for index, each in enumerate(cut):
            if isinstance(each, CutLine) and (problem := self.segmenter.too_long(each.segments)):
                cut[index] = RefusedLine(index, problem)
        return cut

    def alternatives(self, line: str, before: str, count: int) -> list[Alternative]:
        """Translations of a line that begin with `before` and go on with different words, at most `count`.

        They are ordered by the probability of the token that the word begins with. The translation that the search
        finds by itself is one of them where it begins so. There are none where the word was copied, or is one that
        every translation begins with. Raises RefusedLine as `translate` does.
        """
        [cut] = self.cut([line])
        if isinstance(cut, RefusedLine):
            raise cut
        [found] = self.search([cut])
        best = Best(cut.segments, [row[0] for row in found], self.prefix, self.limits.target)
        words = before.split()
        place = find_place(self.tokenizer, best, words)
        if place is None or not self.has_room(len(place.tokens), len(cut.segments[place.segment].ids)):
            return []
        return [
            replace(other, text=" ".join([*words, other.text]))
            for other in alternatives(self.engine, self.tokenizer, best, place, count)
        ]

    def has_room(self, written: int, source: int) -> bool:
        """True if a translation of so many `source` tokens can go on after so many."""
        longest = source + self.engine.config.max_extra_length
        return written < min(longest, self.limits.positions or longest)

    def join(self, line: CutLine, found: list[list[Hypothesis]]) -> list[Translation]:
        """The translations of a line; the n-th one consists of the n-th hypotheses of its segments."""
        segments = line.segments
        source_words = SourceWords(self.tokenizer, line.text, line.prefix) if self.scorer else None
        length, most = max((segment.part for segment in segments), default=0), self.limits.longest or 0
        split = (
            f"a sentence of {length:,} tokens, translated in parts: the model knows {most:,} at most" if length else ""
        )
        copied = [segment.text for segment in segments if segment.copied]
        translations = []
        for n in range(max(map(len, found), default=1)):
            parts = [row[min(n, len(row) - 1)] for row in found]  # a segment with fewer hypotheses repeats its last
            joined = join(self.tokenizer, segments, parts, self.prefix, self.limits.target)
            if len(parts) == 1 and not copied:
                score, log_probability = parts[0].score, parts[0].log_probability
            else:
                log_probability = sum((part.log_probability for part in parts), start=0.0)
                length = sum(len(part.tokens) + 1 for part, own in zip(parts, segments, strict=True) if not own.copied)
                # Of a line that is only copied, nothing has a length.
                score = log_probability / penalty(max(length, 1), self.engine.config)
            details = describe(self.tokenizer, source_words, segments, parts, joined) if source_words else None
            if details and line.owners:
                details.alignment = sorted({(line.owners[source], target) for source, target in details.alignment})
            translations.append(Translation(joined.text, score, log_probability, details, split, copied))
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
