"""A command loads only the libraries that it needs: each takes a tenth of a second, or several."""

import os
import subprocess
import sys

import pytest
from filelock import FileLock

from nmt import hardware

PROGRAM = "import sys\nfrom nmt.cli import main\ntry:\n main()\nfinally:\n print(*sys.modules, file=sys.stderr)"


@pytest.mark.parametrize(
    ("engine", "others"),
    [("torch", {"torch._dynamo", "sympy", "lightning"}), ("ctranslate2", {"torch", "multiprocessing.pool"})],
)
def test_translating_a_text_loads_little(checkpoint, tmp_path, monkeypatch, engine, others):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    words = [sys.executable, "-c", PROGRAM, "translate", checkpoint, "ka nu lo", f"engine={engine}"]
    if engine == "ctranslate2":
        pytest.importorskip("nmt.plugins.exchange")
        subprocess.run(words, check=True, capture_output=True)  # converts the model, by torch
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout.count("\n") == 1
    assert not {"typer", "rich", "datasets", *others} & set(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["num_train_epochs=3"], "num_train_epochs=3: use trainer.max_steps="),
        (["trainer.max_steps=0"], "trainer.max_steps=0: must be"),
        (["model=huge"], "model=huge: no such option"),
        (["run=used"], "used: another nmt is using it"),
    ],
)
def test_training_refuses_mistakes_before_it_loads_torch(toy, tmp_path, words, problem):
    prepared = toy[-1].removeprefix("prepared=")
    (tmp_path / "used").mkdir()
    with FileLock(tmp_path / "used/.lock"):
        command = [sys.executable, "-c", PROGRAM, "train", prepared, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    *message, modules = done.stderr.splitlines()
    assert problem in message[-1]
    assert not {"torch", "lightning", "datasets", "pyarrow"} & set(modules.split())


WAITS = (
    "{before}import os, nmt{after}; print(*(os.environ.get(name) for name in ('GOMP_SPINCOUNT', 'OMP_WAIT_POLICY')))"
)


@pytest.mark.parametrize(
    ("before", "after", "variables", "expected"),
    [
        ("", "", {}, f"{hardware.SPIN_COUNT} None"),
        ("", ".cli, nmt.training", {}, f"{hardware.SPIN_COUNT} None"),
        ("", "", {"GOMP_SPINCOUNT": "7"}, "7 None"),
        ("", "", {"OMP_WAIT_POLICY": "PASSIVE"}, "None PASSIVE"),
        ("", "", {"KMP_BLOCKTIME": "0"}, "None None"),
        ("import torch, ", "", {}, "None None"),  # libgomp has read its variables
    ],
)
def test_waiting_threads_sleep_soon_unless_the_user_decides(before, after, variables, expected):
    environment = {name: value for name, value in os.environ.items() if name not in hardware.WAITING}
    program = WAITS.format(before=before.replace(", ", "; "), after=after)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment | variables, check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == expected


@pytest.mark.skipif(sys.platform != "linux", reason="reads the display of libgomp")
def test_libgomp_reads_the_spin_count():
    environment = {name: value for name, value in os.environ.items() if name not in hardware.WAITING}
    done = subprocess.run(
        [sys.executable, "-c", "import nmt, torch"],
        env=environment | {"OMP_DISPLAY_ENV": "VERBOSE"},
        check=True,
        capture_output=True,
        text=True,
    )
    if "GOMP_SPINCOUNT" not in done.stderr:
        pytest.skip("torch uses another OpenMP runtime")
    assert f"GOMP_SPINCOUNT = '{hardware.SPIN_COUNT}'" in done.stderr
