"""A model directory as a model of CTranslate2 (https://opennmt.net/CTranslate2). No torch.

model.bin               weights, in float32 or int8
config.json             CTranslate2's own
shared_vocabulary.json  how tokens are written
tokenizer.model         as in the model directory
nmt.json                config.json of the model directory
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from nmt.config import ModelConfig
from nmt.config.rules import require
from nmt.errors import NMTError, one_line
from nmt.model_directory.description import EXPORTED, ModelDescription, is_exported, read_description, read_tokenizer
from nmt.model_directory.stored import check_positions, stored_as, stored_shapes
from nmt.search.ctranslate2_engine import positions
from nmt.storage.whole import whole_folder


class Weights(Protocol):
    """The values of a parameter, by its name and shape."""

    def __call__(self, name: str, *shape: int) -> NDArray[np.float32]: ...


def check(description: ModelDescription) -> None:
    """NMTError where CTranslate2 has no such model."""
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
    """Write the model directory `folder` as a model of CTranslate2, float32 or int8, which replaces an earlier one."""
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
    """CTranslate2's specifications import torch if it is installed, which takes seconds and is not needed here."""
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
    """A layer of the encoder or decoder. Its attention has no biases."""
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
