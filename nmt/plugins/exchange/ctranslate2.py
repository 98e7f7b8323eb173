"""Model directories as models of CTranslate2 (https://opennmt.net/CTranslate2), and checks of such models. No torch.

model.bin               weights, in float32 or int8
config.json             CTranslate2's own
shared_vocabulary.json  how tokens are written; source_vocabulary.json and target_vocabulary.json where these differ
vmap.txt                likely tokens of the target for those of the source, if it was asked for
tokenizer.model         as in the model directory; of a model of Marian also source.spm and target.spm
nmt.json                config.json of the model directory
README.md               how to use it, and how far its results are those of the original
"""

import math
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from nmt.config import ModelConfig, require
from nmt.errors import NMTError, one_line
from nmt.files import (
    EXPORTED,
    LARGE,
    MAP,
    ModelDescription,
    Shapes,
    check_positions,
    check_regular,
    is_exported,
    parse_json,
    plain,
    read_description,
    read_mapping,
    read_text,
    read_tokenizer,
    stored_as,
    stored_shapes,
    tied,
    whole_folder,
)
from nmt.plugins.exchange.ctranslate2_engine import positions, vocabulary_files
from nmt.plugins.exchange.ctranslate2_int8 import quantize
from nmt.plugins.exchange.ctranslate2_positions import sinusoids
from nmt.plugins.exchange.ctranslate2_variables import TYPES, VERSIONS, Content, read_index
from nmt.search import aligning_layer
from nmt.text import SOURCE, TARGET, MarianTokenizer, SentencePieceTokenizer, Tokenizer

