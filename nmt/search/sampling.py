"""Random tokens that depend only on the seed and the sentence.

Sampling adds Gumbel noise to the log probability of each token and takes the token with the largest
sum (Gumbel 1954; Maddison et al. 2014). The noise is a hash of seed, sentence, hypothesis, position
and token, so samples do not depend on the batch, as they would with a random number generator.

Shapes: B sentences, K hypotheses per sentence, N vocabulary, S source positions, C candidates.
"""

import hashlib

import numpy as np
import torch
from torch import Tensor

from nmt.config import PAD, DecodeConfig
from nmt.data import INCREMENT, shifted, splitmix

HASH_BITS = 40
"""Bits of a hash that form a number between 0 and 1.

Gumbel noise is then at most about 28 (41 ln 2), so tokens of probability 2^-40 can still be drawn.
"""


def sentence_keys(source_BS: Tensor, count: int, seed: int) -> Tensor:
    """64-bit keys for `count` hypotheses per sentence, [B, K].

    A key is a hash of the source tokens, the number of the hypothesis and the seed.
    """
    digests = []
    for padded in source_BS.tolist():
        # Padding depends on the other sentences of the batch.
        tokens = [token for token in padded if token != PAD]
        for k in range(count):
            text = repr((seed, tokens, k))
            digests.append(hashlib.blake2b(text.encode(), digest_size=8).digest())
    # Little-endian on every machine, so that samples are the same on all of them.
    keys = np.frombuffer(b"".join(digests), np.dtype("<i8")).astype(np.int64)
    return torch.from_numpy(keys.reshape(len(source_BS), count)).to(source_BS.device)


def gumbel(keys_BK: Tensor, position: int, tokens: Tensor) -> Tensor:
    """Gumbel noise, -log(-log(1 - u)) for uniform u, [B, K, C].

    `tokens` has the shape [C] or, if the tokens differ by row, [B, K, C].
    """
    offset = (position * INCREMENT + 2**63) % 2**64 - 2**63  # wrapped into a signed 64-bit integer
    # Two SplitMix64 sequences: one starts at the key and is indexed by position, the other starts
    # at the result and is indexed by token.
    rows = splitmix(keys_BK + offset)
    hashes = splitmix(rows[:, :, None] + tokens * INCREMENT)
    uniform = (shifted(hashes, 64 - HASH_BITS).float() + 0.5) * 2.0**-HASH_BITS
    # Large noise, which decides the draw, comes from numbers near 0, where floats are most precise.
    # 1 would give -inf.
    return uniform.clamp_(max=1 - 2.0**-24).neg_().log1p_().neg_().log_().neg_()


def draw(logp_BKN: Tensor, config: DecodeConfig, keys_BK: Tensor, position: int) -> Tensor:
    """A random token for each hypothesis, [B, K], from the likely ones within top_k and top_p."""
    vocabulary = logp_BKN.shape[2]
    # All tokens are candidates, so none have to be sorted.
    if config.top_k == 0 and config.top_p == 1:
        tokens = torch.arange(vocabulary, device=logp_BKN.device)
        noise = gumbel(keys_BK, position, tokens)
        return (logp_BKN / config.temperature + noise).argmax(dim=2)
    top_k = config.top_k or vocabulary
    likely, tokens = logp_BKN.topk(min(top_k, vocabulary), dim=2)
    likely = likely / config.temperature
    if config.top_p < 1:
        # After a hypothesis has ended, all its next tokens may be forbidden. Softmax then divides 0
        # by 0.
        probabilities = likely.double().softmax(dim=2).nan_to_num()
        # The probability of likelier tokens without the token's own, so the likeliest is always
        # kept.
        more_likely = probabilities.cumsum(dim=2) - probabilities
        likely = likely.masked_fill(more_likely >= config.top_p, -torch.inf)
    noise = gumbel(keys_BK, position, tokens)
    indices = (likely + noise).argmax(dim=2, keepdim=True)
    return tokens.gather(2, indices)[:, :, 0]
