"""Beam search for translations that contain given phrases (Hokamp and Liu 2017).

Beam allocation is dynamic: all hypotheses of a sentence share one beam, however many constraints
they meet (Post and Vilar 2018). The first K places go to the likeliest hypotheses, as in any
search. Hypotheses that still need the same number of constraint tokens form a bank. The banks take
turns filling the rest of the beam, which has 2 K places plus one per constraint token, but at most
4 K. Banks that need the fewest tokens go first, so that at least one hypothesis keeps advancing.

Shapes: B unfinished sentences, K hypotheses per sentence (the beam), C candidates, N vocabulary.
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
from nmt.plugins.protection.constraints import PhraseConstraints
from nmt.plugins.protection.phrases import Constraint
from nmt.plugins.protection.tracker import State, Tracker, length_of
from nmt.plugins.protection.written_terms import Written
from nmt.search import Hypothesis, Search, beam_search, largest

Candidate = tuple[float, int, int]
"""A log probability, the slot of a hypothesis, and its next token.

A plain tuple, because a step makes thousands.
"""
NO_CANDIDATE = (-math.inf, 0, PAD)
Place = tuple[int, int, int]
"""A row of the batch, a slot of its beam, and a token."""


def values_of(*tensors: Tensor) -> list[Any]:
    """The values of each tensor as lists; integers must be below 2^24, as float32 holds them.

    All tensors share one transfer, because each transfer from a GPU waits for its queued work.
    """
    flat = [tensor.flatten().float() for tensor in tensors]
    numbers = torch.cat(flat).numpy(force=True)
    ends = np.cumsum([tensor.numel() for tensor in tensors])
    parts = np.split(numbers, ends[:-1])
    values = []
    for part, tensor in zip(parts, tensors, strict=True):
        kind = float if tensor.is_floating_point() else int
        values.append(part.reshape(tensor.shape).astype(kind).tolist())
    return values


def candidates_of(
    log_probabilities: list[list[float]],
    parents: list[list[int]],
    tokens: list[list[int]],
) -> list[list[Candidate]]:
    """Each sentence's candidates, given their parts, [B, C]."""
    candidates = list[list[Candidate]]()
    for row in zip(log_probabilities, parents, tokens, strict=True):
        candidates.append(list(zip(*row, strict=True)))
    return candidates


