"""The launcher's environment variables: this process's place among several. No torch import."""

import os
from collections.abc import Mapping

from nmt.config import NMTError

ADDRESS_VARIABLES = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR")
"""At least one is set if torchrun or a user gave this process the addresses of other machines."""

INTERACTIVE_JOBS = ("bash", "interactive")
"""The names of SLURM's jobs in which a user types commands."""


def is_first_process(environment: Mapping[str, str] = os.environ) -> bool:
    """True in the one process that prints and writes files.

    Checks the launchers' variables in the same order as Lightning.
    """
    # torchrun within a SLURM job sets both kinds of variables; torchrun's take precedence.
    if "TORCHELASTIC_RUN_ID" in environment:
        return environment["RANK"] == "0"
    if is_task_of_slurm(environment):
        return environment["SLURM_PROCID"] == "0"
    # Lightning itself launches a node's processes, and the user sets the node's number.
    node = environment.get("NODE_RANK", environment.get("GROUP_RANK", "0"))
    process = environment.get("LOCAL_RANK", "0")
    return int(node) == 0 and int(process) == 0


def is_task_of_slurm(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether srun started this process. In an interactive shell, Lightning launches processes."""
    is_interactive = environment.get("SLURM_JOB_NAME") in INTERACTIVE_JOBS
    # The shell of salloc has the number of tasks, but is none of them.
    return {"SLURM_NTASKS", "SLURM_PROCID"} <= environment.keys() and not is_interactive


def check_launcher(nodes: int) -> None:
    """Raise NMTError if nothing has told this process where the processes on other machines are."""
    has_addresses = any(name in os.environ for name in ADDRESS_VARIABLES)
    if nodes > 1 and not has_addresses and not is_task_of_slurm():
        raise NMTError(
            f"trainer.num_nodes={nodes}: start this command on each machine with torchrun or srun "
            "(docs/guides/clusters.md)"
        )
