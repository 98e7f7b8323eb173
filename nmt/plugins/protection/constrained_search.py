"""Beam search for translations that contain given phrases (Hokamp and Liu 2017), with dynamic beam allocation.

All hypotheses of a sentence share one beam, however many constraints they meet (Post and Vilar 2018). The first K
places go to the likeliest hypotheses, as in any search. Hypotheses that still need the same number of constraint tokens
form a bank. The banks take turns filling the rest of the beam, which has 2 K places plus one per constraint token, but
at most 4 K. Banks that need the fewest tokens go first, so that at least one hypothesis keeps advancing.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.config import EOS, PAD, DecodeConfig
from nmt.model import Transformer
from nmt.plugins.protection.constraints import PhraseConstraints, State, Tracker
from nmt.plugins.protection.written_terms import Written
from nmt.search import Hypothesis, Search, beam_search, largest

Candidate = tuple[float, int, int]
"""A log probability, the slot of a hypothesis, and its next token.

A plain tuple, because a step makes thousands.
"""
NO_CANDIDATE = (-math.inf, 0, PAD)
Place = tuple[int, int, int]  # a row of the batch, a slot of its beam, and a token


def values_of(*tensors: Tensor) -> list[Any]:
    """What `tolist` returns for each tensor; integers must be below 2^24, as float32 holds them.

    All tensors share one transfer, because each transfer from a GPU waits for its queued work.
    """
    numbers = torch.cat([tensor.flatten().float() for tensor in tensors]).numpy(force=True)
    ends = np.cumsum([tensor.numel() for tensor in tensors])
    values = []
    for part, tensor in zip(np.split(numbers, ends[:-1]), tensors, strict=True):
        kind = float if tensor.is_floating_point() else int
        values.append(part.reshape(tensor.shape).astype(kind).tolist())
    return values


def candidates_of(*columns: list[list[Any]]) -> list[list[Candidate]]:
    """Each sentence's candidates, given log probabilities, parents and tokens, [B, C]."""
    return [list(zip(*row, strict=True)) for row in zip(*columns, strict=True)]


