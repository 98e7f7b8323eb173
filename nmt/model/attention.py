"""Attention (section 3.2).

Shapes: B batch, T queries, S keys, D d_model, H heads, K d_k, V d_v.
"""

import math
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.kernels import linear

KeysValues = tuple[Tensor, Tensor]
"""Keys [B, H, S, K] and values [B, H, S, V] of all heads."""


def neighborhood(length: int, r: int, device: torch.device, causal: bool = False) -> Tensor:
    """Restricted self-attention (section 4): True where query t may attend to key s, [length, length].

    The keys are the r positions around t (for even r, one more before t than after) or, if `causal`, the r up to t.
    """
    positions = torch.arange(length, device=device)
    ahead = positions - positions[:, None]
    return (ahead > -r) & (ahead <= 0) if causal else (ahead >= -(r // 2)) & (ahead < r - r // 2)


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2, figure 2 right); by default without biases, as in the authors' code.

    Query, key and value projections share one matrix, so self-attention computes them in one product.

    `model.attention` selects how query-key pairs are scored (section 3.2.1): scaled_dot_product, q k^T / sqrt(d_k)
    (equation 1); dot_product, q k^T; or additive, v^T tanh(W q + U k) (Bahdanau et al. 2015), where W and U are the
    head's projections and v, [H, K], is the only additional parameter.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.d_k
        assert config.d_v
        self.kind, self.heads = config.attention, config.heads
        self.widths = [config.heads * config.d_k, config.heads * config.d_k, config.heads * config.d_v]
        self.input = nn.Parameter(torch.empty(sum(self.widths), config.d_model))
        self.output = nn.Parameter(torch.empty(config.d_model, self.widths[2]))
        for matrix in (*self.input.split(self.widths), self.output):
            nn.init.xavier_uniform_(matrix)
        self.input_bias = nn.Parameter(torch.zeros(sum(self.widths))) if config.attention_bias else None
        self.output_bias = nn.Parameter(torch.zeros(config.d_model)) if config.attention_bias else None
        if self.kind == "additive":
            self.v = nn.Parameter(torch.empty(config.heads, config.d_k))
            for vector in self.v.split(1):
                nn.init.xavier_uniform_(vector)

    def split_heads(self, x_BTD: Tensor) -> Tensor:
        """[B, T, H * K] -> [B, H, T, K]."""
        return x_BTD.view(*x_BTD.shape[:-1], self.heads, -1).transpose(1, 2)

    def project(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of self-attention."""
        q, k, v = linear(x_BTD, self.input, self.input_bias).split(self.widths, dim=-1)
        return self.split_heads(q), self.split_heads(k), self.split_heads(v)

    def queries(self, x_BTD: Tensor) -> Tensor:
        """Queries of cross-attention, [B, H, T, K]."""
        bias = None if self.input_bias is None else self.input_bias[: self.widths[0]]
        return self.split_heads(linear(x_BTD, self.input[: self.widths[0]], bias))

    def keys_values(self, memory_BSD: Tensor) -> KeysValues:
        """Keys and values of cross-attention."""
        bias = None if self.input_bias is None else self.input_bias[self.widths[0] :]
        k, v = linear(memory_BSD, self.input[self.widths[0] :], bias).split(self.widths[1:], dim=-1)
        return self.split_heads(k), self.split_heads(v)

    def weights(self, q_BHTK: Tensor, k_BHSK: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """The softmax of the scores, [B, H, T, S]; `mask` and `causal` as in `attend`."""
        if self.kind == "additive":
            hidden_BHTSK = torch.tanh(q_BHTK[:, :, :, None] + k_BHSK[:, :, None])
            scores_BHTS = torch.einsum("bhtsk,hk->bhts", hidden_BHTSK, self.v)
        else:
            scores_BHTS = q_BHTK @ k_BHSK.transpose(2, 3)
            if self.kind == "scaled_dot_product":
                scores_BHTS = scores_BHTS / math.sqrt(q_BHTK.shape[3])
        if causal:
            mask = torch.ones(scores_BHTS.shape[2:], dtype=torch.bool, device=scores_BHTS.device).tril()
        if mask is not None:
            is_bool = mask.dtype == torch.bool
            scores_BHTS = scores_BHTS.masked_fill(~mask, -torch.inf) if is_bool else scores_BHTS + mask
        return scores_BHTS.softmax(dim=3)

    def attend(
        self, q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """softmax(Q K^T / sqrt(d_k)) V (section 3.2.1, equation 1) for all heads, then W^O: [B, T, D].

        `mask` is broadcastable to [B, H, T, S]: True where a query may attend, or numbers to add to the scores.
        `causal` hides keys after t from query t.
        """
        if self.kind == "additive":
            x_BHTV = self.weights(q_BHTK, k_BHSK, mask, causal) @ v_BHSV
        else:
            scale = 1.0 if self.kind == "dot_product" else None
            # On CPUs, torch 2.13 takes three times as long to compute gradients in bfloat16 as in float32.
            slow = q_BHTK.device.type == "cpu" and q_BHTK.dtype == torch.bfloat16 and q_BHTK.requires_grad
            with torch.autocast("cpu", enabled=False) if slow else nullcontext():
                q, k, v = (x.float() if slow else x for x in (q_BHTK, k_BHSK, v_BHSV))
                x_BHTV = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, scale=scale).to(q_BHTK)
        return linear(x_BHTV.transpose(1, 2).flatten(2), self.output, self.output_bias)
