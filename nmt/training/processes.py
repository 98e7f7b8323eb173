"""The first process of those that train together. Imports nothing that takes time to load."""

import os
from collections.abc import Mapping


def is_first_process(environment: Mapping[str, str] = os.environ) -> bool:
    """True in the one process that talks and writes, by the variables that its launcher has set.

    The launchers are asked in the order in which Lightning looks for them, and their variables stay as they are when
    the process group is made, so that the answer holds before and after.
    """
    if "TORCHELASTIC_RUN_ID" in environment:
        return environment["RANK"] == "0"
    if in_slurm(environment):
        return environment["SLURM_PROCID"] == "0"
    # Lightning launches the processes of a node itself, and a person tells each node its number.
    node = environment.get("NODE_RANK", environment.get("GROUP_RANK", "0"))
    return int(node) == 0 and int(environment.get("LOCAL_RANK", "0")) == 0


def in_slurm(environment: Mapping[str, str] = os.environ) -> bool:
    """True where `srun` started this process as a task. In an interactive shell, Lightning launches by itself."""
    return "SLURM_NTASKS" in environment and environment.get("SLURM_JOB_NAME") not in ("bash", "interactive")
