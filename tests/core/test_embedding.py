"""Embeddings and positions: the paper's formula, the scale, and positions beyond the table."""

import math

import pytest
import torch

from nmt.config import ModelConfig
from nmt.model import sinusoids
from nmt.model.embedding import Embedding, Positions


def config(**changes):
    return ModelConfig(name="test", **{"d_model": 8, "heads": 2, "dropout": 0.0, "max_positions": 5, **changes})


def by_the_formula(start, length, d_model):
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)) and PE(pos, 2i + 1) = cos of the same."""
    angles = [[pos / 10000 ** (2 * i / d_model) for i in range(d_model // 2)] for pos in range(start, start + length)]
    return torch.tensor([[f(angle) for angle in row for f in (math.sin, math.cos)] for row in angles])


def assert_close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("start", "length"), [(0, 5), (2, 3), (0, 6), (5, 1), (4, 30), (1000, 2)])
def test_sinusoids_are_the_papers_also_past_the_table(start, length):
    positions = Positions(config())
    assert_close(positions(start, length), by_the_formula(start, length, 8))
    assert_close(sinusoids(length, 10, start), by_the_formula(start, length, 10))
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_learned_positions_are_parameters_of_embedding_size():
    torch.manual_seed(6)
    positions = Positions(config(positions="learned", max_positions=400, d_model=64, heads=2))
    (table,) = positions.parameters()
    assert table.shape == (400, 64)
    assert table.std().item() == pytest.approx(64**-0.5, rel=0.03)
    assert torch.equal(positions(3, 4), table[3:7])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_an_embedding_is_sqrt_d_model_times_its_row_plus_its_position(positions):
    embedding, tokens = Embedding(config(positions=positions, d_model=16), 7), torch.tensor([[3, 3, 6], [0, 1, 2]])
    table = embedding.positions.table if positions == "learned" else by_the_formula(0, 5, 16)
    assert_close(embedding(tokens, start=2), 4 * embedding.weight[tokens] + table[2:5])
