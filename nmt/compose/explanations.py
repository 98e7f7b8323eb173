"""One-line explanations of mistakes in overrides and in the user's own YAML files."""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from nmt.compose.command import Command
from nmt.compose.foreign_words import our_words
from nmt.compose.groups import command_groups, key_help
from nmt.compose.overrides import ENVIRONMENT, KEY, check_interpolations, parse
from nmt.compose.words import exists
from nmt.config import RENAMED, check_flag, number_words, shown, type_of
from nmt.errors import NMTError
from nmt.files import check_tree


def check_overrides(command: Command, overrides: list[str], config_dir: Path | None) -> None:
    """NMTError for the first override that cannot be parsed, or names an unknown key or option."""
    known_groups = command_groups(command, config_dir)
    for text in overrides:
        override = parse(text)
        if override is None:
            raise NMTError(f"{shown(text)!r} cannot be read; quote special characters: 'KEY=\"VALUE\"'")
        if not override.key_or_group:
            raise NMTError(f"{text!r} is not KEY=VALUE; `nmt {command.name} --help` lists the keys")
        check_key(command, override, known_groups, text)
        if override.is_sweep_override():
            sweeps = ", and --sweep trains with each value in turn" if "--sweep" in command.options else ""
            raise NMTError(f"{text}: one value, please; lists are written [a,b]{sweeps}")
        value = None if override.is_delete() else override.value()
        check_interpolations(text, value, KEY)
        key = override.key_or_group
        if key in known_groups and value not in known_groups[key][1] and (key, value) != ("experiment", None):
            shown_value = "null" if value is None else value
            raise NMTError(f"{key}={shown_value}: no such option; {nearest(str(value), known_groups[key][1])}")


def check_key(command: Command, override: Override, known_groups: dict[str, Any], text: str) -> None:
    """NMTError for an unknown key; it names the new key for a renamed one, and ours for another toolkit's.

    `text` is the override as it was typed: it may have been meant as a file, or as a text.
    """
    key, keys = override.key_or_group, key_help(command.config)
    if RENAMED.get(key) in keys:
        raise NMTError(f"{key}: it is called {RENAMED[key]} now")
    if key.startswith("trainer.") and "trainer" in known_groups:
        check_flag(key.split(".")[1])
    if key not in known_groups and not any(f"{name}.".startswith(f"{key}.") for name in keys):
        if exists(Path(text)):
            raise NMTError(f"unknown key {key}; to name the file, write ./{text}")
        group, _, own = key.rpartition(".")
        ours = our_words(command.name, key)
        if any(name.startswith(f"{group}.") for name in keys) and our_words(command.name, own):
            ours = f"{group}.{our_words(command.name, own)}"
        near = nearest_key(key, [*keys, *known_groups])
        if "text" in command.texts and " " in text and not near.startswith("did you mean"):
            near = f"for a text, write text='{text}'"
        raise NMTError(ours or f"unknown key {key}; {near}")


def explain_option(command: Command, word: str, following: str = "") -> str:
    """The answer to a word that begins with a dash: the file, or the key without dashes, ours, or the nearest.

    `following` is the next word on the command line, which may be its value.
    """
    name, _, value = word.lstrip("-").partition("=")
    key, keys = name.replace("-", "_"), [*key_help(command.config), *command_groups(command)]
    if exists(Path(word)):
        return f"{word}: to name this file, write ./{word}"
    if key in keys:
        switch = "true" if bool in type_of(command.config, key)[0] else "VALUE"
        value = value or ("" if following.startswith("-") or "=" in following else following) or switch
        return f"{word}: options are written KEY=VALUE, as {key}={value}"
    return our_words(command.name, word) or f"{word}: no such option or key; {nearest_key(key, keys)}"


def explain(command: Command, overrides: list[str], config_dir: Path | None, error: Exception) -> str:
    """Explain a failed composition in one line: the wrong override or file, and what is allowed."""
    key = str(getattr(error.__cause__ or error, "full_key", ""))
    for text in overrides:
        override = parse(text)
        if override and override.key_or_group == key:
            return f"{text}: {wanted(command.config, key) or one_line(error)}"
    message = one_line(error)
    value = re.search(r"Value '(.*)' of type '\w+' ", message)
    file = re.match(r"In '([^']+)'", message)
    if value and file and wanted(command.config, key):
        return f"{file[0]}: {key}={shown(value[1])}: {wanted(command.config, key)}"
    return explain_own_groups(config_dir, list(command_groups(command, config_dir)), message) if config_dir else message


