"""The schema of `nmt schema` accepts and refuses what nmt itself does."""

import json
from functools import cache
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator
from omegaconf import OmegaConf

from nmt.commands import COMMANDS
from nmt.commands.config import as_experiment
from nmt.config import (
    ExperimentConfig,
    NMTError,
    checked,
    compose,
    groups,
    keys_of,
    to_tree,
    to_yaml,
)
from nmt.config.command import conf_folders
from nmt.plugins.editors.command import COMMAND
from nmt.plugins.editors.schema import schema_of_experiments, schema_of_group, schema_of_key

KEYS = keys_of(ExperimentConfig)
FILES = [path for folder in conf_folders() for path in sorted(folder.rglob("*.yaml"))]
VALUES = [
    None,
    True,
    0,
    1,
    -1,
    7,
    2.5,
    10**12,
    "",
    "some",
    "3",
    {"a": 1},
    [],
    ["some"],
    ["a", 7],
    [1, 2],
    [2.5],
    [True],
    [None],
    [["a"]],
    [[1, 2]],
    [{"a": 1}],
]


@cache
def experiments():
    return schema_of_experiments(COMMANDS["train"])


def problems(tree, definition=""):
    """What the schema has against the content of an experiment, or of a file of a group."""
    schema = experiments()
    if definition:
        schema = {
            "$ref": f"#/definitions/{definition}",
            "definitions": schema["definitions"],
        }
    return [
        f"{error.json_path}: {error.message}" for error in Draft7Validator(schema).iter_errors(tree)
    ]


def values_for(member):
    values = [*VALUES]
    if "range" in member.metadata:
        least, most = member.metadata["range"]
        values += [least, most, least - 1, most * 2 + 1, [least], [least - 1], [most * 2 + 1]]
    for name in member.choices:
        values += [name, [name], f"{name}x"]
        # As YAML reads it.
        values.append(yaml.safe_load(str(name)))
    return values


def is_accepted_by_nmt(key, value, member):
    try:
        checked(key, value, member)
    except NMTError:
        return False
    return True


def is_whole_float(value):
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, float) and item.is_integer() for item in items)


@pytest.mark.parametrize("key", [key for key in KEYS if key != "data.sources"])
def test_the_schema_of_a_key_decides_as_nmt_does(key):
    member = KEYS[key]
    validator = Draft7Validator(schema_of_key(member))
    decisions = set()
    for value in values_for(member):
        # JSON Schema does not distinguish 8.0 from 8.
        if float not in member.types and is_whole_float(value):
            continue
        accepted = is_accepted_by_nmt(key, value, member)
        assert validator.is_valid(value) == accepted, value
        decisions.add(accepted)
    assert decisions == {True, False}


@pytest.mark.parametrize("key", KEYS)
def test_each_key_accepts_references_and_missing_values(key):
    validator = Draft7Validator(schema_of_key(KEYS[key]))
    for text in ("${data.name}", "a-${oc.env:HOME}", "???"):
        assert validator.is_valid(text), text


@pytest.mark.parametrize("key", KEYS)
def test_each_key_is_in_the_schema_with_its_help_and_default(key):
    schema = experiments()
    for part in key.split("."):
        if "$ref" in schema:
            schema = experiments()["definitions"][schema["$ref"].rpartition("/")[2]]
        schema = schema["properties"][part]
    assert schema["description"] == KEYS[key].help
    if KEYS[key].default == "???":
        assert "default" not in schema
    else:
        assert schema["default"] == KEYS[key].default


def test_the_schema_is_a_schema_and_always_the_same():
    Draft7Validator.check_schema(experiments())
    assert json.dumps(experiments()) == json.dumps(schema_of_experiments(COMMANDS["train"]))


def test_every_group_of_every_command_has_a_schema():
    names = {name for command in COMMANDS.values() for name in groups(command)} - {"experiment"}
    assert names <= experiments()["definitions"].keys()
    for name in names:
        Draft7Validator.check_schema(schema_of_group(COMMANDS["train"], name))


