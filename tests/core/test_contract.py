"""Every key of every command: a help text, a default that it accepts, and one line about any value that it refuses."""

import math
from functools import cache
from types import NoneType
from typing import Any, cast, get_origin

import pytest
from omegaconf import OmegaConf

from nmt.commands import COMMANDS
from nmt.config import NMTError, build, keys_of, to_yaml

NEEDED = {
    "extend": ["output=x", "languages=[aa]", "like=[bb]"],
    "gather": ["output=x"],
    "score": ["reference=x"],
    "attention": ["sentence=x"],
    "learn": ["corrections=a.tsv"],
    "import": ["path=x", "output=y"],
    "verify": ["bundle=x"],
    "synthesize": ["input=x", "output=y"],
    "push": ["repository=a/b"],
}
KEYS = [
    (command, key)
    for command in COMMANDS
    for key in keys_of(COMMANDS[command].config)
    if command != "preprocess"
]
# The keys of a group that several commands have are tested once.
ONCE = list(
    {
        ((key.count(".") and key) or command, key): (command, key)
        for command, key in reversed(KEYS)
    }.values()
)


@cache
def tree_of(command: str) -> dict[str, Any]:
    printed = to_yaml(COMMANDS[command], NEEDED.get(command, []))
    return cast(dict[str, Any], OmegaConf.to_container(OmegaConf.create(printed), resolve=True))


def changed(tree: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    first, _, rest = key.partition(".")
    return tree | {first: changed(tree[first], rest, value) if rest else value}


def refused_values(command: str, name: str) -> list[Any]:
    key = keys_of(COMMANDS[command].config)[name]
    if Any in key.types:
        return []
    values: list[Any] = [] if dict in map(get_origin, key.types) else [{"a": 1}]
    if not key.is_list:
        values += [None] if NoneType not in key.types else []
        values += ["some", [1, 2]] if str not in key.types else []
    if limits := key.metadata.get("range"):
        values += [limits[0] - 1, limits[1] * 2 + 1, math.nan]
        values += [limits[0] + 0.5] if float not in key.types else []
    if key.choices:
        values += ["other", ["other"]] if key.is_list else ["other"]
    if bool not in key.types and (limits or key.choices) and not key.is_list:
        values.append(True)
    return values


@pytest.mark.parametrize(("command", "key"), ONCE, ids=str)
def test_a_key_refuses_other_values_in_one_line(command, key):
    for value in refused_values(command, key):
        with pytest.raises(NMTError) as error:
            build(COMMANDS[command].config, changed(tree_of(command), key, value))
        message = str(error.value)
        assert message.startswith(f"{key}="), (value, message)
        assert ": must be " in message
        assert "\n" not in message


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_accepts_its_defaults_and_explains_each_key(command):
    cls = COMMANDS[command].config
    build(cls, tree_of(command))
    assert all(key.help for key in keys_of(cls).values())
    assert cls.__doc__


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("model.heads=many", "model.heads=many: must be a whole number between 1 and 4,096"),
        (
            "data.filters.max_ratio=0.5",
            "data.filters.max_ratio=0.5: must be a number between 1 and 1,000,000, or null",
        ),
        ("model.norm=sandwich", "model.norm=sandwich: must be one of post, pre"),
        ("model.tied_embeddings=maybe", "model.tied_embeddings=maybe: must be true or false"),
        ("logger=[csv,paper]", "logger=[csv,paper]: must be a list of csv, tensorboard, wandb"),
        (
            "trainer.deterministic=maybe",
            "trainer.deterministic=maybe: must be warn, or true or false, or null",
        ),
        (f"optim.factor={'9' * 5000}", "optim.factor="),
        (f"optim.factor={'[' * 3000}", "'optim.factor="),
    ],
)
def test_the_command_line_says_what_a_key_takes(nmt, words, message):
    result = nmt("train", words)
    result.refused(message)
    assert len(result.err) < 400
