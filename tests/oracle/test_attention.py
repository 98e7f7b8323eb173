"""Multi-head attention against equation 1 written as loops, and against what any attention must satisfy."""

import math

import pytest
import torch

from nmt.config import ModelConfig
from nmt.model.attention import MultiHeadAttention

D_MODEL, HEADS, D_K, D_V = 6, 2, 3, 5


def times(rows, matrix):
    """rows matrix^T, by the definition."""
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in matrix] for row in rows]


def attention_by_loops(q, k, v, visible):
    """softmax(Q K^T / sqrt(d_k)) V of one head, where query t may look at the keys s with visible(t, s)."""
    outputs = []
    for t, row in enumerate(times(q, k)):
        weights = {s: math.exp(score / math.sqrt(len(q[0]))) for s, score in enumerate(row) if visible(t, s)}
        total = sum(weights.values())
        outputs.append([sum(w / total * v[s][i] for s, w in weights.items()) for i in range(len(v[0]))])
    return outputs


def multi_head_by_loops(x, memory, heads, w_o, visible):
    """Concat(head_1 .. head_h) W^O; `heads` are the matrices (W_i^Q, W_i^K, W_i^V), and visible(i, t, s) is asked."""
    outputs = [
        attention_by_loops(times(x, w_q), times(memory, w_k), times(memory, w_v), lambda t, s, i=i: visible(i, t, s))
        for i, (w_q, w_k, w_v) in enumerate(heads)
    ]
    concatenated = [[number for head in outputs for number in head[t]] for t in range(len(x))]
    return times(concatenated, w_o)


def random_attention():
    """Head matrices drawn one by one, W^O, and the module that holds the same numbers."""
    heads = [[torch.randn(width, D_MODEL).double() for width in (D_K, D_K, D_V)] for _ in range(HEADS)]
    w_o = torch.randn(D_MODEL, HEADS * D_V).double()
    module = MultiHeadAttention(ModelConfig(name="test", d_model=D_MODEL, heads=HEADS, d_k=D_K, d_v=D_V)).double()
    with torch.no_grad():
        module.input.copy_(torch.cat([head[kind] for kind in range(3) for head in heads]))
        module.output.copy_(w_o)
    return [[matrix.tolist() for matrix in head] for head in heads], w_o.tolist(), module


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


def test_self_attention_is_the_papers_loops():
    heads, w_o, module = random_attention()
    x = torch.randn(2, 4, D_MODEL).double()
    output = module.attend(*module.project(x))
    assert_same_as_loops(output, x, x, heads, w_o, lambda b, i, t, s: True)


def test_causal_self_attention_is_the_papers_loops():
    heads, w_o, module = random_attention()
    x = torch.randn(2, 4, D_MODEL).double()
    output = module.attend(*module.project(x), causal=True)
    assert_same_as_loops(output, x, x, heads, w_o, lambda b, i, t, s: s <= t)


def test_cross_attention_is_the_papers_loops():
    heads, w_o, module = random_attention()
    x, memory = torch.randn(2, 3, D_MODEL).double(), torch.randn(2, 5, D_MODEL).double()
    output = module.attend(module.queries(x), *module.keys_values(memory))
    assert_same_as_loops(output, x, memory, heads, w_o, lambda b, i, t, s: True)


@pytest.mark.parametrize("shape", [(2, 1, 1, 5), (1, 1, 3, 5), (2, 1, 3, 5), (2, HEADS, 3, 5)])
def test_masked_attention_is_the_papers_loops(shape):
    heads, w_o, module = random_attention()
    x, memory = torch.randn(2, 3, D_MODEL).double(), torch.randn(2, 5, D_MODEL).double()
    mask = torch.rand(shape) < 0.5
    mask[..., 2] = True  # every query sees something
    output = module.attend(module.queries(x), *module.keys_values(memory), mask)
    seen = mask.expand(2, HEADS, 3, 5).tolist()
    assert_same_as_loops(output, x, memory, heads, w_o, lambda b, i, t, s: seen[b][i][t][s])


def test_a_masked_key_is_as_good_as_absent():
    _, _, module = random_attention()
    x, memory = torch.randn(1, 3, D_MODEL).double(), torch.randn(1, 5, D_MODEL).double()
    mask = torch.tensor([True, False, True, True, False])
    masked = module.attend(module.queries(x), *module.keys_values(memory), mask[None, None, None])
    absent = module.attend(module.queries(x), *module.keys_values(memory[:, mask]))
    torch.testing.assert_close(masked, absent)


def test_the_order_of_keys_does_not_matter():
    _, _, module = random_attention()
    x, memory = torch.randn(1, 3, D_MODEL).double(), torch.randn(1, 5, D_MODEL).double()
    order = torch.tensor([3, 0, 4, 2, 1])
    one = module.attend(module.queries(x), *module.keys_values(memory))
    other = module.attend(module.queries(x), *module.keys_values(memory[:, order]))
    torch.testing.assert_close(one, other)


def test_projections_have_no_biases():
    _, _, module = random_attention()
    nothing = torch.zeros(1, 3, D_MODEL).double()
    assert not module.attend(*module.project(nothing)).any()
    assert {name for name, _ in module.named_parameters()} == {"input", "output"}


def test_queries_keys_and_values_are_xavier_uniform_each_for_itself():
    module = MultiHeadAttention(ModelConfig(name="test", d_model=64, heads=4, d_k=8, d_v=48))
    q, k, v = module.input.split([32, 32, 192])
    for matrix in (q, k, v, module.output):
        bound = math.sqrt(6 / sum(matrix.shape))
        assert 0.99 * bound < matrix.abs().max().item() <= bound
        assert matrix.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
        assert matrix.mean().item() == pytest.approx(0, abs=0.1 * bound)
