"""Files that torch.save wrote, from anyone: plain tensors, numbers and strings, or nothing.

Such a file is a zip archive whose members are stored as they are: a pickle, and the bytes of each tensor.
"""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.errors import is_out_of_memory, one_line
from nmt.storage.foreign import DEPTH, LARGE, check_regular

MOST_VALUES = 2**20
"""Numbers, strings and tensors in an archive."""


def load_plain(path: Path) -> Any:
    """Load what torch.save wrote of plain tensors, numbers and strings, mapped from the file.

    Raises ValueError where it is damaged or holds anything else, NMTError for a link or a device.
    """
    check_regular(path)
    if not zipfile.is_zipfile(path):
        raise ValueError("it is empty, cut, or a bare pickle, which is not run")
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path.stat().st_size)
        # Of a pickle, weights_only runs nothing but the constructors of tensors and containers.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # a damaged archive may end in any of them within zipfile or torch
        if is_out_of_memory(error):
            raise  # of a whole one, which is not to be taken for damaged
        raise ValueError(reason(error)) from error
    check_values(content)
    return content


def reason(error: BaseException) -> str:
    """Why an archive was not read, without torch's words on pickles: they advise to run them."""
    if isinstance(error, pickle.UnpicklingError):
        return "it holds more than plain tensors, numbers and strings"
    if isinstance(error, zipfile.BadZipFile | EOFError | OSError):
        return f"it is cut or damaged: {one_line(error)}"
    return one_line(error)


def check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError where the archive in a file of `size` bytes would unfold, or is damaged."""
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("its members are compressed, which torch.save does not do")
    if sum(member.file_size for member in members) > size:
        raise ValueError("it claims to hold more than the file does")
    if any(member.file_size > LARGE for member in members if member.filename.endswith("/data.pkl")):
        raise ValueError(f"more than {LARGE:,} bytes of it are no tensors")
    damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged} within it is damaged: its check sum differs")


def check_values(content: Any) -> None:
    """Raise ValueError where a tree is deep or endless, or holds anything but plain tensors, numbers and strings."""
    level, seen = [content], 0
    for _ in range(DEPTH):
        seen += len(level)
        if seen > MOST_VALUES:
            raise ValueError(f"it holds more than {MOST_VALUES:,} values")
        level = [part for value in level for part in parts(value)]
        if not level:
            return
    raise ValueError("nested too deeply")


def parts(value: Any) -> list[Any]:
    """The values within a mapping or a sequence; none in any other."""
    if isinstance(value, dict):
        return [*value, *value.values()]
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Tensor):
        # Strides of 0 make a tensor of any size out of a few bytes.
        if value.layout != torch.strided or value.numel() * value.element_size() > value.untyped_storage().nbytes():
            raise ValueError("a tensor in it is larger than its bytes")
    elif value is not None and not isinstance(value, int | float | str):
        raise ValueError(f"it holds a {type(value).__name__}, which is no tensor, number or string")
    return []
