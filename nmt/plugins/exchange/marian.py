"""Models of Marian (https://marian-nmt.github.io), which may come from anyone, in its own files:

model.npz               weights, and the settings of training
decoder.yml             the names of model and vocabularies, the length penalty
vocab.yml, *.spm        the vocabularies
source.spm, target.spm  the sentencepiece models, unless the vocabularies are such models themselves

and in folders of MarianMT as on the Hugging Face hub:

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

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from nmt.config import require, shown
from nmt.errors import NMTError, one_line
from nmt.files import (
    LARGE,
    check_members,
    check_regular,
    load_plain,
    parse_json,
    parse_yaml,
    read_bytes,
    read_mapping,
    read_text,
    stored_shapes,
)
from nmt.plugins.exchange.foreign import Foreign, Weights, language
from nmt.plugins.exchange.marian_weights import (
    VOCABULARY,
    check_settings,
    entries_by_number,
    length_penalty,
    read_weights,
    setting,
    tokenizer_of,
)
from nmt.plugins.exchange.transformers_program import original
from nmt.text import MARIAN_SYMBOLS, MarianTokenizer

SUPPORTED: dict[str, tuple[Any, ...]] = {
    **{"type": ("transformer",), "transformer-decoder-autoreg": ("self-attention",), "input-types": ([],)},
    **{"transformer-ffn-depth": (2,), "transformer-decoder-ffn-depth": (0, 2), "transformer-tied-layers": ([],)},
    **{"transformer-postprocess-emb": ("d", ""), "transformer-attention-mask": ("default",)},
    **{"lemma-dim-emb": (0,), "factors-dim-emb": (0,)},
    **{"transformer-ffn-activation": ("swish", "relu", "gelu")},
    **dict.fromkeys(("transformer-no-projection", "transformer-pool", "transformer-no-bias"), (False,)),
    **dict.fromkeys(("transformer-no-affine", "transformer-disable-position-embeddings"), (False,)),
    **dict.fromkeys(("transformer-train-position-embeddings", "transformer-train-positions"), (False,)),
    **dict.fromkeys(("output-omit-bias", "right-left", "ulr"), (False,)),
}
"""Keys of special:model.yml, and the values that are supported; Marian's defaults come first."""
SIZES = {
    **{"encoder_layers": "enc-depth", "decoder_layers": "dec-depth", "d_model": "dim-emb"},
    **{"d_ff": "transformer-dim-ffn", "heads": "transformer-heads"},
}
"""Our names of sizes -> keys of special:model.yml."""
OPERATIONS = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
NORMS = {("", "an", ""): "post", ("n", "a", "n"): "pre"}
"""Marian's operations before and after a sub-layer and on top of the stack, without dropout -> model.norm."""
EXACT_GELU = (1, 12, 3)
"""The version of Marian since which its gelu is not x sigmoid(1.702 x)."""
SPECIAL = "special:model.yml"
HUB_SUPPORTED: dict[str, tuple[object, ...]] = {
    **{"model_type": ("marian",), "scale_embedding": (True,), "add_final_layer_norm": (False,)},
    **{"normalize_before": (False,), "normalize_embedding": (False,), "static_position_embeddings": (True,)},
    "activation_function": ("relu", "swish", "silu", "gelu", "quick_gelu"),
}
"""Keys of config.json, and the values that are supported."""


