"""CTranslate2 search on CPUs, without torch, using a converted model in the user's cache.

`Ranking` ranks the finished hypotheses with the configured penalty. Translations equal
the torch engine's up to rounding, unless the best hypothesis would finish after CTranslate2 stops
(at most 7 of 1,000 sentences) or the model would not produce the prefix on its own: of 300
quickstart translations, 299 were the same when the prefix was the beginning of the reference, and
178 when it was "zz Foo".
"""

import math
import os
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from nmt import hardware
from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig, NMTError, one_line
from nmt.extensions import EngineEntry
from nmt.files import read_description
from nmt.plugins.exchange.ctranslate2_conversion import converted, table_length
from nmt.plugins.exchange.ctranslate2_ranking import Ranking, hypotheses_to_find
from nmt.plugins.exchange.ctranslate2_support import check
from nmt.registry import entries_of
from nmt.search import (
    Constraints,
    Engine,
    EngineOptions,
    Hypothesis,
    Pair,
    TokenScores,
    batch_tokens,
    batches_by_length,
)
from nmt.text import SOURCE, TARGET, read_tokenizer

NO_TEXT = (PAD, BOS, UNK)
"""Symbols that a translation must not contain."""
NO_HYPOTHESIS = -1e9
"""CTranslate2 pads its lists with hypotheses whose score is -1e10."""


def load(
    folders: Sequence[Path],
    options: EngineOptions,
    notice: Callable[[str], None],
) -> "CTranslate2Engine":
    check(folders, options)
    if options.precision == "int8" and has_fast_avx512():
        # By default, CTranslate2 uses AVX2 on AMD's processors. AVX-512 is faster with int8, but
        # not with float32.
        # The user's own choice takes precedence.
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")
    [folder] = folders
    conversion = converted(folder, options.precision, notice)
    engine = CTranslate2Engine(
        folder,
        conversion,
        options.decode,
        options.threads,
        options.scores,
    )

    def by_torch() -> Any:
        notice(
            "also loading engine=torch precision=float32, because a translation lacks a required "
            "term"
        )
        alike = replace(options, device="cpu", precision="float32", threads=engine.workers)
        return entries_of(EngineEntry)["torch"].load()(folders, alike, notice)

    # Loaded only once, and only if a translation lacks a term.
    engine.by_torch = cache(by_torch)
    return engine


def has_fast_avx512() -> bool:
    """Whether the processor belongs to the generations whose AVX-512 is fast with int8."""
    flags = hardware.proc_value("cpuinfo", "flags") or ""
    return "avx512_bf16" in flags.split()


@dataclass(frozen=True)
class QueuedBatch:
    """Sentences that CTranslate2 translates together."""

    indices: list[int]
    """The indices of the sentences."""
    longest: int
    """Maximum length of the translations, including the end symbol: the highest of the batch."""
    promises: list[Any]
    """Results of the sentences, which may be pending."""


