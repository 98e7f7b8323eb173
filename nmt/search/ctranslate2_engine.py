"""Search by CTranslate2, on processors. No torch.

CTranslate2 ranks by log P / |Y|^alpha. It is asked for the log probabilities of all hypotheses that ended, and these
are ranked here by the penalty of Wu et al. Translations are those of the torch engine but for rounding, and for a
winner that ends later than CTranslate2 searches (up to 7 of 1,000 sentences where it was measured). What it cannot do,
or would search worse, is refused.
"""

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.errors import NMTError
from nmt.hardware import usable_cores
from nmt.model_directory.description import ModelDescription, read_description
from nmt.search.engine import Hypothesis, Pair, length_penalty

MAX_POSITIONS = 2048
"""Longest sequence of sinusoidal positions, which CTranslate2 takes as a table."""
BATCH_TOKENS = {"int8": 512, "float32": 1024}
"""Most source tokens of a beam search's batch, by arithmetic: larger batches are no faster on a processor. Greedy
search takes twice as many."""
NO_HYPOTHESIS = -1e9
"""Above the score of hypotheses that are none, which is -1e10."""


def positions(description: ModelDescription) -> int:
    """The longest sequence, its end symbol counted, that a described model can take once it is written."""
    model = ModelConfig(**description.model)
    return model.max_positions if model.positions == "learned" else max(MAX_POSITIONS, model.max_positions)


def check(config: DecodeConfig, target_prefix: str = "") -> None:
    """NMTError for what CTranslate2 cannot do, or not as well as torch."""
    for key, value, refused in (
        ("decode.do_sample", "true", config.do_sample),
        ("decode.no_repeat_ngram_size", config.no_repeat_ngram_size, config.no_repeat_ngram_size > 0),
        ("decode.min_length", config.min_length, config.min_length > 0),
        ("decode.max_length", config.max_length, config.max_length is not None),
        ("decode.length_penalty", config.length_penalty, config.beam_size > 1 and config.length_penalty > 1),
        ("target_prefix", target_prefix, bool(target_prefix.strip())),
    ):
        if refused:
            raise NMTError(f"{key}={value}: engine=ctranslate2 cannot, or finds worse translations; use engine=torch")


