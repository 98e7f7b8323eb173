"""Bulk translation on a real Ray cluster: several nodes on this machine, which lose workers."""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import WORDS

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("on_ray.py")
ROOT = Path(__file__).parents[3]
COUNT = 6000


@pytest.fixture
def on_ray(python, word_model, here, ray_folder):
    """A function that runs a job on a cluster, and returns what happened."""

    def run(plan: dict[str, Any], *words: str) -> dict[str, Any]:
        plan = {"nodes": [2, 2], "kills": 0, "remove": False, **plan}
        options = [f"run={word_model}", "cluster=ray", "ray.lines=100", *words]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RAY_USAGE_STATS_ENABLED": "0",
            # Ray records each test cluster in this folder, where other programs would join it.
            "RAY_TMPDIR": ray_folder,
        }
        outcome = subprocess.run(
            [python, SCRIPT, json.dumps(plan), *options],
            env=environment, capture_output=True, text=True, timeout=900,
        )  # fmt: skip
        assert outcome.returncode == 0, outcome.stderr
        report: dict[str, Any] = json.loads(outcome.stdout.splitlines()[-1])
        return report

    return run


@pytest.fixture
def alone(nmt, word_model, here) -> bytes:
    """The translations of in.txt on one machine, by the engine that the workers choose."""
    generator = random.Random(1)
    lines = [" ".join(generator.choices(WORDS, k=generator.randint(2, 9))) for _ in range(COUNT)]
    Path("in.txt").write_text("".join(f"{line}\n" for line in lines))
    words = ["in.txt", str(word_model), "output=alone.txt", "threads=1", "engine=ctranslate2"]
    assert nmt("translate", *words).code == 0
    return Path("alone.txt").read_bytes()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_any_number_of_workers_writes_the_same_bytes(on_ray, alone, workers):
    report = on_ray({}, "input=in.txt", "output=out.txt", f"ray.workers={workers}")
    assert report["problem"] == ""
    assert Path("out.txt").read_bytes() == alone


def test_kills_and_a_lost_node_change_no_byte(on_ray, alone):
    plan = {"kills": 20, "remove": True, "pause": 0.3}
    report = on_ray(plan, "input=in.txt", "output=out.txt", "ray.losses=30", "ray.lines=50")
    assert report["problem"] == ""
    assert report["kills"] >= 10
    assert Path("out.txt").read_bytes() == alone
    assert not Path("out.txt.blocks").exists()


def test_a_block_that_kills_its_workers_ends_in_one_line(on_ray, alone):
    plan = {"kills": 1000, "pause": 0.05, "nodes": [1]}
    report = on_ray(plan, "input=in.txt", "output=out.txt", "ray.losses=2", "ray.lines=6000")
    assert "in.txt, lines 1 to 6,000: 2 workers died" in report["problem"]
    assert "\n" not in report["problem"]


def test_a_model_that_changes_during_the_job_is_refused(on_ray, alone, word_model, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(word_model, copy)
    plan = {"kills": 3, "edit": str(copy / "config.json")}
    report = on_ray(plan, "input=in.txt", "output=out.txt", f"run={copy}")
    assert "has another config.json than this machine" in report["problem"]
    assert not Path("out.txt").exists()


def test_two_drivers_do_not_write_one_remote_output(on_ray, alone):
    """A name in the cluster guards what no lock of a file can."""
    plan = {"guard": "memory://out.txt"}
    report = on_ray(plan, "input=in.txt", "output=memory://out.txt")
    assert "another nmt is writing it" in report["problem"]


def translating(ray_folder: str) -> list[int]:
    """The workers of a test's own Ray that translate at the moment."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_bytes()
            variables = (folder / "environ").read_bytes()
        except OSError:  # it has ended
            continue
        if title.startswith(b"ray::Block") and f"RAY_TMPDIR={ray_folder}".encode() in variables:
            processes.append(int(folder.name))
    return processes


def test_a_killed_worker_is_one_line_on_standard_error(python, alone, word_model, ray_folder):
    """Ray itself prints a paragraph on standard output for each dead worker."""
    words = [f"run={word_model}", "engine=ctranslate2", "input=in.txt", "output=out.txt"]
    job = subprocess.Popen(
        [python, "-m", "nmt", "translate", *words, "cluster=ray", "ray.lines=20"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_TMPDIR": ray_folder},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not Path("out.txt.blocks/blocks/in.txt/00000010").exists():
        assert job.poll() is None, job.communicate()
        time.sleep(0.05)
    os.kill(translating(ray_folder)[0], signal.SIGKILL)
    output, messages = job.communicate(timeout=300)
    assert job.returncode == 0, messages
    assert output == ""
    first, death, *_ = messages.splitlines()
    assert "Ray started on this machine" in first
    assert "died (its process was killed or crashed" in death
    assert "raylet" not in messages
    assert Path("out.txt").read_bytes() == alone
