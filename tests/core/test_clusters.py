"""Several processes, however they are launched, train like one process."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nmt.commands import compose
from nmt.config import NMTError
from nmt.training import is_first_process, list_checkpoints, load_checkpoint
from nmt.training.trainer import make_trainer

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
TO_24 = ("trainer.max_steps=24", "checkpoints.every_steps=12")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="module")
def toy(toy: list[str]) -> list[str]:
    """Updates of four micro-batches, so that two processes accumulate too."""
    return [*toy, "batching.micro_batches=4"]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.mark.slow
def test_two_nodes_of_torchrun_make_the_updates_of_one_process(toy, nmt):
    """Two nodes on this machine, with a process each."""
    assert nmt("train", *toy, *TO_24, "run=one").code == 0
    rendezvous = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--master-addr=127.0.0.1",
        f"--master-port={free_port()}",
    ]
    words = ["-m", "nmt", "train", *toy, *TO_24, "trainer.num_nodes=2", "run=runs/two"]
    commands = [[*TORCHRUN, *rendezvous, f"--node-rank={rank}", *words] for rank in (0, 1)]
    nodes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for command in commands]
    try:
        talk, other_talk = (node.communicate(timeout=200)[1] for node in nodes)
    finally:
        for node in nodes:
            node.kill()
    assert [node.returncode for node in nodes] == [0, 0], talk + other_talk
    assert talk.count("the model is in runs/two/model") == 1
    assert other_talk == ""
    one, two = (load_file(f"{run}/model/model.safetensors") for run in ("one", "runs/two"))
    torch.testing.assert_close(one, two, rtol=0, atol=0)
    assert Path("runs/latest").resolve() == Path("runs/two").resolve()
    assert len(list(Path("runs/two/tensorboard").iterdir())) == 1


def test_devices_are_counted_over_all_nodes(toy, nmt, monkeypatch):
    options = (*toy, "trainer.devices=3", "trainer.num_nodes=2")
    nmt("train", *options).refused("6 devices", "use 1, 2, 4 devices")
    monkeypatch.setenv("NODE_RANK", "1")
    outcome = nmt("train", *options)
    assert (outcome.code, outcome.err) == (2, "")  # the first node says it


def torchrun_variables(rank: int, local_rank: int, node: int) -> dict[str, str]:
    names = {"RANK": rank, "LOCAL_RANK": local_rank, "GROUP_RANK": node}
    return {"TORCHELASTIC_RUN_ID": "none", **{name: str(value) for name, value in names.items()}}


def srun_variables(rank: int, local_rank: int, node: int) -> dict[str, str]:
    names = {"PROCID": rank, "LOCALID": local_rank, "NODEID": node, "NTASKS": 4, "JOB_NAME": "nmt"}
    return {f"SLURM_{name}": str(value) for name, value in names.items()}


FOUR = [(0, 0, 0), (1, 1, 0), (2, 0, 1), (3, 1, 1)]
INTERACTIVE = {**srun_variables(0, 0, 0), "SLURM_NTASKS": "1", "SLURM_JOB_NAME": "bash"}

# Of `salloc -J train`, without srun.
SALLOC = {"SLURM_JOB_ID": "5", "SLURM_JOB_NAME": "train", "SLURM_NTASKS": "4"}


@pytest.mark.parametrize(
    ("environments", "first"),
    [
        # Lightning sets nothing for the process that a person starts until it launches others.
        ([{}, {"NODE_RANK": "0", "LOCAL_RANK": "1"}], 0),
        ([{"NODE_RANK": "1"}, {"NODE_RANK": "1", "LOCAL_RANK": "1"}, {"NODE_RANK": "0"}], 2),
        ([torchrun_variables(*ranks) for ranks in FOUR], 0),
        ([srun_variables(*ranks) for ranks in FOUR], 0),
        # torchrun under srun: its rendezvous gives the nodes ranks of its own.
        ([srun_variables(n, 0, n) | torchrun_variables(1 - n, 0, 1 - n) for n in (0, 1)], 1),
        ([INTERACTIVE, {**INTERACTIVE, "LOCAL_RANK": "1"}], 0),
        ([SALLOC, {**SALLOC, "LOCAL_RANK": "1"}], 0),
    ],
)
def test_exactly_one_process_is_the_first(environments, first):
    firsts = [
        number for number, environment in enumerate(environments) if is_first_process(environment)
    ]
    assert firsts == [first]


@pytest.mark.parametrize(
    "environment", [torchrun_variables(1, 0, 1), srun_variables(1, 0, 1), {"NODE_RANK": "1"}]
)
def test_lightning_agrees_on_the_first_process(environment, monkeypatch):
    from lightning import Trainer
    from lightning_utilities.core.rank_zero import rank_zero_only

    counts = {"WORLD_SIZE": "2", "SLURM_NTASKS_PER_NODE": "1", "SLURM_NNODES": "2"}
    for name, value in {**counts, **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rank_zero_only, "rank", 0, raising=False)  # a trainer sets it for good
    trainer = Trainer(
        accelerator="cpu", devices=1, num_nodes=2, logger=False, enable_checkpointing=False
    )
    assert trainer.is_global_zero == is_first_process() is False


def test_tasks_of_slurm_that_do_not_match_the_devices_are_refused(monkeypatch):
    variables = {**srun_variables(0, 0, 0), "SLURM_NTASKS_PER_NODE": "2", "SLURM_NNODES": "1"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    words = ["trainer.devices=4", "trainer.accelerator=cpu", "trainer.precision=32-true"]
    config = compose("train", words)
    with pytest.raises(NMTError, match=r"^trainer: .*ntasks-per-node=2.*Set `devices=2`"):
        make_trainer(config)


@pytest.mark.slow
def test_the_shell_of_salloc_trains_as_any_other_shell(toy, nmt, monkeypatch):
    """Without srun, there is no SLURM_PROCID."""
    for name, value in SALLOC.items():
        monkeypatch.setenv(name, value)
    outcome = nmt("train", *toy, "trainer.max_steps=1", "run=one")
    assert outcome.code == 0, outcome.err
    nmt("train", *toy, "trainer.num_nodes=2", "run=two").refused(
        "trainer.num_nodes=2: start this command on each machine with torchrun or srun"
    )


def test_lightning_launches_the_processes_of_the_shell_of_salloc(monkeypatch):
    for name, value in SALLOC.items():
        monkeypatch.setenv(name, value)
    words = ["trainer.devices=2", "trainer.accelerator=cpu", "trainer.precision=32-true"]
    trainer = make_trainer(compose("train", words))
    environment = trainer.strategy.cluster_environment
    assert not environment.creates_processes_externally
    assert trainer.world_size == 2


SRUN = """#!/bin/bash
# Two tasks, each on a node of its own.
export SLURM_NTASKS=2 SLURM_NTASKS_PER_NODE=1 SLURM_NNODES=2 SLURM_LOCALID=0 SLURM_NODELIST=127.0.0.1
for rank in 0 1; do
    SLURM_PROCID=$rank SLURM_NODEID=$rank "$@" & echo $! >> tasks
