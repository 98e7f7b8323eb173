"""Convert the fields of option records to a JSON Schema of the YAML files that set them.

The schema accepts what `nmt.config.checked` accepts, with one exception: to JSON Schema, 8.0 is a
whole number. It also accepts references such as ${data.name}, and ??? for a value that is still
missing. The draft is 07, the latest one that all versions of yaml-language-server support.
"""

import inspect
from dataclasses import is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin

from nmt.config import (
    MISSING,
    Command,
    DataConfig,
    Member,
    SourceConfig,
    accepted_values,
    groups,
    keys_of,
    members_of,
)

Schema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"
REFERENCE = r"^\?\?\?$|\$\{.+\}"
"""A string that stands for a value of any type."""
OF_CORPUS = ("name", "sources", "temperature")
"""Keys of a corpus that its sources do not have, or have with another meaning."""
OF_SOURCE = ("name", "weight", "share")
"""Keys that only sources have."""


def schema_of_experiments(command: Command) -> Schema:
    """The schema of an experiment of a command; its definitions have those of the groups' files."""
    properties = schemas_of_keys(command.config)
    definitions: Schema = {"override": schema_of_overrides(command)}
    for name in groups(command):
        if name in properties:
            definitions[name] = file_of_group(command, name)
    for member in groups_of(command.config):
        definitions[keys_name(member.name)] = properties[member.name]
        properties[member.name] = {"$ref": f"#/definitions/{keys_name(member.name)}"}
    properties["defaults"] = schema_of_defaults(command, "experiment")
    return {
        "$schema": DRAFT,
        "title": "An experiment of nmt",
        **closed(properties),
        "definitions": definitions,
    }


def schema_of_group(command: Command, group: str) -> Schema:
    """The schema of the files of one group."""
    definitions = schema_of_experiments(command)["definitions"]
    file = definitions[group]
    needed = {name: definitions[name] for name in ("override", keys_name(group))}
    return {"$schema": DRAFT, "title": f"{group}/*.yaml of nmt", **file, "definitions": needed}


def keys_name(group: str) -> str:
    """The name of the definition of a group's keys, which its files and experiments share."""
    return f"keys_of_{group}"


def groups_of(record: Any) -> list[Member]:
    """The members of a record that are groups of keys."""
    return [member for member in members_of(record) if is_group(member)]


def is_group(member: Member) -> bool:
    return is_dataclass(member.type) and not member.is_inline


def file_of_group(command: Command, group: str) -> Schema:
    """The schema of a file of a group: the keys of the group, and `defaults`."""
    [member] = [member for member in groups_of(command.config) if member.name == group]
    place = f"#/definitions/{keys_name(group)}/properties"
    properties: Schema = {}
    for name in schemas_of_keys(member.type):
        properties[name] = {"$ref": f"{place}/{name}"}
    properties["defaults"] = schema_of_defaults(command, group)
    return {"description": description_of(member.type), **closed(properties)}


def closed(properties: Schema) -> Schema:
    """A mapping that has no other keys."""
    return {"type": "object", "properties": properties, "additionalProperties": False}


def description_of(record: Any) -> str:
    return " ".join((inspect.getdoc(record) or "").split())


def schema_of_defaults(command: Command, group: str) -> Schema:
    """The list of the options that a file of a group builds on."""
    # Any string, because users add options of their own after they have written the schema.
    names = ["_self_", *groups(command)[group].options]
    options = [{"enum": names}, {"type": "string"}, {"$ref": "#/definitions/override"}]
    return {
        "description": (
            f"The options that this file builds on: options of {group}, "
            "or `override /GROUP: OPTION` for an option of another group."
        ),
        "type": "array",
        "items": {"anyOf": options},
    }


def schema_of_overrides(command: Command) -> Schema:
    """An entry of `defaults` such as `override /model: big`."""
    properties: Schema = {}
    for name, group in groups(command).items():
        if command.groups.get(name) is not None:
            options = [{"enum": group.options}, {"type": "string"}]
            properties[f"override /{name}"] = {"anyOf": options}
    return {**closed(properties), "minProperties": 1, "maxProperties": 1}


