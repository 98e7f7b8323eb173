"""How much time a run with `minutes=` has, and how much it needs besides updates."""

import os
import re
import time
from pathlib import Path

from nmt.config import ExperimentConfig
from nmt.training.launcher import is_first_process, is_task_of_slurm
from nmt.training.run_folder import list_checkpoints, read_config

MINUTES = "-[0-9][0-9.e+]*min"
"""The suffix of a run's name, a regular expression."""

VALIDATIONS = 4
"""The number of validations during training, if the speed does not change."""

VALIDATION_SECONDS = 4.0
"""Minimum seconds of a validation until one has been measured (small model, two cores)."""

VALIDATION_UPDATES = 8.0
"""Until one has been measured, a validation takes at least as long as this many updates.

On a busy machine, both take longer.
"""

FINAL_VALIDATIONS = 4
"""The end of a run takes as long as this many validations: the last, and three for averages."""

AIM = 0.97
"""Share of the time after which a run should end; the rest is for unforeseen delays."""


class Clock:
    """Measures how long the command of this process has been running."""

    def __init__(self) -> None:
        self.started = 0.0

    def start(self, at: float) -> None:
        """Set when the command began, on the clock of time.monotonic()."""
        self.started = at

    def seconds(self) -> float:
        return time.monotonic() - self.started


command_clock = Clock()
"""`settle` starts it before training; later, the callback Replan reads it."""


def seconds_beside(limit: float) -> float:
    """Seconds that a run of `limit` seconds needs besides its updates.

    They are the time until now, the validations, and the end of the run.
    """
    # FINAL_VALIDATIONS includes the last validation.
    validations = VALIDATIONS - 1 + FINAL_VALIDATIONS
    unforeseen = (1 - AIM) * limit
    return command_clock.seconds() + validations * VALIDATION_SECONDS + unforeseen


def assumed_validation(update_seconds: float) -> float:
    """The time of a validation that has not been measured, from the time of an update."""
    return max(VALIDATION_SECONDS, VALIDATION_UPDATES * update_seconds)


def is_launched() -> bool:
    """Whether Lightning launched this process for a run that another process has opened."""
    # torchrun and srun start all processes, so Lightning launches none.
    if "TORCHELASTIC_RUN_ID" in os.environ or is_task_of_slurm():
        return False
    return not is_first_process()


def base_name(run: Path) -> str:
    """mine-30min -> mine"""
    return re.sub(f"{MINUTES}$", "", run.name)


def begun(run: Path) -> dict[float, Path]:
    """Minutes -> folder, for the runs that minutes= began under this run's name.

    A launched process finds the settings of its run there before the first checkpoint.
    """
    pattern = f"{re.escape(base_name(run))}({MINUTES})?"
    folders = {}
    for file in run.parent.glob("*/config.yaml"):
        folder = file.parent
        if not re.fullmatch(pattern, folder.name):
            continue
        # A folder that a failed attempt left does not count as begun.
        is_trained = list_checkpoints(folder) or (folder / "model").exists()
        if is_trained or is_launched():
            minutes = read_config(folder).get("minutes")
            # Not null: a run without minutes= may have such a name, too.
            if isinstance(minutes, int | float):
                folders[float(minutes)] = folder
    return folders


def seconds_of(config: ExperimentConfig) -> float:
    """The time for the run of this configuration, which may continue a shorter one."""
    assert config.minutes is not None
    spent = 0.0
    for minutes in begun(Path(config.run)):
        # The run continues the longest of the shorter runs, whose minutes are part of the total.
        if minutes < config.minutes:
            spent = max(spent, minutes)
    return 60 * (config.minutes - spent)


def setting(config: ExperimentConfig) -> str:
    """The option that limits the time, as the user knows it."""
    if config.trainer.max_time is not None and not config.minutes_settles:
        return f"trainer.max_time={config.trainer.max_time}"
    return f"minutes={config.minutes:g}"
