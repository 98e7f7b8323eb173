"""Import models from Marian's own files, in untrusted folders:

model.npz               weights and training settings
decoder.yml             names of the model and vocabularies, length penalty
vocab.yml, *.spm        vocabularies: sentencepiece models, or tables with source.spm and target.spm
                        beside them
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import torch

from nmt import files
from nmt.config import NMTError, as_list, one_line, shown
from nmt.plugins.exchange.imported import ImportedModel
from nmt.plugins.exchange.marian import (
    HUB_BIAS,
    HUB_EMBEDDINGS,
    HUB_SHARED,
    StoredWeights,
    Supported,
    length_penalty,
    model_settings,
    read_weights,
)
from nmt.plugins.exchange.marian_vocabulary import read_table, tokenizer_of
from nmt.plugins.exchange.npz import Arrays, read_npz
from nmt.text import MarianTokenizer

SPECIAL = "special:model.yml"
"""The array that contains Marian's training settings, as YAML."""
OUTSIDE_LAYERS = {
    "Wemb": HUB_SHARED,
    "encoder_Wemb": HUB_EMBEDDINGS[0],
    "decoder_Wemb": HUB_EMBEDDINGS[1],
    "decoder_ff_logit_out_Wt": HUB_EMBEDDINGS[2],
    "decoder_ff_logit_out_b": HUB_BIAS,
}
"""Marian's names for embeddings and the output bias, and transformers' names."""
TRANSPOSED_OUTPUT = "decoder_ff_logit_out_W"
"""Marian's name for the transpose of the output matrix."""
SUPPORTED: Supported = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    # Other inputs than one text, such as alignments or classes.
    "input-types": ([],),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-attention-mask": ("default",),
    "lemma-dim-emb": (0,),
    "factors-dim-emb": (0,),
    "transformer-ffn-activation": ("swish", "relu", "gelu"),
    "ulr": (False,),
    "right-left": (False,),
    "transformer-pool": (False,),
    "transformer-disable-position-embeddings": (False,),
    "transformer-train-position-embeddings": (False,),
    "transformer-train-positions": (False,),
}
"""Keys of SPECIAL and their supported values; other settings change the weights."""
ENCODER_FEED_FORWARD = "transformer-dim-ffn"
DECODER_FEED_FORWARD = "transformer-decoder-dim-ffn"
KEYS = {
    "enc-depth": "encoder_layers",
    "dec-depth": "decoder_layers",
    "dim-emb": "d_model",
    ENCODER_FEED_FORWARD: "d_ff",
    DECODER_FEED_FORWARD: "d_ff",
    "transformer-heads": "heads",
}
"""Keys of SPECIAL and the ModelConfig keys for the same values."""
OPERATIONS = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
POST_NORM = ("", "an", "")
PRE_NORM = ("n", "a", "n")
NORMS: dict[tuple[str, ...], str] = {POST_NORM: "post", PRE_NORM: "pre"}
"""Marian's OPERATIONS before and after a sub-layer and on top of the stack, without d for dropout,
and the values of model.norm."""
EXACT_GELU = (1, 12, 3)
"""The first Marian version whose gelu is not x sigmoid(1.702 x)."""


def read_marian(path: Path) -> ImportedModel:
    """The model in an .npz, or in a folder whose decoder.yml names only one."""
    folder = path if path.is_dir() else path.parent
    decoder = decoder_of(path, folder)
    tree = files.read_mapping(decoder, files.parse_yaml)
    models = paths_in(folder, tree.get("models"))
    vocabularies = paths_in(folder, tree.get("vocabs"))
    # An ensemble consists of several models with one vocabulary.
    if path == folder and len(models) != 1:
        raise NMTError(f"{decoder}: has {len(models)} models; pass the .npz of one")
    if len(vocabularies) != 2:
        raise NMTError(f"{decoder}: has {len(vocabularies)} vocabularies, not two")
    file = models[0] if path == folder else path
    arrays = read_npz(file)
    if all(name.suffix == ".spm" for name in vocabularies):
        tokenizer = tokenizer_of(vocabularies)
    else:
        # The same file twice is one table for both sides.
        tables = [read_table(name) for name in dict.fromkeys(vocabularies)]
        tokenizer = tokenizer_of([folder / "source.spm", folder / "target.spm"], tables)
    # Marian's own default is 0: no normalization.
    alpha = length_penalty(decoder, tree.get("normalize") or 0.0)
    return model_of(file, arrays, tokenizer, alpha)