def wanted(config: type, key: str) -> str:
    """The values that a key takes, in words; empty if its type does not say."""
    kinds, limits = type_of(config, key)
    null = ", or null" if type(None) in kinds else ""
    if limits:
        return f"must be {number_words(limits)}{null}"
    names = {bool: "true or false", str: "a text"}
    return next((f"must be {name}{null}" for kind, name in names.items() if kind in kinds), "")


def check_sizes(config_dir: Path) -> None:
    """NMTError for a file of one's own that cannot be read to its end: a pipe, or aliases for too many values."""
    for file in config_dir.glob("*/**/*.yaml"):
        if file.is_fifo():
            raise NMTError(f"{file}: a pipe, not a file")
        try:
            tree = yaml.safe_load(file.read_text(encoding="utf-8"))
        except (yaml.YAMLError, ValueError, ArithmeticError, AttributeError, OSError, RecursionError):
            continue  # Hydra says what is wrong, if it reads this file
        try:
            check_tree(tree, values_in, OWN_VALUES)
        except ValueError as error:
            raise NMTError(f"{file}: {error}") from error


def values_in(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


OWN_VALUES = 10_000
"""Most values in a file of one's own."""


def check_own_groups(tree: DictConfig, config_dir: Path, experiment: str) -> None:
    """NMTError for what Hydra accepts silently: keys that are never read, and values that depend on the clock.

    `experiment` is the chosen one.
    """
    if OmegaConf.select(tree, "experiment"):
        file = config_dir / "experiment" / f"{experiment}.yaml"
        raise NMTError(f"{file}: its keys are not read; its first line has to be # @package _global_")
    check_interpolations(f"--config-dir {config_dir}", OmegaConf.to_container(tree, resolve=False), KEY, ENVIRONMENT)


def explain_own_groups(config_dir: Path, groups: list[str], message: str) -> str:
    """Hydra's message about a file of one's own, or what to write there if that is known."""
    found = re.match(r"In '([^']+)'", message)
    file = config_dir / f"{found[1]}.yaml" if found else None
    if file is None or not file.is_file():
        return message
    if "@experiment." in message:  # Hydra looks for the groups below the file's own
        return f"{file}: its first line has to be # @package _global_"
    # A line such as `model: tiny` or `- override model: tiny`, which Hydra takes for something else.
    choice = rf"^(?:defaults:.*[\[,] *| *- *)?(?:override +)?({'|'.join(groups)}): +([\w./-]+)"
    if chosen := re.search(choice, file.read_text(encoding="utf-8", errors="replace"), flags=re.M):
        return f"{file}: {chosen[1]}={chosen[2]} is chosen by defaults: [override /{chosen[1]}: {chosen[2]}]"
    return f"{file}: {message}"


def where_missing(command: Command, key: str, config_dir: Path) -> str:
    """The hint that a file of one's own can inherit the values that it does not set."""
    group = key.split(".")[0]
    known_groups = command_groups(command, config_dir)
    if group not in known_groups or group == key:
        return ""
    default, options = known_groups[group]
    return f", or begin the file in {config_dir / group} with defaults: [{'files' if 'files' in options else default}]"


def nearest(word: str, words: list[str]) -> str:
    """ "did you mean X?", or all of the words if none is near."""
    matches = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else f"there are {', '.join(words)}"


def nearest_key(key: str, keys: list[str]) -> str:
    """The nearest key by its last part, in its own group first; else the keys of that group."""
    group, _, own = key.rpartition(".")
    if "." in group and group in keys:
        return f"did you mean {group}?"
    siblings = [name for name in keys if group and name.startswith(f"{group}.")]
    for names, cutoff in ((siblings or [name for name in keys if "." not in name], 0.6), (keys, 0.75)):
        last = {name.rpartition(".")[2]: name for name in names}
        if matches := difflib.get_close_matches(own, last, n=1, cutoff=cutoff):
            return f"did you mean {last[matches[0]]}?"
    return f"there are {', '.join(siblings or dict.fromkeys(name.split('.')[0] for name in keys))}"


def one_line(error: BaseException) -> str:
    """An error's message and its cause's in one line, in our words where a variable or a key is not there."""
    parts = [str(error)] + ([str(error.__cause__)] if error.__cause__ else [])
    lines = [line.strip() for part in parts for line in part.splitlines() if line.strip()]
    said = " ".join(line for line in lines if not re.match(r"(object_type|reference_type|To append)", line))
    key = getattr(error, "full_key", None)
    if found := re.search(r"Environment variable '([^']+)' not found", said):
        return f"{key}: the environment variable {found[1]} is not set"
    if found := re.search(r"Interpolation key '([^']+)' not found", said):
        return f"{key}: there is no key {found[1]} that ${{{found[1]}}} could name"
    # Without the folders that Hydra looked in.
    return said.partition(" Config search path:")[0].removesuffix(" full_key:")
