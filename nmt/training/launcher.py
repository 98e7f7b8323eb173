"""The launcher's environment variables: this process's place among several. No torch import."""

import os
from collections.abc import Mapping

from nmt.config import NMTError

ADDRESS_VARIABLES = ("TORCHELASTIC_RUN_ID", "SLURM_NTASKS", "MASTER_ADDR")
"""At least one is set if a launcher told this process the addresses of the other machines."""

INTERACTIVE_JOBS = ("bash", "interactive")
"""The names of SLURM's jobs in which a user types commands."""


def is_first_process(environment: Mapping[str, str] = os.environ) -> bool:
    """True in the one process that prints and writes files.

    Checks the launchers' variables in the same order as Lightning.
    """
    # torchrun within a SLURM job sets both kinds of variables; torchrun's take precedence.
    if "TORCHELASTIC_RUN_ID" in environment:
        return environment["RANK"] == "0"
    # srun started this process as a task. In an interactive shell, Lightning launches processes
    # itself.
    is_interactive = environment.get("SLURM_JOB_NAME") in INTERACTIVE_JOBS
    if "SLURM_NTASKS" in environment and not is_interactive:
        return environment["SLURM_PROCID"] == "0"
    # Lightning itself launches a node's processes, and the user sets the node's number.
    node = environment.get("NODE_RANK", environment.get("GROUP_RANK", "0"))
    process = environment.get("LOCAL_RANK", "0")
    return int(node) == 0 and int(process) == 0


def check_launcher(nodes: int) -> None:
    """Raise NMTError if nothing has told this process where the processes on other machines are."""
    if nodes > 1 and not any(name in os.environ for name in ADDRESS_VARIABLES):
        raise NMTError(
            f"trainer.num_nodes={nodes}: start this command on each machine with torchrun or srun "
            "(docs/guides/clusters.md)"
        )
