"""Search by CTranslate2, on processors. No torch.

Its beam is the torch engine's: the same candidates are kept at every step, and a hypothesis ends where it is among
the best of them. What differs is made up for here:

- CTranslate2 ranks by log P / |Y|^alpha. It is asked for the log probabilities of all that ended, and these are
  ranked by the penalty of Wu et al.
- It searches on until so many hypotheses have ended, PATIENCE times as many as the beam is wide. The torch engine ends
  once nothing that lives can win. Where something as good as the worst that has ended could still win, more is waited
  for.
- It cuts at the limit, where the torch engine lets all that lives end: what was cut is given its end symbol.
- It forbids tokens before the softmax, the torch engine after it. So the padding, start and unknown symbols are
  forbidden only to a sentence that would else be given one; and for min_length nothing is forbidden, but what ends too
  early is left out: what lives in a beam does not depend on what has ended.
- It does not count the probability of a prefix, and lets nothing but the best end right behind one: both are added.

Wherever tokens were forbidden or added, log probabilities are computed by forced decoding, so that they are the model's
own. Translations are those of the torch engine but for these: a winner that ends later than CTranslate2 searches; a
padding, start or unknown symbol that takes a place in the beam for a while; what lives in the beam where
no_repeat_ngram forbids tokens; what is cut in the very step in which others end; rounding.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ctranslate2

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.decoding.engine import Hypothesis, batches_by_length, length_penalty
from nmt.decoding.model_directory import ModelDescription
from nmt.errors import NMTError

POSITIONS = 2048
"""Longest sequence of sinusoidal positions, which CTranslate2 takes as a table."""
PATIENCE, MORE_PATIENCE = 2, 4
"""Hypotheses that are to end before a search does, as a multiple of the beam: of all sentences, of those in doubt."""
HORIZON = 1.5
"""How much longer than those that have ended a hypothesis is thought to become."""
NO_PENALTY = 1e-30
"""|Y| to the power of this is 1; with 0 a search would end as soon as its best hypothesis has."""
IMPOSSIBLE = -1e9
"""Above the score of hypotheses that are none, which is -1e10."""


@dataclass
class Request:
    """A sentence to translate, as CTranslate2 wants it."""

    source: list[str]
    prefix: list[str]
    limit: int
    """Tokens of its translation at most, the end symbol counted."""


@dataclass(frozen=True)
class Terms:
    """How requests are searched."""

    patience: int = PATIENCE
    forbid: bool = False
    """Padding, start and unknown symbols, and to end before min_length."""


@dataclass
class Candidate:
    """A translation that ended, or was cut at the limit of its batch."""

    tokens: list[str]
    """Without the end symbol."""
    ended: bool
    log_probability: float


def positions(description: ModelDescription) -> int:
    """The longest sequence, its end symbol counted, that the model of a description can take once it is written."""
    model = ModelConfig(**description.model)
    return model.max_positions if model.positions == "learned" else max(POSITIONS, model.max_positions)


def usable_cores() -> int:
    """Processor cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class CTranslate2Engine:
    """A model that was written by `ctranslate2_model.write`.

    `longest` is the longest sequence it has positions for. `precision` is that of computing; default is the file's.
    Its workers have a core each, which is faster than one search on several, and share the weights.
    """

    def __init__(
        self, folder: Path, config: DecodeConfig, longest: int, precision: str = "default", threads: int | None = None
    ) -> None:
        if config.sample:
            raise NMTError("decode.sample=true: engine=ctranslate2 cannot draw by seed and sentence; use engine=torch")
        self.config, self.longest = config, longest
        self.workers = threads or usable_cores()
        try:
            self.translator = ctranslate2.Translator(
                str(folder), compute_type=precision, inter_threads=self.workers, intra_threads=1
            )
            self.pieces: list[str] = json.loads((folder / "shared_vocabulary.json").read_text(encoding="utf-8"))
        except (OSError, RuntimeError, ValueError) as error:
            raise NMTError(f"{folder}: not a model that CTranslate2 can load ({error}); export it again") from error
        self.ids = {piece: number for number, piece in enumerate(self.pieces)}
        self.never = [[self.pieces[number]] for number in (PAD, BOS, UNK)]

    def search(self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]]) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence, in batches of sentences of similar length, longest first."""
        requests = [self.request(ids, prefix) for ids, prefix in zip(sentences, prefixes, strict=True)]
        results = self.ranked(requests, Terms())
        for terms, wrong in (
            (Terms(MORE_PATIENCE), self.in_doubt),
            (Terms(MORE_PATIENCE, forbid=True), self.ill_formed),
        ):
            places = [place for place, request in enumerate(requests) if wrong(request, results[place])]
            again = self.ranked([requests[place] for place in places], terms)
            for place, hypotheses in zip(places, again, strict=True):
                results[place] = hypotheses
        return [hypotheses[: self.config.n_best] for hypotheses in results]

    def in_doubt(self, request: Request, hypotheses: list[Hypothesis]) -> bool:
        """Whether what had not ended yet could be better, by the worst that had."""
        n_best, greedy = self.config.n_best, self.config.beam_size == 1
        if greedy or any(len(hypothesis.tokens) + 1 >= request.limit for hypothesis in hypotheses):
            return False
        if len(hypotheses) < n_best:
            return True
        worst = min(hypothesis.log_probability for hypothesis in hypotheses)
        longest = max(len(hypothesis.tokens) + 1 for hypothesis in hypotheses)
        horizon = min(HORIZON * longest, request.limit)
        return worst / length_penalty(horizon, self.config.length_penalty) > hypotheses[n_best - 1].score

    def ill_formed(self, request: Request, hypotheses: list[Hypothesis]) -> bool:
        """Whether a symbol would be given that no translation has, or nothing."""
        given = hypotheses[: self.config.n_best]
        return not given or any({PAD, BOS, UNK}.intersection(hypothesis.tokens) for hypothesis in given)

    def request(self, ids: list[int], prefix: list[int]) -> Request:
        """What is asked for a sentence; NMTError where the model has no positions for it."""
        if len(ids) + 1 > self.longest:
            raise NMTError(
                f"a sequence of {len(ids) + 1:,} tokens is longer than the {self.longest:,} positions that CTranslate2 "
                "has of the model; use split=true, or engine=torch"
            )
        limit = len(ids) + 1 + self.config.max_extra
        if self.config.max_length is not None:
            limit = min(limit, self.config.max_length + 1)
        limit = min(max(limit, len(prefix) + 1), self.longest)
        return Request([self.pieces[i] for i in ids], [self.pieces[i] for i in prefix], limit)

    def ranked(self, requests: list[Request], terms: Terms) -> list[list[Hypothesis]]:
        """All that is found for each, best first."""
        found = self.candidates(requests, terms)
        config = self.config
        early = config.min_length > 0 and config.beam_size == 1
        changed = terms.forbid or config.no_repeat_ngram > 0 or early
        pairs = list(zip(requests, found, strict=True))
        self.count_prefixes([(request, candidates) for request, candidates in pairs if request.prefix])
        self.score([(r, c) for r, candidates in pairs for c in candidates if changed or not c.ended])
        return [self.best(candidates) for candidates in found]

    def candidates(self, requests: list[Request], terms: Terms) -> list[list[Candidate]]:
        """All that ended for each. A batch has one limit: who meets its own within searches again, with its likes."""
        lengths = [len(request.source) + 1 for request in requests]
        budget = min(self.config.batch_tokens, -(-sum(lengths) // self.workers))
        results: list[list[Candidate]] = [[] for _ in requests]
        self.run(requests, batches_by_length(lengths, budget), terms, results)
        alike: dict[int, list[int]] = defaultdict(list)
        for place, (request, candidates) in enumerate(zip(requests, results, strict=True)):
            if any(len(candidate.tokens) + 1 >= request.limit for candidate in candidates):
                alike[request.limit].append(place)
        batches = (
            [places[number] for number in batch]
            for _, places in sorted(alike.items(), reverse=True)
            for batch in batches_by_length([lengths[place] for place in places], budget)
        )
        self.run(requests, batches, terms, results)
        return results

    def run(
        self, requests: list[Request], batches: Iterable[list[int]], terms: Terms, results: list[list[Candidate]]
    ) -> None:
        """Search batches, each a list of places of requests, and put what is found in these places of the results."""
        running: list[tuple[int, Any]] = []
        for batch in batches:
            running += zip(batch, self.start([requests[place] for place in batch], terms), strict=True)
        for place, result in running:
            results[place] = self.allowed(requests[place], result.result())

    def start(self, batch: list[Request], terms: Terms) -> list[Any]:
        """Search a batch as soon as a worker is free, for translations up to the limit of the longest, which is cut."""
        config = self.config
        # The limit is where a translation can only end: one token less is searched.
        longest = max(request.limit for request in batch) - 1
        greedy = config.beam_size == 1
        patience = 1 if greedy else terms.patience + config.min_length
        return self.translator.translate_batch(  # type: ignore[no-any-return]
            [request.source for request in batch],
            [request.prefix for request in batch] if any(request.prefix for request in batch) else None,
            asynchronous=True,
            beam_size=config.beam_size,
            patience=patience,
            num_hypotheses=config.beam_size * patience,
            length_penalty=NO_PENALTY,
            return_scores=True,
            return_end_token=True,
            max_input_length=0,
            max_decoding_length=longest,
            min_decoding_length=min(config.min_length, longest) if greedy or terms.forbid else 0,
            no_repeat_ngram_size=config.no_repeat_ngram,
            suppress_sequences=self.never if terms.forbid else None,
        )

    def allowed(self, request: Request, result: Any) -> list[Candidate]:
        """What was found for a request and may be its translation."""
        end, least = [self.pieces[EOS]], self.config.min_length
        candidates = [
            Candidate(tokens[:-1], True, score) if tokens[-1:] == end else Candidate(tokens, False, score)
            for tokens, score in zip(result.hypotheses, result.scores, strict=True)
            if score > IMPOSSIBLE
        ]
        return [candidate for candidate in candidates if not candidate.ended or len(candidate.tokens) >= least]

    def count_prefixes(self, found: list[tuple[Request, list[Candidate]]]) -> None:
        """Add the log probabilities of prefixes, and to a beam the translation that is the prefix alone."""
        scored = self.forced_decoding([(request, request.prefix) for request, _ in found])
        for (request, candidates), log_probabilities in zip(found, scored, strict=True):
            for candidate in candidates:
                candidate.log_probability += sum(log_probabilities[:-1])
            alone = len(request.prefix) >= self.config.min_length and self.config.beam_size > 1
            if alone and all(candidate.tokens != request.prefix for candidate in candidates):
                candidates.append(Candidate(request.prefix, True, sum(log_probabilities)))

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
        """The translations of a sentence by their scores, best first."""
        hypotheses = [
            Hypothesis(
                [self.ids[token] for token in candidate.tokens],
                candidate.log_probability,
                candidate.log_probability / length_penalty(len(candidate.tokens) + 1, self.config.length_penalty),
            )
            for candidate in candidates
        ]
        return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
