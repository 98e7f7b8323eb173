"""YAML groups in `conf/` and `KEY=VALUE` overrides become plain dataclasses, by Hydra."""

import re
from pathlib import Path
from typing import Any

import yaml
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.compose.command import Command
from nmt.compose.explanations import check_overrides, check_own_groups, check_sizes, explain, one_line, where_missing
from nmt.compose.groups import hydra_tree
from nmt.compose.overrides import literal, name_words, set_text
from nmt.config import as_list
from nmt.data import IN_TRAINING, difference, flatten
from nmt.errors import NMTError


def compose_tree(command: Command, words: list[str], config_dir: Path | None = None) -> DictConfig:
    """Compose the YAML tree of a command with overrides; NMTError if that fails."""
    overrides, settled = name_words(command, words)
    if config_dir is not None and not config_dir.is_dir():
        raise NMTError(f"--config-dir {config_dir}: no such folder")
    check_overrides(command, overrides, config_dir)
    if config_dir is not None:
        check_sizes(config_dir)
    search = [set_text("hydra.searchpath", [f"file://{config_dir.resolve()}"])] if config_dir else []
    try:
        tree = hydra_tree(command, [*search, *overrides])
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise NMTError(f"a file below --config-dir {config_dir} is no YAML: {one_line(error)}") from error
    except RecursionError as error:
        raise NMTError(f"a file below --config-dir {config_dir} is nested too deeply, or includes itself") from error
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise NMTError(explain(command, overrides, config_dir, error)) from error
    if config_dir:
        experiments = [word.split("=")[1] for word in overrides if re.match(r"\+*experiment=", word)]
        check_own_groups(tree, config_dir, experiments[-1] if experiments else "null")
    keys = [word.partition("=")[0].lstrip("+~") for word in overrides]
    if init := tree.get("init"):
        for group, values in command.initial(str(init)).items():
            # What was asked for otherwise stays, and is compared with the model when it is loaded.
            unset = {key: value for key, value in values.items() if not {group, f"{group}.{key}"} & {*keys}}
            settle(tree, group, unset, [])
    for group, values in settled.items():
        settle(tree, group, values, keys)
    command.complete(tree, keys)
    return tree


def settle(tree: DictConfig, group: str, values: dict[str, Any], keys: list[str]) -> None:
    """Set a group to the values of an untrusted file; NMTError if the overrides of `keys` say otherwise."""
    try:
        given = flatten(OmegaConf.to_container(tree[group], resolve=True), f"{group}.")  # type: ignore[arg-type]
        OmegaConf.update(tree, group, literal(values))
    except OmegaConfBaseException as error:
        raise NMTError(one_line(error)) from error
    known = flatten(values, f"{group}.")
    # Only what `keys` set is compared. A single text counts as a list of one, null as an empty list.
    said = [key for key in known if any(f"{key}.".startswith(f"{name}.") for name in keys)]
    for key in [key for key in said if key.split(".")[1] in IN_TRAINING]:
        said.remove(key)
        OmegaConf.update(tree, key, given[key])
    given |= {key: as_list(given[key]) for key in said if isinstance(known[key], list)}
    if changed := difference({key: known[key] for key in said}, {key: given.get(key) for key in said}):
        raise NMTError(f"the corpus was prepared with another configuration ({changed}): leave {group} out")


def by_hydra(command: Command, words: list[str], config_dir: Path | None = None) -> Any:
    """The configuration of a command, as its dataclass, checked."""
    tree = compose_tree(command, words, config_dir)
    try:
        return OmegaConf.to_object(tree)
    except OmegaConfBaseException as error:
        key = str(getattr(error, "full_key", None))
        if "Missing mandatory value" in str(error) or "MissingMandatoryValue" in type(error).__name__:
            hint = where_missing(command, key, config_dir) if config_dir else ""
            raise NMTError(f"{key}: a value is needed; pass {key}=VALUE{hint}") from error
        raise NMTError(one_line(error)) from error


def to_yaml(tree: DictConfig) -> str:
    """The composed tree as YAML, with interpolations resolved; NMTError for one that cannot be."""
    try:
        return OmegaConf.to_yaml(tree, resolve=True)
    except OmegaConfBaseException as error:
        raise NMTError(one_line(error)) from error
