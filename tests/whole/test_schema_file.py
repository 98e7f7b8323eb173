"""The schema that nmt's YAML files name."""

import json
import re
from pathlib import Path

import pytest

from nmt.commands import COMMANDS
from nmt.plugins.editors.schema import schema_of_experiments

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "conf/nmt.schema.json"
FILES = sorted([*ROOT.glob("conf/**/*.yaml"), *ROOT.glob("nmt/plugins/*/conf/**/*.yaml")])
MODELINE = re.compile(
    r"^# yaml-language-server: \$schema=(?P<path>[^#\n]*)(#/definitions/(?P<group>\w+))?$", re.M
)


def test_the_schema_in_conf_is_up_to_date(monkeypatch):
    monkeypatch.chdir(ROOT)
    message = "run `nmt schema > conf/nmt.schema.json`"
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema_of_experiments(
        COMMANDS["train"]
    ), message


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_yaml_file_names_its_schema(file):
    text = file.read_text(encoding="utf-8")
    [modeline] = MODELINE.finditer(text)
    # Editors look for the line only in the comments at the beginning.
    assert all(line.startswith("#") for line in text[: modeline.start()].splitlines())
    assert (file.parent / modeline["path"]).resolve() == SCHEMA
    [group] = re.findall(r"/conf/(\w+)/", file.as_posix())
    is_global = text.startswith("# @package _global_\n")
    assert modeline["group"] == (None if is_global else group)
