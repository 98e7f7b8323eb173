"""`KEY=VALUE` arguments, defaults and YAML groups become the option record of a command. Only this file imports Hydra.

Hydra composes plain trees: the defaults of the command's record, the chosen files of the groups, and the overrides.
`build` then checks the result against the record.
"""

import difflib
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from hydra import compose as hydra_compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config.command import Command, exists, is_bare, is_entry
from nmt.config.corpus import IN_TRAINING
from nmt.config.fields import build, default_tree, difference, flatten, in_words, keys_of
from nmt.config.foreign_words import our_words
from nmt.errors import NMTError

FILES = ("data.train", "data.valid", "data.test", "data.extra", "data.path")
"""Keys whose values are file names, or lists of them in brackets; these need no quotes either."""


def compose(command: Command, words: list[str], config_dir: Path | None = None) -> Any:
    """The options of a command, checked; NMTError for the first mistake."""
    return build(command.config, compose_tree(command, words, config_dir))


def compose_tree(command: Command, words: list[str], config_dir: Path | None = None) -> dict[str, Any]:
    """The options of a command as a tree, with interpolations resolved; NMTError if it cannot be composed."""
    overrides, settled = name_words(command, words)
    if config_dir is not None and not config_dir.is_dir():
        raise NMTError(f"--config-dir {config_dir}: no such folder")
    check_overrides(command, overrides, config_dir)
    try:
        tree = hydra_tree(command, overrides, config_dir)
        if OmegaConf.select(tree, "experiment"):
            raise NMTError("experiment: the first line of its file has to be # @package _global_")
        keys = [word.partition("=")[0].lstrip("+~") for word in overrides]
        if init := tree.get("init"):
            for group, values in command.initial(str(init)).items():
                # Keys that were given are kept, and compared with the model when it is loaded.
                unset = {key: value for key, value in values.items() if not {group, f"{group}.{key}"} & {*keys}}
                settle(tree, group, unset, [])
        for group, values in settled.items():
            settle(tree, group, values, keys)
        command.complete(tree, keys)
        resolved: Any = OmegaConf.to_container(tree, resolve=True)
    except (HydraException, OmegaConfBaseException, yaml.YAMLError, ValueError, RecursionError) as error:
        where = f"--config-dir {config_dir}: " if config_dir and not isinstance(error, OmegaConfBaseException) else ""
        raise NMTError(where + hydra_message(error)) from error
    resolved.pop("experiment", None)
    return resolved  # type: ignore[no-any-return]


def hydra_tree(command: Command, overrides: list[str], config_dir: Path | None = None) -> DictConfig:
    """Compose the defaults of a command, its groups and overrides by Hydra; raises the errors of Hydra."""
    groups = [{group: option} for group, option in command.groups.items()]
    ConfigStore.instance().store(command.name, {"defaults": ["_self_", *groups], **default_tree(command.config)})
    folders = [folder.resolve() for folder in (*conf_folders()[1:], config_dir) if folder]
    search = [set_text("hydra.searchpath", [f"file://{folder}" for folder in folders])] if folders else []
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_folders()[0]), version_base="1.3"):
        return hydra_compose(command.name, [*search, *overrides])


@cache
def conf_folders() -> tuple[Path, ...]:
    """The folders with the groups of the core and of the plugins."""
    package = Path(__file__).parents[1]
    core = package / "conf"  # in a wheel; in a clone it is beside the package
    return (core if core.is_dir() else package.parent / "conf", *sorted((package / "plugins").glob("*/conf")))


def groups(config_dir: Path | None = None) -> dict[str, list[str]]:
    """Every group -> its options; an option in a subfolder is called FOLDER/NAME."""
    options: dict[str, set[str]] = {}
    for folder in filter(None, (*conf_folders(), config_dir)):
        for file in folder.glob("*/**/*.yaml"):
            group, *option = file.relative_to(folder).with_suffix("").parts
            options.setdefault(group, set()).add("/".join(option))
    return {group: sorted(names) for group, names in sorted(options.items())}


def command_groups(command: Command, config_dir: Path | None = None) -> dict[str, tuple[str, list[str]]]:
    """Every group of a command -> its default option, and all of its options."""
    defaults = {group.removeprefix("optional "): option or "" for group, option in command.groups.items()}
    return {group: (defaults[group], options) for group, options in groups(config_dir).items() if group in defaults}


