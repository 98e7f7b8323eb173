"""How `KEY=VALUE` arguments become a command's option record: Hydra composes a tree, and `build` checks it."""

import re
from functools import lru_cache, reduce
from math import log
from pathlib import Path
from typing import Any

import yaml
from hydra import compose as hydra_compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.core.plugins import Plugins
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigSource
from omegaconf import OmegaConf
from omegaconf.errors import InterpolationToMissingValueError, OmegaConfBaseException

from nmt.config.command import Command, conf_folders, groups, user_folders
from nmt.config.fields import (
    MISSING,
    answer,
    build,
    exists,
    explain,
    flatten,
    keys_of,
    nearest,
    nearest_key,
    require,
)
from nmt.config.minutes import leave_to_the_clock
from nmt.errors import NMTError, one_line
from nmt.registry import entries_of

SOURCES: Any = {source.__name__: source for source in Plugins.instance().discover(ConfigSource)}


def power_law(x1: float, y1: float, x2: float, y2: float, x: Any) -> float:
    """The power of `x` that is `y1` at `x1` and `y2` at `x2`, for defaults that depend on another key.

    An `x` that is no positive number is refused later, by the name of its key.
    """
    if not isinstance(x, int | float) or x <= 0:
        return y1
    exponent = log(y2 / y1) / log(x2 / x1)
    return float(
        f"{y1 * (x / x1) ** exponent:.6g}"
    )  # the given values exactly, and short ones between them


OmegaConf.register_new_resolver("power_law", power_law, replace=True)


class OurGroups(SOURCES["FileConfigSource"]):  # type: ignore[misc,name-defined]
    """A folder of groups. Hydra must not read its hydra/config.yaml, which may belong to another program."""

    @staticmethod
    def scheme() -> str:
        return "groups"

    def is_config(self, config_path: str) -> bool:
        return not config_path.startswith("hydra/") and super().is_config(config_path)


def compose(command: Command, words: list[str], config_dir: Path | None = None) -> Any:
    """Compose and check a command's options; NMTError at the first mistake."""
    return options_and_tree(command, words, config_dir)[0]


def options_and_tree(
    command: Command, words: list[str], config_dir: Path | None
) -> tuple[Any, Any]:
    """A command's checked options, and their tree with interpolations that are checked but not resolved."""
    overrides, settled = read_words(command, words, config_dir)
    keys = [word.partition("=")[0].lstrip("+~") for word in overrides]
    given = dict(word.split("=", 1) for word in words if "=" in word)
    for key in command.instead.keys() & given.keys():
        advice = (
            f"`nmt {command.name}` does not read this key; pass {command.instead[key]}={given[key]}"
        )
        require(command.instead[key] in given, f"{key}={given[key]}: {advice}")
    try:
        tree = hydra_tree(command, overrides, config_dir)
        initial = command.initial(str(tree.init)) if tree.get("init") else {}
        if (
            initial and "init" not in keys
        ):  # an experiment that sets init may change keys of the model
            chosen = {group: values for group, values in initial.items() if group not in keys}
            tree, initial = hydra_tree(command, overrides, config_dir, chosen), {}
        # Keys on the command line take precedence; they are checked against the model or corpus later.
        for key, value in flatten({**initial, **settled}).items():
            if not any(f"{key}.".startswith(f"{name}.") for name in keys):
                OmegaConf.update(tree, key, literal(value))
        if "minutes" in tree:
            leave_to_the_clock(tree, keys)
        raw: Any = OmegaConf.to_container(tree)
        options: Any = build(command.config, OmegaConf.to_container(tree, resolve=True))
    except InterpolationToMissingValueError as missing:
        key = next(key for key, value in flatten(raw).items() if value == MISSING)
        raise NMTError(f"{key}: a value is needed; pass {key}=VALUE") from missing
    except (
        NMTError,
        HydraException,
        OmegaConfBaseException,
        yaml.YAMLError,
        ValueError,
        RecursionError,
    ) as error:
        cause = error if isinstance(error, NMTError) else error.__cause__ or error
        for entry in entries_of("file").values():
            entry.load()(command, overrides, config_dir, cause)
        raise (
            cause
            if isinstance(cause, NMTError)
            else NMTError(one_line(cause).partition(" full_key:")[0])
        ) from error
    for entry in entries_of("file").values():
        entry.load()(command, overrides, config_dir, None)
    return options, raw


