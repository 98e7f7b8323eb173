"""Hydra: from the YAML groups under `conf/` and `KEY=VALUE` overrides to plain dataclasses.

Nothing outside this folder needs Hydra, and nothing below it has seen a DictConfig.
"""

from nmt.compose.command import Command, Option
from nmt.compose.compose import compose, compose_tree, to_yaml
from nmt.compose.options import command_groups, command_options, conf_folder, groups
from nmt.compose.overrides import set_text, set_texts
from nmt.compose.sweeps import expand

__all__ = [
    "Command",
    "Option",
    "command_groups",
    "command_options",
    "compose",
    "compose_tree",
    "conf_folder",
    "expand",
    "groups",
    "set_text",
    "set_texts",
    "to_yaml",
]
