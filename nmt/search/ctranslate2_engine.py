"""Search by CTranslate2, on processors. No torch.

CTranslate2 ranks hypotheses by log P / |Y|^alpha. So it is asked for the log probabilities of all finished hypotheses,
which are ranked here by the penalty of the search. Translations equal those of the torch engine up to rounding, except
where the winner ends later than CTranslate2 searches (at most 7 of 1,000 sentences, as measured). `check` refuses what
CTranslate2 cannot do or does worse.
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
from nmt.search.engine import Hypothesis, Pair, penalty

MAX_POSITIONS = 2048
"""Length of the table of sinusoids, which CTranslate2 needs."""
BATCH_TOKENS = {"int8": 512, "float32": 1024}
"""Maximal source tokens in a batch of beam search, by arithmetic; greedy search takes twice as many. Larger batches are
no faster on a processor."""
NO_HYPOTHESIS = -1e9
"""CTranslate2 fills up its lists with hypotheses whose score is -1e10."""


def positions(description: ModelDescription) -> int:
    """The longest sequence, with its end symbol, that a model can take once it is exported."""
    model = ModelConfig(**description.model)
    return model.max_positions if model.positions == "learned" else max(MAX_POSITIONS, model.max_positions)


def check(config: DecodeConfig, target_prefix: str = "") -> None:
    """Raise NMTError for what CTranslate2 cannot do, or does worse than torch."""
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


def vocabulary_files(folder: Path) -> tuple[str, str]:
    """The names of the files for the entries of source and target in a model's folder."""
    if (folder / "shared_vocabulary.json").exists():
        return "shared_vocabulary.json", "shared_vocabulary.json"
    return "source_vocabulary.json", "target_vocabulary.json"


