"""The commands: a file for each verb, with its keys, its summary, and what it does.

They import what they need when they run, so that `nmt --help` answers at once.
"""

from pathlib import Path
from typing import Any

from nmt import compose as composition
from nmt.commands import attention, average, export, parse, preprocess, report, score, train, translate
from nmt.compose import Command

COMMANDS: dict[str, Command] = {
    module.COMMAND.name: module.COMMAND
    for module in (preprocess, train, translate, parse, score, average, export, report, attention)
}
"""By their names, in the order of `nmt --help`."""


def compose(command: str, overrides: list[str], config_dir: Path | None = None) -> Any:
    """The configuration of a command as its dataclass, checked by its rules."""
    return composition.compose(COMMANDS[command], overrides, config_dir)
