"""The first value in which two trees of tensors and numbers differ, bit by bit."""

from typing import Any

import torch
from torch import Tensor

from nmt.config import in_words, shown


def first_difference(one: Any, two: Any, name: str = "", tensors: bool = True) -> str:
    """The first value in which two trees differ, and how; empty if all bits are equal.

    Without `tensors`, only the types and shapes of tensors are compared. `name` is the dotted path
    of both trees.
    """
    # A list and a tuple with the same values count as equal.
    for kind in (dict, (list, tuple)):
        if isinstance(one, kind) and isinstance(two, kind):
            return first_different_child(children(one), children(two), name, tensors)
    name = name.removeprefix(".")
    old = type_of(one)
    new = type_of(two)
    # A tensor and the text that describes it have the same `type_of`.
    if old != new or isinstance(one, Tensor) != isinstance(two, Tensor):
        return f"{name} is {shown(old)} but should be {shown(new)}"
    # Equal values of other types have been compared as text above.
    if not isinstance(one, Tensor) or not tensors:
        return ""
    # Compare bytes, because `torch.equal` treats -0 as 0 and float64 as float32.
    if torch.equal(bytes_of(one), bytes_of(two)):
        return ""
    largest = float((one.double() - two.double()).abs().max())
    return f"{name} differs by up to {largest:.2g}"


def first_different_child(
    one: dict[Any, Any], two: dict[Any, Any], name: str, tensors: bool
) -> str:
    # In the order of the first tree, with keys that only the second one has at the end. A missing
    # value is None, which differs from any tensor.
    for key in {**one, **two}:
        changed = first_difference(one.get(key), two.get(key), f"{name}.{key}", tensors)
        if changed:
            return changed
    return ""


def children(tree: Any) -> dict[Any, Any]:
    """The values of a mapping, or of a sequence by index."""
    return tree if isinstance(tree, dict) else dict(enumerate(tree))


def type_of(value: Any) -> str:
    """The type and shape of a tensor; any other value itself."""
    if isinstance(value, Tensor):
        return f"{value.dtype} {[*value.shape]}"
    return in_words(value)


def bytes_of(tensor: Tensor) -> Tensor:
    # Flattened first, because a tensor without dimensions cannot be viewed as another type.
    return tensor.contiguous().view(-1).view(torch.uint8)
