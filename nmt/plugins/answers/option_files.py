"""Mistakes in the user's own YAML files, reported with file and line."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from nmt.config import Command, NMTError, explain, groups, keys_of, nearest, require, user_folders
from nmt.files import read_text


def check_files(command: Command, words: list[str], config_dir: Path | None, error: Exception | None) -> None:
    """Raise NMTError with file and line if a file of the user caused `error` or leaves a word without effect."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark: Any = error.context_mark if "simple key" in str(error.context) else error.problem_mark
        advice = "; indent with spaces, not tabs" if "\\t" in str(error.problem) else ""
        raise NMTError(f"{os.path.relpath(mark.name)}, line {mark.line + 1}: {error.problem}{advice}") from error
    if not user_folders(config_dir):
        return
    options = {group: names for group, (_, names) in groups(command, config_dir).items()}
    chosen = [(group, option) for group, _, option in (word.partition("=") for word in words) if group in options]
    chosen.sort(key=lambda choice: choice[0] != "experiment")  # its keys take precedence
    for group, option in chosen:
        files = [folder / group / f"{option}.yaml" for folder in user_folders(config_dir)]
        for path in [path for path in files if path.is_file()][:1]:
            text = read_text(Path(os.path.relpath(path.resolve())))
            require(text[:1] != "\ufeff", f"{os.path.relpath(path)}, line 1: save the file without a byte order mark")
            require(bool(text.strip()), f"{os.path.relpath(path)}, line 1: the file is empty")
            with suppress(RecursionError, yaml.YAMLError):
                is_global = re.match(r"(#.*\n|\s*\n)*?# *@package _global_", text) is not None
                advice = "line 1: an experiment begins with the line # @package _global_"
                require(is_global or group != "experiment", f"{os.path.relpath(path)}, {advice}")
                lines = [*lines_of(yaml.compose(text, yaml.SafeLoader), "" if is_global else f"{group}.")]
                for line, problem in mistakes(command, words, options, group, lines, error):
                    raise NMTError(f"{os.path.relpath(path)}, line {line}: {problem}") from error
                names = [(entry_group(name) or group, value) for name, _, value in lines if "defaults." in name]
                chosen += [choice for choice in names if choice not in chosen and choice[0] in options]


def mistakes(
    command: Command,
    words: list[str],
    options: dict[str, list[str]],
    group: str,
    lines: list[tuple[str, int, str]],
    error: Exception | None,
) -> Iterator[tuple[int, str]]:
    """The mistakes in a file of a group, with their lines."""
    keys, names = [*keys_of(command.config)], {name for name, _, _ in lines}
    for word in words if group == "experiment" and not error else ():
        of_group = {key for key in keys if key.startswith(f"{word.partition('=')[0]}.")}
        if of_group and of_group <= names:
            yield 1, f"sets every key of the group, so {word} would have no effect; delete the group from the file"
    message = re.sub(r"^\w+ raised while [\w ]+: |\n.*", "", str(error), flags=re.S)
    cause = getattr(error, "full_key", None) or re.sub(r"unknown key |[^\w.].*", "", message)
    for name, line, value in lines if error else ():
        if "defaults." in name:
            target = entry_group(name) or group
            if target not in options:
                yield line, f"defaults: no such group {target}; {nearest(target, options)}"
            if value not in (*options[target], "null", "_self_") and "${" not in value:
                yield line, f"defaults: {target}={value}: no such option; {nearest(value, options[target])}"
            if target != group and "override /" not in name:
                yield line, f"defaults: write - override /{target}: {value}"
            if target == group and isinstance(error, RecursionError):
                yield line, f"defaults: {target}={value} builds on itself"
        elif name in options and value:
            yield line, f"{name} is a group: indent its keys below it, or under defaults: - override /{name}: {value}"
        elif name == cause and not any(word.startswith(f"{name}=") for word in words):
            advice = f"{name}: write one name per line, each indented below its group" if name in keys else ""
            unknown = advice or explain(command.name, [f"{name}={value}"], name, [*keys, *options])
            yield line, unknown if message.startswith("unknown key") else message


def lines_of(node: Any, name: str) -> Iterator[tuple[str, int, str]]:
    """Dotted keys with their lines and values; an entry under `defaults` has the key `defaults.` and its group."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield f"{name}{key.value}", key.start_mark.line + 1, value.value if isinstance(value.value, str) else ""
            yield from lines_of(value, f"{name}{key.value}.")
    elif isinstance(node, yaml.SequenceNode) and name.endswith("defaults."):
        for item in node.value:
            is_text = isinstance(item, yaml.ScalarNode)
            yield from [(name, item.start_mark.line + 1, item.value)] if is_text else lines_of(item, name)


def entry_group(name: str) -> str:
    """The group in the key of an entry under `defaults`, such as `defaults.override /model`; empty if there is none."""
    return re.sub(r".*defaults\.(\w+ )?/?", "", name)
