"""Hydra: from the YAML groups under `conf/` and `KEY=VALUE` overrides to plain dataclasses.

Nothing below this file has seen a DictConfig.
"""

import difflib
import itertools
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, IntervalSweep, Override, Quote, QuotedString, RangeSweep
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.config import (
    AttentionConfig,
    AverageConfig,
    ExportConfig,
    ParseConfig,
    PreprocessAndTrainConfig,
    ReportConfig,
    ReproduceConfig,
    ScoreConfig,
    TranslateConfig,
    field_help,
)
from nmt.errors import NMTError

TREES: dict[str, tuple[str, type]] = {
    "preprocess": ("preprocess_and_train", PreprocessAndTrainConfig),
    "train": ("preprocess_and_train", PreprocessAndTrainConfig),
    "translate": ("translate", TranslateConfig),
    "parse": ("parse", ParseConfig),
    "score": ("score", ScoreConfig),
    "average": ("average", AverageConfig),
    "export": ("export", ExportConfig),
    "report": ("report", ReportConfig),
    "attention": ("attention", AttentionConfig),
    "reproduce": ("reproduce", ReproduceConfig),
}
BARE_WORDS = {"report": "run", "export": "checkpoint", "attention": "sentence", "reproduce": "table"}
"""The key that a word without = is the value of."""
TEXTS = {"attention": ("target",), "translate": ("source_prefix", "target_prefix")}
"""Keys whose values are running text, with commas, brackets and blanks at the end that need no quotes."""


def conf_folder() -> Path:
    """The groups that come with nmt: inside the package where it was installed from a wheel, else beside it."""
    installed = Path(__file__).parent / "conf"
    return installed if installed.is_dir() else Path(__file__).parent.parent / "conf"


def name_bare_word(command: str, overrides: list[str]) -> list[str]:
    """`runs/x` -> `run='runs/x'`, where the command takes a word without =; NMTError for a second one."""
    key = BARE_WORDS.get(command)
    # A path may hold a =, as runs/heads=4, and so may a sentence; a key holds neither slash nor blank.
    bare = [word for word in overrides if key and ("=" not in word or re.search(r"[/\s]", word.partition("=")[0]))]
    if not bare:
        return overrides
    if len(bare) > 1 or any(word.startswith(f"{key}=") for word in overrides):
        raise NMTError(f"{bare[-1]}: `nmt {command}` takes one {key}; {overrides[0]} is given too")
    # In Hydra's quotes a quote is escaped by a backslash, and so are the backslashes before one.
    quoted = re.sub(r"(\\*)('|$)", lambda found: 2 * found[1] + found[2].replace("'", "\\'"), bare[0])
    return [f"{key}='{quoted}'" if word == bare[0] else word for word in overrides]


def quote_text(command: str, word: str) -> str:
    """The override of a key for running text, quoted where Hydra would take that for something else.

    What is null, or quoted in Hydra's way, stays so.
    """
    key, _, value = word.partition("=")
    if key not in TEXTS.get(command, ()):
        return word
    parsed = parse(word)
    understood = parsed is not None and not parsed.is_sweep_override() and isinstance(parsed.value(), str | None)
    return word if understood and (value == "null" or value.startswith(("'", '"'))) else set_text(key, value)


def compose_tree(command: str, overrides: list[str], config_dir: Path | None = None) -> DictConfig:
    """The YAML tree of a command after the overrides; NMTError in one line where that fails."""
    root, schema = TREES[command]
    overrides = [quote_text(command, word) for word in name_bare_word(command, overrides)]
    ConfigStore.instance().store(name=f"{root}_schema", node=schema)
    if config_dir is not None and not config_dir.is_dir():
        raise NMTError(f"--config-dir {config_dir}: no such folder")
    check_overrides(command, overrides, config_dir)
    search = [f"hydra.searchpath=[file://{config_dir.resolve()}]"] if config_dir else []
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        try:
            shadowed = [override for override in map(parse, overrides) if override and is_shadowed(command, override)]
            texts = [override.input_line for override in shadowed]
            tree = hydra_compose(root, [*search, *(text for text in overrides if text not in texts)])
            for override in shadowed:
                OmegaConf.update(tree, override.key_or_group, override.value())
            return tree
        except yaml.YAMLError as error:
            raise NMTError(f"a file below --config-dir {config_dir} is no YAML: {one_line(error)}") from error
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            raise NMTError(explain(command, overrides, config_dir, error)) from error


def is_shadowed(command: str, override: Override) -> bool:
    """True for a key of a command that has the name of another command's group, for which Hydra would take it."""
    key = override.key_or_group
    others = key in groups() and key not in command_groups(command)
    return others and key in get_type_hints(TREES[command][1]) and not override.is_delete()


def parse(text: str) -> Override | None:
    """An override as Hydra understands it; None where it does not."""
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException:
        return None


