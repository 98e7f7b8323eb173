"""Beam search with a cache (section 6.1), and sampling.

Shapes: B unfinished sentences, K hypotheses per sentence (the beam), T tokens so far, N vocabulary,
S source positions, C candidates.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig
from nmt.model import Transformer
from nmt.search.batches import pad
from nmt.search.choices import allow_only, best_continuations, forbid_repetition
from nmt.search.engine import Hypothesis, penalty
from nmt.search.sampling import draw, sentence_keys

DROPPED_SHARE = 0.2
"""Drop finished sentences from a batch once they make up this share of it.

Until then, computing their rows costs less than copying the cache.
"""


class FinishedHypotheses:
    """The best n_best finished hypotheses of each sentence so far, best first.

    Tensors are [sentences, n_best]; `tokens` is [sentences, n_best, T]. A score of -inf marks an
    empty slot.
    """

    def __init__(self, sentences: int, n_best: int, longest: int, device: torch.device) -> None:
        self.scores = torch.full((sentences, n_best), -torch.inf, device=device)
        self.log_probabilities = self.scores.clone()
        self.tokens = torch.full((sentences, n_best, longest), PAD, device=device)

    def add(
        self,
        sentences: Tensor,
        log_probabilities_BC: Tensor,
        tokens_BCT: Tensor,
        config: DecodeConfig,
    ) -> None:
        """Keep the n_best of the stored hypotheses and C new ones, for some of the sentences.

        `sentences` [B] are the indices of these sentences. All new hypotheses have T tokens and an
        end symbol, which `tokens_BCT` leaves out. One with log probability -inf only fills a row of
        the tensor. Ties go to the first to finish.
        """
        n_best = self.scores.shape[1]
        length = tokens_BCT.shape[2]
        # The end symbol is part of the length that the penalty divides by.
        scores_BC = log_probabilities_BC / penalty(length + 1, config)
        # Stored hypotheses come first and the sort is stable, so a tie keeps the stored one.
        scores = torch.cat((self.scores[sentences], scores_BC), dim=1)
        order = scores.argsort(dim=1, descending=True, stable=True)
        kept = order[:, :n_best]
        self.scores[sentences] = scores.gather(1, kept)
        stored = self.log_probabilities[sentences]
        log_probabilities = torch.cat((stored, log_probabilities_BC), dim=1)
        self.log_probabilities[sentences] = log_probabilities.gather(1, kept)
        # Stored hypotheses ended earlier, so all of their tokens are before `length`.
        tokens = torch.cat((self.tokens[sentences, :, :length], tokens_BCT), dim=1)
        indices = kept[:, :, None].expand(-1, -1, length)
        self.tokens[sentences, :, :length] = tokens.gather(1, indices)

    def hypotheses(self) -> list[list[Hypothesis]]:
        """The hypotheses of each sentence, best first, without empty slots."""
        tokens = self.tokens.tolist()
        log_probabilities = self.log_probabilities.tolist()
        scores = self.scores.tolist()
        results = []
        for rows in zip(tokens, log_probabilities, scores, strict=True):
            hypotheses = []
            for ids, log_probability, score in zip(*rows, strict=True):
                if score > -math.inf:
                    text_ids = [id for id in ids if id != PAD]
                    hypotheses.append(Hypothesis(text_ids, log_probability, score))
            results.append(hypotheses)
        return results


class Search:
    """One search over a batch of sentences (section 6.1).

    With several models, it averages their probabilities.
    """

    def __init__(
        self,
        models: Sequence[Transformer],
        source_BS: Tensor,
        config: DecodeConfig,
        prefixes: Sequence[list[int]] = (),
    ) -> None:
        sentences = len(source_BS)
        device = source_BS.device
        self.models = models
        self.config = config
        # Reading a value from a GPU waits for all work that is queued there, so a step reads only
        # one, in `prune_finished`. On a CPU, nothing waits: a step reads more to compute less.
        self.reads_freely = device.type == "cpu"
        self.beam_size = config.n_best if config.do_sample else config.beam_size
        # The encoder runs once per sentence; each step adds one key and value per layer.
        self.caches = [model.start(source_BS, self.beam_size) for model in models]
        prefixes = prefixes or [[]] * sentences
        # The number of tokens at the beginning of a prefix that are given, like the source. Their
        # log P does not count, but they take positions and count in the length penalty.
        self.given = int(models[0].config.target_tags)
        assert all(len(prefix) >= self.given for prefix in prefixes)
        self.prefixes = pad(prefixes, device)
        self.max_lengths = self.longest(source_BS, prefixes)
        # Read from the device once, so that earlier steps need not check for maximum lengths.
        self.shortest_maximum = int(self.max_lengths.min())
        self.penalties_at_max_length: Tensor = penalty(self.max_lengths, config)
        self.suppressed_tokens = torch.tensor([PAD, BOS, UNK], device=device)
        # The index of each row's sentence; when finished sentences are dropped, later rows move up.
        self.sentences = torch.arange(sentences, device=device)
        self.tokens = torch.full((sentences, self.beam_size, 1), BOS, device=device)
        # Log probabilities of the unfinished hypotheses; -inf marks an empty slot.
        self.log_probabilities = torch.zeros(sentences, self.beam_size, device=device)
        if not config.do_sample:
            # The search starts with one empty hypothesis. Equal hypotheses would stay equal.
            self.log_probabilities[:, 1:] = -torch.inf
        longest = int(self.max_lengths.max())
        self.finished = FinishedHypotheses(sentences, config.n_best, longest, device)
        self.keys: Tensor | None = None
        if config.do_sample:
            self.keys = sentence_keys(source_BS, self.beam_size, config.seed)

    def longest(self, source_BS: Tensor, prefixes: Sequence[list[int]]) -> Tensor:
        """The maximum length of each translation, including the end symbol, [B]."""
        config = self.config
        # The length of the input + 50 (section 6.1). Both lengths count the end symbol.
        lengths = (source_BS != PAD).sum(dim=1) + config.max_extra_length
        if config.max_length is not None:
            # max_length counts neither the end symbol nor given tokens.
            lengths = lengths.clamp(max=config.max_length + 1 + self.given)
        if config.no_repeat_ngram_size == 1:
            # After the prefix, each vocabulary entry can occur only once, even if min_length is
            # not reached.
            # Ids above <unk> are words. One more position is for the end symbol.
            words = self.models[0].vocabulary_size - UNK
            repeated = [len(ids) - len(set(ids)) for ids in prefixes]
            most = lengths.new_tensor([words + number for number in repeated])
            lengths = lengths.minimum(most)
        prefix_lengths = (self.prefixes != PAD).sum(dim=1)
        # A prefix may exceed the limits above. It is kept whole, and the end symbol follows it.
        lengths = lengths.maximum(prefix_lengths + 1)
        for model in self.models:
            if model.config.positions == "learned":
                lengths = lengths.clamp(max=model.config.max_positions)
        return lengths

    def advance(self) -> None:
        """Extend each unfinished hypothesis by one token, and collect the hypotheses that end."""
        logp_BKN = self.next_tokens()
        if self.config.do_sample:
            best, parents, tokens = self.sample(logp_BKN)
        else:
            best, parents, tokens = self.best(logp_BKN)
        ends = tokens == EOS
        # Before the ended hypotheses lose their slots to unfinished ones.
        self.collect(best, parents, ends)
        best = best.masked_fill(ends, -torch.inf)
        if not self.config.do_sample:
            # A sample keeps its slot, which determines its random numbers.
            best, chosen = best.topk(self.beam_size, dim=1)
            parents = parents.gather(1, chosen)
            tokens = tokens.gather(1, chosen)
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
        indices = parents[:, :, None].expand_as(self.tokens)
        tokens_so_far = self.tokens.gather(1, indices)
        self.tokens = torch.cat((tokens_so_far, tokens[:, :, None]), dim=2)
        if self.beam_size > 1 and not self.config.do_sample:
            # This reorders only a small mask of ancestors; keys and values stay in place.
            for cache in self.caches:
                cache.reorder(parents)

    def next_tokens(self) -> Tensor:
        """Log probabilities of the next token, -inf for forbidden tokens: [B, K, N].

        In the first step of a beam search, all hypotheses are equal, so the result is [B, 1, N],
        unless N is tiny.
        """
        logp = self.averaged_step()
        # Forbid tokens after the softmax, so that log probabilities equal those of forced decoding.
        logp.index_fill_(2, self.suppressed_tokens, -torch.inf)
        self.keep_lengths(logp)
        self.keep_prefixes(logp)
        n = self.config.no_repeat_ngram_size
        if n:
            prefix_lengths = (self.prefixes != PAD).sum(dim=1)
            # The prefix is given, so it may repeat itself.
            after_prefix = self.position > prefix_lengths[self.sentences]
            words = self.tokens[:, :, 1:]  # without the start symbol
            forbid_repetition(logp, words, n, after_prefix)
        return logp

    @property
    def position(self) -> int:
        """The position of the next token, counted from 1."""
        return self.tokens.shape[2]

    def averaged_step(self) -> Tensor:
        """log P of the next token, the mean over the models: [B, K, N] or [B, 1, N]."""
        first_step = self.position == 1 and not self.config.do_sample
        # A tiny vocabulary has fewer than 2 K continuations of a single hypothesis.
        is_large = self.models[0].vocabulary_size >= 2 * self.beam_size
        width = 1 if first_step and is_large else self.beam_size
        last_BK = self.tokens[:, :, -1]
        steps = [
            model.step(last_BK, cache, width)
            for model, cache in zip(self.models, self.caches, strict=True)
        ]
        if len(steps) == 1:
            return steps[0]
        # The log of the mean probability, not the mean of the log probabilities.
        return torch.stack(steps).logsumexp(0) - math.log(len(steps))

    def keep_lengths(self, logp_BKN: Tensor) -> None:
        """Forbid ending before the minimum length, and continuing at the maximum length."""
        if self.position >= self.shortest_maximum:
            end = torch.full_like(self.max_lengths, EOS)
            allow_only(logp_BKN, end, self.max_lengths <= self.position)
        if self.position <= self.config.min_length + self.given:
            # At its maximum length, a translation ends even if it is too short. Otherwise, nothing
            # is allowed.
            may_continue = self.max_lengths > self.position
            logp_BKN[:, :, EOS].masked_fill_(may_continue[:, None], -torch.inf)

    def keep_prefixes(self, logp_BKN: Tensor) -> None:
        """Within a prefix, allow only its next token, with log P = 0 if it is given."""
        if self.position > self.prefixes.shape[1]:
            return
        forced = self.prefixes[self.sentences, self.position - 1]
        allow_only(logp_BKN, forced, forced != PAD)
        if self.position <= self.given:
            hypotheses = logp_BKN.shape[1]
            indices = forced[:, None, None].expand(-1, hypotheses, 1)
            logp_BKN.scatter_(2, indices, 0.0)

    def best(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The `best_continuations` of each sentence."""
        width = logp_BKN.shape[1]
        return best_continuations(self.log_probabilities[:, :width], logp_BKN, self.beam_size)

    def sample(self, logp_BKN: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A random continuation of each hypothesis: log probabilities, parents and tokens, [B, K].

        The log probability is the model's, before temperature scaling.
        """
        assert self.keys is not None
        tokens = draw(logp_BKN, self.config, self.keys[self.sentences], self.position)
        drawn = logp_BKN.gather(2, tokens[:, :, None])
        best = self.log_probabilities + drawn[:, :, 0]
        itself = torch.arange(self.beam_size, device=best.device)
        return best, itself.expand_as(best), tokens

    def collect(self, best: Tensor, parents: Tensor, ends: Tensor) -> None:
        """Store those of the K best candidates that have ended, given as in `best`: [B, C]."""
        # The other candidates only take the places of those that end. An end among them is not one
        # of the K best, so it does not count.
        best = best[:, : self.beam_size]
        parents = parents[:, : self.beam_size]
        # Not finite: continuations of empty slots (-inf), or of a model whose weights are not
        # finite.
        ended = ends[:, : self.beam_size] & best.isfinite()
        sentences = self.sentences
        tokens_so_far = self.tokens[:, :, 1:]  # without the start symbol
        if self.reads_freely:
            # Where nothing has ended, all candidates would be -inf and change nothing.
            rows = ended.any(dim=1).nonzero().squeeze(1)
            if not len(rows):
                return
            ended = ended[rows]
            best = best[rows]
            parents = parents[rows]
            sentences = sentences[rows]
            tokens_so_far = tokens_so_far[rows]
        log_probabilities = best.masked_fill(~ended, -torch.inf)
        length = tokens_so_far.shape[2]
        indices = parents[:, :, None].expand(-1, -1, length)
        tokens = tokens_so_far.gather(1, indices)
        self.finished.add(sentences, log_probabilities, tokens, self.config)

    def unfinished(self) -> Tensor:
        """True for sentences in which an unfinished hypothesis may still beat a finished one, [B].

        A hypothesis with log probability p can at best reach the score p / lp(max_length), because
        p only falls and lp is largest there. Greedy search stops at its first finished hypothesis.
        Sampling finishes all hypotheses.
        """
        extendable = self.log_probabilities.isfinite().any(dim=1)
        if self.config.do_sample:
            return extendable
        # The score of the last of the n_best; -inf as long as a slot is empty.
        to_beat = self.finished.scores[self.sentences, -1]
        if self.beam_size == 1:
            return extendable & to_beat.isinf()
        # topk sorts, so the first unfinished hypothesis is the most probable.
        best_possible = self.log_probabilities[:, 0] / self.penalties_at_max_length
        return extendable & (best_possible > to_beat)

    def prune_finished(self, unfinished_B: Tensor) -> None:
        """Drop finished sentences once they make up DROPPED_SHARE of the batch.

        Until then, clear their slots.

        Dropping them copies the cache, and each new batch size may need new oneDNN kernels. To
        limit the number of kernels, batch sizes above 16 are multiples of 8. On a GPU, the only
        wait of a step is here.
        """
        rows = len(unfinished_B)
        unfinished = int(unfinished_B.sum())
        kept = 8 * math.ceil(unfinished / 8) if unfinished > 16 else unfinished
        if unfinished < rows:
            self.log_probabilities.masked_fill_(~unfinished_B[:, None], -torch.inf)
        if unfinished and kept > (1 - DROPPED_SHARE) * rows:
            return
        # Unfinished rows come first; finished ones fill the batch up to a multiple of 8.
        order = unfinished_B.byte().argsort(descending=True, stable=True)
        chosen = order[:kept]
        self.keep(chosen)
        if unfinished:
            self.caches = [cache.select(chosen) for cache in self.caches]

    def keep(self, rows: Tensor) -> None:
        """Keep only these sentences of the batch, and their caches as they are."""
        self.sentences = self.sentences[rows]
        self.tokens = self.tokens[rows]
        self.log_probabilities = self.log_probabilities[rows]
        self.max_lengths = self.max_lengths[rows]
        self.penalties_at_max_length = self.penalties_at_max_length[rows]


@torch.inference_mode()
def beam_search(
    models: Sequence[Transformer],
    source_BS: Tensor,
    config: DecodeConfig,
    prefixes: Sequence[list[int]] = (),
) -> list[list[Hypothesis]]:
    """The n_best translations of each sentence.

    Sources end with the end symbol. Results begin with the sentence's prefix.
    """
    return Search(models, source_BS, config, prefixes).run()
