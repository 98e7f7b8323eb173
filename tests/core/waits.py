"""Counts what would wait for a GPU, on a CPU, where nothing waits."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

# Private, but there is no public way to see each operation (torch 2.11 and 2.13).
from torch.utils._python_dispatch import TorchDispatchMode

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


class Waits(TorchDispatchMode):
    """Counts the operations that would wait."""

    count = 0

    def __torch_dispatch__(self, operation, types, arguments=(), options=None) -> Any:
        name = operation.overloadpacket.__name__
        masks = name in ("index", "index_put", "index_put_") and any(
            index is not None and index.dtype in (torch.bool, torch.uint8) for index in arguments[1]
        )
        self.count += name in WAITING or masks
        return operation(*arguments, **(options or {}))


@contextmanager
def counted_waits() -> Iterator[Waits]:
    with pytest.MonkeyPatch.context() as patch, Waits() as waits:

        def counting(function):
            def call(*arguments, **options):
                waits.count += 1
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
