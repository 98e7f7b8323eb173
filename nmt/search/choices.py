"""Choose the best next tokens, and forbid others.

Shapes: B sentences, K hypotheses per sentence, T tokens so far, N vocabulary.
"""

import torch
from torch import Tensor

from nmt.config import PAD

BLOCK_TOKENS = 64
"""Adjacent vocabulary entries that `largest` skips together.

Smaller blocks have more maxima to compare, larger ones more entries to read a second time.
"""


def topk(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values in each row, and their indices. For k = 1, max is faster."""
    if k == 1:
        return x.max(dim=1, keepdim=True)
    return x.topk(k, dim=1)


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values in each row of x, [M, N], and their indices; fewer if N < k.

    The largest comes first. The values lie in the k blocks with the largest maxima, so most of a
    row is read once and never sorted, unlike with topk.
    """
    rows, width = x.shape
    blocks = width // BLOCK_TOKENS
    # With few blocks, too large a part of each row would be read twice.
    if blocks < 4 * k:
        return topk(x, min(k, width))
    end = blocks * BLOCK_TOKENS
    in_blocks = x[:, :end].unflatten(1, (blocks, BLOCK_TOKENS))
    maxima = in_blocks.amax(dim=2)
    _, chosen = topk(maxima, k)
    within = torch.arange(BLOCK_TOKENS, device=x.device)
    indices = (chosen[:, :, None] * BLOCK_TOKENS + within).flatten(1)
    # Entries after the last whole block are always candidates.
    rest = torch.arange(end, width, device=x.device)
    indices = torch.cat((indices, rest.expand(rows, -1)), dim=1)
    values, places = topk(x.gather(1, indices), k)
    return values, indices.gather(1, places)


def allow_only(logp_BKN: Tensor, tokens_B: Tensor, where_B: Tensor) -> None:
    """Where `where_B` is true, set the log probability of all tokens but `tokens_B` to -inf."""
    vocabulary = torch.arange(logp_BKN.shape[2], device=logp_BKN.device)
    others_BN = vocabulary != tokens_B[:, None]
    forbidden_BN = others_BN & where_B[:, None]
    logp_BKN.masked_fill_(forbidden_BN[:, None, :], -torch.inf)


def forbid_repetition(logp_BKN: Tensor, tokens_BKT: Tensor, n: int, where_B: Tensor) -> None:
    """Where `where_B` is true, set the log probability of tokens that repeat an n-gram to -inf."""
    length = tokens_BKT.shape[2]
    if length < n:
        return
    grams = tokens_BKT.unfold(2, n, 1)
    # The n - 1 tokens before the next one. For n = 1, there are none, and they match everywhere.
    last = tokens_BKT[:, :, None, length - n + 1 :]
    is_again = (grams[..., :-1] == last).all(dim=3)
    again = is_again & where_B[:, None, None]
    # scatter needs an index for each n-gram. An n-gram that does not match gets the index PAD,
    # which is forbidden anyway.
    repeated = grams[..., -1].masked_fill(~again, PAD)
    logp_BKN.scatter_(2, repeated, -torch.inf)


def best_continuations(
    before_BK: Tensor, logp_BKN: Tensor, beam_size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The best continuations of each sentence: log probabilities, parents and tokens, [B, C].

    `before_BK` are the log probabilities of the hypotheses, and `logp_BKN` those of their next
    tokens. Parents are the continued hypotheses. Each hypothesis has only one continuation that
    ends it, so at least `beam_size` of the best 2 * `beam_size` are unfinished.
    """
    batch, width, _ = logp_BKN.shape
    # Greedy search stops when its best continuation is the end symbol.
    candidates = 1 if beam_size == 1 else 2 * beam_size
    # The best continuations of each hypothesis, then the best of all hypotheses.
    logp, tokens = largest(logp_BKN.flatten(0, 1), candidates)
    sums_BKC = before_BK[:, :, None] + logp.view(batch, width, -1)
    kept = min(candidates, sums_BKC[0].numel())
    best, indices = sums_BKC.flatten(1).topk(kept, dim=1)
    parents = indices // sums_BKC.shape[2]
    return best, parents, tokens.view(batch, -1).gather(1, indices)