class ConstrainedSearch(Search):
    """A search in which a hypothesis can end only once it meets all constraints; a sentence may have no result."""

    def __init__(
        self,
        models: Sequence[Transformer],
        source_BS: Tensor,
        config: DecodeConfig,
        prefixes: Sequence[list[int]],
        constraints: PhraseConstraints,
    ) -> None:
        self.trackers = [Tracker(row, constraints.kinds) for row in constraints.rows]
        self.likeliest_kept = config.beam_size
        # The width of a sentence's beam does not depend on other sentences.
        self.widths = [
            min(2 * config.beam_size + one.left(one.start), 4 * config.beam_size)
            for one in self.trackers
        ]
        super().__init__(models, source_BS, replace(config, beam_size=max(self.widths)), prefixes)
        self.states = [[tracker.start] * self.beam_size for tracker in self.trackers]
        self.terms = constraints.terms
        self.written = [[Written()] * self.beam_size for _ in self.trackers]
        """What each hypothesis says, if the text decides which terms it has."""

    def advance(self) -> None:
        rooms = self.max_lengths - 1 - self.tokens.shape[2]
        unfinished = self.log_probabilities.isfinite()
        # For each row: its sentence, the room after the next token, and which slots are unfinished.
        rows = values_of(self.sentences, rooms, unfinished)
        self.indices, self.rooms, self.unfinished_slots = rows
        super().advance()

    def living(self, hypotheses: int) -> Iterator[tuple[int, int, Tracker, State]]:
        """Row, slot, tracker and state of each unfinished hypothesis in the first slots."""
        for row, index in enumerate(self.indices):
            for k, is_unfinished in enumerate(self.unfinished_slots[row][:hypotheses]):
                if is_unfinished:
                    yield row, k, self.trackers[index], self.states[index][k]

    def next_tokens(self) -> Tensor:
        logp_BKN = super().next_tokens()
        unmet = list[Place]()
        self.places = list[Place]()
        for row, k, tracker, state in self.living(logp_BKN.shape[1]):
            if tracker.left(state):
                unmet.append((row, k, EOS))
                self.places += [(row, k, token) for token in tracker.advancing(state)]
            else:
                self.places.append((row, k, EOS))
        # A single transfer for both lists.
        both = torch.tensor([*unmet, *self.places], dtype=torch.long, device=logp_BKN.device)
        ends, advancing = both.view(-1, 3).split([len(unmet), len(self.places)])
        # A Python number would be copied to the device.
        logp_BKN.index_put_(ends.unbind(1), logp_BKN.new_full((), -torch.inf))
        self.places_on_device = advancing.unbind(1)
        return logp_BKN

    def best(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Finished hypotheses, then the beam: log probabilities, parents and tokens, [B, 2 K]."""
        slots, vocabulary = logp_BKN.shape[1:]
        # The sums replace the log probabilities, which no later step needs.
        sums_BKN = logp_BKN.add_(self.log_probabilities[:, :slots, None])
        usual, places = largest(sums_BKN.flatten(1), 2 * self.beam_size)
        likeliest, tokens = largest(sums_BKN.flatten(0, 1), 1)
        shape = len(sums_BKN), slots
        *columns, advancing = values_of(
            usual,
            places // vocabulary,
            places % vocabulary,
            likeliest.view(shape),
            torch.arange(slots, device=sums_BKN.device).expand(shape),
            tokens.view(shape),
            sums_BKN[self.places_on_device],
        )
        parts = candidates_of(*columns[:3]), candidates_of(*columns[3:]), self.advancing(advancing)
        chosen = [self.choose(row, *(part[row] for part in parts)) for row in range(shape[0])]
        # A single transfer for all columns, whose integers are small enough for float32.
        table = torch.tensor(chosen, dtype=sums_BKN.dtype, device=sums_BKN.device)
        log_probabilities, parents, tokens = table.unbind(2)
        return log_probabilities, parents.long(), tokens.long()

    def advancing(self, values: list[float]) -> list[list[Candidate]]:
        """The candidates that begin or continue a constraint, or that end with all constraints met.

        `values` are their log probabilities, in the order of `places`.
        """
        candidates: list[list[Candidate]] = [[] for _ in self.indices]
        for value, (row, k, token) in zip(values, self.places, strict=True):
            candidates[row].append((value, k, token))
        return candidates

    def choose(
        self,
        row: int,
        usual: list[Candidate],
        likeliest: list[Candidate],
        advancing: list[Candidate],
    ) -> list[Candidate]:
        """The finished candidates of a row, then those for the beam, each filled up to K."""
        index = self.indices[row]
        candidates = {*usual[: 2 * self.widths[index]], *likeliest, *advancing}
        possible = [candidate for candidate in candidates if candidate[0] > -math.inf]
        ranked = sorted(possible, reverse=True)
        filled = list[Candidate]()
        for side in self.select(ranked, index, self.rooms[row]):
            filled += side + [NO_CANDIDATE] * (self.beam_size - len(side))
        return filled

    def select(
        self, ranked: list[Candidate], index: int, room: int
    ) -> tuple[list[Candidate], list[Candidate]]:
        """The finished ones of a sentence's candidates, the likeliest first, and those for its beam.

        Finished ones must be among the best that meet all constraints. After a candidate's token,
        there is space for `room` more tokens; candidates that need more are dropped.
        """
        tracker = self.trackers[index]
        states = self.states[index]
        width = self.widths[index]
        ended = list[Candidate]()
        kept = list[Candidate]()
        turns = list[tuple[int, int, Candidate]]()
        sizes = defaultdict[int, int](int)  # tokens left -> candidates in the bank
        all_met = 0
        for candidate in ranked:
            _, parent, token = candidate
            if token == EOS:
                all_met += 1
                if all_met <= width:
                    ended.append(candidate)
                continue
            left, least = tracker.needs(states[parent], token)
            if least > room:
                continue
            all_met += left == 0
            if len(kept) < self.likeliest_kept:
                kept.append(candidate)
            else:
                turns.append((sizes[left], left, candidate))
                sizes[left] += 1
        places = width - len(kept)
        return ended, kept + [candidate for _, _, candidate in sorted(turns)[:places]]

    def extend(self, parents: Tensor, tokens: Tensor) -> None:
        super().extend(parents, tokens)
        for index, *row in zip(self.indices, *values_of(parents, tokens), strict=True):
            states, tracker = self.states[index], self.trackers[index]
            steps = list(zip(*row, strict=True))
            self.states[index] = [tracker.step(states[parent], token) for parent, token in steps]
            if self.terms:
                self.correct(index, steps)

    def correct(self, index: int, steps: list[tuple[int, int]]) -> None:
        """Let the text of each hypothesis of a sentence decide which terms it has."""
        assert self.terms
        before = self.written[index]
        self.written[index] = []
        states, tracker = self.states[index], self.trackers[index]
        for slot, (parent, token) in enumerate(steps):
            written = before[parent]
            if token != PAD:  # which fills empty slots
                continues_word = tracker.kinds[token] != 0
                written = self.terms.after(index, written, token, continues_word)
                states[slot] = tracker.corrected(states[slot], written.met)
            self.written[index].append(written)


@torch.inference_mode()
def constrained_search(
    models: Sequence[Transformer],
    source_BS: Tensor,
    config: DecodeConfig,
    prefixes: Sequence[list[int]],
    constraints: PhraseConstraints,
) -> list[list[Hypothesis]]:
    """Constrained beam search; drops a sentence's constraints, longest first, until a translation meets the rest."""
    results = ConstrainedSearch(models, source_BS, config, prefixes, constraints).run()
    for index in [index for index, row in enumerate(results) if not row]:
        alone = (
            source_BS[index : index + 1, : int((source_BS[index] != PAD).sum())],
            config,
            [prefixes[index]],
        )
        row = constraints.rows[index]
        longest = max(
            range(len(row)), key=lambda n: (min(len(phrase.tokens) for phrase in row[n]), n)
        )
        rest = constraints.without(index, longest)
        [results[index]] = (
            constrained_search(models, *alone, rest)
            if rest.rows[0]
            else beam_search(models, *alone)
        )
    return results
