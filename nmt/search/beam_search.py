"""Beam search with a cache (section 6.1), and sampling: pure tensors, nothing of text.

Shapes: B sentences still searched, K hypotheses of each (the beam), T tokens so far, N vocabulary, S source positions,
C candidates, R finished hypotheses that are kept (n_best).
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig
from nmt.model import Transformer
from nmt.search.engine import Hypothesis, length_penalty
from nmt.search.sampling import draw, sentence_keys

PIECE = 64
"""Neighbouring tokens that are passed over together where none of them is the best."""


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row [M, N] and their places, largest first; fewer where there are fewer.

    Only the k pieces of a row with the largest maxima can hold them: so that most of it is read once, and never sorted.
    """
    rows, width = x.shape
    pieces = width // PIECE
    if k == 1:
        values, places = x.max(dim=1, keepdim=True)
        return values, places
    if pieces < 4 * k:
        return x.topk(min(k, width), dim=1)
    whole = x[:, : pieces * PIECE].unflatten(1, (pieces, PIECE))
    chosen = whole.amax(dim=2).topk(k, dim=1).indices
    places = (chosen[:, :, None] * PIECE + torch.arange(PIECE, device=x.device)).flatten(1)
    rest = torch.arange(pieces * PIECE, width, device=x.device).expand(rows, -1)
    places = torch.cat((places, rest), dim=1)
    values, found = x.gather(1, places).topk(k, dim=1)
    return values, places.gather(1, found)


