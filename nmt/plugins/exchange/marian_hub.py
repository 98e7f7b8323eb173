"""Folders of MarianMT as on the Hugging Face hub, which may come from anyone.

config.json                            settings
model.safetensors, pytorch_model.bin   weights; the second is read where the first is missing
vocab.json                             the numbers of the pieces; with target_vocab.json, those of the source alone
source.spm, target.spm                 the sentencepiece models
generation_config.json                 the length penalty, if it is there
tokenizer_config.json                  the languages, if it is there

Marian computes other sinusoids than transformers, has an epsilon of 1e-6, and its decoder starts from zeros. So does
the imported model, unless transformers trained it: then the row of <pad>, from which the decoder starts there, is not
zero.
"""

from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from nmt.config import require
from nmt.errors import NMTError, one_line
from nmt.files import LARGE, load_plain, parse_json, read_mapping, stored_shapes
from nmt.plugins.exchange.foreign import (
    Foreign,
    Weights,
    check_settings,
    entries_by_number,
    language,
    length_penalty,
    setting,
    tokenizer_of,
)
from nmt.plugins.exchange.marian_weights import VOCABULARY, read_weights
from nmt.plugins.exchange.transformers_program import original
from nmt.text import MARIAN_SYMBOLS

SUPPORTED: dict[str, tuple[object, ...]] = {
    **{"model_type": ("marian",), "scale_embedding": (True,), "add_final_layer_norm": (False,)},
    **{"normalize_before": (False,), "normalize_embedding": (False,), "static_position_embeddings": (True,)},
    "activation_function": ("relu", "swish", "silu", "gelu", "quick_gelu"),
}
"""Keys of config.json, and the values that are supported."""


def read_hub(folder: Path, trained_by: str | None) -> Foreign:
    """The model of a folder. `trained_by` is marian or transformers; None: by the row of <pad>."""
    where = folder / "config.json"
    tree = read_mapping(where, parse_json)
    require("model_type" in tree, f"{where}: it has no model_type")
    check_settings(where, tree, SUPPORTED)
    for key in ("attention_heads", "ffn_dim"):
        one, other = (setting(where, tree, f"{stack}_{key}", int) for stack in ("encoder", "decoder"))
        require(one == other, f"{where}: encoder_{key} and decoder_{key} differ, {one} and {other}")
    activation = setting(where, tree, "activation_function", str)
    settings = {
        **{key: setting(where, tree, key, int) for key in ("encoder_layers", "decoder_layers", "d_model")},
        "d_ff": tree["encoder_ffn_dim"],
        "heads": tree["encoder_attention_heads"],
        "dropout": setting(where, tree, "dropout", float, 0.1),
        "activation": "swish" if activation == "silu" else activation,
    }
    names = ["vocab.json", *(["target_vocab.json"] if (folder / "target_vocab.json").exists() else [])]
    tables = [entries_by_number(folder / name, read_mapping(folder / name, parse_json, LARGE)) for name in names]
    tokenizer = tokenizer_of([folder / "source.spm", folder / "target.spm"], tables, tags=True)
    require(MARIAN_SYMBOLS[2] in tables[-1], f"{folder}: its vocabulary has no <pad>, from which its decoder starts")
    layers, vocabulary = split_vocabulary(tensors(folder))
    padding = tables[-1].index(MARIAN_SYMBOLS[2])
    embedding = vocabulary.get(VOCABULARY[1])
    is_marians = embedding is None or embedding.dim() != 2 or not embedding[padding : padding + 1].any()
    trained_by = trained_by or ("marian" if is_marians else "transformers")
    config, weights = read_weights(folder, settings, trained_by, tokenizer, layers, vocabulary)
    search = folder / "generation_config.json"
    penalty = (search, read_mapping(search, parse_json)) if search.exists() else (where, tree)
    path = folder / "tokenizer_config.json"
    languages = read_mapping(path, parse_json) if path.exists() else {}
    return Foreign(
        f"trained by {trained_by}",
        config,
        weights,
        tokenizer,
        "transformers",
        lambda decode: original(config, {**layers, **vocabulary}, tokenizer, decode),
        length_penalty(*penalty, "length_penalty", 1.0),
        languages=(language(languages.get("source_lang")), language(languages.get("target_lang"))),
    )


def tensors(folder: Path) -> Weights:
    """The tensors of a folder, of float numbers."""
    path = folder / "model.safetensors"
    if path.exists():
        stored_shapes(path)
        try:
            return load_file(path)
        except (OSError, SafetensorError) as error:
            raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    path = folder / "pytorch_model.bin"
    try:
        content: Any = load_plain(path)
    except ValueError as error:
        raise NMTError(f"{path}: not loaded, because {error}") from error
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) and tensor.is_floating_point()
        for name, tensor in content.items()
    ):
        raise NMTError(f"{path}: not a mapping of names to tensors of float numbers")
    return dict(content)


def split_vocabulary(weights: Weights) -> tuple[Weights, Weights]:
    """The weights of the layers, and those of VOCABULARY; without positions, which are sinusoids."""
    for stack in ("encoder", "decoder"):
        weights.pop(f"model.{stack}.embed_positions.weight", None)
    shared = weights.pop("model.shared.weight", None)
    source, target, output, bias = (weights.pop(name, None) for name in VOCABULARY)
    source, target = (shared if matrix is None else matrix for matrix in (source, target))
    tensors = source, target, (target if output is None else output), bias
    return weights, {name: tensor for name, tensor in zip(VOCABULARY, tensors, strict=True) if tensor is not None}