def decoder_of(path: Path, folder: Path) -> Path:
    """The decoder.yml of a model, which may begin with the model's name: model.npz.decoder.yml."""
    decoders = sorted(folder.glob("*decoder.yml"))
    if not decoders:
        raise NMTError(f"{folder}: no decoder.yml, which names the vocabularies")
    for decoder in decoders:
        # The decoder.yml of this model comes first, if several models are in the folder.
        if decoder.name.startswith(path.name):
            return decoder
    return decoders[0]


def paths_in(folder: Path, names: Any) -> list[Path]:
    """The files of a folder with the names at the end of paths.

    The folders in the paths are ignored, so that nothing outside the folder is read.
    """
    return [folder / Path(name).name for name in as_list(names)]


def model_of(
    file: Path,
    arrays: Arrays,
    tokenizer: MarianTokenizer,
    alpha: float,
    languages: tuple[str, str] = ("und", "und"),
) -> ImportedModel:
    """The model with the arrays of a file that Marian wrote; `alpha` is the length penalty."""
    settings = marian_settings(file, arrays.pop(SPECIAL, None))
    weights = {}
    for name, array in arrays.items():
        if array.dtype not in (np.float16, np.float32):
            problem = f"{shown(name)} has type {array.dtype}, not float32"
            raise NMTError(f"{file}: {problem}; for an 8-bit model, import the original")
        tensor = torch.from_numpy(array.astype(np.float32))
        weights[OUTSIDE_LAYERS.get(name, name)] = tensor
    if TRANSPOSED_OUTPUT in weights:
        # Older versions of Marian stored the transposed matrix.
        weights[HUB_EMBEDDINGS[2]] = weights.pop(TRANSPOSED_OUTPUT).T
    model, trained_by = read_weights(StoredWeights(file, weights), settings, tokenizer)
    return ImportedModel(model, trained_by, tokenizer, alpha, languages)


def marian_settings(path: Path, content: np.ndarray[Any, Any] | None) -> dict[str, Any]:
    """The ModelConfig values that correspond to Marian's training settings."""
    tree = read_special(path, content)
    if not tree.get(DECODER_FEED_FORWARD):
        # 0 or missing means the encoder's width.
        tree[DECODER_FEED_FORWARD] = tree.get(ENCODER_FEED_FORWARD)
    settings = model_settings(path, tree, SUPPORTED, KEYS)
    operations = operations_of(path, tree)
    return {
        **settings,
        "activation": activation_of(tree),
        "norm": NORMS[operations],
        "decoder": decoder_kind(path, tree, operations),
    }


def read_special(path: Path, content: np.ndarray[Any, Any] | None) -> dict[str, Any]:
    """The settings in the array SPECIAL, which Marian ends with a zero byte."""
    if content is None:
        raise NMTError(f"{path}: no {SPECIAL}, so it is not a Marian model")
    try:
        # nmt's own reader, because a stranger's YAML may nest deeply enough to crash libyaml.
        tree = files.parse_yaml(content.tobytes().rstrip(b"\0").decode())
    except ValueError as error:
        raise NMTError(f"{path}: cannot read its {SPECIAL} ({one_line(error)})") from error
    if not isinstance(tree, dict) or "type" not in tree:
        raise NMTError(f"{path}: its {SPECIAL} has no type")
    return tree


def operations_of(path: Path, tree: dict[str, Any]) -> tuple[str, ...]:
    """The values of OPERATIONS without dropout; NMTError if they are not among NORMS."""
    # Dropout (d) matters only in training.
    operations = tuple(str(tree.get(key) or "").replace("d", "") for key in OPERATIONS)
    if operations not in NORMS:
        given = ", ".join(f"{key}={shown(tree.get(key))}" for key in OPERATIONS)
        only = "only post-norm (dan) or pre-norm layers (n, da, n) can be imported"
        raise NMTError(f"{path}: {given}: {only}")
    return operations


def activation_of(tree: dict[str, Any]) -> str:
    """The value of model.activation."""
    # Marian's default.
    activation: str = tree.get("transformer-ffn-activation") or "swish"
    numbers = re.findall(r"\d+", str(tree.get("version")))
    version = tuple(int(number) for number in numbers[:3])
    if activation == "gelu" and version < EXACT_GELU:
        return "quick_gelu"
    return activation


def decoder_kind(path: Path, tree: dict[str, Any], operations: tuple[str, ...]) -> str:
    """The value of model.decoder."""
    if tree.get("transformer-decoder-autoreg") != "rnn":
        return "attention"
    cell = tree.get("dec-cell")
    if cell != "ssru" or operations != POST_NORM:
        given = f"transformer-decoder-autoreg=rnn with dec-cell={shown(cell)}"
        only = "only self-attention, or post-norm layers with ssru, can be imported"
        raise NMTError(f"{path}: {given}: {only}")
    return "ssru"
