"""The micro-batches that make up an update, whoever trains it, and however often a run was stopped before.

Lightning and the planner count on their own, so what a run really trains on is traced and compared with the planner.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest
import torch

from nmt.commands import compose
from nmt.data import BatchPlanner, open_corpus
from nmt.training import list_checkpoints
from nmt.training.run_folder import checkpoint_path

MICRO_BATCHES = 4
# A script, for Lightning starts the other processes by its name.
TRACED = """
import os
from nmt.cli import main
from nmt.training.module import TranslationModule

training_step = TranslationModule.training_step

def traced(module, batch, batch_index):
    if module.trainer.training and batch.size.target_tokens > 1:
        with open(os.environ["TRACE"], "a") as file:
            tokens = batch.target_out.flatten().tolist()
            file.write(f"{batch.update} {batch.micro_batch} {len(batch.source)} {sum(tokens)}\\n")
    return training_step(module, batch, batch_index)

TranslationModule.training_step = traced
main()
"""


@pytest.fixture(scope="module")
def toy(toy: list[str]) -> list[str]:
    """Updates of four micro-batches, so that two processes accumulate too."""
    return [*toy, "batching.micro_batches=4"]


@pytest.fixture(scope="module")
def finished(toy: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 60 updates on one process."""
    from rich.console import Console

    from nmt.training import train

    run = tmp_path_factory.mktemp("runs") / "finished"
    train(compose("train", [*toy, f"run={run}", "checkpoints.every_steps=12"]), Console(quiet=True))
    return run


@pytest.fixture
def planned(toy) -> dict[tuple[int, int], tuple[int, int]]:
    """Update and micro_batch -> sentences, and the sum of their target tokens, end symbols included."""
    config = compose("train", toy)
    split = open_corpus(Path(config.prepared)).split("train")
    planner = BatchPlanner(split.source_lengths, split.target_lengths, config.batching, config.seed)
    found = {}
    for update in range(60):
        for micro_batch in planner.update(update):
            batch = split.batch(micro_batch.indices)
            found[update, micro_batch.micro_batch] = len(batch.source), int(batch.target_out.sum())
    return found


def trained(trace: Path) -> dict[int, dict[int, tuple[int, int]]]:
    """Update -> micro_batch -> what was traced of it, of one start; no micro-batch may come twice."""
    updates: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
    for line in trace.read_text().splitlines():
        update, micro_batch, sentences, tokens = map(int, line.split())
        assert micro_batch not in updates[update], f"micro_batch {micro_batch} of update {update} came twice"
        updates[update][micro_batch] = sentences, tokens
    return updates


@pytest.mark.slow
@pytest.mark.parametrize("case", range(4))
def test_every_update_is_made_of_the_micro_batches_that_the_planner_names(toy, planned, tmp_path, case):
    seed = int(os.environ.get("NMT_TEST_SEED", "0")) + case
    print(f"seed {seed}")
    generator = random.Random(seed)
    script = tmp_path / "traced.py"
    script.write_text(TRACED)
    run, step, start = tmp_path / "run", 0, 0
    every = generator.choice([7, 1000])  # it belongs to a run; what is saved for safety, by the clock, does not
    while not (run / "model").exists():
        devices, minutes = generator.choice([1, 2, 4]), generator.choice([0.005, 10])
        stop = generator.choice([signal.SIGKILL, signal.SIGINT, signal.SIGTERM, "max_time", None])
        trace = tmp_path / f"trace{start}"
        options = [
            *(*toy, f"run={run}", f"trainer.devices={devices}", f"checkpoints.every_steps={every}"),
            *(f"checkpoints.every_minutes={minutes}",),
            *("validation.bleu_sentences=0", "checkpoints.keep=9"),
            *(["trainer.strategy=ddp"] if devices > 1 else []),
            *(["trainer.max_time=1s"] if stop == "max_time" else []),
        ]
        process = subprocess.Popen(
            [sys.executable, str(script), "train", *options],
            env={**os.environ, "TRACE": str(trace), "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        wanted = generator.randint(min(step, 59), 59)
        while isinstance(stop, signal.Signals) and process.poll() is None:
            if trace.is_file() and len(trace.read_text().splitlines()) >= MICRO_BATCHES * (wanted - step) + 3:
                os.killpg(process.pid, stop) if stop == signal.SIGKILL else process.send_signal(stop)
                break
            time.sleep(0.01)
        errors = process.communicate(timeout=300)[1]
        assert process.returncode in (0, 130, 143, -signal.SIGKILL), errors
        assert "Traceback" not in errors
        updates = trained(trace) if trace.is_file() else {}
        assert sorted(updates) == list(range(step, step + len(updates))), f"start {start} goes on behind update {step}"
        for update, micro_batches in updates.items():
            killed = update == max(updates) and process.returncode == -signal.SIGKILL
            assert killed or sorted(micro_batches) == list(range(MICRO_BATCHES))
            for micro_batch, seen in micro_batches.items():
                assert seen == planned[update, micro_batch]
        step = max((int(path.stem[5:]) for path in list_checkpoints(run)), default=0)
        if stop == "max_time" and step < 60:
            shutil.rmtree(run / "model", ignore_errors=True)
        start += 1
    assert step == 60


def test_a_checkpoint_of_twice_as_many_devices_goes_on_with_whole_updates(toy, finished, nmt, training_state):
    """Two devices count half as many micro-batches; at an odd update, half of that is no whole update of one."""
    run = Path(shutil.copytree(finished, "run"))
    for path in list_checkpoints(run)[1:]:
        path.unlink()
    [first] = list_checkpoints(run)
    content = torch.load(first, weights_only=True)
    progress = content["loops"]["fit_loop"]["epoch_loop.batch_progress"]
    for counts in (progress["total"], progress["current"]):
        # As after an odd number of micro-batches of two devices.
        counts |= {key: value // 2 + 1 for key, value in counts.items()}
    torch.save(content, first)
    shutil.rmtree(run / "model")
    assert nmt("train", *toy, "run=run", "checkpoints.every_steps=12").code == 0
    torch.testing.assert_close(training_state(run), training_state(finished), rtol=0, atol=0)


def test_time_that_is_up_ends_a_run_behind_a_whole_update(toy, nmt, training_state, finished):
    options = [*toy, "run=run", "checkpoints.every_steps=12", "checkpoints.keep=2"]
    outcome = nmt("train", *options, "trainer.max_time=1s")
    assert outcome.code == 0
    [*_, last] = list_checkpoints(Path("run"))
    if last != checkpoint_path(Path("run"), 60):
        assert "stopped by trainer.max_time" in outcome.err
        assert "of 60; the same command resumes there" in outcome.err
    assert nmt("train", *options).code == 0
    torch.testing.assert_close(training_state(Path("run")), training_state(finished), rtol=0, atol=0)