def check_overrides(command: str, overrides: list[str], config_dir: Path | None) -> None:
    """NMTError for what Hydra lets pass in silence: an unknown option of a group, an added key that nothing reads."""
    parsed = [override for override in map(parse, overrides) if override]
    known_groups = command_groups(command, config_dir)
    for override in parsed:
        key = override.key_or_group
        if override.is_sweep_override():
            sweeps = ", and --sweep trains with each value in turn" if command == "train" else ""
            raise NMTError(f"{override.input_line}: one value, please; lists are written [a,b]{sweeps}")
        value = None if override.is_delete() else override.value()
        wanted = key in known_groups and not (key == "experiment" and value is None)
        if wanted and value not in known_groups[key][1]:
            shown = "null" if value is None else value
            raise NMTError(f"{key}={shown}: no such option; {nearest(str(value), known_groups[key][1])}")
    if any(override.is_add() for override in parsed):
        keys = [option.key for option in command_options(command)]
        for override in parsed:
            key = override.key_or_group
            if override.is_add() and key not in [*keys, *known_groups] and not key.startswith("trainer."):
                raise NMTError(f"unknown key {key}; {nearest_key(key, [*keys, *known_groups])}")


def expand(
    command: str, overrides: list[str], config_dir: Path | None = None
) -> list[tuple[dict[str, str], list[str]]]:
    """The points of a sweep, the last key's values changing first: the value of each swept key, and all overrides.

    What is no sweep, or cannot be parsed, stays as it is. Raises NMTError where a sweep has no end, order or values.
    """
    parsed = [parse(text) for text in overrides]
    swept = {place: override for place, override in enumerate(parsed) if override and override.is_sweep_override()}
    for place, override in swept.items():
        for later in parsed[place + 1 :]:
            if later and later.key_or_group == override.key_or_group:
                raise NMTError(f"{override.input_line}: {later.input_line} behind it takes its place; leave one out")
    known_groups = command_groups(command, config_dir)
    choices = [
        [f"{swept[place].get_key_element()}={value}" for value in swept_values(swept[place], known_groups)]
        if place in swept
        else [text]
        for place, text in enumerate(overrides)
    ]
    return [
        ({override.key_or_group: shown_value(words[place]) for place, override in swept.items()}, list(words))
        for words in itertools.product(*choices)
    ]


def swept_values(override: Override, known_groups: dict[str, tuple[str, list[str]]]) -> list[str]:
    """What a sweep offers, each as it is written behind KEY=; never empty."""
    text, key, sweep = override.input_line, override.key_or_group, override.value()
    if isinstance(sweep, IntervalSweep):
        raise NMTError(f"{text}: an interval has no end of values; write range(START,STOP,STEP), or the values")
    if isinstance(sweep, ChoiceSweep | RangeSweep) and sweep.shuffle:
        raise NMTError(f"{text}: the order of a sweep is not left to chance; leave shuffle out")
    if isinstance(sweep, RangeSweep):
        values = range_values(sweep)
    elif isinstance(sweep, Glob):
        if key not in known_groups:
            raise NMTError(f"{text}: glob is for groups; {nearest(key, list(known_groups))}")
        values = sweep.filter(known_groups[key][1])
    else:
        values = list(override.sweep_string_iterator())
    if not values:
        raise NMTError(f"{text}: no value at all")
    return values


def range_values(sweep: RangeSweep) -> list[str]:
    """The values from start to before stop. Hydra's own would be 0.1, 0.2, 0.30000000000000004, 0.4 for 0.1 to 0.4."""
    start, stop, step = (Decimal(str(number)) for number in (sweep.start, sweep.stop, sweep.step))
    return [str(start + place * step) for place in range(math.ceil((stop - start) / step))] if step else []


def shown_value(text: str) -> str:
    """The value of an override that parses, without the quotes and escapes that Hydra needs."""
    override = parse(text)
    assert override is not None
    return in_yaml(override.value())


def set_text(key: str, value: str) -> str:
    """The override that sets a key to a text, quoted where Hydra would take the text for something else."""
    plain = parse(f"{key}={value}")
    if plain and not plain.is_sweep_override() and plain.value() == value:
        return f"{key}={value}"
    return f"{key}={QuotedString(value, Quote.double).with_quotes()}"


def set_texts(key: str, values: list[str]) -> str:
    """The override that sets a key to a list of texts."""
    return f"{key}=[{','.join(QuotedString(value, Quote.double).with_quotes() for value in values)}]"


def compose(command: str, overrides: list[str], config_dir: Path | None = None) -> Any:
    """The configuration of a command as its dataclass, checked by its rules."""
    return to_config(command, compose_tree(command, overrides, config_dir))


def to_config(command: str, tree: DictConfig) -> Any:
    """A composed tree as the command's dataclass; NMTError where a value is missing or breaks a rule."""
    try:
        return OmegaConf.to_object(tree)
    except OmegaConfBaseException as error:
        key = getattr(error, "full_key", None)
        if "Missing mandatory value" in str(error) or "MissingMandatoryValue" in type(error).__name__:
            raise NMTError(f"{key}: a value is needed; pass {key}=VALUE") from error
        raise NMTError(one_line(error)) from error


