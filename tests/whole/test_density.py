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
        "long_lines": 0.0,
        "parallel": 33.3,
        "nested": 10.0,
        "unpacked": 2,
        "complexity": 6,  # 1, if, and, a conditional expression, for, while
        "longest": 7,
    }
