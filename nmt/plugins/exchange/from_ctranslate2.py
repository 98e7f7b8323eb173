"""Models of CTranslate2 (https://opennmt.net/CTranslate2), whoever made them, under our names. No torch.

model.bin                     weights, and scalars that describe the architecture
config.json                   names of symbols, epsilon of LayerNorm; in older models, model.bin has them
shared_vocabulary.json        the tokens, in the order of ids; or source_vocabulary and target_vocabulary; older: .txt
"""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config import BOS, EOS, PAD, UNK, build
from nmt.errors import NMTError
from nmt.files import LARGE, opened, parse_json, read_bytes, read_mapping, read_text, read_tree
from nmt.plugins.exchange.ctranslate2_positions import generated_positions, known_sinusoids
from nmt.plugins.exchange.ctranslate2_variables import VERSIONS, Matrix, Variables
from nmt.text import SYMBOLS

ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu", 4: "quick_gelu"}
PADDINGS = ("<blank>", "<pad>")
IRRELEVANT = re.compile(
    r"(encoder/|decoder/)?(alignment_(layer|heads)|embeddings_merge|alibi_use_positive_positions|scale_alibi)"
    r"|(unk|bos|eos)_token|with_(source|target)_(bos|eos)|user_decoder_start_tokens"
)
"""Variables that say nothing about the weights."""
DEFAULT_EPSILON = 1e-5
GENERATED_POSITIONS = 1024
"""Rows of a table of positions that a model leaves to CTranslate2, and which we cannot name."""
ROUNDING = {"float16": 2**-11, "bfloat16": 2**-8}
"""Largest error of a number up to 1 in these types."""
NEVER = -1e8
"""A bias below gives a symbol no probability."""


@dataclass
class CTranslate2Model:
    """A model under our names."""

    model: dict[str, Any]
    """Keys of ModelConfig, without `name`; those that are left out have their defaults."""
    weights: dict[str, Matrix]
    """By the names of our state_dict. Tied matrices are one array."""
    vocabularies: tuple[list[str], list[str]]
    """Of source and target: the tokens in the order of our ids, which begin with SYMBOLS."""
    precision: str
    """The type that the matrices were stored in; other than float32, they are rounded."""


@dataclass
class Settings:
    """config.json, or what older models say in its place."""

    unk_token: str
    bos_token: str
    eos_token: str
    decoder_start_token: str | None
    add_source_bos: bool
    add_source_eos: bool
    layer_norm_epsilon: float | None = None
    quantization_type: int | None = 0


SETTINGS = tuple(Settings.__dataclass_fields__)


def read_settings(folder: Path, variables: Variables) -> Settings:
    """The settings of a model; NMTError where they are missing or of another type."""
    if variables.version == VERSIONS[-1]:
        path = folder / "config.json"
        tree = read_mapping(path, parse_json)
        known = {name: tree[name] for name in SETTINGS if name in tree}
        return build(Settings, known, str(path))
    start = variables.text("bos_token", SYMBOLS[BOS])
    end = variables.text("eos_token", SYMBOLS[EOS])
    begins = variables.scalar("with_target_bos", 1)
    return Settings(
        unk_token=variables.text("unk_token", SYMBOLS[UNK]),
        bos_token=start,
        eos_token=end,
        decoder_start_token=None if variables.scalar("user_decoder_start_tokens", 0) else start if begins else end,
        add_source_bos=bool(variables.scalar("with_source_bos", 0)),
        add_source_eos=bool(variables.scalar("with_source_eos", 0)),
    )


def vocabulary_file(folder: Path, side: str) -> Path:
    """The file with the tokens of a side ("source", "target"); NMTError where there is none, or two."""
    names = [f"{part}_vocabulary.{ending}" for part in ("shared", side) for ending in ("json", "txt")]
    paths = [folder / name for name in names if (folder / name).exists()]
    if len(paths) != 1:
        found = f"{paths[0].name} and {paths[1].name}" if paths else f"no {names[0]}, and no {names[2]}"
        raise NMTError(f"{folder}: {found}; each side has one vocabulary")
    return paths[0]