def content_of(path):
    """The content of a file as nmt reads it."""
    return OmegaConf.to_container(OmegaConf.load(path)) or {}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_file_of_nmt_is_valid(path):
    group = path.relative_to(
        next(folder for folder in conf_folders() if folder in path.parents)
    ).parts[0]
    is_global = path.read_text(encoding="utf-8").startswith("# @package _global_")
    assert is_global or group != "experiment"
    tree = content_of(path)
    assert problems(tree, "" if is_global else group) == []
    if not is_global:
        validator = Draft7Validator(schema_of_group(COMMANDS["train"], group))
        assert validator.is_valid(tree)
        # The schema of another file marks its keys.
        assert problems({**tree, "haeds": 1}, group) != []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("train", ["data=files", "data.train=corpus/a"]),
        ("train", ["experiment=quickstart", "trainer.devices=[0,1]", "minutes=30"]),
        ("train", ["experiment=table3/big", "model.dropout=0"]),
        ("train", ["experiment=adapt", 'data.sources=[{train:a,tag:"<bt>"},{train:b,share:0.5}]']),
        ("train", ["experiment=bergamot"]),
        ("preprocess", ["data.filters.max_words=null", "tokenizer=unigram32k", "data.name=2024"]),
    ],
)
def test_saved_command_lines_are_valid(command, words):
    tree = yaml.safe_load(to_yaml(COMMANDS[command], words))
    assert problems(tree) == []


def test_what_nmt_config_prints_is_valid():
    words = [
        "experiment=quickstart",
        "data.tag=<2de>",
        "logger=csv",
        "optim.warmup=2",
        "optim.decay_steps=9",
        "optim.decay_changes=[[3,5]]",
    ]
    tree = yaml.safe_load(as_experiment(to_tree(compose(COMMANDS["train"], words))))
    assert problems(tree) == []


@pytest.mark.parametrize(
    "text",
    [
        "haeds: 4",
        "model: {haeds: 4}",
        "model.heads: 4",
        "model: big",
        "model: {defaults: [big]}",
        "data: {filters: {min_word: 1}}",
        "data: {noise: {typo: 0.5}}",
        "defaults: [override /modle: big]",
        "defaults: [{override /model: 3}]",
        "defaults: laptop",
        "experiment: laptop",
    ],
)
def test_mistakes_in_experiments_are_refused_by_nmt_and_by_the_schema(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = Path("conf/experiment/mine.yaml")
    file.parent.mkdir(parents=True)
    file.write_text(f"# @package _global_\n{text}\n")
    assert problems(yaml.safe_load(text)) != []
    with pytest.raises(NMTError):
        compose(COMMANDS["train"], ["experiment=mine"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "is_valid"),
    [
        ({"train": "corpus/a"}, True),
        ({"train": ["a", "b"], "tag": "<bt>", "weight": 2, "name": "back"}, True),
        ({"train": "a", "filters": {"max_ratio": 3}, "share": 0.5}, True),
        ({"train": "a", "weight": -1}, False),
        ({"train": "a", "share": 2}, False),
        ({"train": "a", "wieght": 2}, False),
        ({"train": "a", "temperature": 5}, False),
        ({"train": "a", "filters": {"min_words": "x"}}, False),
        ("corpus/a", False),
    ],
)
def test_sources_decide_as_nmt_does(entry, is_valid):
    words = [f"data.sources=[{as_hydra(entry)}]", "data=files", "data.train=x"]
    assert (problems({"data": {"sources": [entry]}}) == []) == is_valid
    if is_valid:
        compose(COMMANDS["train"], words)
    else:
        with pytest.raises(NMTError):
            compose(COMMANDS["train"], words)


def as_hydra(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{as_hydra(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{','.join(map(as_hydra, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def test_options_of_groups_are_offered_but_a_users_own_are_accepted():
    override = experiments()["definitions"]["override"]["properties"]["override /model"]
    assert override["anyOf"][0]["enum"] == groups(COMMANDS["train"])["model"].options
    assert problems({"defaults": [{"override /model": "mine"}, "laptop", "_self_"]}) == []


def test_the_command_prints_the_schema_of_experiments_or_of_a_group(capsys):
    COMMAND.run(compose(COMMAND, []))
    assert json.loads(capsys.readouterr().out) == experiments()
    COMMAND.run(compose(COMMAND, ["model"]))
    printed = json.loads(capsys.readouterr().out)
    assert Draft7Validator(printed).is_valid({"heads": 4, "defaults": ["small"]})
    assert not Draft7Validator(printed).is_valid({"model": {"heads": 4}})
    with pytest.raises(NMTError, match="must be one of batching, data"):
        compose(COMMAND, ["modle"])
