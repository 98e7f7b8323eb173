"""model.bin of a model of CTranslate2 (https://opennmt.net/CTranslate2), which may come from anyone. No torch.

It has a header, then each variable with its name, shape, type and numbers, then further names of some of them. Matrices
may be stored in int8, with a scale for each row, or in other types; here they are float32.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nmt.config import require
from nmt.errors import NMTError, one_line

Matrix = NDArray[np.float32]
VERSION, REVISION = 6, 7
"""Of model.bin, and of the layout of Transformers, since CTranslate2 3 of November 2022."""
TYPES = {
    **{"float32": "<f4", "int8": "i1", "int16": "<i2", "int32": "<i4", "float16": "<f2"},
    "bfloat16": "<u2",
}
"""The types of CTranslate2 in the order of their numbers, as types of NumPy. bfloat16 is the upper half of float32."""


@dataclass
class Stored:
    """Where model.bin holds a variable; its length is in bytes."""

    shape: tuple[int, ...]
    type: str
    offset: int
    length: int


def read_index(file: BinaryIO, size: int) -> dict[str, Stored]:
    """The variables of a file of `size` bytes; ValueError or struct.error if nmt does not read such a file."""

    def take(kind: str) -> Any:
        return struct.unpack(f"<{kind}", file.read(struct.calcsize(f"<{kind}")))[0]

    def text() -> str:
        return take(f"{take('H')}s").removesuffix(b"\0").decode()  # type: ignore[no-any-return]

    def fit(fits: bool, problem: str) -> None:
        if not fits:
            raise ValueError(problem)

    version = take("I")
    fit(version == VERSION, f"version {version} of the format, of which nmt reads {VERSION}; convert the model again")
    kind, revision = text(), take("I")
    fit(kind == "TransformerSpec", f"it holds a {kind[:40]!r}, no Transformer that translates")
    fit(revision == REVISION, f"revision {revision}, of which nmt reads {REVISION}; convert the model again")
    variables: dict[str, Stored] = {}
    for _ in range(take("I")):
        name, shape = text(), tuple(take("I") for _ in range(take("B")))
        type, length = take("B"), take("I")
        fit(type < len(TYPES), f"{name[:80]!r} is of an unknown type")
        variables[name] = stored = Stored(shape, list(TYPES)[type], file.tell(), length)
        itemsize = np.dtype(TYPES[stored.type]).itemsize
        fit(math.prod(shape) * itemsize == length, f"{name[:80]!r} is not as long as its shape")
        fit(stored.offset + length <= size, "it is cut")
        file.seek(length, 1)
    for _ in range(take("I")):
        name, other = text(), text()
        fit(other in variables, f"{name[:80]!r} is {other[:80]!r}, which is not there")
        aliases = {name + ending: other + ending for ending in ("", "_scale") if other + ending in variables}
        variables |= {alias: variables[stored] for alias, stored in aliases.items()}
    fit(file.tell() == size, "it is longer than what it holds")
    # A matrix may have three names. A small file in which one has thousands would take up any memory.
    numbers = sum(math.prod(stored.shape) for stored in variables.values())
    fit(numbers <= 4 * size, "it claims to hold more numbers than its bytes can be")
    return variables


class Variables:
    """The variables of model.bin: matrices in float32, each once; `left` are the names of what was not taken.

    Without `values`, all but scalars are zeros that take no memory.
    """

    def __init__(self, path: Path, file: BinaryIO, size: int, values: bool) -> None:
        self.path, self.file, self.values = path, file, values
        try:
            self.stored = read_index(file, size)
        except (ValueError, struct.error) as error:
            reason = "it is cut" if isinstance(error, struct.error) else one_line(error)
            raise NMTError(f"{path}: not a model of CTranslate2 that nmt can read: {reason}") from error
        self.left = set(self.stored)
        self.arrays: dict[int, Matrix] = {}

    def numbers(self, name: str) -> NDArray[Any]:
        """A variable as it is stored."""
        stored = self.stored[name]
        self.left.discard(name)
        self.file.seek(stored.offset)
        return np.frombuffer(self.file.read(stored.length), TYPES[stored.type]).reshape(stored.shape)

    def scalar(self, name: str, default: float) -> float:
        if name not in self.stored:
            return default
        require(self.stored[name].shape in ((), (1,)), f"{self.path}: {name} is not a single number")
        return float(self.numbers(name).item())

    def array(self, name: str, *shape: int | None) -> Matrix:
        """An array of a shape, in which None is any length; NMTError for another one."""
        stored = self.stored.get(name)
        lengths = stored.shape if stored else ()
        fits = len(lengths) == len(shape) and all(b in (None, a) for a, b in zip(lengths, shape, strict=True))
        expected = ", ".join("any" if length is None else str(length) for length in shape)
        actual = list(lengths) if stored else "nothing"
        require(fits, f"{self.path}: {name} is {actual}, where there should be [{expected}]")
        self.left -= {name, f"{name}_scale"}
        if not self.values:
            return np.broadcast_to(np.float32(0), lengths)
        if id(stored) not in self.arrays:
            self.arrays[id(stored)] = self.dequantized(name)
        return self.arrays[id(stored)]

    def dequantized(self, name: str) -> Matrix:
        stored, scale = self.stored[name], self.stored.get(f"{name}_scale")
        if stored.type == "bfloat16":
            array = (self.numbers(name).astype(np.uint32) << 16).view(np.float32)
        else:
            array = self.numbers(name).astype(np.float32)
        if stored.type.startswith("int"):
            fits = scale is not None and scale.type == "float32" and scale.shape in ((), stored.shape[:1])
            require(fits, f"{self.path}: {name} holds whole numbers, but there is no scale for each row")
            with np.errstate(divide="ignore", invalid="ignore"):
                array /= self.numbers(f"{name}_scale").reshape(-1, *[1] * (array.ndim - 1))
        require(bool(np.isfinite(array).all()), f"{self.path}: {name} holds numbers that are not finite")
        return array
