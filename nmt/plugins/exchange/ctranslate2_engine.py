"""CTranslate2 search on CPUs, without torch, using a converted model in the user's cache.

CTranslate2 ranks hypotheses by log P / |Y|^alpha, so finished hypotheses are reranked with the configured penalty.
Translations equal the torch engine's up to rounding, unless the best hypothesis would finish after CTranslate2 stops
(at most 7 of 1,000 sentences) or the model would not produce the prefix on its own: of 300 quickstart translations, 299
were the same when the prefix was the beginning of the reference, and 178 when it was "zz Foo".
"""

import hashlib
import importlib.util
import math
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import fields, replace
from functools import cache
from itertools import accumulate, chain, groupby
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from nmt import __version__, hardware, registry
from nmt.config import (
    BOS,
    EOS,
    PAD,
    UNK,
    DecodeConfig,
    ModelConfig,
    NMTError,
    one_line,
    require,
    settings_of,
)
from nmt.files import MODEL_FILES, cache_folder, is_parser, read_description, sha256
from nmt.plugins.exchange.supported import ENGINE
from nmt.search import (
    Constraints,
    Engine,
    EngineOptions,
    Hypothesis,
    Pair,
    TokenScores,
    batch_tokens,
    batches_by_length,
    penalty,
)
from nmt.text import SOURCE, TARGET, read_tokenizer

CONVERSION = "4"
"""The version of the conversions; increase it whenever their content changes."""
MIN_POSITIONS = 2048
"""Minimum length of the sinusoid table, which CTranslate2 does not compute itself."""
NO_TEXT = PAD, BOS, UNK
NO_HYPOTHESIS = -1e9
"""CTranslate2 pads its lists with hypotheses whose score is -1e10."""


def check(folders: Sequence[Path], options: EngineOptions) -> None:
    """Raise NMTError for options that CTranslate2 lacks, or with which it translates worse than torch."""
    problem = f"engine=ctranslate2: {len(folders)} models, but no support for ensembles"
    require(len(folders) == 1, f"{problem}; {ENGINE.advice}")
    settings = settings_of("decode", options.decode)
    settings |= {
        field.name: getattr(options, field.name)
        for field in fields(options)
        if field.name != "decode"
    }
    ENGINE.check(settings)


def check_model(model: ModelConfig) -> None:
    """Raise NMTError for a model that CTranslate2 cannot run."""
    ENGINE.check(settings_of("model", model))


def why_not_automatic(folders: Sequence[Path], options: EngineOptions) -> str:
    """Why `engine=auto` does not choose CTranslate2; empty if it does."""
    import ctranslate2

    if options.device == "auto" and ctranslate2.get_cuda_device_count():
        return "there is a GPU"
    try:
        check(folders, options)
        description = read_description(folders[0])
        if is_parser(description):
            return "the model is a parser"
        check_model(ModelConfig(**description.model))
        cache_folder().mkdir(parents=True, exist_ok=True)
    except NMTError as error:
        return str(error).partition("; use ")[0]  # omit the advice, which nmt follows anyway
    except OSError as error:
        return f"cannot write to the cache, {error.filename}"
    return ""


def load(
    folders: Sequence[Path], options: EngineOptions, notice: Callable[[str], None]
) -> "CTranslate2Engine":
    check(folders, options)
    if (
        options.precision == "int8"
        and "avx512_bf16" in (hardware.proc_value("cpuinfo", "flags") or "").split()
    ):
        # By default, CTranslate2 uses AVX2 on AMD's processors. AVX-512 is faster with int8, but not with float32.
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")
    conversion = converted(folders[0], options.precision, notice)
    engine = CTranslate2Engine(
        folders[0], conversion, options.decode, options.threads, options.scores
    )

    def by_torch() -> Any:
        notice(
            "also loading engine=torch precision=float32, because a translation lacks a required term"
        )
        alike = replace(options, device="cpu", precision="float32", threads=engine.workers)
        return registry.entries_of("engine")["torch"].load()(folders, alike, notice)

    engine.by_torch = cache(by_torch)
    return engine


