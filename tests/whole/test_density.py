"""No package of nmt holds more per line than the goal."""

from dataclasses import asdict
from pathlib import Path

import pytest

import nmt
from tests.helpers import density

PACKAGES = density.packages_of(Path(nmt.__file__).parent)
GOAL = asdict(density.GOAL)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_line_holds_one_thought(package: str) -> None:
    measured = asdict(density.density_of(PACKAGES[package]))
    too_dense = {name: value for name, value in measured.items() if value > GOAL[name]}
    assert not too_dense, f"limits: {GOAL}"


PACKED = '''
a, b = 1, 2
a, b = b, a
f(*("x", "y"), **{"z": 1})
rows = [x for row in table for x in row if x and x > 1]


def decide(x, y):
    """Decide."""
    if x and y:
        return 1 if x else 2
    for z in y:
        while z:
            z -= 1
'''


def test_what_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "packed.py"
    path.write_text(PACKED)
    assert asdict(density.density_of([path])) == {
        "tokens": 19,
        "long_lines": 0,
        "parallel": 33.3,
        "nested": 10.0,
        "unpacked": 2,
        "tricks": 0,
        "complexity": 6,  # 1, if, and, a conditional expression, for, while
        "longest": 7,
    }


@pytest.mark.parametrize(
    ("measure", "code", "count"),
    [
        ("long_lines", f"x = '{'x' * 95}'\n" + "y = 1\n" * 5000, 1),
        ("parallel", "[a, b] = 1, 2", 100.0),
        ("parallel", "a, b = [1, 2]", 100.0),
        ("parallel", "c = a, b = 1, 2", 100.0),
        ("parallel", "[a] = [b]", 0.0),
        ("parallel", "[a, b] = [b, a]", 0.0),
        ("unpacked", "f(*['x', 'y'])", 1),
        ("unpacked", "f(*'xy', *{1, 2})", 2),
        ("unpacked", "class A(*(B, C)): ...", 1),
        ("tricks", "'s' * (count > 1)", 1),
        ("tricks", "(not quiet) * b'stopping'", 1),
        ("tricks", "items[x > 1 :]", 1),
        ("tricks", "mask * (x > 1)", 0),
        ("tricks", "require(not (x := find(y)), x)", 1),
        ("tricks", "def f():\n    return (x := 1) + x", 1),
        ("tricks", "rows = [(x := y) for y in z]", 1),
        ("tricks", "rows = [x for y in z if (x := f(y))]", 0),
        ("tricks", "if (x := 1) and f((y := x)): ...", 0),
        ("tricks", "while x := f(): ...", 0),
        ("tricks", "while x:\n    f(y := 1)", 1),
        ("complexity", "def f(x):\n    match x:\n        case 1: ...\n        case 2: ...", 3),
    ],
)
def test_other_forms_count_as_well(measure, code, count, tmp_path):
    path = tmp_path / "packed.py"
    path.write_text(code)
    assert asdict(density.density_of([path]))[measure] == count
