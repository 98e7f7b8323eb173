"""Table 1's rows: what was measured and counted as powers of n, d, k and r, beside the paper's O()."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from nmt.reproduce.complexity.counting import count, path_length
from nmt.reproduce.complexity.layers import D_K, LAYERS, Layer, dilated
from nmt.reproduce.complexity.measuring import Grid, Measurements

COUNTED = Grid(
    n=(64, 128, 256),
    d=(64, 128, 256),
    k=(3, 7, 15),
    r=(8, 16, 32),
    at_n=64,
    at_d=64,
    at_k=3,
    at_r=16,
    batch=1,
    rounds=1,
)
"""Where operations are counted: a power of these sizes is a power of all."""
LENGTHS = (64, 512)
"""Sequences whose paths are counted."""


@dataclass
class Power:
    """A power law y = factor * x ** exponent, fitted to the larger values of x."""

    exponent: float
    error: float
    """Standard error of the exponent; 0 of two points, which any line meets."""
    factor: float
    start: float
    """The smallest x that it was fitted to."""

    def __call__(self, x: float) -> float:
        return float(self.factor * x**self.exponent)


def fit(points: Sequence[tuple[float, float]]) -> Power:
    """Least squares between the logarithms of x and y, over the upper half of a logarithmic axis.

    Below it what does not grow still counts: starting a kernel, or a smaller term.
    """
    middle = math.sqrt(min(x for x, _ in points) * max(x for x, _ in points))
    upper = sorted((x, y) for x, y in points if x >= middle * (1 - 1e-9))
    assert len(upper) > 1, "one point has no slope"
    logs = [(math.log(x), math.log(y)) for x, y in upper]
    mean_x, mean_y = fmean(x for x, _ in logs), fmean(y for _, y in logs)
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    exponent = sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
    left = sum((y - mean_y - exponent * (x - mean_x)) ** 2 for x, y in logs)
    error = math.sqrt(left / max(1, len(logs) - 2) / spread)
    return Power(exponent, error, math.exp(mean_y - exponent * mean_x), upper[0][0])


Curve = list[tuple[float, float]]
QUANTITIES = ("seconds", "memory")


def curves(found: Measurements, layer: Layer, quantity: str) -> dict[str, Curve]:
    """Axis -> a layer's points along it: seconds of the fastest round, or bytes; only those that are measured."""
    points = {point.place: point for point in found.points}
    lines: dict[str, Curve] = {}
    for axis in found.grid.axes(layer):
        places = zip(getattr(found.grid, axis), found.grid.line(layer, axis), strict=True)
        measured = [(x, points[layer.name, *at]) for x, at in places if (layer.name, *at) in points]
        lines[axis] = [(x, min(p.seconds) if quantity == "seconds" else p.memory) for x, p in measured]
    return lines


def operations(layer: Layer) -> dict[str, Curve]:
    """Axis -> a layer's operations along it, counted."""
    return {
        axis: [
            (x, count(layer, *at).flops)
            for x, at in zip(getattr(COUNTED, axis), COUNTED.line(layer, axis), strict=True)
        ]
        for axis in COUNTED.axes(layer)
    }


@dataclass
class Row:
    """A layer type: the paper's O(), and powers of each axis (n, d, and k or r) that were found."""

    layer: str
    complexity: str
    """The paper's, as are the next two."""
    sequential: str
    path: str
    printed: bool
    """Whether Table 1 has this row; else the text of section 4 has it."""
    operations: dict[str, Power]
    seconds: dict[str, Power]
    memory: dict[str, Power]
    chains: dict[int, int]
    """n -> the longest chain of operations that wait for one another."""
    paths: dict[int, int]
    """n -> the longest path between two positions, in steps or stacked layers."""
    dilated_paths: dict[int, int]
    """The same of convolutions that are dilated, k times as wide in each layer; the paper's log_k n is theirs."""


