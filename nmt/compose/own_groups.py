"""What is wrong in the YAML files of a folder of one's own (`--config-dir`), and what to write instead, in one line."""

import re
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from nmt.compose.overrides import ENVIRONMENT, KEY, check_interpolations
from nmt.errors import NMTError


def check_own_groups(tree: DictConfig, config_dir: Path, experiment: str) -> None:
    """NMTError for what Hydra lets pass in silence: keys that nobody reads, and values that depend on the clock.

    `experiment` is the one that was chosen.
    """
    if OmegaConf.select(tree, "experiment"):
        file = config_dir / "experiment" / f"{experiment}.yaml"
        raise NMTError(f"{file}: its keys are not read; its first line has to be # @package _global_")
    check_interpolations(f"--config-dir {config_dir}", OmegaConf.to_container(tree, resolve=False), KEY, ENVIRONMENT)


def explain_own_groups(config_dir: Path, groups: list[str], message: str) -> str:
    """What Hydra says of a file, with what to write there where that can be told."""
    found = re.match(r"In '([^']+)'", message)
    file = config_dir / f"{found[1]}.yaml" if found else None
    if file is None or not file.is_file():
        return message
    if found and "@experiment." in message:  # Hydra looks for the groups below the file's own
        return f"{file}: its first line has to be # @package _global_"
    for group, option in chosen_groups(file, groups):
        return f"{file}: {group}={option} is chosen by defaults: [override /{group}: {option}]"
    return f"{file}: {message}"


def chosen_groups(file: Path, groups: list[str]) -> list[tuple[str, str]]:
    """The groups and options that a file means to choose, but in words that Hydra takes for something else."""
    try:
        content = OmegaConf.to_container(OmegaConf.load(file))
    except (OmegaConfBaseException, YAMLError, OSError, ValueError):
        return []
    if not isinstance(content, dict):
        return []
    listed = content.get("defaults")
    entries: list[Any] = [content, *(listed if isinstance(listed, list) else [])]
    pairs = [(str(key), value) for entry in entries if isinstance(entry, dict) for key, value in entry.items()]
    words = [(key.removeprefix("override ").strip(), value) for key, value in pairs]
    return [(group, value) for group, value in words if group in groups and isinstance(value, str)]
