"""Calibrate a new model on the lines and with the options of another one."""

import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from nmt.plugins.quality.record import NAME, read_record
from tests.helpers.options import translator_options

probabilities = pytest.importorskip("nmt.plugins.learn.probabilities")
SEARCH = ("threshold=40", "decode.beam_size=2", "engine=torch", "threads=1", "device=cpu")


@pytest.fixture
def parent(nmt, word_model, validation, here) -> Path:
    """A calibrated model whose validation lines are beside it."""
    model = Path(shutil.copytree(word_model, "parent"))
    source, reference = (shutil.copy(path, here / path.name) for path in validation)
    words = [f"source={Path(source).name}", f"reference={Path(reference).name}"]
    assert nmt("calibrate", str(model), *words, *SEARCH).code == 0
    return model


@pytest.fixture
def learned(word_model, here) -> Path:
    return Path(shutil.copytree(word_model, here / "learned"))


def again(parent: Path, learned: Path) -> str:
    options = translator_options(str(parent), engine="torch", threads=1, device="cpu")
    return probabilities.calibrate_again(parent, learned, options, Console(quiet=True))


def test_a_new_model_is_calibrated_as_its_parent(parent, learned):
    assert again(parent, learned) == ""
    # The weights are the same here, so the whole records must be.
    assert (learned / NAME).read_bytes() == (parent / NAME).read_bytes()
    record = read_record(learned, "learned")
    assert record.threshold == 40
    assert record.decode["beam_size"] == 2
    assert (learned / "quality.svg").is_file()
    assert "quality.svg" in (learned / "README.md").read_text()


def test_lines_that_are_gone_or_changed_are_reported(parent, learned, here):
    source = here / "valid.en"
    content = source.read_text()
    source.write_text(content.replace("ka", "lo"))
    assert "its validation lines have changed" in again(parent, learned)
    source.unlink()
    assert "valid.en, a file of its validation lines, is missing" in again(parent, learned)
    assert not (learned / NAME).exists()


def test_a_calibration_of_an_older_version_names_no_lines(parent, learned):
    tree = json.loads((parent / NAME).read_text())
    for name in ("source", "reference", "prepared", "text", "precision"):
        del tree[name]
    (parent / NAME).write_text(json.dumps(tree))
    assert again(parent, learned) == "like=parent: quality.json does not name its validation lines"
    assert not (learned / NAME).exists()


def test_nothing_happens_to_a_model_without_probabilities(parent, learned):
    (parent / NAME).unlink()
    assert again(parent, learned) == ""
    assert not (learned / NAME).exists()