def checked_files(folder: Path) -> dict[str, bytes]:
    """What CTranslate2 may see of a folder that `read_model` accepts: the files and the settings that were read."""
    paths = {folder / "model.bin", *(vocabulary_file(folder, side) for side in ("source", "target"))}
    files = {path.name: read_bytes(path, path.stat().st_size) for path in paths}
    path = folder / "config.json"
    tree = read_mapping(path, parse_json) if path.exists() else {}
    return {**files, path.name: json.dumps({name: tree[name] for name in SETTINGS if name in tree}).encode()}


def read_vocabulary(folder: Path, side: str) -> list[str]:
    """The tokens of a side, in the order of ids; NMTError where there are none."""
    path = vocabulary_file(folder, side)
    if path.suffix == ".txt":
        lines = read_text(path, LARGE).removesuffix("\n").split("\n")
        return [line[:-1] for line in lines] if all(line.endswith("\r") for line in lines) else lines
    tokens = read_tree(path, parse_json, LARGE)
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise NMTError(f"{path}: not a list of tokens")
    return tokens


@dataclass
class Order:
    """A vocabulary in the order of our ids."""

    tokens: list[str]
    rows: NDArray[np.int64]
    """Row of the model's matrix for each of our ids; -1 for a symbol that the model lacks."""

    def sort(self, array: Matrix) -> Matrix:
        """The rows of a matrix in our order, zeros for what the model lacks."""
        found = array[self.rows]
        found[self.rows < 0] = 0
        return found


def our_order(tokens: list[str], settings: Settings, where: str) -> Order:
    """Our order of a vocabulary: padding, start, end and unknown, then the others as they are."""
    ids = {token: number for number, token in enumerate(tokens)}
    if len(ids) < len(tokens):
        raise NMTError(f"{where}: its vocabulary has an entry twice")
    padding = next((token for token in PADDINGS if token in ids), SYMBOLS[PAD])
    symbols = [padding, settings.bos_token, settings.eos_token, settings.unk_token]
    first = [ids.get(symbol, -1) for symbol in symbols]
    rest = [number for number in range(len(tokens)) if number not in first]
    others = [tokens[number] for number in rest]
    if len(set(symbols)) < len(symbols) or set(others) & set(SYMBOLS):
        raise NMTError(f"{where}: its symbols are not those of config.json: {' '.join(symbols)}")
    return Order([*SYMBOLS, *others], np.array([*first, *rest], np.int64))


def read_model(folder: Path) -> CTranslate2Model:
    """The model in a folder; NMTError where it is none, is damaged, or has what our Transformer does not have."""
    path = folder / "model.bin"
    with opened(path) as file:
        variables = Variables(path, file)
        settings = read_settings(folder, variables)
        if settings.quantization_type:
            raise NMTError(f"{folder}: quantised by AWQ, which nmt cannot undo")
        return Reader(folder, variables, settings).read()


