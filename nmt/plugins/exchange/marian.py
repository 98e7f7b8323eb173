"""Models of Marian (https://marian-nmt.github.io), which may come from anyone.

model.npz               weights, and the settings of training
decoder.yml             the names of model and vocabularies, the length penalty
vocab.yml, *.spm        the vocabularies
source.spm, target.spm  the sentencepiece models, unless the vocabularies are such models themselves
"""

import json
import math
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from nmt.config import require, shown
from nmt.errors import NMTError, one_line
from nmt.files import check_members, check_regular, parse_yaml, read_bytes, read_mapping, read_text
from nmt.plugins.exchange.foreign_model import (
    EMBEDDINGS,
    Foreign,
    check_flags,
    read_tokenizer,
    setting,
    table_of,
    tokenizer_of,
)
from nmt.plugins.exchange.marian_hub import read_huggingface
from nmt.plugins.exchange.marian_weights import Weights
from nmt.text import MarianTokenizer

MARIAN_FLAGS: dict[str, tuple[Any, ...]] = {
    **{"type": ("transformer",), "transformer-decoder-autoreg": ("self-attention",), "input-types": ([],)},
    **{"transformer-ffn-depth": (2,), "transformer-decoder-ffn-depth": (0, 2), "transformer-tied-layers": ([],)},
    **{"transformer-postprocess-emb": ("d", ""), "transformer-attention-mask": ("default",)},
    **{"lemma-dim-emb": (0,), "factors-dim-emb": (0,)},
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
TOP_NORM = re.compile(r"(encoder|decoder)_top_ln_(scale|bias)")
NORM = re.compile(r"(encoder|decoder)_l(\d+)_(self|context|ffn)_(?:Wo|ffn)_ln_(scale|bias)(_pre|)")
MAP = re.compile(r"(encoder|decoder)_l(\d+)_(self|context|ffn)_([Wb])([qkvo12])")
"""The names of Marian's parameters."""


def read(path: Path, trained_by: str | None) -> Foreign:
    """A model of Marian's own files, or of a folder as on the hub; NMTError where it is neither, or not supported.

    `trained_by` is marian or transformers; None: by the row of <pad>.
    """
    if path.suffix == ".npz" or any(path.glob("*decoder.yml")):
        require(trained_by != "transformers", f"trained_by=transformers: {path} is a model of Marian itself")
        return read_marian(path)
    require(path.is_dir(), f"{path}: no such folder, and no .npz of Marian")
    there = (path / "config.json").is_file()
    require(
        there, f"{path}: neither config.json of MarianMT there, nor decoder.yml of Marian, nor model.bin of CTranslate2"
    )
    return read_huggingface(path, trained_by)


def read_marian(path: Path) -> Foreign:
    """Marian's own files: an .npz with decoder.yml, or the folder of both."""
    folder = path if path.is_dir() else path.parent
    beside = [folder / f"{path.name}.decoder.yml", folder / "decoder.yml"] if path != folder else []
    decoder = next((each for each in [*beside, *sorted(folder.glob("*decoder.yml"))] if each.is_file()), None)
    if decoder is None:
        raise NMTError(f"{folder}: no decoder.yml, which names the vocabularies")
    tree = read_mapping(decoder, parse_yaml)
    models, names = (beside_it(folder, tree.get(key)) for key in ("models", "vocabs"))
    require(path != folder or len(models) == 1, f"{decoder}: name the .npz of one model, of {len(models)} there")
    require(len(names) == 2, f"{decoder}: it does not name two vocabularies, but {len(names)}")
    penalty = setting(decoder, tree, "normalize", float, 0.0)
    require(0 <= penalty <= 10, f"{decoder}: normalize={shown(penalty)}: it must be between 0 and 10")
    file = path if path != folder else models[0]
    content = read_npz(file)
    settings = marian_settings(file, content.pop("special:model.yml", None))
    arrays = tensors_of(file, content)
    weights = named_as_transformers(arrays, settings)
    return Foreign(file, settings, weights, marian_vocabularies(folder, names), float(penalty), arrays)


def beside_it(folder: Path, names: Any) -> list[Path]:
    """The files of a list of paths; only their names count."""
    return [folder / Path(str(name)).name for name in (names if isinstance(names, list) else [])]


def marian_vocabularies(folder: Path, names: list[Path]) -> MarianTokenizer:
    """The tokenizer of two vocabularies, which may be one: sentencepiece models, or tables in YAML."""
    models = [path.suffix == ".spm" for path in names]
    require(models[0] == models[1], f"{folder}: one of its vocabularies is a sentencepiece model, the other is none")
    one = names[:1] if names[0] == names[1] else names
    if not models[0]:
        return read_tokenizer(folder, [read_table(path) for path in one], tags=True)
    return tokenizer_of(folder, names, [pieces(path) for path in one], tags=False)


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
    return table_of(path, tree)


def read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an .npz without pickles, each as large as the file says."""
    check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path.stat().st_size)
            return {each.filename.removesuffix(".npy"): read_array(archive, each) for each in archive.infolist()}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise NMTError(f"{path}: not an .npz that can be read ({one_line(error)})") from error


def read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
    """An array; ValueError where it is none of numbers, or not as large as its header says."""
    with archive.open(member) as file:
        readers: dict[tuple[int, int], Callable[..., Any]] = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        version = np.lib.format.read_magic(file)
        if version not in readers:
            raise ValueError(f"{member.filename} has format {version}")
        shape, fortran, kind = readers[version](file)
        size = kind.itemsize * math.prod(shape)
        if kind.kind not in "fiu" or size != member.file_size - file.tell():
            raise ValueError(f"{member.filename} does not hold the numbers that it says")
        return np.frombuffer(file.read(), kind).reshape(shape, order="F" if fortran else "C")


def marian_settings(path: Path, content: np.ndarray[Any, Any] | None) -> dict[str, Any]:
    """Our settings for those of special:model.yml."""
    require(content is not None, f"{path}: no special:model.yml in it, so it is no model of Marian")
    assert content is not None
    try:
        tree = parse_yaml(content.tobytes().rstrip(b"\0").decode())
    except ValueError as error:
        raise NMTError(f"{path}: its special:model.yml cannot be read ({one_line(error)})") from error
    require(isinstance(tree, dict) and "type" in tree, f"{path}: its special:model.yml has no type")
    check_flags(path, tree, MARIAN_FLAGS)
    operations = tuple(setting(path, tree, key, str, "").replace("d", "") for key in OPERATIONS)
    if operations not in NORMS:
        given = ", ".join(f"{key}={shown(tree.get(key))}" for key in OPERATIONS)
        raise NMTError(f"{path}: {given}: only post-norm (dan) or pre-norm layers (n, da, n) can be imported")
    activation = setting(path, tree, "transformer-ffn-activation", str, "swish")
    require(activation in ("relu", "swish", "gelu"), f"{path}: transformer-ffn-activation={shown(activation)}")
    version = tuple(map(int, re.findall(r"\d+", str(tree.get("version")))[:3]))
    sizes = {name: setting(path, tree, key, int) for name, key in SIZES.items()}
    inner = setting(path, tree, "transformer-decoder-dim-ffn", int, 0)
    require(inner in (0, sizes["d_ff"]), f"{path}: transformer-decoder-dim-ffn differs")
    return {
        **sizes,
        "activation": "quick_gelu" if activation == "gelu" and version < EXACT_GELU else activation,
        "norm": NORMS[operations],
    }


def tensors_of(path: Path, content: dict[str, np.ndarray[Any, Any]]) -> Weights:
    """The arrays of an .npz in float32; NMTError for those of other numbers than a model has."""
    for name, array in content.items():
        if array.dtype not in (np.float16, np.float32):
            kind = f"{path}: {shown(name)} holds {array.dtype}, not float32"
            raise NMTError(f"{kind}; of an 8-bit model, import the one it was made from")
    return {name: torch.from_numpy(array.astype(np.float32)) for name, array in content.items()}


def named_as_transformers(arrays: Weights, settings: dict[str, Any]) -> Weights:
    """Marian's arrays under the names of MarianMTModel, matrices as [out, in]."""
    found = dict(arrays)
    shared = found.pop("Wemb", None)
    source, target = (found.pop(f"{stack}_Wemb", shared) for stack in ("encoder", "decoder"))
    output = found.pop("decoder_ff_logit_out_Wt", target)
    if "decoder_ff_logit_out_W" in found:
        output = found.pop("decoder_ff_logit_out_W").T
    embeddings = dict(zip(EMBEDDINGS, (source, target, output), strict=True))
    weights = {name: tensor for name, tensor in embeddings.items() if tensor is not None}
    if "decoder_ff_logit_out_b" in found:
        weights["final_logits_bias"] = found.pop("decoder_ff_logit_out_b")
    for name, tensor in found.items():
        weights[transformers_name(name, settings["norm"] == "pre")] = tensor.T if is_map(name) else tensor
    return {name: tensor[0] if is_vector(name, tensor) else tensor for name, tensor in weights.items()}


def is_map(name: str) -> bool:
    found = MAP.fullmatch(name)
    return found is not None and found[4] == "W"


def is_vector(name: str, tensor: Tensor) -> bool:
    """True for what Marian keeps as a matrix of one row, and transformers as a vector."""
    return tensor.dim() == 2 and len(tensor) == 1 and (name.endswith(".bias") or "layer_norm" in name)


def transformers_name(name: str, pre_norm: bool) -> str:
    """The name in MarianMTModel of one of Marian's parameters; itself, if it has none."""
    attentions, kinds = {"self": "self_attn", "context": "encoder_attn"}, {"scale": "weight", "bias": "bias"}
    if found := TOP_NORM.fullmatch(name):
        return f"model.{found[1]}.layer_norm.{kinds[found[2]]}"
    if (found := NORM.fullmatch(name)) and (found[5] == "_pre") == pre_norm:
        norm = f"{attentions[found[3]]}_layer_norm" if found[3] in attentions else "final_layer_norm"
        return f"model.{found[1]}.layers.{int(found[2]) - 1}.{norm}.{kinds[found[4]]}"
    if found := MAP.fullmatch(name):
        kind, letter = {"W": "weight", "b": "bias"}[found[4]], found[5]
        part = f"{attentions.get(found[3])}.{'out' if letter == 'o' else letter}_proj"
        part = f"fc{letter}" if found[3] == "ffn" else part
        return f"model.{found[1]}.layers.{int(found[2]) - 1}.{part}.{kind}"
    return name


def write_marian(found: Foreign, folder: Path) -> tuple[str, str]:
    """Write a model that was read here as Marian's own files, under names of ours; returns those of the vocabularies.

    Marian gives a name that ends in | to a shell, and takes any of its options from special:model.yml, such as files to
    write. So it gets no name, no setting and no file of the folder that the model came in.
    """
    assert found.arrays is not None
    names, tables = ("source.yml", "target.yml"), (found.tokenizer.tables[0], found.tokenizer.tables[-1])
    options = {**marian_options(found.settings, found.arrays), "dim-vocabs": list(map(len, tables))}
    special = np.frombuffer(json.dumps(options).encode() + b"\0", np.int8)
    arrays = {name: tensor.numpy() for name, tensor in found.arrays.items()}
    np.savez(folder / "model.npz", **{**arrays, "special:model.yml": special})  # type: ignore[arg-type]
    for name, table in zip(names, tables, strict=True):
        numbers = {entry: number for number, entry in enumerate(table)}
        (folder / name).write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    return names


def marian_options(settings: dict[str, Any], arrays: Weights) -> dict[str, Any]:
    """special:model.yml for our settings. Every other option has Marian's default."""
    norms = next(operations for operations, norm in NORMS.items() if norm == settings["norm"])
    shared, output = "Wemb" in arrays, any(name.startswith("decoder_ff_logit_out_W") for name in arrays)
    return {
        "type": "transformer",
        **{key: settings[name] for name, key in SIZES.items()},
        **dict(zip(OPERATIONS, norms, strict=True)),
        "transformer-ffn-activation": settings["activation"].removeprefix("quick_"),
        "tied-embeddings-all": shared and not output,
        "tied-embeddings-src": shared and output,
        "tied-embeddings": not shared and not output,
    }
