"""Search by CTranslate2, on processors. No torch.

CTranslate2 ranks hypotheses by log P / |Y|^alpha, so all finished ones are ranked anew, by the penalty of the search.
Translations equal those of the torch engine up to rounding, except where the winner ends later than CTranslate2
searches (at most 7 of 1,000 sentences), or after a prefix that the model would not write by itself: of 300 lines of the
quickstart, 299 were the same after the beginning of the reference, and 178 after "zz Foo".
"""

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import accumulate, chain, groupby
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, require
from nmt.errors import NMTError, one_line
from nmt.hardware import usable_cores
from nmt.plugins.exchange.ctranslate2_load import check_search
from nmt.search import Constraints, Hypothesis, Pair, TokenScores, batches_by_length, penalty
from nmt.text import SOURCE, TARGET

BATCH_TOKENS = {"int8": 512, "float32": 1024}
"""Maximal source tokens in a batch of beam search, by arithmetic; greedy search takes twice as many."""
NO_TEXT = PAD, BOS, UNK
NO_HYPOTHESIS = -1e9
"""CTranslate2 fills up its lists with hypotheses whose score is -1e10."""


class CTranslate2Engine:
    """A model in the files of CTranslate2, with vocabularies in the order of our ids, on one core for each worker.

    `precision` is the arithmetic; "default" is that of the files. With `scores=False`, greedy search computes no log
    probabilities: they are nan.
    """

    folder: Path  # where the model lies, if nmt wrote it
    ahead = True

    def __init__(
        self,
        files: dict[str, bytes],
        vocabularies: tuple[list[str], list[str]],
        positions: int,
        config: DecodeConfig,
        precision: str = "default",
        threads: int | None = None,
        scores: bool = True,
    ) -> None:
        self.config, self.scores, self.workers = config, scores, threads or usable_cores()
        self.longest: int | None = positions
        # Without a limit on waiting batches, to queue one never waits for the workers.
        options: dict[str, Any] = {"inter_threads": self.workers, "intra_threads": 1, "max_queued_batches": -1}
        try:
            self.translator = ctranslate2.Translator("model", files=files, compute_type=precision, **options)
        except (RuntimeError, ValueError) as error:
            raise NMTError(f"not a model that CTranslate2 can load ({one_line(error)}); export it again") from error
        self.vocabularies, self.symbols = vocabularies, vocabularies[TARGET]
        self.ids = {symbol: number for number, symbol in enumerate(self.symbols)}

    @property
    def precision(self) -> str:
        name: str = self.translator.compute_type
        return "int8" if name.startswith("int8") else name

    @property
    def batch_tokens(self) -> int:
        most = BATCH_TOKENS["int8" if self.precision == "int8" else "float32"]
        return min(self.config.batch_tokens, most if self.config.beam_size > 1 else 2 * most)

    @property
    def has_scores(self) -> bool:
        return self.scores or self.config.beam_size > 1

    def with_search(self, config: DecodeConfig) -> "CTranslate2Engine":
        check_search(config)
        other = copy(self)
        other.config = config
        return other

    def search(
        self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]], constraints: Constraints | None = None
    ) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence; NMTError for constraints, or where the model has no positions."""
        require(not constraints, "engine=ctranslate2 has no search for given words: use engine=torch")
        begun = list(zip(sentences, prefixes, strict=True))
        results = self.ranked(begun)
        # Suppressing symbols changes log probabilities, so only sentences that need it are searched again.
        unclean = [i for i, row in enumerate(results) if not row or any(set(NO_TEXT) & {*h.tokens} for h in row)]
        for index, row in zip(unclean, self.ranked([begun[i] for i in unclean], suppress=True), strict=True):
            results[index] = row
        return results

    def max_length(self, begun: Pair) -> int:
        """The maximal length of a translation, with the end symbol."""
        (source, target), longest = map(len, begun), self.longest or 0
        problem = f"a sequence of {max(source, target) + 1:,} tokens is longer than the {longest:,} positions that "
        problem += "CTranslate2 has of the model; use split=auto, or engine=torch"
        require(max(source, target) < longest, problem)
        return min(max(source + self.config.max_extra_length, target) + 1, longest)

    def ranked(self, begun: Sequence[Pair], suppress: bool = False) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, given with its prefix; with `suppress`, only of text.

        The scores of CTranslate2 become log P(Y|X) where they are not: it gives forced tokens the score 0, cuts at the
        maximal length without an end symbol, and suppresses before the softmax.
        """
        results = self.candidates(begun, suppress)
        if self.has_scores:
            prefixed = [index for index, (_, prefix) in enumerate(begun) if prefix]
            for index, scores in zip(prefixed, self.forced_decoding([begun[i] for i in prefixed]), strict=True):
                for candidate in results[index]:
                    candidate.log_probability += sum(scores[:-1])
            candidates = [(pair, candidate) for pair, row in zip(begun, results, strict=True) for candidate in row]
            again = [(pair, c) for pair, c in candidates if suppress or len(c.tokens) + 1 == self.max_length(pair)]
            scored = self.forced_decoding([(source, candidate.tokens) for (source, _), candidate in again])
            for (_, candidate), scores in zip(again, scored, strict=True):
                candidate.log_probability = sum(scores)
            for _, candidate in candidates:
                candidate.score = candidate.log_probability / penalty(len(candidate.tokens) + 1, self.config)
            for row in results:
                row.sort(key=lambda candidate: -candidate.score)
        return [row[: self.config.n_best] for row in results]

    def candidates(self, begun: Sequence[Pair], suppress: bool) -> list[list[Hypothesis]]:
        limits = [self.max_length(pair) for pair in begun]
        results: list[list[Hypothesis]] = [[] for _ in begun]

        def start(indices: Sequence[int]) -> Iterator[tuple[int, list[int], list[Any]]]:
            """Batches with their maximal length, the indices of their sentences, and promises of results."""
            for places in self.batches([len(begun[index][SOURCE]) + 1 for index in indices]):
                batch = [indices[place] for place in places]
                longest = max(limits[index] for index in batch)
                yield longest, batch, self.queue([begun[index] for index in batch], longest, suppress)

        waiting = deque(start(range(len(begun))))
        while waiting:
            longest, indices, promises = waiting.popleft()
            reached = defaultdict[int, list[int]](list)
            for index, promise in zip(indices, promises, strict=True):
                results[index] = row = self.read(promise.result())
                limit = limits[index]
                if limit < longest and any(len(candidate.tokens) >= limit - 1 for candidate in row):
                    reached[limit].append(index)
                    # A batch has one maximal length. Where a sentence's own is shorter, greedy search has these tokens.
                    del row[0].tokens[limit - 1 :]
            if self.config.beam_size > 1:
                # A beam may have held other hypotheses there: these are searched again, with the limit of their own.
                for same in reached.values():
                    waiting.extend(start(same))
        return results

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Indices of sentences, longest first, in batches of about equal size, as many for each worker."""
        total = sum(lengths)
        count = math.ceil(total / self.batch_tokens / self.workers) * self.workers
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        before = accumulate((lengths[index] for index in order), initial=0)
        groups = groupby(zip(order, before, strict=False), lambda item: item[1] * count // total)
        return [[index for index, _ in batch] for _, batch in groups]

    def queue(self, begun: Sequence[Pair], longest: int, suppress: bool) -> list[Any]:
        beam = self.config.beam_size
        # CTranslate2 stops after this many finished hypotheses. A longer one may still win by its penalty, so the
        # larger alpha is, the more are asked for; at few tokens, |Y|^alpha grows faster than the other penalty.
        alpha = self.config.length_penalty * (4 if self.config.length_penalty_kind == "marian" else 1)
        count = math.ceil(beam * max(1.0, 0.4 + alpha)) + self.config.n_best - 1
        # After an unlikely prefix, so does the share that the rest of a hypothesis has in its score.
        prefixed = any(prefix for _, prefix in begun)
        count = 1 if beam == 1 else count + 2 * beam * prefixed
        return self.translate(
            begun,
            prefixed,
            max_batch_size=2 * self.batch_tokens,  # where a sentence is much longer than the next ones
            batch_type="tokens",
            beam_size=beam,
            patience=count / beam,
            num_hypotheses=count,
            length_penalty=0,
            return_scores=self.has_scores,
            return_end_token=True,  # without it, the score leaves out its log probability
            max_decoding_length=longest - 1,  # the last position is the end symbol's
            suppress_sequences=[[self.symbols[number]] for number in NO_TEXT] if suppress else None,
        )

    def translate(self, pairs: Sequence[Pair], prefixed: bool = True, **options: Any) -> list[Any]:
        prefixes = self.tokens(pairs, TARGET) if prefixed else None
        options |= {"asynchronous": True, "max_input_length": 0, "min_decoding_length": 0}
        return list(self.translator.translate_batch(self.tokens(pairs, SOURCE), prefixes, **options))

    def read(self, result: Any) -> list[Hypothesis]:
        scores, end = result.scores if self.has_scores else [math.nan], [self.symbols[EOS]]
        return [
            Hypothesis([self.ids[token] for token in (tokens[:-1] if tokens[-1:] == end else tokens)], score, math.nan)
            for tokens, score in zip(result.hypotheses, scores, strict=True)
            if not score <= NO_HYPOTHESIS
        ]

    def forced_decoding(self, pairs: Sequence[Pair]) -> list[list[float]]:
        """Log probabilities of the tokens of translations and of their end symbols."""
        options = {"max_batch_size": self.config.batch_tokens, "batch_type": "tokens", "max_input_length": 0}
        scored = self.translator.score_batch(self.tokens(pairs, SOURCE), self.tokens(pairs, TARGET), **options)
        return [result.log_probs for result in scored]

    def token_scores(self, pairs: Sequence[Pair]) -> list[TokenScores]:
        """Log probabilities, and the attention of a greedy search that is forced to write the translation."""
        batches = list(batches_by_length([max(map(len, pair)) + 1 for pair in pairs], self.batch_tokens))
        started = list[Any]()
        for batch in batches:
            forced = [pairs[index] for index in batch]
            longest = max(1, *(len(target) for _, target in forced))
            started += self.translate(forced, beam_size=1, max_decoding_length=longest, return_attention=True)
        scores = [TokenScores(log_probabilities) for log_probabilities in self.forced_decoding(pairs)]
        for index, promise in zip(chain(*batches), started, strict=True):
            source, target = map(len, pairs[index])
            rows = [row[:source] for row in promise.result().attention[0][:target]]
            scores[index].attention = np.array(rows, np.float32).reshape(target, source)
        return scores

    def tokens(self, pairs: Sequence[Pair], side: int) -> list[list[str]]:
        return [[self.vocabularies[side][id] for id in pair[side]] for pair in pairs]
