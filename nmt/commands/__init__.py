"""The commands: a file for each, with its keys, its summary and its run function.

They import heavy libraries only when they run, so that `nmt --help` answers at once.
"""

from pathlib import Path
from typing import Any

from nmt import compose as composition
from nmt.commands import (
    attention,
    average,
    cite,
    compare,
    export,
    import_model,
    parse,
    preprocess,
    report,
    score,
    serve,
    synthesise,
    train,
    translate,
    verify,
)
from nmt.compose import Command

COMMANDS: dict[str, Command] = {
    module.COMMAND.name: module.COMMAND
    for module in (
        *(preprocess, train, translate, synthesise, serve, parse, score, compare),
        *(average, export, import_model, report, attention, cite, verify),
    )
}
"""By name, in the order of `nmt --help`."""


def compose(command: str, overrides: list[str], config_dir: Path | None = None) -> Any:
    """The configuration of a command, as its dataclass, checked."""
    return composition.compose(COMMANDS[command], overrides, config_dir)