class Reader:
    """Puts a model together from its variables."""

    def __init__(self, folder: Path, variables: Variables, settings: Settings) -> None:
        self.folder, self.variables, self.settings = folder, variables, settings
        self.weights: dict[str, Matrix] = {}
        tokens = [read_vocabulary(folder, side) for side in ("source", "target")]
        self.shared = tokens[0] == tokens[1]
        self.orders = [our_order(side, settings, str(folder)) for side in tokens]
        newer, older = "encoder/embeddings_0/weight", "encoder/embeddings/weight"
        source = newer if newer in variables else older
        self.embeddings = source, "decoder/embeddings/weight", "decoder/projection/weight"
        self.d_model = variables.array(self.embeddings[0], len(tokens[0]), None).shape[1]
        for name in self.embeddings[1:]:
            variables.array(name, len(tokens[1]), self.d_model)

    def read(self) -> CTranslate2Model:
        variables = self.variables
        self.check_symbols()
        model = self.architecture() | self.read_embeddings() | self.read_bias()
        biases = [name for name in variables.stored if re.search("attention/linear_./bias$", name)]
        model["attention_bias"] = bool(biases)
        for stack in ("encoder", "decoder"):
            for number in range(model[f"{stack}_layers"]):
                self.read_layer(stack, number, model)
            if model["norm"] == "pre":
                self.read_norm(f"{stack}/layer_norm", f"{stack}_norm")
        model |= self.read_positions()
        for name in sorted(variables.left):
            if not IRRELEVANT.fullmatch(name):
                raise self.refuse(f"it has {name[:80]!r}, which nmt's Transformer does not have")
        precision = variables.stored["decoder/layer_0/ffn/linear_0/weight"].type
        model["source_end"] = self.settings.add_source_eos
        source, target = self.orders
        return CTranslate2Model(model, self.weights, (source.tokens, target.tokens), precision)

    def refuse(self, reason: str) -> NMTError:
        return NMTError(f"{self.folder}: {reason}")

    def check_symbols(self) -> None:
        """NMTError where the symbols do not do what ours do."""
        source, target = (order.rows for order in self.orders)
        zero_start = self.variables.scalar("decoder/start_from_zero_embedding", 0)
        if self.settings.add_source_bos:
            raise self.refuse("its sources begin with a start symbol, which nmt's do not")
        if target[EOS] < 0 or target[UNK] < 0 or source[UNK] < 0 or (self.settings.add_source_eos and source[EOS] < 0):
            raise self.refuse("its vocabulary lacks the end symbol or the symbol for unknown tokens")
        if not zero_start and (self.settings.decoder_start_token != self.settings.bos_token or target[BOS] < 0):
            start = self.settings.decoder_start_token
            raise self.refuse(f"its translations start from {start!r}, not from a symbol of their own, as in nmt")

    def architecture(self) -> dict[str, Any]:
        """What the scalars say; they must be the same for encoder and decoder."""
        variables = self.variables
        defaults = {"num_heads": 8, "pre_norm": 1, "activation": 0}
        scalars, others = (
            [int(variables.attribute(side, name, default)) for name, default in defaults.items()]
            for side in ("encoder", "decoder")
        )
        if scalars != others:
            raise self.refuse("its decoder has other heads, norms or activations than its encoder, which nmt's has not")
        heads, pre_norm, activation = scalars
        if activation not in ACTIVATIONS:
            raise self.refuse(f"its activation is number {activation}; nmt has {', '.join(ACTIVATIONS.values())}")
        if heads < 1 or self.d_model % heads:
            raise self.refuse(f"{heads} heads do not divide its width, {self.d_model}")
        for name, wanted in (("encoder/multi_query_attention", 0), ("decoder/alibi", 0), ("decoder/scale_outputs", 1)):
            if variables.scalar(name, wanted) != wanted:
                raise self.refuse(f"it has {name}, which nmt's Transformer does not have")
        for side in ("encoder", "decoder"):
            self.check_scale(side)
        sizes = {f"{stack}_layers": self.count_layers(stack) for stack in ("encoder", "decoder")}
        # CTranslate2 does not check which layer and heads it aligns by, and crashes.
        for name, default, fewest, end in (("layer", -1, -1, sizes["decoder_layers"]), ("heads", 1, 0, heads + 1)):
            if not fewest <= variables.attribute("decoder", f"alignment_{name}", default) < end:
                raise self.refuse(f"its alignment_{name} is not one of its own")
        epsilon = self.settings.layer_norm_epsilon
        inner = variables.array("decoder/layer_0/ffn/linear_0/weight", None, self.d_model).shape[0]
        return {
            **sizes,
            **{"d_model": self.d_model, "d_ff": inner, "heads": heads, "activation": ACTIVATIONS[activation]},
            "norm": "pre" if pre_norm else "post",
            "norm_epsilon": DEFAULT_EPSILON if epsilon is None else epsilon,
        }

    def check_scale(self, side: str) -> None:
        """NMTError unless embeddings are multiplied by sqrt(d_model)."""
        names = [f"{side}/scale_embeddings", f"{side}/embeddings/multiply_by_sqrt_depth"]
        names.append(f"{side}/embeddings_0/multiply_by_sqrt_depth")
        name = next((name for name in names if name in self.variables), names[0])
        flag = name not in self.variables or self.variables.stored[name].type == "int8"
        scale = self.variables.scalar(name, 1)
        if not (scale if flag else math.isclose(scale, math.sqrt(self.d_model), rel_tol=1e-6)):
            raise self.refuse(f"its {side} does not multiply embeddings by the square root of their width, as in nmt")

    def count_layers(self, stack: str) -> int:
        pattern = re.compile(rf"{stack}/layer_(\d+)/self_attention/linear_0/weight")
        found = {int(match[1]) for match in map(pattern.fullmatch, self.variables.stored) if match}
        if not found or found != set(range(len(found))):
            raise self.refuse(f"the layers of its {stack} are not numbered from 0")
        return len(found)

    def read_embeddings(self) -> dict[str, Any]:
        """The three matrices of section 3.4, and which of them are one."""
        source, target, output = (self.variables.array(name, None, self.d_model) for name in self.embeddings)
        tied_target = np.array_equal(target, output)
        tied_all = self.shared and tied_target and np.array_equal(source, target)
        # Where only target and output are tied, the source has a vocabulary of its own, if with the same tokens.
        separate = not self.shared or (tied_target and not tied_all)
        of_source, of_target = self.orders
        embedding = self.weights["target_embedding.weight"] = of_target.sort(target)
        self.weights["source_embedding.weight"] = embedding if tied_all else of_source.sort(source)
        self.weights["output.weight"] = embedding if tied_target else of_target.sort(output)
        return {
            "tied_embeddings": tied_target,
            "source_vocabulary_size": len(of_source.rows) if separate else None,
        }

    def read_bias(self) -> dict[str, Any]:
        """The bias on the logits, and which of our first symbols have no probability."""
        order, zero_start = self.orders[1], bool(self.variables.scalar("decoder/start_from_zero_embedding", 0))
        bias, never = np.zeros(len(order.rows), np.float32), order.rows < 0
        if "decoder/projection/bias" in self.variables:
            bias = order.sort(self.variables.array("decoder/projection/bias", int((order.rows >= 0).sum())))
            never |= bias < NEVER
        if zero_start and not never[[PAD, BOS]].all():
            raise self.refuse("it starts from zeros, yet gives padding and start symbol a probability")
        bias[[PAD, BOS] if zero_start else [PAD] if never[PAD] else []] = 0  # ours have none either
        if bias.any():
            self.weights["output.bias"] = bias
        padding = zero_start or not never[PAD]
        return {"zero_start": zero_start, "padding_probability": padding, "output_bias": bool(bias.any())}

    def read_layer(self, stack: str, number: int, model: dict[str, Any]) -> None:
        """A layer of the encoder or decoder."""
        theirs, ours, width, inner = f"{stack}/layer_{number}", f"{stack}_layers.{number}", self.d_model, model["d_ff"]
        self.read_attention(f"{theirs}/self_attention", f"{ours}.self_attention", (3,), model["attention_bias"])
        self.read_norm(f"{theirs}/self_attention/layer_norm", f"{ours}.residual_1.norm")
        last = 2
        if stack == "decoder":
            self.read_attention(f"{theirs}/attention", f"{ours}.cross_attention", (1, 2), model["attention_bias"])
            self.read_norm(f"{theirs}/attention/layer_norm", f"{ours}.residual_2.norm")
            last = 3
        for part, index, shape in (("linear_0", 0, (inner, width)), ("linear_1", 2, (width, inner))):
            matrix, bias = self.read_linear(f"{theirs}/ffn/{part}", *shape)
            self.weights[f"{ours}.feed_forward.{index}.weight"] = matrix
            self.weights[f"{ours}.feed_forward.{index}.bias"] = bias
        self.read_norm(f"{theirs}/ffn/layer_norm", f"{ours}.residual_{last}.norm")

    def read_attention(self, theirs: str, ours: str, parts: tuple[int, ...], biased: bool) -> None:
        """Attention; its matrix of queries, keys and values is stored in `parts` of so many widths."""
        width = self.d_model
        read = [self.read_linear(f"{theirs}/linear_{i}", part * width, width) for i, part in enumerate((*parts, 1))]
        *inputs, output = read
        self.weights[f"{ours}.input"] = np.concatenate([matrix for matrix, _ in inputs])
        self.weights[f"{ours}.output"] = output[0]
        if biased:
            self.weights[f"{ours}.input_bias"] = np.concatenate([bias for _, bias in inputs])
            self.weights[f"{ours}.output_bias"] = output[1]

    def read_linear(self, name: str, rows: int, columns: int) -> tuple[Matrix, Matrix]:
        """A matrix and its bias, which is zeros where the model has none."""
        matrix, bias = self.variables.array(f"{name}/weight", rows, columns), np.zeros(rows, np.float32)
        return matrix, self.variables.array(f"{name}/bias", rows) if f"{name}/bias" in self.variables else bias

    def read_norm(self, theirs: str, ours: str) -> None:
        self.weights[f"{ours}.weight"] = self.variables.array(f"{theirs}/gamma", self.d_model)
        self.weights[f"{ours}.bias"] = self.variables.array(f"{theirs}/beta", self.d_model)

    def read_positions(self) -> dict[str, Any]:
        """The tables of positions, as sinusoids if they are ours in some order of their columns, else as learned."""
        tables = [self.table(side) for side in ("encoder", "decoder")]
        names = [known_sinusoids(*table) for table in tables]
        if names[0] and names[0] == names[1]:
            kind, halves = names[0]
            if halves:
                self.weights = with_columns(self.weights, np.arange(self.d_model).reshape(2, -1).T.flatten())
            return {"positions": kind}
        length = min(len(array) for array, _ in tables)
        for side, (array, _) in zip(("source", "target"), tables, strict=True):
            self.weights[f"{side}_embedding.positions.table"] = array[:length]
        return {"positions": "learned", "max_positions": length}

    def table(self, side: str) -> tuple[Matrix, float]:
        """The positions of a side, and how much their numbers were rounded."""
        name = f"{side}/position_encodings/encodings"
        if name not in self.variables:
            return generated_positions(GENERATED_POSITIONS, self.d_model), 0.0
        return self.variables.array(name, None, self.d_model), ROUNDING.get(self.variables.stored[name].type, 0.0)


COLUMNS = re.compile(r".*(embedding|output)\.weight|.*attention\.input|.*feed_forward\.0\.weight|.*\.table")
ROWS = re.compile(r".*attention\.output(_bias)?|.*feed_forward\.2\.(weight|bias)|.*norm\.(weight|bias)")
"""Arrays of which the last axis, or the first, is d_model."""


def with_columns(weights: dict[str, Matrix], order: NDArray[np.int64]) -> dict[str, Matrix]:
    """The same model with its d_model columns in another order. Only the order of sums changes."""
    moved: dict[tuple[int, int], Matrix] = {}
    found = {}
    for name, array in weights.items():
        axis = -1 if COLUMNS.fullmatch(name) else 0 if ROWS.fullmatch(name) else None
        if axis is None:
            found[name] = array
        else:
            key = id(array), axis  # tied matrices stay one
            found[name] = moved[key] = moved[key] if key in moved else array.take(order, axis)
    return found
