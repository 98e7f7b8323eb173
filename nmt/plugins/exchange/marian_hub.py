"""Import MarianMT models in the format of the Hugging Face Hub, from untrusted folders:

config.json             settings
generation_config.json  length penalty (optional)
tokenizer_config.json   languages (optional)
model.safetensors       weights
vocab.json              piece numbers; only the source's if there is also a target_vocab.json
source.spm, target.spm  sentencepiece models
"""

from pathlib import Path
from typing import Any

from nmt import files
from nmt.config import LANGUAGE, NMTError
from nmt.plugins.exchange.hub_card import origin_of
from nmt.plugins.exchange.hub_settings import read_settings
from nmt.plugins.exchange.hub_weights import read_hub_weights
from nmt.plugins.exchange.imported import ImportedModel
from nmt.plugins.exchange.marian import (
    StoredWeights,
    Supported,
    length_penalty,
    model_settings,
    read_weights,
)
from nmt.plugins.exchange.marian_vocabulary import read_table, tokenizer_of
from nmt.text import MARIAN_SYMBOLS, MarianTokenizer

HUB_SUPPORTED: Supported = {
    "model_type": ("marian",),
    "scale_embedding": (True,),
    "add_final_layer_norm": (False,),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "static_position_embeddings": (True,),
}
"""Keys of config.json and their supported values."""
HUB_KEYS = {
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "d_model": "d_model",
    "encoder_ffn_dim": "d_ff",
    "decoder_ffn_dim": "d_ff",
    "dropout": "dropout",
    "encoder_attention_heads": "heads",
    "decoder_attention_heads": "heads",
    "activation_function": "activation",
}
"""Keys of config.json and the ModelConfig keys for the same values."""


def read_hub(folder: Path) -> ImportedModel:
    """The model in a folder with MarianMT's files."""
    config = folder / "config.json"
    tree = files.read_mapping(config, files.parse_json)
    # A model directory of nmt also has a config.json.
    if "model_type" not in tree:
        raise NMTError(f"{config}: no model_type")
    settings = hub_settings(config, tree, HUB_SUPPORTED)
    tokenizer = read_vocabularies(folder)
    weights = read_hub_weights(folder)
    for stack in ("encoder", "decoder"):
        # Tables of sinusoids, which nmt computes.
        weights.pop(f"model.{stack}.embed_positions.weight", None)
    languages = languages_of(folder)
    alpha = stored_length_penalty(folder, tree)
    model, trained_by = read_weights(StoredWeights(folder, weights), settings, tokenizer)
    return ImportedModel(model, trained_by, tokenizer, alpha, languages, origin_of(folder))


def hub_settings(config: Path, tree: dict[str, Any], supported: Supported) -> dict[str, Any]:
    """The ModelConfig values of a config.json; NMTError for values that are not supported."""
    settings = model_settings(config, tree, supported, HUB_KEYS)
    # Two names of x sigmoid(x).
    if settings["activation"] == "silu":
        settings["activation"] = "swish"
    return settings


def stored_length_penalty(folder: Path, tree: dict[str, Any]) -> float:
    """The length penalty of a folder whose config.json contains `tree`."""
    path = folder / "generation_config.json"
    if path.exists():
        # Newer versions of transformers store the keys of a search there, older ones in
        # config.json.
        tree = files.read_mapping(path, files.parse_json)
    else:
        path = folder / "config.json"
    # 1 is transformers' default.
    return length_penalty(path, tree.get("length_penalty", 1.0))


def read_vocabularies(folder: Path) -> MarianTokenizer:
    """The tokenizer of a folder with one table for both sides, or one for each."""
    paths = [folder / "vocab.json", *folder.glob("target_vocab.json")]
    tables = [read_table(path) for path in paths]
    tokenizer = tokenizer_of([folder / "source.spm", folder / "target.spm"], tables)
    if MARIAN_SYMBOLS[2] not in tables[-1]:
        raise NMTError(f"{folder}: its vocabulary has no <pad>, from which the decoder starts")
    return tokenizer


def languages_of(folder: Path) -> tuple[str, str]:
    """The codes of the source and target language in tokenizer_config.json, if there is one."""
    tree = read_settings(folder / "tokenizer_config.json")
    return language_code(tree.get("source_lang")), language_code(tree.get("target_lang"))


def language_code(value: Any) -> str:
    """A value from a file if it is a language code, else und (undetermined)."""
    if isinstance(value, str) and LANGUAGE.fullmatch(value):
        return value
    return "und"
