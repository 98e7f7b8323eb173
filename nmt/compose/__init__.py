"""Composition: YAML groups in `conf/` and `KEY=VALUE` overrides become plain dataclasses.

Only this folder imports Hydra, when words need it, and no other one handles a DictConfig.
"""

from nmt.compose.command import Command, Option
from nmt.compose.plain import compose

__all__ = ["Command", "Option", "compose"]
