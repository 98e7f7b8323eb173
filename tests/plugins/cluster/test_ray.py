"""On a Ray cluster, of this machine alone: the lines that `nmt translate` gives, also after a killed run."""

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("ray")

WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
COMMAND = """
import ray
from nmt.cli import main
init = ray.init
ray.init = lambda *words, **options: init(*words, **options, num_cpus=2, object_store_memory=100_000_000)
main()
"""


def random_lines(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return ["", *(" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count - 1))]


@pytest.fixture
def corpus(tmp_path) -> list[str]:
    """The lines of a folder with two text files, in the order of their names."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    lines = random_lines(120, seed=1)
    (folder / "a.txt").write_text("".join(f"{line}\n" for line in lines[:70]))
    (folder / "b.txt").write_text("".join(f"{line}\n" for line in lines[70:]))
    return lines


@pytest.fixture
def options(checkpoint) -> list[str]:
    """What decides translations."""
    return [f"run={checkpoint}", "device=cpu", "decode.beam_size=2", "decode.max_extra_length=3"]


@pytest.fixture
def start(options, tmp_path) -> Iterator[Callable[..., subprocess.Popen]]:
    """Starts `nmt translate --ray` from the corpus to a folder; what is left of it at the end is killed."""
    with ExitStack() as stack:

        def start(*more: str) -> subprocess.Popen:
            words = ["translate", "--ray", *options, "input=corpus", "output=translated", *more]
            command = [sys.executable, "-c", COMMAND, *words]
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


def wait_for_files(process: subprocess.Popen, folder: Path, count: int) -> None:
    """Wait until the process has written so many files."""
    deadline = time.monotonic() + 200
    while len(list(folder.glob("[0-9]*.parquet"))) < count:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.slow
def test_a_killed_run_goes_on_and_equals_a_translation_line_by_line(start, corpus, nmt, options, tmp_path):
    output = tmp_path / "translated"
    process = start("ray.lines=2", "ray.workers=1")
    wait_for_files(process, output, 3)
    process.kill()
    process.wait()
    time.sleep(2)  # the workers notice
    before = {path: path.stat().st_mtime_ns for path in output.glob("[0-9]*.parquet")}
    assert 3 <= len(before) < 60
    for path in before:
        assert pq.read_metadata(path).num_rows == 2

    process = start("ray.lines=2", "ray.workers=2")
    errors = process.communicate(timeout=200)[1]
    assert process.returncode == 0, errors
    assert f"{len(before)} of 60 parts are there already" in errors
    assert "120 lines are translated" in errors
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list(output.iterdir())) == 60 + 1

    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in corpus))
    assert nmt("translate", *options, "input=lines", "output=text").code == 0
    rows = pq.read_table(output).to_pylist()
    assert rows == sorted(rows, key=lambda row: (row["file"], row["line"]))
    assert [row["source"] for row in rows] == corpus
    assert "".join(row["translation"] + "\n" for row in rows) == Path("text").read_text()
    assert [row["line"] for row in rows] == [*range(1, 71), *range(1, 51)]
    assert {Path(row["file"]).name for row in rows} == {"a.txt", "b.txt"}
    assert all(row["score"] < 0 for row in rows if row["source"])

    words = ["translate", "--ray", *options, "ray.lines=2", "input=corpus", "output=translated"]
    nmt(*words, "decode.length_penalty=1").refused("output=translated holds", "other decode.length_penalty")


@pytest.mark.slow
def test_an_error_of_a_worker_is_one_line(start, corpus, checkpoint, tmp_path):
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in Path(checkpoint).iterdir():
        content = path.read_bytes()
        (broken / path.name).write_bytes(content[:-8] if path.suffix == ".safetensors" else content)
    process = start("run=broken")
    errors = process.communicate(timeout=200)[1]
    assert process.returncode == 2, errors
    assert "Traceback" not in errors
    [line] = [line for line in errors.splitlines() if line.startswith("nmt: ")]
    assert "broken/model.safetensors: cannot be read" in line


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["output=x"], "input: --ray translates files"),
        (["input=x"], "output: --ray writes a folder"),
        (["input=x", "output=y", "format=tsv"], "format=tsv"),
        (["input=x", "output=y", "devices=2"], "ray.workers"),
        (["input=x", "output=y", "device=cuda:1"], "device=cuda:1"),
        (["input=x", "output=y", "ray.lines=0"], "ray.lines=0"),
        (["input=missing", "output=y"], "run=runs/latest"),
    ],
)
def test_what_it_cannot_do_is_refused(nmt, words, named):
    nmt("translate", "--ray", *words).refused(named)


def test_without_ray_it_says_how_to_install_it(nmt, monkeypatch):
    monkeypatch.setattr("nmt.plugins.cluster.on_ray.find_spec", lambda name: None)
    nmt("translate", "--ray", "input=x", "output=y").refused("pip install -c constraints.txt '.[ray]'")
