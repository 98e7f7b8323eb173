"""The metric `comet` with the real package and a small checkpoint with random weights.

The environment of a `comet-score` on PATH is used; without one, the tests install COMET in a new
environment, which takes minutes. PIP_FIND_LINKS can name a folder with a CPU build of torch.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch

from nmt.evaluation import Scoring
from nmt.plugins.comet.comet import score_lines
from nmt.plugins.comet.program import CometConfig, precision_of, version_of

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
ODD = ["", "the dog\u2028runs", "a cat\rsits", "\x85", " ", "x\x1cy\x0bz\x0c", "man\r\neats", ""]
WORDS = [
    "the",
    "a",
    "dog",
    "cat",
    "man",
    "woman",
    "child",
    "runs",
    "sits",
    "sees",
    "eats",
    "on",
    "under",
    "grass",
    "street",
    "tree",
    "red",
]


@pytest.fixture(scope="session")
def program(tmp_path_factory) -> Path:
    """The real `comet-score`."""
    installed = shutil.which("comet-score")
    if installed:
        return Path(installed)
    folder = tmp_path_factory.mktemp("comet") / "environment"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    # The release of torch that nmt uses, which pip may have cached; setuptools with pkg_resources.
    release = torch.__version__.partition("+")[0]
    packages = ["unbabel-comet", "setuptools<82", f"torch=={release}"]
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    return folder / "bin" / "comet-score"


def run_python(program: Path, script: str, *arguments: str, text: str = "") -> str:
    """The output of a script in COMET's environment, without the network."""
    python = program.resolve().parent / "python"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    environment.pop("PYTHONPATH", None)
    command = [python, HERE / script, *arguments]
    done = subprocess.run(command, env=environment, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def checkpoint(program, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("small") / "model"
    run_python(program, "small_checkpoint.py", str(folder))
    return folder / "checkpoints" / "model.ckpt"


@pytest.fixture(autouse=True)
def offline(monkeypatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def predict(program: Path, checkpoint: Path, rows: list[dict[str, str]]) -> dict[str, Any]:
    """The scores by COMET's own API, in the precision that the signature states."""
    precision = precision_of(version_of(program))
    text = json.dumps(rows)
    printed = run_python(program, "predict.py", str(checkpoint), precision, text=text)
    return json.loads(printed.splitlines()[-1])


def texts(lines: int = 60) -> tuple[list[str], list[str], list[list[str]]]:
    """Sources, references, and two systems that get one word in 2 and one in 3 wrong."""
    generator = random.Random(4)
    references = [
        " ".join(generator.choices(WORDS, k=generator.randint(2, 9))) for _ in range(lines)
    ]
    sources = [" ".join(reversed(line.split())) for line in references]
    systems = []
    for share in (1 / 2, 1 / 3):
        system = []
        for line in references:
            words = [word if generator.random() > share else "old" for word in line.split()]
            system.append(" ".join(words))
        systems.append(system)
    return sources, references, systems


def write(**files: list[str]) -> None:
    for name, lines in files.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def rows_of(sources: list[str], system: list[str], references: list[str]) -> list[dict[str, str]]:
    columns = zip(sources, system, references, strict=True)
    return [{"src": source, "mt": line, "ref": reference} for source, line, reference in columns]


def test_score_equals_comets_own_api(nmt, program, checkpoint):
    sources, references, [system, _] = texts()
    write(s=sources, r=references, h=system)
    options = [f"comet.program={program}", f"comet.model={checkpoint}", "comet.gpus=0"]
    words = ["h", "r", "source=s", "metrics=[bleu,comet]", *options]
    bleu, comet = json.loads(nmt("score", *words, "--json").out)
    assert bleu["metric"] == "bleu"
    expected = predict(program, checkpoint, rows_of(sources, system, references))
    # The system score is the mean of the lines' scores.
    assert expected["system"] == pytest.approx(fmean(expected["scores"]), abs=1e-6)
    assert comet["value"] / 100 == pytest.approx(expected["system"], abs=1e-6)
    version = version_of(program)
    assert comet["signature"].endswith(f"|precision:{precision_of(version)}|comet:{version}")


def test_odd_lines_do_not_shift_the_scores_of_other_lines(program, checkpoint):
    references = [f"the {word}" for word in WORDS[: len(ODD)]]
    config = CometConfig(str(program), str(checkpoint), gpus=0)
    scoring = Scoring("comet", sources=references, options={"comet": config})
    [scores] = score_lines([ODD], references, scoring).scores
    lines = [line.replace("\r", " ").replace("\n", " ").strip() for line in ODD]
    expected = predict(program, checkpoint, rows_of(references, lines, references))
    assert scores == pytest.approx([100 * score for score in expected["scores"]], abs=1e-4)
    assert len(set(scores)) > 4


def test_compare(nmt, program, checkpoint):
    sources, references, systems = texts()
    write(s=sources, r=references, a=systems[0], b=systems[1])
    options = [f"comet.program={program}", f"comet.model={checkpoint}"]
    words = ["a", "b", "source=s", "reference=r", "metrics=[comet,bleu]", *options]
    tree = json.loads(nmt("compare", *words, "resamples=500", "trials=1000", "--json").out)
    for system, of_system in zip(systems, tree["systems"], strict=True):
        expected = predict(program, checkpoint, rows_of(sources, system, references))
        mean = of_system["scores"]["comet"]["mean"]
        assert mean / 100 == pytest.approx(expected["system"], abs=1e-6)
    difference = tree["comparisons"][0]["metrics"]["comet"]
    assert set(difference["p"]) == {"bs", "ar"}
    assert Path("compare.html").read_text().count("COMET") > 3


def test_a_model_that_comet_does_not_have_is_one_line(nmt, program):
    sources, references, [system, _] = texts()
    write(s=sources, r=references, h=system)
    options = [f"comet.program={program}", "comet.model=Unbabel/none"]
    outcome = nmt("score", "h", "r", "source=s", "metrics=[comet]", *options)
    outcome.refused("comet-score failed", "Unbabel/none", "check comet.model")


def test_the_recorded_output_has_the_keys_of_the_real_one(program, checkpoint, tmp_path):
    recorded = json.loads((HERE / "recorded.json").read_text())
    for name in ("s", "h1", "h2", "r"):
        (tmp_path / name).write_text("the dog\n")
    command = [program, "-s", "s", "-t", "h1", "h2", "-r", "r", "--to_json", "o.json"]
    environment = {**os.environ}
    environment.pop("PYTHONPATH", None)
    subprocess.run([*command, "--model", checkpoint], cwd=tmp_path, env=environment, check=True)
    written = json.loads((tmp_path / "o.json").read_text())
    assert written.keys() == recorded.keys()
    assert written["h1"][0].keys() == recorded["h1"][0].keys()
