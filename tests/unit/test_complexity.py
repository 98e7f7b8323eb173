"""Table 1: power laws are found, memory and time are what they are called, an interrupted measurement goes on."""

import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

from nmt.errors import NMTError
from nmt.reproduce.complexity import measuring
from nmt.reproduce.complexity.exponents import cells, curves, fit, notes, row
from nmt.reproduce.complexity.figure import draw_layers
from nmt.reproduce.complexity.layers import LAYERS, WrittenSelfAttention
from nmt.reproduce.complexity.measuring import (
    GRIDS,
    Grid,
    Measurements,
    Point,
    expected,
    measure,
    needed_memory,
    peak_memory,
    prepare,
    seconds,
    setup,
)

CPU = torch.device("cpu")
TINY = Grid(n=(8, 16), d=(8, 16), k=(3, 5), r=(2, 4), at_n=8, at_d=8, at_k=3, at_r=2, batch=1, rounds=2)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(measuring, "STRETCH", 0.0)


def ideal(grid: Grid) -> Measurements:
    """Measurements that are the exact operations of each layer, and memory of 8 n."""
    points = [
        Point(layer.name, n, d, width, 8 * n, [1e-9 * layer.flops(n, d, width)] * 3)
        for layer, n, d, width in grid.cases()
    ]
    return Measurements(setup(grid, CPU), points)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, -1.0])
def test_a_power_law_is_found_exactly(exponent):
    power = fit([(x, 3 * x**exponent) for x in (64, 128, 256, 1024)])
    assert power.exponent == pytest.approx(exponent)
    assert power.error == pytest.approx(0, abs=1e-6)
    assert power(512) == pytest.approx(3 * 512**exponent)


def test_what_counts_for_small_values_alone_is_left_out():
    curve = [(2**i, 4.0**i if i >= 5 else 4.0**5) for i in range(11)]
    assert fit(curve).exponent == pytest.approx(2)
    assert fit(curve).start == 32


def test_the_error_is_that_of_a_regression():
    """y = x with the middle of three points off by a factor: the slope stays, and the residuals are known."""
    off = 1.2
    power = fit([(1, 1), (100, 100), (1000, 1000 * off), (10_000, 10_000)])
    residuals = [-math.log(off) / 3, 2 * math.log(off) / 3, -math.log(off) / 3]
    spread = 2 * math.log(10) ** 2
    assert power.exponent == pytest.approx(1)
    assert power.error == pytest.approx(math.sqrt(sum(r * r for r in residuals) / 1 / spread))


def test_memory_is_the_highest_sum_of_what_lives_at_once():
    class Steps(nn.Module):
        def forward(self, x):
            first = x + 1  # 1
            second = torch.cat([first, first, first])  # 1 + 3
            del first
            return second[: len(x)] * 2  # 3 + 1

    x = torch.randn(1, 1000, 16)
    assert peak_memory(Steps(), x) == pytest.approx(4 * x.numel() * 4, abs=64)  # and the 1 and 2 of a kernel


def test_kept_scores_are_two_matrices_of_all_pairs():
    """So does what the largest point is said to need."""
    grid = replace(TINY, n=(128, 256), at_d=128, d=(64, 128), batch=3)
    module, x = prepare(LAYERS[1], (3, 256, 128), 0, CPU)
    assert isinstance(module, WrittenSelfAttention)
    scores = 2 * 4 * 3 * 2 * 256 * 256
    assert scores <= peak_memory(module, x) <= scores + 2 * 4 * x.numel()
    assert needed_memory(grid) == scores


def test_time_is_that_of_one_pass():
    """A module that computes ten times as much takes longer."""

    class Products(nn.Module):
        def __init__(self, times):
            super().__init__()
            self.times = times

        def forward(self, x):
            for _ in range(self.times):
                y = x @ x.mT
            return y

    x = torch.randn(1, 256, 256)
    once, often = (min(seconds(Products(times), x) for _ in range(5)) for times in (1, 10))
    assert 3 < often / once < 40


def test_what_was_measured_is_not_measured_again(tmp_path):
    path = tmp_path / "layers.json"

    class Stopped(Exception):
        pass

    def stop_at(step):
        def progress(done, of):
            if done == step:
                raise Stopped

        return progress

    cases = len(list(TINY.cases()))
    before: list[Point] = []
    for step in (5, cases + 3):
        with pytest.raises(Stopped):
            measure(TINY, CPU, path, stop_at(step))
        found = Measurements.load(path)
        assert sum(len(point.seconds) for point in found.points) == step
        assert [(p.place, p.seconds[0]) for p in found.points][: len(before)] == [
            (p.place, p.seconds[0]) for p in before
        ]
        before = found.points
    heard = []
    found = measure(TINY, CPU, path, lambda done, of: heard.append((done, of)))
    assert heard[-1] == (2 * cases, 2 * cases)
    assert [len(point.seconds) for point in found.points] == [2] * cases
    assert Measurements.load(path) == found
    assert found.grid == TINY


