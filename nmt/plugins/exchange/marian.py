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
contain </s> and <unk>, and in transformers also <pad>. `layer_table` covers the other differences:

- Matrices are [out, in] in nmt, transformers (MarianMTModel) and CTranslate2. In Marian they are [in, out], and vectors
  are [1, out].
- Marian and transformers keep sines and cosines in separate halves; nmt alternates them, as in the paper. So along
  every d_model dimension, their weights have the entries with our even indices first, then those with odd indices.

Shapes: D d_model, N vocabulary.
"""

import io
import json
import re
import zipfile
from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file
from sentencepiece import SentencePieceProcessor
from torch import Tensor

from nmt import files, registry, text
from nmt.config import (
    LANGUAGE,
    DecodeConfig,
    ModelConfig,
    NMTError,
    as_list,
    build,
    one_line,
    require,
    shown,
)
from nmt.model import Transformer
from nmt.plugins.exchange.supported import MARIAN_NUMBERS
from nmt.text import MARIAN_KEY, MARIAN_SYMBOLS, MarianTokenizer

Weights = dict[str, Tensor]
Arrays = dict[str, np.ndarray[Any, Any]]
VOCABULARY = (
    *("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"),
    "final_logits_bias",
)
"""The names that transformers uses for EMBEDDINGS and output.bias."""
SHARED, TRANSPOSED = "model.shared.weight", "decoder_ff_logit_out_W"
"""The matrix for all EMBEDDINGS that are missing, and Marian's name for the transpose of the last one."""
OUTSIDE_LAYERS = {"Wemb": SHARED, "encoder_Wemb": VOCABULARY[0], "decoder_Wemb": VOCABULARY[1]}
OUTSIDE_LAYERS |= {
    "decoder_ff_logit_out_Wt": VOCABULARY[2],
    "decoder_ff_logit_out_b": VOCABULARY[3],
}
"""Marian's names for the same matrices."""
COMPUTED_BY: dict[str, dict[str, Any]] = {
    "marian": MARIAN_NUMBERS,
    "transformers": {"padding_probability": False},
}
"""How models differ from the paper, keyed by the program that trained them."""
SUPPORTED: dict[str, tuple[Any, ...]] = {
    **{"type": ("transformer",), "transformer-decoder-autoreg": ("self-attention", "rnn")},
    **{
        "input-types": ([],),
        "transformer-postprocess-emb": ("d", ""),
        "transformer-attention-mask": ("default",),
    },
    **{
        "lemma-dim-emb": (0,),
        "factors-dim-emb": (0,),
        "transformer-ffn-activation": ("swish", "relu", "gelu"),
    },
    **dict.fromkeys(
        ("ulr", "right-left", "transformer-pool", "transformer-disable-position-embeddings"),
        (False,),
    ),
    **dict.fromkeys(
        ("transformer-train-position-embeddings", "transformer-train-positions"), (False,)
    ),
}
"""Keys of special:model.yml and their supported values, Marian's default first; other settings change the weights."""
HUB_SUPPORTED: dict[str, tuple[Any, ...]] = {
    **{"model_type": ("marian",), "scale_embedding": (True,), "add_final_layer_norm": (False,)},
    **{
        "normalize_before": (False,),
        "normalize_embedding": (False,),
        "static_position_embeddings": (True,),
    },
}
"""Keys of config.json and their supported values, the default first."""
HUB_KEYS = {
    **{
        "encoder_layers": "encoder_layers",
        "decoder_layers": "decoder_layers",
        "d_model": "d_model",
    },
    **{"encoder_ffn_dim": "d_ff", "decoder_ffn_dim": "d_ff", "dropout": "dropout"},
    **{
        "encoder_attention_heads": "heads",
        "decoder_attention_heads": "heads",
        "activation_function": "activation",
    },
}
"""Keys of config.json and the ModelConfig keys for the same values."""
MARIAN_KEYS = {
    **{"enc-depth": "encoder_layers", "dec-depth": "decoder_layers", "dim-emb": "d_model"},
    **{
        "transformer-dim-ffn": "d_ff",
        "transformer-decoder-dim-ffn": "d_ff",
        "transformer-heads": "heads",
    },
}
"""Keys of special:model.yml and the ModelConfig keys for the same values."""
OPERATIONS = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
NORMS: dict[tuple[str, ...], str] = {("", "an", ""): "post", ("n", "a", "n"): "pre"}
"""Marian's operations before and after a sub-layer and on top of the stack, omitting dropout -> model.norm."""
EXACT_GELU = (1, 12, 3)
"""The first Marian version whose gelu is not x sigmoid(1.702 x)."""
SPECIAL = "special:model.yml"