class CTranslate2Engine:
    """A model that was written by `nmt.interchange.ctranslate2.write`.

    `precision` is the arithmetic; "default" is that of the file. Each worker has one core, which is faster than one
    search on several cores; the workers share the weights. With `scores=False`, greedy search does not compute log
    probabilities, which it does not need: they are nan.
    """

    def __init__(
        self,
        folder: Path,
        config: DecodeConfig,
        precision: str = "default",
        threads: int | None = None,
        scores: bool = True,
    ) -> None:
        self.config, self.longest = config, positions(read_description(folder))
        self.workers = threads or usable_cores()
        try:
            self.translator = ctranslate2.Translator(
                str(folder), compute_type=precision, inter_threads=self.workers, intra_threads=1
            )
            names = vocabulary_files(folder)
            both = [json.loads((folder / name).read_text(encoding="utf-8")) for name in names]
        except (OSError, RuntimeError, ValueError) as error:
            raise NMTError(
                f"{folder}: not a model that CTranslate2 can load ({error}); remove it, or export it again"
            ) from error
        self.source_symbols: list[str] = both[0]
        self.symbols: list[str] = both[1]
        most = BATCH_TOKENS["int8" if self.translator.compute_type.startswith("int8") else "float32"]
        self.batch_tokens = min(config.batch_tokens, most if config.beam_size > 1 else 2 * most)
        self.ids = {symbol: number for number, symbol in enumerate(self.symbols)}
        self.has_scores = scores or config.beam_size > 1

    def search(self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence; NMTError if the model has no positions for one."""
        assert not any(prefixes), "`check` refuses them"
        results = self.ranked(sentences)
        # Suppressing these symbols takes time and changes log probabilities, and a trained model hardly ever writes
        # them. So only the sentences that need it are searched again.
        unclean = [
            index
            for index, row in enumerate(results)
            if not row or any({PAD, BOS, UNK}.intersection(hypothesis.tokens) for hypothesis in row)
        ]
        for index, row in zip(unclean, self.ranked([sentences[i] for i in unclean], suppress=True), strict=True):
            results[index] = row
        return results

    def max_length(self, ids: list[int]) -> int:
        """The maximal length of a sentence's translation, with the end symbol."""
        if len(ids) + 1 > self.longest:
            raise NMTError(
                f"a sequence of {len(ids) + 1:,} tokens is longer than the {self.longest:,} positions that CTranslate2 "
                "has of the model; use split=auto, or engine=torch"
            )
        return min(len(ids) + 1 + self.config.max_extra_length, self.longest)

    def ranked(self, sentences: Sequence[list[int]], suppress: bool = False) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence; with `suppress`, without padding, start and unknown symbols."""
        results = self.candidates(sentences, suppress)
        if self.has_scores:
            # CTranslate2 cuts at the maximal length without an end symbol, and suppresses before the softmax: the log
            # probabilities of both are computed again.
            again = [
                (ids, candidate)
                for ids, row in zip(sentences, results, strict=True)
                for candidate in row
                if suppress or len(candidate.tokens) + 1 == self.max_length(ids)
            ]
            scored = self.forced_decoding([(ids, candidate.tokens) for ids, candidate in again])
            for (_, candidate), log_probabilities in zip(again, scored, strict=True):
                candidate.log_probability = sum(log_probabilities)
        for row in results:
            for candidate in row:
                length = len(candidate.tokens) + 1
                candidate.score = candidate.log_probability / penalty(length, self.config)
            row.sort(key=lambda candidate: -candidate.score)
        return [row[: self.config.n_best] for row in results]

    def candidates(self, sentences: Sequence[list[int]], suppress: bool) -> list[list[Hypothesis]]:
        """All hypotheses of each sentence that ended or were cut."""
        max_lengths = [self.max_length(ids) for ids in sentences]
        # A search has one maximal length: sentences with similar ones go together, so that none runs on for long.
        bands, shorter = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for index, own in enumerate(max_lengths):
            bands[own.bit_length()].append(index)
        longest = {max(max_lengths[index] for index in indices): indices for indices in bands.values()}
        results = self.run(sentences, longest, suppress)
        # Sentences that reach their own, shorter maximal length are searched again with it.
        for index, own in enumerate(max_lengths):
            if own not in longest and any(len(candidate.tokens) + 1 >= own for candidate in results[index]):
                shorter[own].append(index)
        results |= self.run(sentences, shorter, suppress)
        return [results[index] for index in range(len(sentences))]

    def run(
        self, sentences: Sequence[list[int]], groups: dict[int, list[int]], suppress: bool
    ) -> dict[int, list[Hypothesis]]:
        """Search groups of sentences, given as maximal length -> indices."""
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
        """Queue sentences for the workers, in batches of similar length, longest first."""
        beam, tokens = self.config.beam_size, sum(len(ids) + 1 for ids in sentences)
        # Each worker gets the same number of batches, so that none waits for another's last one.
        rounds = math.ceil(tokens / self.batch_tokens / self.workers)
        # CTranslate2 stops after this many finished hypotheses. A longer one may still win by its penalty, so the
        # larger alpha is, the more are asked for; at few tokens, |Y|^alpha grows faster than the other penalty.
        alpha = self.config.length_penalty * (4 if self.config.length_penalty_kind == "marian" else 1)
        wanted = math.ceil(beam * max(1.0, 0.4 + alpha)) + self.config.n_best - 1
        wanted = 1 if beam == 1 else wanted
        return self.translator.translate_batch(  # type: ignore[no-any-return]
            [self.source_symbols_of(ids) for ids in sentences],
            asynchronous=True,
            max_batch_size=math.ceil(tokens / max(rounds, 1) / self.workers),
            batch_type="tokens",
            beam_size=beam,
            patience=wanted / beam,
            num_hypotheses=wanted,
            length_penalty=0,
            return_scores=self.has_scores,
            return_end_token=True,  # without it, the score leaves out its log probability
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=longest - 1,  # the last position is the end symbol's
            suppress_sequences=[[self.symbols[number]] for number in (PAD, BOS, UNK)] if suppress else None,
        )

    def read(self, result: Any) -> list[Hypothesis]:
        """The hypotheses found for a sentence, not yet ranked."""
        scores, end = result.scores if self.has_scores else [math.nan], self.symbols[EOS]
        return [
            Hypothesis([self.ids[symbol] for symbol in symbols if symbol != end], score, math.nan)
            for symbols, score in zip(result.hypotheses, scores, strict=True)
            if not score <= NO_HYPOTHESIS
        ]

    def forced_decoding(self, pairs: list[Pair]) -> list[list[float]]:
        """Log probabilities of the tokens of translations and of their end symbols."""
        if not pairs:
            return []
        scored = self.translator.score_batch(
            [self.source_symbols_of(source) for source, _ in pairs],
            [[self.symbols[number] for number in target] for _, target in pairs],
            max_batch_size=self.config.batch_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        return [result.log_probs for result in scored]

    def source_symbols_of(self, ids: list[int]) -> list[str]:
        return [self.source_symbols[number] for number in ids]