class Finished:
    """The best finished hypotheses of all sentences of a search."""

    def __init__(self, sentences: int, n_best: int, longest: int, device: torch.device) -> None:
        self.scores = torch.full((sentences, n_best), -torch.inf, device=device)
        self.log_probabilities = self.scores.clone()
        self.lengths = torch.zeros(sentences, n_best, dtype=torch.long, device=device)
        self.tokens = torch.zeros(sentences, n_best, longest, dtype=torch.long, device=device)

    def add(self, sentences: Tensor, log_probabilities_BC: Tensor, tokens_BCT: Tensor, alpha: float) -> None:
        """Keep the best of those there are and new ones, of log probability -inf where there is none.

        Of equals, those that finished earlier come first.
        """
        length = tokens_BCT.shape[2]
        scores = torch.cat((self.scores[sentences], log_probabilities_BC / length_penalty(length + 1, alpha)), dim=1)
        n_best = self.scores.shape[1]
        ranked, order = scores.sort(dim=1, descending=True, stable=True)
        order = order[:, :n_best]
        self.scores[sentences] = ranked[:, :n_best]
        for kept, new in (
            (self.log_probabilities, log_probabilities_BC),
            (self.lengths, torch.full_like(order[:, :1], length).expand(log_probabilities_BC.shape)),
        ):
            kept[sentences] = torch.cat((kept[sentences], new), dim=1).gather(1, order)
        pool = torch.cat((self.tokens[sentences, :, :length], tokens_BCT), dim=1)
        self.tokens[sentences, :, :length] = pool.gather(1, order[:, :, None].expand(-1, -1, length))

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Those of each sentence, best first."""
        columns = (self.tokens, self.lengths, self.log_probabilities, self.scores)
        return [
            [Hypothesis(ids[:n], p, score) for ids, n, p, score in zip(*row, strict=True) if score > -math.inf]
            for row in zip(*(column.tolist() for column in columns), strict=True)
        ]


class Search:
    """One search over a batch of sentences (section 6.1), by one model or an ensemble of averaged probabilities."""

    def __init__(
        self,
        models: Sequence[Transformer],
        source_BS: Tensor,
        config: DecodeConfig,
        prefixes: Sequence[list[int]] | None = None,
    ) -> None:
        self.models, self.config = models, config
        self.alpha = config.length_penalty
        self.beam_size = config.n_best if config.do_sample else config.beam_size
        self.caches = [model.start(source_BS, self.beam_size) for model in models]
        sentences, device = len(source_BS), source_BS.device
        limits = (source_BS != PAD).sum(dim=1) + config.max_extra_length
        if config.max_length is not None:
            limits = limits.clamp(max=config.max_length + 1)
        prefixes = prefixes or [[]] * sentences
        if config.no_repeat_ngram_size == 1:
            # Behind the prefix there are no more tokens than the vocabulary has other words, whatever min_length says.
            words = models[0].vocabulary_size - UNK
            limits = limits.minimum(limits.new_tensor([words + len(ids) - len(set(ids)) for ids in prefixes]))
        self.prefixes = pad_prefixes(prefixes, device)
        limits = limits.maximum((self.prefixes != PAD).sum(dim=1) + 1)
        for model in models:
            if model.config.positions == "learned":
                limits = limits.clamp(max=model.config.max_positions)
        self.limits = limits
        """Tokens of each sentence's translation at most, its end symbol counted."""
        self.nearest_limit, longest = int(limits.min()), int(limits.max())
        self.penalties_at_limit = ((5 + limits) / 6) ** self.alpha
        self.never = torch.tensor([PAD, BOS, UNK], device=device)
        self.sentences = torch.arange(sentences, device=device)
        """Which sentence of the batch each row is."""
        self.tokens = torch.full((sentences, self.beam_size, 1), BOS, device=device)
        self.log_probabilities = torch.zeros(sentences, self.beam_size, device=device)
        """Of the living hypotheses; -inf for one that is none."""
        if not config.do_sample:
            self.log_probabilities[:, 1:] = -torch.inf
        self.finished = Finished(sentences, config.n_best, longest, device)
        self.keys = sentence_keys(source_BS, self.beam_size, config.seed) if config.do_sample else None

    def run(self) -> list[list[Hypothesis]]:
        """For each sentence its n_best hypotheses, best first."""
        while len(self.sentences):
            self.advance()
        return self.finished.hypotheses()

    def advance(self) -> None:
        """Extend every living hypothesis by one token, collect those that end, drop the sentences that are done."""
        logp_BKN = self.next_tokens()
        best, parents, tokens = self.draw(logp_BKN) if self.config.do_sample else self.best(logp_BKN)
        ends = tokens == EOS
        self.collect(best, parents, ends)
        best = best.masked_fill(ends, -torch.inf)
        if not self.config.do_sample:
            # Drawn hypotheses keep their places, which decide what is drawn for them.
            best, chosen = best.topk(self.beam_size, dim=1)
            parents, tokens = parents.gather(1, chosen), tokens.gather(1, chosen)
        self.log_probabilities = best
        past = self.tokens.gather(1, parents[:, :, None].expand_as(self.tokens))
        self.tokens = torch.cat((past, tokens[:, :, None]), dim=2)
        if self.beam_size > 1 and not self.config.do_sample:
            for cache in self.caches:
                cache.reorder(parents)
        self.leave(self.unfinished())

    def next_tokens(self) -> Tensor:
        """Log probabilities of each hypothesis's next token, -inf for those that it must not have, [B, K, N]."""
        last_BK = self.tokens[:, :, -1]
        each = [model.step(last_BK, cache) for model, cache in zip(self.models, self.caches, strict=True)]
        logp = each[0] if len(each) == 1 else torch.stack(each).logsumexp(0) - math.log(len(each))
        logp.index_fill_(2, self.never, -torch.inf)
        position = self.tokens.shape[2]
        if position >= self.nearest_limit:
            # A hypothesis that has reached its limit can only end.
            allow_only(logp, torch.full_like(self.limits, EOS), self.limits <= position)
        if position <= self.prefixes.shape[1]:
            forced = self.prefixes[self.sentences, position - 1]
            allow_only(logp, forced, forced != PAD)
        if position <= self.config.min_length:
            logp[:, :, EOS].masked_fill_((self.limits > position)[:, None], -torch.inf)
        if self.config.no_repeat_ngram_size:
            free = position > (self.prefixes != PAD).sum(dim=1)[self.sentences]
            forbid_repetition(logp, self.tokens[:, :, 1:], self.config.no_repeat_ngram_size, free)
        return logp

    def best(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best continuations of a sentence's hypotheses: log probabilities, parents and tokens, [B, C].

        Each hypothesis ends in at most one way, so 2 K candidates always hold K that go on.
        """
        wanted = 1 if self.beam_size == 1 else 2 * self.beam_size
        each, tokens = largest(logp_BKN.flatten(0, 1), wanted)
        each = self.log_probabilities[:, :, None] + each.view(*logp_BKN.shape[:2], -1)
        best, places = each.flatten(1).topk(min(wanted, each[0].numel()), dim=1)
        return best, places // each.shape[2], tokens.view(len(each), -1).gather(1, places)

    def draw(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A continuation of each hypothesis by chance; the log probabilities are the model's own."""
        assert self.keys is not None
        tokens = draw(logp_BKN, self.config, self.keys[self.sentences], self.tokens.shape[2])
        chosen = self.log_probabilities + logp_BKN.gather(2, tokens[:, :, None])[:, :, 0]
        parents = torch.arange(self.beam_size, device=chosen.device).expand_as(chosen)
        return chosen, parents, tokens

    def collect(self, best: Tensor, parents: Tensor, ends: Tensor) -> None:
        """Keep the hypotheses that ended among the K best candidates."""
        width = self.beam_size
        ended = ends[:, :width] & best[:, :width].isfinite()
        rows = ended.any(dim=1).nonzero()[:, 0]
        if not len(rows):
            return
        log_probabilities = best[rows, :width].masked_fill(~ended[rows], -torch.inf)
        parents = parents[rows, :width, None].expand(-1, -1, self.tokens.shape[2] - 1)
        tokens = self.tokens[rows, :, 1:].gather(1, parents)
        self.finished.add(self.sentences[rows], log_probabilities, tokens, self.alpha)

    def unfinished(self) -> Tensor:
        """True for the sentences in which a living hypothesis may still beat a finished one, [B].

        The best that can come of log probability p is p / lp(limit): p only falls, and lp is largest at the limit.
        A beam of one ends with its only hypothesis: that is greedy search. Samples all count.
        """
        living = self.log_probabilities.isfinite().any(dim=1)
        if self.config.do_sample:
            return living
        to_beat = self.finished.scores[self.sentences, -1]
        if self.beam_size == 1:
            return living & to_beat.isinf()
        return living & (self.log_probabilities[:, 0] / self.penalties_at_limit > to_beat)

    def leave(self, open_B: Tensor) -> None:
        """Drop the sentences that are done, some at a time: to move the cache costs, and so does a new shape."""
        left, rows = int(open_B.sum()), len(open_B)
        kept = -(-left // 8) * 8 if left > 16 else left
        if left and kept > 0.8 * rows:
            if left < rows:
                self.log_probabilities.masked_fill_(~open_B[:, None], -torch.inf)
            return
        # Those that are open come first; some of the others fill up.
        chosen = open_B.byte().argsort(descending=True, stable=True)[:kept]
        self.log_probabilities.masked_fill_(~open_B[:, None], -torch.inf)
        for name in ("sentences", "tokens", "log_probabilities", "limits", "penalties_at_limit"):
            setattr(self, name, getattr(self, name)[chosen])
        if left:
            self.caches = [cache.select(chosen) for cache in self.caches]


def pad_prefixes(prefixes: Sequence[list[int]], device: torch.device) -> Tensor:
    """Tokens that translations must begin with, [B, longest], padded."""
    longest = max(map(len, prefixes))
    rows = [ids + [PAD] * (longest - len(ids)) for ids in prefixes]
    return torch.tensor(rows, dtype=torch.long, device=device).view(len(rows), longest)


def allow_only(logp_BKN: Tensor, tokens_B: Tensor, where_B: Tensor) -> None:
    """-inf for all but one token in some sentences."""
    own = torch.arange(logp_BKN.shape[2], device=logp_BKN.device) == tokens_B[:, None]
    logp_BKN.masked_fill_((~own & where_B[:, None])[:, None, :], -torch.inf)


def forbid_repetition(logp_BKN: Tensor, tokens_BKT: Tensor, n: int, where_B: Tensor) -> None:
    """-inf for tokens that would make a hypothesis hold the same n tokens in a row twice, in some sentences."""
    if tokens_BKT.shape[2] < n:
        return
    grams = tokens_BKT.unfold(2, n, 1)
    last = tokens_BKT[:, :, None, tokens_BKT.shape[2] - n + 1 :]
    again = (grams[..., :-1] == last).all(dim=3) & where_B[:, None, None]
    # What follows other grams is forbidden on nobody's account: the padding symbol is forbidden anyway.
    logp_BKN.scatter_(2, grams[..., -1].masked_fill(~again, PAD), -torch.inf)


@torch.inference_mode()
def beam_search(
    models: Sequence[Transformer],
    source_BS: Tensor,
    config: DecodeConfig,
    prefixes: Sequence[list[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Translate sentences closed by the end symbol and padded to [B, S] (section 6.1): n_best hypotheses of each.

    Each translation of a sentence begins with its prefix. With `config.do_sample` hypotheses are drawn, not searched.
    """
    return Search(models, source_BS, config, prefixes).run()