class MarianModel(NamedTuple):
    """An imported model."""

    model: Transformer
    trained_by: str  # marian or transformers
    tokenizer: MarianTokenizer
    length_penalty: float  # alpha for length_penalty_kind=marian
    languages: tuple[str, str] = ("und", "und")


def read_model(path: Path) -> MarianModel:
    if path.suffix == ".npz" or any(path.glob("*decoder.yml")):
        return read_marian(path)
    if (path / "config.json").is_file():
        return read_hub(path)
    for suffix, entry in registry.entries_of("import").items():
        if path.suffix == suffix or any(path.glob(f"*{suffix}")):
            return entry.load()(path)  # type: ignore[no-any-return]
    problem = "not a Marian .npz, nor a folder with MarianMT's config.json, Marian's decoder.yml or Firefox's .bin"
    raise NMTError(f"{path}: {problem} (unpack .gz files first)")


def model_settings(
    where: Path, tree: dict[str, Any], supported: dict[str, tuple[Any, ...]], keys: dict[str, str]
) -> dict[str, Any]:
    """The ModelConfig values of a program's settings; a key missing from `supported` counts as its first value."""
    for key, values in supported.items():
        value = values[0] if tree.get(key) is None else tree[key]
        fits = any(value == one and type(value) is type(one) for one in values)
        only = " or ".join(str(value) or "nothing" for value in values)
        require(fits, f"{where}: {key}={shown(value)}: only {only} can be imported")
    settings: dict[str, Any] = {}
    for key, name in keys.items():
        value = tree.get(key)
        require(
            settings.setdefault(name, value) == value,
            f"{where}: {key}={shown(value)} differs from the encoder's",
        )
    return settings


def length_penalty(where: Path, alpha: Any) -> float:
    return build(DecodeConfig, {"length_penalty": alpha}, str(where)).length_penalty


def read_marian(path: Path) -> MarianModel:
    folder = path if path.is_dir() else path.parent
    decoders = sorted(
        folder.glob("*decoder.yml"), key=lambda file: not file.name.startswith(path.name)
    )
    require(bool(decoders), f"{folder}: no decoder.yml, which names the vocabularies")
    decoder = decoders[0]
    tree = files.read_mapping(decoder, files.parse_yaml)
    # Use only the file names from the paths, so that nothing outside the folder is read.
    models, names = (
        [folder / Path(name).name for name in as_list(tree.get(key))]
        for key in ("models", "vocabs")
    )
    require(
        path != folder or len(models) == 1,
        f"{decoder}: has {len(models)} models; pass the .npz of one",
    )
    require(len(names) == 2, f"{decoder}: has {len(names)} vocabularies, not two")
    file = path if path != folder else models[0]
    arrays = read_npz(file)
    if all(name.suffix == ".spm" for name in names):
        tokenizer = tokenizer_of(names)
    else:
        tables = [read_table(name) for name in dict.fromkeys(names)]
        tokenizer = tokenizer_of([folder / "source.spm", folder / "target.spm"], tables)
    return model_of(file, arrays, tokenizer, length_penalty(decoder, tree.get("normalize") or 0.0))


