"""Of processes that train together, exactly one talks and writes."""

import pytest

from nmt.training import is_first_process


def torchrun(rank: int, local_rank: int, node: int) -> dict[str, str]:
    names = {"RANK": rank, "LOCAL_RANK": local_rank, "GROUP_RANK": node}
    return {"TORCHELASTIC_RUN_ID": "none", **{name: str(value) for name, value in names.items()}}


def srun(rank: int, local_rank: int, node: int) -> dict[str, str]:
    names = {"PROCID": rank, "LOCALID": local_rank, "NODEID": node, "NTASKS": 4, "JOB_NAME": "nmt"}
    return {f"SLURM_{name}": str(value) for name, value in names.items()}


INTERACTIVE = {**srun(0, 0, 0), "SLURM_NTASKS": "1", "SLURM_JOB_NAME": "bash"}


@pytest.mark.parametrize(
    ("environments", "first"),
    [
        ([{}], 0),
        # Lightning sets nothing for the process that a person starts, until it has launched the others.
        ([{}, {"NODE_RANK": "0", "LOCAL_RANK": "1"}], 0),
        ([{"NODE_RANK": "0", "LOCAL_RANK": "0"}, {"NODE_RANK": "0", "LOCAL_RANK": "1"}], 0),
        ([{"NODE_RANK": "1"}, {"NODE_RANK": "1", "LOCAL_RANK": "1"}, {"NODE_RANK": "0"}], 2),
        ([torchrun(0, 0, 0), torchrun(1, 0, 1)], 0),
        ([torchrun(0, 0, 0), torchrun(1, 1, 0), torchrun(2, 0, 1), torchrun(3, 1, 1)], 0),
        ([srun(0, 0, 0), srun(1, 0, 1)], 0),
        ([srun(0, 0, 0), srun(1, 1, 0), srun(2, 0, 1), srun(3, 1, 1)], 0),
        # torchrun under srun: its rendezvous gives the nodes ranks of its own.
        ([{**srun(0, 0, 0), **torchrun(1, 0, 1)}, {**srun(1, 0, 1), **torchrun(0, 0, 0)}], 1),
        ([INTERACTIVE, {**INTERACTIVE, "LOCAL_RANK": "1"}], 0),
    ],
)
def test_one_process_is_the_first(environments, first):
    assert [is_first_process(environment) for environment in environments] == [
        number == first for number in range(len(environments))
    ]


@pytest.mark.parametrize("environment", [torchrun(1, 0, 1), srun(1, 0, 1), {"NODE_RANK": "1"}])
def test_lightning_is_of_the_same_opinion(environment, monkeypatch):
    from lightning import Trainer
    from lightning_utilities.core.rank_zero import rank_zero_only

    counts = {"WORLD_SIZE": "2", "SLURM_NTASKS_PER_NODE": "1", "SLURM_NNODES": "2"}
    for name, value in {**counts, **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rank_zero_only, "rank", 0, raising=False)  # a trainer sets it for good
    trainer = Trainer(accelerator="cpu", devices=1, num_nodes=2, logger=False, enable_checkpointing=False)
    assert trainer.is_global_zero == is_first_process() is False
