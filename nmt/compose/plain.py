"""Configurations of plain words without Hydra, which takes a third of a second to load and to compose.

Plain is KEY=VALUE with a name, a path, a number or running text, and a word without =, where a command's root file only
chooses groups. Whatever is not plain, or wrong, goes to Hydra; of the rest, this makes what Hydra makes.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from nmt.compose.command import Command
from nmt.compose.words import is_bare, is_entry
from nmt.config import type_of
from nmt.errors import NMTError
from nmt.files import build

KEY = re.compile(r"[a-z_]+(\.[a-z_]+)?")
OPTION = re.compile(r"[a-z0-9_]+")
NAME = re.compile(r"(\.{0,2}/)?(?!(null|true|false|nan|inf)$)[a-z_][\w./-]*", re.ASCII | re.IGNORECASE)
WHOLE, DECIMAL = re.compile(r"0|[1-9][0-9]{0,8}"), re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?")
NOT_VERBATIM = re.compile(r"null|['\"\[{].*|.*(\\|\$\{).*", re.DOTALL)


class NotPlain(Exception):
    """A word or a file that has to go to Hydra."""


def conf_folder() -> Path:
    """The folder of nmt's own groups: inside the package if it was installed from a wheel, else beside it."""
    package = Path(__file__).parents[1]
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def compose(command: Command, words: list[str], config_dir: Path | None = None) -> Any:
    """The configuration of a command, as its dataclass, checked; NMTError for what is wrong with it."""
    if config_dir is None:
        try:
            return plain(command, words)
        except (NotPlain, NMTError, OSError, yaml.YAMLError):
            pass
    from nmt.compose.tree import by_hydra

    return by_hydra(command, words, config_dir)


def plain(command: Command, words: list[str]) -> Any:
    """The configuration of plain words; one of several exceptions for all others."""
    root = read_group(command.tree)
    schema, *entries, last = root.pop("defaults", [None, None])
    if (schema, last) != (f"{command.tree}_schema", "_self_"):
        raise NotPlain
    options = {group: option for entry in entries for group, option in entry.items()}
    values = dict[str, Any]()
    for key, value in given(command, words, [*options]):
        if key in values:
            raise NotPlain
        values[key] = value
    tree = {group: read_group(f"{group}/{values.pop(group, option)}") for group, option in options.items()} | root
    for key, value in values.items():
        group, _, name = key.rpartition(".")
        (tree.setdefault(group, {}) if group else tree)[name] = value
    return build(command.config, tree, command.name)


def read_group(name: str) -> dict[str, Any]:
    """The keys in a file of conf/ whose values are as they stand there."""
    text = (conf_folder() / f"{name}.yaml").read_text(encoding="utf-8")
    tree = yaml.safe_load(text) or {}
    if "${" in text or "@package" in text or ("/" in name and "defaults" in tree):
        raise NotPlain
    return tree


def given(command: Command, words: list[str], groups: list[str]) -> Iterator[tuple[str, Any]]:
    """The keys and values that words stand for; for one of `groups` the name of an option."""
    bare = [word for word in words if is_bare(word) or is_entry(command, word)]
    for key, value in command.words(bare).items() if bare else ():
        yield key, [verbatim(text) for text in value] if isinstance(value, list) else verbatim(value)
    for word in words:
        if word not in bare:
            key, _, text = word.partition("=")
            yield key, value_of(command, key, text, groups)


def verbatim(text: Any) -> str:
    if not isinstance(text, str) or NOT_VERBATIM.fullmatch(text):
        raise NotPlain
    return text


def value_of(command: Command, key: str, text: str, groups: list[str]) -> Any:
    """The value of an override, by the types of its key."""
    kinds = type_of(command.config, key)[0] if KEY.fullmatch(key) else ()
    if key in groups and OPTION.fullmatch(text):
        return text
    if key in command.texts:
        return verbatim(text)
    if (str in kinds or Any in kinds) and NAME.fullmatch(text):
        return text
    if str not in kinds:
        for kind, form in ((bool, re.compile("true|false")), (int, WHOLE), (float, DECIMAL)):
            if kind in kinds and form.fullmatch(text):
                return text == "true" if kind is bool else kind(text)
    raise NotPlain
