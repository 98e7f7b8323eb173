"""Files that torch.save wrote, from anyone: plain tensors, numbers and strings, or nothing.

Such a file is a zip archive whose members are stored as they are: a pickle, and the bytes of each tensor.
"""

import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.errors import is_out_of_memory, one_line
from nmt.storage.foreign import DEPTH, LARGE, check_regular

PLAIN = {
    "collections OrderedDict",
    "torch._utils _rebuild_tensor_v2",
    *(
        f"torch {kind}Storage"
        for kind in ("Bool", "Byte", "Short", "Int", "Long", "Half", "BFloat16", "Float", "Double")
    ),
}
"""What a pickle of plain tensors names; none of it does anything but hold what it is given."""
VALUES = 2**20
"""Numbers, strings and tensors in an archive at most."""


def load_plain(path: Path) -> Any:
    """What torch.save wrote of plain tensors, numbers and strings, mapped from the file.

    Raises ValueError where it is damaged or holds anything else, NMTError for a link or a device.
    """
    check_regular(path)
    if not zipfile.is_zipfile(path):
        raise ValueError("it is empty, cut, or a bare pickle, which is not run")
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path.stat().st_size)
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception as error:  # a damaged archive may end in any of them within zipfile, pickletools or torch
        if is_out_of_memory(error):
            raise  # of a whole one, which is not to be taken for damaged
        raise ValueError(reason(error)) from error
    check_values(content)
    return content


def reason(error: BaseException) -> str:
    """Why an archive was not read. What torch says to pickles is left out: it advises to run them."""
    if isinstance(error, pickle.UnpicklingError):
        return "it holds more than plain tensors, numbers and strings"
    if isinstance(error, zipfile.BadZipFile | EOFError | OSError):
        return f"it is cut or damaged: {one_line(error)}"
    return one_line(error)


def check_members(archive: zipfile.ZipFile, size: int) -> None:
    """ValueError where the archive of a file of `size` bytes would unfold, is damaged, or names what may run."""
    members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("its members are compressed, which torch.save does not do")
    if sum(member.file_size for member in members) > size:
        raise ValueError("it claims to hold more than the file does")
    damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged} within it is damaged: its check sum differs")
    for member in members:
        if member.filename.endswith("/data.pkl"):
            if member.file_size > LARGE:
                raise ValueError(f"more than {LARGE:,} bytes of it are no tensors")
            check_pickle(archive.read(member))


def check_pickle(content: bytes) -> None:
    """ValueError where a pickle names anything but plain tensors. It is read, not run."""
    for operation, argument, _ in pickletools.genops(content):
        named = operation.name in ("GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4")
        if named and (operation.name != "GLOBAL" or argument not in PLAIN):
            raise ValueError(
                f"it holds {str(argument)[:60]!r}, which is no plain tensor and may run; nothing of it did"
            )


def check_values(content: Any) -> None:
    """ValueError where a tree is deep or endless, or a tensor in it is larger than its bytes in the file."""
    level, seen = [content], 0
    for _ in range(DEPTH):
        seen += len(level)
        if seen > VALUES:
            raise ValueError(f"it holds more than {VALUES:,} values")
        level = [value for item in level for value in parts(item)]
        if not level:
            return
    raise ValueError("nested too deeply")


def parts(item: Any) -> list[Any]:
    """The values within a mapping or a sequence; none in any other."""
    if isinstance(item, dict):
        return [*item, *item.values()]
    if isinstance(item, list | tuple):
        return list(item)
    if isinstance(item, Tensor):
        if item.layout != torch.strided or item.numel() * item.element_size() > item.untyped_storage().nbytes():
            raise ValueError("a tensor in it is larger than its bytes")
    elif item is not None and not isinstance(item, int | float | str):
        raise ValueError(f"it holds a {type(item).__name__}, which is no tensor, number or string")
    return []
