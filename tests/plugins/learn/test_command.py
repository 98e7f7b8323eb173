"""The command line of `nmt learn`."""

from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.errors import NMTError


def test_a_run_and_files(here: Path):
    config = compose("learn", ["runs/mine", "a.tsv", "b.tmx"])
    assert (config.run, config.corrections) == ("runs/mine", ["a.tsv", "b.tmx"])


def test_a_folder_with_a_dot_is_a_run(here: Path):
    Path("mine.v2").mkdir()
    assert compose("learn", ["mine.v2", "a.tsv"]).run == "mine.v2"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["runs/mine"], "corrections: name a file"),
        (["runs/mine", "a.tsv", "undo=true"], "undo=true: pass nothing else"),
        (["runs/mine", "list=true", "undo=true"], "undo=true: pass nothing else"),
        (["runs/mine", "runs/other", "a.tsv"], "takes one run"),
    ],
)
def test_what_excludes_each_other(here: Path, words, message):
    with pytest.raises(NMTError, match=message):
        compose("learn", words)
