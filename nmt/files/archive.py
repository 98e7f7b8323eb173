"""Files of torch.save that may come from anyone: only plain tensors, numbers and strings are loaded.

Such a file is an uncompressed zip archive of a pickle and the bytes of each tensor.
"""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.errors import is_out_of_memory, one_line
from nmt.files.foreign import LARGE, check_regular, check_tree

VALUE_LIMIT = 2**20
"""Most numbers, strings and tensors in an archive."""


def load_plain(path: Path) -> Any:
    """Load a file of torch.save, memory-mapped; ValueError where it is damaged or holds more than plain values."""
    check_regular(path)
    if not zipfile.is_zipfile(path):
        raise ValueError("it is empty, cut, or a bare pickle, which is not run")
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path.stat().st_size)
        # With weights_only, a pickle can only construct tensors and containers.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # zipfile and torch raise all kinds for a damaged archive
        if is_out_of_memory(error):
            raise  # the archive may be whole
        raise ValueError(reason(error)) from error
    check_tree(content, parts, VALUE_LIMIT)
    return content


def reason(error: BaseException) -> str:
    """The reason why an archive was not read, without torch's message on pickles, which advises to run them."""
    if isinstance(error, pickle.UnpicklingError):
        return "it holds more than plain tensors, numbers and strings"
    if isinstance(error, zipfile.BadZipFile | EOFError | OSError):
        return f"it is cut or damaged: {one_line(error)}"
    return one_line(error)


def check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError where the archive in a file of `size` bytes is larger than the file, or damaged."""
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("its members are compressed, which torch.save does not do")
    if sum(member.file_size for member in members) > size:
        raise ValueError("it claims to hold more than the file does")
    if any(member.file_size > LARGE for member in members if member.filename.endswith("/data.pkl")):
        raise ValueError(f"more than {LARGE:,} bytes of it are not tensors")
    damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged} within it is damaged: its check sum differs")


def parts(value: Any) -> list[Any]:
    """The values in a mapping or a sequence, none in any other; ValueError for a value of a type that is not plain."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Tensor):
        # With strides of 0, a few bytes can be a tensor of any size.
        if value.layout != torch.strided or value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise ValueError("a tensor in it is larger than its bytes")
    elif value is not None and not isinstance(value, int | float | str):
        raise ValueError(f"it holds a {type(value).__name__}, which is not a tensor, number or string")
    return []
