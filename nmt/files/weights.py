"""Names and shapes of weights, without loading them."""

from pathlib import Path

from safetensors import SafetensorError, safe_open

from nmt.config import ModelConfig, NMTError, one_line
from nmt.files.reading import check_regular

EMBEDDINGS = (
    "source_embedding.weight",
    "target_embedding.weight",
    "output.weight",
)
"""The names of weights that may share a matrix (section 3.4)."""
FLOATS = {"F64", "F32", "F16", "BF16"}
"""The types of weights, as safetensors names them."""
Shapes = dict[str, tuple[int, ...]]


def tied(model: ModelConfig) -> tuple[str, ...]:
    """The names of the tied matrices.

    They exclude the source embedding if the source has a separate vocabulary.
    """
    if not model.tied_embeddings:
        return ()
    if model.source_vocabulary_size is not None:
        # Only the target embedding and the output then have the same vocabulary.
        return EMBEDDINGS[1:]
    return EMBEDDINGS


def stored_shapes(path: Path) -> Shapes:
    """Names and shapes of the tensors in a safetensors file; NMTError if they are not weights."""
    check_regular(path)
    shapes: Shapes = {}
    kinds = set[str]()
    try:
        # With numpy, reading names and shapes does not import torch.
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 - it is no mapping
                part = file.get_slice(name)
                shapes[name] = tuple(part.get_shape())
                kinds.add(str(part.get_dtype()))
    except (OSError, SafetensorError) as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    unknown = ", ".join(sorted(kinds - FLOATS))
    if unknown:
        raise NMTError(
            f"{path}: contains numbers of type {unknown}; weights must be "
            f"{', '.join(sorted(FLOATS))}"
        )
    return shapes
