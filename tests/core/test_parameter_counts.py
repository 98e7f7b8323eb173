"""Table 3's parameter counts, on models that take no memory, and FLOPs as torch counts them."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nmt.commands import COMMANDS, compose
from nmt.config import ModelConfig, groups
from nmt.model import Transformer, training_flops

BIG = {"d_model": 1024, "d_ff": 4096, "heads": 16}


def parameters(model=None, vocabulary=37_000, **changes):
    """Millions of parameters of the base model with `changes`."""
    with torch.device("meta"):
        transformer = Transformer(model or ModelConfig(name="test", **changes), vocabulary)
    return sum(parameter.numel() for parameter in transformer.parameters()) / 1e6


def by_hand(vocabulary=37_000, n=6, d_model=512, d_ff=2048, heads=8, d_k=64, d_v=64):
    """Millions: four matrices an attention, two and their biases a feed-forward, two vectors a norm, one embedding."""
    attention = 2 * d_model * heads * d_k + 2 * d_model * heads * d_v
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    encoder, decoder = (
        attention + feed_forward + 2 * 2 * d_model,
        2 * attention + feed_forward + 3 * 2 * d_model,
    )
    return (vocabulary * d_model + n * (encoder + decoder)) / 1e6


def test_counts_are_the_sums_by_hand():
    for changes in ({}, BIG, {"d_k": 16, "d_v": 48}):
        assert parameters(**changes) == by_hand(**changes)
    assert (parameters(), parameters(**BIG)) == pytest.approx((63.05, 214.2), abs=0.05)
    assert parameters(tied_embeddings=False) - parameters() == pytest.approx(2 * 37_000 * 512 / 1e6)
    assert parameters(norm="pre") - parameters() == pytest.approx(
        2 * 2 * 512 / 1e6
    )  # a norm on top of each stack


DIFFERENCES = {
    "base": (0.0, 0),
    "b_d_k_16": (-7.08, -7),
    "b_d_k_32": (-4.72, -5),
    "c_layers_2": (-29.40, -29),
    "c_layers_4": (-14.70, -15),
    "c_layers_8": (14.70, 15),
    "c_d_model_256": (-36.23, -37),
    "c_d_model_1024": (100.77, 103),
    "c_d_ff_1024": (-12.60, -12),
    "c_d_ff_4096": (25.19, 25),
    "big": (151.13, 148),
}
"""Ours, and those of the paper's rounded numbers, in millions."""
OTHER_WIDTHS = ("c_d_model_256", "c_d_model_1024", "big")
"""Rows whose difference grows with the vocabulary, which the paper does not tell exactly."""


@pytest.mark.slow
def test_rows_of_table_3_differ_from_base_as_the_papers_do():
    _, experiments = groups(COMMANDS["train"])["experiment"]
    rows = [name.removeprefix("table3/") for name in experiments if name.startswith("table3/")]
    base = parameters()
    ours = {
        row: parameters(compose("train", [f"experiment=table3/{row}"]).model) - base for row in rows
    }
    for row, (difference, papers) in DIFFERENCES.items():
        assert ours.pop(row) == pytest.approx(difference, abs=0.006), row
        assert difference == pytest.approx(papers, abs=3.2 if row in OTHER_WIDTHS else 0.75), row
    assert ours.pop("e_learned_positions") == pytest.approx(2 * 1024 * 512 / 1e6)
    assert ours.pop("additive") == pytest.approx(18 * 8 * 64 / 1e6)
    assert ours == pytest.approx(dict.fromkeys(ours, 0.0), abs=1e-9)


@pytest.mark.parametrize(
    "shape",
    [
        {"heads": 4},
        {"decoder_layers": 1, "d_k": 8, "d_v": 24},
        {"attention": "dot_product", "d_ff": 48},
        {"attention": "additive", "encoder_layers": 1},
        {"decoder": "ssru", "d_k": 8},
    ],
)
def test_a_training_step_needs_what_torch_counts(shape, monkeypatch):
    """Torch counts all pairs of the decoder's self-attention; the half above the diagonal is taken off here."""
    monkeypatch.setattr("nmt.kernels.products.ONEDNN", False)
    sizes = {
        "encoder_layers": 2,
        "decoder_layers": 3,
        "d_model": 32,
        "d_ff": 64,
        "heads": 2,
        **shape,
    }
    config = ModelConfig(name="test", dropout=0.0, **sizes)
    model = Transformer(config, vocabulary_size=40)
    source, target = torch.full((2, 7), 5), torch.full((2, 5), 6)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(source, target).sum().backward()
    pairs = (2 * 7 * 7, 2 * 5 * 5, 2 * 7 * 5)
    # The gradients of the two embedding look-ups are no products.
    assert training_flops(config, 40, (2 * 7, 2 * 5), pairs) == counter.get_total_flops()
