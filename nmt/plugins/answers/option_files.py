"""Mistakes in the user's own YAML files, reported with file and line before Hydra reads these files."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config import (
    MISSING,
    Command,
    NMTError,
    as_list,
    checked,
    explain,
    groups,
    keys_of,
    nearest,
    parse,
    require,
    user_folders,
)

Chosen = tuple[str, str]  # group and option


def check_files(command: Command, overrides: list[str], config_dir: Path | None) -> None:
    """Raise NMTError for the first mistake in the files that the overrides choose, or that these files build on."""
    choices = {group: options for group, (_, options) in groups(command, config_dir).items()}
    given = [(word.key_or_group, str(word.value())) for word in map(parse, overrides) if word and not word.is_delete()]
    chosen = [(group, option) for group, option in given if group in choices]
    for group, option in chosen:
        paths = (folder / group / f"{option}.yaml" for folder in user_folders(config_dir))
        for path in [path for path in paths if path.is_file()][:1]:
            file = OptionFile(command, choices, (group, option))
            try:
                chosen += [choice for choice in file.check(path, given) if choice not in chosen]
            except (NMTError, OmegaConfBaseException, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
                line, problem = file.line, str(error).partition("\n")[0]
                if isinstance(error, yaml.MarkedYAMLError):
                    mark = error.context_mark if "simple key" in str(error.context) else error.problem_mark
                    advice = "; indent with spaces, not tabs" if "\\t" in str(error.problem) else ""
                    line, problem = mark.line + 1 if mark else line, f"{error.problem}{advice}"
                where = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
                raise NMTError(f"{where}, line {line}: {problem}") from error


class OptionFile:
    line = 1

    def __init__(self, command: Command, choices: dict[str, list[str]], chosen: Chosen) -> None:
        self.command, self.choices, self.keys, self.chosen = command, choices, keys_of(command.config), chosen

    def check(self, path: Path, given: list[Chosen]) -> list[Chosen]:
        """Check the file; return the options under `defaults`."""
        text, group, builds_on, values = path.read_text(encoding="utf-8"), self.chosen[0], list[Chosen](), set[str]()
        root, tree = yaml.compose(text, yaml.SafeLoader), OmegaConf.to_container(OmegaConf.create(text))
        if not isinstance(root, yaml.MappingNode):
            raise NMTError("write KEY: VALUE" if root else "the file is empty")
        is_global = re.match(r"(#.*\n|\s*\n)*?# *@package _global_", text) is not None
        require(is_global or group != "experiment", "an experiment begins with the line # @package _global_")
        for name, value in self.values_of(root, tree, "" if is_global else f"{group}."):
            values.add(name)
            if name in ("defaults", f"{group}.defaults"):
                require(isinstance(value, list), "defaults: must be a list, such as [base]")
                builds_on += [self.choice(entry) for entry in value]
            else:
                self.check_value(name, value)
        for other in {name for name, _ in given if group == "experiment"} & self.choices.keys() - {group}:
            is_used = any(key not in values for key in self.keys if key.startswith(f"{other}."))
            require(
                is_used, f"sets every key of {other}, so {other}= would have no effect; delete {other} from the file"
            )
        return builds_on

    def values_of(self, node: yaml.MappingNode, tree: Any, prefix: str) -> Iterator[tuple[str, Any]]:
        """Dotted keys and values; `line` is the current key's."""
        for key, value in node.value:
            self.line, name, content = key.start_mark.line + 1, f"{prefix}{key.value}", tree.get(key.value)
            require("." not in key.value, f"{key.value}: write one name per line, each indented below its group")
            if isinstance(value, yaml.MappingNode) and isinstance(content, dict) and name not in self.keys:
                yield from self.values_of(value, content, f"{name}.")
            elif key.value != "<<":
                yield name, content

    def check_value(self, name: str, value: Any) -> None:
        keys, text = [*self.keys, *self.choices], " ".join(as_list(value))
        if name not in self.keys:
            advice = f", or under defaults: - override /{name}: {text or 'OPTION'}" if name in self.choices else ""
            is_group = any(key.startswith(f"{name}.") for key in self.keys)
            require(not is_group, f"{name} is a group: indent its keys below it{advice}")
            raise NMTError(explain(self.command.name, [f"{name}={text}"], name, keys))
        for dots, path in re.findall(r"(?<!\\)\$\{(\.*)([\w.]+)\}", text):
            absolute = ".".join([*name.split(".")[: -len(dots)], path]) if dots else path
            exists = any(f"{key}.".startswith(f"{absolute}.") for key in self.keys)
            require(exists, f"{name}: ${{{dots}{path}}}: {explain('', [], absolute, keys)}")
        if "${" not in text and value != MISSING:
            checked(name, value, self.keys[name])

    def choice(self, entry: Any) -> Chosen:
        """The group and option of an entry under `defaults`."""
        path, option = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
        *words, path = path.split(" ")
        group, option = path.strip("/") or self.chosen[0], "null" if option is None else str(option)
        require(group in self.choices, f"defaults: no such group {group}; {nearest(group, self.choices)}")
        is_one = option in ("null", "_self_", *self.choices[group]) or "${" in option
        require(is_one, f"defaults: {group}={option}: no such option; {nearest(option, self.choices[group])}")
        require((group, option) != self.chosen, f"defaults: {option} cannot build on itself")
        fits = group == self.chosen[0] or ("override" in words and path.startswith("/"))
        require(fits, f"defaults: write - override /{group}: {option}")
        return group, option
