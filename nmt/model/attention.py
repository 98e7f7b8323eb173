"""Attention (section 3.2).

Shapes: B batch, T queries, S keys, D d_model, H heads, K d_k, V d_v.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.model.linear import linear


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2, figure 2 right), without biases as in the authors' code.

    The projections of queries, keys and values are one matrix, so that self-attention is one product.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.d_k is not None
        assert config.d_v is not None
        self.heads = config.heads
        self.widths = [config.heads * config.d_k, config.heads * config.d_k, config.heads * config.d_v]
        self.input = nn.Parameter(torch.empty(sum(self.widths), config.d_model))
        self.output = nn.Parameter(torch.empty(config.d_model, self.widths[2]))
        for matrix in (*self.input.split(self.widths), self.output):
            nn.init.xavier_uniform_(matrix)

    def split_heads(self, x_BTD: Tensor) -> Tensor:
        """[B, T, H * K] -> [B, H, T, K]."""
        return x_BTD.view(*x_BTD.shape[:-1], self.heads, -1).transpose(1, 2)

    def project(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of self-attention."""
        q, k, v = linear(x_BTD, self.input).split(self.widths, dim=-1)
        return self.split_heads(q), self.split_heads(k), self.split_heads(v)

    def queries(self, x_BTD: Tensor) -> Tensor:
        """Queries of cross-attention, [B, H, T, K]."""
        return self.split_heads(linear(x_BTD, self.input[: self.widths[0]]))

    def keys_values(self, memory_BSD: Tensor) -> tuple[Tensor, Tensor]:
        """Keys [B, H, S, K] and values [B, H, S, V] of cross-attention."""
        k, v = linear(memory_BSD, self.input[self.widths[0] :]).split(self.widths[1:], dim=-1)
        return self.split_heads(k), self.split_heads(v)

    def attend(
        self, q_BHTK: Tensor, k_BHSK: Tensor, v_BHSV: Tensor, mask: Tensor | None = None, causal: bool = False
    ) -> Tensor:
        """softmax(Q K^T / sqrt(d_k)) V (equation 1) of all heads, then W^O: [B, T, D].

        `mask` is broadcastable to [B, H, T, S], True where a query may look; `causal` hides keys after t from query t.
        """
        x_BHTV = F.scaled_dot_product_attention(q_BHTK, k_BHSK, v_BHSV, attn_mask=mask, is_causal=causal)
        return linear(x_BHTV.transpose(1, 2).flatten(2), self.output)
