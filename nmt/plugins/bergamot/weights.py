"""A model's weights and settings as the engine reads them, by Marian's names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from nmt.config import ModelConfig
from nmt.files import parse_yaml
from nmt.model import Transformer
from nmt.plugins.bergamot.container import EMBEDDING, Array
from nmt.plugins.bergamot.vocabulary import Vocabulary
from nmt.plugins.exchange.parameters import halves, layer_parameters

NEVER = -1e9
"""Logit bias that rules out a symbol."""
# Settings of Mozilla's models that have no counterpart in nmt.
STUDENT = Path(__file__).with_name("student.yml")
"""The settings that all exported models have in common."""


def marian_weights(
    model: Transformer,
    vocabularies: Sequence[Vocabulary],
) -> dict[str, Array]:
    """The weights in Marian's order: matrices [in, out], vectors [1, out]."""
    state = model.state_dict()
    width = model.config.d_model
    order_D = torch.from_numpy(halves(width))
    weights: dict[str, Array] = {}
    for row in layer_parameters(model.config):
        tensor = state.get(row.ours, torch.zeros(row.shape))  # zeros for missing biases
        parts = row.reordered(tensor, order_D).chunk(len(row.marian))
        for name, part in zip(row.marian, parts, strict=True):
            is_matrix = part.dim() == 2
            weights[name] = (part.T if is_matrix else part[None]).numpy()
    if len(vocabularies) == 1:
        embeddings = {EMBEDDING: "source_embedding"}
    else:
        embeddings = {
            f"encoder_{EMBEDDING}": "source_embedding",
            f"decoder_{EMBEDDING}": "target_embedding",
        }
    for (name, ours), vocabulary in zip(embeddings.items(), vocabularies, strict=True):
        # UNUSED, -1, is the index of the added last row.
        table = torch.cat((state[f"{ours}.weight"], torch.zeros(1, width)))
        weights[name] = table[vocabulary.our_ids][:, order_D].numpy()
    bias = state.get("output.bias", torch.zeros(model.vocabulary_size))
    # Also for UNUSED: pieces that pad the vocabulary must never be chosen.
    bias = torch.cat((bias, torch.tensor([NEVER])))
    weights["decoder_ff_logit_out_b"] = bias[vocabularies[-1].our_ids][None].numpy()
    return weights


def marian_settings(model: ModelConfig, vocabularies: Sequence[Vocabulary]) -> dict[str, Any]:
    """Marian's training settings for a model."""
    is_shared = len(vocabularies) == 1
    sizes = [len(vocabularies[0].our_ids), len(vocabularies[-1].our_ids)]
    return {
        **parse_yaml(STUDENT.read_text()),
        "dim-emb": model.d_model,
        "dim-vocabs": sizes,
        "enc-depth": model.encoder_layers,
        "dec-depth": model.decoder_layers,
        "transformer-heads": model.heads,
        "transformer-dim-ffn": model.d_ff,
        # Target embeddings and output matrix are always tied; the source's only with one
        # vocabulary.
        "tied-embeddings-all": is_shared,
        "tied-embeddings": not is_shared,
    }