class ConstrainedSearch(Search):
    """A search in which a hypothesis can end only once it meets all constraints.

    A sentence may have no result.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        source_BS: Tensor,
        config: DecodeConfig,
        prefixes: Sequence[list[int]],
        constraints: PhraseConstraints,
    ) -> None:
        # One tracker per sentence, looked up by sentence: rows move when finished sentences leave.
        self.trackers = [Tracker(row, constraints.kinds) for row in constraints.rows]
        self.likeliest_kept = config.beam_size
        # The width of a sentence's beam does not depend on other sentences.
        self.widths = [beam_width(tracker, config.beam_size) for tracker in self.trackers]
        wider = replace(config, beam_size=max(self.widths))
        super().__init__(models, source_BS, wider, prefixes)
        self.states = [[tracker.start] * self.beam_size for tracker in self.trackers]
        self.terms = constraints.terms
        self.written = [[Written()] * self.beam_size for _ in self.trackers]
        """The text of each hypothesis, if the text decides which terms it has."""

    def advance(self) -> None:
        # `tokens` includes the start symbol, so this leaves a place for the end symbol.
        rooms = self.max_lengths - 1 - self.tokens.shape[2]
        unfinished = self.log_probabilities.isfinite()
        # For each row: its sentence, the room after the next token, and which slots are unfinished.
        rows = values_of(self.sentences, rooms, unfinished)
        self.indices, self.rooms, self.unfinished_slots = rows
        super().advance()

    def living(self, hypotheses: int) -> Iterator[tuple[int, int, Tracker, State]]:
        """Row, slot, tracker and state of each unfinished hypothesis in the first slots."""
        for row, index in enumerate(self.indices):
            tracker = self.trackers[index]
            states = self.states[index]
            first_slots = self.unfinished_slots[row][:hypotheses]
            for slot, is_unfinished in enumerate(first_slots):
                if is_unfinished:
                    yield row, slot, tracker, states[slot]

    def next_tokens(self) -> Tensor:
        # A hypothesis that lacks a term must not end. All other hypotheses may end, and their end
        # is a separate candidate, because the likeliest continuations may not include it.
        logp_BKN = super().next_tokens()
        unmet = list[Place]()
        self.places = list[Place]()
        hypotheses = logp_BKN.shape[1]
        for row, slot, tracker, state in self.living(hypotheses):
            if tracker.left(state):
                unmet.append((row, slot, EOS))
                for token in tracker.advancing(state):
                    self.places.append((row, slot, token))
            else:
                self.places.append((row, slot, EOS))
        # A single transfer for both lists.
        places = [*unmet, *self.places]
        both = torch.tensor(places, dtype=torch.long, device=logp_BKN.device).view(-1, 3)
        ends, advancing = both.split([len(unmet), len(self.places)])
        # A Python number would be copied to the device.
        forbidden = logp_BKN.new_full((), -torch.inf)
        logp_BKN.index_put_(ends.unbind(1), forbidden)
        self.places_on_device = advancing.unbind(1)
        return logp_BKN

    def best(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Finished hypotheses, then the beam: log probabilities, parents and tokens, [B, 2 K]."""
        batch, slots, vocabulary = logp_BKN.shape
        # The sums replace the log probabilities, which no later step needs.
        sums_BKN = logp_BKN.add_(self.log_probabilities[:, :slots, None])
        # Three sources of candidates, as in Post and Vilar (2018, algorithm 1): the likeliest of
        # the whole beam, the likeliest of each hypothesis, and all that advance a constraint.
        best_BC, places_BC = largest(sums_BKN.flatten(1), 2 * self.beam_size)
        # The best continuation of each hypothesis.
        likeliest, tokens = largest(sums_BKN.flatten(0, 1), 1)
        slots_BK = torch.arange(slots, device=sums_BKN.device).expand(batch, slots)
        values = values_of(
            best_BC,
            places_BC // vocabulary,
            places_BC % vocabulary,
            likeliest.view(batch, slots),
            slots_BK,
            tokens.view(batch, slots),
            sums_BKN[self.places_on_device],
        )
        usual = candidates_of(*values[:3])
        likeliest_of_slots = candidates_of(*values[3:6])
        advancing = self.advancing(values[6])
        chosen = [
            self.choose(row, usual[row], likeliest_of_slots[row], advancing[row])
            for row in range(batch)
        ]
        # A single transfer for all columns, whose integers are small enough for float32.
        table = torch.tensor(chosen, dtype=sums_BKN.dtype, device=sums_BKN.device)
        log_probabilities, parents, tokens = table.unbind(2)
        return log_probabilities, parents.long(), tokens.long()

    def advancing(self, values: list[float]) -> list[list[Candidate]]:
        """The candidates that begin or continue a constraint, or that end with all constraints met.

        `values` are their log probabilities, in the order of `places`.
        """
        candidates: list[list[Candidate]] = [[] for _ in self.indices]
        for value, (row, slot, token) in zip(values, self.places, strict=True):
            candidates[row].append((value, slot, token))
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
        width = self.widths[index]
        # The sources overlap. A set suffices to merge them, because equal candidates have read
        # their log probability from the same element of the sums. `usual` was computed for the
        # widest sentence of the batch; a sentence takes only its share, so that its translation
        # does not depend on its neighbors.
        candidates = {*usual[: 2 * width], *likeliest, *advancing}
        # Empty slots and forbidden tokens have -inf.
        possible = [candidate for candidate in candidates if candidate[0] > -math.inf]
        # Ties go to higher slots and tokens, so the order never depends on that of the set.
        ranked = sorted(possible, reverse=True)
        ended, kept = self.select(ranked, index, self.rooms[row])
        return self.filled(ended) + self.filled(kept)

    def filled(self, candidates: list[Candidate]) -> list[Candidate]:
        """Candidates, filled up to K."""
        missing = self.beam_size - len(candidates)
        return candidates + [NO_CANDIDATE] * missing

    def select(
        self, ranked: list[Candidate], index: int, room: int
    ) -> tuple[list[Candidate], list[Candidate]]:
        """The finished ones of a sentence's candidates, and those for its beam.

        Both are in the order of `ranked`, the likeliest first. Finished ones must be among the best
        that meet all constraints. After a candidate's token, there is space for `room` more tokens;
        candidates that need more are dropped.
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
            # As in beam search without constraints, an end counts only if it ranks within the beam.
            if token == EOS:
                all_met += 1
                if all_met <= width:
                    ended.append(candidate)
                continue
            left, least = tracker.needs(states[parent], token)
            # Such a candidate could never meet its constraints within the maximum length.
            if least > room:
                continue
            if left == 0:
                all_met += 1
            # As many as a free search keeps: constraints must not push out the best hypotheses.
            if len(kept) < self.likeliest_kept:
                kept.append(candidate)
            else:
                # The rank within the bank comes first, so that sorting lets the banks take turns.
                turns.append((sizes[left], left, candidate))
                sizes[left] += 1
        # First the likeliest of each bank, the banks with the fewest tokens left first, and so on.
        turns.sort()
        free_places = width - len(kept)
        for _, _, candidate in turns[:free_places]:
            kept.append(candidate)
        return ended, kept

    def extend(self, parents: Tensor, tokens: Tensor) -> None:
        # Reordered on the CPU, because states are Python objects.
        super().extend(parents, tokens)
        parent_rows, token_rows = values_of(parents, tokens)
        for row, index in enumerate(self.indices):
            tracker = self.trackers[index]
            states = self.states[index]
            steps = list(zip(parent_rows[row], token_rows[row], strict=True))
            self.states[index] = [tracker.step(states[parent], token) for parent, token in steps]
            # The state by tokens only guides the search; see `PhraseConstraints`.
            if self.terms:
                self.correct(index, steps)

    def correct(self, index: int, steps: list[tuple[int, int]]) -> None:
        """Let the text of each hypothesis of a sentence decide which terms it has."""
        assert self.terms
        before = self.written[index]
        self.written[index] = []
        states = self.states[index]
        tracker = self.trackers[index]
        for slot, (parent, token) in enumerate(steps):
            written = before[parent]
            if token != PAD:  # which fills empty slots
                continues_word = tracker.kinds[token] != 0
                written = self.terms.after(index, written, token, continues_word)
                states[slot] = tracker.corrected(states[slot], written.met)
            self.written[index].append(written)


def beam_width(tracker: Tracker, beam_size: int) -> int:
    """The size of a sentence's beam, given the number of hypotheses that a free search keeps."""
    constraint_tokens = tracker.left(tracker.start)
    return min(2 * beam_size + constraint_tokens, 4 * beam_size)


