"""Beam search with a cache (section 6.1), and sampling.

Sampling adds Gumbel noise to the log probability of each token and takes the token with the largest sum (Gumbel 1954;
Maddison et al. 2014). The noise is a hash of seed, sentence, hypothesis, position and token, so samples do not depend
on the batch, as they would with a random number generator.

Shapes: B unfinished sentences, K hypotheses per sentence (the beam), T tokens so far, N vocabulary, S source positions,
C candidates.
"""

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig
from nmt.data import INCREMENT, shifted, splitmix
from nmt.model import Transformer
from nmt.search.engine import Hypothesis, penalty

BLOCK_TOKENS = 64  # adjacent vocabulary entries that `largest` skips together
HASH_BITS = 40  # bits of a hash that form a number between 0 and 1


def pad(rows: Sequence[list[int]], device: torch.device) -> Tensor:
    """Rows padded to the length of the longest one: [B, longest]."""
    longest = max(map(len, rows))
    padded = [ids + [PAD] * (longest - len(ids)) for ids in rows]
    return torch.tensor(padded, dtype=torch.long, device=device).view(len(rows), longest)


def pad_source(sentences: Sequence[list[int]], device: torch.device) -> Tensor:
    """Token ids -> [B, S], each sentence followed by the end symbol, then padding."""
    return pad([[*ids, EOS] for ids in sentences], device)


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values in each row of x, [M, N], and their indices, largest first; fewer if N < k.

    They lie in the k blocks with the largest maxima, so most of a row is read once and never sorted, unlike with topk.
    """
    (rows, width), blocks = x.shape, x.shape[1] // BLOCK_TOKENS

    def topk(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return x.max(dim=1, keepdim=True) if k == 1 else x.topk(k, dim=1)  # max is faster

    if blocks < 4 * k:
        return topk(x, min(k, width))
    whole = x[:, : blocks * BLOCK_TOKENS].unflatten(1, (blocks, BLOCK_TOKENS))
    _, chosen = topk(whole.amax(dim=2), k)
    indices = (chosen[:, :, None] * BLOCK_TOKENS + torch.arange(BLOCK_TOKENS, device=x.device)).flatten(1)
    rest = torch.arange(blocks * BLOCK_TOKENS, width, device=x.device).expand(rows, -1)
    indices = torch.cat((indices, rest), dim=1)
    values, places = topk(x.gather(1, indices), k)
    return values, indices.gather(1, places)


def sentence_keys(source_BS: Tensor, count: int, seed: int) -> Tensor:
    """64-bit keys for `count` hypotheses per sentence: hashes of source tokens, hypothesis number and seed, [B, K]."""
    digests = [
        hashlib.blake2b(repr((seed, [token for token in tokens if token != PAD], k)).encode(), digest_size=8).digest()
        for tokens in source_BS.tolist()
        for k in range(count)
    ]
    keys = np.frombuffer(b"".join(digests), np.dtype("<i8")).astype(np.int64).reshape(len(source_BS), count)
    return torch.from_numpy(keys).to(source_BS.device)


def gumbel(keys_BK: Tensor, position: int, tokens: Tensor) -> Tensor:
    """Gumbel noise, [B, K, C], for `tokens`, which have the shape [C] or, if they differ by row, [B, K, C]."""
    # Wrap the offset into a signed 64-bit integer.
    rows = splitmix(keys_BK + ((position * INCREMENT + 2**63) % 2**64 - 2**63))
    hashes = splitmix(rows[:, :, None] + tokens * INCREMENT)
    uniform = (shifted(hashes, 64 - HASH_BITS).float() + 0.5) * 2.0**-HASH_BITS
    # Large noise, which decides the draw, comes from numbers near 0, where floats are most precise. 1 would give -inf.
    return uniform.clamp_(max=1 - 2.0**-24).neg_().log1p_().neg_().log_().neg_()


def draw(logp_BKN: Tensor, config: DecodeConfig, keys_BK: Tensor, position: int) -> Tensor:
    """A random token for each hypothesis, [B, K], drawn from the most likely tokens within top_k and top_p."""
    vocabulary = logp_BKN.shape[2]
    if config.top_k == 0 and config.top_p == 1:
        tokens = torch.arange(vocabulary, device=logp_BKN.device)
        return (logp_BKN / config.temperature + gumbel(keys_BK, position, tokens)).argmax(dim=2)
    likely, tokens = logp_BKN.topk(min(config.top_k or vocabulary, vocabulary), dim=2)
    likely = likely / config.temperature
    if config.top_p < 1:
        # After a hypothesis has ended, all its next tokens may be forbidden; softmax then divides 0 by 0.
        probabilities = likely.double().softmax(dim=2).nan_to_num()
        likely = likely.masked_fill(probabilities.cumsum(dim=2) - probabilities >= config.top_p, -torch.inf)
    indices = (likely + gumbel(keys_BK, position, tokens)).argmax(dim=2, keepdim=True)
    return tokens.gather(2, indices)[:, :, 0]


class Finished:
    """The best finished hypotheses of each sentence; -inf marks an empty slot."""

    def __init__(self, sentences: int, n_best: int, longest: int, device: torch.device) -> None:
        self.scores = torch.full((sentences, n_best), -torch.inf, device=device)
        self.log_probabilities = self.scores.clone()
        self.tokens = torch.full((sentences, n_best, longest), PAD, device=device)

    def add(self, sentences: Tensor, log_probabilities_BC: Tensor, tokens_BCT: Tensor, config: DecodeConfig) -> None:
        """Add hypotheses and keep the n_best; ties go to the first to finish."""
        length = tokens_BCT.shape[2]
        scores = torch.cat((self.scores[sentences], log_probabilities_BC / penalty(length + 1, config)), dim=1)
        order = scores.argsort(dim=1, descending=True, stable=True)[:, : self.scores.shape[1]]
        self.scores[sentences] = scores.gather(1, order)
        log_probabilities = torch.cat((self.log_probabilities[sentences], log_probabilities_BC), dim=1)
        self.log_probabilities[sentences] = log_probabilities.gather(1, order)
        tokens = torch.cat((self.tokens[sentences, :, :length], tokens_BCT), dim=1)
        self.tokens[sentences, :, :length] = tokens.gather(1, order[:, :, None].expand(-1, -1, length))

    def hypotheses(self) -> list[list[Hypothesis]]:
        columns = self.tokens.tolist(), self.log_probabilities.tolist(), self.scores.tolist()
        return [
            [Hypothesis([id for id in ids if id != PAD], *scores) for ids, *scores in row if scores[1] > -math.inf]
            for row in (zip(*sentence, strict=True) for sentence in zip(*columns, strict=True))
        ]


class Search:
    """One search over a batch of sentences (section 6.1) with a model, or an ensemble that averages probabilities."""

    def __init__(
        self, models: Sequence[Transformer], source_BS: Tensor, config: DecodeConfig, prefixes: Sequence[list[int]] = ()
    ) -> None:
        sentences, device = len(source_BS), source_BS.device
        self.models, self.config = models, config
        # Reading a value from a GPU waits for all work that is queued there, so a step reads only
        # one, in `prune_finished`. On a CPU, nothing waits: a step reads more to compute less.
        self.reads_freely = device.type == "cpu"
        self.beam_size = config.n_best if config.do_sample else config.beam_size
        # The encoder runs once per sentence; each step adds one key and value per layer.
        self.caches = [model.start(source_BS, self.beam_size) for model in models]
        prefixes = prefixes or [[]] * sentences
        self.prefixes = pad(prefixes, device)
        self.max_lengths = self.longest(source_BS, prefixes)
        self.shortest_maximum = int(self.max_lengths.min())
        self.penalties_at_max_length: Tensor = penalty(self.max_lengths, config)
        self.suppressed_tokens = torch.tensor([PAD, BOS, UNK], device=device)
        # The index of each row's sentence; when finished sentences are dropped, later rows move up.
        self.sentences = torch.arange(sentences, device=device)
        self.tokens = torch.full((sentences, self.beam_size, 1), BOS, device=device)
        # Log probabilities of the unfinished hypotheses; -inf marks an empty slot.
        self.log_probabilities = torch.zeros(sentences, self.beam_size, device=device)
        if not config.do_sample:
            self.log_probabilities[:, 1:] = -torch.inf  # the search starts with one empty hypothesis
        self.finished = Finished(sentences, config.n_best, int(self.max_lengths.max()), device)
        self.keys = sentence_keys(source_BS, self.beam_size, config.seed) if config.do_sample else None

    def longest(self, source_BS: Tensor, prefixes: Sequence[list[int]]) -> Tensor:
        """The maximum length of each translation, including the end symbol, [B]."""
        config = self.config
        lengths = (source_BS != PAD).sum(dim=1) + config.max_extra_length
        if config.max_length is not None:
            lengths = lengths.clamp(max=config.max_length + 1)
        if config.no_repeat_ngram_size == 1:
            # After the prefix, each vocabulary entry can occur only once, even if min_length is not reached.
            words = self.models[0].vocabulary_size - UNK
            lengths = lengths.minimum(lengths.new_tensor([words + len(ids) - len(set(ids)) for ids in prefixes]))
        lengths = lengths.maximum((self.prefixes != PAD).sum(dim=1) + 1)
        limits = [model.config.max_positions for model in self.models if model.config.positions == "learned"]
        return lengths.clamp(max=min(limits)) if limits else lengths

    def advance(self) -> None:
        """Extend each unfinished hypothesis by one token, collect finished ones, and drop finished sentences."""
        logp_BKN = self.next_tokens()
        best, parents, tokens = self.sample(logp_BKN) if self.config.do_sample else self.best(logp_BKN)
        ends = tokens == EOS
        self.collect(best, parents, ends)
        best = best.masked_fill(ends, -torch.inf)
        if not self.config.do_sample:
            # A sample keeps its slot, which determines its random numbers.
            best, chosen = best.topk(self.beam_size, dim=1)
            parents, tokens = parents.gather(1, chosen), tokens.gather(1, chosen)
        self.log_probabilities = best
        self.extend(parents, tokens)
        self.prune_finished(self.unfinished())

    def run(self) -> list[list[Hypothesis]]:
        """The n_best hypotheses of each sentence."""
        while len(self.sentences):
            self.advance()
        return self.finished.hypotheses()

    def extend(self, parents: Tensor, tokens: Tensor) -> None:
        """Replace the hypotheses with the continuations given by parents and tokens, [B, K]."""
        past = self.tokens.gather(1, parents[:, :, None].expand_as(self.tokens))
        self.tokens = torch.cat((past, tokens[:, :, None]), dim=2)
        if self.beam_size > 1 and not self.config.do_sample:
            # This reorders only a small mask of ancestors; keys and values stay in place.
            for cache in self.caches:
                cache.reorder(parents)

    def next_tokens(self) -> Tensor:
        """Log probabilities of the next token, -inf for forbidden tokens: [B, K, N].

        In the first step of a beam search, all hypotheses are alike, so [B, 1, N] suffices unless N is tiny.
        """
        position, config = self.tokens.shape[2], self.config
        alike = position == 1 and not config.do_sample and self.models[0].vocabulary_size >= 2 * self.beam_size
        last_BK, width = self.tokens[:, :, -1], 1 if alike else self.beam_size
        steps = [model.step(last_BK, cache, width) for model, cache in zip(self.models, self.caches, strict=True)]
        logp = steps[0] if len(steps) == 1 else torch.stack(steps).logsumexp(0) - math.log(len(steps))
        # Forbid tokens after the softmax, so that log probabilities equal those of forced decoding.
        logp.index_fill_(2, self.suppressed_tokens, -torch.inf)
        if position >= self.shortest_maximum:  # at its maximum length, a hypothesis can only end
            allow_only(logp, torch.full_like(self.max_lengths, EOS), self.max_lengths <= position)
        if position <= self.prefixes.shape[1]:
            forced = self.prefixes[self.sentences, position - 1]
            allow_only(logp, forced, forced != PAD)
        if position <= config.min_length:
            logp[:, :, EOS].masked_fill_((self.max_lengths > position)[:, None], -torch.inf)
        if config.no_repeat_ngram_size:
            free = position > (self.prefixes != PAD).sum(dim=1)[self.sentences]
            forbid_repetition(logp, self.tokens[:, :, 1:], config.no_repeat_ngram_size, free)
        return logp

    def best(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The best continuations of each sentence's hypotheses: log probabilities, parents and tokens, [B, C].

        Each hypothesis has only one continuation that ends it, so at least K of the best 2 K are unfinished.
        """
        candidates = 1 if self.beam_size == 1 else 2 * self.beam_size
        logp, tokens = largest(logp_BKN.flatten(0, 1), candidates)
        sums = self.log_probabilities[:, : logp_BKN.shape[1], None] + logp.view(*logp_BKN.shape[:2], -1)
        best, indices = sums.flatten(1).topk(min(candidates, sums[0].numel()), dim=1)
        return best, indices // sums.shape[2], tokens.view(len(sums), -1).gather(1, indices)

    def sample(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A random continuation of each hypothesis; its log probability is the model's, before temperature scaling."""
        assert self.keys is not None
        tokens = draw(logp_BKN, self.config, self.keys[self.sentences], self.tokens.shape[2])
        best = self.log_probabilities + logp_BKN.gather(2, tokens[:, :, None])[:, :, 0]
        return best, torch.arange(self.beam_size, device=best.device).expand_as(best), tokens

    def collect(self, best: Tensor, parents: Tensor, ends: Tensor) -> None:
        """Store those of the K best candidates that have ended."""
        width = self.beam_size
        ended = ends[:, :width] & best[:, :width].isfinite()
        best, parents = best[:, :width], parents[:, :width]
        sentences, past = self.sentences, self.tokens[:, :, 1:]
        if self.reads_freely:
            # Where nothing has ended, all candidates would be -inf and change nothing.
            rows = ended.any(dim=1).nonzero()[:, 0]
            if not len(rows):
                return
            ended, best, parents = ended[rows], best[rows], parents[rows]
            sentences, past = sentences[rows], past[rows]
        log_probabilities = best.masked_fill(~ended, -torch.inf)
        tokens = past.gather(1, parents[:, :, None].expand(-1, -1, past.shape[2]))
        self.finished.add(sentences, log_probabilities, tokens, self.config)

    def unfinished(self) -> Tensor:
        """True for sentences in which an unfinished hypothesis may still beat a finished one, [B].

        A hypothesis with log probability p can at best reach the score p / lp(max_length), because p only falls and lp
        is largest there. Greedy search stops at its first finished hypothesis; sampling finishes all hypotheses.
        """
        extendable = self.log_probabilities.isfinite().any(dim=1)
        if self.config.do_sample:
            return extendable
        to_beat = self.finished.scores[self.sentences, -1]
        if self.beam_size == 1:
            return extendable & to_beat.isinf()
        return extendable & (self.log_probabilities[:, 0] / self.penalties_at_max_length > to_beat)

    def prune_finished(self, unfinished_B: Tensor) -> None:
        """Drop finished sentences from the batch once they make up a fifth of it; until then, their slots stay empty.

        Dropping them copies the cache, and each new batch size may need new oneDNN kernels. To limit the number of
        kernels, batch sizes above 16 are multiples of 8. On a GPU, the only wait of a step is here.
        """
        unfinished, rows = int(unfinished_B.sum()), len(unfinished_B)
        kept = -(-unfinished // 8) * 8 if unfinished > 16 else unfinished
        if unfinished < rows:
            self.log_probabilities.masked_fill_(~unfinished_B[:, None], -torch.inf)
        if unfinished and kept > 0.8 * rows:
            return
        # Unfinished rows come first; finished ones fill the batch up to a multiple of 8.
        chosen = unfinished_B.byte().argsort(descending=True, stable=True)[:kept]
        self.sentences, self.tokens = self.sentences[chosen], self.tokens[chosen]
        self.log_probabilities = self.log_probabilities[chosen]
        self.max_lengths = self.max_lengths[chosen]
        self.penalties_at_max_length = self.penalties_at_max_length[chosen]
        if unfinished:
            self.caches = [cache.select(chosen) for cache in self.caches]


def allow_only(logp_BKN: Tensor, tokens_B: Tensor, where_B: Tensor) -> None:
    """Where `where_B` is true, set the log probability of every token other than `tokens_B` to -inf."""
    others_BN = torch.arange(logp_BKN.shape[2], device=logp_BKN.device) != tokens_B[:, None]
    logp_BKN.masked_fill_((others_BN & where_B[:, None])[:, None, :], -torch.inf)


def forbid_repetition(logp_BKN: Tensor, tokens_BKT: Tensor, n: int, where_B: Tensor) -> None:
    """Where `where_B` is true, set the log probability of each token that would repeat an n-gram to -inf."""
    if tokens_BKT.shape[2] < n:
        return
    grams = tokens_BKT.unfold(2, n, 1)
    last = tokens_BKT[:, :, None, tokens_BKT.shape[2] - n + 1 :]
    again = (grams[..., :-1] == last).all(dim=3) & where_B[:, None, None]
    # scatter needs an index for each n-gram; n-grams that do not match get the index PAD, which is forbidden anyway.
    logp_BKN.scatter_(2, grams[..., -1].masked_fill(~again, PAD), -torch.inf)


@torch.inference_mode()
def beam_search(
    models: Sequence[Transformer], source_BS: Tensor, config: DecodeConfig, prefixes: Sequence[list[int]] = ()
) -> list[list[Hypothesis]]:
    """The n_best translations of each sentence; sources end with the end symbol, and results begin with the prefix."""
    return Search(models, source_BS, config, prefixes).run()