def model_of(file: Path, arrays: Arrays, tokenizer: MarianTokenizer, *more: Any) -> MarianModel:
    """The model with the arrays of a file that Marian wrote; `more` are the length penalty and the languages."""
    settings = marian_settings(file, arrays.pop(SPECIAL, None))
    for name, array in arrays.items():
        problem = f"{file}: {shown(name)} has type {array.dtype}, not float32; for an 8-bit model, import the original"
        require(array.dtype in (np.float16, np.float32), problem)
    tensors = {name: torch.from_numpy(array.astype(np.float32)) for name, array in arrays.items()}
    weights = {OUTSIDE_LAYERS.get(name, name): tensor for name, tensor in tensors.items()}
    if TRANSPOSED in weights:
        weights[VOCABULARY[2]] = weights.pop(TRANSPOSED).T
    return MarianModel(*read_weights(file, settings, tokenizer, weights), tokenizer, *more)


def read_table(path: Path) -> list[str]:
    """The entries of a vocabulary, in order; in YAML, all are read as strings, as the entry `no` would become False."""
    parse = (
        files.parse_json if path.suffix == ".json" else partial(files.parse_yaml, kind="BaseLoader")
    )
    numbers = files.read_mapping(path, parse, files.LARGE)
    if sorted(map(str, numbers.values())) != sorted(map(str, range(len(numbers)))):
        raise NMTError(f"{path}: its entries must be numbered 0, 1, 2 and so on, each number once")
    return sorted(numbers, key=lambda entry: int(numbers[entry]))


def tokenizer_of(models: Sequence[Path], tables: Sequence[list[str]] = ()) -> MarianTokenizer:
    """The tokenizer with these sentencepiece models, whose pieces are numbered by tables or, if none, as in them."""
    contents = [files.read_bytes(path) for path in models]
    require(all(contents), f"{models[0].parent}: a vocabulary is empty")
    pieces = [pieces_of(path, content) for path, content in zip(models, contents, strict=True)]
    # A single model, or the same one twice, serves both sides.
    distinct = pieces[:1] if len(set(contents)) == 1 else pieces
    tree = {
        MARIAN_KEY: 1,
        "tags": bool(tables),
        "models": [b64encode(content).decode() for content in contents],
        "tables": tables or distinct,
    }
    try:
        return MarianTokenizer(json.dumps(tree, ensure_ascii=False).encode())
    except (ValueError, RuntimeError) as error:
        raise NMTError(
            f"{models[0].parent}: cannot make a tokenizer ({one_line(error)})"
        ) from error


def pieces_of(path: Path, content: bytes) -> list[str]:
    """The pieces of a sentencepiece model; NMTError with the file and, if it can be known, the piece."""
    try:
        processor = SentencePieceProcessor(model_proto=content)
        return [str(processor.id_to_piece(id)) for id in range(processor.vocab_size())]
    except (ValueError, RuntimeError) as error:
        number = nul_piece(content)
        problem = one_line(error)
        if number is not None:
            problem = f"piece {number} contains a NUL character, which sentencepiece cannot read"
        advice = "export or download the model again"
        raise NMTError(f"{path}: cannot make a tokenizer ({problem}): {advice}") from error