class CTranslate2Engine:
    """A model that was written by `nmt.interchange.ctranslate2.write`.

    `precision` is that of computing; default is the file's. The workers have a core each, which is faster than one
    search on several, and share the weights. Without `scores` a greedy search computes no log probabilities, which rank
    nothing there: they are nan.
    """

    def __init__(
        self,
        folder: Path,
        config: DecodeConfig,
        precision: str = "default",
        threads: int | None = None,
        scores: bool = True,
    ) -> None:
        check(config)
        self.config, self.longest = config, positions(read_description(folder))
        self.workers = threads or usable_cores()
        try:
            self.translator = ctranslate2.Translator(
                str(folder), compute_type=precision, inter_threads=self.workers, intra_threads=1
            )
            self.symbols: list[str] = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
        except (OSError, RuntimeError, ValueError) as error:
            raise NMTError(
                f"{folder}: not a model that CTranslate2 can load ({error}); remove it, or export it again"
            ) from error
        most = BATCH_TOKENS["int8" if self.translator.compute_type.startswith("int8") else "float32"]
        self.batch_tokens = min(config.batch_tokens, most if config.beam_size > 1 else 2 * most)
        self.ids = {symbol: number for number, symbol in enumerate(self.symbols)}
        self.has_scores = scores or config.beam_size > 1

    def search(self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence; NMTError where the model has no positions for one."""
        assert not any(prefixes), "refused when the engine is loaded"
        results = self.ranked(sentences)
        # Suppressing these symbols costs time and changes log probabilities, and a trained model hardly writes them.
        unclean = [
            index
            for index, row in enumerate(results)
            if not row or any({PAD, BOS, UNK}.intersection(hypothesis.tokens) for hypothesis in row)
        ]
        for index, row in zip(unclean, self.ranked([sentences[i] for i in unclean], suppress=True), strict=True):
            results[index] = row
        return results

    def max_length(self, ids: list[int]) -> int:
        """Tokens of a sentence's translation at most, the end symbol counted."""
        if len(ids) + 1 > self.longest:
            raise NMTError(
                f"a sequence of {len(ids) + 1:,} tokens is longer than the {self.longest:,} positions that CTranslate2 "
                "has of the model; use split=auto, or engine=torch"
            )
        return min(len(ids) + 1 + self.config.max_extra_length, self.longest)

    def ranked(self, sentences: Sequence[list[int]], suppress: bool = False) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence; `suppress`: without padding, start and unknown symbols."""
        results = self.candidates(sentences, suppress)
        if self.has_scores:
            # CTranslate2 gives no end symbol to what it cuts at the maximal length, and suppresses before the softmax.
            self.rescore(
                [
                    (ids, candidate)
                    for ids, row in zip(sentences, results, strict=True)
                    for candidate in row
                    if suppress or len(candidate.tokens) + 1 == self.max_length(ids)
                ]
            )
        for row in results:
            for candidate in row:
                penalty = length_penalty(len(candidate.tokens) + 1, self.config.length_penalty)
                candidate.score = candidate.log_probability / penalty
            row.sort(key=lambda candidate: -candidate.score)
        return [row[: self.config.n_best] for row in results]

    def candidates(self, sentences: Sequence[list[int]], suppress: bool) -> list[list[Hypothesis]]:
        """All that ended or was cut for each sentence."""
        max_lengths = [self.max_length(ids) for ids in sentences]
        # One search has one maximal length: similar ones go together, so that no sentence runs on for long.
        bands, shorter = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for index, own in enumerate(max_lengths):
            bands[own.bit_length()].append(index)
        longest = {max(max_lengths[index] for index in indices): indices for indices in bands.values()}
        results = self.run(sentences, longest, suppress)
        # Sentences that reach their own, smaller maximal length are searched again, grouped by it.
        for index, own in enumerate(max_lengths):
            if own not in longest and any(len(candidate.tokens) + 1 >= own for candidate in results[index]):
                shorter[own].append(index)
        results |= self.run(sentences, shorter, suppress)
        return [results[index] for index in range(len(sentences))]

    def run(
        self, sentences: Sequence[list[int]], groups: dict[int, list[int]], suppress: bool
    ) -> dict[int, list[Hypothesis]]:
        """Search groups of sentences: maximal length -> indices."""
        started = [
            (indices, self.start([sentences[index] for index in indices], longest, suppress))
            for longest, indices in sorted(groups.items(), reverse=True)
        ]
        return {
            index: self.read(result.result())
            for indices, results in started
            for index, result in zip(indices, results, strict=True)
        }

    def start(self, sentences: Sequence[list[int]], longest: int, suppress: bool) -> list[Any]:
        """Search sentences as soon as workers are free, in batches of similar length, longest first."""
        beam, tokens = self.config.beam_size, sum(len(ids) + 1 for ids in sentences)
        # The same number of batches for each worker: none waits for another's last one.
        rounds = math.ceil(tokens / self.batch_tokens / self.workers)
        # CTranslate2 ends when enough hypotheses have. A longer one may still win by its penalty: the larger alpha is,
        # the more are waited for.
        wanted = math.ceil(beam * max(1.0, 0.4 + self.config.length_penalty)) + self.config.n_best - 1
        wanted = 1 if beam == 1 else wanted
        return self.translator.translate_batch(  # type: ignore[no-any-return]
            [self.symbols_of(ids) for ids in sentences],
            asynchronous=True,
            max_batch_size=math.ceil(tokens / max(rounds, 1) / self.workers),
            batch_type="tokens",
            beam_size=beam,
            patience=wanted / beam,
            num_hypotheses=wanted,
            length_penalty=0,
            return_scores=self.has_scores,
            return_end_token=True,  # or its log probability is left out
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=longest - 1,  # at the maximal length a translation can only end
            suppress_sequences=[[self.symbols[number]] for number in (PAD, BOS, UNK)] if suppress else None,
        )

    def read(self, result: Any) -> list[Hypothesis]:
        """The hypotheses found for a sentence, not ranked yet."""
        scores, end = result.scores if self.has_scores else [math.nan], self.symbols[EOS]
        return [
            Hypothesis([self.ids[symbol] for symbol in symbols if symbol != end], score, math.nan)
            for symbols, score in zip(result.hypotheses, scores, strict=True)
            if not score <= NO_HYPOTHESIS
        ]

    def rescore(self, pairs: list[tuple[list[int], Hypothesis]]) -> None:
        """Set the log probabilities of translations, with their end symbols, to the model's own."""
        scored = self.forced_decoding([(ids, candidate.tokens) for ids, candidate in pairs])
        for (_, candidate), log_probabilities in zip(pairs, scored, strict=True):
            candidate.log_probability = sum(log_probabilities)

    def forced_decoding(self, pairs: list[Pair]) -> list[list[float]]:
        """Log probabilities of the tokens of translations, and of the end symbol behind."""
        if not pairs:
            return []
        scored = self.translator.score_batch(
            [self.symbols_of(source) for source, _ in pairs],
            [self.symbols_of(target) for _, target in pairs],
            max_batch_size=self.config.batch_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        return [result.log_probs for result in scored]

    def symbols_of(self, ids: list[int]) -> list[str]:
        return [self.symbols[number] for number in ids]
