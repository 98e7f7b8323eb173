"""Models of CTranslate2 (https://opennmt.net/CTranslate2), whoever made them, under our names.

model.bin                     weights, and scalars that describe the architecture
config.json                   names of symbols, epsilon of LayerNorm
shared_vocabulary.json        the tokens, in the order of ids; or source_vocabulary.json and target_vocabulary.json
"""

import io
import json
import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config import BOS, EOS, PAD, UNK, ModelConfig, build, require
from nmt.errors import NMTError, one_line
from nmt.files import LARGE, check_regular, parse_json, read_bytes
from nmt.plugins.exchange.ctranslate2_file import Matrix, Variables
from nmt.plugins.exchange.names import halves, layer_table
from nmt.text import SYMBOLS

Order = NDArray[np.int64]
ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu", 4: "quick_gelu"}
SIDES, STACKS = ("source", "target"), ("encoder", "decoder")
PADDINGS = ("<blank>", "<pad>")
USUAL = {"multi_query_attention": 0, "alibi": 0, "scale_outputs": 1, "scale_embeddings": 1}
"""Scalars of a stack, and the only value that nmt's Transformer has."""
IRRELEVANT = re.compile(r"(en|de)coder/(embeddings_merge|alibi_use_positive_positions|scale_alibi)")
"""Variables that say nothing about the weights."""
GENERATED_POSITIONS = 1024
"""Rows of a table of positions that a model leaves to CTranslate2, and which we cannot name."""
ROUNDING = {"float16": 2**-11, "bfloat16": 2**-8}
"""Largest error of a number up to 1 in these types."""
NEVER = -1e8
"""A bias below gives a symbol no probability."""


@dataclass
class CTranslate2Model:
    """A model under our names."""

    config: ModelConfig
    weights: dict[str, Matrix]
    """By the names of our state_dict. Tied matrices are one array."""
    vocabularies: tuple[list[str], list[str]]
    """Of source and target: CTranslate2's tokens in the order of our ids."""
    precision: str
    """The type that the matrices were stored in; other than float32, they are rounded."""
    positions: int
    """The longest sequence, with its end symbol, that CTranslate2 can take."""
    files: dict[str, bytes]
    """What CTranslate2 may see of the folder: the files and the settings that were read."""


@dataclass
class Settings:
    """The part of config.json that decides something."""

    unk_token: str
    bos_token: str
    eos_token: str
    decoder_start_token: str | None
    add_source_bos: bool
    add_source_eos: bool
    layer_norm_epsilon: float | None = None
    quantization_type: int | None = 0


def our_order(tokens: list[str], settings: Settings, where: Path) -> tuple[list[str], Order]:
    """The tokens in our order: padding, start, end and unknown first; and their rows, -1 for what the model lacks."""
    ids = {token: number for number, token in enumerate(tokens)}
    require(len(ids) == len(tokens), f"{where}: its vocabulary has an entry twice")
    padding = next((token for token in PADDINGS if token in ids), SYMBOLS[PAD])
    symbols = [padding, settings.bos_token, settings.eos_token, settings.unk_token]
    others = [token for token in tokens if token not in symbols]
    differ = len(set(symbols)) == len(symbols) and not set(others) & set(SYMBOLS)
    require(differ, f"{where}: its symbols are not those of config.json: {' '.join(symbols)}")
    return [*symbols, *others], np.array([ids.get(token, -1) for token in [*symbols, *others]])


def in_order(array: Matrix, rows: Order) -> Matrix:
    """These rows of an array, zeros for -1."""
    return np.where(rows.reshape(-1, *[1] * (array.ndim - 1)) < 0, np.float32(0), array[rows])


def read_model(folder: Path, values: bool = True) -> CTranslate2Model:
    """The model in a folder; NMTError where it is none, is damaged, or has what our Transformer does not have.

    Without `values`, only shapes and settings are checked: there are no weights, and positions count as learned.
    """
    return Reader(folder, values).read()


