"""The first value in which two trees of tensors and numbers differ, bit by bit."""

from typing import Any

import torch
from torch import Tensor

from nmt.config import in_words, shown


def first_difference(one: Any, two: Any, name: str = "", tensors: bool = True) -> str:
    """The first value in which two trees differ, and how; empty if all bits are equal.

    Without `tensors`, only the types and shapes of tensors are compared.
    """
    for kind in (dict, (list, tuple)):
        if isinstance(one, kind) and isinstance(two, kind):
            old, new = (x if isinstance(x, dict) else dict(enumerate(x)) for x in (one, two))
            parts = (
                first_difference(old.get(key), new.get(key), f"{name}.{key}", tensors)
                for key in {**old, **new}
            )
            return next(filter(None, parts), "")
    name = name.removeprefix(".")
    kinds = [
        f"{x.dtype} {[*x.shape]}" if isinstance(x, Tensor) else in_words(x) for x in (one, two)
    ]
    if kinds[0] != kinds[1] or isinstance(one, Tensor) != isinstance(two, Tensor):
        return f"{name} is {shown(kinds[0])} but should be {shown(kinds[1])}"
    if isinstance(one, Tensor) and not tensors:
        return ""
    # Compare bytes, because `torch.equal` treats -0 as 0 and float64 as float32.
    if not isinstance(one, Tensor) or torch.equal(
        *(x.contiguous().view(-1).view(torch.uint8) for x in (one, two))
    ):
        return ""
    return f"{name} differs by up to {float((one.double() - two.double()).abs().max()):.2g}"
