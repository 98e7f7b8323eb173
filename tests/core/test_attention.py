"""Multi-head attention, head by head as in the paper, and what any attention must satisfy."""

import math

import pytest
import torch

from nmt.config import ModelConfig
from nmt.model import MultiHeadAttention

D_MODEL, HEADS, D_K, D_V = 6, 2, 3, 5
SCORES = {
    "scaled_dot_product": lambda q, k, v: (q * k).sum(-1) / math.sqrt(D_K),
    "dot_product": lambda q, k, v: (q * k).sum(-1),
    "additive": lambda q, k, v: (v * torch.tanh(q + k)).sum(-1),
}


def attention(kind):
    torch.manual_seed(1)
    config = ModelConfig(
        name="test", d_model=D_MODEL, heads=HEADS, d_k=D_K, d_v=D_V, attention=kind
    )
    return MultiHeadAttention(config).double()


def by_the_paper(module, x, memory, seen):
    """Concat(head_1 .. head_h) W^O (section 3.2.2); query t of head i attends to the keys s with seen[b, i, t, s]."""
    seen, outputs = seen.expand(len(x), HEADS, x.shape[1], memory.shape[1]), []
    matrices = module.input.split([D_K] * HEADS + [D_K] * HEADS + [D_V] * HEADS)
    for i in range(HEADS):
        q, k, v = (
            x @ matrices[i].T,
            memory @ matrices[HEADS + i].T,
            memory @ matrices[2 * HEADS + i].T,
        )
        scores = SCORES[module.kind](q[:, :, None], k[:, None], getattr(module, "v", q[0])[i])
        outputs.append(scores.masked_fill(~seen[:, i], -torch.inf).softmax(-1) @ v)
    return torch.cat(outputs, -1) @ module.output.T


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", SCORES)
def test_self_attention_is_the_papers(kind, causal):
    module, x = attention(kind), torch.randn(2, 4, D_MODEL).double()
    seen = torch.ones(4, 4, dtype=torch.bool)
    expected = by_the_paper(module, x, x, seen.tril() if causal else seen)
    torch.testing.assert_close(module.attend(*module.project(x), causal=causal), expected)


@pytest.mark.parametrize("shape", [(2, 1, 1, 5), (1, 1, 3, 5), (2, HEADS, 3, 5)])
@pytest.mark.parametrize("kind", SCORES)
def test_masked_attention_is_the_papers(kind, shape):
    module = attention(kind)
    x, memory = torch.randn(2, 3, D_MODEL).double(), torch.randn(2, 5, D_MODEL).double()
    mask = torch.rand(shape) < 0.5
    mask[..., 2] = True  # every query sees something
    expected = by_the_paper(module, x, memory, mask)
    query_map, keys_values_map = module.cross_maps()
    q = module.queries(x, query_map)
    k, v = module.keys_values(memory, keys_values_map)
    for form in (mask, torch.zeros(shape).double().masked_fill(~mask, -torch.inf)):
        torch.testing.assert_close(module.attend(q, k, v, form), expected)


def test_attention_in_mixed_precision_has_the_gradients_of_float32() -> None:
    attention = MultiHeadAttention(ModelConfig(d_model=32, heads=4, d_ff=32))
    x = torch.randn(2, 7, 32, requires_grad=True)

    def gradients(mixed: bool) -> tuple[torch.Tensor, ...]:
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            y = attention.attend(*attention.project(x), causal=True)
        return torch.autograd.grad(y.float().square().sum(), [x, attention.input, attention.output])

    for mixed, exact in zip(gradients(True), gradients(False), strict=True):
        assert (mixed - exact).norm() < 0.02 * exact.norm()