class Reader:
    """Puts a model together from its variables."""

    def __init__(self, folder: Path, values: bool) -> None:
        self.folder, self.files, self.weights = folder, dict[str, bytes](), dict[str, Matrix]()
        path = folder / "model.bin"
        check_regular(path)
        content = self.read_file(path.name, path.stat().st_size)
        self.variables = variables = Variables(path, io.BytesIO(content), len(content), values)
        tree = self.parsed("config.json")
        self.require(isinstance(tree, dict), "its config.json is not a mapping of names to values")
        tree = {field.name: tree[field.name] for field in fields(Settings) if field.name in tree}
        self.files["config.json"] = json.dumps(tree).encode()
        self.settings = build(Settings, tree, str(folder / "config.json"))
        tokens = [self.read_vocabulary(side) for side in SIDES]
        self.shared = tokens[0] == tokens[1]
        self.tokens, self.rows = zip(*(our_order(side, self.settings, folder) for side in tokens), strict=True)
        source = variables.array("encoder/embeddings_0/weight", len(tokens[0]), None)
        self.d_model = source.shape[1]
        names = "decoder/embeddings/weight", "decoder/projection/weight"
        self.matrices = source, *(variables.array(name, len(tokens[1]), self.d_model) for name in names)
        self.zero_start = bool(variables.scalar("decoder/start_from_zero_embedding", 0))

    def require(self, condition: bool, problem: str) -> None:
        require(condition, f"{self.folder}: {problem}")

    def read_file(self, name: str, limit: int = LARGE) -> bytes:
        self.files[name] = read_bytes(self.folder / name, limit)
        return self.files[name]

    def parsed(self, name: str) -> Any:
        try:
            return parse_json(self.read_file(name))
        except ValueError as error:
            raise NMTError(f"{self.folder / name}: cannot be read ({one_line(error)})") from error

    def read_vocabulary(self, side: str) -> list[str]:
        """The tokens of a side, in the order of ids."""
        names = [name for part in ("shared", side) if (self.folder / (name := f"{part}_vocabulary.json")).exists()]
        problem = f"{' and '.join(names) or 'no shared_vocabulary.json'}; each side has one vocabulary"
        self.require(len(names) == 1, problem)
        tokens = self.parsed(names[0])
        strings = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
        self.require(strings, f"its {names[0]} is not a list of tokens")
        return list(tokens)

    def read(self) -> CTranslate2Model:
        self.check_symbols()
        config, variables = self.architecture(), self.variables
        length, positions, columns = self.positions()
        for row in layer_table(config):
            cuts = [row.shape[0]] if len(row.ctranslate2) == 1 else [self.d_model, row.shape[0] - self.d_model]
            if config.attention_bias or not row.ours.endswith("_bias"):
                arrays = [
                    variables.array(name, rows, *row.shape[1:])
                    if name in variables.stored or not name.endswith("/bias")
                    else np.zeros(rows, np.float32)
                    for name, rows in zip(row.ctranslate2, cuts, strict=True)
                ]
                if variables.values:
                    array = np.concatenate(arrays)
                    self.weights[row.ours] = array if row.axis is None else array.take(columns, row.axis)
        config = replace(config, **positions, **self.embeddings(columns), **self.output_bias())
        unknown = next((name for name in sorted(variables.left) if not IRRELEVANT.fullmatch(name)), None)
        self.require(unknown is None, f"it has {str(unknown)[:80]!r}, which nmt's Transformer does not have")
        precision = variables.stored["decoder/layer_0/ffn/linear_0/weight"].type
        return CTranslate2Model(config, self.weights, self.tokens, precision, length, self.files)

    def check_symbols(self) -> None:
        """NMTError where the symbols do not do what ours do."""
        (source, target), settings = self.rows, self.settings
        self.require(not settings.quantization_type, "quantized by AWQ, which nmt cannot undo")
        self.require(not settings.add_source_bos, "its sources begin with a start symbol, which nmt's do not")
        needed = [target[EOS], target[UNK], source[UNK], *([source[EOS]] if settings.add_source_eos else [])]
        self.require(min(needed) >= 0, "its vocabulary lacks the end symbol or the symbol for unknown tokens")
        start = settings.decoder_start_token
        starts = self.zero_start or (start == settings.bos_token and target[BOS] >= 0)
        self.require(starts, f"its translations start from {start!r}, not from a symbol of their own, as in nmt")

    def architecture(self) -> ModelConfig:
        """What the scalars say; they must be the same for encoder and decoder."""
        variables, defaults = self.variables, {"num_heads": 8, "pre_norm": 1, "activation": 0}
        stacks = [[int(variables.scalar(f"{stack}/{key}", defaults[key])) for key in defaults] for stack in STACKS]
        problem = "its decoder has other heads, norms or activations than its encoder, which nmt's has not"
        self.require(stacks[0] == stacks[1], problem)
        heads, pre_norm, activation = stacks[0]
        problem = f"its activation is number {activation}; nmt has {', '.join(ACTIVATIONS.values())}"
        self.require(activation in ACTIVATIONS, problem)
        for name, usual in ((f"{stack}/{key}", usual) for stack in STACKS for key, usual in USUAL.items()):
            same = variables.scalar(name, usual) == usual
            self.require(same, f"it has another {name} than {usual}, which nmt's Transformer does not have")
        layers = {f"{stack}_layers": self.count_layers(stack) for stack in STACKS}
        # CTranslate2 does not check which layer and heads it aligns by, and crashes.
        for name, default, fewest, end in (("layer", -1, -1, layers["decoder_layers"]), ("heads", 1, 0, heads + 1)):
            there = fewest <= variables.scalar(f"decoder/alignment_{name}", default) < end
            self.require(there, f"its alignment_{name} is not one of its own")
        epsilon = self.settings.layer_norm_epsilon
        settings = {
            **layers,
            **{"name": "ctranslate2", "d_model": self.d_model, "heads": heads, "activation": ACTIVATIONS[activation]},
            "d_ff": variables.array("decoder/layer_0/ffn/linear_0/weight", None, self.d_model).shape[0],
            "norm": "pre" if pre_norm else "post",
            "norm_epsilon": ModelConfig.norm_epsilon if epsilon is None else epsilon,
            "attention_bias": any(re.search("attention/linear_./bias$", name) for name in variables.stored),
            "source_end": self.settings.add_source_eos,
            "positions": "learned",
        }
        return build(ModelConfig, settings, str(self.folder))

    def count_layers(self, stack: str) -> int:
        pattern = re.compile(rf"{stack}/layer_(\d+)/self_attention/linear_0/weight")
        numbers = {int(match[1]) for match in map(pattern.fullmatch, self.variables.stored) if match}
        self.require(numbers == set(range(len(numbers) or 1)), f"the layers of its {stack} are not numbered from 0")
        return len(numbers)

    def positions(self) -> tuple[int, dict[str, Any], Order]:
        """Number and kind of positions, and our order of the columns of all weights.

        They are sinusoids if both tables are, in some order of their columns, and else learned, a part of the weights.
        """
        tables, kinds, order = [], [], np.arange(self.d_model)
        for stack in STACKS:
            name = f"{stack}/position_encodings/encodings"
            stored = self.variables.stored.get(name)
            tables.append(self.variables.array(name, None, self.d_model) if stored else generated(self.d_model))
            values = self.variables.values
            kinds.append(sinusoid_kind(tables[-1], ROUNDING.get(stored.type, 0.0)) if stored and values else None)
        length = min(map(len, tables))
        if kinds[0] and kinds[0] == kinds[1]:
            kind, halved = kinds[0]
            return length, {"positions": kind}, halves(self.d_model).argsort() if halved else order
        for side, table in zip(SIDES, tables, strict=True):
            self.weights[f"{side}_embedding.positions.table"] = table[:length]
        return length, {"max_positions": length}, order

    def embeddings(self, columns: Order) -> dict[str, Any]:
        """Add the three matrices of section 3.4, and say which of them are one."""
        (source, target, output), weights = self.matrices, self.weights
        tied = np.array_equal(target, output)
        all_tied = self.shared and tied and np.array_equal(source, target)
        if self.variables.values:
            embedding = weights["target_embedding.weight"] = in_order(target, self.rows[1])[:, columns]
            weights["source_embedding.weight"] = embedding if all_tied else in_order(source, self.rows[0])[:, columns]
            weights["output.weight"] = embedding if tied else in_order(output, self.rows[1])[:, columns]
        # Where only target and output are tied, the source has a vocabulary of its own, if with the same tokens.
        separate = not self.shared or (tied and not all_tied)
        return {"tied_embeddings": tied, "source_vocabulary_size": len(self.tokens[0]) if separate else None}

    def output_bias(self) -> dict[str, Any]:
        """Add the bias on the logits, and say which of our first symbols have no probability."""
        rows, name = self.rows[1], "decoder/projection/bias"
        bias, never = np.zeros(len(rows), np.float32), rows < 0
        if name in self.variables.stored:
            bias = in_order(self.variables.array(name, int((rows >= 0).sum())), rows)
            never |= bias < NEVER
        starts = not self.zero_start or not self.variables.values or bool(never[[PAD, BOS]].all())
        self.require(starts, "it starts from zeros, yet gives padding and start symbol a probability")
        bias[[PAD, BOS] if self.zero_start else [PAD] if never[PAD] else []] = 0  # ours have none either
        if bias.any():
            self.weights["output.bias"] = bias
        padding = self.zero_start or not never[PAD]
        return {"zero_start": self.zero_start, "padding_probability": bool(padding), "output_bias": bool(bias.any())}


def generated(d_model: int) -> Matrix:
    """The positions of CTranslate2 for a model without a table: from 1 on, sines first, then cosines."""
    from nmt.model import sinusoids

    require(d_model % 2 == 0 and d_model >= 4, f"a width of {d_model} has no sinusoids in CTranslate2")
    return sinusoids(GENERATED_POSITIONS, d_model, 1, "tensor2tensor").numpy()[:, halves(d_model)]


def sinusoid_kind(table: Matrix, rounding: float) -> tuple[str, bool] | None:
    """The name that a table has in nmt, and True if it has all sines first; None for any other table."""
    from nmt.model import sinusoids

    length, width = table.shape
    # In float32, as OpenNMT-py computes it, an angle has an error of 1e-7 of itself.
    allowed = rounding + 1e-6 * (1 + np.arange(length)[:, None])
    for kind in ("sinusoidal", "tensor2tensor") if width % 2 == 0 and width >= 4 else ():
        ours = sinusoids(length, width, 0, kind).numpy()
        for halved in (False, True):
            if (abs(table - (ours[:, halves(width)] if halved else ours)) <= allowed).all():
                return kind, halved
    return None
