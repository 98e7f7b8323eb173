"""Import Marian models (https://marian-nmt.github.io) from untrusted folders, either as Marian's own files:

model.npz               weights and training settings
decoder.yml             names of the model and vocabularies, length penalty
vocab.yml, *.spm        vocabularies: sentencepiece models, or tables with source.spm and target.spm beside them

or as MarianMT on the Hugging Face Hub:

config.json             settings; optionally generation_config.json (length penalty), tokenizer_config.json (languages)
model.safetensors       weights
vocab.json              piece numbers; only the source's if there is also a target_vocab.json
source.spm, target.spm  sentencepiece models

Marian computes different sinusoids than transformers, uses an epsilon of 1e-6, and starts its decoder from zeros. An
imported model does the same, unless it was trained by transformers: then the embedding of <pad>, its decoder's start
token, is not zero. Our vocabularies begin with PAD, BOS, EOS and UNK. Imported vocabularies are tables that
contain </s> and <unk>, and in transformers also <pad>. names.py covers the other differences.

Shapes: D d_model, N vocabulary.
"""

import io
import json
import re
import zipfile
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sentencepiece
import torch
import yaml
from safetensors.torch import load_file
from torch import Tensor

from nmt import files
from nmt.config import LANGUAGE, ModelConfig, NMTError, build, matches, one_line, require, shown
from nmt.model import Transformer
from nmt.plugins.exchange.marian_tokenizer import MARIAN_SYMBOLS, VERSION_KEY, MarianTokenizer
from nmt.plugins.exchange.names import halves, layer_table
from nmt.text import SOURCE