def settle(tree: DictConfig, group: str, values: dict[str, Any], keys: list[str]) -> None:
    """Set a group to the values of an untrusted file; NMTError if the overrides of `keys` say otherwise."""
    given = flatten(OmegaConf.to_container(tree[group], resolve=True), f"{group}.")  # type: ignore[arg-type]
    OmegaConf.update(tree, group, literal(values))
    fixed = flatten(values, f"{group}.")
    overridden = [key for key in fixed if any(f"{key}.".startswith(f"{name}.") for name in keys)]
    for key in [key for key in overridden if key.split(".")[1] in IN_TRAINING]:
        overridden.remove(key)
        OmegaConf.update(tree, key, given[key])
    for key in overridden:  # a single text counts as a list of one, null as an empty list
        if isinstance(fixed[key], list) and not isinstance(given.get(key), list):
            given[key] = [] if given.get(key) is None else [str(given[key])]
    if changed := difference({key: fixed[key] for key in overridden}, {key: given.get(key) for key in overridden}):
        raise NMTError(f"the corpus was prepared with another configuration ({changed}): leave {group} out")


def to_yaml(tree: dict[str, Any]) -> str:
    return OmegaConf.to_yaml(OmegaConf.create(literal(tree)), resolve=True)


# Overrides


@lru_cache(maxsize=4096)
def parse(text: str) -> Override | None:
    """An override parsed by Hydra; None if it cannot be."""
    try:
        return OverridesParser.create().parse_override(text)
    except (HydraException, RecursionError, ValueError):  # ValueError: a number of thousands of digits
        return None


def set_text(key: str, value: str | list[str]) -> str:
    """The override that sets a key to a text or a list of texts, quoted if Hydra would misread it."""
    if isinstance(value, list):
        return f"{key}=[{','.join(QuotedString(item, Quote.double).with_quotes() for item in value)}]"
    plain = parse(f"{key}={value}")
    if plain and not plain.is_sweep_override() and plain.value() == value:
        return f"{key}={value}"
    return f"{key}={QuotedString(value, Quote.double).with_quotes()}"


