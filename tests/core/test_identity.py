"""Files and options that decide a result are compared when a run or a translation resumes."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest
import torch

import nmt as package
from nmt import kernels
from nmt.kernels import few_shapes, has_fast_product
from nmt.kernels.environment import switches
from nmt.kernels.products import ONEDNN
from nmt.training import decisive_settings, read_config
from nmt.translation import is_same

LONGER = "trainer.max_steps=72"


@pytest.fixture
def resumed(nmt, toy, finished):
    """Resumes a copy of the run `finished` on a copy of its corpus, which the test may change."""
    shutil.copytree(finished, "run")
    shutil.copytree(toy[-1].removeprefix("prepared="), "prepared")
    return lambda *options: nmt(
        "train", *toy, "checkpoints.every_steps=12", "prepared=prepared", "run=run", *options
    )


def reverse_valid() -> None:
    path = Path("prepared/valid/pairs.arrow")
    table = pa.ipc.open_stream(path.read_bytes()).read_all()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.take(list(range(len(table)))[::-1]))
    path.write_bytes(sink.getvalue().to_pybytes())


def edit_line(name: str) -> None:
    path = Path("prepared") / name
    path.write_text(path.read_text().replace("ka", "lo"))


def edit_manifest(edit) -> None:
    path = Path("prepared/manifest.json")
    tree = json.loads(path.read_text())
    edit(tree)
    path.write_text(json.dumps(tree))


def forget_letters(tree) -> None:
    tree["characters"]["source"] = tree["characters"]["source"][1:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (reverse_valid, "valid/pairs.arrow"),
        (lambda: edit_line("valid.en"), "valid.en"),
        (lambda: edit_line("valid.de"), "valid.de"),
        (lambda: edit_manifest(forget_letters), "characters.source"),
        (lambda: edit_manifest(lambda tree: tree.update(fingerprint="0" * 64)), "corpus"),
    ],
    ids=["valid pairs", "valid sources", "valid references", "characters", "fingerprint"],
)
def test_a_run_does_not_resume_with_another_validation_set_or_record(resumed, change, name):
    change()
    resumed(LONGER).refused("step=00000060.ckpt was trained with a different", name, "name=OTHER")


@pytest.mark.parametrize(
    "option", ["validation.best=bleu", "trainer.deterministic=warn", "data.temperature=2"]
)
def test_decisive_options_are_compared_with_the_run(resumed, option):
    resumed(LONGER, option).refused(
        "run in run has a different configuration", option.partition("=")[0]
    )


@pytest.mark.parametrize("is_lost", [True, False])
def test_options_are_also_compared_with_the_checkpoint(resumed, is_lost):
    path = Path("run/config.yaml")
    if is_lost:
        path.unlink()
    else:
        path.write_text(path.read_text().replace("label_smoothing: 0.1", "label_smoothing: 0.2"))
    refused = resumed(LONGER, "optim.label_smoothing=0.2")
    refused.refused("step=00000060.ckpt has a different configuration", "optim.label_smoothing")


def test_a_renamed_checkpoint_is_rejected(resumed):
    checkpoints = Path("run/checkpoints")
    shutil.copyfile(checkpoints / "step=00000048.ckpt", checkpoints / "step=00000060.ckpt")
    resumed(LONGER).refused("step=00000060.ckpt is the checkpoint of update 48")


@pytest.mark.slow
def test_a_run_reports_and_records_that_it_resumes_in_another_environment(resumed, toy):
    options = [*toy, "checkpoints.every_steps=12", "prepared=prepared", "run=run", LONGER]
    environment = {
        **os.environ,
        "MKL_CBWR": "COMPATIBLE",
        "PYTHONPATH": str(Path(package.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "nmt", "train", *options],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "kernels.switches.MKL_CBWR: None -> COMPATIBLE" in done.stderr
    assert "the last bits of the weights may differ" in done.stderr
    state = torch.load("run/checkpoints/step=00000072.ckpt", weights_only=True)["nmt"]
    assert 60 in state["moved"]
    assert state["environment"]["switches"]["MKL_CBWR"] == "COMPATIBLE"


def test_the_search_decides_only_if_bleu_chooses_the_checkpoint(finished):
    tree = read_config(finished)
    assert not [key for key in decisive_settings(tree) if key.startswith("decode")]
    tree["validation"]["best"] = "bleu"
    assert decisive_settings(tree)["decode"] == tree["decode"]


@pytest.mark.parametrize(
    ("recorded", "now", "same"),
    [
        ({"a": 1}, {"a": 1, "new": 7}, True),
        ({"a": 1}, {"a": 1, "new": 8}, False),
        ({"a": 1, "new": 8}, {"a": 1, "new": 8}, True),
        ({"a": 2, "new": 7}, {"a": 1, "new": 7}, False),
        ({"a": 1, "removed": 0}, {"a": 1}, False),
        ("0123", {"a": 1}, False),
        ("", {}, False),
    ],
)
def test_a_translation_resumes_if_new_options_have_their_defaults(recorded, now, same):
    assert is_same(recorded, now, {"new": 7, "a": 1}) == same


@pytest.mark.skipif(not ONEDNN, reason="this processor has no oneDNN product")
def test_few_shapes_applies_to_its_own_thread(monkeypatch):
    monkeypatch.setattr("nmt.kernels.products.SMALLEST_REPEATED_PRODUCT", 0)
    x = torch.zeros(2, 2)
    entered, left = threading.Event(), threading.Event()
    seen = {}

    def other() -> None:
        seen["before"] = has_fast_product(x, x)
        with few_shapes():
            entered.set()
            left.wait(10)
            seen["within"] = has_fast_product(x, x)
        seen["after"] = has_fast_product(x, x)

    thread = threading.Thread(target=other)
    with few_shapes():
        thread.start()
        assert entered.wait(10)
        assert has_fast_product(x, x)
    # The first block ends while the other thread is still in its own.
    left.set()
    thread.join()
    assert seen == {"before": False, "within": True, "after": False}
    assert not has_fast_product(x, x)


def test_only_the_switches_of_kernels_are_recorded(monkeypatch):
    before = switches()
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "avx2")
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    monkeypatch.setenv("ONEDNN_VERBOSE", "1")
    monkeypatch.setenv("MKL_NUM_THREADS", "1")
    expected = {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_CBWR": "COMPATIBLE",
        "ATEN_CPU_CAPABILITY": "DEFAULT",
    }
    assert kernels.environment_record()["switches"] == before | expected


def test_the_end_of_a_schedule_is_named_by_the_key_that_sets_it(toy, nmt):
    words = ["optim.schedule=linear", "optim.learning_rate=0.001", "optim.warmup=1", "run=run"]
    assert nmt("train", *toy, *words, "trainer.max_steps=2").code == 0
    changed = "(trainer.max_steps, where optim.schedule ends: 2 -> 3)"
    nmt("train", *toy, *words, "trainer.max_steps=3").failed("different configuration", changed)
