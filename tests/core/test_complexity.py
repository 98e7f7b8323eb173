"""Table 1: power laws are found, counts are exact, memory and time are what they are called."""

import json
from pathlib import Path

import pytest
import torch
from complexity import fit, largest_bytes, peak_memory, prepare, row
from layers import LAYERS, WrittenSelfAttention
from plan import SCALES
from torch import nn

CPU = torch.device("cpu")
TINY = {
    **{"n": [8, 16], "d": [8, 16], "k": [3, 5], "r": [2, 4]},
    **{"at_n": 8, "at_d": 8, "at_k": 3, "at_r": 2, "batch": 1, "rounds": 2},
}
COMMITTED = Path(__file__).parents[2] / "recipes/table1/results/laptop/layers.json"


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, -1.0])
def test_a_power_law_is_found_exactly(exponent):
    assert fit([(x, 3 * x**exponent) for x in (64, 128, 256, 1024)]) == pytest.approx((exponent, 0), abs=1e-6)


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
    assert peak_memory(Steps(), x) == pytest.approx(4 * x.numel() * 4, abs=64)  # and the 1 and 2 of a kernel


def test_kept_scores_are_two_matrices_of_all_pairs():
    """So does what the largest point is said to need."""
    grid = {**TINY, "n": [128, 256], "at_d": 128, "d": [64, 128], "batch": 3}
    module, x = prepare(LAYERS[1], 3, (256, 128, 0), CPU)
    assert isinstance(module, WrittenSelfAttention)
    scores = 2 * 4 * 3 * 2 * 256 * 256
    assert scores <= peak_memory(module, x) <= scores + 2 * 4 * x.numel()
    assert largest_bytes(grid) == scores
    assert largest_bytes(SCALES["paper"].layers) == 2 * 8 * 8192**2 * 2 * 4