def weights(folder: Path, precision: str) -> Path:
    """The path of the conversion's weights in our cache; the folder's name depends on the model directory's content."""
    parts = [__version__, CONVERSION, *(sha256(folder / name) for name in MODEL_FILES)]
    name = f"{hashlib.sha256(' '.join(parts).encode()).hexdigest()}-{precision}"
    return cache_folder() / "ctranslate2" / name / "model.bin"


def converted(folder: Path, precision: str, notice: Callable[[str], None]) -> Path:
    """The folder of the conversion in our cache, created if missing."""
    installed = importlib.util.find_spec("ctranslate2") is not None
    require(installed, "CTranslate2 is not installed; pip install ctranslate2")
    output = weights(folder, precision).parent
    if not output.exists():
        from nmt.plugins.exchange.ctranslate2 import write

        notice(f"converting the model for CTranslate2, once: {output}")
        write(folder, output, precision)
    return output


def table_length(model: ModelConfig) -> int:
    """Number of rows in a conversion's position table."""
    return (
        model.max_positions
        if model.positions == "learned"
        else max(MIN_POSITIONS, model.max_positions)
    )


def hypotheses_to_find(config: DecodeConfig) -> int:
    """How many finished hypotheses end a beam search.

    A longer hypothesis could still win thanks to its length penalty, so the number grows with alpha; at first,
    |Y|^alpha grows faster than ((5 + |Y|) / 6)^alpha.
    """
    alpha = config.length_penalty * (4 if config.length_penalty_kind == "marian" else 1)
    return math.ceil(config.beam_size * max(1.0, 0.4 + alpha)) + config.n_best - 1


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

        self.folder, self.config, self.scores, self.workers = (
            folder,
            config,
            scores,
            threads or hardware.usable_cores(),
        )
        model = ModelConfig(**read_description(folder).model)
        self.width, self.longest = model.d_model, table_length(model)
        tokenizer = read_tokenizer(folder)
        self.vocabularies = tokenizer.vocabulary(SOURCE), tokenizer.vocabulary(TARGET)
        self.symbols = self.vocabularies[TARGET]
        self.ids = {symbol: number for number, symbol in enumerate(self.symbols)}
        # Without a limit on queued batches, queuing one never waits for the workers.
        options = {"inter_threads": self.workers, "intra_threads": 1, "max_queued_batches": -1}
        try:
            self.translator = ctranslate2.Translator(str(conversion), **options)
        except (RuntimeError, ValueError) as error:
            raise NMTError(
                f"{conversion}: CTranslate2 cannot load it ({one_line(error)}); delete it"
            ) from error

    @property
    def batch_tokens(self) -> int:
        """Maximum source tokens in a batch: near the fastest size for models with 128 and 512 dimensions."""
        most = min(2 * self.width, 1024) * (
            1 if self.translator.compute_type.startswith("int8") else 2
        )
        allowed = batch_tokens(self.config, "cpu")
        return min(allowed, most if self.config.beam_size > 1 else 2 * most)

    @property
    def has_scores(self) -> bool:
        return self.scores or self.config.beam_size > 1

    def with_search(self, config: DecodeConfig) -> "CTranslate2Engine":
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
        results = self.ranked(begun)
        # Suppressing symbols changes log probabilities, so only sentences that need it are searched again.
        if unclean := [
            i
            for i, row in enumerate(results)
            if not row or any(set(NO_TEXT) & {*h.tokens} for h in row)
        ]:
            for index, row in zip(
                unclean, self.ranked([begun[i] for i in unclean], suppress=True), strict=True
            ):
                results[index] = row
        if constraints:
            unmet = [
                i
                for i, row in enumerate(results)
                if not all(constraints.are_met(i, h.tokens) for h in row)
            ]
            sources, targets = [sentences[i] for i in unmet], [prefixes[i] for i in unmet]
            if unmet:  # torch would keep the translations of the other sentences
                with self.turn:
                    rows = (
                        self.by_torch()
                        .with_search(self.config)
                        .search(sources, targets, constraints.of(unmet))
                    )
                for index, row in zip(
                    unmet, self.ranked([begun[i] for i in unmet], True, rows), strict=True
                ):
                    results[index] = row
        return results

    def max_length(self, begun: Pair) -> int:
        """The maximum length of a translation, including the end symbol."""
        (source, target), longest = map(len, begun), self.longest or 0
        if max(source, target) >= longest:
            problem = f"a sequence of {max(source, target) + 1:,} tokens is longer than the {longest:,} positions"
            raise NMTError(f"{problem} of CTranslate2; use split=auto or engine=torch")
        return min(max(source + self.config.max_extra_length, target) + 1, longest)

    def ranked(
        self, begun: Sequence[Pair], suppress: bool = False, rows: Any = None
    ) -> list[list[Hypothesis]]:
        """Each sentence's n_best hypotheses, given its prefix; `suppress` excludes symbols that are not text.

        Corrects scores that are not log P(Y|X): CTranslate2 scores forced tokens as 0, stops at the maximum length
        without an end symbol, and suppresses symbols before the softmax.
        """
        results = rows or self.candidates(begun, suppress)
        if self.has_scores:
            prefixed = [index for index, (_, prefix) in enumerate(begun) if prefix]
            for index, scores in zip(
                prefixed, self.forced_decoding([begun[i] for i in prefixed]), strict=True
            ):
                for candidate in results[index]:
                    candidate.log_probability += sum(scores[:-1])
            candidates = [
                (pair, candidate)
                for pair, row in zip(begun, results, strict=True)
                for candidate in row
            ]
            again = [
                (pair, c)
                for pair, c in candidates
                if suppress or len(c.tokens) + 1 == self.max_length(pair)
            ]
            scored = self.forced_decoding(
                [(source, candidate.tokens) for (source, _), candidate in again]
            )
            for (_, candidate), scores in zip(again, scored, strict=True):
                candidate.log_probability = sum(scores)
            for _, candidate in candidates:
                candidate.score = candidate.log_probability / penalty(
                    len(candidate.tokens) + 1, self.config
                )
            for row in results:
                row.sort(key=lambda candidate: -candidate.score)
        return [row[: self.config.n_best] for row in results]

    def candidates(self, begun: Sequence[Pair], suppress: bool) -> list[list[Hypothesis]]:
        limits = [self.max_length(pair) for pair in begun]
        results: list[list[Hypothesis]] = [[] for _ in begun]

        def start(indices: Sequence[int]) -> Iterator[tuple[int, list[int], list[Any]]]:
            """Yield each batch's maximum length, sentence indices and pending results."""
            for places in self.batches([len(begun[index][SOURCE]) + 1 for index in indices]):
                batch = [indices[place] for place in places]
                longest = max(limits[index] for index in batch)
                yield (
                    longest,
                    batch,
                    self.queue([begun[index] for index in batch], longest, suppress),
                )

        waiting = deque(start(range(len(begun))))
        while waiting:
            longest, indices, promises = waiting.popleft()
            reached = defaultdict[int, list[int]](list)
            for index, promise in zip(indices, promises, strict=True):
                results[index] = row = self.read(promise.result())
                limit = limits[index]
                if limit < longest and any(len(candidate.tokens) >= limit - 1 for candidate in row):
                    reached[limit].append(index)
                    # The batch has a higher maximum length; with the sentence's own, greedy search would stop here.
                    del row[0].tokens[limit - 1 :]
            if self.config.beam_size > 1:
                # Beam search may find other hypotheses with a lower maximum length, so search again with that.
                for same in reached.values():
                    waiting.extend(start(same))
        return results

    def batches(self, lengths: Sequence[int]) -> list[list[int]]:
        """Batches of sentence indices, longest first: about equal in size, and the same number for each worker."""
        total = sum(lengths)
        count = math.ceil(total / self.batch_tokens / self.workers) * self.workers
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
        before = accumulate((lengths[index] for index in order), initial=0)
        groups = groupby(zip(order, before, strict=False), lambda item: item[1] * count // total)
        return [[index for index, _ in batch] for _, batch in groups]

    def queue(self, begun: Sequence[Pair], longest: int, suppress: bool) -> list[Any]:
        beam = self.config.beam_size
        count = hypotheses_to_find(self.config)
        # `count` also grows if there are prefixes: after an unlikely prefix, the other tokens hardly change the score.
        prefixed = any(prefix for _, prefix in begun)
        count = 1 if beam == 1 else count + 2 * beam * prefixed
        return self.translate(
            begun,
            prefixed,
            max_batch_size=2
            * self.batch_tokens,  # in case one sentence is much longer than the others
            batch_type="tokens",
            beam_size=beam,
            patience=count / beam,
            num_hypotheses=count,
            length_penalty=0,
            return_scores=self.has_scores,
            return_end_token=True,  # otherwise the score omits the end symbol's log probability
            max_decoding_length=longest - 1,  # the last position is for the end symbol
            suppress_sequences=[[self.symbols[number]] for number in NO_TEXT] if suppress else None,
        )

    def translate(self, pairs: Sequence[Pair], prefixed: bool = True, **options: Any) -> list[Any]:
        prefixes = self.tokens(pairs, TARGET) if prefixed else None
        options |= {"asynchronous": True, "max_input_length": 0, "min_decoding_length": 0}
        return list(
            self.translator.translate_batch(self.tokens(pairs, SOURCE), prefixes, **options)
        )

    def read(self, result: Any) -> list[Hypothesis]:
        scores, end = result.scores if self.has_scores else [math.nan], [self.symbols[EOS]]
        return [
            Hypothesis(
                [self.ids[token] for token in (tokens[:-1] if tokens[-1:] == end else tokens)],
                score,
                math.nan,
            )
            for tokens, score in zip(result.hypotheses, scores, strict=True)
            if not score <= NO_HYPOTHESIS
        ]

    def forced_decoding(self, pairs: Sequence[Pair]) -> list[list[float]]:
        """Log probabilities of each translation's tokens and end symbol."""
        if not pairs:
            return []
        size = batch_tokens(self.config, "cpu")
        options = {"max_batch_size": size, "batch_type": "tokens", "max_input_length": 0}
        scored = self.translator.score_batch(
            self.tokens(pairs, SOURCE), self.tokens(pairs, TARGET), **options
        )
        return [result.log_probs for result in scored]

    def token_scores(self, pairs: Sequence[Pair], align: bool = True) -> list[TokenScores]:
        """Log probabilities, and the attention of a greedy search that is forced to produce the translation."""
        for pair in pairs:
            self.max_length(pair)  # checks the length
        lengths = [max(map(len, pair)) + 1 for pair in pairs if align]
        batches = list(batches_by_length(lengths, self.batch_tokens))
        started = list[Any]()
        for batch in batches:
            forced = [pairs[index] for index in batch]
            longest = max(1, *(len(target) for _, target in forced))
            started += self.translate(
                forced, beam_size=1, max_decoding_length=longest, return_attention=True
            )
        scores = [
            TokenScores(log_probabilities) for log_probabilities in self.forced_decoding(pairs)
        ]
        for index, promise in zip(chain(*batches), started, strict=True):
            source, target = map(len, pairs[index])
            rows = [row[:source] for row in promise.result().attention[0][:target]]
            scores[index].attention = np.array(rows, np.float32).reshape(target, source)
        return scores

    def tokens(self, pairs: Sequence[Pair], side: int) -> list[list[str]]:
        return [[self.vocabularies[side][id] for id in pair[side]] for pair in pairs]
