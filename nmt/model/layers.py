"""The layers of the Transformer (section 3): attention, feed-forward networks, and their stacks.

Shapes: B batch, T queries or target positions, S keys or source positions, D d_model, H heads,
Q d_k (the width of queries and keys), V d_v.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.config import ModelConfig
from nmt.kernels import Dropout, Linear, linear, on_cpu

KeysValues = tuple[Tensor, Tensor]
"""Keys [B, H, S, Q] and values [B, H, S, V] of all heads."""

LinearMap = tuple[Tensor, Tensor | None]
"""A matrix, [outputs, D], and its bias, [outputs]."""


def neighborhood(length: int, r: int, device: torch.device, causal: bool = False) -> Tensor:
    """Restricted self-attention (section 4): True where query t may attend to key s.

    Returns [length, length]. The keys are the r positions around t (for even r, one more before t
    than after) or, if `causal`, the r positions up to t.
    """
    positions = torch.arange(length, device=device)
    ahead = positions - positions[:, None]
    if causal:
        return (ahead > -r) & (ahead <= 0)
    before = r // 2
    after = r - before
    return (ahead >= -before) & (ahead < after)


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2, figure 2 right).

    The projections have no biases by default, as in the authors' code. Those to queries, keys and
    values share one matrix, so self-attention computes them in one product.

    `model.attention` selects how a query and a key are scored (section 3.2.1):

    - scaled_dot_product: q k^T / sqrt(d_k) (equation 1);
    - dot_product: q k^T;
    - additive: v^T tanh(W q + U k) (Bahdanau et al. 2015), where W and U are the projections of the
      head, and v, [H, Q], is the only additional parameter.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.d_k
        assert config.d_v
        self.kind = config.attention
        self.heads = config.heads
        keys_width = config.heads * config.d_k
        values_width = config.heads * config.d_v
        self.widths = [keys_width, keys_width, values_width]  # of queries, keys and values
        # Matrices are [outputs, inputs], as in torch.nn.Linear: the transposes of the paper's W.
        # Since d_k and d_v need not be d_model / heads (Table 3, rows B), W^O need not be square.
        self.input = nn.Parameter(torch.empty(sum(self.widths), config.d_model))
        self.output = nn.Parameter(torch.empty(config.d_model, values_width))
        # Xavier's variance follows from a matrix's shape, so each projection is initialized alone.
        for matrix in (*self.input.split(self.widths), self.output):
            nn.init.xavier_uniform_(matrix)
        self.input_bias: nn.Parameter | None = None
        self.output_bias: nn.Parameter | None = None
        if config.attention_bias:
            self.input_bias = nn.Parameter(torch.zeros(sum(self.widths)))
            self.output_bias = nn.Parameter(torch.zeros(config.d_model))
        if self.kind == "additive":
            self.v = nn.Parameter(torch.empty(config.heads, config.d_k))
            # Each head's vector is initialized alone: Xavier's variance would otherwise fall with
            # the number of heads.
            for vector in self.v.split(1):
                nn.init.xavier_uniform_(vector)

    def split_heads(self, x_BTD: Tensor) -> Tensor:
        """[B, T, H * Q] -> [B, H, T, Q], or the same with V."""
        return x_BTD.view(*x_BTD.shape[:-1], self.heads, -1).transpose(1, 2)

    def project(self, x_BTD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of self-attention."""
        q, k, v = linear(x_BTD, self.input, self.input_bias).split(self.widths, dim=-1)
        return self.split_heads(q), self.split_heads(k), self.split_heads(v)

    def cross_maps(self) -> tuple[LinearMap, LinearMap]:
        """The map to the queries of cross-attention, and the map to its keys and values.

        One split, because the gradient of each slice of a matrix is a whole matrix with zeros.
        """
        widths = [self.widths[0], self.widths[1] + self.widths[2]]
        queries, keys_values = self.input.split(widths)
        if self.input_bias is None:
            return (queries, None), (keys_values, None)
        query_bias, keys_values_bias = self.input_bias.split(widths)
        return (queries, query_bias), (keys_values, keys_values_bias)

    def queries(self, x_BTD: Tensor, query_map: LinearMap) -> Tensor:
        """Queries of cross-attention, [B, H, T, Q]."""
        return self.split_heads(linear(x_BTD, *query_map))

    def keys_values(self, memory_BSD: Tensor, keys_values_map: LinearMap) -> KeysValues:
        """Keys and values of cross-attention."""
        k, v = linear(memory_BSD, *keys_values_map).split(self.widths[1:], dim=-1)
        return self.split_heads(k), self.split_heads(v)

    def weights(
        self,
        q_BHTQ: Tensor,
        k_BHSQ: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """The softmax of the scores (section 3.2.1, equation 1, figure 2 left): [B, H, T, S].

        The masks are those of `attend`.
        """
        if self.kind == "additive":
            # This tensor, with T, S and Q, is why additive attention needs more memory. The fused
            # kernels of torch compute only dot products.
            hidden_BHTSQ = torch.tanh(q_BHTQ[:, :, :, None] + k_BHSQ[:, :, None])
            scores_BHTS = torch.einsum("bhtsq,hq->bhts", hidden_BHTSQ, self.v)
        else:
            scores_BHTS = q_BHTQ @ k_BHSQ.transpose(2, 3)
            if self.kind == "scaled_dot_product":
                # Without this, scores grow with d_k and push the softmax to where gradients vanish.
                scores_BHTS = scores_BHTS / math.sqrt(q_BHTQ.shape[3])
        if causal:
            # Only this formula needs the mask as a tensor. The fused kernels get the flag instead.
            shape = scores_BHTS.shape[2:]
            mask = torch.ones(shape, dtype=torch.bool, device=scores_BHTS.device).tril()
        if mask is None:
            return scores_BHTS.softmax(dim=3)
        # Minus infinity, as in section 3.2.3. Training masks with booleans, a search with numbers
        # (`DecoderCache`).
        if mask.dtype == torch.bool:
            scores_BHTS = scores_BHTS.masked_fill(~mask, -torch.inf)
        else:
            scores_BHTS = scores_BHTS + mask
        return scores_BHTS.softmax(dim=3)

    def attend(
        self,
        q_BHTQ: Tensor,
        k_BHSQ: Tensor,
        v_BHSV: Tensor,
        mask: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """softmax(Q K^T / sqrt(d_k)) V for all heads, then W^O: [B, T, D].

        See section 3.2.1, equation 1 and figure 2 left. `mask` is broadcastable to [B, H, T, S]:
        True where a query may attend, or numbers to add to the scores. `causal` hides keys after t
        from query t.
        """
        if self.kind == "additive":
            x_BHTV = self.weights(q_BHTQ, k_BHSQ, mask, causal) @ v_BHSV
        else:
            x_BHTV = self.dot_product_attention(q_BHTQ, k_BHSQ, v_BHSV, mask, causal)
        x_BTV = x_BHTV.transpose(1, 2).flatten(2)  # concatenates the heads
        return linear(x_BTV, self.output, self.output_bias)

    def dot_product_attention(
        self,
        q_BHTQ: Tensor,
        k_BHSQ: Tensor,
        v_BHSV: Tensor,
        mask: Tensor | None,
        causal: bool,
    ) -> Tensor:
        """`weights` times values, by torch's fused kernels: [B, H, T, V]."""
        scale = 1.0 if self.kind == "dot_product" else None  # None: 1 / sqrt(d_k)
        # On CPUs, torch 2.13 takes three times as long for gradients in bfloat16 as in float32.
        slow = on_cpu(q_BHTQ) and q_BHTQ.dtype == torch.bfloat16 and q_BHTQ.requires_grad
        if not slow:
            return F.scaled_dot_product_attention(
                q_BHTQ, k_BHSQ, v_BHSV, mask, is_causal=causal, scale=scale
            )
        # Under autocast, torch would convert the arguments back to bfloat16.
        with torch.autocast("cpu", enabled=False):
            x_BHTV = F.scaled_dot_product_attention(
                q_BHTQ.float(), k_BHSQ.float(), v_BHSV.float(), mask, is_causal=causal, scale=scale
            )
        return x_BHTV.to(q_BHTQ)


class SSRU(nn.Module):
    """A simpler simple recurrent unit (Kim et al. 2019), instead of the decoder's self-attention.

    c_t = f_t c_(t-1) + (1 - f_t) W x_t, where f_t = sigmoid(W_f x_t + b_f) and c_0 = 0. The output
    is max(0, c_t).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.input = nn.Parameter(torch.empty(config.d_model, config.d_model))
        self.forget = nn.Parameter(torch.empty(config.d_model, config.d_model))
        for matrix in (self.input, self.forget):
            nn.init.xavier_uniform_(matrix)
        self.forget_bias = nn.Parameter(torch.zeros(config.d_model))

    def forward(
        self,
        x_BTD: Tensor,
        remember: Callable[[Tensor, Tensor], Tensor] | None,
    ) -> Tensor:
        """Process all positions or, in a search, only the next, whose state `remember` computes."""
        # Under autocast, products are bfloat16 even if x is float32. The recurrence keeps the type
        # of x.
        new = linear(x_BTD, self.input).to(x_BTD)
        forget = torch.sigmoid(linear(x_BTD, self.forget, self.forget_bias).to(x_BTD))
        if remember:
            return F.relu(remember(forget, new))
        # A parallel scan in O(log T) products. At position t, state and forget describe the last
        # `reach` positions up to t; two neighbors together describe twice as many.
        state = (1 - forget) * new
        reach = 1
        while reach < x_BTD.shape[1]:
            later_state = state[:, reach:] + forget[:, reach:] * state[:, :-reach]
            later_forget = forget[:, reach:] * forget[:, :-reach]
            # The first `reach` positions have no earlier neighbor, so they are complete.
            state = torch.cat((state[:, :reach], later_state), dim=1)
            forget = torch.cat((forget[:, :reach], later_forget), dim=1)
            reach *= 2
        return F.relu(state)


class QuickGELU(nn.Module):
    """An approximation of GELU (Hendrycks and Gimpel 2016)."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "swish": nn.SiLU,
    "gelu": nn.GELU,
    # What Marian before 1.12.3 calls gelu.
    "quick_gelu": QuickGELU,
}


class FeedForward(nn.Sequential):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (section 3.3, equation 2), or with another activation."""

    def __init__(self, config: ModelConfig) -> None:
        inner = Linear(config.d_model, config.d_ff)
        outer = Linear(config.d_ff, config.d_model)
        for product in (inner, outer):
            # The initialization of the authors' code, not that of torch.nn.Linear.
            nn.init.xavier_uniform_(product.weight)
            nn.init.zeros_(product.bias)
        super().__init__(inner, ACTIVATIONS[config.activation](), outer)


class Residual(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))) (sections 3.1 and 5.4), or the pre-norm variant:

    x + Dropout(Sublayer(LayerNorm(x))).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.post_norm = config.norm == "post"
        self.norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        # Dropout applies to a sublayer's output before the sum (section 5.4), never within a
        # sublayer.
        if self.post_norm:
            return self.norm(x + self.dropout(sublayer(x)))
        return x + self.dropout(sublayer(self.norm(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (section 3.1, figure 1 left)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        # model.safetensors names tensors by these attributes: a new name would make older models
        # unreadable.
        self.self_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residual_1 = Residual(config)
        self.residual_2 = Residual(config)

    def forward(self, x_BSD: Tensor, mask: Tensor | None) -> Tensor:
        def attend_to_all(x: Tensor) -> Tensor:
            q, k, v = self.self_attention.project(x)
            return self.self_attention.attend(q, k, v, mask)

        x_BSD = self.residual_1(x_BSD, attend_to_all)
        return self.residual_2(x_BSD, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention, then feed-forward (section 3.1, figure 1 right).

    Section 3.2.3 describes the attention.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        # Only one of the two exists, so that the weights contain nothing unused.
        self.ssru = SSRU(config) if config.decoder == "ssru" else None
        if self.ssru is None:
            self.self_attention = MultiHeadAttention(config)
        self.cross_attention = MultiHeadAttention(config)
        self.feed_forward = FeedForward(config)
        self.residual_1 = Residual(config)
        self.residual_2 = Residual(config)
        self.residual_3 = Residual(config)

    def forward(
        self,
        x_BTD: Tensor,
        memory: Tensor | KeysValues,
        source_mask: Tensor | None,
        target_mask: Tensor | None = None,
        remember: Callable[[Tensor, Tensor], Any] | None = None,
    ) -> Tensor:
        """Process all target positions or, in a search, only the next.

        `memory` is the encoder's output, [B, S, D], or its keys and values. The masks are those of
        cross-attention and of self-attention, as in `MultiHeadAttention.attend`. Without
        `target_mask`, a position sees all earlier ones. In a search, `remember` stores the keys and
        values of the next position, and returns all of them.
        """
        cross = self.cross_attention

        def look_back(x: Tensor) -> Tensor:
            if self.ssru:
                return self.ssru(x, remember)
            attention = self.self_attention
            q, k, v = attention.project(x)
            if remember:
                k, v = remember(k, v)
            # `target_mask` is already causal, and a search knows no later positions.
            is_causal = target_mask is None and remember is None
            return attention.attend(q, k, v, target_mask, causal=is_causal)

        def attend_to_memory(x: Tensor) -> Tensor:
            query_map, keys_values_map = cross.cross_maps()
            q = cross.queries(x, query_map)
            # In training, each layer projects the memory once. A search has already projected it
            # before its first step.
            if isinstance(memory, Tensor):
                k, v = cross.keys_values(memory, keys_values_map)
            else:
                k, v = memory
            return cross.attend(q, k, v, source_mask)

        x_BTD = self.residual_1(x_BTD, look_back)
        x_BTD = self.residual_2(x_BTD, attend_to_memory)
        return self.residual_3(x_BTD, self.feed_forward)
