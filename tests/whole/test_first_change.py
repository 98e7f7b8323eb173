"""The change that docs/design/first-change.md makes can be applied, and its test passes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/design/first-change.md"
DIFF = re.compile(r"```diff\n(.*?)```", re.S)
FILE = re.compile(r"[Ii]n `([\w/.]+)`:$", re.M)


def changes(page: str) -> list[tuple[str, str]]:
    """File -> diff, in the order of the page. A diff belongs to the last file before it."""
    result = []
    for diff in DIFF.finditer(page):
        names = FILE.findall(page[: diff.start()])
        result.append((names[-1], diff[1]))
    return result


def apply(diff: str, path: Path) -> None:
    """Insert the lines with a plus between the others, which must be in the file exactly once."""
    before = []
    after = []
    for line in diff.splitlines(keepends=True):
        after.append(line[1:] or "\n")
        if not line.startswith("+"):
            before.append(line[1:])
    text = path.read_text()
    assert text.count("".join(before)) == 1, f"{path}: {before}"
    path.write_text(text.replace("".join(before), "".join(after)))


@pytest.mark.slow
def test_the_change_can_be_applied_and_its_test_passes(tmp_path):
    for folder in ("nmt", "conf"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    test = tmp_path / "tests/core/test_filters.py"
    test.parent.mkdir(parents=True)
    shutil.copy(ROOT / "tests/core/test_filters.py", test)
    steps = changes(PAGE.read_text())
    assert len(steps) == 4
    for name, diff in steps:
        apply(diff, tmp_path / name)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest"]
    words += ["-c", os.devnull, str(test), "-k", "both_sides_need_letters"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "4 passed" in result.stdout