def test_threads_are_as_before(tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        measure(replace(TINY, rounds=1), CPU, tmp_path / "layers.json")
        assert torch.get_num_threads() == 2
        assert torch.is_grad_enabled()
    finally:
        torch.set_num_threads(threads)


def test_another_grid_does_not_go_on_with_a_measurement(tmp_path):
    path = tmp_path / "layers.json"
    path.write_text(ideal(TINY).dump())
    with pytest.raises(NMTError, match=r"layers\.json: was begun with grid .* remove the file"):
        measure(replace(TINY, batch=2), CPU, path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"setup": {"grid": {}}, "points": []}', '{"setup": {}, "points": [1]}']
)
def test_a_broken_file_is_named(tmp_path, text):
    path = tmp_path / "layers.json"
    path.write_text(text)
    with pytest.raises(NMTError, match=r"layers\.json: holds no measurements"):
        measure(TINY, CPU, path)


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_has_each_axis_through_one_point(name):
    grid = GRIDS[name]
    cases = [(layer.name, n, d, width) for layer, n, d, width in grid.cases()]
    assert len(set(cases)) == len(cases)
    for layer in LAYERS:
        for axis in grid.axes(layer):
            line = grid.line(layer, axis)
            assert {(layer.name, *at) for at in line} <= set(cases)
            assert len(line) == len(getattr(grid, axis))
            assert (grid.at_n, grid.at_d) in {(n, d) for n, d, _ in line}
            upper = [x for x in getattr(grid, axis) if x * x >= min(getattr(grid, axis)) * max(getattr(grid, axis))]
            assert len(upper) >= 3, "a slope of fewer points has no error"


def test_rows_put_found_powers_beside_the_papers():
    found = ideal(GRIDS["laptop"])
    table = {layer.name: row(found, layer) for layer in LAYERS}
    expected = {
        "self-attention": {"n": 2, "d": 1},
        "self-attention, scores kept": {"n": 2, "d": 1},
        "recurrent (LSTM)": {"n": 1, "d": 2},
        "convolutional": {"n": 1, "d": 2, "k": 1},
        "self-attention, restricted": {"n": 1, "d": 1, "r": 1},
    }
    for name, powers in expected.items():
        for fitted in (table[name].seconds, table[name].operations):
            assert {axis: power.exponent for axis, power in fitted.items()} == pytest.approx(powers)
        assert table[name].memory["n"].exponent == pytest.approx(1)
    shown = cells(table["convolutional"])
    assert shown["complexity, paper"] == "O(k · n · d²)"
    assert shown["time"] == "n^1.00 · d^2.00 · k^1.00"
    assert shown["path, counted"] == "63 at n = 64, 511 at n = 512; dilated 4 at n = 64, 6 at n = 512"
    assert cells(table["recurrent (LSTM)"])["path, counted"] == "63 at n = 64, 511 at n = 512"
    assert cells(table["self-attention"])["path, counted"] == "1"


def test_the_figure_draws_every_point_where_it_was_measured():
    found = ideal(GRIDS["laptop"])
    root = ET.fromstring(draw_layers(found))
    space = "{http://www.w3.org/2000/svg}"
    panels = root.findall(f"{space}g")
    assert len(panels) == 4
    for panel, axis in zip(panels, ("n", "d") * 2, strict=True):
        dots = [dot for dot in panel.iter(f"{space}circle") if dot.get("class") == "of-2"]
        assert len(dots) == len(getattr(found.grid, axis))
    time, memory = (["".join(text.itertext()) for text in panels[i].iter(f"{space}text")] for i in (0, 2))
    assert "self-attention  n^2.00" in time
    assert "recurrent (LSTM)  n^1.00" in memory
    # In time against n all straight: of the LSTM, each doubling of n is as far up as right.
    dots = [dot for dot in panels[0].iter(f"{space}circle") if dot.get("class") == "of-2"]
    heights = [float(dot.get("cy")) for dot in dots]
    assert [a - b for a, b in pairwise(heights)] == pytest.approx([heights[0] - heights[1]] * 6, abs=0.11)


def test_what_a_measurement_will_take_is_said_before():
    found = expected(TINY, CPU)
    assert 0 < found.seconds < 60
    assert 0 < found.memory < found.free


def test_measurements_are_plain_json():
    found = ideal(TINY)
    assert json.loads(found.dump())["setup"]["grid"]["n"] == [8, 16]
    assert curves(found, LAYERS[0], "memory")["n"] == [(8, 64), (16, 128)]


def test_the_notes_say_what_was_measured():
    first = notes(ideal(GRIDS["laptop"]))[0]
    assert "2 sequences, the fastest of 5 rounds. n varies at d = 256, d at n = 1024" in first