def schemas_of_keys(record: Any, offered: tuple[str, ...] = ()) -> dict[str, Schema]:
    """The schemas of the keys and groups of a record by name."""
    # From the flat keys, whose defaults are those of the record that an inline one belongs to.
    keys = keys_of(record, offered)
    schemas: dict[str, Schema] = {}
    for member in members_of(record, offered):
        if is_group(member):
            schemas[member.name] = {
                "description": description_of(member.type),
                **closed(schemas_of_keys(member.type)),
            }
        elif member.is_inline:
            for name, schema in schemas_of_keys(member.type, member.offered).items():
                schemas[name] = with_default(schema, keys[name]) if name in keys else schema
        else:
            schemas[member.name] = with_default(schema_of_key(member), member)
    return schemas


def with_default(schema: Schema, member: Member) -> Schema:
    if member.default == MISSING:
        return schema
    return {**schema, "default": member.default}


def schema_of_key(member: Member) -> Schema:
    """What a key accepts, and its help."""
    if member.record is DataConfig and member.name == "sources":
        accepted = schema_of_sources()
    elif Any in member.types:
        accepted = {}
    elif member.is_list:
        accepted = schema_of_list(member)
    else:
        accepted = schema_of_scalar(member, member.types)
    return {"description": member.help, **accepted}


def schema_of_sources() -> Schema:
    """The entries of data.sources: keys of sources, and those of `data` that differ."""
    properties: Schema = {}
    for member in members_of(SourceConfig):
        if member.name in OF_SOURCE:
            properties[member.name] = schema_of_key(member)
    for member in members_of(DataConfig):
        for name in member.first_names if member.is_inline else [member.name]:
            if name not in OF_CORPUS:
                place = f"#/definitions/{keys_name('data')}/properties"
                properties[name] = {"$ref": f"{place}/{name}"}
    return {
        "type": ["array", "null", "string"],
        "pattern": REFERENCE,
        "items": closed(dict(sorted(properties.items()))),
    }


def schema_of_scalar(member: Member, kinds: set[Any]) -> Schema:
    """The values of a key, or items of its list, that are no lists themselves."""
    types: list[str] = []
    schema: Schema = {}
    if float in kinds:
        types.append("number")
    elif int in kinds:
        types.append("integer")
    if "range" in member.metadata:
        schema["minimum"], schema["maximum"] = member.metadata["range"]
    if bool in kinds:
        types.append("boolean")
    if NoneType in kinds:
        types.append("null")
    is_any_text = str in kinds and not member.choices
    if is_any_text and not {int, float} & kinds:
        # YAML reads a name such as 2024 as a number, and nmt takes it as text.
        types.append("number")
    types.append("string")
    if not is_any_text:
        schema["pattern"] = REFERENCE
        # A keyword of VS Code, which other programs ignore: the pattern would say nothing to users.
        schema["patternErrorMessage"] = f"must be {accepted_values(member)}"
    return with_choices({"type": types, **schema}, member, kinds)


def with_choices(rest: Schema, member: Member, kinds: set[Any]) -> Schema:
    """A schema of one of a key's choices, or of what `rest` accepts."""
    if not member.choices or str not in kinds:
        return rest
    names: list[Any] = [*member.choices]
    if not {int, float} & kinds:
        # YAML reads a choice such as 32 as a number.
        names += [int(name) for name in names if str(name).isdecimal()]
    # First, because editors offer the values of the first alternative first.
    return {"anyOf": [{"enum": names}, rest]}


def schema_of_list(member: Member) -> Schema:
    """A list, or one value that stands for a list with this value alone."""
    [items] = [get_args(kind)[0] for kind in member.types if get_origin(kind) is list]
    # null is an empty list, except where it means no list.
    types = ["array", "null"]
    if get_origin(items) is list:
        [number] = get_args(items)
        schema_of_item: Schema = {"type": "array", "items": schema_of_scalar(member, {number})}
    else:
        schema_of_item = schema_of_scalar(member, {items})
    others = {kind for kind in member.types if get_origin(kind) is not list}
    # A single string is a list of it; a single number is none.
    if items is str:
        others.add(str)
    single = schema_of_scalar(member, others) if others - {NoneType} else reference()
    if "anyOf" in single:
        [names, rest] = single["anyOf"]
        return {"anyOf": [names, as_list_or(rest, types, schema_of_item)]}
    return as_list_or(single, types, schema_of_item)


def reference() -> Schema:
    return {"type": ["string"], "pattern": REFERENCE}


def as_list_or(single: Schema, types: list[str], items: Schema) -> Schema:
    """A schema that accepts a single value or a list of items."""
    all_types = list(dict.fromkeys([*types, *single["type"]]))
    return {**single, "type": all_types, "items": items}
