"""Multi-head attention against its scores written as loops, and against what any attention must satisfy."""

import math

import pytest
import torch

from nmt.config import ModelConfig
from nmt.model import MultiHeadAttention
from nmt.model.attention import neighborhood

D_MODEL, HEADS, D_K, D_V = 6, 2, 3, 5


def times(rows, matrix):
    """rows matrix^T, by the definition."""
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in matrix] for row in rows]


def dot_product(q, k):
    return sum(a * b for a, b in zip(q, k, strict=True))


def scaled_dot_product(q, k):
    return dot_product(q, k) / math.sqrt(len(q))


def additive(v):
    return lambda q, k: sum(c * math.tanh(a + b) for a, b, c in zip(q, k, v, strict=True))


def attention_by_loops(q, k, v, visible, score=scaled_dot_product):
    """The softmax of one head's scores times V, where query t may look at the keys s with visible(t, s)."""
    outputs = []
    for t, query in enumerate(q):
        weights = {s: math.exp(score(query, key)) for s, key in enumerate(k) if visible(t, s)}
        total = sum(weights.values())
        outputs.append([sum(w / total * v[s][i] for s, w in weights.items()) for i in range(len(v[0]))])
    return outputs


def random_attention(kind):
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
        module.input.copy_(torch.cat([head[part] for part in range(3) for head in heads]))
        module.output.copy_(w_o)
    matrices = [[matrix.tolist() for matrix in head] for head in heads]
    return [[*head, score] for head, score in zip(matrices, scores, strict=True)], w_o.tolist(), module


def assert_same_as_loops(output, x, memory, heads, w_o, visible):
    """Concat(head_1 .. head_h) W^O; `heads` are W_i^Q, W_i^K, W_i^V and the score, and visible(b, i, t, s) is asked."""
    expected = []
    for b, (queries, keys) in enumerate(zip(x.tolist(), memory.tolist(), strict=True)):
        outputs = [
            attention_by_loops(
                *(times(rows, matrix) for rows, matrix in ((queries, w_q), (keys, w_k), (keys, w_v))),
                lambda t, s, b=b, i=i: visible(b, i, t, s),
                score,
            )
            for i, (w_q, w_k, w_v, score) in enumerate(heads)
        ]
        expected.append(times([[n for head in outputs for n in head[t]] for t in range(len(queries))], w_o))
    torch.testing.assert_close(output, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kind", ["scaled_dot_product", "dot_product", "additive"])
def test_self_attention_is_the_papers_loops(kind, causal):
    """Equation 1, and its rivals."""
    heads, w_o, module = random_attention(kind)
    x = torch.randn(2, 4, D_MODEL).double()
    output = module.attend(*module.project(x), causal=causal)
    assert_same_as_loops(output, x, x, heads, w_o, lambda b, i, t, s: s <= t or not causal)


@pytest.mark.parametrize("shape", [(2, 1, 1, 5), (1, 1, 3, 5), (2, HEADS, 3, 5)])
@pytest.mark.parametrize("kind", ["scaled_dot_product", "dot_product", "additive"])
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
    for matrix in (*module.input.split([32, 32, 192]), module.output):
        bound = math.sqrt(6 / sum(matrix.shape))
        assert 0.99 * bound < matrix.abs().max().item() <= bound
        assert matrix.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


@pytest.mark.parametrize("r", [1, 2, 4, 9])
@pytest.mark.parametrize("length", [1, 5])
def test_a_neighborhood_is_r_positions_around_a_query_or_the_last_ones(length, r):
    around, last = (neighborhood(length, r, torch.device("cpu"), causal) for causal in (False, True))
    for t in range(length):
        assert around[t].tolist() == [s in range(t - r // 2, t - r // 2 + r) for s in range(length)]
        assert last[t].tolist() == [s in range(t - r + 1, t + 1) for s in range(length)]


def test_attention_in_mixed_precision_has_the_gradients_of_float32() -> None:
    attention = MultiHeadAttention(ModelConfig(d_model=32, heads=4, d_ff=32))
    x = torch.randn(2, 7, 32, requires_grad=True)

    def gradients(mixed: bool) -> tuple[torch.Tensor, ...]:
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            y = attention.attend(*attention.project(x), causal=True)
        return torch.autograd.grad(y.float().square().sum(), [x, attention.input, attention.output])

    for mixed, exact in zip(gradients(True), gradients(False), strict=True):
        assert (mixed - exact).norm() < 0.02 * exact.norm()
