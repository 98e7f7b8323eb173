"""The first of the processes that train together. No slow imports."""

import os
from collections.abc import Mapping


def is_first_process(environment: Mapping[str, str] = os.environ) -> bool:
    """True in the one process that prints and writes, according to the variables that its launcher has set.

    The launchers are checked in Lightning's order. Their variables do not change when the process group is made, so the
    answer is the same before and after.
    """
    if "TORCHELASTIC_RUN_ID" in environment:
        return environment["RANK"] == "0"
    # srun started this process as a task. In an interactive shell, Lightning launches processes itself.
    if "SLURM_NTASKS" in environment and environment.get("SLURM_JOB_NAME") not in ("bash", "interactive"):
        return environment["SLURM_PROCID"] == "0"
    # Lightning itself launches the processes of a node, and the user sets the node's number.
    node = environment.get("NODE_RANK", environment.get("GROUP_RANK", "0"))
    return int(node) == 0 and int(environment.get("LOCAL_RANK", "0")) == 0
