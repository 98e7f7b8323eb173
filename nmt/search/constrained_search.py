"""Beam search for translations that have given phrases (Hokamp and Liu 2017), by dynamic beam allocation.

All hypotheses of a sentence share one beam, whatever their number of constraints is (Post and Vilar 2018). Here
hypotheses that lack as many tokens of the constraints form a bank, and the banks take turns in filling the beam, those
that lack least first. So the beam always has a hypothesis that gets through, if the length allows any.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.config import EOS, PAD, DecodeConfig
from nmt.model import Transformer
from nmt.search.beam_search import Search, beam_search, finish
from nmt.search.constraints import Constraints, Tracker
from nmt.search.engine import Hypothesis


class Candidate(NamedTuple):
    """A hypothesis with one token more."""

    log_probability: float
    parent: int
    token: int


class ConstrainedSearch(Search):
    """A search in which a hypothesis ends only once it has met all constraints of its sentence.

    Sentences for which there is no such translation have no hypotheses.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        source_BS: Tensor,
        config: DecodeConfig,
        prefixes: Sequence[list[int]] | None,
        constraints: Constraints,
    ) -> None:
        super().__init__(models, source_BS, config, prefixes)
        self.trackers = [Tracker(row, constraints.continues) for row in constraints.rows]
        self.states = [[0] * self.beam_size for _ in self.trackers]
        """Of the hypotheses of each sentence of the search."""

    def living(self, hypotheses: int) -> list[tuple[int, Tracker, list[tuple[int, int]]]]:
        """Row, tracker, and slot and state of each unfinished hypothesis, of the first `hypotheses` slots."""
        found = self.log_probabilities[:, :hypotheses].isfinite().tolist()
        return [
            (row, self.trackers[own], [(k, self.states[own][k]) for k, lives in enumerate(found[row]) if lives])
            for row, own in enumerate(self.sentences.tolist())
        ]

    def next_tokens(self) -> Tensor:
        logp_BKN = super().next_tokens()
        rows = self.living(logp_BKN.shape[1])
        unmet = [(row, k) for row, tracker, own in rows for k, state in own if tracker.left[state]]
        if unmet:
            at, slots = torch.tensor(unmet, device=logp_BKN.device).unbind(1)
            logp_BKN[at, slots, EOS] = -torch.inf
        return logp_BKN

    def best(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The hypotheses that end and those that stay in the beam: log probabilities, parents and tokens, [B, 2 K]."""
        found = [self.likeliest(logp_BKN), self.wanted(logp_BKN)]
        rooms = (self.max_lengths - 1 - self.tokens.shape[2]).tolist()
        none = Candidate(-math.inf, 0, PAD)
        columns = []
        for row, own in enumerate(self.sentences.tolist()):
            candidates = {candidate[1:]: candidate for part in found for candidate in part[row]}
            ended, kept = self.select(list(candidates.values()), own, rooms[row])
            columns.append([side + [none] * (self.beam_size - len(side)) for side in (ended, kept)])
        rows = [ended + kept for ended, kept in columns]
        device = logp_BKN.device
        return (
            torch.tensor([[each.log_probability for each in row] for row in rows], device=device),
            torch.tensor([[each.parent for each in row] for row in rows], device=device),
            torch.tensor([[each.token for each in row] for row in rows], device=device),
        )

    def likeliest(self, logp_BKN: Tensor) -> list[list[Candidate]]:
        """The candidates of a search without constraints, and the likeliest one of each hypothesis."""
        best, parents, tokens = super().best(logp_BKN)
        own, own_tokens = logp_BKN.max(dim=2)
        slots = torch.arange(own.shape[1], device=own.device).expand_as(own)
        own = own + self.log_probabilities[:, : own.shape[1]]
        parts = (torch.cat(pair, dim=1).tolist() for pair in ((best, own), (parents, slots), (tokens, own_tokens)))
        return [list(map(Candidate, *row)) for row in zip(*parts, strict=True)]

    def wanted(self, logp_BKN: Tensor) -> list[list[Candidate]]:
        """The candidates that go on with constraints, or end with all of them met."""
        found: list[list[Candidate]] = [[] for _ in self.sentences]
        each = [
            (row, k, token)
            for row, tracker, own in self.living(logp_BKN.shape[1])
            for k, state in own
            for token in (tracker.wanted[state] if tracker.left[state] else [EOS])
        ]
        if each:
            at, slots, tokens = torch.tensor(each, device=logp_BKN.device).unbind(1)
            values = (self.log_probabilities[at, slots] + logp_BKN[at, slots, tokens]).tolist()
            for value, (row, k, token) in zip(values, each, strict=True):
                found[row].append(Candidate(value, k, token))
        return found

    def select(self, candidates: list[Candidate], own: int, room: int) -> tuple[list[Candidate], list[Candidate]]:
        """The candidates that end, among the best that lack nothing, and those that fill the beam, bank by bank.

        After the candidate's token there is `room` for so many: what lacks more cannot get through.
        """
        tracker, states = self.trackers[own], self.states[own]
        banks = defaultdict[int, list[Candidate]](list)
        for candidate in sorted(candidates, reverse=True):
            if candidate.log_probability > -math.inf:
                state, ends = states[candidate.parent], candidate.token == EOS
                left = tracker.left[state if ends else tracker.step(state, candidate.token)]
                if left <= room or ends:
                    banks[left].append(candidate)
        ended = [candidate for candidate in banks[0][: self.beam_size] if candidate.token == EOS]
        turns = [
            (turn, left, candidate)
            for left, bank in banks.items()
            for turn, candidate in enumerate(each for each in bank if each.token != EOS)
        ]
        return ended, [candidate for _, _, candidate in sorted(turns)[: self.beam_size]]

    def extend(self, parents: Tensor, tokens: Tensor) -> None:
        super().extend(parents, tokens)
        for own, *row in zip(self.sentences.tolist(), parents.tolist(), tokens.tolist(), strict=True):
            states, step = self.states[own], self.trackers[own].step
            self.states[own] = [step(states[parent], token) for parent, token in zip(*row, strict=True)]


@torch.inference_mode()
def constrained_search(
    models: Sequence[Transformer],
    source_BS: Tensor,
    config: DecodeConfig,
    prefixes: Sequence[list[int]],
    constraints: Constraints,
) -> list[list[Hypothesis]]:
    """As `beam_search`, with all constraints; where no translation has them, without the last one, and so on."""
    found = finish(ConstrainedSearch(models, source_BS, config, prefixes, constraints))
    for index in [index for index, row in enumerate(found) if not row]:
        alone = source_BS[index : index + 1, : int((source_BS[index] != PAD).sum())], config, [prefixes[index]]
        rest = Constraints([constraints.rows[index][:-1]], constraints.continues)
        again = constrained_search(models, *alone, rest) if rest.rows[0] else beam_search(models, *alone)
        found[index] = again[0]
    return found
