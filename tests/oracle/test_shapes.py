"""The names and shapes of weights that are described without torch, against the model itself."""

import pytest
import torch

from nmt.config import ModelConfig
from nmt.model import Transformer
from nmt.model_directory.shapes import count_parameters, described_shapes

SIZES = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 12, "d_ff": 10, "heads": 3}


@pytest.mark.parametrize(
    "settings",
    [
        *({}, {"tied_embeddings": False}, {"norm": "pre"}, {"positions": "learned", "max_positions": 9}),
        *({"d_k": 5}, {"d_k": 3, "d_v": 7}, {"attention": "additive"}, {"attention": "dot_product"}),
        {"attention_window": 2},
    ],
    ids=str,
)
def test_they_are_those_of_the_model(settings):
    config = ModelConfig(name="tiny", **{**SIZES, **settings})
    with torch.device("meta"):
        model = Transformer(config, 31)
    named = dict(model.named_parameters(remove_duplicate=False))
    assert described_shapes(config, 31) == {name: tuple(parameter.shape) for name, parameter in named.items()}
    assert count_parameters(config, 31) == sum(parameter.numel() for parameter in model.parameters())