def read_marian(path: Path) -> Foreign:
    """The model of an .npz with decoder.yml beside it, or of the folder of both."""
    folder = path if path.is_dir() else path.parent
    beside = [folder / f"{path.name}.decoder.yml", folder / "decoder.yml"] if path != folder else []
    decoder = next((file for file in [*beside, *sorted(folder.glob("*decoder.yml"))] if file.is_file()), None)
    if decoder is None:
        raise NMTError(f"{folder}: no decoder.yml, which names the vocabularies")
    tree = read_mapping(decoder, parse_yaml)
    # Only the names of the paths count: nothing outside of the folder is read.
    lists = (setting(decoder, tree, key, list, []) for key in ("models", "vocabs"))
    models, names = ([folder / Path(str(name)).name for name in paths] for paths in lists)
    require(path != folder or len(models) == 1, f"{decoder}: name the .npz of one model, of {len(models)} there")
    require(len(names) == 2, f"{decoder}: it does not name two vocabularies, but {len(names)}")
    file = path if path != folder else models[0]
    arrays = read_npz(file)
    settings = marian_settings(file, arrays.pop(SPECIAL, None))
    weights = {name: tensor_of(file, name, array) for name, array in arrays.items()}
    tokenizer = read_vocabularies(folder, names)
    config, ours = read_weights(file, settings, "marian", tokenizer, *split_vocabulary(weights))
    alpha = length_penalty(decoder, tree, "normalize", 0.0)
    return Foreign("trained by marian", config, ours, tokenizer, alpha)


def read_vocabularies(folder: Path, names: list[Path]) -> MarianTokenizer:
    """The tokenizer of two vocabularies, which may be one: sentencepiece models, or tables in YAML."""
    models = [path.suffix == ".spm" for path in names]
    require(models[0] == models[1], f"{folder}: one of its vocabularies is a sentencepiece model, the other is none")
    one = names[:1] if names[0] == names[1] else names
    if models[0]:
        return tokenizer_of(names, [pieces(path) for path in one], tags=False)
    return tokenizer_of([folder / "source.spm", folder / "target.spm"], [read_table(path) for path in one], tags=True)


def pieces(path: Path) -> list[str]:
    """The pieces of a sentencepiece model, whose numbers are then Marian's."""
    import sentencepiece

    try:
        model = sentencepiece.SentencePieceProcessor(model_proto=read_bytes(path))
        return [str(model.id_to_piece(number)) for number in range(model.vocab_size())]
    except (RuntimeError, UnicodeDecodeError) as error:
        raise NMTError(f"{path}: not a model of sentencepiece ({one_line(error)})") from error


def read_table(path: Path) -> list[str]:
    """The entries of a vocabulary in YAML. All of it is text there, for which the entry `no` would be a boolean."""
    text = read_text(path)
    try:
        tree = yaml.load(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError) as error:
        raise NMTError(f"{path}: not plain YAML ({one_line(error)})") from error
    if not isinstance(tree, dict) or not all(isinstance(part, str) for item in tree.items() for part in item):
        raise NMTError(f"{path}: not a mapping of entries to numbers")
    return entries_by_number(path, tree)


