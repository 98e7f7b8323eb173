"""Search by CTranslate2, on processors. No torch.

CTranslate2 ranks hypotheses by log P / |Y|^alpha. So it is asked for the log probabilities of all finished hypotheses,
which are ranked here by the penalty of the search. Translations equal those of the torch engine up to rounding, except
where the winner ends later than CTranslate2 searches (at most 7 of 1,000 sentences, as measured). `check_search`
refuses what CTranslate2 cannot do or does worse. A prefix is such a thing, unless the model would write most of it by
itself: of 300 lines of the quickstart, all were translated as by torch from the beginning of their own translations,
299 from that of the reference, 291 from "Das ist nicht", and 178 from "zz Foo".
"""

import json
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from copy import copy
from itertools import accumulate, chain, groupby
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import numpy.typing as npt

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.errors import NMTError
from nmt.files import MAP, ModelDescription, read_description, within
from nmt.hardware import usable_cores
from nmt.plugins.exchange.ctranslate2_load import check_search
from nmt.plugins.protection.constraints import Constraints
from nmt.search import Hypothesis, Pair, TokenScores, batches_by_length, penalty

MAX_POSITIONS = 2048
"""Length of the table of sinusoids, which CTranslate2 needs."""
BATCH_TOKENS = {"int8": 512, "float32": 1024}
"""Maximal source tokens in a batch of beam search, by arithmetic; greedy search takes twice as many. Larger batches are
no faster on a processor."""
Batch = tuple[int, list[int], list[Any]]
"""A batch that is searched: its maximal length, the indices of its sentences, and CTranslate2's promises of results."""
MAP_BEAM = "vmap_beam_size"
"""Where a model's description says how wide a beam its vocabulary map is for."""
NO_HYPOTHESIS = -1e9
"""CTranslate2 fills up its lists with hypotheses whose score is -1e10."""


def positions(description: ModelDescription) -> int:
    """The longest sequence, with its end symbol, that a model can take once it is exported."""
    model = ModelConfig(**description.model)
    return model.max_positions if model.positions == "learned" else max(MAX_POSITIONS, model.max_positions)


def vocabulary_files(folder: Path) -> tuple[str, str]:
    """The names of the files for the entries of source and target in a model's folder."""
    if (folder / "shared_vocabulary.json").exists():
        return "shared_vocabulary.json", "shared_vocabulary.json"
    return "source_vocabulary.json", "target_vocabulary.json"


