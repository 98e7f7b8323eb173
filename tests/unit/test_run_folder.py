"""Which configurations go on with a run."""

from dataclasses import asdict
from pathlib import Path

import pytest
import yaml

from nmt.compose import compose
from nmt.errors import NMTError
from nmt.training.run_folder import check_configuration


def begun(folder: Path, tree: dict) -> Path:
    """A run of this configuration that has been trained."""
    (folder / "model").mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(tree))
    return folder


def test_a_run_from_before_attention_could_be_chosen_goes_on_as_the_papers(tmp_path):
    tree = asdict(compose("train", []))
    del tree["model"]["attention"], tree["model"]["restricted_to"]
    run = begun(tmp_path, tree)
    check_configuration(run, compose("train", ["model.attention=scaled_dot_product"]))
    for override in ("model.attention=additive", "model.restricted_to=9"):
        with pytest.raises(NMTError, match=override.replace("=", ": .* -> ")):
            check_configuration(run, compose("train", [override]))
