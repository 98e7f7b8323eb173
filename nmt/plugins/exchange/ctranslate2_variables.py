"""The variables in model.bin of a model of CTranslate2 (https://opennmt.net/CTranslate2), in float32. No torch.

model.bin has a header, then each variable with its name, shape, type and numbers, then further names of some of them.
Matrices may be stored in int8, with a scale for each row, or in other types.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from nmt.errors import NMTError, one_line

Matrix = NDArray[np.float32]
VERSIONS, REVISIONS = range(4, 7), range(3, 8)
"""Of model.bin, since January 2020, and of the layout of Transformers, since October 2019."""
TYPES = {
    **{"float32": "<f4", "int8": "i1", "int16": "<i2", "int32": "<i4", "float16": "<f2"},
    "bfloat16": "<u2",
}
"""The types of CTranslate2 in the order of their numbers, as types of NumPy. bfloat16 is the upper half of float32."""
GLOBAL_SCALE = 1000.0
"""Scale of int16 matrices of older models, which do not name it."""


@dataclass
class Stored:
    """Where model.bin holds a variable."""

    shape: tuple[int, ...]
    type: str
    offset: int

    @property
    def length(self) -> int:
        """In bytes."""
        return math.prod(self.shape) * np.dtype(TYPES[self.type]).itemsize


@dataclass
class Content:
    """The index of model.bin."""

    version: int
    variables: dict[str, Stored]
    """By name; some names share a variable."""


def read_index(file: BinaryIO, size: int) -> Content:
    """The index of model.bin in a file of `size` bytes; ValueError or struct.error if it is none that we read."""

    def take(kind: str) -> Any:
        return struct.unpack(f"<{kind}", file.read(struct.calcsize(f"<{kind}")))[0]

    def text() -> str:
        return take(f"{take('H')}s").removesuffix(b"\0").decode()  # type: ignore[no-any-return]

    version = take("I")
    if version not in VERSIONS:
        raise ValueError(f"version {version} of the format, of which nmt reads {VERSIONS[0]} to {VERSIONS[-1]}")
    kind, revision = text(), take("I")
    if kind != "TransformerSpec":
        raise ValueError(f"it holds a {kind[:40]!r}, no Transformer that translates")
    if revision not in REVISIONS:
        raise ValueError(f"revision {revision} of Transformers, of which nmt reads {REVISIONS[0]} to {REVISIONS[-1]}")
    variables: dict[str, Stored] = {}
    for _ in range(take("I")):
        name = text()
        shape = tuple(take("I") for _ in range(take("B")))
        type, length = take("B"), take("I")
        if type >= len(TYPES):
            raise ValueError(f"{name[:80]!r} is of an unknown type")
        stored = Stored(shape, list(TYPES)[type], file.tell())
        if stored.length != length:
            raise ValueError(f"{name[:80]!r} is not as long as its shape")
        if stored.offset + length > size:
            raise ValueError("it is cut")
        variables[name] = stored
        file.seek(length, 1)
    for _ in range(take("I")):
        name, other = text(), text()
        if other not in variables:
            raise ValueError(f"{name[:80]!r} is {other[:80]!r}, which is not there")
        for ending in ("", "_scale"):
            if other + ending in variables:
                variables[name + ending] = variables[other + ending]
    if file.tell() != size:
        raise ValueError("it is longer than what it holds")
    # A matrix may have three names. A small file in which one has thousands would take up any memory.
    if 4 * size < sum(math.prod(stored.shape) for stored in variables.values()):
        raise ValueError("it claims to hold more numbers than its bytes can be")
    return Content(version, variables)


class Variables:
    """The variables of model.bin in float32. `left` are the names of those that were not asked for."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file = path, file
        try:
            content = read_index(file, path.stat().st_size)
        except (ValueError, struct.error) as error:
            reason = "it is cut" if isinstance(error, struct.error) else one_line(error)
            raise NMTError(f"{path}: not a model of CTranslate2 that nmt can read: {reason}") from error
        self.version, self.stored = content.version, content.variables
        self.left = set(self.stored)
        self.read: dict[int, Matrix] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.stored

    def numbers(self, name: str) -> NDArray[Any]:
        """A variable as it is stored."""
        stored = self.stored[name]
        self.left.discard(name)
        self.file.seek(stored.offset)
        return np.frombuffer(self.file.read(stored.length), TYPES[stored.type]).reshape(stored.shape)

    def scalar(self, name: str, default: float) -> float:
        """A number, or a default where the model does not have it."""
        if name not in self:
            return default
        if self.stored[name].shape not in ((), (1,)):
            raise NMTError(f"{self.path}: {name} is not a single number")
        return float(self.numbers(name).item())

    def attribute(self, side: str, name: str, default: float) -> float:
        """A scalar of the encoder or decoder; older models have one for both."""
        return self.scalar(f"{side}/{name}", self.scalar(name, default))

    def text(self, name: str, default: str) -> str:
        return self.numbers(name).tobytes().decode(errors="replace") if name in self else default

    def array(self, name: str, *shape: int | None) -> Matrix:
        """An array of a shape, in which None is any length, dequantised. What is stored once is one array."""
        stored = self.stored.get(name)
        if stored is None or not fits(stored.shape, shape):
            found = list(stored.shape) if stored else "nothing"
            wanted = ", ".join("any" if length is None else str(length) for length in shape)
            raise NMTError(f"{self.path}: {name} is {found}, where there should be [{wanted}]")
        self.left -= {name, f"{name}_scale"}
        if id(stored) not in self.read:
            array = self.dequantised(name)
            if not np.isfinite(array).all():
                raise NMTError(f"{self.path}: {name} holds numbers that are not finite")
            self.read[id(stored)] = array
        return self.read[id(stored)]

    def dequantised(self, name: str) -> Matrix:
        numbers, type = self.numbers(name), self.stored[name].type
        if type == "bfloat16":
            return (numbers.astype(np.uint32) << 16).view(np.float32)
        array = numbers.astype(np.float32)
        if type.startswith("int"):
            with np.errstate(divide="ignore", invalid="ignore"):
                array /= self.scales(name)
        return array

    def scales(self, name: str) -> Matrix:
        """What the rows of a matrix of whole numbers were multiplied by."""
        matrix, stored = self.stored[name], self.stored.get(f"{name}_scale")
        if stored is None and matrix.type == "int16":
            return np.array(GLOBAL_SCALE, np.float32)
        if stored is None or stored.type != "float32" or stored.shape not in ((), matrix.shape[:1]):
            raise NMTError(f"{self.path}: {name} holds whole numbers, but there is no scale for each row")
        columns = [1] * (len(matrix.shape) - 1)
        return self.numbers(f"{name}_scale").reshape(-1, *columns)


def fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """True for a shape that differs from the wanted one only where that is None."""
    return len(shape) == len(wanted) and all(b in (None, a) for a, b in zip(shape, wanted, strict=True))
