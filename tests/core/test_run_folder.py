"""Which configurations go on with a run."""

from pathlib import Path

import pytest
import yaml

from nmt.commands import compose
from nmt.errors import NMTError
from nmt.training import check_configuration
from nmt.training.run_folder import kept_checkpoints


def begun(folder: Path, tree: dict) -> Path:
    """A run of this configuration that has been trained."""
    (folder / "model").mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(tree))
    return folder


@pytest.mark.parametrize(
    "content", ["[1]", "trainer: 3", "model: [a]", "", "a: &a []\nb: *a", "data: " + "{a: " * 3000]
)
def test_a_configuration_that_is_none_is_one_line(tmp_path, content):
    run = begun(tmp_path, {})
    (run / "config.yaml").write_text(content)
    with pytest.raises(NMTError) as raised:
        check_configuration(run, compose("train", []))
    assert "config.yaml" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_configuration_without_some_keys_is_another(tmp_path):
    with pytest.raises(NMTError, match="another configuration"):
        check_configuration(begun(tmp_path, {"name": "x"}), compose("train", []))


def test_checkpoints_are_kept_by_number_whatever_zeros_their_names_begin_with(tmp_path):
    (tmp_path / "checkpoints").mkdir()
    paths = [tmp_path / "checkpoints" / f"step={number}.ckpt" for number in ("5", "0010", "00000012", "15")]
    for path in paths:
        path.touch()
    assert kept_checkpoints(tmp_path, 5, 3) == [paths[0], paths[1], paths[3]]
