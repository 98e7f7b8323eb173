"""The plugin in docs/guides/plugins.md works as installed."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import nmt as package
from tests.helpers.preloaded import python

ROOT = Path(package.__file__).parents[1]


@pytest.mark.slow
def test_the_plugin_of_the_page_adds_a_command_a_document_and_a_metric(tmp_path, checkpoint):
    page = (ROOT / "docs/guides/plugins.md").read_text()
    (tmp_path / "shout.py").write_text(re.search(r"```python\n(.*?)```", page, re.S)[1])
    metadata = tmp_path / "shout-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shout\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[nmt.plugins]\nshout = shout:register\n")
    (tmp_path / "x.shout").write_text("[a]\ngreeting=ka nu lo\nempty=\n")
    (tmp_path / "out.de").write_text("ABcd\n")
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}:{tmp_path}",
        "XDG_CACHE_HOME": str(tmp_path),
    }

    def nmt(*words):
        command = [python(), "-m", "nmt", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        return done.stdout or done.stderr

    assert "\n  shout       Print text in capitals.\n" in nmt("--help")
    added = [line.split() for line in nmt("plugins").splitlines() if line.startswith("shout ")]
    assert sorted(added) == [
        ["shout", "command", "shout"],
        ["shout", "document", "shout"],
        ["shout", "metric", "loudness"],
        ["shout", "options", "metrics.loudness"],
    ]
    assert nmt("shout", "good day", "times=2") == "GOOD DAY GOOD DAY\n"
    assert nmt("shout", "times=99") == "nmt: times=99: must be a whole number between 1 and 9\n"
    score = ("score", "out.de", "out.de", "metrics=loudness")
    assert "Loudness = 50.00  best:100|loudness:1\n" in nmt(*score)
    assert "Loudness = 5.00  best:10|loudness:1\n" in nmt(*score, "loudness.best=10")
    (metadata / "entry_points.txt").write_text(
        "[nmt.plugins]\nshout = shout:register\nwhisper = shout:register\n"
    )
    assert (
        nmt("plugins")
        == "nmt: plugin whisper: shout already adds command shout; fix or uninstall it\n"
    )
    (metadata / "entry_points.txt").write_text("[nmt.plugins]\nshout = shouting:register\n")
    assert nmt("--help") == "nmt: plugin shout: No module named 'shouting'; fix or uninstall it\n"
    (metadata / "entry_points.txt").write_text("[nmt.plugins]\nshout = shout:register\n")
    keys = [
        row.partition("=")[0]
        for row in nmt("translate", "x.shout", checkpoint, "engine=torch").splitlines()
    ]
    assert keys[:2] == ["[a]", "greeting"]