def nul_piece(content: bytes) -> int | None:
    """The number of the first piece with a NUL character in a sentencepiece model, from 0."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
    from sentencepiece import sentencepiece_model_pb2

    try:
        model = sentencepiece_model_pb2.ModelProto.FromString(content)  # type: ignore[attr-defined]
    except DecodeError:
        return None
    return next((number for number, entry in enumerate(model.pieces) if "\0" in entry.piece), None)


def read_npz(path: Path) -> Arrays:
    """The arrays of an .npz, read without pickle; NMTError if they claim more bytes than the file has."""
    files.check_regular(path)
    try:
        with zipfile.ZipFile(path) as archive:
            files.check_members(archive, path.stat().st_size)
            return {
                name.removesuffix(".npy"): read_array(archive.read(name))
                for name in archive.namelist()
            }
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
    tree["transformer-decoder-dim-ffn"] = tree.get("transformer-decoder-dim-ffn") or tree.get(
        "transformer-dim-ffn"
    )
    settings = model_settings(path, tree, SUPPORTED, MARIAN_KEYS)
    operations = tuple(str(tree.get(key) or "").replace("d", "") for key in OPERATIONS)
    given = ", ".join(f"{key}={shown(tree.get(key))}" for key in OPERATIONS)
    require(
        operations in NORMS,
        f"{path}: {given}: only post-norm (dan) or pre-norm layers (n, da, n) can be imported",
    )
    activation = tree.get("transformer-ffn-activation") or "swish"
    version = tuple(map(int, re.findall(r"\d+", str(tree.get("version")))[:3]))
    if activation == "gelu" and version < EXACT_GELU:
        activation = "quick_gelu"
    decoder, cell = "attention", tree.get("dec-cell")
    if tree.get("transformer-decoder-autoreg") == "rnn":
        only = "only self-attention, or post-norm layers with ssru, can be imported"
        fits = cell == "ssru" and operations == ("", "an", "")
        require(
            fits, f"{path}: transformer-decoder-autoreg=rnn with dec-cell={shown(cell)}: {only}"
        )
        decoder = "ssru"
    return {**settings, "activation": activation, "norm": NORMS[operations], "decoder": decoder}


def read_hub(folder: Path) -> MarianModel:
    where, weights_file = folder / "config.json", folder / "model.safetensors"
    tree = files.read_mapping(where, files.parse_json)
    require("model_type" in tree, f"{where}: no model_type")
    settings = model_settings(where, tree, HUB_SUPPORTED, HUB_KEYS)
    settings["activation"] = "swish" if settings["activation"] == "silu" else settings["activation"]
    paths = [folder / "vocab.json", *folder.glob("target_vocab.json")]
    tables = [read_table(path) for path in paths]
    tokenizer = tokenizer_of([folder / "source.spm", folder / "target.spm"], tables)
    require(
        MARIAN_SYMBOLS[2] in tables[-1],
        f"{folder}: its vocabulary has no <pad>, from which the decoder starts",
    )
    conversion = "MarianMTModel.from_pretrained(FOLDER).save_pretrained(FOLDER) in transformers"
    require(
        weights_file.exists(),
        f"{weights_file}: missing; to convert pytorch_model.bin, run {conversion}",
    )
    files.stored_shapes(weights_file)
    weights = load_file(weights_file)
    for stack in ("encoder", "decoder"):  # sinusoids
        weights.pop(f"model.{stack}.embed_positions.weight", None)
    search, path = folder / "generation_config.json", folder / "tokenizer_config.json"
    where, tree = (
        (search, files.read_mapping(search, files.parse_json)) if search.exists() else (where, tree)
    )
    languages = files.read_mapping(path, files.parse_json) if path.exists() else {}
    codes = [languages.get(f"{side}_lang") for side in ("source", "target")]
    first, second = (
        code if isinstance(code, str) and LANGUAGE.fullmatch(code) else "und" for code in codes
    )
    alpha = length_penalty(where, tree.get("length_penalty", 1.0))
    return MarianModel(
        *read_weights(folder, settings, tokenizer, weights), tokenizer, alpha, (first, second)
    )


def read_weights(
    where: Path, settings: dict[str, Any], tokenizer: MarianTokenizer, weights: Weights
) -> tuple[Transformer, str]:
    """The model with these weights, whose equal matrices are tied, and the program that trained it.

    Weights of layers have Marian's or transformers' names. If the <pad> row is zero, Marian trained the model, else
    transformers. NMTError if weights are missing, unexpected or of the wrong shape.
    """
    left, tables = dict(weights), tokenizer.tables
    shared, marians = left.pop(SHARED, None), any(name.startswith("encoder_l1_") for name in left)
    source, target = (left.get(name, shared) for name in VOCABULARY[:2])
    output = left.get(VOCABULARY[2], target)
    if source is None or target is None or output is None:
        raise NMTError(f"{where}: has no embeddings")
    left |= zip(VOCABULARY, (source, target, output), strict=False)
    is_zero = (
        marians or target.dim() != 2 or not target[tables[-1].index(MARIAN_SYMBOLS[2]) :][:1].any()
    )
    by = "marian" if is_zero else "transformers"

    def take(name: str, *shape: int) -> Tensor:
        require(name in left, f"{where}: {name} is missing")
        tensor = left.pop(name)
        if marians and name not in VOCABULARY and tensor.dim() == 2:
            tensor = tensor[0] if len(shape) == 1 and len(tensor) == 1 else tensor.T
        require(
            tensor.shape == shape,
            f"{where}: {name} has shape {list(tensor.shape)}, not {list(shape)}",
        )
        require(bool(tensor.isfinite().all()), f"{where}: {name} has values that are not finite")
        return tensor.float()

    tied = torch.equal(target, output)
    # If only the source matrix is untied, the source needs its own vocabulary, although the entries are the same.
    joint = len(tables) == 1 and (not tied or torch.equal(source, target))
    sizes = {
        "tied_embeddings": tied,
        "source_vocabulary_size": None if joint else len(tokenizer.entries[text.SOURCE]),
    }
    biases = {"attention_bias": True, "output_bias": True}
    config = build(
        ModelConfig,
        {"name": "marian", **settings, **biases, **sizes, **COMPUTED_BY[by]},
        str(where),
    )
    order_D, weights = torch.from_numpy(halves(config.d_model).argsort()), Weights()
    for row in layer_table(config):
        names = row.marian if marians else row.transformers
        tensor = torch.cat(
            [take(name, row.shape[0] // len(names), *row.shape[1:]) for name in names]
        )
        weights[row.ours] = row.reordered(tensor, order_D)
    for ours, theirs, side in zip(
        (*files.EMBEDDINGS, "output.bias"), VOCABULARY, (0, -1, -1, -1), strict=True
    ):
        table, is_bias = tables[side], ours == "output.bias"
        tensor = (
            take(theirs, 1, len(table)).T
            if is_bias
            else take(theirs, len(table), config.d_model)[:, order_D]
        )
        # PAD and BOS use the added row of zeros, unless transformers trained the <pad> row.
        tensor = torch.cat((tensor, torch.zeros_like(tensor[:1])))[
            rows_of(table, by == "transformers")
        ]
        weights[ours] = tensor.flatten() if is_bias else tensor
    require(not left, f"{where}: unexpected weight {shown(min(left, default=''))}")
    model = Transformer(config, tokenizer.vocabulary_size)
    model.load_state_dict(weights)
    return model.eval(), by


def rows_of(table: Sequence[str], has_padding: bool) -> list[int]:
    """Each of our ids' row number in Marian's order; without `has_padding`, PAD and BOS share an extra last row."""
    row = {entry: number for number, entry in enumerate(table)}
    end, unknown, padding = (row.get(symbol, len(table)) for symbol in MARIAN_SYMBOLS)
    padding = padding if has_padding else len(table)
    return [
        padding,
        padding,
        end,
        unknown,
        *(row[entry] for entry in table if entry not in MARIAN_SYMBOLS),
    ]


class Row(NamedTuple):
    """An nmt parameter, and the parameters into which other programs split it along its first dimension."""

    ours: str
    shape: tuple[int, ...]
    axes: tuple[
        int, ...
    ]  # the d_model dimensions, whose entries other programs may order differently
    transformers: tuple[str, ...]
    marian: tuple[str, ...]
    ctranslate2: tuple[
        str, ...
    ]  # of two names, the first is for the query rows, the second for the others

    def reordered(self, tensor: Tensor, order_D: Tensor) -> Tensor:
        for axis in self.axes:
            tensor = tensor.index_select(axis, order_D)
        return tensor


def layer_table(model: ModelConfig) -> Iterator[Row]:
    """The parameters of all layers, including attention biases."""
    for stack, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for number in range(layers):
            yield from layer_rows(model, stack, number)
        if model.norm == "pre":
            names = f"model.{stack}.layer_norm", f"{stack}_top_ln", "", f"{stack}/layer_norm"
            yield from norm_rows(model, f"{stack}_norm", *names)


def layer_rows(model: ModelConfig, stack: str, number: int) -> Iterator[Row]:
    ours, hub, marian = (
        f"{stack}_layers.{number}",
        f"model.{stack}.layers.{number}",
        f"{stack}_l{number + 1}",
    )
    other, width, inner, pre = (
        f"{stack}/layer_{number}",
        model.d_model,
        model.d_ff,
        "_pre" * (model.norm == "pre"),
    )
    attentions = [("self_attention", "self_attn", "self", "self_attention")]
    attentions += (
        [("cross_attention", "encoder_attn", "context", "attention")] if stack == "decoder" else []
    )
    if is_recurrent := stack == "decoder" and model.decoder == "ssru":
        for name, letter in (("input", "W"), ("forget", "Wf"), ("forget_bias", "bf")):
            axes = (0,) if letter == "bf" else (0, 1)
            yield Row(
                f"{ours}.ssru.{name}",
                (width,) * len(axes),
                axes,
                (),
                (f"{marian}_rnn_{letter}",),
                (),
            )
        yield from norm_rows(model, f"{ours}.residual_1.norm", "", f"{marian}_rnn_ffn_ln", pre, "")
    for place, (name, a, b, c) in [*enumerate(attentions, 1)][is_recurrent:]:
        *inputs, output = [f"{other}/{c}/linear_{part}" for part in range(1 + place)]
        for kind, letter, suffix, shape in (
            ("weight", "W", "", [width]),
            ("bias", "b", "_bias", []),
        ):
            yield Row(
                f"{ours}.{name}.input{suffix}",
                (3 * width, *shape),
                (1,) if shape else (),
                tuple(f"{hub}.{a}.{part}_proj.{kind}" for part in "qkv"),
                tuple(f"{marian}_{b}_{letter}{part}" for part in "qkv"),
                tuple(f"{part}/{kind}" for part in inputs),
            )
            theirs = (
                (f"{hub}.{a}.out_proj.{kind}",),
                (f"{marian}_{b}_{letter}o",),
                (f"{output}/{kind}",),
            )
            yield Row(f"{ours}.{name}.output{suffix}", (width, *shape), (0,), *theirs)
        names = f"{hub}.{a}_layer_norm", f"{marian}_{b}_Wo_ln", pre, f"{other}/{c}/layer_norm"
        yield from norm_rows(model, f"{ours}.residual_{place}.norm", *names)
    for place, rows, columns, row_axes in (
        (1, inner, width, ((1,), ())),
        (2, width, inner, ((0,), (0,))),
    ):
        name, other_name = f"{ours}.feed_forward.{2 * place - 2}", f"{other}/ffn/linear_{place - 1}"
        for kind, letter, ordered in zip(("weight", "bias"), "Wb", row_axes, strict=True):
            theirs = (
                (f"{hub}.fc{place}.{kind}",),
                (f"{marian}_ffn_{letter}{place}",),
                (f"{other_name}/{kind}",),
            )
            yield Row(
                f"{name}.{kind}", (rows, columns) if kind == "weight" else (rows,), ordered, *theirs
            )
    names = f"{hub}.final_layer_norm", f"{marian}_ffn_ffn_ln", pre, f"{other}/ffn/layer_norm"
    yield from norm_rows(model, f"{ours}.residual_{len(attentions) + 1}.norm", *names)


def norm_rows(
    model: ModelConfig, ours: str, hub: str, marian: str, suffix: str, other: str
) -> Iterator[Row]:
    for name, a, b in (("weight", "scale", "gamma"), ("bias", "bias", "beta")):
        theirs = (f"{hub}.{name}",), (f"{marian}_{a}{suffix}",), (f"{other}/{b}",)
        yield Row(f"{ours}.{name}", (model.d_model,), (0,), *theirs)


def halves(d_model: int) -> npt.NDArray[np.int64]:
    """Our column index for each column in Marian and transformers, where sines and cosines are in separate halves."""
    return np.concatenate((np.arange(0, d_model, 2), np.arange(1, d_model, 2)))