def literal(value: Any) -> Any:
    """Escape ${} in the texts of a value, at any depth, so that OmegaConf does not interpolate it."""
    if isinstance(value, dict):
        return {key: literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [literal(item) for item in value]
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", value) if isinstance(value, str) else value


def name_words(command: Command, words: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The overrides that words stand for, and the groups that words without = set as a whole."""
    for word in words:
        if word == "=" or re.fullmatch(r"[\w.]+=\[[^\]]*,", word):
            raise NMTError(f"{word}: write KEY=VALUE, or KEY=[A,B], without blanks")
    bare = [word for word in words if is_bare(word) or is_entry(command, word)]
    named = [quote(command, word) for word in words if word not in bare]
    if not bare:
        return named, {}
    values = command.words(bare)
    given = {word.partition("=")[0].lstrip("+") for word in named}
    for key in given & values.keys():
        if values[key] in (*bare, bare):
            raise NMTError(f"{bare[-1]}: `nmt {command.name}` takes one {key}, and {key}= is given too")
    settled = {key: value for key, value in values.items() if isinstance(value, dict)}
    short = [set_text(key, literal(value)) for key, value in values.items() if key not in {*settled, *given}]
    return [*short, *named], settled


def quote(command: Command, word: str) -> str:
    """Quote the value of an override where Hydra or OmegaConf would misread a text.

    Running text and file names need no quotes, and a name that looks like a number stays as written: 1.10 is not 1.1.
    null, and what is quoted for Hydra already, stays as it is.
    """
    key, _, value = word.partition("=")
    parsed = parse(word)
    meaning = parsed.value() if parsed and not parsed.is_sweep_override() and not parsed.is_delete() else None
    if value == "null":
        return word
    if key in FILES and value.startswith("["):
        texts = isinstance(meaning, list) and all(isinstance(item, str) for item in meaning)
        names = [item.strip() for item in value[1:-1].split(",")]
        return set_text(key, names) if value.endswith("]") and not texts else word
    if key and key in (*command.texts, *FILES):
        text = str(meaning) if meaning is not None and value.startswith(("'", '"')) else value
        return set_text(key, text if key in FILES else literal(text))
    kinds = {*keys_of(command.config)[key].types} if key in keys_of(command.config) else set()
    is_text = str in kinds and not {int, float, bool} & kinds
    return set_text(key, value) if isinstance(meaning, int | float) and is_text else word


def check_overrides(command: Command, overrides: list[str], config_dir: Path | None) -> None:
    """NMTError for the first override that cannot be parsed, or names an unknown key or option."""
    known_groups = command_groups(command, config_dir)
    for text in overrides:
        override = parse(text)
        if override is None:
            raise NMTError(f"{text!r:.62} cannot be read; quote special characters: 'KEY=\"VALUE\"'")
        key = override.key_or_group
        if not key:
            raise NMTError(f"{text!r} is not KEY=VALUE; `nmt {command.name} --help` lists the keys")
        if key not in known_groups and not any(f"{name}.".startswith(f"{key}.") for name in keys_of(command.config)):
            raise NMTError(unknown_key(command, key, text, [*known_groups]))
        if override.is_sweep_override():
            sweeps = ", and --sweep trains with each value in turn" if "--sweep" in command.all_options else ""
            raise NMTError(f"{text}: one value, please; lists are written [a,b]{sweeps}")
        value = None if override.is_delete() else override.value()
        if key in known_groups and value not in known_groups[key][1] and (key, value) != ("experiment", None):
            raise NMTError(f"{key}={in_words(value)}: no such option; {nearest(str(value), known_groups[key][1])}")


# Explanations of mistakes


def unknown_key(command: Command, key: str, text: str, groups: list[str]) -> str:
    """What to write instead of an unknown key: the file or the text that was meant, the equivalent, or the nearest."""
    keys = [*keys_of(command.config), *groups]
    if exists(Path(text)):
        return f"unknown key {key}; to name the file, write ./{text}"
    group, _, name = key.rpartition(".")
    equivalent = our_words(command.name, name)
    if equivalent and any(other.startswith(f"{group}.") for other in keys):
        return f"{group}.{equivalent}"
    near = nearest_key(key, keys)
    if "text" in command.texts and " " in text and not near.startswith("did you mean"):
        near = f"for a text, write text='{text}'"
    return our_words(command.name, key) or f"unknown key {key}; {near}"


def explain_option(command: Command, word: str, following: str = "") -> str:
    """The answer to a word that begins with a dash: the file, or the key without dashes, ours, or the nearest.

    `following` is the next word on the command line, which may be its value.
    """
    name, _, value = word.lstrip("-").partition("=")
    key, members = name.replace("-", "_"), keys_of(command.config)
    names = [*members, *command_groups(command)]
    if exists(Path(word)):
        return f"{word}: to name this file, write ./{word}"
    if key in names:
        switch = "true" if key in members and bool in members[key].types else "VALUE"
        value = value or ("" if following.startswith("-") or "=" in following else following) or switch
        return f"{word}: options are written KEY=VALUE, as {key}={value}"
    return our_words(command.name, word) or f"{word}: no such option or key; {nearest_key(key, names)}"


def nearest(word: str, words: list[str]) -> str:
    """ "did you mean X?", or all of the words if none is near."""
    matches = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else f"there are {', '.join(words)}"


def nearest_key(key: str, keys: list[str]) -> str:
    """The nearest key by its last part, in its own group first; else the keys of that group."""
    group, _, last_part = key.rpartition(".")
    if "." in group and group in keys:
        return f"did you mean {group}?"
    siblings = [name for name in keys if group and name.startswith(f"{group}.")]
    for names, cutoff in ((siblings or [name for name in keys if "." not in name], 0.6), (keys, 0.75)):
        last = {name.rpartition(".")[2]: name for name in names}
        if matches := difflib.get_close_matches(last_part, last, n=1, cutoff=cutoff):
            return f"did you mean {last[matches[0]]}?"
    return f"there are {', '.join(siblings or dict.fromkeys(name.split('.')[0] for name in keys))}"


def hydra_message(error: BaseException) -> str:
    """The message of an error of Hydra or OmegaConf, and of its cause, on one line."""
    lines = [line.strip() for line in f"{error}\n{error.__cause__ or ''}".splitlines()]
    kept = (line for line in lines if line and not re.match(r"(object_type|reference_type|To append)", line))
    message = " ".join(kept)
    key = getattr(error, "full_key", None)
    if missing := re.search(r"Environment variable '([^']+)' not found", message):
        return f"{key}: the environment variable {missing[1]} is not set"
    if missing := re.search(r"Interpolation key '([^']+)' not found", message):
        return f"{key}: there is no key {missing[1]} that ${{{missing[1]}}} could name"
    return message.partition(" Config search path:")[0].removesuffix(" full_key:")  # without the folders
