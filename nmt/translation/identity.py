"""What decides a line's output: the files of the models, and every option that is not declared otherwise."""

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
from nmt.files import MODEL_FILES, find_model_directory, sha256

WEIGHTS = "model.safetensors"  # recorded as "model"


def deciding_options(config: JobConfig | TranslatorOptions) -> dict[str, Member]:
    """The options of a job that may not change when it resumes, by key."""
    members = keys_of(cast(Any, type(config)))
    return {
        key: member
        for key, member in members.items()
        if member.metadata.get("affects_output", True)
    }


def what_affects_output(config: JobConfig | TranslatorOptions) -> dict[str, Any]:
    """Everything that determines a line's output, by name: the SHA-256 of files, and the values of options."""
    names = (config.translator if isinstance(config, JobConfig) else config).run
    folders = [find_model_directory(name) for name in names]
    files = {name: [sha256(folder / name) for folder in folders] for name in MODEL_FILES}
    values: dict[str, Any] = {
        "model" if name == WEIGHTS else name: hashes for name, hashes in files.items()
    }
    options = flatten(to_tree(config))
    for key, member in deciding_options(config).items():
        value = options[key]
        if value and "is_file" in member.metadata:
            value = sha256(Path(value).resolve())
        values[key] = value
    return values


def options_before(config: JobConfig | TranslatorOptions) -> dict[str, Any]:
    """The values that options had before they existed, by key."""
    values = {key: value_before(member, {}) for key, member in deciding_options(config).items()}
    return {key: value for key, value in values.items() if value != MISSING}


def is_same(recorded: Any, now: Any, before: Mapping[str, Any]) -> bool:
    """Whether a recorded identity is today's; options that it lacks have their values from `before`."""
    return not changed_names(recorded, now, before)


def changed_names(recorded: Any, now: Any, before: Mapping[str, Any]) -> list[str]:
    """The names of what differs between a recorded identity and today's, at most four."""
    if not isinstance(recorded, dict) or not isinstance(now, dict):
        return [] if recorded == now else ["input, model or option"]
    # Compared as JSON stores them: lists, not tuples.
    stored = json.loads(json.dumps(now))
    added = {key: value for key, value in before.items() if key in now}
    complete = {**added, **recorded}
    names = [key for key in {**complete, **stored} if complete.get(key) != stored.get(key)]
    return names[:4]
