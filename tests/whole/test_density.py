"""No package of nmt holds more per line than the goal, or than it held before."""

from dataclasses import asdict
from pathlib import Path

import density
import pytest

import nmt

PACKAGES = density.packages_of(Path(nmt.__file__).parent)
GOAL = asdict(density.GOAL)
NOT_YET: dict[str, dict[str, float]] = {
    "nmt": {"long_lines": 0.8, "parallel": 3.2, "unpacked": 4, "complexity": 14},
    "commands": {
        "long_lines": 1.3,
        "parallel": 3.4,
        "nested": 0.64,
        "unpacked": 4,
        "complexity": 20,
    },
    "config": {
        "tokens": 20,
        "long_lines": 0.7,
        "parallel": 7.1,
        "unpacked": 1,
        "complexity": 30,
        "longest": 61,
    },
    "data": {"tokens": 21, "long_lines": 0.6, "parallel": 7.8, "unpacked": 5},
    "files": {"long_lines": 1.8, "parallel": 8.2},
    "kernels": {"long_lines": 0.3},
    "plugins/answers": {
        "tokens": 21,
        "long_lines": 1.2,
        "parallel": 7.3,
        "nested": 0.4,
        "complexity": 29,
    },
    "plugins/augment": {"tokens": 23, "parallel": 8.0, "nested": 2.56},
    "plugins/bergamot": {
        "tokens": 22,
        "long_lines": 0.6,
        "parallel": 4.7,
        "nested": 0.47,
        "complexity": 17,
        "longest": 54,
    },
    "plugins/documents": {
        "tokens": 20,
        "long_lines": 0.3,
        "parallel": 6.2,
        "nested": 0.51,
        "unpacked": 8,
        "complexity": 31,
    },
    "plugins/exchange": {
        "tokens": 19,
        "long_lines": 0.4,
        "parallel": 7.3,
        "nested": 0.7,
        "unpacked": 21,
        "complexity": 20,
        "longest": 70,
    },
    "plugins/hub": {"long_lines": 1.4, "parallel": 18.2, "nested": 1.45},
    "plugins/judge": {
        "tokens": 19,
        "long_lines": 0.7,
        "nested": 1.46,
        "unpacked": 16,
        "complexity": 16,
    },
    "plugins/overview": {
        "tokens": 22,
        "parallel": 8.2,
        "nested": 1.29,
        "unpacked": 1,
        "complexity": 22,
    },
    "plugins/paper_bleu": {"tokens": 22, "long_lines": 2.6, "parallel": 22.2},
    "plugins/parse": {
        "tokens": 21,
        "parallel": 9.2,
        "nested": 1.19,
        "unpacked": 2,
        "complexity": 25,
        "longest": 52,
    },
    "plugins/protection": {
        "tokens": 20,
        "long_lines": 1.2,
        "parallel": 4.6,
        "nested": 1.03,
        "unpacked": 12,
        "complexity": 19,
    },
    "plugins/quickstart": {"tokens": 19, "long_lines": 1.6},
    "plugins/results": {
        "tokens": 19,
        "long_lines": 0.4,
        "parallel": 9.7,
        "nested": 1.36,
        "unpacked": 5,
        "complexity": 32,
        "longest": 61,
    },
    "sentences": {"long_lines": 0.3, "unpacked": 3, "complexity": 27},
    "flags": {
        "tokens": 25,
        "long_lines": 1.0,
        "nested": 3.0,
        "parallel": 5,
        "unpacked": 16,
        "complexity": 16,
    },
    "items": {
        "tokens": 25,
        "long_lines": 2.0,
        "nested": 3.0,
        "parallel": 9,
        "unpacked": 12,
        "complexity": 19,
    },
    "plugins/serve": {
        "tokens": 20,
        "long_lines": 0.5,
        "parallel": 9.3,
        "nested": 0.63,
        "unpacked": 5,
        "complexity": 18,
    },
    "plugins/synthesize": {"tokens": 20, "long_lines": 1.3, "parallel": 3.8},
    "plugins/tmx": {"tokens": 22, "parallel": 5.9, "nested": 1.09},
    "preparation": {
        "tokens": 19,
        "long_lines": 0.4,
        "parallel": 2.1,
        "nested": 1.06,
        "unpacked": 3,
        "complexity": 16,
    },
    "text": {"long_lines": 1.0, "parallel": 3.0, "nested": 0.49, "unpacked": 4, "complexity": 21},
    "training": {
        "long_lines": 1.0,
        "parallel": 7.6,
        "unpacked": 5,
        "complexity": 17,
        "longest": 69,
    },
    "translation": {
        "tokens": 19,
        "long_lines": 0.5,
        "parallel": 5.3,
        "nested": 0.83,
        "complexity": 23,
        "longest": 74,
    },
}
"""Package -> what misses the goal there. Lower these limits, and never raise one."""


@pytest.mark.parametrize("package", PACKAGES)
def test_a_line_holds_one_thought(package: str) -> None:
    measured = asdict(density.density_of(PACKAGES[package]))
    limits = GOAL | NOT_YET.get(package, {})
    too_dense = {name: value for name, value in measured.items() if value > limits[name]}
    assert not too_dense, f"limits: {limits}"


def test_limits_are_those_of_packages() -> None:
    assert NOT_YET.keys() <= PACKAGES.keys()


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
