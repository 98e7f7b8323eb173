"""Models of Marian (https://marian-nmt.github.io) and of OPUS-MT, which may come from anyone.

They are read from a folder as on the Hugging Face hub, or from Marian's own files:

config.json                            model.npz     weights, and the settings of training
model.safetensors, pytorch_model.bin   decoder.yml   the names of model and vocabularies, the search
vocab.json, target_vocab.json          vocab.yml, *.spm
source.spm, target.spm                 source.spm, target.spm, unless the vocabularies are such models themselves

Marian computes other sinusoids than transformers, has an epsilon of 1e-6, and its decoder starts from zeros. So does
the imported model, unless transformers trained it: then the row of <pad>, from which the decoder starts there, is not
zero.
"""

import math
import re
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from nmt.config import ModelConfig
from nmt.config.corpus import LANGUAGE
from nmt.config.rules import require, shown
from nmt.errors import NMTError, one_line
from nmt.interchange.marian_weights import Weights, halves, layers_from_marian, vocabulary_from_marian
from nmt.model import Transformer
from nmt.model.embedding import sinusoids
from nmt.model_directory.stored import stored_shapes
from nmt.model_directory.weights import described
from nmt.storage.archive import check_members, load_plain
from nmt.storage.foreign import (
    LARGE,
    check_regular,
    matches,
    parse_json,
    parse_yaml,
    read_bytes,
    read_mapping,
    read_text,
)
from nmt.text.tokenizers import MARIAN_SYMBOLS, MarianTokenizer, marian_tokenizer

TRAINED_BY: dict[str, dict[str, Any]] = {
    "marian": {"zero_start": True, "positions": "tensor2tensor", "norm_epsilon": 1e-6},
    "transformers": {"padding_probability": False},
}
"""What a program computes other than the paper."""
FLAGS: dict[str, tuple[Any, ...]] = {
    **{"model_type": ("marian",), "scale_embedding": (True,), "add_final_layer_norm": (False,)},
    **{"normalize_before": (False,), "normalize_embedding": (False,), "static_position_embeddings": (True,)},
}
"""Keys of config.json, and the values that are supported."""
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
"""The same of special:model.yml; Marian's defaults come first."""
NORMS = {("", "an", ""): "post", ("n", "a", "n"): "pre"}
"""Marian's operations before and after a sub-layer and on top of the stack, without dropout -> model.norm."""
ACTIVATIONS = ("relu", "swish", "silu", "gelu", "quick_gelu")
EXACT_GELU = (1, 12, 3)
"""The version of Marian since which its gelu is not x sigmoid(1.702 x)."""
EMBEDDINGS = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
TOP_NORM = re.compile(r"(encoder|decoder)_top_ln_(scale|bias)")
NORM = re.compile(r"(encoder|decoder)_l(\d+)_(self|context|ffn)_(?:Wo|ffn)_ln_(scale|bias)(_pre|)")
MAP = re.compile(r"(encoder|decoder)_l(\d+)_(self|context|ffn)_([Wb])([qkvo12])")
"""The names of Marian's parameters."""