done
code=0
for task in $(tail -n 2 tasks); do
    wait $task; ended=$?
    code=$((ended > code ? ended : code))
done
exit $code
"""


@pytest.fixture
def slurm_job(
    toy: list[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], subprocess.Popen[str]]:
    """Starts the script of docs/guides/clusters.md on the toy corpus, with stand-ins for SLURM."""
    (script,) = re.findall(
        r"```bash\n(.*?)```", (ROOT / "docs/guides/clusters.md").read_text(), re.S
    )
    options = [*toy, "run=run", "trainer.max_steps=150", "validation.every_steps=50"]
    replaced = script.replace("model=big", " ".join(options)).replace(
        "trainer.devices=4", "trainer.devices=1"
    )
    Path("job").write_text(replaced)
    Path("bin").mkdir()
    for name, content in {
        "srun": SRUN,
        "scontrol": '#!/bin/bash\necho "$@" >> requeued\n',
        "nmt": f'#!/bin/bash\nexec {sys.executable} -m nmt "$@"\n',
    }.items():
        Path("bin", name).write_text(content)
        Path("bin", name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path('bin').resolve()}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("SLURM_JOB_ID", "1234")
    monkeypatch.setenv("SLURM_JOB_NAME", "nmt")
    monkeypatch.setenv("MASTER_PORT", str(free_port()))
    return lambda: subprocess.Popen(["bash", "job"], stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("signaled", ["one", "all"])
def test_a_slurm_job_that_runs_out_of_time_saves_and_is_requeued(slurm_job, signaled):
    job = slurm_job()
    deadline = time.monotonic() + 200
    metrics = Path("run/metrics.csv")
    while not (metrics.is_file() and metrics.read_text().count("\n") > 3):
        assert job.poll() is None, job.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    tasks = [int(number) for number in Path("tasks").read_text().split()]
    for task in tasks[1:] if signaled == "one" else tasks:
        os.kill(task, signal.SIGUSR1)
    errors = job.communicate(timeout=100)[1]
    assert job.returncode == 138, errors
    assert errors.count("the same command") == 1
    assert "Traceback" not in errors
    assert Path("requeued").read_text() == "requeue 1234\n"
    assert len(list_checkpoints(Path("run"))) == 1
    assert not list(Path().rglob("hpc_ckpt*"))
    requeued = slurm_job()
    assert requeued.communicate(timeout=200)[1].count("the model is in run/model") == 1
    assert requeued.returncode == 0
    assert load_checkpoint(list_checkpoints(Path("run"))[-1])["global_step"] == 150
