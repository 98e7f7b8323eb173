"""Mistakes in YAML files of the user: messages name the file and the line."""

import re
from pathlib import Path

import pytest

from nmt.commands import COMMANDS, compose
from nmt.config import NMTError, to_yaml

GLOBAL = "# @package _global_\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "line", "said"),
    [
        (
            "model/x",
            "name: x\nd_modle: 64\n",
            2,
            "unknown key model.d_modle; did you mean model.d_model?",
        ),
        (
            "model/x",
            "name: x\nd-model: 64\n",
            2,
            "unknown key model.d-model; did you mean model.d_model?",
        ),
        (
            "model/x",
            "name: x\nheads: many\n",
            2,
            "model.heads=many: must be a whole number between 1 and 4,096",
        ),
        (
            "model/x",
            "defaults: [bsae]\n",
            1,
            "defaults: model=bsae: no such option; did you mean base?",
        ),
        ("model/x", "defaults: [x]\n", 1, "defaults: model=x builds on itself"),
        ("model/x", "name: x\nd_model: [64\nheads: 2\n", 3, "expected ',' or ']', but got ':'"),
        ("model/x", "name: x\n\td_model: 64\n", 2, "indent with spaces, not tabs"),
        ("model/x", "name: x\nd_model:64\n", 2, "could not find expected ':'"),
        ("model/x", "name: x\nname: y\n", 2, "found duplicate key name"),
        ("model/x", "name: x\nnum_layers: 3\n", 2, "use model.encoder_layers=3"),
        (
            "model/x",
            "name: x\nd_model: ${modle.d_ff}\n",
            2,
            "Interpolation key 'modle.d_ff' not found",
        ),
        ("experiment/x", "", 1, "the file is empty"),
        ("experiment/x", f"\ufeff{GLOBAL}seed: 3\n", 1, "without a byte order mark"),
        ("experiment/x", GLOBAL + "lr: 1\n", 2, "use optim.learning_rate=1"),
        ("experiment/x", GLOBAL + "model:\n  d_modle: 3\n", 3, "unknown key model.d_modle"),
        ("experiment/x", "seed: 3\n" + GLOBAL, 1, "begins with the line # @package _global_"),
        ("experiment/x", GLOBAL + "model: big\n", 2, "under defaults: - override /model: big"),
        ("experiment/x", GLOBAL + "optim: 5\n", 2, "optim is a group"),
        ("experiment/x", GLOBAL + "model.d_model: 64\n", 2, "one name per line"),
        (
            "experiment/x",
            GLOBAL + "seed: ${oc.env:NOWHERE}\n",
            2,
            "Environment variable 'NOWHERE' not found",
        ),
        (
            "experiment/x",
            GLOBAL + "model:\n  heads: 7\n",
            3,
            "model.heads=7: must divide model.d_model=512",
        ),
        ("experiment/x", GLOBAL + "defaults:\n  - model: big\n", 3, "write - override /model: big"),
        (
            "experiment/x",
            GLOBAL + "defaults: [override /modle: big]\n",
            2,
            "no such group modle; did you mean model?",
        ),
        (
            "experiment/x",
            GLOBAL + "defaults: [override /model: wide]\n",
            2,
            "model=wide: no such option",
        ),
    ],
)
def test_message_names_file_and_line(name, text, line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("conf", f"{name}.yaml")
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(NMTError) as error:
        compose("train", [name.replace("/", "=")])
    assert str(error.value).startswith(f"{file}, line {line}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(NMTError, match=re.escape(said)):
        to_yaml(COMMANDS["train"], [name.replace("/", "=")])


RARER = ("", "- name: x\n", "[" * 3000, "defaults: base\n", "name: ${\n", "a: &a {b: *a}\n", "\x80")


@pytest.mark.slow
@pytest.mark.parametrize("text", RARER)
def test_malformed_file_gives_one_line(text, tmp_path, nmt):
    (tmp_path / "conf/model").mkdir(parents=True)
    (tmp_path / "conf/model/x.yaml").write_bytes(text.encode("latin-1"))
    nmt("train", "model=x").refused()


def test_dangling_link_is_no_option(tmp_path, nmt):
    (tmp_path / "conf/experiment").mkdir(parents=True)
    (tmp_path / "conf/experiment/x.yaml").symlink_to("moved.yaml")
    nmt("train", "experiment=x").refused("experiment=x: no such option")


def test_files_in_defaults_are_checked_and_choices_without_effect_refused(tmp_path, nmt):
    (tmp_path / "conf/experiment").mkdir(parents=True)
    (tmp_path / "conf/model").mkdir()
    (tmp_path / "conf/model/wide.yaml").write_text("defaults: [base]\nname: wide\nd_fff: 3\n")
    (tmp_path / "conf/experiment/x.yaml").write_text(GLOBAL + "defaults: [override /model: wide]\n")
    nmt("train", "experiment=x").refused("conf/model/wide.yaml, line 3: unknown key model.d_fff")
    (tmp_path / "conf/experiment/x.yaml").write_text(nmt("train", "--cfg").out)
    nmt("train", "experiment=x", "model=big").refused(
        "sets every key of the group, so model=big would have no effect"
    )