@dataclass
class Foreign:
    """What a folder holds: weights under the names of MarianMTModel, in Marian's order."""

    where: Path
    settings: dict[str, Any]
    """Some of the model's configuration."""
    weights: Weights
    tokenizer: MarianTokenizer
    length_penalty: float
    """alpha in |Y|^alpha."""
    vocabularies: list[Path] = field(default_factory=list)
    """The files of Marian's own vocabularies; none for a folder of transformers."""
    decoder: Path | None = None
    """decoder.yml."""
    languages: tuple[str, str] = ("und", "und")
    trained_by: str = "marian"
    used: set[str] = field(default_factory=set)

    @property
    def has_padding(self) -> bool:
        """True where the vocabulary has <pad>, from which a decoder of transformers starts."""
        return MARIAN_SYMBOLS[2] in self.tokenizer.tables[-1]

    def take(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A weight in float32; NMTError where it is missing, or of another shape."""
        found = self.weights.get(name)
        if found is None or tuple(found.shape) != shape:
            there = "missing" if found is None else f"{list(found.shape)}"
            raise NMTError(f"{self.where}: {name} is {there}, where there should be {list(shape)}")
        self.used.add(name)
        return found.float()

    def model(self) -> Transformer:
        """The model; NMTError where it is none that we have."""
        try:
            config = self.config()
        except NMTError as error:
            raise NMTError(f"{self.where}: {error}") from error
        tables = self.tokenizer.tables
        size = self.tokenizer.vocabulary_size
        shapes = {name: tuple(tensor.shape) for name, tensor in described(config, size).state_dict().items()}
        weights = layers_from_marian(self.take, config, shapes)
        weights |= vocabulary_from_marian(self.take, tables, config, padding=self.trained_by == "transformers")
        if unknown := sorted(self.weights.keys() - self.used):
            raise NMTError(f"{self.where}: it has {shown(unknown[0])}, which is not known to be in such a model")
        model = Transformer(config, size)
        model.load_state_dict(weights)
        return model.eval()

    def config(self) -> ModelConfig:
        """The configuration, by what is stored: matrices are tied where they are equal."""
        source, target, output = (self.weights.get(name) for name in EMBEDDINGS)
        require(source is not None and target is not None and output is not None, "no embeddings")
        assert source is not None
        assert target is not None
        assert output is not None
        one = len(self.tokenizer.tables) == 1
        tied, all_tied = torch.equal(target, output), one and torch.equal(source, target)
        own = None if all_tied or (one and not tied) else len(self.tokenizer.entries[0])
        return ModelConfig(
            name="marian",
            **self.settings,
            attention_bias=True,
            output_bias=True,
            tied_embeddings=tied,
            source_vocabulary_size=own,
            **TRAINED_BY[self.trained_by],
        )


def read(path: Path, trained_by: str | None) -> Foreign:
    """A model of Marian's own files, or of a folder as on the hub; NMTError where it is neither, or not supported.

    `trained_by` is marian or transformers; None: by the row of <pad>.
    """
    if path.suffix == ".npz" or any(path.glob("*decoder.yml")):
        require(trained_by != "transformers", f"trained_by=transformers: {path} is a model of Marian itself")
        return read_marian(path)
    require(path.is_dir(), f"{path}: no such folder, and no .npz of Marian")
    require(
        (path / "config.json").is_file(), f"{path}: neither config.json of MarianMT there, nor decoder.yml of Marian"
    )
    return read_huggingface(path, trained_by)


def check_flags(where: Path, found: dict[str, Any], supported: dict[str, tuple[Any, ...]]) -> None:
    """NMTError for a setting that changes what is computed; a missing one has its first value."""
    for key, values in supported.items():
        value = found.get(key, values[0])
        if value not in values:
            known = " or ".join(str(each) or "nothing" for each in values)
            raise NMTError(f"{where}: {key}={shown(value)}: only {known} can be imported")


def read_huggingface(folder: Path, trained_by: str | None) -> Foreign:
    """A MarianMT folder."""
    where = folder / "config.json"
    tree = read_mapping(where, parse_json)
    require("model_type" in tree, f"{where}: it has no model_type")
    check_flags(where, tree, FLAGS)
    for key in ("attention_heads", "ffn_dim"):
        one, other = tree.get(f"encoder_{key}"), tree.get(f"decoder_{key}")
        require(one == other, f"{where}: encoder_{key} and decoder_{key} differ, {shown(one)} and {shown(other)}")
    activation = str(tree.get("activation_function"))
    require(
        activation in ACTIVATIONS, f"{where}: activation_function={shown(activation)}: not {', '.join(ACTIVATIONS)}"
    )
    settings = {
        **{key: tree.get(key) for key in ("encoder_layers", "decoder_layers", "d_model")},
        "d_ff": tree.get("encoder_ffn_dim"),
        "heads": tree.get("encoder_attention_heads"),
        "dropout": tree.get("dropout", 0.1),
        "activation": "swish" if activation == "silu" else activation,
    }
    tokenizer = read_tokenizer(folder, [read_ids(folder / name) for name in vocabulary_names(folder)], tags=True)
    weights = with_embeddings(folder, tensors(folder))
    search = folder / "generation_config.json"
    penalty = (read_mapping(search, parse_json) if search.exists() else tree).get("length_penalty", 1.0)
    require(matches(penalty, float) and 0 <= penalty <= 10, f"{search}: length_penalty={shown(penalty)}")
    found = Foreign(folder, settings, weights, tokenizer, float(penalty), languages=languages(folder))
    padding = padding_row(found)
    found.trained_by = trained_by or ("transformers" if padding is not None and padding.any() else "marian")
    require(
        padding is not None or found.trained_by == "marian",
        f"{folder}: its vocabulary has no <pad>, from which a decoder of transformers starts",
    )
    return found


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


def table_of(path: Path, numbers: dict[str, Any]) -> list[str]:
    """The entries of a vocabulary in the order of their numbers; NMTError unless these are 0, 1, 2 and so on."""
    if sorted(map(str, numbers.values())) != sorted(map(str, range(len(numbers)))):
        raise NMTError(f"{path}: the numbers of its entries are not 0, 1, 2 and so on, each once")
    return sorted(numbers, key=lambda entry: int(numbers[entry]))


def read_tokenizer(folder: Path, tables: Sequence[list[str]], tags: bool) -> MarianTokenizer:
    """The tokenizer of source.spm, target.spm and these tables."""
    return tokenizer_of(folder, [folder / "source.spm", folder / "target.spm"], tables, tags)


def tokenizer_of(folder: Path, models: list[Path], tables: Sequence[list[str]], tags: bool) -> MarianTokenizer:
    try:
        return marian_tokenizer([read_bytes(path) for path in models], tables, tags)
    except ValueError as error:
        raise NMTError(f"{folder}: no tokenizer ({one_line(error)})") from error


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
    penalty = tree.get("normalize", 0.0)
    require(matches(penalty, float) and 0 <= penalty <= 10, f"{decoder}: normalize={shown(penalty)}")
    file = path if path != folder else models[0]
    arrays = read_npz(file)
    settings = marian_settings(file, arrays.pop("special:model.yml", None))
    weights = named_as_transformers(file, arrays, settings)
    return Foreign(file, settings, weights, marian_vocabularies(folder, names), float(penalty), names, decoder)


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
    keys = ("transformer-preprocess", "transformer-postprocess", "transformer-postprocess-top")
    operations = tuple(str(tree.get(key) or "").replace("d", "") for key in keys)
    if operations not in NORMS:
        given = ", ".join(f"{key}={shown(tree.get(key))}" for key in keys)
        raise NMTError(f"{path}: {given}: only post-norm (dan) or pre-norm layers (n, da, n) can be imported")
    activation = str(tree.get("transformer-ffn-activation", "swish"))
    require(activation in ("relu", "swish", "gelu"), f"{path}: transformer-ffn-activation={shown(activation)}")
    version = tuple(map(int, re.findall(r"\d+", str(tree.get("version")))[:3]))
    d_ff = tree.get("transformer-dim-ffn")
    require(tree.get("transformer-decoder-dim-ffn") in (None, 0, d_ff), f"{path}: transformer-decoder-dim-ffn differs")
    return {
        **{"encoder_layers": tree.get("enc-depth"), "decoder_layers": tree.get("dec-depth")},
        **{"d_model": tree.get("dim-emb"), "d_ff": d_ff, "heads": tree.get("transformer-heads")},
        "activation": "quick_gelu" if activation == "gelu" and version < EXACT_GELU else activation,
        "norm": NORMS[operations],
    }


def named_as_transformers(path: Path, arrays: dict[str, np.ndarray[Any, Any]], settings: dict[str, Any]) -> Weights:
    """Marian's arrays under the names of MarianMTModel, matrices as [out, in]."""
    if any(array.dtype.kind != "f" for array in arrays.values()):
        raise NMTError(f"{path}: its weights are whole numbers, as of an 8-bit model: import the one it was made from")
    found = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
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
