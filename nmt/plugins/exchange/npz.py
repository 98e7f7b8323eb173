"""Read untrusted .npz files, in which Marian stores arrays."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from nmt import files
from nmt.config import NMTError, one_line

Arrays = dict[str, np.ndarray[Any, Any]]


def read_npz(path: Path) -> Arrays:
    """The arrays of an .npz, read without pickle, which could run code.

    NMTError if the file is damaged or its arrays claim more bytes than it has.
    """
    files.check_regular(path)
    arrays: Arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            # A small zip archive may claim to unpack to any number of bytes.
            files.check_members(archive, path.stat().st_size)
            for name in archive.namelist():
                arrays[name.removesuffix(".npy")] = read_array(archive.read(name))
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise NMTError(f"{path}: not a readable .npz ({one_line(error)})") from error
    return arrays


def read_array(content: bytes) -> np.ndarray[Any, Any]:
    """The array in an .npy file of version 1.0, the version that Marian writes."""
    file = io.BytesIO(content)
    # Later versions allow headers of up to 4 GiB.
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array's format is newer than Marian's")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    # Not `np.load`: an array of objects would be unpickled, while `frombuffer` refuses such a type,
    # and reads no more than the file has.
    values = np.frombuffer(file.read(), dtype)
    return values.reshape(shape, order="F" if is_fortran else "C")
