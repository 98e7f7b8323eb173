"""Write, check and load a model directory's weights; count a model's FLOPs."""

import json
import math
import shutil
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_model as load_weights, save_file

from nmt.config import ModelConfig, NMTError, one_line, require
from nmt.files import (
    ModelDescription,
    Shapes,
    check_replaceable,
    foreign_files,
    read_description,
    stored_shapes,
    tied,
    whole_folder,
)
from nmt.model.transformer import Transformer

MAX_VOCABULARY = 2**24
TABLE_NUMBERS = 2**24  # maximum size of a sinusoid table, unless one of the model's matrices is larger


def check_ours(folder: Path) -> None:
    """Raise NMTError early if replacing a folder would delete files that do not belong to a model directory."""
    check_replaceable(folder)
    foreign = next(foreign_files(folder, "model"), None) if folder.exists() else None
    if foreign is not None:
        name = foreign.relative_to(folder)
        raise NMTError(f"{folder} contains {name}, which nmt did not write: move it, or name another folder")
    if folder.exists() and any(folder.iterdir()):
        read_description(folder)


def write_model_directory(
    folder: Path, model: Transformer, tokenizer_file: Path, description: ModelDescription, card: str
) -> None:
    """Write a model directory, replacing an older one."""
    # Of tied matrices, keep only the first by name; safetensors' save_model would list the others in random order.
    names, tensors = dict[int, str](), sorted(model.state_dict().items())
    kept = {name: x.contiguous() for name, x in tensors if names.setdefault(x.data_ptr(), name) == name}
    try:
        with whole_folder(folder) as temporary:
            save_file(kept, temporary / "model.safetensors", metadata={"format": "pt"})
            shutil.copyfile(tokenizer_file, temporary / "tokenizer.model")
            (temporary / "config.json").write_text(json.dumps(asdict(description), indent=2) + "\n", encoding="utf-8")
            (temporary / "README.md").write_text(card, encoding="utf-8")
    except (OSError, SafetensorError) as error:
        raise NMTError(f"cannot write {folder} ({one_line(error)}): is the disk full?") from error


def described(model: ModelConfig, vocabulary_size: int) -> Transformer:
    """A Transformer whose weights have no storage."""
    fits = 0 < vocabulary_size <= MAX_VOCABULARY
    require(fits, f"vocabulary_size={vocabulary_size}: must be between 1 and {MAX_VOCABULARY:,}")
    with torch.device("meta"):
        return Transformer(model, vocabulary_size)


def check_shapes(model: ModelConfig, vocabulary_size: int, stored: Shapes, problem: str) -> None:
    """Raise an NMTError that begins with `problem` if stored weights' names or shapes do not match the model."""
    fits = model.max_positions * model.d_model <= max([TABLE_NUMBERS, *map(math.prod, stored.values())])
    require(fits, f"{problem}: max_positions={model.max_positions:,} is too large")
    expected = {name: tuple(tensor.shape) for name, tensor in described(model, vocabulary_size).state_dict().items()}
    # A file contains only one of the tied matrices.
    shared = next((stored[name] for name in tied(model) if name in stored), None)
    for name in [*stored, *expected]:
        shapes = stored.get(name, shared if name in tied(model) else None), expected.get(name)
        held, right = ("absent" if shape is None else str(list(shape)) for shape in shapes)
        require(shapes[0] == shapes[1], f"{problem}: {name[:80]!r} is {held} but should be {right}")


def load_model(folder: Path, device: torch.device | str = "cpu") -> Transformer:
    """Load a model in evaluation mode; NMTError if the weights do not match the description."""
    description, path = read_description(folder), folder / "model.safetensors"
    config, size = ModelConfig(**description.model), description.vocabulary_size
    # Check before allocating memory, because an untrusted description may claim any size.
    check_shapes(config, size, stored_shapes(path), f"{path}: not the weights of the model in config.json")
    try:
        model = Transformer(config, size)
        load_weights(model, path)
    except (OSError, SafetensorError, RuntimeError) as error:
        raise NMTError(f"{path}: cannot be read or does not match config.json ({one_line(error)})") from error
    return model.to(device).eval()


def training_flops(
    config: ModelConfig, vocabulary_size: int, tokens: tuple[int, int], pairs: tuple[int, int, int]
) -> int:
    """FLOPs of the matrix products in one training pass over `tokens` (source, target), for the cost in Table 2.

    `pairs` has the numbers of query-key pairs in the encoder, in the decoder and in cross-attention. Each pair costs
    d_k + d_v multiplications per head, even in additive attention, because q + k and tanh are not counted.
    """
    c, (source, target), (encoder, decoder, cross) = config, tokens, pairs
    assert c.d_k
    assert c.d_v
    head = c.heads * (c.d_k + c.d_v)
    # The query and output projections together cost as much as the key and value projections.
    half_attention, feed_forward = c.d_model * head, 2 * c.d_model * c.d_ff
    past, decoder = (2 * c.d_model**2, 0) if c.decoder == "ssru" else (2 * half_attention, decoder)
    products = (
        c.encoder_layers * (source * (2 * half_attention + feed_forward) + encoder * head)
        + c.decoder_layers * (target * (past + half_attention + feed_forward) + source * half_attention)
        + c.decoder_layers * (decoder + cross) * head
        + target * c.d_model * (vocabulary_size - c.unpredicted)
    )
    # Factor 2: a multiplication and an addition. Factor 3: the forward pass and the gradients of both matrices.
    return 2 * 3 * products
