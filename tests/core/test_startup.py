"""A command loads only the libraries that it needs: each takes a tenth of a second, or several."""

import subprocess
import sys
from itertools import product

import pytest
from filelock import FileLock

PROGRAM = """
import sys
from nmt.cli import main

try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "others"),
    [
        ("torch", {"torch._dynamo", "sympy", "lightning"}),
        ("ctranslate2", {"torch", "multiprocessing.pool"}),
    ],
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["num_train_epochs=3"], "num_train_epochs=3: use epochs=3"),
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


@pytest.mark.slow
def test_preparing_a_corpus_does_not_load_torch(tmp_path):
    for code in ("en", "de"):
        # Digits do not make lines different.
        lines = [f"{code} {one}{two} {two}{one}\n" for one, two in product("abcdefghij", repeat=2)]
        (tmp_path / f"train.{code}").write_text("".join(lines))
    words = ["train.en", "train.de", "data.valid_size=5", "data.test_size=5"]
    command = [sys.executable, "-c", PROGRAM, "preprocess", *words, "tokenizer.vocabulary_size=300"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "prepared corpus: " in done.stderr
    modules = done.stderr.splitlines()[-1].split()
    assert "pyarrow" in modules
    assert not {"torch", "lightning", "transformers", "datasets"} & set(modules)
