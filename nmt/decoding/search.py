"""Beam search with a cache (section 6.1): pure tensors, nothing of text.

Shapes: B sentences still searched, K hypotheses of each (the beam), T tokens so far, N vocabulary, S source positions.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig
from nmt.model import Transformer


@dataclass
class Hypothesis:
    """A finished translation: its tokens without the end symbol, log P(Y|X), and the score it is ranked by."""

    tokens: list[int]
    log_probability: float
    score: float


def length_penalty(length: float, alpha: float) -> float:
    """lp(Y) = ((5 + |Y|) / 6)^alpha (Wu et al. 2016, equation 14); |Y| counts the end symbol."""
    return float(((5 + length) / 6) ** alpha)


def top_k(scores_BN: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of each row and their places, best first; fewer where there are fewer."""
    return scores_BN.topk(min(k, scores_BN.shape[1]), dim=1)


class Search:
    """One beam search over a batch of sentences."""

    def __init__(self, model: Transformer, source_BS: Tensor, config: DecodeConfig) -> None:
        self.model, self.config = model, config
        self.beam_size, self.alpha = config.beam_size, config.length_penalty
        self.cache = model.start(source_BS, self.beam_size)
        sentences, device = len(source_BS), source_BS.device
        limits = (source_BS != PAD).sum(dim=1) + config.max_extra
        if model.config.positions == "learned":
            limits = limits.clamp(max=model.config.max_positions)
        self.limits = limits
        self.penalties_at_limit = torch.tensor([length_penalty(n, self.alpha) for n in limits.tolist()], device=device)
        self.sentences = torch.arange(sentences, device=device)
        self.tokens = torch.full((sentences, self.beam_size, 1), BOS, device=device)
        self.log_probabilities = torch.full((sentences, self.beam_size), -torch.inf, device=device)
        self.log_probabilities[:, 0] = 0.0
        self.finished: list[list[Hypothesis]] = [[] for _ in range(sentences)]
        # Score of the worst finished hypothesis that would still be returned, once there are n_best of them.
        self.to_beat = torch.full((sentences,), -torch.inf, device=device)

    def run(self) -> list[list[Hypothesis]]:
        """For each sentence its n_best hypotheses, best first."""
        while len(self.sentences):
            self.advance()
        return self.finished

    def advance(self) -> None:
        """Extend every living hypothesis by one token, collect those that end, drop the sentences that are done."""
        candidates_BN = self.candidates()
        vocabulary = self.model.vocabulary_size
        # Each hypothesis ends in at most one way, so 2 K candidates always hold K that go on.
        best, places = top_k(candidates_BN, 2 * self.beam_size)
        parents, tokens = places // vocabulary, places % vocabulary
        ends = tokens == EOS
        self.collect(best, parents, ends)
        self.log_probabilities, chosen = top_k(best.masked_fill(ends, -torch.inf), self.beam_size)
        parents, tokens = parents.gather(1, chosen), tokens.gather(1, chosen)
        self.continue_with(parents, tokens, self.open_sentences())

    def candidates(self) -> Tensor:
        """Log probabilities of every hypothesis followed by every token, [B, K * N]."""
        logp = self.model.step(self.tokens[:, :, -1].flatten(), self.cache)
        logp_BKN = logp.view(*self.log_probabilities.shape, -1)
        logp_BKN[:, :, [PAD, BOS, UNK]] = -torch.inf
        full = self.limits == self.tokens.shape[2]
        if full.any():
            # A hypothesis that has reached its limit can only end.
            others = torch.arange(logp_BKN.shape[2], device=logp.device) != EOS
            logp_BKN.masked_fill_(full[:, None, None] & others, -torch.inf)
        return (self.log_probabilities[:, :, None] + logp_BKN).flatten(1)

    def collect(self, best: Tensor, parents: Tensor, ends: Tensor) -> None:
        """Keep the hypotheses that ended among the K best candidates."""
        ended = ends[:, : self.beam_size] & best[:, : self.beam_size].isfinite()
        length = self.tokens.shape[2]
        penalty = length_penalty(length, self.alpha)
        for row, rank in ended.nonzero().tolist():
            log_probability = best[row, rank].item()
            hypothesis = Hypothesis(
                self.tokens[row, parents[row, rank], 1:].tolist(), log_probability, log_probability / penalty
            )
            finished = self.finished[int(self.sentences[row])]
            finished.append(hypothesis)
            finished.sort(key=lambda h: -h.score)
            del finished[self.config.n_best :]
            if len(finished) == self.config.n_best:
                self.to_beat[row] = finished[-1].score

    def open_sentences(self) -> Tensor:
        """True for the sentences in which a living hypothesis may still beat a finished one, [B].

        The best that can come of log probability p is p / lp(limit): p only falls, and lp is largest at the limit.
        A beam of one ends with its only hypothesis: that is greedy search.
        """
        bound = self.log_probabilities[:, 0] / self.penalties_at_limit
        if self.beam_size == 1:
            return self.to_beat.isinf() & bound.isfinite()
        return (bound > self.to_beat) & bound.isfinite()

    def continue_with(self, parents: Tensor, tokens: Tensor, open_B: Tensor) -> None:
        """Let the chosen candidates be the living hypotheses of the sentences that stay."""
        all_open = bool(open_B.all())
        kept = torch.arange(len(open_B), device=open_B.device) if all_open else open_B.nonzero()[:, 0]
        parents, tokens = parents[kept], tokens[kept]
        width = self.tokens.shape[1]
        rows = (kept[:, None] * width + parents).flatten()
        self.cache = self.cache.select(None if all_open else kept, rows)
        past = self.tokens.flatten(0, 1)[rows].view(*parents.shape, self.tokens.shape[2])
        self.tokens = torch.cat((past, tokens[:, :, None]), dim=2)
        self.log_probabilities = self.log_probabilities[kept]
        self.sentences, self.to_beat = self.sentences[kept], self.to_beat[kept]
        self.limits, self.penalties_at_limit = self.limits[kept], self.penalties_at_limit[kept]


@torch.inference_mode()
def beam_search(model: Transformer, source_BS: Tensor, config: DecodeConfig) -> list[list[Hypothesis]]:
    """Translate sentences closed by the end symbol and padded to [B, S]: n_best hypotheses of each, best first."""
    return Search(model, source_BS, config).run()
