"""The metric `comet` with a stand-in for COMET's program; test_real_comet.py runs the real one."""

import hashlib
import json
import random
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

import nmt as package
from nmt.errors import NMTError
from nmt.evaluation import Scoring
from nmt.plugins.comet.comet import read_scores, score_lines
from nmt.plugins.comet.program import CometConfig
from tests.plugins.comet import stand_in

ODD = ["", "one\u2028two", "a\rb", "\x85", " ", "x\x1cy\x0bz\x0c", "\t\ufeff", "c\r\nd", "last", ""]
"""Lines that other programs would split, join or leave out."""
FAILS = (
    "import sys\nprint('Error in', file=sys.stderr)\nprint(TEXT, file=sys.stderr)\nsys.exit(1)\n"
)
WRITES = """import sys
from pathlib import Path
[name] = [word.partition("=")[2] for word in sys.argv if word.startswith("--to_json")]
Path(name).write_text(TEXT)
"""


@pytest.fixture
def program(tmp_path, monkeypatch) -> Path:
    """The stand-in, on PATH."""
    path = stand_in.install(tmp_path / "environment")
    monkeypatch.setenv("PATH", str(path.parent), prepend=":")
    return path


@pytest.fixture
def files(here) -> list[str]:
    """Translations by two systems, and the options that name their source and reference."""
    generator = random.Random(1)
    sources = ["s" * generator.randint(1, 30) for _ in range(80)]
    references = [line + "r" * generator.randint(0, 5) for line in sources]
    worse = [line + "x" * generator.choice((0, 1, 2, 5)) for line in references]
    better = [line + "x" * generator.choice((0, 0, 1, 2)) for line in references]
    for name, lines in {"s": sources, "r": references, "worse": worse, "better": better}.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    return ["source=s", "reference=r"]


def calls_of(program: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in program.with_name("calls").read_text().splitlines()]


def expected_scores(name: str) -> list[float]:
    lines = [Path(file).read_text().splitlines() for file in ("s", name, "r")]
    return [100 * stand_in.score(*texts) for texts in zip(*lines, strict=True)]


def scores_of(systems: list[list[str]], references: list[str], sources: list[str]) -> list[list]:
    return score_lines(systems, references, Scoring("comet", sources=sources)).scores


