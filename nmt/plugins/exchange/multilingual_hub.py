"""Import M2M-100, NLLB, SMaLL-100 and mBART-50 models in the format of the Hugging Face Hub.

These models are fairseq's: pre-norm layers with biases, tied embeddings, a decoder that starts with
the end symbol and then gets the tag of the target language. M2M-100, NLLB and SMaLL-100 have
sinusoids that begin at position 2. mBART-50 has learned positions, never uses the first two of
them, and normalizes the sums of embeddings and positions.

Shapes: D d_model, N vocabulary, P positions.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt import files
from nmt.config import MULTIPLE, ModelConfig, NMTError, build, shown
from nmt.files import EMBEDDINGS
from nmt.model import Transformer, described
from nmt.plugins.exchange.hub_card import origin_of
from nmt.plugins.exchange.hub_settings import read_settings
from nmt.plugins.exchange.hub_weights import Weights, read_hub_weights
from nmt.plugins.exchange.imported import ImportedModel
from nmt.plugins.exchange.marian import (
    HUB_BIAS,
    HUB_EMBEDDINGS,
    HUB_SHARED,
    Supported,
    UnreadWeights,
    our_order,
)
from nmt.plugins.exchange.marian_hub import hub_settings, stored_length_penalty
from nmt.plugins.exchange.multilingual_vocabulary import OUR_ORDER, read_vocabulary
from nmt.text import MultilingualTokenizer

UNUSED_POSITIONS = 2
"""fairseq numbers positions from 2, because 0 and 1 would be those of its padding."""
M2M_SUPPORTED: Supported = {"model_type": ("m2m_100",), "scale_embedding": (True,)}
"""Keys of config.json and their supported values."""
MBART_SUPPORTED: Supported = {
    "model_type": ("mbart",),
    "scale_embedding": (True,),
    "normalize_before": (True,),
    "add_final_layer_norm": (True,),
    "normalize_embedding": (True,),
    "static_position_embeddings": (False,),
    "add_bias_logits": (False,),
}
POSITIONS_OF_M2M: dict[str, Any] = {
    "positions": "tensor2tensor",
    "first_position": UNUSED_POSITIONS,
}
"""The options of its sinusoids."""
SMALL_100 = "SMALL100Tokenizer"
"""The tokenizer_class of SMaLL-100, whose targets have no tag."""
POSITIONS = "model.{stack}.embed_positions.weight"
"""mBART's names for learned positions."""


def read_multilingual(folder: Path) -> ImportedModel:
    """The model in a folder with the files of M2M-100, NLLB, SMaLL-100 or mBART-50."""
    config = folder / "config.json"
    tree = files.read_mapping(config, files.parse_json)
    is_mbart = tree.get("model_type") == "mbart"
    supported = MBART_SUPPORTED if is_mbart else M2M_SUPPORTED
    settings = hub_settings(config, tree, supported)
    weights = with_one_matrix(folder, read_hub_weights(folder))
    size = len(weights[HUB_EMBEDDINGS[0]])
    tokenizer = read_tokenizer(folder, size)
    values = {
        "name": tree["model_type"],
        **settings,
        "attention_bias": True,
        "norm": "pre",
        "end_start": True,
        "target_tags": tokenizer.has_target_tags,
        **(positions_of_mbart(weights) if is_mbart else POSITIONS_OF_M2M),
        "embedding_norm": is_mbart,
        "tied_embeddings": torch.equal(*(weights[name] for name in HUB_EMBEDDINGS[1:])),
        "output_bias": HUB_BIAS in weights,
    }
    model = read_model(folder, build(ModelConfig, values, str(config)), weights)
    alpha = stored_length_penalty(folder, tree)
    languages = (MULTIPLE, MULTIPLE)
    record = origin_of(folder)
    trained_by = "fairseq or transformers"  # the files do not say which
    return ImportedModel(model, trained_by, tokenizer, alpha, languages, record)


def positions_of_mbart(weights: Weights) -> dict[str, Any]:
    """The options of learned positions."""
    table = weights.get(POSITIONS.format(stack="encoder"), torch.empty(0))
    return {"positions": "learned", "max_positions": max(1, len(table) - UNUSED_POSITIONS)}


