"""Search by CTranslate2, on processors. No torch.

Its beam is the torch engine's: the same candidates are kept at every step, and a hypothesis ends where it is among
the best of them. What differs is made up for here:

- CTranslate2 ranks by log P / |Y|^alpha. It is asked for the log probabilities of all that ended, and these are
  ranked by the penalty of Wu et al.
- The torch engine ends once nothing that lives can win. CTranslate2 searches on until as many hypotheses have ended as
  the beam is wide, and one of them was the likeliest of the beam when it did: nothing that lives is likelier then. A
  longer one may still win by its penalty, the rather the larger alpha is, so more are waited for then.
- It cuts at the limit, where the torch engine lets all that lives end: what was cut is given its end symbol.
- It forbids tokens before the softmax, the torch engine after it. So the padding, start and unknown symbols are
  forbidden only to a sentence that would else be given one; and for min_length nothing is forbidden, but what ends too
  early is left out: what lives in a beam does not depend on what has ended.

Wherever tokens were forbidden or added, log probabilities are computed by forced decoding, so that they are the model's
own. Translations are those of the torch engine but for these: a winner that ends later than CTranslate2 searches (up to
7 of 1,000 sentences where it was measured); a padding, start or unknown symbol that takes a place in the beam for a
while; what is cut in the very step in which others end; rounding.

What it cannot do, or would search worse than the torch engine, is refused: samples, prefixes of translations,
no_repeat_ngram_size, and of a beam search max_length and a length_penalty above 1. Of 300 lines of Multi30k 15 to all
had a worse translation so; with what is left 1 had, and of lists of n_best=4 lower ranks differed in 3.
"""

import json
import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.errors import NMTError
from nmt.hardware import usable_cores
from nmt.model_directory.description import ModelDescription
from nmt.search.engine import Hypothesis, batches_by_length, length_penalty

POSITIONS = 2048
"""Longest sequence of sinusoidal positions, which CTranslate2 takes as a table."""
BATCH_TOKENS = {"int8": 512, "float32": 1024}
"""Source tokens of a beam search at once at most, by what is computed with: of more, a processor is no faster, or
slower. Twice as many of a greedy search."""
PATIENCE = 2
"""Hypotheses that are to end before a search does, as a multiple of the beam: with min_length, and more."""
NO_PENALTY = 1e-30
"""|Y| to the power of this is 1, as to that of 0; with 0, a search ends only when its likeliest hypothesis has."""
IMPOSSIBLE = -1e9
"""Above the score of hypotheses that are none, which is -1e10."""


@dataclass
class Request:
    """A sentence to translate, as CTranslate2 wants it."""

    source: list[str]
    limit: int
    """Tokens of its translation at most, the end symbol counted."""


@dataclass
class Candidate:
    """A translation that ended, or was cut at the limit of its batch."""

    tokens: list[str]
    """Without the end symbol."""
    ended: bool
    log_probability: float

    def cut(self, limit: int) -> "Candidate":
        """What a greedy search with this limit finds."""
        if self.ended and len(self.tokens) < limit:
            return self
        return Candidate(self.tokens[: limit - 1], False, self.log_probability)


def positions(description: ModelDescription) -> int:
    """The longest sequence, its end symbol counted, that the model of a description can take once it is written."""
    model = ModelConfig(**description.model)
    return model.max_positions if model.positions == "learned" else max(POSITIONS, model.max_positions)


def check(config: DecodeConfig, target_prefix: str = "") -> None:
    """NMTError for what CTranslate2 cannot do, or not as well as torch."""
    beam = config.beam_size > 1
    for key, value, refused in (
        ("decode.do_sample", "true", config.do_sample),
        ("decode.no_repeat_ngram_size", config.no_repeat_ngram_size, config.no_repeat_ngram_size > 0),
        ("decode.max_length", config.max_length, beam and config.max_length is not None),
        ("decode.length_penalty", config.length_penalty, beam and config.length_penalty > 1),
        ("target_prefix", target_prefix, bool(target_prefix.strip())),
    ):
        if refused:
            raise NMTError(
                f"{key}={value}: engine=ctranslate2 has it not, or finds worse translations; use engine=torch"
            )


