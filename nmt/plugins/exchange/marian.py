"""Models of Marian (https://marian-nmt.github.io), which may come from anyone.

model.npz               weights, and the settings of training
decoder.yml             the names of model and vocabularies, the length penalty
vocab.yml, *.spm        the vocabularies
source.spm, target.spm  the sentencepiece models, unless the vocabularies are such models themselves
"""

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from nmt.config import require, shown
from nmt.errors import NMTError, one_line
from nmt.files import check_members, check_regular, parse_yaml, read_bytes, read_mapping, read_text
from nmt.plugins.exchange.foreign import (
    Foreign,
    Weights,
    check_settings,
    entries_by_number,
    length_penalty,
    setting,
    tokenizer_of,
)
from nmt.plugins.exchange.marian_program import Marian
from nmt.plugins.exchange.marian_weights import VOCABULARY, read_weights
from nmt.text import MarianTokenizer

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


def read_marian(path: Path) -> Foreign:
    """The model of an .npz with decoder.yml beside it, or of the folder of both."""
    folder = path if path.is_dir() else path.parent
    beside = [folder / f"{path.name}.decoder.yml", folder / "decoder.yml"] if path != folder else []
    decoder = next((file for file in [*beside, *sorted(folder.glob("*decoder.yml"))] if file.is_file()), None)
    if decoder is None:
        raise NMTError(f"{folder}: no decoder.yml, which names the vocabularies")
    tree = read_mapping(decoder, parse_yaml)
    # Only the names of the paths count: nothing outside of the folder is read.
    models, names = ([folder / Path(str(name)).name for name in tree.get(key) or ()] for key in ("models", "vocabs"))
    require(path != folder or len(models) == 1, f"{decoder}: name the .npz of one model, of {len(models)} there")
    require(len(names) == 2, f"{decoder}: it does not name two vocabularies, but {len(names)}")
    file = path if path != folder else models[0]
    arrays = read_npz(file)
    settings = marian_settings(file, arrays.pop(SPECIAL, None))
    weights = {name: tensor_of(file, name, array) for name, array in arrays.items()}
    tokenizer = read_vocabularies(folder, names)
    config, ours = read_weights(file, settings, "marian", tokenizer, *split_vocabulary(weights))
    return Foreign(
        "trained by marian",
        config,
        ours,
        tokenizer,
        "_pymarian",
        lambda decode: Marian(file, options(settings, weights), weights, tokenizer, decode),
        length_penalty(decoder, tree, "normalize", 0.0),
    )


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


def options(settings: dict[str, Any], weights: Weights) -> dict[str, Any]:
    """special:model.yml for our settings. Every other option has Marian's default."""
    norms = next(operations for operations, norm in NORMS.items() if norm == settings["norm"])
    shared, output = "Wemb" in weights, any(name.startswith("decoder_ff_logit_out_W") for name in weights)
    return {
        "type": "transformer",
        **{key: settings[name] for name, key in SIZES.items()},
        **dict(zip(OPERATIONS, norms, strict=True)),
        "transformer-ffn-activation": settings["activation"].removeprefix("quick_"),
        "tied-embeddings-all": shared and not output,
        "tied-embeddings-src": shared and output,
        "tied-embeddings": not shared and not output,
    }


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
