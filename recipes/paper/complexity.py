"""Complexity of layer types (section 4, Table 1): measured time and memory, counted operations and paths.

python complexity.py SCALE    # prints the measurements and the table as JSON
"""

import json
import math
import os
import signal
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import reduce
from operator import or_
from typing import Any

import torch
from layers import D_K, LAYERS, Layer, dilated
from plan import SCALES
from torch import Tensor, nn
from torch.autograd.profiler import profile
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from nmt.hardware import processor
from nmt.kernels import keep_freed_memory
from nmt.training import synchronize

STRETCH_SECONDS = 0.05
"""Short calls are repeated until this time has passed."""
FLOAT_BYTES = 4
LENGTHS = (64, 512)
"""Lengths of the sequences whose paths are counted."""
COUNTED: dict[str, Any] = {
    **{"n": [64, 128, 256], "d": [64, 128, 256], "k": [3, 7, 15], "r": [8, 16, 32]},
    **{"at_n": 64, "at_d": 64, "at_k": 3, "at_r": 16},
}
"""The sizes at which operations are counted; a power law fitted to these holds for all sizes."""
Curve = list[tuple[float, float]]
Grid = dict[str, Any]
"""The sizes of layers: values along each axis, and the value at which the other axes are fixed (scales.yaml)."""
Sizes = tuple[int, int, int]
"""n, d, and the width of a layer (0 if it has none)."""


def lines(grid: Grid, layer: Layer) -> dict[str, list[tuple[int, Sizes]]]:
    """Axis -> values along the axis, each with the sizes of its point."""
    at = {"n": grid["at_n"], "d": grid["at_d"], "k": grid["at_k"], "r": grid["at_r"], "": 0}

    def sizes(axis: str, value: int) -> Sizes:
        own = {**at, axis: value}
        return own["n"], own["d"], own[layer.width]

    return {
        axis: [(x, sizes(axis, x)) for x in grid[axis]] for axis in ("n", "d", layer.width) if axis
    }


def cases(grid: Grid) -> list[tuple[Sizes, Layer]]:
    """Every point once, ordered by size."""
    points = {
        (at, i)
        for i, layer in enumerate(LAYERS)
        for line in lines(grid, layer).values()
        for _, at in line
    }
    return [(at, LAYERS[i]) for at, i in sorted(points)]


def measure(grid: Grid, device: torch.device) -> dict[str, Any]:
    """Measure the time and memory of every layer's forward pass at every size; also return the setup."""
    points: list[dict[str, Any]] = []
    for (n, d, width), layer in cases(grid):
        memory = peak_memory(*prepare(layer, grid["batch"], (n, d, width), device))
        points.append(
            {"layer": layer.name, "n": n, "d": d, "width": width, "memory": memory, "seconds": []}
        )
    for _ in range(grid["rounds"]):
        for point, (at, layer) in zip(points, cases(grid), strict=True):
            point["seconds"].append(seconds(*prepare(layer, grid["batch"], at, device)))
    name = (
        torch.cuda.get_device_name(device) if device.type == "cuda" else f"{processor()}, one core"
    )
    setup = {"device": name, "dtype": "float32", "torch": torch.__version__, "grid": grid}
    return {"setup": setup, "points": points}


