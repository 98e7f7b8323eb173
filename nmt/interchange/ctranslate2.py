"""Model directories as models of CTranslate2 (https://opennmt.net/CTranslate2), and checks of such models. No torch.

model.bin               weights, in float32 or int8
config.json             CTranslate2's own
shared_vocabulary.json  how tokens are written
tokenizer.model         as in the model directory
nmt.json                config.json of the model directory
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

from nmt.config import ModelConfig
from nmt.config.rules import require
from nmt.errors import NMTError, one_line
from nmt.model_directory.description import EXPORTED, ModelDescription, is_exported, read_description, read_tokenizer
from nmt.model_directory.stored import EMBEDDINGS, Shapes, check_positions, stored_as, stored_shapes
from nmt.search.ctranslate2_engine import positions
from nmt.storage.foreign import LARGE, check_regular, parse_json, read_mapping, read_text
from nmt.storage.whole import whole_folder

SETTINGS = {
    **{"add_source_bos": False, "add_source_eos": True, "layer_norm_epsilon": 1e-5, "multi_query_attention": False},
    **{"bos_token": "<s>", "decoder_start_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
}
"""config.json as CTranslate2 writes it for our models."""
NUMBER_BYTES = {0: 4, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2}
"""Bytes of a number by its type: float32, int8, int16, int32, float16, bfloat16."""
FORMAT_VERSION = 6
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


def sinusoids(length: int, d_model: int) -> NDArray[np.float32]:
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos of the same: [length, d_model]."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(length, d_model).astype(np.float32)


def write(folder: Path, output: Path, precision: str) -> None:
    """Write a model directory as a model of CTranslate2, float32 or int8; an earlier export is replaced."""
    description, path = read_description(folder), folder / "model.safetensors"
    check(description)
    if output.exists() and not is_exported(output):
        raise NMTError(f"output={output}: there already, and no exported model; name another folder")
    stored, vocabulary = stored_shapes(path), read_tokenizer(folder).vocabulary()
    check_positions(ModelConfig(**description.model), stored, str(path))
    try:
        with safe_open(path, framework="numpy") as file:

            def weights(name: str, *shape: int) -> NDArray[np.float32]:
                name = stored_as(name, stored) if description.model["tied_embeddings"] else name
                require(stored.get(name) == shape, f"{path}: {name} is not as config.json describes it, {list(shape)}")
                return file.get_tensor(name).astype(np.float32)  # type: ignore[no-any-return]

            spec = fill(description, vocabulary, weights)
        spec.optimize(precision)
        with whole_folder(output) as temporary:
            spec.save(str(temporary))
            shutil.copyfile(folder / "tokenizer.model", temporary / "tokenizer.model")
            shutil.copyfile(folder / "config.json", temporary / EXPORTED)
    except (OSError, SafetensorError) as error:
        raise NMTError(f"cannot write {folder} as {output} ({one_line(error)})") from error


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


def fill(description: ModelDescription, vocabulary: list[str], weights: Weights) -> Any:
    """The specification of a model with its weights."""
    with torch_hidden():
        from ctranslate2.specs import Activation, TransformerSpec

    model = ModelConfig(**description.model)
    spec = TransformerSpec.from_config(
        (model.encoder_layers, model.decoder_layers),
        model.heads,
        pre_norm=model.norm == "pre",
        activation=Activation.RELU,
    )
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = 1e-5
    learned, size = model.positions == "learned", (len(vocabulary), model.d_model)
    for side, stack, name, embeddings in (
        (spec.encoder, "encoder", "source_embedding", spec.encoder.embeddings[0]),
        (spec.decoder, "decoder", "target_embedding", spec.decoder.embeddings),
    ):
        embeddings.weight = weights(f"{name}.weight", *size)
        side.position_encodings.encodings = (
            weights(f"{name}.positions.table", model.max_positions, model.d_model)
            if learned
            else sinusoids(positions(description), model.d_model)
        )
        if model.norm == "pre":
            fill_norm(side.layer_norm, f"{stack}_norm", model.d_model, weights)
        for number, layer in enumerate(side.layer):
            fill_layer(layer, f"{stack}_layers.{number}", model, weights)
    spec.decoder.projection.weight = weights("output.weight", *size)
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.validate()
    return spec


def fill_layer(spec: Any, name: str, model: ModelConfig, weights: Weights) -> None:
    """Fill a layer of the encoder or decoder. Its attention has no biases."""
    width, inner, residual = model.d_model, model.d_ff, 2
    spec.self_attention.linear[0].weight = weights(f"{name}.self_attention.input", 3 * width, width)
    spec.self_attention.linear[1].weight = weights(f"{name}.self_attention.output", width, width)
    fill_norm(spec.self_attention.layer_norm, f"{name}.residual_1.norm", width, weights)
    if name.startswith("decoder"):
        attention, residual = spec.attention, 3
        joined = weights(f"{name}.cross_attention.input", 3 * width, width)
        attention.linear[0].weight, attention.linear[1].weight = np.split(joined, [width])
        attention.linear[2].weight = weights(f"{name}.cross_attention.output", width, width)
        fill_norm(attention.layer_norm, f"{name}.residual_2.norm", width, weights)
    for linear, index, shape in ((spec.ffn.linear_0, 0, (inner, width)), (spec.ffn.linear_1, 2, (width, inner))):
        linear.weight = weights(f"{name}.feed_forward.{index}.weight", *shape)
        linear.bias = weights(f"{name}.feed_forward.{index}.bias", shape[0])
    fill_norm(spec.ffn.layer_norm, f"{name}.residual_{residual}.norm", width, weights)


def fill_norm(spec: Any, name: str, width: int, weights: Weights) -> None:
    spec.gamma, spec.beta = weights(f"{name}.weight", width), weights(f"{name}.bias", width)


def check_exported(folder: Path) -> None:
    """Raise NMTError unless a folder, which may come from anyone, holds what `write` would have written.

    CTranslate2 does not check the files that it loads, and may crash on others.
    """
    if read_mapping(folder / "config.json", parse_json) != SETTINGS:
        raise NMTError(f"{folder / 'config.json'}: not as nmt writes it; export the model again")
    path, vocabulary = folder / "shared_vocabulary.json", read_tokenizer(folder).vocabulary()
    try:
        same = parse_json(read_text(path, LARGE)) == vocabulary
    except ValueError as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if not same:
        raise NMTError(f"{path}: not the vocabulary of tokenizer.model; export the model again")
    path = folder / "model.bin"
    check_regular(path)
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            check_variables(read_variables(file, size), expected(folder, vocabulary, size))
    except (OSError, ValueError, struct.error) as error:
        raise NMTError(f"{path}: not a model that CTranslate2 can load ({one_line(error)}); export it again") from error


def expected(folder: Path, vocabulary: list[str], size: int) -> Shapes:
    """The variables of the model that nmt.json describes; ValueError if a file of `size` bytes cannot hold them."""
    description = read_description(folder)
    check(description)
    model, left = ModelConfig(**description.model), size
    tied = EMBEDDINGS[1:] if model.tied_embeddings else ()

    def zeros(name: str, *shape: int) -> Any:
        nonlocal left
        left -= 0 if name in tied else math.prod(shape)
        if left < 0 or model.max_positions * model.d_model > size:
            raise ValueError("smaller than the model that nmt.json describes")
        return np.broadcast_to(np.float32(0), shape)

    return {name: tuple(value.shape) for name, value in fill(description, vocabulary, zeros).variables().items()}


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


def read_variables(file: BinaryIO, size: int) -> Shapes:
    """The names and shapes of the variables in model.bin, aliases included; their numbers are skipped."""

    def take(kind: str) -> Any:
        return struct.unpack(f"<{kind}", file.read(struct.calcsize(f"<{kind}")))[0]

    def text() -> str:
        return file.read(take("H")).removesuffix(b"\0").decode()

    if take("I") != FORMAT_VERSION or text() != "TransformerSpec":
        raise ValueError("of another kind or version")
    take("I")
    shapes: Shapes = {}
    for _ in range(take("I")):
        name = text()
        shapes[name] = tuple(take("I") for _ in range(take("B")))
        width, length = NUMBER_BYTES.get(take("B"), 0), take("I")
        if math.prod(shapes[name]) * width != length or file.tell() + length > size:
            raise ValueError(f"{name[:80]!r} is cut")
        file.seek(length, 1)
    for _ in range(take("I")):
        name, other = text(), text()
        if other not in shapes:
            raise ValueError(f"{name[:80]!r} is {other[:80]!r}, which is not there")
        shapes[name] = shapes[other]
    if file.tell() != size:
        raise ValueError("longer than what it holds")
    return shapes
