"""Everything that decides a line's output: the model files, and the options that can change it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from nmt.config import (
    MISSING,
    JobConfig,
    Member,
    TranslatorOptions,
    flatten,
    keys_of,
    to_tree,
    value_before,
)
from nmt.extensions import StageEntry, import_attribute
from nmt.files import MODEL_FILES, find_model_directory, sha256
from nmt.registry import entries_of

WEIGHTS = "model.safetensors"
"""Recorded as "model"."""
Identity = str | dict[str, Any]
"""Everything that determines an output, or a name for it; empty if it cannot be resumed."""
MOST_NAMES = 4
"""The maximum number of changes that a message lists."""


def deciding_options(config: JobConfig | TranslatorOptions) -> dict[str, Member]:
    """The options of a job that may not change when it resumes, by key.

    These are all options except those declared with `affects_output=False`.
    """
    members = keys_of(cast(Any, type(config)))
    return {
        key: member
        for key, member in members.items()
        if member.metadata.get("affects_output", True)
    }


def what_affects_output(config: JobConfig | TranslatorOptions) -> dict[str, Any]:
    """Everything that determines a line's output, by name.

    It is the SHA-256 of files, and the values of options.
    """
    translator = config.translator if isinstance(config, JobConfig) else config
    folders = [find_model_directory(name) for name in translator.run]
    values = dict[str, Any]()
    # Files are compared by content, because a run's folder may be moved, or trained again under the
    # same name.
    for file_name in MODEL_FILES:
        name = "model" if file_name == WEIGHTS else file_name
        values[name] = [sha256(folder / file_name) for folder in folders]
    values |= states_of_stages(folders, translator)
    options = flatten(to_tree(config))
    for key, member in deciding_options(config).items():
        # A command may not offer all options of a plugin, such as `nmt synthesize`.
        if key in options:
            values[key] = compared_value(options[key], member, translator)
    return values


def compared_value(value: Any, member: Member, translator: TranslatorOptions) -> Any:
    """The value of an option, or the SHA-256 of the files that it names.

    For example, a job must not resume with a glossary that has been edited under the same name.
    """
    if not value:
        return value
    if "is_file" in member.metadata:
        return sha256(Path(value).resolve())
    if "files" in member.metadata:
        find_files = import_attribute(member.metadata["files"])
        return [sha256(path.resolve()) for path in find_files(value, translator)]
    return value


def states_of_stages(folders: list[Path], translator: TranslatorOptions) -> dict[str, Any]:
    """The SHA-256 of the files that stages read from model directories, and states, by name."""
    states = dict[str, Any]()
    for entry in entries_of(StageEntry).values():
        paths = [folder / entry.file for folder in folders if entry.file]
        paths = [path for path in paths if path.is_file()]
        # A command that does not read the file must resume after it has appeared.
        if paths and (translator.judged or is_wanted(entry, translator)):
            states[entry.file] = [sha256(path) for path in paths]
            if entry.state:
                states |= import_attribute(entry.state)(translator)
    return states


def is_wanted(entry: StageEntry, options: TranslatorOptions) -> bool:
    """Whether the key that a stage needs has a value."""
    if entry.key is None:
        return True
    group, key = entry.key
    return bool(getattr(options.plugins.get(group), key, None))


def options_before(config: JobConfig | TranslatorOptions) -> dict[str, Any]:
    """The values that options had before they existed, by key."""
    values = dict[str, Any]()
    for key, member in deciding_options(config).items():
        value = value_before(member, {})
        if value != MISSING:
            values[key] = value
    return values


def is_same(recorded: Any, now: Any, before: Mapping[str, Any]) -> bool:
    """Whether a recorded identity is today's.

    Options that it lacks have their values from `before`.
    """
    return not changed_names(recorded, now, before)


def changed_names(recorded: Any, now: Any, before: Mapping[str, Any]) -> list[str]:
    """The names of what differs between a recorded identity and today's, at most four."""
    # A string has no parts. It is empty for an input that cannot be read again, such as a pipe.
    if not isinstance(recorded, dict) or not isinstance(now, dict):
        return [] if recorded == now else ["input, model or option"]
    # Compared as JSON stores them: lists, not tuples.
    today = json.loads(json.dumps(now))
    complete = {key: value for key, value in before.items() if key in now}
    complete.update(recorded)
    names = []
    for key in {**complete, **today}:
        if complete.get(key) != today.get(key):
            names.append(key)
    return names[:MOST_NAMES]
