"""Translate lines, in order, with a chain of stages around a search. No torch."""

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain

from nmt.config import NMTError, TranslatorOptions
from nmt.search import Constraints, Engine, Hypothesis, Pair, TokenScores, penalty
from nmt.text import TARGET, Tokenizer, with_code
from nmt.translation.alignment import Describer
from nmt.translation.arrivals import arriving_blocks
from nmt.translation.chunks import has_lost_sentence, with_sentences_of
from nmt.translation.directions import UNKNOWN, Direction
from nmt.translation.foreign import foreign_source
from nmt.translation.joining import join
from nmt.translation.language_tags import untagged
from nmt.translation.limits import Limits
from nmt.translation.lines import Line, Segment
from nmt.translation.models import Models
from nmt.translation.segments import Segmenter
from nmt.translation.stages import (
    Outcome,
    RefusedLine,
    Rest,
    Stage,
    Translation,
    with_refused,
)

NO_TRANSLATION = (
    "no translation: the model has non-finite weights, or min_length conflicts with "
    "no_repeat_ngram_size"
)
AHEAD = 128
"""Lines per search if the engine accepts more work in the meantime; it prepares the next lines."""


def ignore(lines: int) -> None:
    """The default of `Translator.searched`."""


@dataclass(frozen=True, eq=False)
class Translator:
    """Translates raw text to detokenized text.

    `replace` makes another translator that shares the weights.
    """

    engine: Engine
    tokenizer: Tokenizer
    limits: Limits = field(default_factory=Limits)
    source_prefix: str = ""
    """Prepended to sources without a tag."""
    direction: Direction = UNKNOWN
    """The languages of lines without a tag."""
    target_prefix: str = ""
    """The beginning of each translation."""
    details: bool = False
    """Whether translations have details."""
    stages: tuple[Stage, ...] = ()
    """The stages in the order in which lines pass through them."""
    ahead: bool = False
    """Whether the engine searches in its own threads and accepts more work in the meantime."""
    options: TranslatorOptions = field(default_factory=TranslatorOptions)
    """The options, in which engine=auto is already resolved."""
    models: Models | None = None
    searched: Callable[[int], None] = ignore
    """Called with the number of lines after each search."""

    def __post_init__(self) -> None:
        # Checked once, before any line is read: otherwise,
        # each line would be refused for the same reason.
        source = len(self.segmenter.prefix_tokens(self.source_prefix))
        target = len(self.prefix)
        # At least one token of the source must fit beside the prefix.
        positions = self.limits.positions or math.inf
        longest = self.limits.longest or positions
        if source >= longest:
            raise NMTError(
                f"source_prefix: has {source} tokens, but must have fewer than {longest}"
            )
        if target > positions:
            raise NMTError(
                f"target_prefix: has {target} tokens, but the model writes at most {positions}"
            )

    # Cached in the instance's dictionary, which `frozen` does not protect. `replace` does not copy
    # it, so another translator has a segmenter for its own limits.
    @cached_property
    def segmenter(self) -> Segmenter:
        return Segmenter(self.tokenizer, self.limits, self.source_prefix)

    @cached_property
    def prefix(self) -> list[int]:
        """The tokens of `target_prefix`."""
        text = self.tokenizer.clean(self.target_prefix, TARGET)
        return self.tokenizer.encode([text], TARGET)[0]

    def stream(self, lines: Iterable[str], buffer: int) -> Generator[list[Translation]]:
        """Yield the translations of a stream of lines as soon as possible.

        A thread reads the lines until the generator is closed. At most about 2 * `buffer` lines are
        in memory. Raises RefusedLine after the translations of the lines before it.
        """
        # Without `closing`, the thread would read on until the garbage collector finds the
        # generator of a caller that stopped early.
        with closing(arriving_blocks(lines, buffer)) as blocks:
            yield from lines_of(map(self.translate_each, blocks))

    def outcomes(self, blocks: Iterable[list[str]]) -> Iterator[list[Outcome]]:
        """Yield the outcomes of each block, whose lines are translated together."""
        return map(self.translate_each, blocks)

    def translate(self, lines: list[str]) -> list[list[Translation]]:
        """The n_best translations of each line, best first; a blank line has a single empty one.

        Raises RefusedLine.
        """
        return list(lines_of([self.translate_each(lines)]))

    def translate_each(self, lines: list[str]) -> list[Outcome]:
        """Like `translate`, but with an error in place of each refused line."""
        # Built from the end: the last stage calls the
        # search, and the first one calls all other stages.
        rest: Rest = self.search
        for stage in reversed(self.stages):
            rest = partial(stage.translate, rest=rest)
        # Tags come off before the first stage, so that no stage mistakes them for text or markup.
        accepted = []
        for line in lines:
            accepted.append(untagged(line, self.tokenizer, self.details, self.direction))
        return with_refused(accepted, rest)

    def search(self, lines: list[Line]) -> list[Outcome]:
        """Cut lines into segments and search for their translations.

        This ends the chain of stages.
        """
        # An engine that blocks the caller gains nothing from several calls, and batches of similar
        # lengths are fuller if it gets all lines at once.
        if not self.ahead or len(lines) <= AHEAD:
            return self.search_at_once(lines)
        # Longest first, as in batches. While some lines are searched, others are encoded or
        # decoded.
        # Lengths are in characters: counting tokens would encode all lines before the first search.
        lengths = [len(line.tag + line.text) for line in lines]
        order = sorted(range(len(lines)), key=lambda index: -lengths[index])
        blocks = []
        for start in range(0, len(order), AHEAD):
            indices = order[start : start + AHEAD]
            blocks.append([lines[index] for index in indices])
        # Two threads suffice: one waits for the engine,
        # which releases the GIL, and the other works.
        with ThreadPoolExecutor(2) as pool:
            outcomes = chain.from_iterable(pool.map(self.search_at_once, blocks))
            # `pool.map` returns results in the order of its
            # blocks, whichever block is finished first.
            results = dict(zip(order, outcomes, strict=True))
        return [results[index] for index in range(len(lines))]

    def search_at_once(self, lines: list[Line]) -> list[Outcome]:
        """Like `search`, but in one call of the engine."""
        rows = self.segmenter.segment(lines)
        problems = [self.segmenter.too_long(segments) for segments in rows]
        # The engine gets the segments of all lines at once, because it forms batches of segments
        # of similar length.
        segments = list[Segment]()
        lines_of_segments = list[Line]()
        for line, row, problem in zip(lines, rows, problems, strict=True):
            searched = [] if problem else [segment for segment in row if not segment.copied]
            segments += searched
            lines_of_segments += [line] * len(searched)
        results = self.search_segments(segments, lines_of_segments)
        if self.limits.together > 1:
            rows, results = self.with_lost_sentences(rows, segments, lines_of_segments, results)
        # Results are in the order of the segments, so each line takes the next ones.
        remaining = iter(results)
        outcomes = list[Outcome]()
        for line, row, problem in zip(lines, rows, problems, strict=True):
            if problem:
                # The index is unknown here, because stages pass
                # on any selection of lines. `lines_of` sets it.
                outcomes.append(RefusedLine(0, problem))
            else:
                outcomes.append(self.outcome(line, row, remaining))
        self.searched(len(lines))
        return outcomes

    def with_lost_sentences(
        self,
        rows: list[list[Segment]],
        segments: list[Segment],
        lines: Sequence[Line],
        results: list[list[Hypothesis]],
    ) -> tuple[list[list[Segment]], list[list[Hypothesis]]]:
        """Search again for chunks that lost a sentence, sentence by sentence.

        Returns rows and results with the sentences of these chunks in place of the chunks.
        """
        lost = set[int]()
        sentences = list[Segment]()
        lines_of_sentences = list[Line]()
        for segment, line, hypotheses in zip(segments, lines, results, strict=True):
            if segment.sentences and self.is_lost(segment, line, hypotheses):
                lost.add(id(segment))
                sentences += segment.sentences
                lines_of_sentences += [line] * len(segment.sentences)
        if not lost:
            return rows, results
        results_of_sentences = iter(self.search_segments(sentences, lines_of_sentences))
        all_results = list[list[Hypothesis]]()
        for segment, hypotheses in zip(segments, results, strict=True):
            if id(segment) in lost:
                all_results += [next(results_of_sentences) for _ in segment.sentences]
            else:
                all_results.append(hypotheses)
        new_rows = [with_sentences_of(row, lambda segment: id(segment) in lost) for row in rows]
        return new_rows, all_results

    def is_lost(self, chunk: Segment, line: Line, hypotheses: list[Hypothesis]) -> bool:
        """Whether the best translation of a chunk of a line lacks a sentence."""
        if not hypotheses:
            return False
        _, target = self.tokenizer.languages_of(line.tag.strip())
        text = self.tokenizer.decode(hypotheses[0].tokens)
        return has_lost_sentence(chunk, text, target or self.limits.target)

    def outcome(
        self,
        line: Line,
        segments: list[Segment],
        results: Iterator[list[Hypothesis]],
    ) -> Outcome:
        """The outcome of a line, given the hypotheses of its segments that are not copied."""
        hypotheses = list[list[Hypothesis]]()
        for segment in segments:
            if segment.copied:
                # Without tokens, and certain, so that it does not count in the score.
                hypotheses.append([Hypothesis([], 0.0, 0.0)])
            else:
                hypotheses.append(next(results))
        # The search returns nothing for a segment if no hypothesis has a finite score.
        if not all(hypotheses):
            return RefusedLine(0, NO_TRANSLATION)
        return self.join(line, segments, hypotheses)

    def search_segments(
        self, segments: list[Segment], lines: Sequence[Line]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each segment, with token scores if its line is to be aligned."""
        sources = [segment.ids for segment in segments]
        starts = [self.target_start(line) for line in lines]
        prefixes = [start + self.prefix for start in starts]
        results = self.engine.search(sources, prefixes, self.constraints(segments))
        # One forced pass over the finished translations yields token scores and attention. They are
        # the same for every engine and search, and cost nothing if no line asks for them.
        aligned = list[Hypothesis]()
        pairs = list[Pair]()
        for line, source, hypotheses in zip(lines, sources, results, strict=True):
            if line.align:
                aligned += hypotheses
                pairs += [(source, hypothesis.tokens) for hypothesis in hypotheses]
        if pairs:
            scores = self.engine.token_scores(pairs)
            for hypothesis, token_scores in zip(aligned, scores, strict=True):
                hypothesis.token_scores = token_scores
        return [
            [without_start(hypothesis, len(start)) for hypothesis in hypotheses]
            for start, hypotheses in zip(starts, results, strict=True)
        ]

    def target_start(self, line: Line) -> list[int]:
        """The tokens with which the model names the target language of a line."""
        if not self.tokenizer.has_target_tags:
            return []
        prefix = line.tag or self.source_prefix
        return self.tokenizer.target_start(self.tokenizer.leading_tag(prefix))

    def constraints(self, segments: list[Segment]) -> Constraints | None:
        """The constraints of the first stage that has constraints."""
        for stage in self.stages:
            # The engine takes one object. Only the stage that made it
            # knows its type, so those of two stages cannot be merged.
            constraints = stage.constraints(segments)
            if constraints:
                return constraints
        return None

    def join(
        self,
        line: Line,
        segments: list[Segment],
        hypotheses: list[list[Hypothesis]],
    ) -> list[Translation]:
        """The translations of a line, best first.

        Each is joined from hypotheses of the same rank, one per segment.
        """
        # Copied by each translation, because stages may change those of one of them.
        copied = [segment.text for segment in segments if segment.copied]
        notes = self.notes_on(line, segments, copied)
        describer = None
        if line.align:
            prefix = line.tag or self.source_prefix
            describer = Describer(self.tokenizer, line.text, prefix, self.segmenter.clean)
        translations = []
        # A blank line has no segments, but still gets one translation, which is empty.
        for rank in range(max(map(len, hypotheses), default=1)):
            # A segment with fewer hypotheses repeats its last one.
            parts = [row[min(rank, len(row) - 1)] for row in hypotheses]
            joined = join(self.tokenizer, segments, parts, self.prefix)
            # Segments are searched independently, so the
            # probability of the line is the product of theirs.
            log_probability = sum((part.log_probability for part in parts), start=0.0)
            translation = Translation(
                joined.text,
                self.score(segments, parts, log_probability),
                log_probability,
                copied=copied.copy(),
                notes=notes.copy(),
                tokens=self.tokens_in(segments, parts),
            )
            if describer:
                translation.details = describer.describe(segments, parts, joined)
            translations.append(translation)
        # With its own length penalty, a translation joined from second hypotheses may rank above
        # that from the first.
        return sorted(translations, key=lambda translation: -translation.score)

    def score(
        self,
        segments: list[Segment],
        parts: list[Hypothesis],
        log_probability: float,
    ) -> float:
        """The score of a translation that consists of one hypothesis per segment."""
        # The search has already computed this one.
        if len(parts) == 1 and not segments[0].copied:
            return parts[0].score
        length = self.tokens_in(segments, parts)
        score: float = log_probability / penalty(max(length, 1), self.engine.config)
        return score

    def tokens_in(self, segments: list[Segment], parts: list[Hypothesis]) -> int:
        """The number of tokens that the search has found."""
        # Each part has an end symbol and the tag of a target, which count as in the search.
        symbols = 1 + int(self.tokenizer.has_target_tags)
        tokens = 0
        for segment, part in zip(segments, parts, strict=True):
            if not segment.copied:
                tokens += len(part.tokens) + symbols
        return tokens

    def notes_on(self, line: Line, segments: list[Segment], copied: list[str]) -> dict[str, str]:
        """Messages for the user about the translation of a line, with details."""
        notes = dict[str, str]()
        # 0 unless a sentence is longer than the model's limit, and was cut into parts.
        longest = max((segment.sentence_tokens for segment in segments), default=0)
        if longest:
            limit = self.limits.longest or 0
            details = f"a sentence of {longest:,} tokens (limit: {limit:,})"
            notes["too long for the model, translated in parts"] = details
        if self.models:
            language = self.segmenter.language_of(line)
            source = foreign_source(line.text, copied, language)
            if source:
                notes[f"the text does not seem to be in {with_code(source)}"] = ""
        return notes


def without_start(hypothesis: Hypothesis, length: int) -> Hypothesis:
    """A hypothesis without the tokens that name its language, which are no part of its text."""
    if length == 0:
        return hypothesis
    scores = hypothesis.token_scores
    if scores:
        attention = scores.attention
        scores = TokenScores(
            scores.log_probabilities[length:],
            None if attention is None else attention[length:],
        )
    return replace(hypothesis, tokens=hypothesis.tokens[length:], token_scores=scores)


def lines_of(blocks: Iterable[list[Outcome]]) -> Iterator[list[Translation]]:
    """The translations of each line, block by block.

    The index of a RefusedLine counts from the first block.
    """
    for index, outcome in enumerate(chain.from_iterable(blocks)):
        if isinstance(outcome, RefusedLine):
            # In one block, a stage or a search does not know how many lines came before it.
            raise RefusedLine(index, outcome.problem) from outcome
        yield outcome