def to_yaml(tree: DictConfig) -> str:
    """The composed tree, its interpolations resolved where they can be."""
    try:
        return OmegaConf.to_yaml(tree, resolve=True)
    except OmegaConfBaseException as error:
        raise NMTError(one_line(error)) from error


def one_line(error: BaseException) -> str:
    """An error's message and its cause's, without line ends."""
    parts = [str(error)] + ([str(error.__cause__)] if error.__cause__ else [])
    lines = [line.strip() for part in parts for line in part.splitlines() if line.strip()]
    return " ".join(line for line in lines if not re.match(r"(object_type|reference_type|To append)", line))


def groups(config_dir: Path | None = None) -> dict[str, list[str]]:
    """Every group and the options that lie in it; those in a folder within it are called FOLDER/NAME."""
    found: dict[str, set[str]] = {}
    for folder in filter(None, (conf_folder(), config_dir)):
        for file in folder.glob("*/**/*.yaml"):
            group, *option = file.relative_to(folder).with_suffix("").parts
            found.setdefault(group, set()).add("/".join(option))
    return {group: sorted(options) for group, options in sorted(found.items())}


def command_groups(command: str, config_dir: Path | None = None) -> dict[str, tuple[str, list[str]]]:
    """The groups that a command's tree is composed of -> default option, and all options."""
    text = OmegaConf.load(conf_folder() / f"{TREES[command][0]}.yaml")
    assert isinstance(text, DictConfig)
    chosen: dict[str, str] = {}
    for entry in text.defaults:
        if isinstance(entry, DictConfig):
            ((key, value),) = entry.items()
            chosen[str(key).removeprefix("optional ")] = str(value or "")
    return {group: (chosen[group], options) for group, options in groups(config_dir).items() if group in chosen}


@dataclass
class Option:
    """A key of a command's tree."""

    key: str
    default: str
    help: str


def command_options(command: str) -> list[Option]:
    """Every key of a command's tree with its default and its help."""
    tree = compose_tree(command, [])
    help_texts = field_help(TREES[command][1])
    for key in tree.get("trainer", {}):
        help_texts[f"trainer.{key}"] = "lightning.Trainer's flag"
    return [
        Option(
            key, "NEEDED" if OmegaConf.is_missing(*parent(tree, key)) else in_yaml(OmegaConf.select(tree, key)), text
        )
        for key, text in sorted(help_texts.items(), key=lambda item: item[0].count(".") > 0)
        if key not in ("trainer", "experiment")
    ]


def parent(tree: DictConfig, key: str) -> tuple[Any, str]:
    """The node that holds a dotted key, and the key's last part."""
    path, _, last = key.rpartition(".")
    return (OmegaConf.select(tree, path) if path else tree), last


def in_yaml(value: Any) -> str:
    """A value as one would write it behind KEY=."""
    if OmegaConf.is_list(value) or isinstance(value, list):
        return f"[{','.join(in_yaml(item) for item in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def nearest(word: str, words: list[str]) -> str:
    """ "; did you mean X?", or the words themselves where none is near."""
    matches = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else f"there are {', '.join(words)}"


def explain(command: str, overrides: list[str], config_dir: Path | None, error: Exception) -> str:
    """One line for a composition that failed: the override that is to blame, what is wrong, what is allowed."""
    known_groups = command_groups(command, config_dir)
    keys: list[str] | None = None
    for text in overrides:
        try:
            override = OverridesParser.create().parse_override(text)
        except HydraException as parse_error:
            if "=" not in text:
                return f"{text!r} is not KEY=VALUE; `nmt {command} --help` lists the keys"
            return f"{text!r} cannot be parsed ({one_line(parse_error)}); quote special characters: 'KEY=\"VALUE\"'"
        key = override.key_or_group
        if not key:
            return f"{text!r} is not KEY=VALUE; `nmt {command} --help` lists the keys"
        if key in known_groups:
            continue
        if keys is None:
            keys = [option.key for option in command_options(command)]
        if key not in keys and not override.is_add():
            return f"unknown key {key}; {nearest_key(key, [*keys, *known_groups])}"
        full_key = getattr(error.__cause__ or error, "full_key", None)
        if full_key == key:
            return f"{text}: {one_line(error.__cause__ or error).removesuffix(f'full_key: {key}').strip()}"
    return one_line(error)


def nearest_key(key: str, keys: list[str]) -> str:
    """The nearest of all keys, or those of the same group."""
    matches = difflib.get_close_matches(key, keys, n=1, cutoff=0.6)
    if matches:
        return f"did you mean {matches[0]}?"
    last = {name.rsplit(".", 1)[-1]: name for name in keys}
    matches = difflib.get_close_matches(key.rsplit(".", 1)[-1], list(last), n=1, cutoff=0.75)
    if matches:
        return f"did you mean {last[matches[0]]}?"
    group = key.split(".")[0] + "."
    siblings = [name for name in keys if name.startswith(group)] or [name for name in keys if "." not in name]
    return f"there are {', '.join(siblings)}"
