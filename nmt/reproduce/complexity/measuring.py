"""Time and memory of Table 1's layers against n, d and their width, measured so that it can be interrupted anywhere."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.profiler import profile

from nmt.errors import NMTError
from nmt.hardware import available_memory, processor
from nmt.kernels.memory import keep_freed_memory
from nmt.reproduce.complexity.layers import D_K, LAYERS, Layer
from nmt.storage.foreign import LARGE, build, parse_json, read_mapping
from nmt.storage.whole import write_file

STRETCH = 0.05
"""Seconds over which short calls are repeated."""
FLOAT = 4
"""Bytes of a number."""


@dataclass(frozen=True)
class Grid:
    """What is measured: each axis with the others at one value."""

    n: tuple[int, ...]
    d: tuple[int, ...]
    k: tuple[int, ...]
    r: tuple[int, ...]
    at_n: int
    """n where other axes vary."""
    at_d: int
    at_k: int
    at_r: int
    batch: int
    rounds: int = 5
    """How often each point is measured: all points once, then all of them again, so that noise meets all alike."""

    def axes(self, layer: Layer) -> list[str]:
        return ["n", "d", layer.width] if layer.width else ["n", "d"]

    def line(self, layer: Layer, axis: str) -> list[tuple[int, int, int]]:
        """(n, d, width) of the points of a layer along an axis."""
        place = {"n": self.at_n, "d": self.at_d, "": 0, "k": self.at_k, "r": self.at_r}
        values: tuple[int, ...] = getattr(self, axis)
        places = [{**place, axis: value} for value in values]
        return [(at["n"], at["d"], at[layer.width]) for at in places]

    def cases(self) -> Iterator[tuple[Layer, int, int, int]]:
        """Every point once: layer, n, d, width; those of the same sizes one after another."""
        cases = {
            (n, d, number, width)
            for number, layer in enumerate(LAYERS)
            for axis in self.axes(layer)
            for n, d, width in self.line(layer, axis)
        }
        for n, d, number, width in sorted(cases):
            yield LAYERS[number], n, d, width


LAPTOP = Grid(
    n=(64, 128, 256, 512, 1024, 2048, 4096),
    d=(64, 128, 256, 512, 1024),
    k=(3, 7, 15, 31, 63),
    r=(16, 32, 64, 128, 256),
    at_n=1024,
    at_d=256,
    at_k=3,
    at_r=32,
    batch=2,
)
PAPER = Grid(
    n=(64, 128, 256, 512, 1024, 2048, 4096, 8192),
    d=(64, 128, 256, 512, 1024, 2048, 4096),
    k=(3, 7, 15, 31, 63),
    r=(16, 32, 64, 128, 256, 512),
    at_n=1024,
    at_d=512,
    at_k=3,
    at_r=64,
    batch=2,
)
GRIDS = {"laptop": LAPTOP, "paper": PAPER}


@dataclass
class Point:
    """What one layer took at one size, for a whole batch."""

    layer: str
    n: int
    d: int
    width: int
    memory: int
    """Bytes at the peak of a forward pass beyond input and weights: its result and all that it keeps on the way.

    A kernel that sorts the weights anew for itself keeps that copy, too.
    """
    seconds: list[float] = field(default_factory=list)
    """Of a forward pass, in each round; on a processor one core's, so that other programs do not count."""

    @property
    def place(self) -> tuple[str, int, int, int]:
        return self.layer, self.n, self.d, self.width


