"""A table from text to page, on some hundred generated lines, through an interruption."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console

import nmt as package
from nmt.commands import compose
from nmt.evaluation.scores import score
from nmt.reproduce.reproduce import reproduce
from nmt.reproduce.scales import Scale, Training
from nmt.training.run_folder import read_metrics

PROGRAM = """
import json, sys
from rich.console import Console
from nmt.commands import compose
from nmt.reproduce.reproduce import reproduce
from nmt.reproduce.scales import Scale, Training
tree = json.loads(sys.argv[1])
trainings = {name: Training(*values) for name, values in tree.pop("trainings").items()}
scale = Scale(**tree, trainings=trainings)
sys.exit(reproduce(compose("reproduce", sys.argv[2:]), scale, Console(stderr=True, soft_wrap=True)))
"""
WORDS = ["table2", "scale=laptop", "rows=[en-de-base,en-de-big]", "work=work", "output=out"]


def tiny_scale(toy: list[str]) -> dict[str, object]:
    """The toy corpus, and the paper's models with a thirty-second of their widths."""
    own = [word for word in toy if not word.startswith(("model", "trainer.max_steps", "prepared=", "validation.bleu"))]
    corpus = [word for word in own if word.startswith(("data", "tokenizer", "workers"))]
    words = [word for word in own if word not in corpus and not word.startswith(("decode", "trainer.devices"))]
    return {
        "name": "tiny",
        "said": "Nothing to compare.",
        "corpora": {"en-de": corpus, "en-fr": corpus},
        "local": "",
        "trainings": {"base": [40, 10], "big": [400, 10]},
        "words": [*words, "optim.factor=0.1"],
        "width": 32,
        "depth": 6,
        **{"grid": "laptop", "parser": [], "parser_said": "Nothing to compare."},
    }


def wait_for(process: subprocess.Popen[str], run: Path) -> None:
    deadline = time.monotonic() + 600
    while not read_metrics(run):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
def test_a_table_goes_on_from_an_interruption(toy, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(package.__file__).parents[1]))
    tree = tiny_scale(toy)
    command = [sys.executable, "-c", PROGRAM, json.dumps(tree), *WORDS]
    results = Path("out/table2/results/tiny")
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
    assert "Traceback" not in errors
    assert [path.name for path in results.glob("*.json")] == ["en-de-base.json"]
    first = (results / "en-de-base.json").read_text()
    assert "not run" in (results / "table2.md").read_text().split("Transformer (big)")[1]

    trainings = {name: Training(*values) for name, values in tree.pop("trainings").items()}
    scale = Scale(**tree, trainings=trainings)
    config = compose("reproduce", WORDS)
    assert reproduce(config, scale, Console(stderr=True, soft_wrap=True)) == 0
    out, err = capfd.readouterr()
    assert out.split() == [str(results / "table2.md"), str(results / "table2.html")]
    ours = [line for line in err.splitlines() if line.startswith("table2 ")]
    assert ours[0] == "table2 en-de-base: already measured"
    assert [line.split(": nmt ")[1].split()[0] for line in ours[1:]] == ["train", "translate", "score"]
    assert (results / "en-de-base.json").read_text() == first

    big = json.loads((results / "en-de-big.json").read_text())
    hypotheses = Path("work/runs/en-de-big/test.de").read_text().splitlines()
    references = Path("work/data/en-de/test.de").read_text().splitlines()
    assert big["scores"] == [item.as_dict() for item in score(hypotheses, references, ["bleu", "split"])]
    assert (big["figures"]["updates"], big["figures"]["lines"]) == (400, 20)
    record = json.loads(Path("work/stages/train-en-de-big.json").read_text())
    assert len(record["sessions"]) == 2
    assert big["seconds"]["train en-de-big"] == pytest.approx(sum(s["seconds"] for s in record["sessions"]), abs=0.1)
    assert f"training {big['figures']['parameters']:,} parameters" in errors
    assert f"{big['scores'][0]['value']:.2f}" in (results / "table2.md").read_text()

    assert reproduce(config, scale, Console(stderr=True, soft_wrap=True)) == 0
    again = capfd.readouterr().err.splitlines()
    assert again == ["table2 en-de-base: already measured", "table2 en-de-big: already measured"]
