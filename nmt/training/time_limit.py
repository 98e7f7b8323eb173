"""How much time a run with `minutes=` has, and what it needs besides updates."""

import os
import re
from pathlib import Path

from nmt.config import ExperimentConfig
from nmt.training.run_folder import is_first_process, list_checkpoints, read_config

MINUTES = "-[0-9][0-9.e+]*min"  # the suffix of a run's name

VALIDATION_SECONDS = 4.0
"""Least time for a validation until one has been measured (small model, two cores)."""

VALIDATION_UPDATES = 8.0
"""Until one has been measured, a validation takes at least as long as this many updates.

On a busy machine, both take longer.
"""

FINAL_VALIDATIONS = 4
"""The end of a run takes as long as this many: the last validation, three for the averages."""

AIM = 0.97
"""Share of the time after which a run should end; the rest is for what nobody can foresee."""


def assumed_validation(update_seconds: float) -> float:
    """The time of a validation that has not been measured, from the time of an update."""
    return max(VALIDATION_SECONDS, VALIDATION_UPDATES * update_seconds)


def is_launched() -> bool:
    """Whether Lightning launched this process for a run that another process has opened."""
    by_others = {"TORCHELASTIC_RUN_ID", "SLURM_NTASKS"} & os.environ.keys()
    return not by_others and not is_first_process()


def begun(run: Path) -> dict[float, Path]:
    """Minutes -> folder, for the runs that minutes= began under this run's name.

    A launched process finds the settings of its run there before the first checkpoint.
    """
    name = re.escape(re.sub(f"{MINUTES}$", "", run.name))  # mine-30min -> mine
    beside = [file.parent for file in run.parent.glob("*/config.yaml")]
    runs = [folder for folder in beside if re.fullmatch(f"{name}({MINUTES})?", folder.name)]
    folders = {}
    for folder in runs:
        is_trained = list_checkpoints(folder) or (folder / "model").exists()
        if is_trained or is_launched():
            minutes = read_config(folder).get("minutes")
            if isinstance(minutes, int | float):
                folders[float(minutes)] = folder
    return folders


def seconds_of(config: ExperimentConfig) -> float:
    """The time for the run of this configuration, which may continue a shorter one."""
    assert config.minutes is not None
    shorter = [minutes for minutes in begun(Path(config.run)) if minutes < config.minutes]
    return 60 * (config.minutes - max(shorter, default=0.0))
