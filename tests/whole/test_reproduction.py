"""A table from text to page through interruptions: what is done stays done, and what failed is told."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import plan as planning
import pytest
import reproduce
import table2
from plan import Row

import nmt as package
from nmt.evaluation import score
from nmt.training import read_metrics

RECIPE = Path(reproduce.__file__).parent
PROGRAM = f"""
import json, sys
sys.path.insert(0, {str(RECIPE)!r})
from types import SimpleNamespace
import plan, reproduce
plan.SCALES["laptop"] = SimpleNamespace(**json.loads(sys.argv[1]))
sys.exit(reproduce.main(sys.argv[2:]))
"""
WORDS = ["table2", "scale=laptop", "rows=[en-de-base,en-de-big]", "work=work", "output=out"]
RESULTS = Path("out/table2/results/laptop")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(package.__file__).parents[1]))
    return tmp_path


def made_of(monkeypatch, *commands):
    """Let Table 2 have one row, en-de-base, of these commands."""
    monkeypatch.setattr(table2, "rows", lambda options: [Row("en-de-base", [["nmt", *words] for words in commands])])


def test_a_row_is_run_once_and_again_where_its_commands_are_others(here, monkeypatch, capfd):
    scores = ["score", "hypothesis=a", "reference=a", "format=json"]
    (here / "a").write_text("A line.\n")
    found = {"scores": [], "devices": "cpu", "figures": {}}
    monkeypatch.setattr(reproduce, "findings", lambda row, printed: {**found, "scores": json.loads(printed)})
    made_of(monkeypatch, ["--version"], scores)
    assert reproduce.main(WORDS[:2] + WORDS[3:]) == 0
    out, err = capfd.readouterr()
    assert out.split() == [str(RESULTS / "table2.md"), str(RESULTS / "table2.html")]
    assert err.startswith("table2 en-de-base, 1 of 2: nmt --version\ntable2 en-de-base, 2 of 2: nmt score")
    result = json.loads((RESULTS / "en-de-base.json").read_text())
    assert result["commands"] == ["nmt --version", "nmt score hypothesis=a reference=a format=json"]
    assert list(result["seconds"]) == ["--version", "score"]
    assert result["scores"] == [asdict(item) for item in score(["A line."], ["A line."], ["bleu", "chrf", "ter"])]
    assert "| Transformer (base) | 27.3 |" in (RESULTS / "table2.md").read_text()

    assert reproduce.main(WORDS[:2] + WORDS[3:]) == 0
    assert "already measured; remove" in capfd.readouterr().err
    made_of(monkeypatch, ["--version"], [*scores, "language=en"])
    assert reproduce.main(WORDS[:2] + WORDS[3:]) == 0
    assert "2 of 2" in capfd.readouterr().err


def tiny_scale(toy):
    """The toy corpus, and the paper's models with a thirty-second of their widths."""
    own = [word for word in toy if not word.startswith(("model", "trainer.max_steps", "prepared=", "validation.bleu"))]
    corpus = [word for word in own if word.startswith(("data", "tokenizer", "workers"))]
    words = [word for word in own if word not in corpus and not word.startswith(("decode", "trainer.devices"))]
    return {
        **vars(planning.SCALES["laptop"]),
        "corpora": {"en-de": corpus, "en-fr": corpus},
        "trainings": {"base": [40, 10], "big": [400, 10]},
        "words": [*words, "optim.factor=0.1"],
        "width": 32,
        "depth": 6,
    }


def wait_for(process, run):
    deadline = time.monotonic() + 600
    while not read_metrics(run):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_a_table_goes_on_from_an_interruption(toy, here, monkeypatch, capfd):
    scale = tiny_scale(toy)
    command = [sys.executable, "-c", PROGRAM, json.dumps(scale), *WORDS]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **streams, text=True, start_new_session=True) as process:
        try:
            wait_for(process, Path("work/runs/en-de-big"))
            os.killpg(process.pid, signal.SIGINT)
            errors = process.communicate(timeout=300)[1]
        finally:
            os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
    assert process.returncode == 130, errors
    assert "the reproduction was stopped; the same command goes on from there" in errors
    assert "Traceback" not in errors, errors
    assert [path.name for path in RESULTS.glob("*.json")] == ["en-de-base.json"]
    first = (RESULTS / "en-de-base.json").read_text()
    assert "not run" in (RESULTS / "table2.md").read_text().split("Transformer (big)")[1]

    monkeypatch.setitem(planning.SCALES, "laptop", SimpleNamespace(**scale))
    assert reproduce.main(WORDS) == 0
    out, err = capfd.readouterr()
    assert out.split() == [str(RESULTS / "table2.md"), str(RESULTS / "table2.html")]
    ours = [line for line in err.splitlines() if line.startswith("table2 ")]
    assert ours[0].startswith("table2 en-de-base: already measured")
    assert [line.split(": nmt ")[1].split()[0] for line in ours[1:]] == ["preprocess", "train", "translate", "score"]
    assert "is already prepared" in err
    assert (RESULTS / "en-de-base.json").read_text() == first

    big = json.loads((RESULTS / "en-de-big.json").read_text())
    hypotheses = Path("work/runs/en-de-big/test.de").read_text().splitlines()
    references = Path("work/data/en-de/test.de").read_text().splitlines()
    assert big["scores"] == [asdict(item) for item in score(hypotheses, references, ["bleu", "split"], "de")]
    assert big["figures"]["updates"] == 400
    assert big["seconds"]["train"] >= big["figures"]["training_seconds"] - 0.1
    assert f"training {big['figures']['parameters']:,} parameters" in errors
    assert f"{big['scores'][0]['value']:.2f}" in (RESULTS / "table2.md").read_text()

    assert reproduce.main(WORDS) == 0
    assert capfd.readouterr().err.count("already measured") == 2