def largest_bytes(grid: Grid) -> int:
    """Approximate memory for the largest point: two score matrices for each head."""
    pairs = max(n * n * max(1, d // D_K) for (n, d, _), _ in cases(grid))
    return int(2 * FLOAT_BYTES * grid["batch"] * pairs)


def prepare(layer: Layer, batch: int, at: Sizes, device: torch.device) -> tuple[nn.Module, Tensor]:
    """A layer and a random input."""
    n, d, width = at
    with torch.random.fork_rng(), device:
        return layer.make(d, width).eval(), torch.randn(batch, n, d)


@torch.no_grad()
def seconds(module: nn.Module, x: Tensor) -> float:
    """Seconds of one forward pass after a warm-up; on a CPU, only the time of this thread."""
    clock = time.thread_time if x.device.type == "cpu" else time.perf_counter
    calls, start = -1, 0.0
    while calls < 1 or clock() - start < STRETCH_SECONDS:
        module(x)
        synchronize(x.device)
        calls += 1
        start = start if calls else clock()
    return (clock() - start) / calls


@torch.no_grad()
def peak_memory(module: nn.Module, x: Tensor) -> int:
    """The peak memory of a forward pass in bytes, excluding input and weights.

    On a CPU, this sums torch's allocations, including those of its kernels. The size of the process would include
    memory that the C library keeps.
    """
    if x.device.type == "cuda":
        module(x)  # libraries allocate some memory once and keep it
        torch.cuda.reset_peak_memory_stats(x.device)
        before = torch.cuda.memory_allocated(x.device)
        module(x)
        return torch.cuda.max_memory_allocated(x.device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise, the profiler logs every start
    with profile(profile_memory=True) as profiler:
        module(x)
    assert profiler.kineto_results is not None
    now = peak = 0
    for event in profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now)
    return peak


class Chain(TorchDispatchMode):
    """Tracks the longest chain of operations that led to each tensor of a computation.

    An operation on a whole tensor counts once, whatever its size: all elements can be computed at once. Views do not
    count.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.written: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        """Storage -> the parts that operations have written: first element, end, length of the chain."""
        self.kept: list[Tensor] = []
        """Keeps tensors alive, because torch may reuse the address of a freed storage."""

    def length(self, tensor: Tensor) -> int:
        """The longest chain that led to an element of a tensor."""
        start, end = extent(tensor)
        written = self.written[storage(tensor)]
        return max(
            (length for first, last, length in written if first < end and start < last), default=0
        )

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
    """The range of storage elements that a tensor covers."""
    start, steps = int(tensor.storage_offset()), zip(tensor.shape, tensor.stride(), strict=True)
    return start, start + 1 + sum((size - 1) * int(stride) for size, stride in steps)


def count(layer: Layer, at: Sizes) -> tuple[int, int]:
    """Multiplications and additions in products, and the longest chain of operations, for one sequence."""
    module, x = prepare(layer, 1, at, torch.device("cpu"))
    # Use float64 and this backend, because fused kernels would hide their operations.
    module, x = module.double(), x.double()
    with (
        torch.no_grad(),
        sdpa_kernel(SDPBackend.MATH),
        Chain() as chain,
        FlopCounterMode(display=False) as flops,
    ):
        y = module(x)
    return flops.get_total_flops(), chain.length(y)


def path_length(sees: Callable[[int, int, int], Iterable[int]], n: int, width: int) -> int:
    """Steps until a signal from every position has reached every other position that it can reach.

    In this simulation, `come[p]` has a bit for each position whose signal has arrived at p. A step is one of several
    stacked layers, or a step of a recurrent layer.
    """
    come, steps = [1 << position for position in range(n)], 0
    while True:
        offsets = list(sees(n, width, steps))
        spread = [
            reduce(or_, (come[p + o] for o in offsets if 0 <= p + o < n), come[p]) for p in range(n)
        ]
        if spread == come:
            return steps
        come, steps = spread, steps + 1


def fit(curve: Curve) -> tuple[float, float]:
    """The exponent of a power law and its standard error, by least squares over the upper half of a logarithmic axis.

    In the lower half, constant costs such as kernel launches and lower-order terms still matter.
    """
    middle = math.sqrt(min(x for x, _ in curve) * max(x for x, _ in curve))
    logs = [(math.log(x), math.log(y)) for x, y in curve if x >= middle * (1 - 1e-9)]
    xs, ys = zip(*logs, strict=True)
    exponent, start = statistics.linear_regression(xs, ys)
    left = sum((y - start - exponent * x) ** 2 for x, y in logs)
    spread = sum((x - statistics.fmean(xs)) ** 2 for x in xs)
    return exponent, math.sqrt(left / max(1, len(logs) - 2) / spread)


def curves(found: dict[str, Any], layer: Layer, quantity: str) -> dict[str, Curve]:
    """Axis -> a layer's measured points along it: seconds of the fastest round, or bytes."""
    points = {(p["n"], p["d"], p["width"]): p for p in found["points"] if p["layer"] == layer.name}
    values = {
        at: min(p["seconds"]) if quantity == "seconds" else p["memory"] for at, p in points.items()
    }
    own = lines(found["setup"]["grid"], layer)
    return {axis: [(x, values[at]) for x, at in line] for axis, line in own.items()}


def row(found: dict[str, Any], layer: Layer) -> dict[str, str]:
    """Our columns of Table 1 (section 4): a power of each axis, longest chains, longest paths."""
    width = found["setup"]["grid"][f"at_{layer.width}"] if layer.width else 0
    counted: dict[str, Curve] = {
        axis: [(x, count(layer, at)[0]) for x, at in line]
        for axis, line in lines(COUNTED, layer).items()
    }
    path = growth({n: path_length(layer.sees, n, width) for n in LENGTHS})
    if layer.width == "k":
        path += f"; dilated {growth({n: path_length(dilated, n, width) for n in LENGTHS})}"
    return {
        "layer type": layer.name,
        "operations": powers(counted),
        "time": powers(curves(found, layer, "seconds")),
        "memory": powers(curves(found, layer, "memory")),
        "sequential, counted": growth(
            {n: count(layer, (n, COUNTED["at_d"], width))[1] for n in LENGTHS}
        ),
        "path, counted": path,
    }


def powers(curves: dict[str, Curve]) -> str:
    """Powers such as n^1.98 · d^1.02±0.07; errors that round to zero are omitted."""
    fits = {axis: fit(curve) for axis, curve in curves.items()}
    return " · ".join(
        f"{a}^{power:.2f}" + (f"±{e:.2f}" if e >= 0.005 else "") for a, (power, e) in fits.items()
    )


def growth(counted: dict[int, int]) -> str:
    """Counts such as 5 (if it is the same for all n), or 63 at n = 64, 511 at n = 512."""
    if len(set(counted.values())) == 1:
        return str(counted[LENGTHS[0]])
    return ", ".join(f"{value} at n = {n}" for n, value in counted.items())


def main(scale: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # there is nothing to save
    accelerator = (
        torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    )
    # Use one thread, whose CPU time can be measured, and keep memory from one pass to the next.
    keep_freed_memory()
    torch.set_num_threads(1)
    found = measure(SCALES[scale].layers, accelerator or torch.device("cpu"))
    found["table"] = [row(found, layer) for layer in LAYERS]
    print(json.dumps({"devices": found["setup"]["device"], "scores": [], "figures": found}))


if __name__ == "__main__":
    main(sys.argv[1])
