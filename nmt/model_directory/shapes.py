"""Names and shapes of a model's weights, by its description and by its file: they must agree before either is believed.

No torch, which the other engine can do without.
"""

import math
from pathlib import Path

from safetensors import SafetensorError, safe_open

from nmt.config import ModelConfig
from nmt.errors import NMTError, one_line
from nmt.model_directory.description import read_description
from nmt.storage.foreign import check_regular

Shapes = dict[str, tuple[int, ...]]
"""Name of a parameter -> its shape."""
FLOATS = {"F64", "F32", "F16", "BF16"}
TABLE_NUMBERS = 2**24
"""Most numbers in a table of sinusoids, which no file holds, unless a matrix of the model has more."""
EMBEDDINGS = ("source_embedding.weight", "target_embedding.weight", "output.weight")
"""The matrices that may be one (section 3.4)."""


def norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def attention(name: str, model: ModelConfig) -> Shapes:
    """Queries, keys and values come from one matrix."""
    assert model.d_k
    assert model.d_v
    shapes: Shapes = {
        f"{name}.input": (model.heads * (2 * model.d_k + model.d_v), model.d_model),
        f"{name}.output": (model.d_model, model.heads * model.d_v),
    }
    return {**shapes, f"{name}.v": (model.heads, model.d_k)} if model.attention == "additive" else shapes


def layer(name: str, model: ModelConfig, decoder: bool) -> Shapes:
    shapes = attention(f"{name}.self_attention", model)
    if decoder:
        shapes |= attention(f"{name}.cross_attention", model)
    for index, (rows, columns) in ((0, (model.d_ff, model.d_model)), (2, (model.d_model, model.d_ff))):
        shapes |= {f"{name}.feed_forward.{index}.weight": (rows, columns), f"{name}.feed_forward.{index}.bias": (rows,)}
    for number in range(1, 4 if decoder else 3):
        shapes |= norm(f"{name}.residual_{number}.norm", model.d_model)
    return shapes


def described_shapes(model: ModelConfig, vocabulary_size: int) -> Shapes:
    """The weights of the Transformer with such a configuration, of tied matrices each by its own name."""
    shapes: Shapes = dict.fromkeys(EMBEDDINGS, (vocabulary_size, model.d_model))
    if model.positions == "learned":
        table = model.max_positions, model.d_model
        shapes |= {f"{side}_embedding.positions.table": table for side in ("source", "target")}
    for side, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for number in range(layers):
            shapes |= layer(f"{side}_layers.{number}", model, side == "decoder")
        if model.norm == "pre":
            shapes |= norm(f"{side}_norm", model.d_model)
    return shapes


def count_parameters(model: ModelConfig, vocabulary_size: int) -> int:
    """The numbers in a model's weights, tied matrices once."""
    tied = EMBEDDINGS[1:] if model.tied_embeddings else ()
    shapes = described_shapes(model, vocabulary_size)
    return sum(math.prod(shape) for name, shape in shapes.items() if name not in tied)


def stored_as(name: str, stored: Shapes) -> str:
    """The name by which a file holds a parameter: of tied matrices it holds one."""
    return name if name in stored else next((other for other in EMBEDDINGS if other in stored), name)


def check_shapes(model: ModelConfig, vocabulary_size: int, stored: Shapes, problem: str) -> None:
    """NMTError, which begins with `problem`, unless these are the names and shapes of such a model's weights."""
    if model.max_positions * model.d_model > max([TABLE_NUMBERS, *map(math.prod, stored.values())]):
        raise NMTError(f"{problem}: max_positions={model.max_positions:,} is too many")
    wanted = described_shapes(model, vocabulary_size)
    tied = EMBEDDINGS if model.tied_embeddings else ()
    for name in [*stored, *wanted]:
        held = stored.get(stored_as(name, stored) if name in tied else name)
        if held != wanted.get(name):
            pair = [str(list(shape)) if shape is not None else "nothing" for shape in (held, wanted.get(name))]
            raise NMTError(f"{problem}: {name[:80]!r} is {pair[0]}, where there should be {pair[1]}")


def stored_shapes(path: Path) -> Shapes:
    """The tensors in a safetensors file, which its own reader checks against the file's size.

    Raises NMTError where it is none, or holds anything but floating-point numbers.
    """
    check_regular(path)
    try:
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            kinds = {str(part.get_dtype()) for part in slices.values()}
            shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
    except (OSError, SafetensorError) as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if not kinds <= FLOATS:
        raise NMTError(f"{path}: holds numbers of type {min(kinds - FLOATS)}; weights are {', '.join(sorted(FLOATS))}")
    return shapes


def check_weights(folder: Path) -> ModelConfig:
    """The configuration of a model directory, once its weights are of the shapes that follow from it.

    NMTError where they are not, before any memory is taken for a model that someone has only described.
    """
    description = read_description(folder)
    model, path = ModelConfig(**description.model), folder / "model.safetensors"
    problem = f"{path}: not the weights of the model in config.json"
    check_shapes(model, description.vocabulary_size, stored_shapes(path), problem)
    return model
