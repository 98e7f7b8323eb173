"""Multi-head attention against its scores written as loops, and against what any attention must satisfy."""

import math

import pytest
import torch

import nmt.kernels.additive
from nmt.config import ModelConfig
from nmt.kernels import additive_scores
from nmt.model import MultiHeadAttention
from nmt.model.attention import neighbourhood

D_MODEL, HEADS, D_K, D_V = 6, 2, 3, 5
KINDS = pytest.mark.parametrize("kind", ["scaled_dot_product", "dot_product", "additive"])


def times(rows, matrix):
    """rows matrix^T, by the definition."""
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in matrix] for row in rows]


def dot_product(q, k):
    return sum(a * b for a, b in zip(q, k, strict=True))


def scaled_dot_product(q, k):
    return dot_product(q, k) / math.sqrt(len(q))


def attention_by_loops(q, k, v, visible, score=scaled_dot_product):
    """The softmax of one head's scores times V, where query t may look at the keys s with visible(t, s)."""
    outputs = []
    for t, query in enumerate(q):
        weights = {s: math.exp(score(query, key)) for s, key in enumerate(k) if visible(t, s)}
        total = sum(weights.values())
        outputs.append([sum(w / total * v[s][i] for s, w in weights.items()) for i in range(len(v[0]))])
    return outputs


def multi_head_by_loops(x, memory, heads, w_o, visible):
    """Concat(head_1 .. head_h) W^O; `heads` are W_i^Q, W_i^K, W_i^V and the score, and visible(i, t, s) is asked."""
    outputs = [
        attention_by_loops(
            times(x, w_q), times(memory, w_k), times(memory, w_v), lambda t, s, i=i: visible(i, t, s), score
        )
        for i, (w_q, w_k, w_v, score) in enumerate(heads)
    ]
    concatenated = [[number for head in outputs for number in head[t]] for t in range(len(x))]
    return times(concatenated, w_o)


def additive(v):
    return lambda q, k: sum(c * math.tanh(a + b) for a, b, c in zip(q, k, v, strict=True))


def random_attention(kind="scaled_dot_product"):
    """Heads, their matrices drawn one by one and their score, W^O, and the module that holds the same numbers."""
    heads = [[torch.randn(width, D_MODEL).double() for width in (D_K, D_K, D_V)] for _ in range(HEADS)]
    w_o = torch.randn(D_MODEL, HEADS * D_V).double()
    config = ModelConfig(name="test", d_model=D_MODEL, heads=HEADS, d_k=D_K, d_v=D_V, attention=kind)
    module = MultiHeadAttention(config).double()
    scores = [{"scaled_dot_product": scaled_dot_product, "dot_product": dot_product}.get(kind)] * HEADS
    if kind == "additive":
        vectors = torch.randn(HEADS, D_K).double()
        scores = [additive(vector) for vector in vectors.tolist()]
        module.v.data.copy_(vectors)
    with torch.no_grad():
        module.input.copy_(torch.cat([head[kind] for kind in range(3) for head in heads]))
        module.output.copy_(w_o)
    matrices = [[matrix.tolist() for matrix in head] for head in heads]
    return [[*head, score] for head, score in zip(matrices, scores, strict=True)], w_o.tolist(), module