Weights = dict[str, Tensor]
VOCABULARY = (
    *("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
    "final_logits_bias",
)
"""The names that transformers uses for EMBEDDINGS and output.bias."""
COMPUTED_BY: dict[str, dict[str, Any]] = {
    "marian": {"zero_start": True, "positions": "tensor2tensor", "norm_epsilon": 1e-6},
    "transformers": {"padding_probability": False},
}
"""How models differ from the paper, keyed by the program that trained them."""
SUPPORTED: dict[str, tuple[Any, ...]] = {
    **{"type": ("transformer",), "transformer-decoder-autoreg": ("self-attention",), "input-types": ([],)},
    **{"transformer-ffn-depth": (2,), "transformer-decoder-ffn-depth": (0, 2), "transformer-tied-layers": ([],)},
    **{"transformer-postprocess-emb": ("d", ""), "transformer-attention-mask": ("default",)},
    **{"lemma-dim-emb": (0,), "factors-dim-emb": (0,), "transformer-ffn-activation": ("swish", "relu", "gelu")},
    **dict.fromkeys(("transformer-no-projection", "transformer-pool", "transformer-no-bias", "ulr"), (False,)),
    **dict.fromkeys(("transformer-no-affine", "transformer-disable-position-embeddings", "right-left"), (False,)),
    **dict.fromkeys(("transformer-train-position-embeddings", "transformer-train-positions"), (False,)),
    "output-omit-bias": (False,),
}
"""Keys of special:model.yml and their supported values, Marian's default first."""
HUB_SUPPORTED: dict[str, tuple[Any, ...]] = {
    **{"model_type": ("marian",), "scale_embedding": (True,), "add_final_layer_norm": (False,)},
    **{"normalize_before": (False,), "normalize_embedding": (False,), "static_position_embeddings": (True,)},
    "activation_function": ("relu", "swish", "silu", "gelu", "quick_gelu"),
}
"""Keys of config.json and their supported values."""
OPERATIONS = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
NORMS = {("", "an", ""): "post", ("n", "a", "n"): "pre"}
"""Marian's operations before and after a sub-layer and on top of the stack, omitting dropout -> model.norm."""
EXACT_GELU = (1, 12, 3)
"""The first Marian version whose gelu is not x sigmoid(1.702 x)."""
SPECIAL = "special:model.yml"


class MarianModel(NamedTuple):
    """An imported model."""

    model: Transformer
    tokenizer: MarianTokenizer
    trained_by: str  # marian or transformers
    length_penalty: float  # alpha for length_penalty_kind=marian
    languages: tuple[str, str] = ("und", "und")


def read_model(path: Path) -> MarianModel:
    if path.suffix == ".npz" or any(path.glob("*decoder.yml")):
        return read_marian(path)
    require(path.is_dir(), f"{path}: no such folder or Marian .npz")
    names = "has neither MarianMT's config.json nor Marian's decoder.yml"
    require((path / "config.json").is_file(), f"{path}: {names}")
    return read_hub(path)


def setting(where: Path, tree: dict[str, Any], key: str, kind: type, default: Any = None) -> Any:
    """The value of a key, or the default if it is missing or null; NMTError for a value of the wrong type."""
    value = default if tree.get(key) is None else tree[key]
    require(matches(value, kind), f"{where}: {key}={shown(repr(value))} is missing or of the wrong type")
    return value


def check_settings(where: Path, tree: dict[str, Any], supported: dict[str, tuple[Any, ...]]) -> None:
    """Raise NMTError for an unsupported value; a missing key counts as its first supported value."""
    for key, values in supported.items():
        value = values[0] if tree.get(key) is None else tree[key]
        fits = any(value == one and type(value) is type(one) for one in values)
        only = " or ".join(str(value) or "nothing" for value in values)
        require(fits, f"{where}: {key}={shown(value)}: only {only} can be imported")


def length_penalty(where: Path, tree: dict[str, Any], key: str, default: float) -> float:
    alpha = setting(where, tree, key, float, default)
    require(0 <= alpha <= 10, f"{where}: {key}={shown(alpha)}: must be between 0 and 10")
    return float(alpha)


def read_marian(path: Path) -> MarianModel:
    folder = path if path.is_dir() else path.parent
    beside = [folder / f"{path.name}.decoder.yml", folder / "decoder.yml"] if path != folder else []
    decoder = next((file for file in [*beside, *sorted(folder.glob("*decoder.yml"))] if file.is_file()), None)
    if decoder is None:
        raise NMTError(f"{folder}: no decoder.yml, which names the vocabularies")
    tree = files.read_mapping(decoder, files.parse_yaml)
    # Use only the file names from the paths, so that nothing outside the folder is read.
    lists = (setting(decoder, tree, key, list, []) for key in ("models", "vocabs"))
    models, names = ([folder / Path(str(name)).name for name in paths] for paths in lists)
    require(path != folder or len(models) == 1, f"{decoder}: has {len(models)} models; pass the .npz of one")
    require(len(names) == 2, f"{decoder}: has {len(names)} vocabularies, not two")
    file = path if path != folder else models[0]
    arrays = read_npz(file)
    settings = marian_settings(file, arrays.pop(SPECIAL, None))
    for name, array in arrays.items():
        problem = f"{file}: {shown(name)} has type {array.dtype}, not float32; for an 8-bit model, import the original"
        require(array.dtype in (np.float16, np.float32), problem)
    weights = {name: torch.from_numpy(array.astype(np.float32)) for name, array in arrays.items()}
    shared = weights.pop("Wemb", None)
    source, target = (weights.pop(f"{stack}_Wemb", shared) for stack in ("encoder", "decoder"))
    rows, columns, bias = (weights.pop(f"decoder_ff_logit_out_{name}", None) for name in ("Wt", "W", "b"))
    output = columns.T if columns is not None else rows if rows is not None else target
    tokenizer = read_vocabularies(folder, names)
    model = read_weights(file, settings, "marian", tokenizer, weights, (source, target, output, bias))
    return MarianModel(model, tokenizer, "marian", length_penalty(decoder, tree, "normalize", 0.0))


def read_vocabularies(folder: Path, names: list[Path]) -> MarianTokenizer:
    """The tokenizer for two vocabularies, possibly the same one: sentencepiece models or YAML tables."""
    are_models = {path.suffix == ".spm" for path in names}
    require(len(are_models) == 1, f"{folder}: only one of its vocabularies is a sentencepiece model")
    if True in are_models:
        return tokenizer_of(names, [pieces(path) for path in dict.fromkeys(names)], tags=False)
    tables = [read_table(path) for path in dict.fromkeys(names)]
    return tokenizer_of([folder / "source.spm", folder / "target.spm"], tables, tags=True)


def pieces(path: Path) -> list[str]:
    try:
        model = sentencepiece.SentencePieceProcessor(model_proto=files.read_bytes(path))
        return [str(model.id_to_piece(number)) for number in range(model.vocab_size())]
    except (RuntimeError, UnicodeDecodeError) as error:
        raise NMTError(f"{path}: not a sentencepiece model ({one_line(error)})") from error


def read_table(path: Path) -> list[str]:
    """The entries of a YAML vocabulary, all read as strings, because the entry `no` would become a boolean."""
    try:
        tree = yaml.load(files.read_text(path), getattr(yaml, "CBaseLoader", yaml.BaseLoader))
    except (yaml.YAMLError, RecursionError) as error:
        raise NMTError(f"{path}: not plain YAML ({one_line(error)})") from error
    require(matches(tree, dict[str, str]), f"{path}: not a mapping of entries to numbers")
    return entries_by_number(path, tree)


def entries_by_number(path: Path, numbers: dict[str, Any]) -> list[str]:
    if sorted(map(str, numbers.values())) != sorted(map(str, range(len(numbers)))):
        raise NMTError(f"{path}: its entries must be numbered 0, 1, 2 and so on, each number once")
    return sorted(numbers, key=lambda entry: int(numbers[entry]))


def tokenizer_of(models: Sequence[Path], tables: Sequence[list[str]], tags: bool) -> MarianTokenizer:
    contents = [b64encode(files.read_bytes(path)).decode() for path in models]
    tree = {VERSION_KEY: 1, "tags": tags, "models": contents, "tables": list(tables)}
    try:
        return MarianTokenizer(json.dumps(tree, ensure_ascii=False).encode())
    except (ValueError, RuntimeError) as error:
        raise NMTError(f"{models[0].parent}: cannot make a tokenizer ({one_line(error)})") from error


def read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of an .npz, read without pickle; NMTError if they claim more bytes than the file has."""
    files.check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            files.check_members(archive, path.stat().st_size)
            return {name.removesuffix(".npy"): read_array(archive.read(name)) for name in archive.namelist()}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise NMTError(f"{path}: not a readable .npz ({one_line(error)})") from error


def read_array(content: bytes) -> np.ndarray[Any, Any]:
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array's format is newer than Marian's")
    shape, fortran, kind = np.lib.format.read_array_header_1_0(file)
    return np.frombuffer(file.read(), kind).reshape(shape, order="F" if fortran else "C")


def marian_settings(path: Path, content: np.ndarray[Any, Any] | None) -> dict[str, Any]:
    """The ModelConfig values that correspond to Marian's training settings."""
    if content is None:
        raise NMTError(f"{path}: no {SPECIAL}, so it is not a Marian model")
    try:
        tree = files.parse_yaml(content.tobytes().rstrip(b"\0").decode())
    except ValueError as error:
        raise NMTError(f"{path}: cannot read its {SPECIAL} ({one_line(error)})") from error
    require(isinstance(tree, dict) and "type" in tree, f"{path}: its {SPECIAL} has no type")
    check_settings(path, tree, SUPPORTED)
    operations = tuple(setting(path, tree, key, str, "").replace("d", "") for key in OPERATIONS)
    given = ", ".join(f"{key}={shown(tree.get(key))}" for key in OPERATIONS)
    require(operations in NORMS, f"{path}: {given}: only post-norm (dan) or pre-norm layers (n, da, n) can be imported")
    names = {"encoder_layers": "enc-depth", "decoder_layers": "dec-depth", "d_model": "dim-emb"}
    names |= {"d_ff": "transformer-dim-ffn", "heads": "transformer-heads"}
    sizes = {name: setting(path, tree, key, int) for name, key in names.items()}
    inner = setting(path, tree, "transformer-decoder-dim-ffn", int, 0)
    require(inner in (0, sizes["d_ff"]), f"{path}: transformer-decoder-dim-ffn differs from transformer-dim-ffn")
    activation = tree.get("transformer-ffn-activation") or "swish"
    version = tuple(map(int, re.findall(r"\d+", str(tree.get("version")))[:3]))
    if activation == "gelu" and version < EXACT_GELU:
        activation = "quick_gelu"
    return {**sizes, "activation": activation, "norm": NORMS[operations]}


def read_hub(folder: Path) -> MarianModel:
    """The model in a MarianMT folder. If its <pad> row is zero, Marian trained it; otherwise, transformers did."""
    where, weights_file = folder / "config.json", folder / "model.safetensors"
    tree = files.read_mapping(where, files.parse_json)
    require("model_type" in tree, f"{where}: no model_type")
    check_settings(where, tree, HUB_SUPPORTED)
    for key in ("attention_heads", "ffn_dim"):
        one, other = (setting(where, tree, f"{stack}_{key}", int) for stack in ("encoder", "decoder"))
        require(one == other, f"{where}: encoder_{key} and decoder_{key} differ: {one} and {other}")
    activation = setting(where, tree, "activation_function", str)
    settings = {
        **{key: setting(where, tree, key, int) for key in ("encoder_layers", "decoder_layers", "d_model")},
        **{"d_ff": tree["encoder_ffn_dim"], "heads": tree["encoder_attention_heads"]},
        "dropout": setting(where, tree, "dropout", float, 0.1),
        "activation": "swish" if activation == "silu" else activation,
    }
    paths = [folder / "vocab.json", *folder.glob("target_vocab.json")]
    tables = [entries_by_number(path, files.read_mapping(path, files.parse_json, files.LARGE)) for path in paths]
    tokenizer = tokenizer_of([folder / "source.spm", folder / "target.spm"], tables, tags=True)
    require(MARIAN_SYMBOLS[2] in tables[-1], f"{folder}: its vocabulary has no <pad>, from which the decoder starts")
    conversion = "MarianMTModel.from_pretrained(FOLDER).save_pretrained(FOLDER) in transformers"
    require(weights_file.exists(), f"{weights_file}: missing; to convert pytorch_model.bin, run {conversion}")
    files.stored_shapes(weights_file)
    weights = load_file(weights_file)
    for stack in ("encoder", "decoder"):  # sinusoids
        weights.pop(f"model.{stack}.embed_positions.weight", None)
    shared = weights.pop("model.shared.weight", None)
    source, target, output, bias = (weights.pop(name, None) for name in VOCABULARY)
    source, target = (shared if matrix is None else matrix for matrix in (source, target))
    padding = tables[-1].index(MARIAN_SYMBOLS[2])
    is_marians = target is None or target.dim() != 2 or not target[padding : padding + 1].any()
    vocabulary = source, target, target if output is None else output, bias
    trained_by = "marian" if is_marians else "transformers"
    model = read_weights(folder, settings, trained_by, tokenizer, weights, vocabulary)
    search, path = folder / "generation_config.json", folder / "tokenizer_config.json"
    penalty = (search, files.read_mapping(search, files.parse_json)) if search.exists() else (where, tree)
    languages = files.read_mapping(path, files.parse_json) if path.exists() else {}
    codes = [languages.get(f"{side}_lang") for side in ("source", "target")]
    first, second = (code if isinstance(code, str) and LANGUAGE.fullmatch(code) else "und" for code in codes)
    alpha = length_penalty(*penalty, "length_penalty", 1.0)
    return MarianModel(model, tokenizer, trained_by, alpha, (first, second))


def read_weights(
    where: Path,
    settings: dict[str, Any],
    by: str,
    tokenizer: MarianTokenizer,
    layers: Weights,
    vocabulary: tuple[Tensor | None, ...],
) -> Transformer:
    """Build the model with these weights, tying matrices that are equal.

    `by` is the program that trained the model. The keys of `layers` are Marian's or transformers' names;
    `vocabulary` is in VOCABULARY's order. Raises NMTError if weights are missing, unexpected or of the wrong shape.
    """
    marians = any(name.startswith("encoder_l1_") for name in layers)
    tables, (source, target, output, _) = tokenizer.tables, vocabulary
    if source is None or target is None or output is None:
        raise NMTError(f"{where}: has no embeddings")
    left = layers | {name: tensor for name, tensor in zip(VOCABULARY, vocabulary, strict=True) if tensor is not None}

    def take(name: str, *shape: int) -> Tensor:
        require(name in left, f"{where}: {name} is missing")
        tensor = left.pop(name)
        if marians and name in layers and tensor.dim() == 2:
            tensor = tensor[0] if len(shape) == 1 and len(tensor) == 1 else tensor.T
        require(tensor.shape == shape, f"{where}: {name} has shape {list(tensor.shape)}, not {list(shape)}")
        require(bool(tensor.isfinite().all()), f"{where}: {name} has values that are not finite")
        return tensor.float()

    tied = torch.equal(target, output)
    # If only the source matrix is untied, the source needs its own vocabulary, although the entries are the same.
    joint = len(tables) == 1 and (not tied or torch.equal(source, target))
    sizes = {"tied_embeddings": tied, "source_vocabulary_size": None if joint else len(tokenizer.entries[SOURCE])}
    biases = {"attention_bias": True, "output_bias": True}
    config = build(ModelConfig, {"name": "marian", **settings, **biases, **sizes, **COMPUTED_BY[by]}, str(where))
    order_D, weights = torch.from_numpy(halves(config.d_model).argsort()), Weights()
    for row in layer_table(config):
        names = row.marian if marians else row.transformers
        tensor = torch.cat([take(name, row.shape[0] // len(names), *row.shape[1:]) for name in names])
        weights[row.ours] = tensor if row.axis is None else tensor.index_select(row.axis, order_D)
    for ours, theirs, side in zip((*files.EMBEDDINGS, "output.bias"), VOCABULARY, (0, -1, -1, -1), strict=True):
        table, is_bias = tables[side], ours == "output.bias"
        tensor = take(theirs, 1, len(table)).T if is_bias else take(theirs, len(table), config.d_model)[:, order_D]
        # PAD and BOS use the added row of zeros, unless transformers trained the <pad> row.
        tensor = torch.cat((tensor, torch.zeros_like(tensor[:1])))[rows_of(table, by == "transformers")]
        weights[ours] = tensor.flatten() if is_bias else tensor
    require(not left, f"{where}: unexpected weight {shown(min(left, default=''))}")
    model = Transformer(config, tokenizer.vocabulary_size)
    model.load_state_dict(weights)
    return model.eval()


def rows_of(table: Sequence[str], has_padding: bool) -> list[int]:
    """Each of our ids' row number in Marian's order; without `has_padding`, PAD and BOS share an extra last row."""
    row = {entry: number for number, entry in enumerate(table)}
    end, unknown, padding = (row.get(symbol, len(table)) for symbol in MARIAN_SYMBOLS)
    padding = padding if has_padding else len(table)
    return [padding, padding, end, unknown, *(row[entry] for entry in table if entry not in MARIAN_SYMBOLS)]
