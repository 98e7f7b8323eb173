"""Names and shapes of the weights in a safetensors file. No torch."""

import math
from pathlib import Path

from safetensors import SafetensorError, safe_open

from nmt.config import ModelConfig
from nmt.errors import NMTError, one_line
from nmt.files.foreign import check_regular

Shapes = dict[str, tuple[int, ...]]
"""Name of a parameter -> its shape."""
FLOATS = {"F64", "F32", "F16", "BF16"}
TABLE_NUMBERS = 2**24
"""Most numbers in a table of sinusoids, unless a matrix of the model has more."""
EMBEDDINGS = ("source_embedding.weight", "target_embedding.weight", "output.weight")
"""The matrices that may be one (section 3.4)."""


def tied(model: ModelConfig) -> tuple[str, ...]:
    """The matrices that are one: not that of the source, if it has a vocabulary of its own."""
    return () if not model.tied_embeddings else EMBEDDINGS[model.source_vocabulary_size is not None :]


def stored_as(name: str, stored: Shapes, model: ModelConfig) -> str:
    """The name under which a file holds a parameter: of tied matrices it holds only one."""
    if name in stored or name not in tied(model):
        return name
    return next((other for other in tied(model) if other in stored), name)


def check_positions(model: ModelConfig, stored: Shapes, problem: str) -> None:
    """NMTError, beginning with `problem`, for a table of sinusoids that is too large for the model."""
    if model.max_positions * model.d_model > max([TABLE_NUMBERS, *map(math.prod, stored.values())]):
        raise NMTError(f"{problem}: max_positions={model.max_positions:,} is too many")


def stored_shapes(path: Path) -> Shapes:
    """Names and shapes of tensors in a safetensors file, checked by its reader; NMTError where they are no weights."""
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
