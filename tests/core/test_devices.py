"""Several devices give the results of one, keep the order of lines, and end together."""

import os
import pickle
import random
import signal
import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path

import pytest
import torch

from nmt.config import DecodeConfig, NMTError, TranslateConfig
from nmt.translation import RefusedLine, load_translator
from nmt.translation.devices import device_names, on_devices
from tests.core.test_interruption import LONG, TWO, full_disk, wait_for
from tests.helpers.options import translate_config

WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
DECODE = DecodeConfig(beam_size=2, max_extra_length=3)


def random_lines(count: int) -> list[str]:
    """Lines of random words between two empty ones."""
    draw = random.Random(2)
    lines = [""]
    for _ in range(count - 2):
        words = draw.choices(WORDS, k=draw.randint(1, 9))
        lines.append(" ".join(words))
    lines.append("  ")
    return lines


def config(checkpoint: str, devices: int) -> TranslateConfig:
    return translate_config([checkpoint], device="cpu", devices=devices, decode=DECODE)


def compare_and_kill(checkpoint: str) -> None:
    """Compare with one device, then kill all processes after the first line."""
    others = set(active_children())
    lines = random_lines(40)
    with on_devices(config(checkpoint, 2), ["cpu", "cpu"]) as two:
        for buffer in (1, 7):
            one = load_translator(config(checkpoint, 1).translator, print)
            expected = list(one.stream(lines, buffer))
            assert len({translations[0].text for translations in expected}) > 20
            assert list(two.stream(lines, buffer)) == expected
        for _ in two.stream(random_lines(200), 4):
            for process in set(active_children()) - others:
                os.kill(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_two_devices_translate_like_one_until_they_are_killed(checkpoint):
    before = set(active_children())
    with pytest.raises(NMTError, match=r"^a translation process died"):
        compare_and_kill(checkpoint)
    assert set(active_children()) <= before


def test_a_refused_line_survives_the_way_from_another_process():
    refused = pickle.loads(pickle.dumps(RefusedLine(2, "too long")))
    assert str(refused) == "line 3: too long"


@pytest.mark.parametrize(("device", "gpus"), [("auto", 4), ("cuda", 5)])
def test_the_first_gpus_are_used(monkeypatch, device, gpus):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    config = translate_config(device=device, devices=4, decode=DECODE)
    assert device_names(config) == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]


@pytest.mark.parametrize(
    ("device", "gpus", "problem"),
    [
        ("auto", 3, "devices=4: 3 GPU"),
        ("auto", 0, "devices=4 is for GPUs"),
        ("cpu", 8, "devices=4 is for GPUs"),
        ("meta", 3, "devices=4: device=meta is a single device"),
    ],
)
def test_too_few_gpus_are_rejected(monkeypatch, device, gpus, problem):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    config = translate_config(device=device, devices=4, decode=DECODE)
    with pytest.raises(NMTError, match=f"^{problem}"):
        device_names(config)


TRAIN = [sys.executable, "-m", "nmt", "train"]


def children_of(process: subprocess.Popen[str]) -> list[str]:
    """The process IDs of its children; waits for the first one."""
    children: list[str] = []
    while not children:
        words = ["pgrep", "-P", str(process.pid)]
        children = subprocess.run(words, capture_output=True, text=True).stdout.split()
    return children


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["launched", "launcher", "launcher at its start", "loader"])
def test_a_killed_process_ends_the_others_with_one_line(toy, nmt, killed):
    processes = ["num_workers=1"] if killed == "loader" else TWO
    words = [*TRAIN, *toy, *LONG, *processes]
    kills_launcher = "launcher" in killed
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        if killed != "launcher at its start":
            wait_for(process, Path("run"), 20)
        child = int(children_of(process)[-1])
        os.kill(process.pid if kills_launcher else child, signal.SIGKILL)
        errors = process.communicate(timeout=60)[1]  # until the last process has ended
    assert process.returncode == (-signal.SIGKILL if kills_launcher else 2), errors
    assert "Traceback" not in errors
    (line,) = [line for line in errors.splitlines() if line.startswith("nmt: ")]
    if killed == "launched":
        assert f"process 1 of this training (pid {child}) was killed by SIGKILL" in line
    assert "rerun the same command" in line
    assert nmt("train", *toy, *LONG).code == 0


@pytest.mark.slow
def test_an_error_of_the_first_process_ends_the_others(toy, nmt):
    words = [*TRAIN, *toy, *LONG, *TWO, "checkpoints.every_steps=12"]
    with full_disk(60_000):  # as long as a process is left, standard error does not end
        ended = subprocess.run(words, stderr=subprocess.PIPE, text=True, timeout=200)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith(
        "nmt: cannot write run/checkpoints/step=00000012.ckpt"
    )
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
def test_a_process_ends_with_its_launcher_even_while_libraries_load(toy, here, monkeypatch):
    Path("torch.py").write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setenv("NMT_FIRST_PROCESS", str(2**31 - 1))
    ended = subprocess.run([*TRAIN, *toy], stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr.startswith("nmt: the first process of this training has exited")
