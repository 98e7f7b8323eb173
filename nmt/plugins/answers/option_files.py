"""Answers to mistakes in the user's own YAML files: file, line and what to write instead."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from omegaconf.errors import OmegaConfBaseException

from nmt import files
from nmt.config import (
    Command,
    NMTError,
    SettingError,
    explain,
    groups,
    keys_of,
    nearest,
    user_folders,
)

GLOBAL = re.compile(r"(#.*\n|\s*\n)*?# *@package _global_")
"""Hydra's comment that makes the keys of a file begin at the top; only comments may precede it."""
DEFAULTS = "defaults."
"""Ends the part of an entry's name before its group, if the entry is one of `defaults`."""
KEYWORD = re.compile(r"^(\w+ )?/?")
"""What Hydra's grammar allows before a group, as in `override /model` and `optional model`."""
WRAPPED = re.compile(r"^\w+ raised while [\w ]+: ")
"""What OmegaConf writes before the message of an error that it wraps.

It keeps that error nowhere else, so the message can only be taken from the text.
"""
Choice = tuple[str, str]
"""A group and its option."""


@dataclass(frozen=True)
class Entry:
    """A key of a YAML file, or an entry of its list `defaults`."""

    name: str
    """The dotted key. An entry of `defaults` has the key `defaults.`, followed by its group, such
    as `defaults.override /model`."""
    line: int
    value: str
    """Empty if the value is not a scalar."""

    @property
    def is_default(self) -> bool:
        return DEFAULTS in self.name

    @property
    def group(self) -> str:
        """The group of an entry of `defaults`; empty for the group of the file itself."""
        _, _, group = self.name.rpartition(DEFAULTS)
        return KEYWORD.sub("", group)


@dataclass(frozen=True)
class OptionFile:
    """A file of the user that a command line chose."""

    path: Path
    group: str
    entries: list[Entry]

    def choices(self) -> list[Choice]:
        """The options that the file builds on."""
        defaults = [entry for entry in self.entries if entry.is_default]
        return [(entry.group or self.group, entry.value) for entry in defaults]


@dataclass
class Diagnosis:
    """Looks for the cause of an error in files, or for keys that leave a word without effect."""

    command: Command
    words: list[str]
    """The command's KEY=VALUE arguments."""
    options: dict[str, list[str]]
    """Group -> its options."""
    error: Exception | None
    """What nmt, Hydra or OmegaConf raised for the whole configuration; None: nothing."""

    @property
    def message(self) -> str:
        """What the error says, without OmegaConf's own words around it."""
        # OmegaConf describes the tree in further lines.
        first_line, _, _ = str(self.error).partition("\n")
        return WRAPPED.sub("", first_line)

    @property
    def cause(self) -> str:
        """The key that the error is about; not a key if the error is about none."""
        if isinstance(self.error, SettingError):
            return self.error.key
        if isinstance(self.error, OmegaConfBaseException) and self.error.full_key:
            return self.error.full_key
        # nmt's errors about several keys have no such attribute, but begin with one of them:
        # `data.source and data.target are both de`.
        key = re.match(r"[\w.]*", self.message)
        assert key
        return key[0]

    def check(self, file: OptionFile) -> None:
        """Raise NMTError for the first mistake in a file."""
        if self.error is None:
            self.check_effect(file)
            return
        for entry in file.entries:
            problem = self.problem_of(entry, file.group)
            if problem:
                raise mistake(file.path, entry.line, problem) from self.error

    def check_effect(self, file: OptionFile) -> None:
        """Raise NMTError if an experiment sets all keys of a group that a word chooses."""
        if file.group != "experiment":
            return
        names = {entry.name for entry in file.entries}
        keys = keys_of(self.command.config)
        for word in self.words:
            group, _, _ = word.partition("=")
            keys_of_group = {key for key in keys if key.startswith(f"{group}.")}
            # An experiment written by --cfg sets all keys, and the keys of an experiment take
            # precedence.
            if keys_of_group and keys_of_group <= names:
                effect = f"sets every key of the group, so {word} would have no effect"
                raise mistake(file.path, 1, f"{effect}; delete the group from the file")

    def problem_of(self, entry: Entry, group: str) -> str:
        """The problem of an entry in a file of a group; empty if it did not cause the error."""
        if entry.is_default:
            return self.problem_of_default(entry, group)
        # Such as `model: big`, which would replace the group by a string.
        if entry.name in self.options and entry.value:
            instead = f"or under defaults: - override /{entry.name}: {entry.value}"
            return f"{entry.name} is a group: indent its keys below it, {instead}"
        # The command line overrides the value in the file, so the file is not the cause.
        is_replaced = any(word.startswith(f"{entry.name}=") for word in self.words)
        if entry.name != self.cause or is_replaced:
            return ""
        if not self.message.startswith("unknown key"):
            return self.message
        keys = keys_of(self.command.config)
        # YAML takes `model.heads: 4` as one name with a dot, which Hydra does not divide.
        if entry.name in keys:
            return f"{entry.name}: write one name per line, each indented below its group"
        word = f"{entry.name}={entry.value}"
        return explain(self.command.name, [word], entry.name, [*keys, *self.options])

    def problem_of_default(self, entry: Entry, group: str) -> str:
        """The problem of an entry of `defaults` in a file of a group."""
        target = entry.group or group
        value = entry.value
        if target not in self.options:
            return f"defaults: no such group {target}; {nearest(target, self.options)}"
        options = self.options[target]
        # Hydra fills in ${...} later.
        if value not in (*options, "null", "_self_") and "${" not in value:
            return f"defaults: {target}={value}: no such option; {nearest(value, options)}"
        # The command has chosen an option of that group already, and Hydra refuses a second one.
        if target != group and "override /" not in entry.name:
            return f"defaults: write - override /{target}: {value}"
        if target == group and isinstance(self.error, RecursionError):
            return f"defaults: {target}={value} builds on itself"
        return ""


