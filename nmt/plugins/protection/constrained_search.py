"""Beam search for translations that contain given phrases (Hokamp and Liu 2017), with dynamic beam allocation.

All hypotheses of a sentence share one beam, however many constraints they meet (Post and Vilar 2018). The first K
places go to the likeliest hypotheses, as in any search. Hypotheses that still need the same number of constraint tokens
form a bank. The banks take turns filling the rest of the beam, which has 2 K places plus one per constraint token, but
at most 4 K. Banks that need the fewest tokens go first, so that at least one hypothesis keeps advancing.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from nmt.config import EOS, PAD, DecodeConfig
from nmt.model import Transformer
from nmt.plugins.protection.constraints import PhraseConstraints, State, Tracker
from nmt.search import Hypothesis, Search, beam_search


class Candidate(NamedTuple):
    """A hypothesis and its next token."""

    log_probability: float
    parent: int
    token: int


def candidates_of(*columns: Tensor) -> list[list[Candidate]]:
    """Each sentence's candidates, given log probabilities, parents and tokens, [B, C]."""
    return [list(map(Candidate, *row)) for row in zip(*(column.tolist() for column in columns), strict=True)]


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
        self.widths = [min(2 * config.beam_size + one.left(one.start), 4 * config.beam_size) for one in self.trackers]
        super().__init__(models, source_BS, replace(config, beam_size=max(self.widths)), prefixes)
        self.states = [[tracker.start] * self.beam_size for tracker in self.trackers]

    def living(self, hypotheses: int) -> list[tuple[int, int, Tracker, State]]:
        """Row, slot, tracker and state of each unfinished hypothesis in the first `hypotheses` slots."""
        sentences = self.sentences.tolist()
        slots = self.log_probabilities[:, :hypotheses].isfinite().nonzero().tolist()
        return [(row, k, self.trackers[sentences[row]], self.states[sentences[row]][k]) for row, k in slots]

    def next_tokens(self) -> Tensor:
        logp_BKN = super().next_tokens()
        unmet = [(row, k) for row, k, tracker, state in self.living(logp_BKN.shape[1]) if tracker.left(state)]
        if unmet:
            rows, slots = torch.tensor(unmet, device=logp_BKN.device).unbind(1)
            logp_BKN[rows, slots, EOS] = -torch.inf
        return logp_BKN

    def best(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Finished hypotheses, then the hypotheses in the beam: log probabilities, parents, tokens, [B, 2 K]."""
        likeliest, slots = logp_BKN.max(dim=2), torch.arange(logp_BKN.shape[1], device=logp_BKN.device)
        sums = likeliest.values + self.log_probabilities[:, : logp_BKN.shape[1]]
        usual = candidates_of(*super().best(logp_BKN))
        best = candidates_of(sums, slots.expand_as(sums), likeliest.indices)
        advancing = self.advancing(logp_BKN)
        rooms = (self.max_lengths - 1 - self.tokens.shape[2]).tolist()
        none, rows = Candidate(-math.inf, 0, PAD), []
        for row, index in enumerate(self.sentences.tolist()):
            parts = usual[row][: 2 * self.widths[index]], best[row], advancing[row]
            candidates = {candidate[1:]: candidate for part in parts for candidate in part}
            sides = self.select(list(candidates.values()), index, rooms[row])
            rows.append([one for side in sides for one in side + [none] * (self.beam_size - len(side))])
        log_probabilities, parents, tokens = (
            torch.tensor([[candidate[column] for candidate in row] for row in rows], device=logp_BKN.device)
            for column in range(3)
        )
        return log_probabilities, parents, tokens

    def advancing(self, logp_BKN: Tensor) -> list[list[Candidate]]:
        """The candidates that begin or continue a constraint, or that end with all constraints met."""
        candidates: list[list[Candidate]] = [[] for _ in self.sentences]
        places = [
            (row, k, token)
            for row, k, tracker, state in self.living(logp_BKN.shape[1])
            for token in (sorted(tracker.advancing(state)) if tracker.left(state) else [EOS])
        ]
        if places:
            at, slots, tokens = torch.tensor(places, device=logp_BKN.device).unbind(1)
            values = (self.log_probabilities[at, slots] + logp_BKN[at, slots, tokens]).tolist()
            for value, (row, k, token) in zip(values, places, strict=True):
                candidates[row].append(Candidate(value, k, token))
        return candidates

    def select(self, candidates: list[Candidate], index: int, room: int) -> tuple[list[Candidate], list[Candidate]]:
        """Select finished candidates (among the best that meet all constraints) and the candidates for the beam.

        After a candidate's token, there is space for `room` more tokens; candidates that need more are dropped.
        """
        tracker, states, width = self.trackers[index], self.states[index], self.widths[index]
        banks, kept = defaultdict[int, list[Candidate]](list), list[Candidate]()
        for candidate in sorted(candidates, reverse=True):
            if candidate.log_probability > -math.inf:
                state, ends = states[candidate.parent], candidate.token == EOS
                after = state if ends else tracker.step(state, candidate.token)
                if ends or tracker.least(after) <= room:
                    banks[tracker.left(after)].append(candidate)
                    kept += [candidate] * (not ends)
        ended = [candidate for candidate in banks[0][:width] if candidate.token == EOS]
        kept = kept[: self.likeliest_kept]
        turns = [
            (turn, left, candidate)
            for left, bank in banks.items()
            for turn, candidate in enumerate(one for one in bank if one.token != EOS and one not in kept)
        ]
        return ended, kept + [candidate for _, _, candidate in sorted(turns)[: width - len(kept)]]

    def extend(self, parents: Tensor, tokens: Tensor) -> None:
        super().extend(parents, tokens)
        for index, *row in zip(self.sentences.tolist(), parents.tolist(), tokens.tolist(), strict=True):
            states, step = self.states[index], self.trackers[index].step
            self.states[index] = [step(states[parent], token) for parent, token in zip(*row, strict=True)]


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
        alone = source_BS[index : index + 1, : int((source_BS[index] != PAD).sum())], config, [prefixes[index]]
        row = constraints.rows[index]
        longest = max(range(len(row)), key=lambda n: (min(len(phrase.tokens) for phrase in row[n]), n))
        rest = PhraseConstraints([[*row[:longest], *row[longest + 1 :]]], constraints.kinds)
        [results[index]] = constrained_search(models, *alone, rest) if rest.rows[0] else beam_search(models, *alone)
    return results