class CTranslate2Engine:
    """Search with a model directory and its conversion, using `threads` workers with one core each.

    With `scores=False`, greedy search does not compute log probabilities and returns NaN instead.
    """

    ahead = True
    by_torch: Callable[[], Engine]  # the torch engine, loaded by the first call
    turn = Lock()  # held by the thread that searches with it

    def __init__(
        self,
        folder: Path,
        conversion: Path,
        config: DecodeConfig,
        threads: int | None = None,
        scores: bool = True,
    ) -> None:
        import ctranslate2

        self.folder = folder
        self.config = config
        self.scores = scores
        # Two workers of one thread are faster than one worker of two threads on small models.
        self.workers = threads or hardware.usable_cores()
        model = ModelConfig(**read_description(folder).model)
        self.width = model.d_model
        self.longest = table_length(model)
        # The number of tokens at the beginning of a prefix whose log P does not count, as in the
        # torch engine.
        self.given = int(model.target_tags)
        tokenizer = read_tokenizer(folder)
        self.vocabularies = (tokenizer.vocabulary(SOURCE), tokenizer.vocabulary(TARGET))
        self.symbols = self.vocabularies[TARGET]
        self.ids = {symbol: number for number, symbol in enumerate(self.symbols)}
        try:
            self.translator = ctranslate2.Translator(
                str(conversion),
                inter_threads=self.workers,
                intra_threads=1,
                max_queued_batches=-1,  # no limit: queuing a batch never waits for the workers
            )
        except (RuntimeError, ValueError) as error:
            problem = f"CTranslate2 cannot load it ({one_line(error)})"
            raise NMTError(f"{conversion}: {problem}; delete it") from error

    @property
    def batch_tokens(self) -> int:
        """Maximum source tokens in a batch.

        Near the fastest size for models with 128 and 512 dimensions.
        """
        most = min(2 * self.width, 1024)
        if not self.translator.compute_type.startswith("int8"):
            most *= 2
        if self.config.beam_size == 1:
            most *= 2
        return min(batch_tokens(self.config, "cpu"), most)

    @property
    def has_scores(self) -> bool:
        """Whether hypotheses have log probabilities; beam search needs them in any case."""
        return self.scores or self.config.beam_size > 1

    def with_search(self, config: DecodeConfig) -> "CTranslate2Engine":
        # The new search may have options that CTranslate2 lacks.
        check([self.folder], EngineOptions(config))
        other = copy(self)
        other.config = config
        return other

    def search(
        self,
        sentences: Sequence[list[int]],
        prefixes: Sequence[list[int]],
        constraints: Constraints | None = None,
    ) -> list[list[Hypothesis]]:
        """Each sentence's n_best hypotheses; NMTError for sequences that are too long."""
        begun = list(zip(sentences, prefixes, strict=True))
        results = self.ranked(begun, self.candidates(begun, suppress=False))
        # Suppressing symbols changes log probabilities, so only sentences that need it are searched
        # again.
        unclean = [index for index, row in enumerate(results) if is_unclean(row)]
        if unclean:
            again = [begun[index] for index in unclean]
            # CTranslate2 masks before the softmax, so its scores of these are too high.
            rows = self.ranked(again, self.candidates(again, suppress=True), rescore=True)
            for index, row in zip(unclean, rows, strict=True):
                results[index] = row
        if constraints:
            self.meet(constraints, begun, results)
        return results

    def meet(
        self,
        constraints: Constraints,
        begun: Sequence[Pair],
        results: list[list[Hypothesis]],
    ) -> None:
        """Replace translations that do not meet their constraints with the torch engine's.

        torch searches only for these, because it would not change the others.
        """
        unmet = []
        for index, row in enumerate(results):
            are_met = [constraints.are_met(index, hypothesis.tokens) for hypothesis in row]
            if not all(are_met):
                unmet.append(index)
        if not unmet:
            return
        again = [begun[index] for index in unmet]
        sources = [source for source, _ in again]
        prefixes = [prefix for _, prefix in again]
        with self.turn:
            engine = self.by_torch().with_search(self.config)
            rows = engine.search(sources, prefixes, constraints.of(unmet))
        # Scored by CTranslate2 as well, so that scores of all lines come from one program.
        rows = self.ranked(again, rows, rescore=True)
        for index, row in zip(unmet, rows, strict=True):
            results[index] = row

    def fits(self, pair: Pair) -> bool:
        """Whether both sides of a pair, with their end symbols, have positions."""
        return max(map(len, pair)) < self.longest

    def max_length(self, begun: Pair) -> int:
        """The maximum length of a translation, including the end symbol."""
        source, prefix = map(len, begun)
        if not self.fits(begun):
            tokens = f"a sequence of {max(source, prefix) + 1:,} tokens"
            positions = f"the {self.longest:,} positions of CTranslate2"
            advice = "use split=auto or engine=torch"
            raise NMTError(f"{tokens} is longer than {positions}; {advice}")
        # A prefix may be longer than the limit, but its translation has to end.
        length = max(source + self.config.max_extra_length, prefix) + 1
        return min(length, self.longest)

    def ranked(
        self,
        begun: Sequence[Pair],
        results: list[list[Hypothesis]],
        rescore: bool = False,
    ) -> list[list[Hypothesis]]:
        """Each sentence's n_best hypotheses out of `results`, best first.

        `rescore` computes all log probabilities anew.
        """
        # Without scores, there is one hypothesis per sentence, so there is nothing to rank.
        if self.has_scores:
            ranking = Ranking(self.config, self.forced_decoding, self.max_length)
            ranking.rank(begun, results, rescore)
        return [row[: self.config.n_best] for row in results]

    def candidates(self, begun: Sequence[Pair], suppress: bool) -> list[list[Hypothesis]]:
        """The hypotheses that CTranslate2 finds for each sentence, given its prefix.

        `suppress` excludes symbols that are not text.
        """
        # CTranslate2 has one maximum length per batch, nmt one per sentence.
        limits = [self.max_length(pair) for pair in begun]
        results: list[list[Hypothesis]] = [[] for _ in begun]
        # All batches are queued before the first result is read, so that no worker waits.
        waiting = deque(self.queue_batches(begun, range(len(begun)), limits, suppress))
        while waiting:
            batch = waiting.popleft()
            to_repeat = defaultdict[int, list[int]](list)  # maximum length -> sentences
            for index, promise in zip(batch.indices, batch.promises, strict=True):
                row = self.read(promise.result())
                results[index] = row
                limit = limits[index]
                if limit == batch.longest or not has_length(row, limit):
                    continue
                if self.config.beam_size > 1:
                    # Beam search may find other hypotheses with the sentence's own maximum length.
                    to_repeat[limit].append(index)
                else:
                    # Greedy search would stop here.
                    del row[0].tokens[limit - 1 :]
            for same_limit in to_repeat.values():
                waiting += self.queue_batches(begun, same_limit, limits, suppress)
        return results

    def queue_batches(
        self,
        begun: Sequence[Pair],
        indices: Sequence[int],
        limits: Sequence[int],
        suppress: bool,
    ) -> list[QueuedBatch]:
        """Queue the sentences with these indices for translation, in batches.

        `begun` and `limits`, the maximum lengths, are those of all sentences.
        """
        queued = []
        lengths = [len(begun[index][SOURCE]) + 1 for index in indices]
        for places in self.batches(lengths):
            batch = [indices[place] for place in places]
            longest = max(limits[index] for index in batch)
            promises = self.queue([begun[index] for index in batch], longest, suppress)
            queued.append(QueuedBatch(batch, longest, promises))
        return queued

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Batches of sentence indices, longest first.

        They have about the same size, and each worker gets the same number of them.
        """
        total = sum(lengths)
        count = math.ceil(total / self.batch_tokens / self.workers) * self.workers
        # Neighbors have about the same length, so batches have little padding. The longest come
        # first, because a long batch at the end would leave the other workers idle.
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        batches = defaultdict[int, list[int]](list)
        tokens_before = 0
        for index in order:
            batches[tokens_before * count // total].append(index)
            tokens_before += lengths[index]
        return list(batches.values())

    def queue(self, begun: Sequence[Pair], longest: int, suppress: bool) -> list[Any]:
        """Queue sentences for translation, and return their pending results."""
        beam = self.config.beam_size
        longest_prefix = max(len(prefix) for _, prefix in begun)
        count = 1
        if beam > 1:
            count = hypotheses_to_find(self.config)
            if longest_prefix > self.given:
                # After an unlikely prefix, the other tokens hardly change the score.
                count += 2 * beam
        return self.translate(
            begun,
            longest_prefix > 0,
            # Twice, in case one sentence is much longer than the others.
            max_batch_size=2 * self.batch_tokens,
            batch_type="tokens",
            beam_size=beam,
            # CTranslate2 stops after beam size x patience finished hypotheses.
            patience=count / beam,
            num_hypotheses=count,
            # All hypotheses come back with log P, so that nmt can rank them by its own penalty.
            length_penalty=0,
            return_scores=self.has_scores,
            return_end_token=True,  # otherwise the score omits the end symbol's log probability
            max_decoding_length=longest - 1,  # the last position is for the end symbol
            suppress_sequences=[[self.symbols[id]] for id in NO_TEXT] if suppress else None,
        )

    def translate(
        self,
        pairs: Sequence[Pair],
        is_prefixed: bool = True,
        **options: Any,
    ) -> list[Any]:
        """Queue sources for translation with these options of CTranslate2."""
        results = self.translator.translate_batch(
            self.tokens(pairs, SOURCE),
            self.tokens(pairs, TARGET) if is_prefixed else None,
            asynchronous=True,
            # By default, CTranslate2 cuts sources at 1,024 tokens silently.
            max_input_length=0,  # no limit
            # The default, 1, masks the end symbol at the first step before the softmax, which
            # changes scores.
            min_decoding_length=0,
            **options,
        )
        return list(results)

    def read(self, result: Any) -> list[Hypothesis]:
        """The hypotheses in a result, not ranked yet."""
        end = self.symbols[EOS]
        all_scores = result.scores if self.has_scores else [math.nan]
        row = []
        for symbols, score in zip(result.hypotheses, all_scores, strict=True):
            if score <= NO_HYPOTHESIS:
                continue
            # `return_end_token` asks for it, but a hypothesis of the maximum length has none.
            if symbols and symbols[-1] == end:
                symbols = symbols[:-1]
            row.append(Hypothesis([self.ids[symbol] for symbol in symbols], score, math.nan))
        return row

    def forced_decoding(self, pairs: Sequence[Pair]) -> list[list[float]]:
        """Log probabilities of each translation's tokens and end symbol; 0 for given tokens."""
        if not pairs:
            return []
        scored = self.translator.score_batch(
            self.tokens(pairs, SOURCE),
            self.tokens(pairs, TARGET),
            max_batch_size=batch_tokens(self.config, "cpu"),
            batch_type="tokens",
            max_input_length=0,
        )
        given = [0.0] * self.given
        return [given + result.log_probs[self.given :] for result in scored]

    def token_scores(self, pairs: Sequence[Pair], align: bool = True) -> list[TokenScores]:
        """Log probabilities and, if `align`, the attention when translations are forced."""
        for pair in pairs:
            self.max_length(pair)  # checks the length
        # Queued before `forced_decoding`, which waits for its own results.
        promises = self.queue_alignments(pairs) if align else {}
        scores = [TokenScores(row) for row in self.forced_decoding(pairs)]
        for index, promise in promises.items():
            source, target = map(len, pairs[index])
            [attention] = promise.result().attention
            rows = [row[:source] for row in attention[:target]]
            # Without rows, numpy does not know the number of columns.
            scores[index].attention = np.array(rows, np.float32).reshape(target, source)
        return scores

    def queue_alignments(self, pairs: Sequence[Pair]) -> dict[int, Any]:
        """Index of each pair -> the pending result of a greedy search with the target as prefix."""
        # CTranslate2 returns attention only from a search, so a greedy search has to write the
        # target.
        lengths = [max(map(len, pair)) + 1 for pair in pairs]
        promises: dict[int, Any] = {}
        for batch in batches_by_length(lengths, self.batch_tokens):
            forced = [pairs[index] for index in batch]
            longest = max(len(target) for _, target in forced)
            results = self.translate(
                forced,
                beam_size=1,
                max_decoding_length=max(1, longest),
                return_attention=True,
            )
            promises |= zip(batch, results, strict=True)
        return promises

    def tokens(self, pairs: Sequence[Pair], side: int) -> list[list[str]]:
        """The symbols of one side."""
        vocabulary = self.vocabularies[side]
        rows = []
        for pair in pairs:
            rows.append([vocabulary[id] for id in pair[side]])
        return rows


def is_unclean(row: list[Hypothesis]) -> bool:
    """Whether a sentence has no hypothesis, or one with symbols that are not text."""
    if not row:
        return True
    return any(not set(NO_TEXT).isdisjoint(hypothesis.tokens) for hypothesis in row)


def has_length(row: list[Hypothesis], limit: int) -> bool:
    """Whether a hypothesis reaches a maximum length, which counts the end symbol."""
    return any(len(candidate.tokens) >= limit - 1 for candidate in row)
