"""Several processes, however they are launched and whatever each of them holds, train as one does."""

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from preloaded import python

from nmt.training import list_checkpoints, load_checkpoint

ROOT = Path(__file__).parents[2]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
TWO = ("trainer.devices=2", "trainer.strategy=ddp")
TO_24 = ("trainer.max_steps=24", "checkpoints.every_steps=12")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def train(*options: str, program: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """`nmt train` in processes of its own; as long as one of them is left, standard error does not end."""
    process = subprocess.Popen(
        [program or python(), "-m", "nmt", "train", *options],
        # Also for fixtures that are made before a test begins: another number of threads rounds otherwise.
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        errors = process.communicate(timeout=200)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(process.args, process.returncode, "", errors)


def state(path: Path) -> dict[str, torch.Tensor]:
    """Weights and Adam's moments of a checkpoint, by name."""
    content = torch.load(path, weights_only=True)
    moments = content["optimizer_states"][0]["state"]
    adam = {f"{number}.{name}": tensor for number, values in moments.items() for name, tensor in values.items()}
    return {**content["state_dict"], **adam}


def assert_close(path: Path, other: Path) -> None:
    one, another = state(path), state(other)
    assert list(one) == list(another)
    for name, tensor in one.items():
        # Moments are mostly the last gradients, whose differences are not averaged out.
        tolerance = 1e-5 if name.startswith("model.") else 1e-3
        assert (tensor - another[name]).norm() <= tolerance * tensor.norm(), name


def checkpoint(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step={step:08d}.ckpt"


@pytest.fixture(scope="module")
def toy(toy: list[str]) -> list[str]:
    """Updates of four micro-batches, so that two processes accumulate too."""
    return [*toy, "batching.micro_batches=4"]


@pytest.fixture(scope="module")
def finished(toy: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 36 updates on one process."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    ended = train(*toy, "trainer.max_steps=36", "checkpoints.every_steps=12", f"run={run}")
    assert ended.returncode == 0, ended.stderr
    return run


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def torchrun(*options: str) -> list[tuple[int, str]]:
    """Exit codes and talk of two torchrun nodes on this machine, with a process each."""
    rendezvous = ["--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    nodes = [
        subprocess.Popen(
            [*TORCHRUN, *rendezvous, f"--node-rank={rank}", "-m", "nmt", "train", *options],
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    try:
        talk = [node.communicate(timeout=200)[1] for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    return [(node.returncode, said) for node, said in zip(nodes, talk, strict=True)]


@pytest.mark.slow
def test_two_nodes_of_torchrun_make_the_updates_of_one_process(toy, finished):
    (code, talk), (other_code, other_talk) = torchrun(*toy, *TO_24, "trainer.num_nodes=2", "run=runs/two")
    assert (code, other_code) == (0, 0), talk + other_talk
    assert talk.count("the model is in runs/two/model") == 1
    assert other_talk == ""
    for step in (12, 24):
        assert_close(checkpoint(finished, step), checkpoint(Path("runs/two"), step))
    assert Path("runs/latest").resolve() == Path("runs/two").resolve()
    assert len(list(Path("runs/two/tensorboard").iterdir())) == 1


def test_devices_are_counted_over_all_nodes(toy, nmt, monkeypatch):
    options = (*toy, "trainer.devices=3", "trainer.num_nodes=2", "trainer.strategy=ddp")
    nmt("train", *options).refused("6 devices", "use 1, 2, 4 devices")
    monkeypatch.setenv("NODE_RANK", "1")
    outcome = nmt("train", *options)
    assert (outcome.code, outcome.err) == (2, "")  # the first node says it


@pytest.mark.slow
def test_an_error_of_the_first_process_leaves_no_other_waiting(toy):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))  # the disk is full, for what is started now
    try:
        ended = train(*toy, *TO_24, *TWO, "run=run", program=sys.executable)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("nmt: cannot write run/checkpoints/step=00000012.ckpt")
    assert "Traceback" not in ended.stderr


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
def slurm_job(toy: list[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[], subprocess.Popen[str]]:
    """Starts the script of docs/clusters.md on the toy corpus, with stand-ins for what SLURM would do."""
    (script,) = re.findall(r"```bash\n(.*?)```", (ROOT / "docs" / "clusters.md").read_text(), re.S)
    options = [*toy, "run=run", "trainer.max_steps=150", "validation.every_steps=50"]
    replaced = script.replace("model=big", " ".join(options)).replace("trainer.devices=4", "trainer.devices=1")
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
@pytest.mark.parametrize("told", ["one", "all"])
def test_a_slurm_job_whose_time_is_up_saves_and_is_requeued(slurm_job, told):
    job = slurm_job()
    deadline = time.monotonic() + 200
    metrics = Path("run/metrics.csv")
    while not (metrics.is_file() and metrics.read_text().count("\n") > 3):
        assert job.poll() is None, job.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    tasks = [int(number) for number in Path("tasks").read_text().split()]
    for task in tasks[1:] if told == "one" else tasks:
        os.kill(task, signal.SIGUSR1)
    errors = job.communicate(timeout=100)[1]
    assert job.returncode == 138, errors
    assert errors.count("the same command goes on") == 1
    assert "Traceback" not in errors
    assert Path("requeued").read_text() == "requeue 1234\n"
    assert len(list_checkpoints(Path("run"))) == 1
    assert not list(Path().rglob("hpc_ckpt*"))
    requeued = slurm_job()
    assert requeued.communicate(timeout=200)[1].count("the model is in run/model") == 1
    assert requeued.returncode == 0
    assert load_checkpoint(list_checkpoints(Path("run"))[-1])["global_step"] == 150
