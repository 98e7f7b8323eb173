"""`nmt train`: from a prepared corpus to an averaged model."""

import sys
from pathlib import Path

from nmt.commands.console import talker
from nmt.compose import Command, Option
from nmt.config import ExperimentConfig
from nmt.errors import NMTError


def run(config: ExperimentConfig) -> int | None:
    """Train, or go on training, the run of a configuration."""
    from nmt.data.manifest import read_manifest

    console = talker()
    read_manifest(Path(config.prepared))  # before the seconds that Lightning takes to load
    with console.status("loading"):
        from nmt.training.train import train

    number = train(config, console)
    if number is None:
        return None
    console.print(f"stopped and saved in {config.run}; the same command goes on from there")
    return 128 + number


def sweep(overrides: list[str], config_dir: Path | None, options: set[str]) -> int | None:
    """Train with each of several values; with --dry-run print the commands."""
    if "--sweep" not in options:
        raise NMTError("--dry-run prints the commands of a --sweep; --cfg prints the configuration of one training")
    console = talker()
    with console.status("composing"):
        from nmt.commands.sweep import command_lines, plan, train_points

        points = plan(COMMAND, overrides, config_dir)
    if "--dry-run" not in options:
        return train_points(points, console)
    sys.stdout.write(command_lines(points))
    return None


COMMAND = Command(
    "train",
    "Train a model, or go on where it stopped.",
    ExperimentConfig,
    run,
    options={
        "--sweep": Option(
            "Train with each of several values, KEY=A,B or KEY=range(1,4), one after another.", run=sweep
        ),
        "--dry-run": Option("With --sweep: print the command of each training, and start none.", run=sweep),
    },
    memory="other programs may have taken it since training began; the same command goes on from the last checkpoint",
)
