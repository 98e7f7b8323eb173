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

import pyarrow as pa
import pyarrow.parquet as pq
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


def write_pairs(count: int) -> None:
    """The same pairs as two files, a table, records and a Parquet table."""
    generator = random.Random(2)
    pairs = []
    for _ in range(count):
        source = generator.choices(WORDS, k=generator.randint(1, 9))
        target = generator.choices(WORDS, k=generator.randint(1, 9))
        pairs.append((" ".join(source), " ".join(target)))
    Path("s").write_text("".join(f"{source}\n" for source, _ in pairs))
    Path("t").write_text("".join(f"{target}\n" for _, target in pairs))
    Path("p.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    Path("p.jsonl").write_text("".join(f'{{"en":"{s}", "de":"{t}"}}\n' for s, t in pairs))
    columns = {"en": [source for source, _ in pairs], "de": [target for _, target in pairs]}
    pq.write_table(pa.table(columns), "p.parquet")


PAIRS = {
    "tsv": ["input=p.tsv"],
    "jsonl": ["input=p.jsonl", "minimum=-6"],
    "two files": ["source=s", "hypothesis=t", "minimum=-6"],
}


@pytest.mark.parametrize("words", PAIRS.values(), ids=PAIRS)
def test_scores_have_the_bytes_of_one_machine(on_ray, nmt, word_model, words):
    write_pairs(20_000)
    suffix = "jsonl" if "input=p.jsonl" in words else "tsv"
    alone = [*words, f"output=alone.{suffix}", "threads=1", "device=cpu"]
    assert nmt("score", f"run={word_model}", *alone).code == 0
    for workers, kills in ((1, 0), (2, 0), (3, 4)):
        name = f"out{workers}.{suffix}"
        plan = {"command": "score", "kills": kills, "pause": 0.2}
        options = ["ray.lines=2000", f"ray.workers={workers}", "ray.losses=30"]
        report = on_ray(plan, *words, f"output={name}", *options)
        assert report["problem"] == ""
        assert report["kills"] == kills
        assert Path(name).read_bytes() == Path(f"alone.{suffix}").read_bytes()


def test_scores_of_parquet_are_those_of_a_table(on_ray, nmt, word_model):
    write_pairs(6000)
    words = ["input=p.tsv", "output=alone.tsv", "threads=1", "device=cpu"]
    assert nmt("score", f"run={word_model}", *words).code == 0
    words = ["input=p.parquet", "output=out.parquet", "ray.lines=2000"]
    assert on_ray({"command": "score"}, *words)["problem"] == ""
    rows = [line.split("\t") for line in Path("alone.tsv").read_text().splitlines()]
    table = pq.read_table("out.parquet").to_pylist()
    assert [row["log_probability_per_token"] for row in table] == [float(row[2]) for row in rows]
    words = ["input=p.parquet", "output=some.parquet", "ray.lines=2000", "minimum=-6"]
    assert on_ray({"command": "score"}, *words)["problem"] == ""
    kept = [(row[0], row[1]) for row in rows if float(row[2]) >= -6]
    some = pq.read_table("some.parquet").to_pylist()
    assert [(row["en"], row["de"]) for row in some] == kept
    assert 0 < len(kept) < 6000


@pytest.mark.parametrize("engine", ["ctranslate2", "torch"])
def test_synthesis_has_the_bytes_of_one_machine(on_ray, nmt, word_model, alone, engine):
    words = ["input=in.txt", f"engine={engine}", "buffer=100", "decode.beam_size=2"]
    options = ["output=alone", "threads=1", "device=cpu"]
    assert nmt("synthesize", f"run={word_model}", *words, *options).code == 0
    for workers, kills in ((1, 0), (2, 0), (3, 4)):
        plan = {"command": "synthesize", "kills": kills, "pause": 0.2}
        output = [f"output=out{workers}", f"ray.workers={workers}", "ray.losses=30"]
        report = on_ray(plan, *words, *output)
        assert report["problem"] == ""
        assert report["kills"] == kills
        for name in ("translations.jsonl", "train.en", "train.de", "summary.json"):
            content = Path(f"out{workers}", name).read_bytes()
            assert content == Path("alone", name).read_bytes(), name


def test_a_killed_driver_resumes_with_the_same_bytes(python, nmt, word_model, here):
    write_pairs(40_000)
    words = ["score", f"run={word_model}", "input=p.tsv", "device=cpu"]
    assert nmt(*words, "output=alone.tsv", "threads=1").code == 0
    command = [python, "-m", "nmt", *words, "output=out.tsv", "cluster=ray"]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "RAY_ADDRESS": "local",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    driver = subprocess.Popen([*command, "ray.workers=2"], env=environment)
    blocks = Path("out.tsv.blocks/blocks")
    while len([path for path in blocks.rglob("*") if path.is_file()]) < 5:
        assert driver.poll() is None
        time.sleep(0.02)
    driver.kill()
    driver.wait()
    assert not Path("out.tsv").exists()
    resumed = subprocess.run(
        [*command, "ray.workers=1"], env=environment, capture_output=True, text=True
    )
    assert resumed.returncode == 0, resumed.stderr
    assert ", 0 lines from earlier" not in resumed.stderr
    assert Path("out.tsv").read_bytes() == Path("alone.tsv").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_end_the_command_as_they_do_without_ray(python, alone, word_model, here, number):
    """Ray's own handler of SIGTERM prints a stack and exits with 15."""
    words = [f"run={word_model}", "engine=ctranslate2", "input=in.txt", "output=out.txt"]
    job = subprocess.Popen(
        [python, "-m", "nmt", "translate", *words, "cluster=ray", "ray.lines=20"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "RAY_ADDRESS": "local"},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not Path("out.txt.blocks/blocks/in.txt/00000003").exists():
        assert job.poll() is None, job.communicate()
        time.sleep(0.02)
    job.send_signal(number)
    _, messages = job.communicate(timeout=60)
    assert job.returncode == (130 if number == signal.SIGINT else -number)
    assert all(line.startswith("nmt: ") for line in messages.splitlines() if line), messages


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