class CTranslate2Engine:
    """A model that was written by `ctranslate2_model.write`.

    `longest` is the longest sequence it has positions for. `precision` is that of computing; default is the file's.
    Its workers have a core each, which is faster than one search on several, and share the weights.
    """

    scores = True
    """False: where nothing is ranked by them, log probabilities are not computed, and are nan."""

    def __init__(
        self, folder: Path, config: DecodeConfig, longest: int, precision: str = "default", threads: int | None = None
    ) -> None:
        check(config)
        self.config, self.longest = config, longest
        self.workers = threads or usable_cores()
        try:
            self.translator = ctranslate2.Translator(
                str(folder), compute_type=precision, inter_threads=self.workers, intra_threads=1
            )
            self.pieces: list[str] = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
        except (OSError, RuntimeError, ValueError) as error:
            raise NMTError(
                f"{folder}: not a model that CTranslate2 can load ({error}); remove it, or export it again"
            ) from error
        computed_in = self.translator.compute_type
        most = BATCH_TOKENS["int8" if computed_in.startswith("int8") else "float32"]
        self.batch_tokens = min(config.batch_tokens, most if config.beam_size > 1 else 2 * most)
        self.ids = {piece: number for number, piece in enumerate(self.pieces)}
        self.never = [[self.pieces[number]] for number in (PAD, BOS, UNK)]

    def search(self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, in batches of sentences of similar length, longest first."""
        assert not any(prefixes), "refused when the engine is loaded"
        requests = [self.request(ids) for ids in sentences]
        results = self.ranked(requests)
        places = [place for place, hypotheses in enumerate(results) if self.ill_formed(hypotheses)]
        again = self.ranked([requests[place] for place in places], forbid=True)
        for place, hypotheses in zip(places, again, strict=True):
            results[place] = hypotheses
        return results

    @property
    def ranks(self) -> bool:
        """Whether log probabilities are needed."""
        return self.scores or self.config.beam_size > 1

    def ill_formed(self, hypotheses: list[Hypothesis]) -> bool:
        """Whether a symbol would be given that no translation has, or nothing."""
        return not hypotheses or any({PAD, BOS, UNK}.intersection(hypothesis.tokens) for hypothesis in hypotheses)

    def request(self, ids: list[int]) -> Request:
        """What is asked for a sentence; NMTError where the model has no positions for it."""
        if len(ids) + 1 > self.longest:
            raise NMTError(
                f"a sequence of {len(ids) + 1:,} tokens is longer than the {self.longest:,} positions that CTranslate2 "
                "has of the model; use split=auto, or engine=torch"
            )
        limit = len(ids) + 1 + self.config.max_extra_length
        if self.config.max_length is not None:
            limit = min(limit, self.config.max_length + 1)
        return Request([self.pieces[i] for i in ids], min(limit, self.longest))

    def ranked(self, requests: list[Request], forbid: bool = False) -> list[list[Hypothesis]]:
        """The n_best found for each, best first.

        `forbid`: padding, start and unknown symbols, and to end before min_length.
        """
        found = self.candidates(requests, forbid)
        changed = forbid or (self.config.min_length > 0 and self.config.beam_size == 1)
        if self.ranks:
            pairs = zip(requests, found, strict=True)
            self.score([(r, c) for r, candidates in pairs for c in candidates if changed or not c.ended])
        return [self.best(candidates) for candidates in found]

    def candidates(self, requests: list[Request], forbid: bool) -> list[list[Candidate]]:
        """All that ended for each. A batch has one limit: who meets its own within searches again, with its likes."""
        lengths = [len(request.source) + 1 for request in requests]
        # As many batches for each worker.
        rounds = math.ceil(sum(lengths) / self.batch_tokens / self.workers)
        budget = math.ceil(sum(lengths) / max(rounds, 1) / self.workers)
        results: list[list[Candidate]] = [[] for _ in requests]
        alike: dict[int, list[int]] = defaultdict(list)
        for batch, found in self.run(requests, batches_by_length(lengths, budget), forbid):
            limit = max(requests[place].limit for place in batch)
            for place, candidates in zip(batch, found, strict=True):
                own = requests[place].limit
                results[place] = candidates
                if own < limit and any(len(candidate.tokens) + 1 >= own for candidate in candidates):
                    alike[own].append(place)
        if self.config.beam_size == 1:
            for limit, places in alike.items():
                for place in places:
                    results[place] = [candidate.cut(limit) for candidate in results[place]]
            return results
        batches = (
            [places[number] for number in batch]
            for _, places in sorted(alike.items(), reverse=True)
            for batch in batches_by_length([lengths[place] for place in places], budget)
        )
        for batch, found in self.run(requests, batches, forbid):
            for place, candidates in zip(batch, found, strict=True):
                results[place] = candidates
        return results

    def run(
        self, requests: list[Request], batches: Iterable[list[int]], forbid: bool
    ) -> Iterator[tuple[list[int], list[list[Candidate]]]]:
        """Search batches, each a list of places of requests; gives each with what is found, while others run."""
        running: deque[tuple[list[int], list[Any]]] = deque()

        def first() -> tuple[list[int], list[list[Candidate]]]:
            batch, results = running.popleft()
            return batch, [self.allowed(result.result()) for result in results]

        for batch in batches:
            running.append((batch, self.start([requests[place] for place in batch], forbid)))
            if len(running) > 2 * self.workers:
                yield first()
        while running:
            yield first()

    def start(self, batch: list[Request], forbid: bool) -> list[Any]:
        """Search a batch as soon as a worker is free, for translations up to the limit of the longest, which is cut."""
        config = self.config
        # The limit is where a translation can only end: one token less is searched.
        longest = max(request.limit for request in batch) - 1
        greedy = config.beam_size == 1
        by_count = config.min_length > 0
        patience = PATIENCE + config.min_length if by_count else max(1.0, 0.4 + config.length_penalty)
        wanted = 1 if greedy else math.ceil(config.beam_size * patience) + config.n_best - 1
        return self.translator.translate_batch(  # type: ignore[no-any-return]
            [request.source for request in batch],
            asynchronous=True,
            beam_size=config.beam_size,
            patience=wanted / config.beam_size,
            num_hypotheses=wanted,
            length_penalty=NO_PENALTY if by_count else 0,
            return_scores=self.ranks,
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=longest,
            min_decoding_length=min(config.min_length, longest) if greedy or forbid else 0,
            suppress_sequences=self.never if forbid else None,
        )

    def allowed(self, result: Any) -> list[Candidate]:
        """What was found for a sentence and may be its translation."""
        end, least = [self.pieces[EOS]], self.config.min_length
        scores = result.scores if self.ranks else [math.nan]
        candidates = [
            Candidate(tokens[:-1], True, score) if tokens[-1:] == end else Candidate(tokens, False, score)
            for tokens, score in zip(result.hypotheses, scores, strict=True)
            if not score <= IMPOSSIBLE
        ]
        return [candidate for candidate in candidates if not candidate.ended or len(candidate.tokens) >= least]

    def score(self, pairs: list[tuple[Request, Candidate]]) -> None:
        """Set the log probabilities of candidates, with their end symbols, to the model's own."""
        scored = self.forced_decoding([(request, candidate.tokens) for request, candidate in pairs])
        for (_, candidate), log_probabilities in zip(pairs, scored, strict=True):
            candidate.log_probability, candidate.ended = sum(log_probabilities), True

    def forced_decoding(self, pairs: list[tuple[Request, list[str]]]) -> list[list[float]]:
        """Log probabilities of the tokens of translations, and of the end symbol behind."""
        if not pairs:
            return []
        scored = self.translator.score_batch(
            [request.source for request, _ in pairs],
            [tokens for _, tokens in pairs],
            max_batch_size=self.config.batch_tokens,
            batch_type="tokens",
            max_input_length=0,
        )
        return [result.log_probs for result in scored]

    def best(self, candidates: list[Candidate]) -> list[Hypothesis]:
        """The translations of a sentence by their scores, best first, n_best of them."""
        alpha = self.config.length_penalty
        scored = [(c.log_probability / length_penalty(len(c.tokens) + 1, alpha), c) for c in candidates]
        scored.sort(key=lambda pair: -pair[0])
        return [
            Hypothesis([self.ids[token] for token in candidate.tokens], candidate.log_probability, score)
            for score, candidate in scored[: self.config.n_best]
        ]
