"""Composition by Hydra: YAML groups in `conf/` and `KEY=VALUE` overrides become plain dataclasses.

Only this folder imports Hydra, and no other one handles a DictConfig.
"""

from nmt.compose.command import Command, Option
from nmt.compose.compose import compose, compose_tree, to_yaml
from nmt.compose.overrides import set_text
from nmt.compose.sweeps import expand

__all__ = ["Command", "Option", "compose", "compose_tree", "expand", "set_text", "to_yaml"]
