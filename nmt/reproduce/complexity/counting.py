"""What is counted, not timed: operations, how many of them must wait for one another, how far signals travel.

All of it is exact, and the same on every machine.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from nmt.reproduce.complexity.layers import Layer


class Chain(TorchDispatchMode):
    """Follows a computation, and knows of each tensor the longest chain of operations that led to it.

    An operation on a whole tensor is one, however large the tensor: all its elements can be computed at once. Views are
    none.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.written: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        """Storage -> stretches of it that operations wrote: first element, end, length of the chain."""
        self.kept: list[Tensor] = []
        """A storage's name may be given to another one when it is freed."""

    def length(self, tensor: Tensor) -> int:
        """The longest chain behind any element of a tensor."""
        start, end = extent(tensor)
        written = self.written[storage(tensor)]
        return max((length for first, last, length in written if first < end and start < last), default=0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        inputs = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        before = max(map(self.length, inputs), default=0)
        outputs = func(*args, **(kwargs or {}))
        views = set() if func._schema.is_mutable else set(map(storage, inputs))
        for output in tree_leaves(outputs):
            if isinstance(output, Tensor) and storage(output) not in views:
                self.kept.append(output)
                self.written[storage(output)].append((*extent(output), before + 1))
        return outputs


def storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def extent(tensor: Tensor) -> tuple[int, int]:
    """The first element of its storage that a tensor holds, and the one behind its last."""
    start = int(tensor.storage_offset())
    if not tensor.numel():
        return start, start
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return start, start + 1 + sum((size - 1) * int(stride) for size, stride in steps)


@dataclass
class Operations:
    """What a layer needs for one sequence."""

    flops: int
    """Multiplications and additions in its products."""
    sequential: int
    """The longest chain of operations that need one another's results."""


def count(layer: Layer, n: int, d: int, width: int) -> Operations:
    """Run a layer once with each of its operations in view."""
    # Doubles and this backend, because the fused kernels would hide what happens within.
    module, x = layer.make(d, width).double(), torch.zeros(1, n, d, dtype=torch.float64)
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), Chain() as chain, FlopCounterMode(display=False) as flops:
        y = module(x)
    return Operations(flops.get_total_flops(), chain.length(y))


def path_length(sees: Callable[[int, int, int], Iterable[int]], n: int, width: int) -> int:
    """Steps until a signal has come from every position to every other that it can reach at all.

    Counted by letting it spread: `come[p]` has a bit for each position whose signal is at p. Stacked layers are steps,
    and so are the steps of a recurrent layer.
    """
    come, steps = [1 << position for position in range(n)], 0
    while True:
        offsets = list(sees(n, width, steps))
        spread = [union(come, position, offsets) for position in range(n)]
        if spread == come:
            return steps
        come, steps = spread, steps + 1


def union(come: list[int], position: int, offsets: list[int]) -> int:
    """What has come to a position after one more step."""
    signals = come[position]
    for offset in offsets:
        if 0 <= position + offset < len(come):
            signals |= come[position + offset]
    return signals