@dataclass
class Measurements:
    """All points, and what they were measured with."""

    setup: dict[str, Any]
    points: list[Point]

    @property
    def grid(self) -> Grid:
        sizes = self.setup["grid"].items()
        values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in sizes}
        return Grid(**values)

    def dump(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"

    @staticmethod
    def load(path: Path) -> "Measurements":
        """NMTError where the file is broken."""
        try:
            tree = read_mapping(path, parse_json, LARGE)
            return Measurements.read(tree["setup"], tree["points"])
        except (NMTError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise NMTError(f"{path}: holds no measurements of layers; remove it, and they are made again") from error

    @staticmethod
    def read(setup: Any, points: Any) -> "Measurements":
        """From what was parsed; an error where something is missing, of another type, or no measurement."""
        found = Measurements(setup, [build(Point, point, "point") for point in points])
        found.grid  # noqa: B018 - raises where that is none
        if not isinstance(setup["device"], str):
            raise ValueError("no device")
        return found

    def check_whole(self) -> None:
        """ValueError unless these are all points of one of our grids, and numbers that a measurement can give."""
        if self.grid not in GRIDS.values():
            raise ValueError("a grid that is none of ours")
        wanted = {(layer.name, *place) for layer, *place in self.grid.cases()}
        if {point.place for point in self.points} != wanted:
            raise ValueError("points are missing")
        if not all(p.memory > 0 and p.seconds and min(p.seconds) > 0 for p in self.points):
            raise ValueError("a point that was not measured")


def setup(grid: Grid, device: torch.device) -> dict[str, Any]:
    """What must not change between the beginning and the end of a measurement."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{processor()}, one core"
    sizes = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(grid).items()}
    return {"device": name, "dtype": "float32", "torch": torch.__version__, "grid": sizes}


@contextmanager
def steady() -> Iterator[None]:
    """One thread, whose time can be told from that of other programs, and memory that is kept from pass to pass."""
    threads = torch.get_num_threads()
    keep_freed_memory()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.set_num_threads(threads)


@steady()
def measure(
    grid: Grid, device: torch.device, path: Path, progress: Callable[[int, int], None] = lambda done, of: None
) -> Measurements:
    """Measure what `path` does not hold yet, and write it there after each step; `progress` hears steps done and all.

    NMTError where `path` was begun with another grid or on another machine.
    """
    found = begun(path, setup(grid, device))
    path.parent.mkdir(parents=True, exist_ok=True)
    points = {point.place: point for point in found.points}
    steps = [(number, case) for number in range(grid.rounds) for case in grid.cases()]
    for done, (number, (layer, n, d, width)) in enumerate(steps):
        progress(done, len(steps))
        point = points.get((layer.name, n, d, width))
        if point and len(point.seconds) > number:
            continue
        module, x = prepare(layer, (grid.batch, n, d), width, device)
        if point is None:
            point = Point(layer.name, n, d, width, peak_memory(module, x))
            points[point.place] = point
            found.points.append(point)
        point.seconds.append(seconds(module, x))
        write_file(path, found.dump())
    progress(len(steps), len(steps))
    return found


def begun(path: Path, about: dict[str, Any]) -> Measurements:
    """What is measured already with this setup."""
    if not path.is_file():
        return Measurements(about, [])
    found = Measurements.load(path)
    for key, value in about.items():
        if found.setup.get(key) != value:
            was = f"{key} {found.setup.get(key)}, now it is {value}"
            raise NMTError(f"{path}: was begun with {was}; remove the file to measure anew")
    return found


def prepare(layer: Layer, shape: tuple[int, int, int], width: int, device: torch.device) -> tuple[nn.Module, Tensor]:
    """A layer and an input of random numbers."""
    with torch.random.fork_rng(), device:
        return layer.make(shape[2], width).eval(), torch.randn(shape)


def seconds(module: nn.Module, x: Tensor) -> float:
    """Of one forward pass, after one to warm up."""
    clock = time.thread_time if x.device.type == "cpu" else time.perf_counter
    run(module, x)
    calls, start = 0, clock()
    while True:
        run(module, x)
        calls, elapsed = calls + 1, clock() - start
        if elapsed > STRETCH:
            return elapsed / calls


def run(module: nn.Module, x: Tensor) -> None:
    module(x)
    if x.device.type != "cpu":
        torch.accelerator.synchronize(x.device)


def peak_memory(module: nn.Module, x: Tensor) -> int:
    """Bytes that a forward pass holds at its peak, input and weights not counted.

    On a processor all that torch takes and gives back while it runs is added up, what its kernels take for themselves
    among it; the process's own size would show also what the C library keeps.
    """
    if x.device.type == "cuda":
        module(x)  # what libraries take once and keep
        torch.cuda.reset_peak_memory_stats(x.device)
        before = torch.cuda.memory_allocated(x.device)
        run(module, x)
        return torch.cuda.max_memory_allocated(x.device) - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler tells standard error of every start
    with profile(profile_memory=True) as profiler:
        module(x)
    assert profiler.kineto_results is not None
    now = peak = 0
    for event in profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now)
    return peak


@dataclass
class Expected:
    """What measuring a grid will take, about."""

    seconds: float
    memory: int
    """Bytes of the largest point."""
    free: int
    """Bytes that the device has left."""


@steady()
def expected(grid: Grid, device: torch.device) -> Expected:
    """Each layer is timed at the middle of the grid's n, and its operations scaled."""
    total = 0.0
    for layer in LAYERS:
        n, d, width = grid.line(layer, "n")[len(grid.n) // 2]
        rate = seconds(*prepare(layer, (grid.batch, n, d), width, device)) / layer.flops(n, d, width)
        passes = [rate * layer.flops(*at) for other, *at in grid.cases() if other is layer]
        # To warm up and once more in each round, and once for the memory.
        total += sum(once + grid.rounds * (once + max(once, STRETCH)) for once in passes)
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else available_memory()
    return Expected(total, needed_memory(grid), free)


def needed_memory(grid: Grid) -> int:
    """Bytes that the largest point takes, about: two matrices of scores, of all heads."""
    pairs = max(n * n * max(1, d // D_K) for _, n, d, _ in grid.cases())
    return 2 * FLOAT * grid.batch * pairs