def test_the_score_is_the_mean_of_the_lines(nmt, files, program, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    words = ["worse", *files, "metrics=[chrf,comet]", "comet.batch_size=3", "comet.gpus=2"]
    chrf, comet = json.loads(nmt("score", *words, "--json").out)
    assert chrf["metric"] == "chrf"
    assert comet["value"] == pytest.approx(fmean(expected_scores("worse")), abs=1e-9)
    signature = "metric:comet|nrefs:1|case:mixed|model:Unbabel/wmt22-comet-da"
    assert comet["signature"] == f"{signature}|scale:100|precision:float16|comet:2.2.7"
    assert nmt("score", *words).out.endswith(
        f"COMET = {comet['value']:.2f}  {comet['signature']}\n"
    )
    call = calls_of(program)[0]
    assert (call["batch_size"], call["gpus"]) == (3, 2)
    # Our environment has versions of packages that COMET cannot use.
    assert call["python_path"] is None


@pytest.mark.parametrize(
    ("version", "precision"),
    [("2.2.4", "float32"), ("2.2.5", "float16"), ("2.10.0", "float16"), ("1.1.3", "float32")],
)
def test_the_signature_has_version_precision_and_the_hash_of_a_checkpoint(
    nmt, files, tmp_path, version, precision
):
    program = stand_in.install(tmp_path / "tool", version)
    # uv and pipx install a link.
    link = tmp_path / "comet-score"
    link.symlink_to(program)
    checkpoint = tmp_path / "checkpoints" / "model.ckpt"
    checkpoint.parent.mkdir()
    checkpoint.write_bytes(b"weights")
    (tmp_path / "hparams.yaml").write_text("class_identifier: regression_metric\n")
    digest = hashlib.sha256(b"weights").hexdigest()[:16]
    options = [f"comet.program={link}", "comet.model=checkpoints/model.ckpt"]
    [score] = json.loads(nmt("score", "worse", *files, "metrics=[comet]", *options, "--json").out)
    model = f"model:model.ckpt|sha256:{digest}"
    expected = f"|{model}|scale:100|precision:{precision}|comet:{version}"
    assert score["signature"].endswith(expected)
    # The program runs in another folder.
    assert calls_of(program)[0]["model"] == str(checkpoint)


def test_odd_lines_do_not_shift_the_scores_of_other_lines(program):
    references = [f"reference {number}" for number in range(len(ODD))]
    sources = ODD[::-1]
    # COMET strips lines; a line break inside a line becomes a space.
    plain = [line.replace("\r", " ").replace("\n", " ").strip() for line in ODD]
    texts = zip(plain[::-1], plain, references, strict=True)
    expected = [100 * stand_in.score(*each) for each in texts]
    assert scores_of([ODD, references], references, sources)[0] == pytest.approx(expected)


def test_python(program):
    [score] = package.score(
        ["ab", "c"], ["a", "c"], ["", "c"], metrics=["comet"], comet={"model": "a/b"}
    )
    texts = [("", "ab", "a"), ("c", "c", "c")]
    assert score.value == pytest.approx(100 * fmean(stand_in.score(*each) for each in texts))
    assert "|model:a/b|" in score.signature
    with pytest.raises(NMTError, match="source"):
        package.score(["a"], ["a"], metrics=["comet"])
    with pytest.raises(NMTError, match=r"has 1 line"):
        package.score(["a", "b"], ["a", "b"], ["a"], metrics=["comet"])


def randomization_p(first: list[float], second: list[float], trials: int = 20_000) -> float:
    """The two-sided p-value of approximate randomization, computed from the lines' differences."""
    differences = np.array(first) - np.array(second)
    signs = np.random.default_rng(7).choice((-1, 1), size=(trials, len(first)))
    means = np.abs((signs * differences).mean(1))
    return float((np.sum(means >= abs(differences.mean())) + 1) / (trials + 1))


def bootstrap_p(first: list[float], second: list[float], trials: int = 20_000) -> float:
    """The p-value of sacreBLEU's paired bootstrap, computed from the lines' differences."""
    differences = np.array(first) - np.array(second)
    generator = np.random.default_rng(8)
    drawn = generator.integers(len(first), size=(trials, len(first)))
    means = np.abs(differences[drawn].mean(1))
    centered = means - means.mean()
    return float((np.sum(centered > abs(differences.mean())) + 1) / (trials + 1))


@pytest.mark.slow
def test_compare_tests_differences_and_scores_each_system_once(nmt, files, program):
    Path("same").write_bytes(Path("worse").read_bytes())
    words = ["worse", "better", "again=[same]", *files, "metrics=[comet,chrf]"]
    outcome = nmt("compare", *words, "resamples=2000", "trials=5000", "--json")
    tree = json.loads(outcome.out)
    worse, better = expected_scores("worse"), expected_scores("better")
    scores = [system["scores"]["comet"]["mean"] for system in tree["systems"]]
    assert scores == pytest.approx([fmean(worse), fmean(better), fmean(worse)])
    gap, same = (comparison["metrics"]["comet"] for comparison in tree["comparisons"])
    assert gap["value"] == pytest.approx(fmean(better) - fmean(worse))
    assert gap["p"]["ar"] == pytest.approx(randomization_p(worse, better), abs=0.01)
    assert gap["p"]["bs"] == pytest.approx(bootstrap_p(worse, better), abs=0.01)
    assert gap["better"]
    assert same["verdict"] == "not different at all"
    # One call, and equal translations only once.
    [call] = calls_of(program)
    assert call["translations"] == ["system0", "system1"]
    for test, count in {"bs": 2000, "ar": 5000}.items():
        signature = tree["signatures"]["comet"][test]
        assert signature.startswith("metric:comet|nrefs:1|case:mixed|model:Unbabel/wmt22-comet-da|")
        assert signature.endswith(f"|seed:12345|{test}:{count}")
    # The first metric is that of the buckets.
    rows = [row for row in tree["buckets"] if row["unit"] == "COMET"]
    assert sum(row["count"] for row in rows if row["title"] == rows[0]["title"]) == 80
    page = Path("compare.html").read_text()
    assert page.count("COMET") > 3


def test_compare_as_text(nmt, files, program):
    printed = nmt("compare", "worse", "better", *files, "metrics=[comet]", "output=null").out
    table, verdict = printed.splitlines()[:2], printed.splitlines()[4]
    assert table[0] == "system  COMET"
    assert table[1].startswith(f"worse   {fmean(expected_scores('worse')):.2f} ± ")
    assert verdict.startswith("better against worse: COMET +")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["comet.program=nowhere"], ["comet.program=nowhere: not found", "uv tool install"]),
        (["comet.model=."], ["is a folder"]),
        (["comet.model=a.ckpt"], ["comet.model=a.ckpt: no such file"]),
        (["comet.model=alone/c/model.ckpt"], ["hparams.yaml"]),
        (["comet.model=kiwi/c/model.ckpt"], ["without a reference"]),
        (["comet.model=old/c/model.ckpt"], ["without a reference"]),
        (["comet.model=broken/c/model.ckpt"], ["hparams.yaml: cannot be read"]),
        (["comet.model=Unbabel/wmt22-cometkiwi-da"], ["without a reference"]),
        (["comet.model=wmt20-comet-qe-da"], ["without a reference"]),
        (["comet.model=a/b/c"], ["neither a checkpoint"]),
        (["comet.model=--help"], ["neither a checkpoint"]),
        (["comet.batch_size=0"], ["must be"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["score", "compare"])
def test_mistakes_are_reported_before_any_text_is_read(nmt, program, here, command, words, problem):
    settings = {
        "kiwi": "class_identifier: unified_metric\ninput_segments: [mt, src]\n",
        "old": "class_identifier: referenceless_regression_metric\n",
        "broken": "a: [",
        "alone": None,
    }
    for name, text in settings.items():
        (here / name / "c").mkdir(parents=True)
        (here / name / "c" / "model.ckpt").touch()
        if text is not None:
            (here / name / "hparams.yaml").write_text(text)
    Path("a").touch()
    Path("b").touch()
    # The first text to be read does not exist.
    texts = ["reference=missing", "source=missing"]
    systems = ["a", "b"] if command == "compare" else ["hypothesis=missing"]
    nmt(command, *systems, *texts, "metrics=[bleu,comet]", *words).refused(*problem)


@pytest.mark.parametrize(
    ("isolated", "module", "works"),
    [("false", "pkg_resources", True), ("false", "other", False), ("true", "other", True)],
)
def test_an_environment_without_pkg_resources_is_reported_first(
    nmt, files, tmp_path, isolated, module, works
):
    path = stand_in.install(tmp_path / "environment")
    settings = tmp_path / "environment" / "pyvenv.cfg"
    settings.write_text(f"home = /usr/bin\ninclude-system-site-packages = {isolated}\n")
    (tmp_path / "environment" / "lib" / "python3.11" / "site-packages" / module).mkdir()
    options = [*files, "metrics=[comet]", f"comet.program={path}"]
    outcome = nmt("score", "worse" if works else "hypothesis=missing", *options)
    if works:
        assert outcome.code == 0, outcome.err
    else:
        outcome.refused("setuptools below 82", "uv tool install", "--force")


def test_a_source_is_needed(nmt, files, program):
    for words in (["score", "worse"], ["compare", "worse", "better"]):
        nmt(*words, "reference=r", "metrics=[comet]").refused("comet", "source=FILE")


def test_lowercase_is_refused(nmt, files, program):
    nmt("score", "worse", *files, "metrics=[comet]", "lowercase=true").refused("lowercase=true")


def test_bundles_have_no_scores_that_depend_on_another_program(nmt):
    nmt("cite", "metrics=[comet]").refused("metrics=", "must be")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (
            FAILS.replace("TEXT", "'KeyError: no \\x1b model'"),
            ["KeyError: no � model", "comet.model"],
        ),
        (FAILS.replace("TEXT", "''"), ["exit code 1 (Error in)"]),
        (FAILS.replace("TEXT", "\"No module named 'pkg_resources'\""), ["setuptools<82"]),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", ["signal 9", "batch_size"]),
        ("", ["other scores than expected"]),
        (WRITES.replace("TEXT", "'{'"), ["other scores than expected"]),
        (WRITES.replace("TEXT", "'{}'"), ["other scores than expected"]),
        (WRITES.replace("TEXT", "'[1]'"), ["other scores than expected"]),
        (WRITES.replace("TEXT", """'{"system0": [{"COMET": NaN}]}'"""), ["other scores"]),
        (WRITES.replace("TEXT", """'{"system0": [{"COMET": 0.5}]}'"""), ["1 for 80 lines"]),
    ],
    ids=str,
)
def test_failures_of_the_program_are_one_line(nmt, files, tmp_path, program, problem):
    path = stand_in.install(tmp_path / "environment", program=program)
    options = [*files, "metrics=[comet]", f"comet.program={path}"]
    nmt("score", "worse", *options).refused(*problem)


def test_a_program_that_cannot_be_started_is_one_line(nmt, files, tmp_path):
    path = stand_in.install(tmp_path / "environment")
    path.write_text("#!/nowhere/python\n")
    options = [*files, "metrics=[comet]", f"comet.program={path}"]
    nmt("score", "worse", *options).refused("cannot be run", "reinstall")


def test_output_recorded_from_comet_2_2_7_is_read():
    path = Path(__file__).with_name("recorded.json")
    first, second = read_scores(path, ["h1", "h2"], 5)
    assert fmean(first) == pytest.approx(29.1845703125)
    assert fmean(second) == pytest.approx(26.45, abs=0.005)
    assert CometConfig().program == "comet-score"
    assert all(low != high for low, high in pairwise(first))
