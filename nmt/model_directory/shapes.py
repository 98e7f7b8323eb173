"""The weights of a model by its description and by its file: names and shapes agree before either is believed."""

from pathlib import Path

import torch

from nmt.config import ModelConfig
from nmt.config.rules import require
from nmt.errors import NMTError, one_line
from nmt.model import Transformer
from nmt.model_directory.description import read_description
from nmt.model_directory.stored import Shapes, check_positions, stored_as, stored_shapes


def described(model: ModelConfig, vocabulary_size: int) -> Transformer:
    """The Transformer with such a configuration, which takes no memory for its weights."""
    require(vocabulary_size > 0, f"vocabulary_size={vocabulary_size}: must be positive")
    try:
        with torch.device("meta"):
            return Transformer(model, vocabulary_size)
    except RuntimeError as error:
        raise NMTError(f"vocabulary_size={vocabulary_size}: too large ({one_line(error)})") from error


def count_parameters(model: ModelConfig, vocabulary_size: int) -> int:
    """The numbers in a model's weights, tied matrices once."""
    return sum(parameter.numel() for parameter in described(model, vocabulary_size).parameters())


def check_shapes(model: ModelConfig, vocabulary_size: int, stored: Shapes, problem: str) -> None:
    """NMTError, which begins with `problem`, unless these are the names and shapes of such a model's weights."""
    check_positions(model, stored, problem)
    wanted = {name: tuple(tensor.shape) for name, tensor in described(model, vocabulary_size).state_dict().items()}
    for name in [*stored, *wanted]:
        held = stored.get(stored_as(name, stored) if model.tied_embeddings else name)
        if held != wanted.get(name):
            pair = [str(list(shape)) if shape is not None else "nothing" for shape in (held, wanted.get(name))]
            raise NMTError(f"{problem}: {name[:80]!r} is {pair[0]}, where there should be {pair[1]}")


def check_weights(folder: Path) -> ModelConfig:
    """The configuration of a model directory, once its weights are of the shapes that follow from it.

    NMTError where they are not, before any memory is taken for a model that someone has only described.
    """
    description = read_description(folder)
    model, path = ModelConfig(**description.model), folder / "model.safetensors"
    problem = f"{path}: not the weights of the model in config.json"
    check_shapes(model, description.vocabulary_size, stored_shapes(path), problem)
    return model
