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

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from nmt.config import LANGUAGE, require, shown
from nmt.errors import NMTError, one_line
from nmt.files import LARGE, load_plain, parse_json, read_mapping, stored_shapes
from nmt.model import sinusoids
from nmt.plugins.exchange.foreign_model import EMBEDDINGS, Foreign, check_flags, read_tokenizer, setting, table_of
from nmt.plugins.exchange.marian_weights import Weights, halves
from nmt.text import MARIAN_SYMBOLS

FLAGS: dict[str, tuple[object, ...]] = {
    **{"model_type": ("marian",), "scale_embedding": (True,), "add_final_layer_norm": (False,)},
    **{"normalize_before": (False,), "normalize_embedding": (False,), "static_position_embeddings": (True,)},
}
"""Keys of config.json, and the values that are supported."""
ACTIVATIONS = ("relu", "swish", "silu", "gelu", "quick_gelu")


def read_huggingface(folder: Path, trained_by: str | None) -> Foreign:
    """A MarianMT folder."""
    where = folder / "config.json"
    tree = read_mapping(where, parse_json)
    require("model_type" in tree, f"{where}: it has no model_type")
    check_flags(where, tree, FLAGS)
    for key in ("attention_heads", "ffn_dim"):
        one, other = (setting(where, tree, f"{stack}_{key}", int) for stack in ("encoder", "decoder"))
        require(one == other, f"{where}: encoder_{key} and decoder_{key} differ, {one} and {other}")
    activation = setting(where, tree, "activation_function", str)
    require(
        activation in ACTIVATIONS, f"{where}: activation_function={shown(activation)}: not {', '.join(ACTIVATIONS)}"
    )
    settings = {
        **{key: setting(where, tree, key, int) for key in ("encoder_layers", "decoder_layers", "d_model")},
        "d_ff": tree["encoder_ffn_dim"],
        "heads": tree["encoder_attention_heads"],
        "dropout": setting(where, tree, "dropout", float, 0.1),
        "activation": "swish" if activation == "silu" else activation,
    }
    tokenizer = read_tokenizer(folder, [read_ids(folder / name) for name in vocabulary_names(folder)], tags=True)
    check_ids(where, tree, tokenizer.tables)
    weights = with_embeddings(folder, tensors(folder))
    search = folder / "generation_config.json"
    searched = (search, read_mapping(search, parse_json)) if search.exists() else (where, tree)
    penalty = setting(*searched, "length_penalty", float, 1.0)
    require(0 <= penalty <= 10, f"{searched[0]}: length_penalty={shown(penalty)}: it must be between 0 and 10")
    found = Foreign(folder, settings, weights, tokenizer, float(penalty), languages=languages(folder))
    padding = padding_row(found)
    found.trained_by = trained_by or ("transformers" if padding is not None and padding.any() else "marian")
    require(
        padding is not None or found.trained_by == "marian",
        f"{folder}: its vocabulary has no <pad>, from which a decoder of transformers starts",
    )
    return found


def check_ids(where: Path, tree: dict[str, Any], tables: Sequence[Sequence[str]]) -> None:
    """NMTError where sizes and numbers of symbols in config.json are not those of the vocabularies."""
    for key, table in (("vocab_size", tables[0]), ("decoder_vocab_size", tables[-1])):
        size = setting(where, tree, key, int, len(table))
        require(size == len(table), f"{where}: {key}={size}, but the vocabulary has {len(table):,} entries")
    end, padding = MARIAN_SYMBOLS[0], MARIAN_SYMBOLS[2]
    for key, symbol in (("eos_token_id", end), ("pad_token_id", padding), ("decoder_start_token_id", padding)):
        own = tables[-1].index(symbol) if symbol in tables[-1] else None
        id = setting(where, tree, key, int, own) if tree.get(key) is not None else own
        require(id == own, f"{where}: {key}={id}, but {symbol} is {own} in the vocabulary")


def padding_row(found: Foreign) -> Tensor | None:
    """The embedding of <pad>, from which the decoder of transformers starts; None where there is none."""
    embedding = found.weights.get(EMBEDDINGS[1])
    if embedding is None or embedding.dim() != 2 or not found.has_padding:
        return None
    padding = found.tokenizer.tables[-1].index(MARIAN_SYMBOLS[2])
    return embedding[padding] if padding < len(embedding) else None


def vocabulary_names(folder: Path) -> list[str]:
    """The files of the vocabularies: one for both sides, or one for each."""
    return ["vocab.json", *(["target_vocab.json"] if (folder / "target_vocab.json").exists() else [])]


def read_ids(path: Path) -> list[str]:
    """The entries of a vocabulary in JSON, by their numbers."""
    return table_of(path, read_mapping(path, parse_json, LARGE))


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
        content = load_plain(path)
    except ValueError as error:
        raise NMTError(f"{path}: not loaded, because {error}") from error
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(tensor, Tensor) and tensor.is_floating_point()
        for name, tensor in content.items()
    ):
        raise NMTError(f"{path}: not a mapping of names to tensors of float numbers")
    return dict(content)


def with_embeddings(folder: Path, weights: Weights) -> Weights:
    """The weights with all embeddings under their own names, and without positions, which must be sinusoids."""
    shared = weights.pop("model.shared.weight", None)
    for name, other in zip(EMBEDDINGS, (*EMBEDDINGS[:2], EMBEDDINGS[1]), strict=True):
        if shared is not None:
            require(name not in weights or torch.equal(weights[name], shared), f"{folder}: {name} is not model.shared")
            weights[name] = shared
        elif name not in weights and other in weights:
            weights[name] = weights[other]
    for stack in ("encoder", "decoder"):
        table = weights.pop(f"model.{stack}.embed_positions.weight", None)
        if table is not None:
            expected = sinusoids(*table.shape)[:, halves(table.shape[1])] if table.dim() == 2 else table.new_empty(0)
            same = table.shape == expected.shape and torch.allclose(table.float(), expected, atol=2e-3)
            require(same, f"{folder}: its positions are no sinusoids; trained ones cannot be imported")
    return weights


def languages(folder: Path) -> tuple[str, str]:
    """The languages that tokenizer_config.json names; "und" for what is no name."""
    path = folder / "tokenizer_config.json"
    tree = read_mapping(path, parse_json) if path.exists() else {}
    source, target = (str(tree.get(f"{side}_lang") or "") for side in ("source", "target"))
    return source if LANGUAGE.fullmatch(source) else "und", target if LANGUAGE.fullmatch(target) else "und"