def hydra_tree(
    command: Command, overrides: list[str], config_dir: Path | None = None, initial: Any = None
) -> Any:
    """The tree that Hydra composes; `initial` replaces the groups' options but not the keys of an experiment."""
    name = f"nmt {command.name}"  # a file of this name would take precedence
    tree: Any = {
        "defaults": ["_self_", *({group: option} for group, option in command.groups.items())]
    }
    tree["defaults"].insert(-1, f"{name} init")
    for key, member in keys_of(command.config).items():
        *parts, last = key.split(".")
        reduce(lambda node, part: node.setdefault(part, {}), parts, tree)[last] = member.default
    ConfigStore.instance().store(name, tree)
    ConfigStore.instance().store(f"{name} init", literal(initial or {}))
    folders = [f"groups://{folder}" for folder in (*conf_folders()[1:], *user_folders(config_dir))]
    Plugins.instance().register(OurGroups)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_folders()[0]), version_base="1.3"):
        return hydra_compose(name, [set_text("hydra.searchpath", folders), *overrides])


def to_yaml(command: Command, words: list[str], config_dir: Path | None = None) -> str:
    """The options as YAML; if the command has experiments, the YAML is an experiment."""
    header = "# @package _global_\n" if "optional experiment" in command.groups else ""
    return header + OmegaConf.to_yaml(
        OmegaConf.create(options_and_tree(command, words, config_dir)[1])
    )


@lru_cache(maxsize=4096)
def parse(word: str) -> Override | None:
    """Parse an override with Hydra; return None if that fails."""
    try:
        return OverridesParser.create().parse_override(word)
    except (
        HydraException,
        RecursionError,
        ValueError,
    ):  # ValueError: a number has thousands of digits
        return None


def set_text(key: str, value: str | list[str]) -> str:
    """An override that sets a key to a string or list of strings, quoted if Hydra requires it."""
    if isinstance(value, list):
        return (
            f"{key}=[{','.join(QuotedString(item, Quote.double).with_quotes() for item in value)}]"
        )
    plain = parse(f"{key}={value}")
    if plain and not plain.is_sweep_override() and plain.value() == value:
        return f"{key}={value}"
    return f"{key}={QuotedString(value, Quote.double).with_quotes()}"