def assert_same_as_loops(output, x, memory, heads, w_o, visible):
    expected = [
        multi_head_by_loops(one.tolist(), other.tolist(), heads, w_o, lambda i, t, s, b=b: visible(b, i, t, s))
        for b, (one, other) in enumerate(zip(x, memory, strict=True))
    ]
    torch.testing.assert_close(output, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def test_equation_1():
    width = 4
    module = MultiHeadAttention(ModelConfig(name="test", d_model=width, heads=1)).double()
    with torch.no_grad():
        module.output.copy_(torch.eye(width))
    q, k, v = (torch.randn(1, 1, length, width).double() for length in (3, 5, 5))
    expected = attention_by_loops(q[0, 0].tolist(), k[0, 0].tolist(), v[0, 0].tolist(), lambda t, s: True)
    torch.testing.assert_close(
        module.attend(q, k, v)[0], torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10
    )


@KINDS
def test_self_attention_is_the_papers_loops(kind):
    heads, w_o, module = random_attention(kind)
    x = torch.randn(2, 4, D_MODEL).double()
    output = module.attend(*module.project(x))
    assert_same_as_loops(output, x, x, heads, w_o, lambda b, i, t, s: True)


@KINDS
def test_causal_self_attention_is_the_papers_loops(kind):
    heads, w_o, module = random_attention(kind)
    x = torch.randn(2, 4, D_MODEL).double()
    output = module.attend(*module.project(x), causal=True)
    assert_same_as_loops(output, x, x, heads, w_o, lambda b, i, t, s: s <= t)


@pytest.mark.parametrize("shape", [(2, 1, 1, 5), (1, 1, 3, 5), (2, 1, 3, 5), (2, HEADS, 3, 5)])
@KINDS
def test_masked_attention_is_the_papers_loops(kind, shape):
    heads, w_o, module = random_attention(kind)
    x, memory = torch.randn(2, 3, D_MODEL).double(), torch.randn(2, 5, D_MODEL).double()
    mask = torch.rand(shape) < 0.5
    mask[..., 2] = True  # every query sees something
    output = module.attend(module.queries(x), *module.keys_values(memory), mask)
    seen = mask.expand(2, HEADS, 3, 5).tolist()
    assert_same_as_loops(output, x, memory, heads, w_o, lambda b, i, t, s: seen[b][i][t][s])
    added = torch.zeros(shape).double().masked_fill(~mask, -torch.inf)
    torch.testing.assert_close(module.attend(module.queries(x), *module.keys_values(memory), added), output)


def test_queries_keys_and_values_are_xavier_uniform_each_for_itself():
    module = MultiHeadAttention(ModelConfig(name="test", d_model=64, heads=4, d_k=8, d_v=48))
    q, k, v = module.input.split([32, 32, 192])
    for matrix in (q, k, v, module.output):
        bound = math.sqrt(6 / sum(matrix.shape))
        assert 0.99 * bound < matrix.abs().max().item() <= bound
        assert matrix.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
        assert matrix.mean().item() == pytest.approx(0, abs=0.1 * bound)


def additive_operands(queries=5, keys=7):
    shapes = ((2, 3, queries, 4), (2, 3, keys, 4), (3, 4))
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("block", [1, 2 * 2 * 3 * 7 * 4, 10**6])
def test_additive_scores_in_blocks_are_those_of_the_whole_layer(monkeypatch, block):
    monkeypatch.setattr(nmt.kernels.additive, "BLOCK_NUMBERS", block)
    operands = additive_operands()
    scores = additive_scores(*operands)
    q, k, v = operands
    whole = (torch.tanh(q[:, :, :, None] + k[:, :, None]) * v[:, None, None]).sum(-1)
    torch.testing.assert_close(scores, whole)
    above = torch.randn_like(whole)
    for found, expected in zip(
        torch.autograd.grad(scores, operands, above), torch.autograd.grad(whole, operands, above), strict=True
    ):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("r", [1, 2, 4, 9])
@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_neighbourhood_is_r_positions_around_a_query_or_the_last_ones(length, r):
    around, last = (neighbourhood(length, r, torch.device("cpu"), causal) for causal in (False, True))
    for t in range(length):
        assert around[t].tolist() == [s in range(t - r // 2, t - r // 2 + r) for s in range(length)]
        assert last[t].tolist() == [s in range(t - r + 1, t + 1) for s in range(length)]
    assert around.all() == (r >= 2 * length - 1)
    assert torch.equal(last, torch.ones_like(last).tril()) == (r >= length)


def test_attention_in_mixed_precision_has_the_gradients_of_float32() -> None:
    torch.manual_seed(3)
    attention = MultiHeadAttention(ModelConfig(d_model=32, heads=4, d_ff=32))
    x = torch.randn(2, 7, 32, requires_grad=True)

    def gradients(mixed: bool) -> tuple[torch.Tensor, ...]:
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            y = attention.attend(*attention.project(x), causal=True)
        return torch.autograd.grad(y.float().square().sum(), [x, attention.input, attention.output])

    for mixed, exact in zip(gradients(True), gradients(False), strict=True):
        assert (mixed - exact).norm() < 0.02 * exact.norm()
