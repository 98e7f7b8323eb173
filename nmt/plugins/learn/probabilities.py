"""Probabilities of good translations for a model that has learned, as its parent had them."""

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from nmt import commands
from nmt.config import NMTError, TranslatorOptions, literal, set_text

if TYPE_CHECKING:
    from rich.console import Console

CALIBRATE = "calibrate"
"""The command of a plugin, which may not be installed."""
FILE = "quality.json"
"""Written by `nmt calibrate` into the model directory."""


def calibrate_again(
    parent: Path, model: Path, options: TranslatorOptions, console: "Console"
) -> str:
    """Calibrate a new model on the validation lines of its parent, if that is calibrated.

    A model that has been in use before keeps its calibration. Returns why the new model cannot be
    calibrated; empty if it is, or need not be.
    """
    is_calibrated = (parent / FILE).is_file() and not (model / FILE).is_file()
    if not is_calibrated or CALIBRATE not in commands.COMMANDS:
        return ""
    words = [
        set_text("run", literal(str(model))),
        set_text("like", literal(str(parent))),
        f"engine={options.compute.engine}",
        f"device={options.compute.device}",
    ]
    if options.compute.threads is not None:
        words.append(f"threads={options.compute.threads}")
    try:
        config = commands.compose(CALIBRATE, words)
        # Its table is for people who calibrate a model.
        with redirect_stdout(io.StringIO()):
            commands.COMMANDS[CALIBRATE].run(config)
    except NMTError as error:
        return str(error).partition("; ")[0]
    console.print(f"calibrated the new model on the same lines as before ({FILE})")
    return ""