def number_of_longest(constraints: Sequence[Constraint]) -> int:
    """The number of the constraint that needs the most tokens; of several, the last one's."""
    lengths = [length_of(constraint) for constraint in constraints]
    # A constraint that never fits would otherwise take shorter ones with it.
    longest = max(lengths)
    return max(number for number, length in enumerate(lengths) if length == longest)


@torch.inference_mode()
def constrained_search(
    models: Sequence[Transformer],
    source_BS: Tensor,
    config: DecodeConfig,
    prefixes: Sequence[list[int]],
    constraints: PhraseConstraints,
) -> list[list[Hypothesis]]:
    """Constrained beam search.

    Drops a sentence's constraints, longest first, until a translation meets the rest.
    """
    results = ConstrainedSearch(models, source_BS, config, prefixes, constraints).run()
    for index, hypotheses in enumerate(results):
        if not hypotheses:
            longest = number_of_longest(constraints.rows[index])
            fewer = constraints.without(index, longest)
            # Without padding, as if the sentence were translated alone.
            length = int((source_BS[index] != PAD).sum())
            source = source_BS[index : index + 1, :length]
            prefix = [prefixes[index]]
            # Each call drops one constraint, so the recursion ends with a free search.
            if fewer.rows[0]:
                [results[index]] = constrained_search(models, source, config, prefix, fewer)
            else:
                [results[index]] = beam_search(models, source, config, prefix)
    return results
