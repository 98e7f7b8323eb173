"""Runs that a signal stops, that are killed or run out of disk space resume to the same bits."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import torch

from nmt.files import locked_file
from nmt.training import checkpoint_step, list_checkpoints, load_checkpoint, read_metrics
from tests.helpers.preloaded import python

pytestmark = pytest.mark.usefixtures("here")
# Long enough to be caught in the middle.
LONG = [
    "trainer.max_steps=90",
    "validation.every_steps=30",
    "validation.bleu_sentences=0",
    "run=run",
]
TWO = ["trainer.devices=2"]


def kill_all(process: subprocess.Popen) -> None:
    """Kill a process and the processes that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts `nmt train`, and kills it at the end of the test.

    To signal the whole group, pass sys.executable as the program.
    """
    with ExitStack() as stack:

        def start(
            options: list[str], program: str = "", words: Sequence[str] = ("-m", "nmt")
        ) -> subprocess.Popen:
            command = [program or python(), *words, "train", *options]
            streams = {"stderr": subprocess.PIPE, "text": True}
            process = stack.enter_context(
                subprocess.Popen(command, **streams, start_new_session=True)
            )
            stack.callback(kill_all, process)
            return process

        yield start


def last_reported(run: Path) -> int:
    """The last update that a run has reported; it may be writing right now."""
    return max((int(row["step"]) for row in read_metrics(run) if row["loss"]), default=0)


def wait_for(process: subprocess.Popen, run: Path, update: int) -> None:
    """Wait until the process has reported that update."""
    deadline = time.monotonic() + 120
    while last_reported(run) < update:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture(scope="module")
def never_stopped(toy: list[str], trained: Callable[..., Path]) -> Path:
    return trained(*toy, *LONG)


@pytest.fixture
def equals_never_stopped(never_stopped, training_state, metrics) -> Callable[[Path], None]:
    def check(run: Path) -> None:
        torch.testing.assert_close(
            training_state(run), training_state(never_stopped), rtol=0, atol=0
        )
        assert metrics(run) == metrics(never_stopped)

    return check


EARLY = """
import signal
from nmt.cli import main
from nmt.training.metrics import MetricsCallback

begin = MetricsCallback.on_train_start

def interrupted(*arguments):
    signal.raise_signal(signal.SIGTERM)
    begin(*arguments)

MetricsCallback.on_train_start = interrupted
main()
"""


@pytest.mark.parametrize("moment", ["before the first update", "later"])
def test_a_signal_stops_a_run_which_saves_and_resumes(
    toy, nmt, start, equals_never_stopped, moment
):
    process = start([*toy, *LONG], words=["-m", "nmt"] if moment == "later" else ["-c", EARLY])
    if moment == "later":
        wait_for(process, Path("run"), 20)
        process.send_signal(signal.SIGTERM)
    errors = process.communicate()[1]
    assert process.returncode == 143, errors
    assert "Traceback" not in errors
    assert "the same command" in " ".join(errors.split())
    (saved,) = list_checkpoints(Path("run"))
    assert checkpoint_step(saved) == 1 if moment != "later" else 20 <= checkpoint_step(saved) < 90
    assert nmt("train", *toy, *LONG).code == 0
    equals_never_stopped(Path("run"))


TWICE = """
import signal
from nmt.cli import main
from nmt.training.module import TranslationModule

training_step = TranslationModule.training_step

def interrupted(module, batch, batch_index):
    if batch.update == 3:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    return training_step(module, batch, batch_index)

TranslationModule.training_step = interrupted
main()
"""


@pytest.mark.slow
def test_a_second_interrupt_ends_at_once_without_a_traceback(toy, start):
    process = start([*toy, *LONG], words=["-c", TWICE])
    errors = process.communicate()[1]
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert list_checkpoints(Path("run")) == []


BACKGROUND = """
import os
import signal
import time

import torch
from nmt.cli import main
from nmt.training import module, trainer
from nmt.training.checkpoint_io import BackgroundCheckpointIO

save = torch.save
training_step = module.TranslationModule.training_step

def interrupt():
    # As from a terminal: to the process, not to the thread that calls this.
    os.kill(os.getpid(), signal.SIGINT)

def slow_save(content, path):
    time.sleep(0.3)
    if "while writing" in INTERRUPTS:
        interrupt()
        time.sleep(0.3)
    save(content, path)

def interrupted(self, batch, batch_index):
    if batch.update == 3 and batch.micro_batch == 0 and "while updating" in INTERRUPTS:
        interrupt()
    return training_step(self, batch, batch_index)