SETTINGS = {
    **{"add_source_bos": False, "multi_query_attention": False},
    **{"bos_token": "<s>", "decoder_start_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
}
"""config.json as CTranslate2 writes it for our models, but for what `check_exported` adds."""
MODELS = "source.spm", "target.spm"
NEVER = -1e9
"""Bias on the logit of a symbol without probability."""
Vocabularies = tuple[list[str], list[str]]
"""The entries of source and target."""
Weights = Callable[..., NDArray[np.float32]]
"""Gives the values of a parameter by its name and shape: weights(name, *shape)."""


def check(description: ModelDescription) -> None:
    """Raise NMTError if CTranslate2 cannot compute such a model."""
    model = ModelConfig(**description.model)
    assert model.d_k
    for expressible, problem in (
        (model.d_k == model.d_v, f"model.d_k={model.d_k} and model.d_v={model.d_v} differ"),
        (model.d_k * model.heads == model.d_model,
         f"model.d_k={model.d_k} times model.heads={model.heads} is not model.d_model={model.d_model}"),
        (model.attention == "scaled_dot_product", f"model.attention={model.attention} is not scaled_dot_product"),
        (model.attention_window is None,
         f"model.attention_window={model.attention_window} hides positions from self-attention"),
    ):  # fmt: skip
        require(expressible, f"format=ctranslate2: {problem}, which CTranslate2 cannot compute; use engine=torch")


def write(folder: Path, output: Path, precision: str) -> None:
    """Write a model directory as a model of CTranslate2, float32 or int8; an earlier export is replaced."""
    description, path = read_description(folder), folder / "model.safetensors"
    check(description)
    if output.exists() and not is_exported(output):
        raise NMTError(f"output={output}: there already, and no exported model; name another folder")
    tokenizer = read_tokenizer(folder)
    stored, both = stored_shapes(path), vocabularies(tokenizer)
    check_positions(ModelConfig(**description.model), stored, str(path))
    try:
        with safe_open(path, framework="numpy") as file:

            def weights(name: str, *shape: int) -> NDArray[np.float32]:
                name = stored_as(name, stored, ModelConfig(**description.model))
                require(stored.get(name) == shape, f"{path}: {name} is not as config.json describes it, {list(shape)}")
                return file.get_tensor(name).astype(np.float32)  # type: ignore[no-any-return]

            spec = fill(description, both, weights)
        spec.optimize()
        if precision == "int8":
            quantize(spec)
        with whole_folder(output) as temporary:
            spec.save(str(temporary))
            shutil.copyfile(folder / "tokenizer.model", temporary / "tokenizer.model")
            shutil.copyfile(folder / "config.json", temporary / EXPORTED)
            models = [tokenizer.content] if isinstance(tokenizer, SentencePieceTokenizer) else []
            if isinstance(tokenizer, MarianTokenizer):
                models = tokenizer.models
                for name, model in zip(MODELS, models, strict=True):
                    (temporary / name).write_bytes(model)
            (temporary / "README.md").write_text(card(description, len(models)), encoding="utf-8")
    except (OSError, SafetensorError) as error:
        raise NMTError(f"cannot write {folder} as {output} ({one_line(error)})") from error


def card(description: ModelDescription, models: int) -> str:
    """How to use an exported model with that number of sentencepiece models."""
    source, target = plain(description.source), plain(description.target)
    own, other = ("tokenizer.model",) * 2 if models == 1 else MODELS
    without = f"""
Without nmt (normalise text by NFKC first, unless the vocabulary is Marian's; a tag of the target language is a piece):

```python
import ctranslate2
from sentencepiece import SentencePieceProcessor

pieces = SentencePieceProcessor(model_file="{own}").encode("A line.", out_type=str)
[found] = ctranslate2.Translator(".").translate_batch([pieces], beam_size=4)
print(SentencePieceProcessor(model_file="{other}").decode(found.hypotheses[0]))
```
"""
    return f"""# {source}-{target}

Exported by `nmt export` for CTranslate2. A Transformer that translates from {source} to {target}:

```
nmt translate run=THIS_FOLDER engine=ctranslate2 < input
```
{without if models else ""}"""


@contextmanager
def torch_hidden() -> Iterator[None]:
    """Hide torch: CTranslate2's specifications import it if they can, which takes seconds and is not needed here."""
    hidden = "torch" not in sys.modules
    if hidden:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hidden:
            del sys.modules["torch"]


def vocabularies(tokenizer: Tokenizer) -> Vocabularies:
    """How the tokens of source and target are written; NMTError where two tokens of a side have one name."""
    both = tokenizer.vocabulary(SOURCE), tokenizer.vocabulary(TARGET)
    for entries in both:
        require(len(set(entries)) == len(entries), "format=ctranslate2: two entries of the vocabulary have one name")
    return both


def fill(description: ModelDescription, both: Vocabularies, weights: Weights) -> Any:
    """The specification of a model with its weights."""
    with torch_hidden():
        from ctranslate2.specs import Activation, TransformerSpec

    model = ModelConfig(**description.model)
    spec = TransformerSpec.from_config(
        (model.encoder_layers, model.decoder_layers),
        model.heads,
        pre_norm=model.norm == "pre",
        alignment_layer=aligning_layer(model.decoder_layers),
        alignment_heads=0,  # the mean of all heads
        activation={
            **{"relu": Activation.RELU, "swish": Activation.SWISH},
            **{"gelu": Activation.GELU, "quick_gelu": Activation.GELUSigmoid},
        }[model.activation],
    )
    spec.config.add_source_eos = model.source_end
    spec.config.layer_norm_epsilon = model.norm_epsilon
    learned = model.positions == "learned"
    for side, stack, name, embeddings, entries in (
        (spec.encoder, "encoder", "source_embedding", spec.encoder.embeddings[0], both[SOURCE]),
        (spec.decoder, "decoder", "target_embedding", spec.decoder.embeddings, both[TARGET]),
    ):
        embeddings.weight = weights(f"{name}.weight", len(entries), model.d_model)
        side.position_encodings.encodings = (
            weights(f"{name}.positions.table", model.max_positions, model.d_model)
            if learned
            else sinusoids(positions(description), model.d_model, model.positions)
        )
        if model.norm == "pre":
            fill_norm(side.layer_norm, f"{stack}_norm", model.d_model, weights)
        for number, layer in enumerate(side.layer):
            fill_layer(layer, f"{stack}_layers.{number}", model, weights)
    spec.decoder.start_from_zero_embedding = model.zero_start
    size = len(both[TARGET])
    spec.decoder.projection.weight = weights("output.weight", size, model.d_model)
    if model.output_bias or model.unpredicted:
        bias = weights("output.bias", size) if model.output_bias else np.zeros(size, np.float32)
        spec.decoder.projection.bias = np.where(np.arange(size) < model.unpredicted, np.float32(NEVER), bias)
    spec.register_source_vocabulary(both[SOURCE])
    spec.register_target_vocabulary(both[TARGET])
    spec.validate()
    return spec


def fill_layer(spec: Any, name: str, model: ModelConfig, weights: Weights) -> None:
    """Fill a layer of the encoder or decoder."""
    width, inner, residual = model.d_model, model.d_ff, 2
    fill_attention(spec.self_attention.linear, f"{name}.self_attention", model, weights)
    fill_norm(spec.self_attention.layer_norm, f"{name}.residual_1.norm", width, weights)
    if name.startswith("decoder"):
        residual = 3
        fill_attention(spec.attention.linear, f"{name}.cross_attention", model, weights)
        fill_norm(spec.attention.layer_norm, f"{name}.residual_2.norm", width, weights)
    for linear, index, shape in ((spec.ffn.linear_0, 0, (inner, width)), (spec.ffn.linear_1, 2, (width, inner))):
        linear.weight = weights(f"{name}.feed_forward.{index}.weight", *shape)
        linear.bias = weights(f"{name}.feed_forward.{index}.bias", shape[0])
    fill_norm(spec.ffn.layer_norm, f"{name}.residual_{residual}.norm", width, weights)


def fill_attention(linear: list[Any], name: str, model: ModelConfig, weights: Weights) -> None:
    """Fill the maps of attention: of queries, keys and values in one or, across, of queries apart; of the output."""
    width = model.d_model
    *parts, output = linear
    cuts = [] if len(parts) == 1 else [width]
    for part, weight in zip(parts, np.split(weights(f"{name}.input", 3 * width, width), cuts), strict=True):
        part.weight = weight
    output.weight = weights(f"{name}.output", width, width)
    if model.attention_bias:
        for part, bias in zip(parts, np.split(weights(f"{name}.input_bias", 3 * width), cuts), strict=True):
            part.bias = bias
        output.bias = weights(f"{name}.output_bias", width)


def fill_norm(spec: Any, name: str, width: int, weights: Weights) -> None:
    spec.gamma, spec.beta = weights(f"{name}.weight", width), weights(f"{name}.bias", width)


def check_exported(folder: Path) -> None:
    """Raise NMTError unless a folder, which may come from anyone, holds what `write` would have written.

    CTranslate2 does not check the files that it loads, and may crash on others.
    """
    model = ModelConfig(**read_description(folder).model)
    own = {"layer_norm_epsilon": model.norm_epsilon, "add_source_eos": model.source_end}
    if read_mapping(folder / "config.json", parse_json) != {**SETTINGS, **own}:
        raise NMTError(f"{folder / 'config.json'}: not as nmt writes it; export the model again")
    both = vocabularies(read_tokenizer(folder))
    for name, entries in zip(vocabulary_files(folder), both, strict=True):
        path = folder / name
        try:
            same = parse_json(read_text(path, LARGE)) == entries
        except ValueError as error:
            raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
        if not same:
            raise NMTError(f"{path}: not the vocabulary of tokenizer.model; export the model again")
    if (folder / MAP).exists():
        check_map(folder / MAP, both)
    path = folder / "model.bin"
    check_regular(path)
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            found = read_index(file, size)
            if found.version != VERSIONS[-1]:
                raise ValueError("of an older version")
            wanted, shapes = expected(folder, both, size), {name: each.shape for name, each in found.variables.items()}
            check_variables(shapes, {name: array.shape for name, array in wanted.items()})
            check_numbers(file, found, wanted)
    except (OSError, ValueError, struct.error) as error:
        raise NMTError(f"{path}: not a model that CTranslate2 can load ({one_line(error)}); export it again") from error


def check_map(path: Path, both: Vocabularies) -> None:
    """Raise NMTError unless a vocabulary map has a line for all sources, and lines for single tokens."""
    known, targets = {"", *both[SOURCE]}, {*both[TARGET]}
    try:
        rows = [line.split("\t") for line in read_text(path, LARGE).removesuffix("\n").split("\n")]
    except ValueError as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    fit = all(len(row) == 2 and row[0] in known and targets.issuperset(row[1].split(" ")) for row in rows)
    require(fit and rows[0][0] == "", f"{path}: not a map of this vocabulary; export the model again")


def expected(folder: Path, both: Vocabularies, size: int) -> dict[str, NDArray[Any]]:
    """The variables of the model that nmt.json describes, whose weights are 0.

    Raises ValueError if a file of `size` bytes cannot hold them.
    """
    description = read_description(folder)
    check(description)
    model, left = ModelConfig(**description.model), size
    again = tied(model)[1:]

    def zeros(name: str, *shape: int) -> Any:
        nonlocal left
        left -= 0 if name in again else math.prod(shape)
        if left < 0 or model.max_positions * model.d_model > size:
            raise ValueError("smaller than the model that nmt.json describes")
        return np.broadcast_to(np.float32(0), shape)

    return {name: value.numpy() for name, value in fill(description, both, zeros).variables().items()}


def check_variables(found: Shapes, wanted: Shapes) -> None:
    """Raise ValueError unless these are the wanted variables; in int8, each row also has a scale."""
    for name, shape in found.items():
        matrix = name.removesuffix("_scale")
        rows = wanted[matrix][:1] if name != matrix and matrix in wanted else None
        if shape != wanted.get(name, rows):
            raise ValueError(f"{name[:80]!r} is {list(shape)}")
    missing = wanted.keys() - found.keys()
    if missing:
        raise ValueError(f"without {min(missing)!r}")


def check_numbers(file: BinaryIO, found: Content, wanted: dict[str, NDArray[Any]]) -> None:
    """Raise ValueError unless single numbers, such as that of the layer that aligns words, are the wanted ones."""
    for name, array in wanted.items():
        if not array.shape:
            stored = found.variables[name]
            file.seek(stored.offset)
            number = np.frombuffer(file.read(stored.length), TYPES[stored.type])[0]
            if number != array:
                raise ValueError(f"{name} is {number}, not {array}")
