"""Sampling tokens such that a sample depends on the seed and the sentence alone, not on the batch around it.

Gumbel noise is added to each token's log probability, and the token with the largest sum is taken (Gumbel 1954;
Maddison et al. 2014). The noise is a hash of seed, sentence, hypothesis, position and token, instead of a random
generator whose state would depend on the batch. Batching still changes the rounding of probabilities, which matters
only if two sums are nearly equal.

Shapes: B sentences, K hypotheses of each, N vocabulary, C candidate tokens.
"""

import hashlib

import numpy as np
import torch
from torch import Tensor

from nmt.config import PAD, DecodeConfig
from nmt.data import INCREMENT, shifted, splitmix

HASH_BITS = 40
"""Bits of a hash that become a number between 0 and 1."""


def sentence_keys(source_BS: Tensor, count: int, seed: int) -> Tensor:
    """A 64-bit key for each of `count` hypotheses of each sentence, a hash of its tokens and the seed: [B, K]."""
    digests = [
        hashlib.blake2b(repr((seed, [token for token in tokens if token != PAD], k)).encode(), digest_size=8).digest()
        for tokens in source_BS.tolist()
        for k in range(count)
    ]
    keys = np.frombuffer(b"".join(digests), np.dtype("<i8")).astype(np.int64).reshape(len(source_BS), count)
    return torch.from_numpy(keys).to(source_BS.device)


def gumbel(keys_BK: Tensor, position: int, tokens: Tensor) -> Tensor:
    """Gumbel noise for each of `tokens`, which are [C], or [B, K, C] if they differ by row: [B, K, C]."""
    # The signed 64-bit integer with the lowest 64 bits.
    rows = splitmix(keys_BK + ((position * INCREMENT + 2**63) % 2**64 - 2**63))
    hashes = splitmix(rows[:, :, None] + tokens * INCREMENT)
    uniform = (shifted(hashes, 64 - HASH_BITS).float() + 0.5) * 2.0**-HASH_BITS
    # Large noise, which decides, comes from small numbers, where floating point is finest; 1 would give -inf.
    return uniform.clamp_(max=1 - 2.0**-24).neg_().log1p_().neg_().log_().neg_()


def draw(logp_BKN: Tensor, config: DecodeConfig, keys_BK: Tensor, position: int) -> Tensor:
    """A random token for each hypothesis, [B, K], among the most likely ones by top_k and top_p."""
    vocabulary = logp_BKN.shape[2]
    if config.top_k == 0 and config.top_p == 1:
        tokens = torch.arange(vocabulary, device=logp_BKN.device)
        return (logp_BKN / config.temperature + gumbel(keys_BK, position, tokens)).argmax(dim=2)
    likely, tokens = logp_BKN.topk(min(config.top_k or vocabulary, vocabulary), dim=2)
    likely = likely / config.temperature
    if config.top_p < 1:
        # A hypothesis that has ended may have no token left to go on with: 0 / 0.
        probabilities = likely.double().softmax(dim=2).nan_to_num()
        likely = likely.masked_fill(probabilities.cumsum(dim=2) - probabilities >= config.top_p, -torch.inf)
    indices = (likely + gumbel(keys_BK, position, tokens)).argmax(dim=2, keepdim=True)
    return tokens.gather(2, indices)[:, :, 0]
