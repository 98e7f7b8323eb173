"""Table 1: layers against plain ones, exact counts, the power laws fitted to them, and peak memory."""

import json
from pathlib import Path

import pytest
import torch
from complexity import count, fit, largest_bytes, path_length, peak_memory, prepare, row
from layers import LAYERS, RestrictedSelfAttention, SelfAttention, WrittenSelfAttention
from plan import SCALES
from torch import Tensor, nn

NAMES = [layer.name for layer in LAYERS]
FLOPS = {
    "self-attention": lambda n, d, _: 4 * n**2 * d,
    "self-attention, scores kept": lambda n, d, _: 4 * n**2 * d,
    "recurrent (LSTM)": lambda n, d, _: 16 * n * d**2,
    "convolutional": lambda n, d, k: 2 * k * n * d**2,
    "convolutional, separable": lambda n, d, k: 2 * k * n * d + 2 * n * d**2,
    "self-attention, restricted": lambda n, d, r: 8 * r * n * d,
}
"""Multiplications and additions in the products of one sequence, by hand."""


def attend(x: Tensor, near=lambda query, key: True, d_k: int = 64) -> Tensor:
    """Equation 1 for a sentence [N, D], one query and one head after another."""
    y = torch.empty_like(x)
    for head in range(0, x.shape[1], d_k):
        for query in range(len(x)):
            seen = x[[key for key in range(len(x)) if near(query, key)], head : head + d_k]
            weights = (seen @ x[query, head : head + d_k] / d_k**0.5).softmax(0)
            y[query, head : head + d_k] = weights @ seen
    return y


@pytest.mark.parametrize("n", [1, 8, 9, 23])
@pytest.mark.parametrize("r", [1, 2, 3, 8, 30])
def test_self_attention_is_equation_1_and_restricted_the_same_under_a_mask(n, r):
    x = torch.randn(3, n, 128, dtype=torch.float64)
    near = [
        attend(sentence, lambda query, key: -(r // 2) <= key - query < r - r // 2) for sentence in x
    ]
    torch.testing.assert_close(RestrictedSelfAttention(r)(x), torch.stack(near))
    for layer in (SelfAttention(), WrittenSelfAttention()):
        torch.testing.assert_close(layer(x), torch.stack([attend(sentence) for sentence in x]))


@pytest.mark.parametrize("layer", LAYERS, ids=NAMES)
def test_a_result_depends_on_what_the_layer_sees(layer):
    """Seen by gradients; a recurrent layer is as many steps as there are positions."""
    n, width = 11, 3
    x = torch.randn(1, n, 64, dtype=torch.float64, requires_grad=True)
    y = layer.make(64, width).double()(x)
    steps = n if "LSTM" in layer.name else 1
    for position in range(n):
        (gradient,) = torch.autograd.grad(y[0, position].sum(), x, retain_graph=True)
        reached = {position}
        for _ in range(steps):
            reached |= {
                p + offset
                for p in reached
                for offset in layer.sees(n, width, 0)
                if 0 <= p + offset < n
            }
        assert {int(p) for p in gradient[0].abs().sum(1).nonzero()} == reached


@pytest.mark.parametrize(("n", "d", "width"), [(32, 64, 3), (64, 128, 8)])
@pytest.mark.parametrize("layer", LAYERS, ids=NAMES)
def test_operations_are_as_many_as_torch_counts(layer, n, d, width):
    if layer.width == "k":
        width |= 1
    if layer.width == "r":
        width = 1 << width.bit_length() - 1  # a sequence of whole blocks
    assert count(layer, (n, d, width))[0] == FLOPS[layer.name](n, d, width)


@pytest.mark.parametrize("n", [1, 2, 9, 31])
@pytest.mark.parametrize("width", [3, 4, 7])
@pytest.mark.parametrize("layer", LAYERS, ids=NAMES)
def test_the_longest_path_is_the_farthest_pair_of_the_graph(layer, n, width):
    """Breadth first, from each position."""
    offsets, farthest = list(layer.sees(n, width, 0)), 0
    for start in range(n):
        steps, frontier = {start: 0}, [start]
        while frontier:
            position = frontier.pop(0)
            for other in (position + offset for offset in offsets):
                if 0 <= other < n and other not in steps:
                    steps[other] = steps[position] + 1
                    frontier.append(other)
        farthest = max(farthest, *steps.values())
    assert path_length(layer.sees, n, width) == farthest


CPU = torch.device("cpu")
TINY = {
    "n": [8, 16],
    "d": [8, 16],
    "k": [3, 5],
    "r": [2, 4],
    "at_n": 8,
    "at_d": 8,
    "at_k": 3,
    "at_r": 2,
    "batch": 1,
    "rounds": 2,
}
COMMITTED = Path(__file__).parents[2] / "recipes/table1/results/laptop/layers.json"


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, -1.0])
def test_a_power_law_is_found_exactly(exponent):
    assert fit([(x, 3 * x**exponent) for x in (64, 128, 256, 1024)]) == pytest.approx(
        (exponent, 0), abs=1e-6
    )


@pytest.mark.slow
def test_the_committed_measurements_give_the_committed_table():
    """What is counted is the same on every machine."""
    figures = json.loads(COMMITTED.read_text())["figures"]
    for old, layer in zip(figures["table"], LAYERS, strict=True):
        new = row(figures, layer)
        assert new == {key: old[key] for key in new}


def test_memory_is_the_highest_sum_of_what_lives_at_once():
    class Steps(nn.Module):
        def forward(self, x):
            first = x + 1  # 1
            second = torch.cat([first, first, first])  # 1 + 3
            del first
            return second[: len(x)] * 2  # 3 + 1

    x = torch.randn(1, 1000, 16)
    assert peak_memory(Steps(), x) == pytest.approx(
        4 * x.numel() * 4, abs=64
    )  # and the 1 and 2 of a kernel


def test_kept_scores_are_two_matrices_of_all_pairs():
    """So does what the largest point is said to need."""
    grid = {**TINY, "n": [128, 256], "at_d": 128, "d": [64, 128], "batch": 3}
    module, x = prepare(LAYERS[1], 3, (256, 128, 0), CPU)
    assert isinstance(module, WrittenSelfAttention)
    scores = 2 * 4 * 3 * 2 * 256 * 256
    assert scores <= peak_memory(module, x) <= scores + 2 * 4 * x.numel()
    assert largest_bytes(grid) == scores
    assert largest_bytes(SCALES["paper"].layers) == 2 * 8 * 8192**2 * 2 * 4
