"""Several devices agree with one, keep the order of lines, and end together."""

import os
import pickle
import random
import signal
from multiprocessing import active_children

import pytest
import torch
from options import translate_config

from nmt.config import DecodeConfig, TranslateConfig
from nmt.errors import NMTError
from nmt.plugins.devices.pool import device_names, on_devices, result, translate_block
from nmt.translation import RefusedLine, load_translator

WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
DECODE = DecodeConfig(beam_size=2, max_extra_length=3)


def random_lines(count: int) -> list[str]:
    draw = random.Random(2)
    return ["", *(" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(count - 2)), "  "]


def config(checkpoint: str, devices: int) -> TranslateConfig:
    return translate_config([checkpoint], device="cpu", devices=devices, decode=DECODE)


def compare_and_kill(checkpoint: str) -> None:
    """Compare with one device, then kill all processes after the first line."""
    others, lines = set(active_children()), random_lines(40)
    with on_devices(config(checkpoint, 2), ["cpu", "cpu"]) as two:
        for buffer in (1, 7):
            expected = list(load_translator(config(checkpoint, 1).translator, print).stream(lines, buffer))
            assert len({translations[0].text for translations in expected}) > 20
            assert list(two.stream(lines, buffer)) == expected
        with pytest.raises(NMTError, match=r"^cpu: \w+Error: [^\n]+$"):
            result(two.pool.submit(translate_block, [None]))
        for _ in two.stream(random_lines(200), 4):
            for process in set(active_children()) - others:
                os.kill(process.pid, signal.SIGKILL)


def test_two_devices_give_what_one_gives_in_order_until_they_are_killed(checkpoint):
    before = set(active_children())
    with pytest.raises(NMTError, match=r"^a translation process died"):
        compare_and_kill(checkpoint)
    assert set(active_children()) <= before


def test_a_refused_line_arrives_from_a_process():
    refused = pickle.loads(pickle.dumps(RefusedLine(2, "too long")))
    assert str(refused) == "line 3: too long"


@pytest.mark.parametrize(
    ("device", "gpus", "expected"),
    [
        ("auto", 4, None),
        ("cuda", 5, None),
        ("auto", 3, "devices=4: 3 GPU"),
        ("auto", 0, "devices=4 is for GPUs"),
        ("cpu", 8, "devices=4 is for GPUs"),
        ("meta", 3, "devices=4: device=meta is a single device"),
    ],
)
def test_as_many_gpus_as_devices_are_needed(monkeypatch, device, gpus, expected):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    config = translate_config(device=device, devices=4, decode=DECODE)
    if expected is None:
        assert device_names(config) == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
        return
    with pytest.raises(NMTError, match=f"^{expected}"):
        device_names(config)
