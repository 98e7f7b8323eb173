"""From the YAML groups under `conf/` and `KEY=VALUE` overrides to plain dataclasses."""

import re
from pathlib import Path
from typing import Any, get_type_hints

import yaml
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nmt.compose.command import Command
from nmt.compose.explanations import check_overrides, explain, one_line
from nmt.compose.options import command_groups, groups, hydra_tree
from nmt.compose.overrides import name_bare_word, parse, quote_text, set_texts
from nmt.compose.own_groups import check_own_groups
from nmt.errors import NMTError


def compose_tree(command: Command, overrides: list[str], config_dir: Path | None = None) -> DictConfig:
    """The YAML tree of a command after the overrides; NMTError in one line where that fails."""
    overrides = [quote_text(command, word) for word in name_bare_word(command, overrides)]
    if config_dir is not None and not config_dir.is_dir():
        raise NMTError(f"--config-dir {config_dir}: no such folder")
    check_overrides(command, overrides, config_dir)
    search = [set_texts("hydra.searchpath", [f"file://{config_dir.resolve()}"])] if config_dir else []
    shadowed = [override for override in map(parse, overrides) if override and is_shadowed(command, override)]
    texts = [override.input_line for override in shadowed]
    try:
        tree = hydra_tree(command, [*search, *(text for text in overrides if text not in texts)])
        for override in shadowed:
            OmegaConf.update(tree, override.key_or_group, override.value())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise NMTError(f"a file below --config-dir {config_dir} is no YAML: {one_line(error)}") from error
    except RecursionError as error:
        raise NMTError(f"a file below --config-dir {config_dir} is nested too deeply, or includes itself") from error
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise NMTError(explain(command, overrides, config_dir, error)) from error
    if config_dir:
        experiments = [word.split("=")[1] for word in overrides if re.match(r"\+*experiment=", word)]
        check_own_groups(tree, config_dir, experiments[-1] if experiments else "null")
    return tree


def is_shadowed(command: Command, override: Override) -> bool:
    """True for a key of a command that has the name of another command's group, for which Hydra would take it."""
    key = override.key_or_group
    others = key in groups() and key not in command_groups(command)
    return others and key in get_type_hints(command.config) and not override.is_delete()


def compose(command: Command, overrides: list[str], config_dir: Path | None = None) -> Any:
    """The configuration of a command as its dataclass, checked by its rules."""
    tree = compose_tree(command, overrides, config_dir)
    try:
        return OmegaConf.to_object(tree)
    except OmegaConfBaseException as error:
        key = str(getattr(error, "full_key", None))
        if "Missing mandatory value" in str(error) or "MissingMandatoryValue" in type(error).__name__:
            hint = where_missing(command, key, config_dir) if config_dir else ""
            raise NMTError(f"{key}: a value is needed; pass {key}=VALUE{hint}") from error
        raise NMTError(one_line(error)) from error


def where_missing(command: Command, key: str, config_dir: Path) -> str:
    """How a file of one's own group gets the values that it does not set itself."""
    group = key.split(".")[0]
    known_groups = command_groups(command, config_dir)
    if group not in known_groups or group == key:
        return ""
    default, options = known_groups[group]
    return f", or begin the file in {config_dir / group} with defaults: [{'files' if 'files' in options else default}]"


def to_yaml(tree: DictConfig) -> str:
    """The composed tree, its interpolations resolved where they can be."""
    try:
        return OmegaConf.to_yaml(tree, resolve=True)
    except OmegaConfBaseException as error:
        raise NMTError(one_line(error)) from error
