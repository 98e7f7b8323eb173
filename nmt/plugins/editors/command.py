"""`nmt schema`: print the JSON Schema of experiments and of the files of each group."""

import json
from dataclasses import dataclass
from typing import Any

from nmt.commands import COMMANDS, one_run
from nmt.config import Command, choice, groups
from nmt.plugins.editors.schema import schema_of_experiments, schema_of_group

EXPERIMENT = "experiment"


def names_of_groups() -> list[str]:
    return [*groups(COMMANDS["train"])]


@dataclass
class SchemaConfig:
    """Options of `nmt schema`."""

    group: str | None = choice(None, names_of=names_of_groups)
    """Group whose files the schema is for: {choices}; null: the schema for experiments, which
    contains the schemas of the other groups as #/definitions/GROUP."""


def run(config: SchemaConfig) -> None:
    command = COMMANDS["train"]
    if config.group in (None, EXPERIMENT):
        schema = schema_of_experiments(command)
    else:
        assert config.group is not None
        schema = schema_of_group(command, config.group)
    print(json.dumps(schema, indent=2, ensure_ascii=False))


def group_of(words: list[str]) -> dict[str, Any]:
    return one_run(words, "group")


COMMAND = Command(
    name="schema",
    config=SchemaConfig,
    run=run,
    words=group_of,
    usage="[GROUP]",
    examples=("> conf/nmt.schema.json", "model"),
)
