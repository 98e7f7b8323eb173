"""Floating-point operations, counted by torch as it runs the model."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import nmt.kernels.products
from nmt.config import ModelConfig
from nmt.model import Transformer, training_flops

SHAPES = [
    {"encoder_layers": 2, "decoder_layers": 3, "d_model": 32, "d_ff": 64, "heads": 4},
    {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "d_ff": 48, "heads": 2, "d_k": 8, "d_v": 24},
    {"encoder_layers": 2, "decoder_layers": 1, "d_model": 32, "d_ff": 48, "heads": 2, "attention": "dot_product"},
    {"encoder_layers": 2, "decoder_layers": 1, "d_model": 32, "d_ff": 48, "heads": 2, "attention": "additive"},
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_training_step_needs_what_torch_counts(shape, monkeypatch):
    """Torch counts all pairs of the decoder's self-attention; the half above the diagonal is taken off here."""
    monkeypatch.setattr(nmt.kernels.products, "ONEDNN", False)
    config = ModelConfig(name="test", dropout=0.0, **shape)
    model = Transformer(config, vocabulary_size=40)
    source, target = torch.full((2, 7), 5), torch.full((2, 5), 6)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(source, target).sum().backward()
    pairs = (2 * 7 * 7, 2 * 5 * 5, 2 * 7 * 5)
    # The gradients of the two embedding look-ups are no products.
    assert training_flops(config, 40, (2 * 7, 2 * 5), pairs) == counter.get_total_flops()