def read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an .npz without pickles, none larger than its bytes."""
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path.stat().st_size)
            return {name.removesuffix(".npy"): read_array(archive.read(name)) for name in archive.namelist()}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise NMTError(f"{path}: not an .npz that can be read ({one_line(error)})") from error


def read_array(content: bytes) -> np.ndarray[Any, Any]:
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("it holds an array in a newer format than Marian's")
    shape, fortran, kind = np.lib.format.read_array_header_1_0(file)
    return np.frombuffer(file.read(), kind).reshape(shape, order="F" if fortran else "C")


def marian_settings(path: Path, content: np.ndarray[Any, Any] | None) -> dict[str, Any]:
    """Our settings for those of special:model.yml."""
    if content is None:
        raise NMTError(f"{path}: no {SPECIAL} in it, so it is no model of Marian")
    try:
        tree = parse_yaml(content.tobytes().rstrip(b"\0").decode())
    except ValueError as error:
        raise NMTError(f"{path}: its {SPECIAL} cannot be read ({one_line(error)})") from error
    require(isinstance(tree, dict) and "type" in tree, f"{path}: its {SPECIAL} has no type")
    check_settings(path, tree, SUPPORTED)
    operations = tuple(setting(path, tree, key, str, "").replace("d", "") for key in OPERATIONS)
    if operations not in NORMS:
        given = ", ".join(f"{key}={shown(tree.get(key))}" for key in OPERATIONS)
        raise NMTError(f"{path}: {given}: only post-norm (dan) or pre-norm layers (n, da, n) can be imported")
    sizes = {name: setting(path, tree, key, int) for name, key in SIZES.items()}
    inner = setting(path, tree, "transformer-decoder-dim-ffn", int, 0)
    require(inner in (0, sizes["d_ff"]), f"{path}: transformer-decoder-dim-ffn differs")
    activation = tree.get("transformer-ffn-activation") or "swish"
    version = tuple(map(int, re.findall(r"\d+", str(tree.get("version")))[:3]))
    quick = activation == "gelu" and version < EXACT_GELU
    return {**sizes, "activation": "quick_gelu" if quick else activation, "norm": NORMS[operations]}


def tensor_of(path: Path, name: str, array: np.ndarray[Any, Any]) -> Tensor:
    """An array in float32; NMTError for other numbers than a model has."""
    if array.dtype not in (np.float16, np.float32):
        kind = f"{path}: {shown(name)} holds {array.dtype}, not float32"
        raise NMTError(f"{kind}; of an 8-bit model, import the one it was made from")
    return torch.from_numpy(array.astype(np.float32))


def split_vocabulary(weights: Weights) -> tuple[Weights, Weights]:
    """The weights of the layers under Marian's names, and the others under those of VOCABULARY."""
    layers = dict(weights)
    shared = layers.pop("Wemb", None)
    source, target = (layers.pop(f"{stack}_Wemb", shared) for stack in ("encoder", "decoder"))
    output, columns = layers.pop("decoder_ff_logit_out_Wt", target), layers.pop("decoder_ff_logit_out_W", None)
    output = output if columns is None else columns.T
    tensors = source, target, output, layers.pop("decoder_ff_logit_out_b", None)
    return layers, {name: tensor for name, tensor in zip(VOCABULARY, tensors, strict=True) if tensor is not None}


def read_hub(folder: Path, trained_by: str | None) -> Foreign:
    """The model of a folder. `trained_by` is marian or transformers; None: by the row of <pad>."""
    where = folder / "config.json"
    tree = read_mapping(where, parse_json)
    require("model_type" in tree, f"{where}: it has no model_type")
    check_settings(where, tree, HUB_SUPPORTED)
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
    layers, vocabulary = split_hub_vocabulary(tensors(folder))
    padding = tables[-1].index(MARIAN_SYMBOLS[2])
    embedding = vocabulary.get(VOCABULARY[1])
    is_marians = embedding is None or embedding.dim() != 2 or not embedding[padding : padding + 1].any()
    trained_by = trained_by or ("marian" if is_marians else "transformers")
    config, weights = read_weights(folder, settings, trained_by, tokenizer, layers, vocabulary)
    search = folder / "generation_config.json"
    penalty = (search, read_mapping(search, parse_json)) if search.exists() else (where, tree)
    path = folder / "tokenizer_config.json"
    languages = read_mapping(path, parse_json) if path.exists() else {}
    foreign = Foreign(f"trained by {trained_by}", config, weights, tokenizer)
    foreign.length_penalty = length_penalty(*penalty, "length_penalty", 1.0)
    foreign.languages = language(languages.get("source_lang")), language(languages.get("target_lang"))
    foreign.package = "transformers"
    foreign.program = lambda decode: original(config, {**layers, **vocabulary}, tokenizer, decode)
    return foreign


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


def split_hub_vocabulary(weights: Weights) -> tuple[Weights, Weights]:
    """The weights of the layers, and those of VOCABULARY; without positions, which are sinusoids."""
    for stack in ("encoder", "decoder"):
        weights.pop(f"model.{stack}.embed_positions.weight", None)
    shared = weights.pop("model.shared.weight", None)
    source, target, output, bias = (weights.pop(name, None) for name in VOCABULARY)
    source, target = (shared if matrix is None else matrix for matrix in (source, target))
    tensors = source, target, (target if output is None else output), bias
    return weights, {name: tensor for name, tensor in zip(VOCABULARY, tensors, strict=True) if tensor is not None}
