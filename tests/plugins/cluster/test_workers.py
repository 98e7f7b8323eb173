"""Workers of a search give what one process gives, begin where they pay, and end with the command."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from multiprocessing import active_children
from pathlib import Path

import pytest
import torch
from test_devices import random_lines

from nmt.config import DecodeConfig, TranslateConfig
from nmt.errors import NMTError
from nmt.search import TorchEngine, torch_engine
from nmt.search.workers import FORKS
from nmt.translation import Translation, Translator, load_translator

pytestmark = pytest.mark.skipif(not FORKS, reason="workers are forked on Linux alone")
LINES = random_lines(60)


def loaded(run: list[str], format: str = "tsv", **decode: object) -> tuple[Translator, TorchEngine]:
    """A translator, and its engine, with small batches."""
    search = DecodeConfig(**{"beam_size": 2, "max_extra_length": 3, "batch_tokens": 60, **decode})
    translator = load_translator(TranslateConfig(run, device="cpu", format=format, decode=search), print)
    assert isinstance(translator.engine, TorchEngine)
    return translator, translator.engine


@pytest.fixture(autouse=True)
def always_shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The lines of a test are enough; and no test leaves a process or another number of threads."""
    monkeypatch.setattr(torch_engine, "WORTH_SHARING", 10)
    processes, threads = set(active_children()), torch.get_num_threads()
    yield
    assert set(active_children()) <= processes
    assert torch.get_num_threads() == threads


def assert_same(found: list[list[Translation]], expected: list[list[Translation]]) -> None:
    assert [[t.text for t in row] for row in found] == [[t.text for t in row] for row in expected]
    for t, other in zip(chain(*found), chain(*expected), strict=True):
        assert t.score == pytest.approx(other.score, abs=1e-5)
        assert (t.details is None) == (other.details is None)
        if t.details and other.details:
            assert t.details.alignment == other.details.alignment
            assert t.details.token_log_probabilities == pytest.approx(other.details.token_log_probabilities, abs=1e-5)


@pytest.mark.parametrize("buffer", [1, 25, 2000])
@pytest.mark.parametrize(
    ("models", "options"),
    [
        (1, {}),
        (2, {"n_best": 2}),
        (1, {"format": "jsonl", "beam_size": 1}),
        (1, {"do_sample": True, "n_best": 2, "beam_size": 1}),
    ],
)
def test_workers_give_what_one_process_gives_in_order(checkpoint, models, options, buffer):
    translator, shared = loaded([checkpoint] * models, **options)
    expected = list(translator.stream(LINES, buffer))
    assert len({row[0].text for row in expected}) > 20
    with shared.sharing(3):
        begun = set(active_children())
        assert_same(list(translator.stream(LINES, buffer)), expected)
        assert len(set(active_children()) - begun) == (3 if buffer > 1 else 0)


def test_a_line_begins_no_process_nor_does_a_single_thread(checkpoint):
    translator, shared = loaded([checkpoint])
    for threads, lines in ((3, ["ka lo"]), (1, LINES)):
        before = set(active_children())
        with shared.sharing(threads):
            translator.translate(lines)
            assert set(active_children()) == before


def test_workers_serve_again_and_for_other_searches(checkpoint):
    translator, shared = loaded([checkpoint])
    other = translator.with_search(DecodeConfig(beam_size=1, max_extra_length=3), details=True)
    expected = [translator.translate(LINES), other.translate(LINES)]
    with shared.sharing(2):
        other = translator.with_search(other.engine.config, details=True)
        for _ in range(2):
            assert_same(translator.translate(LINES), expected[0])
            assert_same(other.translate(LINES), expected[1])
        assert len(active_children()) >= 2


def failing(error: BaseException) -> Callable[..., None]:
    def fail(*arguments: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("error", [NMTError("a line"), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_an_error_in_a_worker_is_that_of_one_process(checkpoint, monkeypatch, error):
    translator, shared = loaded([checkpoint])
    monkeypatch.setattr("nmt.search.torch_engine.beam_search", failing(error))  # which workers inherit
    with pytest.raises(type(error), match=re.escape(str(error))), shared.sharing(2):
        translator.translate(LINES)


def test_a_worker_that_is_killed_is_one_line(checkpoint):
    translator, shared = loaded([checkpoint])

    def translate_and_kill(others: set[object]) -> None:
        with shared.sharing(2):
            translator.translate(LINES)
            for process in set(active_children()) - others:
                assert process.pid
                os.kill(process.pid, signal.SIGKILL)
            translator.translate(LINES)

    with pytest.raises(NMTError, match=r"^a process that translates died: is memory short\? threads=1 is one"):
        translate_and_kill(set(active_children()))


def children(process: subprocess.Popen) -> list[int]:
    """Processes that any of its threads started."""
    tasks = Path(f"/proc/{process.pid}/task").iterdir()
    return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]


def wait_until_gone(processes: list[int]) -> None:
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in processes):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["interrupt", "closed pipe", "killed"])
def test_however_the_command_ends_so_do_its_processes(checkpoint, end):
    command = [sys.executable, "-m", "nmt", "translate", f"run={checkpoint}", "device=cpu", "threads=2"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, start_new_session=True) as process:
        try:
            process.stdin.write(b"ka nu lo mi\n" * 400)
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")
            started = children(process)
            assert len(started) >= 2
            if end == "interrupt":
                os.killpg(process.pid, signal.SIGINT)
            elif end == "killed":
                process.kill()
            else:
                process.stdout.close()
                process.stdin.write(b"ka nu\n")
                process.stdin.flush()
            assert process.wait(timeout=20) == {"interrupt": 130, "closed pipe": 1, "killed": -9}[end]
            wait_until_gone(started)
            assert not re.search(b"Traceback|Error", process.stderr.read())
        finally:
            process.kill()
