"""What a command can be told: its groups, their options, its keys."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

from nmt.compose.command import Command
from nmt.compose.overrides import in_yaml
from nmt.config import field_help


def conf_folder() -> Path:
    """The groups that come with nmt: inside the package where it was installed from a wheel, else beside it."""
    package = Path(__file__).parents[1]
    installed = package / "conf"
    return installed if installed.is_dir() else package.parent / "conf"


def groups(config_dir: Path | None = None) -> dict[str, list[str]]:
    """Every group and the options that lie in it; those in a folder within it are called FOLDER/NAME."""
    found: dict[str, set[str]] = {}
    for folder in filter(None, (conf_folder(), config_dir)):
        for file in folder.glob("*/**/*.yaml"):
            group, *option = file.relative_to(folder).with_suffix("").parts
            found.setdefault(group, set()).add("/".join(option))
    return {group: sorted(options) for group, options in sorted(found.items())}


def command_groups(command: Command, config_dir: Path | None = None) -> dict[str, tuple[str, list[str]]]:
    """The groups that a command's tree is composed of -> default option, and all options."""
    text = OmegaConf.load(conf_folder() / f"{command.tree}.yaml")
    assert isinstance(text, DictConfig)
    chosen: dict[str, str] = {}
    for entry in text.defaults:
        if isinstance(entry, DictConfig):
            ((key, value),) = entry.items()
            chosen[str(key).removeprefix("optional ")] = str(value or "")
    return {group: (chosen[group], options) for group, options in groups(config_dir).items() if group in chosen}


def hydra_tree(command: Command, overrides: list[str]) -> DictConfig:
    """What Hydra makes of a command's root file and the overrides; raises Hydra's errors."""
    ConfigStore.instance().store(name=f"{command.tree}_schema", node=command.config)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(conf_folder()), version_base="1.3"):
        return hydra_compose(command.tree, overrides)


@dataclass
class Option:
    """A key of a command's tree."""

    key: str
    default: str
    help: str


def command_options(command: Command) -> list[Option]:
    """Every key of a command's tree with its default and its help."""
    tree = hydra_tree(command, [])
    help_texts = field_help(command.config)
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