def literal(value: Any) -> Any:
    """Escape ${} in a value's strings, at any depth, so that OmegaConf does not interpolate them."""
    if isinstance(value, dict):
        return {key: literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [literal(item) for item in value]
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", value) if isinstance(value, str) else value


def is_bare(word: str) -> bool:
    """True for an argument that is neither KEY=VALUE nor ~KEY: no key precedes an =.

    Keys are in ASCII, without slashes and blanks.
    """
    key, equals, _ = word.partition("=")
    if not equals:
        return not re.fullmatch(r"~[\w.]+", word)
    return re.search(r"[^!-~]|/", key) is not None


def read_words(
    command: Command, words: list[str], config_dir: Path | None
) -> tuple[list[str], dict[str, Any]]:
    """Convert arguments to overrides; also return the groups that arguments without = set as a whole."""
    keys = keys_of(command.config)
    for word in words:
        # Text to translate may begin with a dash, and a lone dash means standard input.
        if word.startswith("-") and not re.search(r"\s|^-$", word):
            raise NMTError(explain(command.name, words, word, [*keys, *groups(command)]))
        in_parts = word == "=" or re.fullmatch(r"[\w.]+=\[[^\]]*,", word)
        require(not in_parts, f"{word}: write KEY=VALUE or KEY=[A,B] without spaces")
    bare = [word for word in words if is_bare(word) or is_entry(command, word)]
    named = [as_written(command, word) for word in words if word not in bare]
    # Before `command.words`, which may read large files and load libraries.
    check_overrides(command, named, config_dir, words)
    if not bare:
        return named, {}
    if command.words is None:
        raise NMTError(f"{bare[0]}: this command takes only KEY=VALUE arguments")
    values = command.words(bare)
    given = {word.partition("=")[0].lstrip("+") for word in named}
    for key in given & values.keys():
        if values[key] in (*bare, bare):
            raise NMTError(
                f"{bare[-1]}: `nmt {command.name}` takes one {key}, but {key}= is also given"
            )
    settled = {key: value for key, value in values.items() if isinstance(value, dict)}
    short = [
        set_text(key, literal(value))
        for key, value in values.items()
        if key not in {*settled, *given}
    ]
    return [*short, *named], settled


def is_entry(command: Command, word: str) -> bool:
    """True for NAME=[A,B] or NAME=PATH if the command takes such entries and NAME is neither a key nor a mistake."""
    name, _, value = word.partition("=")
    keys = [*keys_of(command.config), *groups(command)]
    if not command.entries or not re.fullmatch(r"[\w.+-]+", name) or name in keys or not value:
        return False
    if value.startswith("[") and value.endswith("]"):
        return True
    if exists(value) and Path(value).is_dir():
        return not (Path(value) / "manifest.json").exists()  # a corpus is no system
    is_mistake = answer(command.name, [word]) or nearest_key(name, keys).startswith("did you mean")
    return not is_mistake and (exists(value) or "/" in value)


def as_written(command: Command, word: str) -> str:
    """Quote a string that Hydra would read as a list or number; null and quoted strings keep their meaning."""
    key, _, value = word.partition("=")
    member = keys_of(command.config).get(key)
    if (
        member is None
        or not member.is_text
        or value == "null"
        or (value[:1] == "[" and value[-1] != "]")
    ):
        return word
    parsed = parse(word)
    meaning = parsed.value() if parsed and not parsed.is_sweep_override() else None
    if member.is_list and value.startswith("["):
        is_texts = isinstance(meaning, list) and all(isinstance(item, str) for item in meaning)
        return (
            word if is_texts else set_text(key, [item.strip() for item in value[1:-1].split(",")])
        )
    if isinstance(meaning, str) and value.startswith(("'", '"')):
        value = str(meaning)
    return set_text(key, literal(value) if "literal" in member.metadata else value)


def check_overrides(
    command: Command, overrides: list[str], config_dir: Path | None, words: list[str]
) -> None:
    """Raise NMTError for the first override that cannot be parsed or that names an unknown key or option.

    `words` are all arguments of the command, for answers that depend on them.
    """
    options, keys = groups(command, config_dir), [*keys_of(command.config)]
    for text in overrides:
        override = parse(text)
        if override is None:
            raise NMTError(
                f"{text!r:.62} cannot be parsed; quote special characters: 'KEY=\"VALUE\"'"
            )
        key = override.key_or_group
        require(bool(key), f"{text!r} is not KEY=VALUE; `nmt {command.name} --help` lists the keys")
        if key not in options and not any(f"{name}.".startswith(f"{key}.") for name in keys):
            raise NMTError(explain(command.name, words, text, [*keys, *options]))
        require(not override.is_sweep_override(), f"{text}: give one value; write a list as [a,b]")
        value = None if override.is_delete() else override.value()
        if key in options and value not in options[key][1] and (key, value) != ("experiment", None):
            near = nearest(str(value), options[key][1])
            raise NMTError(f"{text}: no such option; {near} (or write ./conf/{key}/{value}.yaml)")
