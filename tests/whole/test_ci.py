"""The script that continuous integration runs, with `make` replaced by what it prints."""

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "run"
PROCESSOR = "SKIPPED [2] tests/core/test_kernels.py:20: this processor has no oneDNN product"
BROWSER = "SKIPPED [3] tests/plugins/serve/browsers.py:15: no Chromium is installed"
PACKAGE = "SKIPPED [1] tests/plugins/exchange/test_import.py:53: could not import 'ctranslate2'"


def run_with(folder, printed, programs):
    """Run the script where `make` prints some lines and only `programs` seem to be installed."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name in (
        "bash",
        "cat",
        "mktemp",
        "rm",
        "tee",
        "sed",
        "awk",
        "grep",
        "sort",
        "paste",
        "dirname",
        "id",
        "tail",
    ):
        (bin_folder / name).symlink_to(f"/usr/bin/{name}")
    (folder / "printed").write_text(printed)
    bodies = {"make": f"cat {folder}/printed", **dict.fromkeys(programs, "exit 0")}
    for name, body in bodies.items():
        (bin_folder / name).write_text(f"#!{bin_folder}/bash\n{body}\n")
        (bin_folder / name).chmod(0o755)
    environment = {**os.environ, "PATH": str(bin_folder)}
    return subprocess.run([SCRIPT], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("lines", "programs", "code", "last"),
    [
        ([], ["chromium", "msgfmt"], 0, "all checks passed; 0 tests skipped"),
        (
            [PROCESSOR],
            ["chromium", "msgfmt"],
            0,
            "2 tests skipped: this processor has no oneDNN product",
        ),
        ([BROWSER], ["chromium", "msgfmt"], 1, BROWSER),
        (
            [BROWSER, PROCESSOR],
            ["msgfmt"],
            0,
            "5 tests skipped: no Chromium is installed;this processor has",
        ),
        ([PACKAGE], ["chromium", "msgfmt"], 1, PACKAGE),
    ],
)
def test_the_last_line_counts_the_skipped_tests(lines, programs, code, last, tmp_path):
    done = run_with(tmp_path, "".join(f"{line}\n" for line in lines), programs)
    assert done.returncode == code, done.stderr
    assert last in done.stdout.splitlines()[-1]


def test_a_failure_ends_the_script(tmp_path):
    done = run_with(tmp_path, "", ["chromium", "msgfmt"])
    assert done.returncode == 0
    (tmp_path / "bin" / "make").write_text(f"#!{tmp_path}/bin/bash\nexit 2\n")
    environment = {**os.environ, "PATH": str(tmp_path / "bin")}
    done = subprocess.run([SCRIPT], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "passed" not in done.stdout
