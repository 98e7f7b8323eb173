"""Read untrusted files that torch.save wrote."""

import pickle
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from nmt.config import is_out_of_memory, one_line
from nmt.files.reading import check_regular, check_tree

VALUE_LIMIT = 2**20
"""Maximum number of values (numbers, strings and tensors) in a file."""


def check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError if a torch.save archive of `size` bytes is damaged.

    Also raise it if the archive claims to unpack to more bytes.
    """
    # A small compressed archive can expand to any size.
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
        raise ValueError("its members are compressed, but torch.save never compresses")
    # Members may overlap in a crafted archive, and so claim the same bytes many times.
    if sum(member.file_size for member in archive.infolist()) > size:
        raise ValueError("it claims to contain more bytes than the file")
    # torch does not compare checksums, so a flipped bit would become another weight.
    damaged = archive.testzip()
    if damaged:
        raise ValueError(f"its member {damaged} is damaged: the checksum does not match")


def checked_parts(value: Any) -> Iterable[Any]:
    """The values in a container; ValueError for anything but plain values and plain tensors."""
    import torch

    if isinstance(value, torch.Tensor):
        # With strides of 0, a tensor of any size can take only a few bytes.
        is_strided = value.layout == torch.strided
        size = value.numel() * value.element_size()
        if not is_strided or size > value.untyped_storage().nbytes():
            raise ValueError("a tensor in it is larger than its storage")
    elif value is not None and not isinstance(value, int | float | str | list | tuple | dict):
        kind = type(value).__name__
        raise ValueError(f"it contains a {kind}, which is not a tensor, number or string")
    if isinstance(value, dict):
        # Keys, too: in a pickle, they need not be strings.
        return [*value, *value.values()]
    if isinstance(value, list | tuple):
        return value
    return ()


def load_plain(path: Path) -> Any:
    """Load a torch.save file, memory-mapped.

    Raises ValueError if it is damaged or contains more than plain values.
    """
    import torch

    check_regular(path)
    if not zipfile.is_zipfile(path):
        raise ValueError("it is empty, truncated, or a bare pickle, which nmt does not run")
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path.stat().st_size)
        # With weights_only, a pickle can only construct tensors and containers.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:  # torch's own message advises running the pickle
        raise ValueError("it contains more than plain tensors, numbers and strings") from error
    except Exception as error:  # zipfile and torch raise many exception types for a damaged archive
        # Not damage: the file may be sound, and the machine too small.
        if is_out_of_memory(error):
            raise
        raise ValueError(f"it is truncated or damaged: {one_line(error)}") from error
    check_tree(content, checked_parts, VALUE_LIMIT)
    return content
