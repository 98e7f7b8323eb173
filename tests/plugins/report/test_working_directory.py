import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["charts", "attention_page"])
def test_matplotlib_has_its_own_settings_and_not_those_of_the_working_directory(tmp_path, module):
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\n")
    program = f"import nmt.plugins.report.{module}, matplotlib; print(matplotlib.rcParams['text.usetex'])"
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