class CTranslate2Engine:
    """A model that was written by `nmt.plugins.exchange.ctranslate2.write`.

    `precision` is the arithmetic; "default" is that of the file. Each worker has one core, which is faster than one
    search on several cores; the workers share the weights. With `vmap`, it searches among the tokens of the model's
    vocabulary map, if there is one. With `scores=False`, greedy search does not compute log
    probabilities, which it does not need: they are nan.
    """

    def __init__(
        self,
        folder: Path,
        config: DecodeConfig,
        precision: str = "default",
        threads: int | None = None,
        scores: bool = True,
        vmap: bool = True,
    ) -> None:
        description = read_description(folder)
        self.config, self.longest, self.scores = config, positions(description), scores
        self.map_beam = within(description.training, MAP_BEAM) or 0 if vmap and (folder / MAP).is_file() else 0
        self.folder, self.workers = folder, threads or usable_cores()
        try:
            self.translator = ctranslate2.Translator(
                str(folder),
                compute_type=precision,
                inter_threads=self.workers,
                intra_threads=1,
                max_queued_batches=-1,  # with its own limit, giving work waits for the workers
            )
            names = vocabulary_files(folder)
            both = [json.loads((folder / name).read_text(encoding="utf-8")) for name in names]
        except (OSError, RuntimeError, ValueError) as error:
            raise NMTError(
                f"{folder}: not a model that CTranslate2 can load ({error}); remove it, or export it again"
            ) from error
        self.source_symbols: list[str] = both[0]
        self.symbols: list[str] = both[1]
        self.ids = {symbol: number for number, symbol in enumerate(self.symbols)}

    @property
    def has_map(self) -> bool:
        """True if it searches by the map, which was tried with beams up to that size."""
        return int(self.config.beam_size) <= self.map_beam

    @property
    def precision(self) -> str:
        """Arithmetic: int8, or another one of CTranslate2's names."""
        found: str = self.translator.compute_type
        return "int8" if found.startswith("int8") else found

    @property
    def batch_tokens(self) -> int:
        """Source tokens in a batch."""
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
        if constraints:
            raise NMTError("engine=ctranslate2 has no search for given words: use engine=torch, or terms=soft")
        begun = list(zip(sentences, prefixes, strict=True))
        results = self.ranked(begun)
        # Suppressing these symbols takes time and changes log probabilities, and a trained model hardly ever writes
        # them. So only the sentences that need it are searched again.
        unclean = [
            index
            for index, row in enumerate(results)
            if not row or not all({PAD, BOS, UNK}.isdisjoint(hypothesis.tokens) for hypothesis in row)
        ]
        for index, row in zip(unclean, self.ranked([begun[i] for i in unclean], suppress=True), strict=True):
            results[index] = row
        return results

    def max_length(self, begun: Pair) -> int:
        """The maximal length of a sentence's translation, with the end symbol."""
        source, target = map(len, begun)
        if max(source, target) + 1 > self.longest:
            raise NMTError(
                f"a sequence of {max(source, target) + 1:,} tokens is longer than the {self.longest:,} positions that "
                "CTranslate2 has of the model; use split=auto, or engine=torch"
            )
        return min(max(source + self.config.max_extra_length, target) + 1, self.longest)

    def ranked(self, begun: Sequence[Pair], suppress: bool = False) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, given with its prefix.

        With `suppress`, they have no padding, start and unknown symbols.
        """
        results = self.candidates(begun, suppress)
        if self.has_scores:
            self.complete_log_probabilities(begun, results, suppress)
            for row in results:
                for candidate in row:
                    length = len(candidate.tokens) + 1
                    candidate.score = candidate.log_probability / penalty(length, self.config)
                row.sort(key=lambda candidate: -candidate.score)
        return [row[: self.config.n_best] for row in results]

    def complete_log_probabilities(
        self, begun: Sequence[Pair], results: list[list[Hypothesis]], suppress: bool
    ) -> None:
        """Make the scores of CTranslate2 log P(Y|X).

        It gives forced tokens the score 0. It cuts at the maximal length without an end symbol, and suppresses before
        the softmax, as a vocabulary map does: the log probabilities of all these are computed again.
        """
        prefixed = [index for index, (_, prefix) in enumerate(begun) if prefix]
        forced = self.forced_decoding([begun[index] for index in prefixed])
        again = [
            (source, candidate)
            for (source, prefix), row in zip(begun, results, strict=True)
            for candidate in row
            if suppress
            or (self.has_map and self.scores)
            or len(candidate.tokens) + 1 == self.max_length((source, prefix))
        ]
        scored = self.forced_decoding([(source, candidate.tokens) for source, candidate in again])
        for index, log_probabilities in zip(prefixed, forced, strict=True):
            for candidate in results[index]:
                candidate.log_probability += sum(log_probabilities[:-1])
        for (_, candidate), log_probabilities in zip(again, scored, strict=True):
            candidate.log_probability = sum(log_probabilities)

    def candidates(self, begun: Sequence[Pair], suppress: bool) -> list[list[Hypothesis]]:
        """All hypotheses of each sentence that ended or were cut."""
        own = [self.max_length(each) for each in begun]
        results: list[list[Hypothesis]] = [[] for _ in begun]
        waiting = deque(self.start(begun, own, range(len(begun)), suppress))
        while waiting:
            longest, indices, found = waiting.popleft()
            reached = defaultdict[int, list[int]](list)
            for index, result in zip(indices, found, strict=True):
                results[index] = row = self.read(result.result())
                if own[index] < longest and any(len(candidate.tokens) >= own[index] - 1 for candidate in row):
                    reached[own[index]].append(index)
                    # A batch has one maximal length. Where a sentence's own is shorter, greedy search has these tokens.
                    del row[0].tokens[own[index] - 1 :]
            if self.config.beam_size > 1:
                # A beam may have held other hypotheses there: they are searched again, each with its own.
                for same in reached.values():
                    waiting.extend(self.start(begun, own, same, suppress))
        return results

    def start(self, begun: Sequence[Pair], own: Sequence[int], indices: Sequence[int], suppress: bool) -> list[Batch]:
        """Queue sentences, given with their own maximal lengths and the indices of those to search."""
        batches = [[indices[n] for n in batch] for batch in self.batches([len(begun[i][0]) + 1 for i in indices])]
        longest = [max(own[index] for index in batch) for batch in batches]
        return [
            (most, batch, self.queue([begun[index] for index in batch], most, suppress))
            for most, batch in zip(longest, batches, strict=True)
        ]

    def batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Indices of sentences in batches of about equal size, longest first.

        Each worker gets the same number of batches, so that none waits for another's last one.
        """
        total = sum(lengths)
        count = math.ceil(total / self.batch_tokens / self.workers) * self.workers
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        before = accumulate((lengths[index] for index in order), initial=0)
        for _, batch in groupby(zip(order, before, strict=False), lambda each: each[1] * count // total):
            yield [index for index, _ in batch]

    def queue(self, begun: Sequence[Pair], longest: int, suppress: bool) -> list[Any]:
        """Queue a batch for the workers."""
        beam = self.config.beam_size
        # CTranslate2 stops after this many finished hypotheses. A longer one may still win by its penalty, so the
        # larger alpha is, the more are asked for; at few tokens, |Y|^alpha grows faster than the other penalty.
        alpha = self.config.length_penalty * (4 if self.config.length_penalty_kind == "marian" else 1)
        wanted = math.ceil(beam * max(1.0, 0.4 + alpha)) + self.config.n_best - 1
        # After an unlikely prefix, so does the share that the rest of a hypothesis has in its score.
        prefixed = any(prefix for _, prefix in begun)
        wanted = 1 if beam == 1 else wanted + 2 * beam * prefixed
        return self.translator.translate_batch(  # type: ignore[no-any-return]
            [self.source_symbols_of(source) for source, _ in begun],
            [self.symbols_of(prefix) for _, prefix in begun] if prefixed else None,
            asynchronous=True,
            max_batch_size=2 * self.batch_tokens,  # where a sentence is much longer than the next ones
            batch_type="tokens",
            beam_size=beam,
            patience=wanted / beam,
            num_hypotheses=wanted,
            length_penalty=0,
            return_scores=self.has_scores,
            return_end_token=True,  # without it, the score leaves out its log probability
            max_input_length=0,
            min_decoding_length=0,
            use_vmap=self.has_map and not suppress and not prefixed,
            max_decoding_length=longest - 1,  # the last position is the end symbol's
            suppress_sequences=[[self.symbols[number]] for number in (PAD, BOS, UNK)] if suppress else None,
        )

    def read(self, result: Any) -> list[Hypothesis]:
        """The hypotheses found for a sentence, not yet ranked."""
        scores, end = result.scores if self.has_scores else [math.nan], [self.symbols[EOS]]
        return [
            Hypothesis(self.ids_of(symbols[:-1] if symbols[-1:] == end else symbols), score, math.nan)
            for symbols, score in zip(result.hypotheses, scores, strict=True)
            if not score <= NO_HYPOTHESIS
        ]

    def forced_decoding(self, pairs: Sequence[Pair]) -> list[list[float]]:
        """Log probabilities of the tokens of translations and of their end symbols."""
        if not pairs:
            return []
        scored = self.translator.score_batch(
            [self.source_symbols_of(source) for source, _ in pairs],
            [self.symbols_of(target) for _, target in pairs],
            max_batch_size=self.config.batch_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        return [result.log_probs for result in scored]

    def token_scores(self, pairs: Sequence[Pair]) -> list[TokenScores]:
        """Log probabilities, and the attention of a greedy search that is forced to write the translation."""
        batches = list(batches_by_length([max(map(len, pair)) + 1 for pair in pairs], self.batch_tokens))
        started = [self.start_forced([pairs[index] for index in batch]) for batch in batches]
        scores = [TokenScores(log_probabilities) for log_probabilities in self.forced_decoding(pairs)]
        for index, result in zip(chain(*batches), chain(*started), strict=True):
            source, target = map(len, pairs[index])
            rows = [row[:source] for row in result.result().attention[0][:target]]
            scores[index].attention = np.array(rows, np.float32).reshape(target, source)
        return scores

    def next_token(self, pair: Pair) -> npt.NDArray[np.float32]:
        [result] = self.start_forced([pair], further=1, return_logits_vocab=True)
        logits = np.array(result.result().logits[0][len(pair[1])], np.float64).reshape(-1)
        total: float = np.logaddexp.reduce(logits)
        return (logits - total).astype(np.float32)

    def start_forced(self, pairs: Sequence[Pair], further: int = 0, **options: Any) -> list[Any]:
        """Queue a batch whose translations are forced, and may have so many `further` tokens."""
        return self.translator.translate_batch(  # type: ignore[no-any-return]
            [self.source_symbols_of(source) for source, _ in pairs],
            [self.symbols_of(target) for _, target in pairs],
            asynchronous=True,
            beam_size=1,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=max(1, further + max(len(target) for _, target in pairs)),
            return_attention=True,
            **options,
        )

    def ids_of(self, symbols: list[str]) -> list[int]:
        return list(map(self.ids.__getitem__, symbols))

    def symbols_of(self, ids: list[int]) -> list[str]:
        return list(map(self.symbols.__getitem__, ids))

    def source_symbols_of(self, ids: list[int]) -> list[str]:
        return list(map(self.source_symbols.__getitem__, ids))
