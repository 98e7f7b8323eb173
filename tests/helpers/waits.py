"""Counts what a program would ask of a GPU, on a CPU: waits for results, and kernels to start."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

# Private, but there is no public way to see each operation (torch 2.11 and 2.13).
from torch.utils._python_dispatch import TorchDispatchMode

import nmt

ROOT = Path(nmt.__file__).parent
WAITING = {
    "_unique",
    "_unique2",
    "equal",
    "masked_select",
    "nonzero",
    "unique_consecutive",
    "unique_dim",
}
"""Operations whose result, or the shape of it, Python needs."""
READING = ("item", "tolist", "numpy", "cpu", "__int__", "__float__", "__bool__", "__index__")
"""Methods that copy from a GPU; on a CPU, a mode sees none of their operations, or not always."""


class Operations(TorchDispatchMode):
    """Counts the operations that start a kernel: all but views and questions about tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, operation, types, arguments=(), options=None) -> Any:
        name = operation.name()
        is_view = operation.is_view or name == "aten::_unsafe_view"
        if not is_view and not name.startswith("prim::"):
            self.counts[name] += 1
        return operation(*arguments, **(options or {}))


class Waits(TorchDispatchMode):
    """Counts the operations that would wait, by the function of nmt that calls them."""

    def __init__(self) -> None:
        super().__init__()
        self.places: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return self.places.total()

    def note(self) -> None:
        frame: Any = sys._getframe(1)
        while frame and not Path(frame.f_code.co_filename).is_relative_to(ROOT):
            frame = frame.f_back
        place = "elsewhere"
        if frame:
            path = Path(frame.f_code.co_filename).relative_to(ROOT)
            place = f"{path} {frame.f_code.co_name}"
        self.places[place] += 1

    def __torch_dispatch__(self, operation, types, arguments=(), options=None) -> Any:
        name = operation.overloadpacket.__name__
        masks = name in ("index", "index_put", "index_put_") and any(
            index is not None and index.dtype in (torch.bool, torch.uint8) for index in arguments[1]
        )
        if name in WAITING or masks:
            self.note()
        return operation(*arguments, **(options or {}))


@contextmanager
def counted_waits() -> Iterator[Waits]:
    with pytest.MonkeyPatch.context() as patch, Waits() as waits:

        def counting(function):
            def call(*arguments, **options):
                waits.note()
                return function(*arguments, **options)

            return call

        for name in READING:
            patch.setattr(Tensor, name, counting(getattr(Tensor, name)))
        patch.setattr(torch, "tensor", counting(torch.tensor))  # copies to a GPU
        yield waits


class OneDevice(TorchDispatchMode):
    """Fails on any operation with a tensor that is not on `device`."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def __torch_dispatch__(self, operation, types, arguments=(), options=None) -> Any:
        result = operation(*arguments, **(options or {}))
        for item in torch.utils._pytree.tree_leaves((arguments, options, result)):
            if isinstance(item, Tensor):
                assert item.device.type == self.device, operation
        return result