module.TranslationModule.training_step = interrupted
trainer.checkpoint_io = lambda device: BackgroundCheckpointIO()
torch.save = slow_save
main()
"""


def in_the_background(*interrupts: str) -> str:
    """A program that slowly writes checkpoints in a thread and interrupts itself."""
    return BACKGROUND.replace("INTERRUPTS", repr(interrupts))


@pytest.mark.slow
def test_the_stop_is_reported_once_the_checkpoint_is_on_disk(toy, start):
    process = start([*toy, *LONG], words=["-c", in_the_background("while updating")])
    assert any("stopped and saved" in line for line in process.stderr)
    assert [checkpoint_step(path) for path in list_checkpoints(Path("run"))] == [4]
    process.communicate()
    assert process.returncode == 130


@pytest.mark.slow
def test_a_second_interrupt_abandons_a_write_in_the_background(toy, start):
    process = start(
        [*toy, *LONG], words=["-c", in_the_background("while updating", "while writing")]
    )
    errors = process.communicate()[1]
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "stopped and saved" not in errors
    assert list(Path("run/checkpoints").iterdir()) == []


@pytest.mark.slow
def test_a_signal_to_one_process_stops_all_after_the_current_update(toy, start):
    raised = TWICE.replace("signal.raise_signal(signal.SIGINT)\n", "", 1).replace(
        "== 3", "== 3 and module.global_rank"
    )
    Path("launched.py").write_text(raised)  # Lightning launches this program again
    errors = start([*toy, *LONG, *TWO], sys.executable, ["launched.py"]).communicate()[1]
    assert "stopped and saved" in errors
    assert [checkpoint_step(path) for path in list_checkpoints(Path("run"))] == [4]


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["one", "all", "kill"])
def test_processes_stop_together_and_one_resumes_exactly(
    toy, nmt, start, equals_never_stopped, stop
):
    process = start([*toy, *LONG, *TWO, "checkpoints.every_minutes=0.0001"], sys.executable)
    wait_for(process, Path("run"), 20)
    number = signal.SIGKILL if stop == "kill" else signal.SIGINT
    process.send_signal(number) if stop == "one" else os.killpg(process.pid, number)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == (-number if stop == "kill" else 130), errors
    assert "Traceback" not in errors
    assert len(list_checkpoints(Path("run"))) == 1
    assert nmt("train", *toy, *LONG).code == 0
    equals_never_stopped(Path("run"))


@pytest.mark.slow
def test_processes_that_write_in_the_background_stop_together_and_resume_exactly(
    toy, nmt, start, equals_never_stopped
):
    Path("launched.py").write_text(in_the_background())
    options = [*toy, *LONG, *TWO, "checkpoints.every_minutes=0.0001"]
    process = start(options, sys.executable, ["launched.py"])
    wait_for(process, Path("run"), 20)
    os.killpg(process.pid, signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert len(list_checkpoints(Path("run"))) == 1
    assert nmt("train", *toy, *LONG).code == 0
    equals_never_stopped(Path("run"))


@pytest.mark.slow
def test_processes_end_when_the_last_write_in_the_background_fails(toy, start):
    Path("launched.py").write_text(in_the_background())
    with full_disk(60_000):
        process = start(
            [*toy, *LONG, *TWO, "trainer.max_steps=20"], sys.executable, ["launched.py"]
        )
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 2, errors
    assert "Traceback" not in errors
    last = errors.splitlines()[-1]
    assert last.startswith("nmt: cannot write run/checkpoints/step=00000020.ckpt")
    assert list(Path("run/checkpoints").iterdir()) == []


@pytest.mark.slow
def test_run_and_corpus_are_locked_while_a_run_trains(other_text, nmt, start):
    prepare = ["preprocess", *other_text, "overwrite=true"]
    assert nmt(*prepare).code == 0
    process = start([*other_text, *LONG, "trainer.max_steps=100000"])
    wait_for(process, Path("run"), 5)
    nmt("train", *other_text, "run=run").refused("run: another nmt is using it", "run=OTHER")
    nmt("translate", "text=ka", "run=run").refused(
        "run=run: still training", "`nmt average run output=FOLDER`"
    )
    nmt(*prepare, "seed=2").refused(
        "data/toy: a training run is using this corpus", "data.name=OTHER"
    )
    process.kill()
    process.wait()
    assert nmt(*prepare, "seed=2").code == 0
    with locked_file(Path("data/toy/tokenizer.model"), True, ""):
        nmt("train", *other_text, "run=other").refused(
            "data/toy: `nmt preprocess` is replacing this corpus"
        )


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


LONGER = [
    "run=run",
    "checkpoints.every_steps=12",
    "trainer.max_steps=80",
    "validation.bleu_sentences=0",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", [None, 61_000, 59_990], ids=["checkpoint", "rewriting metrics", "appending metrics"]
)
def test_a_full_disk_damages_no_earlier_file(toy, finished, nmt, size):
    """Extend a run whose metrics.csv may already be nearly as large as the disk allows."""
    run = Path(shutil.copytree(finished, "run"))
    path = run / "metrics.csv"
    header, *rows = path.read_bytes().splitlines(keepends=True)
    missing = size - path.stat().st_size if size else 0
    path.write_bytes(header + rows[0] * (missing // len(rows[0])) + b"".join(rows))
    before = {path: path.read_bytes() for path in (*(run / "checkpoints").iterdir(), path)}
    with full_disk(60_000):
        outcome = nmt("train", *toy, *LONGER)
    if size:
        outcome.failed("run/metrics.csv")
    else:
        outcome.failed("run/checkpoints/step=00000072.ckpt", "disk full")
    assert all(file.read_bytes().startswith(content) for file, content in before.items())
    assert nmt("train", *toy, *LONGER).code == 0
    assert load_checkpoint(list_checkpoints(run)[-1])["global_step"] == 80