def rows(found: Measurements) -> list[Row]:
    """A row of Table 1 (section 4) for each layer type; counts what is counted, which takes seconds."""
    return [row(found, layer) for layer in LAYERS]


def row(found: Measurements, layer: Layer) -> Row:
    grid = found.grid
    width = {"": 0, "k": grid.at_k, "r": grid.at_r}[layer.width]
    seconds, memory = ({a: fit(c) for a, c in curves(found, layer, q).items()} for q in QUANTITIES)
    return Row(
        *(layer.name, layer.complexity, layer.sequential, layer.path, layer.printed),
        operations={axis: fit(curve) for axis, curve in operations(layer).items()},
        seconds=seconds,
        memory=memory,
        chains={n: count(layer, n, COUNTED.at_d, width).sequential for n in LENGTHS},
        paths={n: path_length(layer.sees, n, width) for n in LENGTHS},
        dilated_paths={n: path_length(dilated, n, width) for n in LENGTHS} if layer.width == "k" else {},
    )


HEADINGS = (
    "layer type",
    "complexity, paper",
    "operations",
    "time",
    "memory",
    "sequential, paper",
    "sequential, counted",
    "path, paper",
    "path, counted",
)


def cells(row: Row) -> dict[str, str]:
    """A row as text: the paper's columns and ours, side by side."""
    chain, path = growth(row.chains), growth(row.paths)
    if row.dilated_paths:
        path = f"{path}; dilated {growth(row.dilated_paths)}"
    powers = (in_words(powers) for powers in (row.operations, row.seconds, row.memory))
    texts = (row.layer, row.complexity, *powers, row.sequential, chain, row.path, path)
    return dict(zip(HEADINGS, texts, strict=True))


def in_words(powers: dict[str, Power]) -> str:
    """n^1.98 · d^1.02±0.07, without errors that round to nothing."""

    def shown(power: Power) -> str:
        return f"{power.exponent:.2f}" + (f"±{power.error:.2f}" if power.error >= 0.005 else "")

    return " · ".join(f"{axis}^{shown(power)}" for axis, power in powers.items())


def growth(counted: dict[int, int]) -> str:
    """5 at any n, or 63 at n = 64, 511 at n = 512."""
    values = list(counted.values())
    if len(set(values)) == 1:
        return str(values[0])
    return ", ".join(f"{value} at n = {n}" for n, value in counted.items())


def notes(found: Measurements) -> list[str]:
    """What a reader of the table must know, a sentence or two each."""
    grid = found.grid
    return [
        f"Measured on {found.setup['device']}, in {found.setup['dtype']}: a forward pass of {grid.batch} sequences, "
        f"the fastest of {grid.rounds} rounds. n varies at d = {grid.at_d}, d at n = {grid.at_n}, the width at both; "
        f"else k = {grid.at_k} and r = {grid.at_r}. Each power is fitted to the upper half of its logarithmic axis; "
        "behind ± is its standard error.",
        f"Attention is counted and measured as in the paper's table, without the projections, which cost 8 n d^2 more; "
        f"its heads are {D_K} wide. Operations are multiplications and additions in products.",
        "Memory is not in the paper's table. In one kernel, self-attention keeps no scores; as equation 1 is written, "
        "it keeps n^2 of them in each head. Restricted self-attention computes 2 r scores for each position, of which "
        "it uses r, so that it works in blocks. Kernels choose their algorithm by the sizes, so that memory may fall "
        "where a width grows.",
        "Scores kept and separable convolutions are no rows of the paper's table: the first is its self-attention, the "
        "second has its complexity from the text of section 4.",
        "Sequential operations are the longest chain of operations on whole tensors, of which each needs another's "
        "result. Paths are counted in steps of a recurrent layer, else in stacked layers.",
        "The paper's log_k n holds for dilated convolutions, here with kernels that look back; stacked contiguous ones "
        "need 2 (n - 1) / (k - 1) layers, as section 4 says too: O(n/k).",
    ]