def check_files(
    command: Command, words: list[str], config_dir: Path | None, error: Exception | None
) -> None:
    """Raise NMTError with file and line if one of the user's files caused `error`.

    Without an error, raise it if a file leaves a word without effect.
    """
    # Such an error has file and line already.
    if isinstance(error, yaml.MarkedYAMLError):
        raise syntax_error(error) from error
    folders = user_folders(config_dir)
    # nmt's own files are tested, so only those of a user are searched for mistakes.
    if not folders:
        return
    options = {name: group.options for name, group in groups(command, config_dir).items()}
    diagnosis = Diagnosis(command, words, options, error)
    choices = [choice for choice in choices_in(words) if choice[0] in options]
    # Its keys take precedence, so a mistake in it is the cause.
    choices.sort(key=lambda choice: choice[0] != "experiment")
    for file in chosen_files(choices, folders, options):
        diagnosis.check(file)


def chosen_files(
    choices: list[Choice], folders: list[Path], options: dict[str, list[str]]
) -> Iterator[OptionFile]:
    """The user's files of these choices, in their order, then the files that these build on.

    `options` are those of each group.
    """
    waiting = [*choices]
    # Files may build on each other in a circle.
    seen = set(choices)
    while waiting:
        group, option = waiting.pop(0)
        path = find_file(folders, group, option)
        # An option of nmt itself has no file of the user.
        if path is None:
            continue
        text = read_text(path)
        # The error was a different one if this file cannot be parsed.
        with suppress(RecursionError, yaml.YAMLError):
            file = parse(path, group, text)
            yield file
            for choice in file.choices():
                if choice[0] in options and choice not in seen:
                    seen.add(choice)
                    waiting.append(choice)


def choices_in(words: list[str]) -> list[Choice]:
    """The words of a command line, split at their first =."""
    choices = []
    for word in words:
        group, _, option = word.partition("=")
        choices.append((group, option))
    return choices


def syntax_error(error: yaml.MarkedYAMLError) -> NMTError:
    """The error for a file that is not YAML."""
    # PyYAML reports a key without a colon where the next one begins.
    is_key_without_colon = "simple key" in str(error.context)
    mark: Any = error.context_mark if is_key_without_colon else error.problem_mark
    has_tab = "\\t" in str(error.problem)
    advice = "; indent with spaces, not tabs" if has_tab else ""
    return mistake(Path(mark.name), mark.line + 1, f"{error.problem}{advice}")


def mistake(path: Path, line: int, problem: str) -> NMTError:
    return NMTError(f"{os.path.relpath(path)}, line {line}: {problem}")


def find_file(folders: list[Path], group: str, option: str) -> Path | None:
    """The user's file of an option, from the first folder that has one."""
    for folder in folders:
        path = folder / group / f"{option}.yaml"
        if path.is_file():
            return path
    return None


def read_text(path: Path) -> str:
    """The text of a file; NMTError if it is empty or begins with a byte order mark."""
    text = files.read_text(Path(os.path.relpath(path.resolve())))
    # PyYAML accepts the mark, but Hydra's comment would no longer be at the beginning.
    if text.startswith("\ufeff"):
        raise mistake(path, 1, "save the file without a byte order mark")
    if not text.strip():
        raise mistake(path, 1, "the file is empty")
    return text


def parse(path: Path, group: str, text: str) -> OptionFile:
    """The entries of a file; NMTError for an experiment without Hydra's first line."""
    is_global = GLOBAL.match(text) is not None
    if group == "experiment" and not is_global:
        raise mistake(path, 1, "an experiment begins with the line # @package _global_")
    # Nodes, not values: only nodes know their lines, and no object is constructed.
    tree = yaml.compose(text, yaml.SafeLoader)
    return OptionFile(path, group, list(entries_of(tree, "" if is_global else f"{group}.")))


def entries_of(node: Any, name: str) -> Iterator[Entry]:
    """The entries below a node of YAML; `name` is its dotted key, with a dot at the end.

    `model: {heads: 4}` has the entries `model` without a value and `model.heads` with 4.
    `defaults: [base, override /optim: adapt]` has, after `defaults`, the entries `defaults.` with
    base and `defaults.override /optim` with adapt.
    """
    if isinstance(node, yaml.MappingNode):
        for key_node, child in node.value:
            key = f"{name}{key_node.value}"
            value = child.value if isinstance(child.value, str) else ""
            yield Entry(key, key_node.start_mark.line + 1, value)
            yield from entries_of(child, f"{key}.")
    # No other list has keys of the configuration in it.
    elif isinstance(node, yaml.SequenceNode) and name.endswith(DEFAULTS):
        for item in node.value:
            # An item is an option of the file's own group, or a mapping of a group to an option.
            if isinstance(item, yaml.ScalarNode):
                yield Entry(name, item.start_mark.line + 1, item.value)
            else:
                yield from entries_of(item, name)