def read_tokenizer(folder: Path, size: int) -> MultilingualTokenizer:
    """The tokenizer of a model with `size` vocabulary entries."""
    path = folder / "tokenizer_config.json"
    tree = read_settings(path)
    # Models that were fine-tuned so expect tags after the end symbol of a source.
    if tree.get("legacy_behaviour"):
        raise NMTError(f"{path}: legacy_behaviour=true: only false can be imported")
    vocabulary = read_vocabulary(folder, size)
    try:
        return vocabulary.tokenizer(has_target_tags=tree.get("tokenizer_class") != SMALL_100)
    except (ValueError, RuntimeError) as error:
        raise NMTError(f"{folder}: cannot make a tokenizer ({error})") from error


def with_one_matrix(folder: Path, weights: Weights) -> Weights:
    """The weights with all three HUB_EMBEDDINGS, without the shared matrix or a bias of zeros.

    NMTError if the embeddings of encoder and decoder differ, or are no matrices.
    """
    shared = weights.pop(HUB_SHARED, None)
    source = weights.get(HUB_EMBEDDINGS[0], shared)
    target = weights.get(HUB_EMBEDDINGS[1], shared)
    if source is None or target is None or source.dim() != 2:
        raise NMTError(f"{folder}: has no embeddings")
    if not torch.equal(source, target):
        raise NMTError(f"{folder}: the embeddings of encoder and decoder differ")
    output = weights.get(HUB_EMBEDDINGS[2], target)
    if not weights.get(HUB_BIAS, torch.zeros(1)).any():
        weights.pop(HUB_BIAS, None)
    return weights | dict(zip(HUB_EMBEDDINGS, (source, source, output), strict=True))


def read_model(where: Path, config: ModelConfig, weights: Weights) -> Transformer:
    """The model with stored weights; NMTError if some are missing, unexpected or misshapen."""
    unread = UnreadWeights(where, weights, are_marians=False)
    size = len(weights[HUB_EMBEDDINGS[0]])
    ours = unread.take_layers(config)
    ours |= embeddings_of(config, unread, size)
    if config.positions == "learned":
        ours |= learned_positions(config, unread)
    if unread.tensors:
        raise NMTError(f"{where}: unexpected weight {shown(min(unread.tensors))}")
    # Without memory for initial weights: the larger models hardly fit once.
    model = described(config, size)
    model.load_state_dict(ours, assign=True)
    if config.tied_embeddings:
        model.tie_embeddings()
    return model.eval()


def embeddings_of(config: ModelConfig, unread: UnreadWeights, size: int) -> Weights:
    """The embeddings, the output matrix and its bias, by nmt's names."""
    order_D = our_order(config)

    def in_our_order(tensor: Tensor) -> Tensor:
        """The rows with those of the symbols in our order."""
        symbols = tensor[list(OUR_ORDER)]
        return torch.cat((symbols, tensor[len(OUR_ORDER) :]))

    weights = Weights()
    matrices = [unread.take(name, size, config.d_model) for name in HUB_EMBEDDINGS]
    # One matrix for both sides, as in the file, where all three may be the same.
    weights[EMBEDDINGS[0]] = in_our_order(matrices[0][:, order_D])
    weights[EMBEDDINGS[1]] = weights[EMBEDDINGS[0]]
    weights[EMBEDDINGS[2]] = weights[EMBEDDINGS[0]]
    if not config.tied_embeddings:
        weights[EMBEDDINGS[2]] = in_our_order(matrices[2][:, order_D])
    if config.output_bias:
        weights["output.bias"] = in_our_order(unread.take(HUB_BIAS, 1, size)[0])
    return weights


def learned_positions(config: ModelConfig, unread: UnreadWeights) -> Weights:
    """The tables of learned positions without the unused ones, by nmt's names."""
    order_D = our_order(config)
    rows = config.max_positions + UNUSED_POSITIONS
    weights = Weights()
    for stack, ours in (("encoder", "source_embedding"), ("decoder", "target_embedding")):
        table_PD = unread.take(POSITIONS.format(stack=stack), rows, config.d_model)
        weights[f"{ours}.positions.table"] = table_PD[UNUSED_POSITIONS:, order_D]
    return weights
