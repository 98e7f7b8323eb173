"""The YAML groups in `conf/`, and the keys of a command's tree."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from hydra import compose as hydra_compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

from nmt.compose.command import Command
from nmt.compose.overrides import in_yaml
from nmt.compose.plain import conf_folder
from nmt.config import TrainerConfig, field_help


def groups(config_dir: Path | None = None) -> dict[str, list[str]]:
    """Every group -> its options; an option in a subfolder is called FOLDER/NAME."""
    found: dict[str, set[str]] = {}
    for folder in filter(None, (conf_folder(), config_dir)):
        for file in folder.glob("*/**/*.yaml"):
            group, *option = file.relative_to(folder).with_suffix("").parts
            found.setdefault(group, set()).add("/".join(option))
    return {group: sorted(options) for group, options in sorted(found.items())}


def command_groups(command: Command, config_dir: Path | None = None) -> dict[str, tuple[str, list[str]]]:
    """Every group of a command's tree -> its default option, and all of its options."""
    defaults = yaml.safe_load((conf_folder() / f"{command.tree}.yaml").read_text(encoding="utf-8"))["defaults"]
    entries = (item for entry in defaults if isinstance(entry, dict) for item in entry.items())
    chosen = {group.removeprefix("optional "): option or "" for group, option in entries}
    return {group: (chosen[group], options) for group, options in groups(config_dir).items() if group in chosen}


def hydra_tree(command: Command, overrides: list[str]) -> DictConfig:
    """Compose a command's root file and overrides by Hydra; raises Hydra's errors."""
    ConfigStore.instance().store(name=f"{command.tree}_schema", node=command.config)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return hydra_compose(command.tree, overrides)


@cache
def key_help(config: type) -> dict[str, str]:
    """Every key of a command's dataclass -> its help; keys of no group come first."""
    texts = field_help(config)
    if "trainer" in texts:
        texts |= {f"trainer.{flag}": text for flag, text in field_help(TrainerConfig).items()}
    keys = sorted(texts, key=lambda key: "." in key)
    return {key: texts[key] for key in keys if key not in ("trainer", "experiment")}


def command_keys(command: Command) -> dict[str, tuple[str, str]]:
    """Every key of a command's tree -> its default and its help."""
    tree = hydra_tree(command, [])

    def default(key: str) -> str:
        path, _, last = key.rpartition(".")
        node: Any = OmegaConf.select(tree, path) if path else tree
        return "NEEDED" if OmegaConf.is_missing(node, last) else in_yaml(OmegaConf.select(tree, key))

    return {key: (default(key), text) for key, text in key_help(command.config).items()}
