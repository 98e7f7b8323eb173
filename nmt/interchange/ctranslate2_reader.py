"""An exported model from anyone: CTranslate2 is handed only what `nmt export` would have written."""

import math
import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from nmt.config import ModelConfig
from nmt.errors import NMTError, one_line
from nmt.interchange.ctranslate2 import check, fill
from nmt.model_directory.description import read_description, read_tokenizer
from nmt.model_directory.stored import EMBEDDINGS, Shapes
from nmt.storage.foreign import LARGE, check_regular, parse_json, read_mapping, read_text

SETTINGS = {
    **{"add_source_bos": False, "add_source_eos": True, "layer_norm_epsilon": 1e-5, "multi_query_attention": False},
    **{"bos_token": "<s>", "decoder_start_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
}
"""config.json as CTranslate2 writes it for us."""
NUMBER_BYTES = {0: 4, 1: 1, 2: 2, 3: 4, 4: 2, 5: 2}
"""Bytes of a number by its type: float32, int8, int16, int32, float16, bfloat16."""
FORMAT_VERSION = 6


def check_exported(folder: Path) -> None:
    """NMTError where an exported folder holds something else, which CTranslate2 might not survive."""
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
    """The variables of the model that is described; ValueError where a file so small cannot hold them."""
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
    """ValueError unless these are the variables; in int8, each row has a scale too."""
    for name, shape in found.items():
        matrix = name.removesuffix("_scale")
        rows = wanted[matrix][:1] if name != matrix and matrix in wanted else None
        if shape != wanted.get(name, rows):
            raise ValueError(f"{name[:80]!r} is {list(shape)}")
    missing = wanted.keys() - found.keys()
    if missing:
        raise ValueError(f"without {min(missing)!r}")


def read_variables(file: BinaryIO, size: int) -> Shapes:
    """The variables in model.bin, and other names of the same; their numbers are skipped."""

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
