"""Read the weights of a model that transformers stored, from untrusted folders.

model.safetensors                    weights
pytorch_model.bin                    weights in PyTorch's format
*.index.json                         the files of a large model's weights, and what each contains
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from nmt import files
from nmt.config import NMTError, one_line, shown
from nmt.plugins.exchange.hub_files import WEIGHTS, index_of

Weights = dict[str, Tensor]


def read_hub_weights(folder: Path) -> Weights:
    """All weights in a folder, without the tables of sinusoids, which nmt computes.

    NMTError if there are none, or if a file contains more than tensors.
    """
    weights = Weights()
    for path in weight_files(folder):
        for name, tensor in read_tensors(path).items():
            if not name.endswith(".embed_positions.weights"):
                weights[name] = tensor
    return weights


def weight_files(folder: Path) -> list[Path]:
    """The files that contain the weights."""
    for name in WEIGHTS:
        path = folder / name
        if path.exists():
            return [path]
        index = folder / index_of(name)
        if index.exists():
            return parts_of(index)
    raise NMTError(f"{folder}: contains neither {' nor '.join(WEIGHTS)}")


def parts_of(index: Path) -> list[Path]:
    """The files that an index names."""
    tree = files.read_mapping(index, files.parse_json, files.LARGE)
    names = tree.get("weight_map")
    if not isinstance(names, dict) or not names:
        raise NMTError(f"{index}: has no weight_map")
    parts = []
    for name in sorted({str(name) for name in names.values()}):
        path = index.parent / name
        # The index may come from anyone, and must not lead out of its folder.
        if Path(name).name != name or not path.is_file():
            raise NMTError(f"{index}: {shown(name)} is not a file in the folder")
        parts.append(path)
    return parts


def read_tensors(path: Path) -> Weights:
    """The tensors in a file of either format, by their names."""
    if path.suffix == ".bin":
        try:
            tensors = files.load_plain(path)
        except ValueError as error:
            raise NMTError(f"{path}: {one_line(error)}; {conversion(path)}") from error
    else:
        # Checks an untrusted file before the library reads it.
        files.stored_shapes(path)
        try:
            tensors = load_file(path)
        except (OSError, SafetensorError) as error:
            raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if not isinstance(tensors, dict) or not all(is_weight(*item) for item in tensors.items()):
        raise NMTError(f"{path}: is not a mapping of names to floating-point tensors")
    return tensors


def is_weight(name: Any, tensor: Any) -> bool:
    if not isinstance(name, str) or not torch.is_tensor(tensor):
        return False
    # A tensor on the device "meta" has no content, and a sparse one no dense content.
    is_plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
    return is_plain and tensor.is_floating_point()


def conversion(path: Path) -> str:
    """The advice for a file that nmt refuses to read."""
    return (
        f"if you trust it, convert it: AutoModelForSeq2SeqLM.from_pretrained({str(path.parent)!r})"
        ".save_pretrained(FOLDER) in transformers"
    )
