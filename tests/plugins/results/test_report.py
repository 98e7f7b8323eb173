"""`nmt report`: a page about a run that loads nothing from elsewhere."""

import csv
import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import yaml
from filelock import FileLock

from tests.plugins.results.test_compare import (
    HOSTILE,
    assert_loads_nothing,
    content_security_policy,
    parsed,
    section,
)


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of the finished run."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def metrics_of(run: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((run / "metrics.csv").read_text().splitlines()))


def text(element: ET.Element) -> str:
    return "".join(element.itertext())


def facts(root: ET.Element) -> dict[str, str]:
    """The numbers at the top of the page, by their names."""
    [table] = [element for element in root.iter("dl") if element.get("class") == "facts"]
    numbers = {}
    for row in table.findall("div"):
        words = " ".join(row.find("dd").itertext()).split()
        numbers[row.findtext("dt")] = " ".join(words)
    return numbers


def titles(root: ET.Element) -> list[str]:
    """The titles of the charts."""
    return [caption.findtext("span/b") for caption in root.iter("figcaption")]


def add_to_description(run: Path, **entries: Any) -> None:
    """Add entries about the training to the description of a run's model."""
    path = run / "model" / "config.json"
    description = json.loads(path.read_text())
    description["training"].update(entries)
    path.write_text(json.dumps(description))


def manifest_of(prepared: Path) -> dict[str, Any]:
    return json.loads((prepared / "manifest.json").read_text())


def write_manifest(prepared: Path, manifest: dict[str, Any]) -> None:
    (prepared / "manifest.json").write_text(json.dumps(manifest))


SCORE = {
    "metric": "bleu",
    "name": "BLEU",
    "value": 12.345,
    "sentences": 4,
    "signature": "nrefs:1|version:2",
}
SECTIONS = ["Translations", "Scores", "Curves", "Corpus", "Configuration", "Environment"]
TASK = (
    "40 of 40 lines of the validation set, beam 1, length penalty 0.6, engine torch, "
    "with the model in copy"
)


def test_page_of_a_finished_run(nmt, run, toy):
    add_to_description(
        run,
        tokens=12_345,
        devices="1 x abacus",
        versions={"abacus": "0.0.7"},
        score=SCORE,
    )
    outcome = nmt("report", "copy", "decode=greedy", "decode.max_extra_length=5")
    assert outcome.code == 0, outcome.err
    assert outcome.out == f"{Path('copy/report.html')}\n"
    assert TASK in outcome.err
    root = parsed(run / "report.html")
    assert [element.findtext("h2") for element in root.iter("section")] == SECTIONS
    assert "finished" in text(root.find("body/header"))
    assert "0.0.7" in text(section(root, "Environment"))
    assert_facts(facts(root), metrics_of(run))
    assert_charts(root, metrics_of(run))
    manifest = manifest_of(Path(toy[-1].removeprefix("prepared=")))
    assert_corpus(section(root, "Corpus"), manifest)


def assert_facts(numbers: dict[str, str], metrics: list[dict[str, str]]) -> None:
    losses = [float(row["valid_loss"]) for row in metrics if row["valid_loss"]]
    bleu = "12.35 mean of 5 checkpoints up to update 60, 4 sentences"
    assert numbers["Update"] == "60 of 60"
    assert numbers["Parameters"].startswith("10,176")
    assert numbers["Best validation loss"].startswith(f"{min(losses):.3f}")
    assert numbers["Validation BLEU"].startswith(bleu)
    assert numbers["Validation BLEU"].endswith("nrefs:1|version:2")
    assert numbers["Target tokens"] == "12,345"
    assert "abacus" in numbers["Training time"]


def assert_charts(root: ET.Element, metrics: list[dict[str, str]]) -> None:
    assert set(titles(root)) >= {"Loss", "Perplexity", "BLEU", "Learning rate", "Throughput"}
    charts = list(root.iter("svg"))
    assert len(charts) == len(titles(root))
    training, validation = charts[0].iter("polyline")
    assert len(training.get("points").split()) == sum(row["loss"] != "" for row in metrics)
    assert len(validation.get("points").split()) == sum(row["valid_loss"] != "" for row in metrics)


def assert_corpus(shown: ET.Element, manifest: dict[str, Any]) -> None:
    assert manifest["fingerprint"] in text(shown)
    assert "600" in text(shown)
    # A column per split fits a phone.
    counts = next(shown.iter("table"))
    assert [cell.text for cell in counts.find("thead/tr")] == [None, *manifest["counts"]]
    rows = {}
    for row in counts.find("tbody"):
        rows[row.findtext("th")] = [cell.text for cell in row.findall("td")]
    splits = manifest["counts"].values()
    assert rows["pairs read"] == [f"{split['read']:,}" for split in splits]
    assert rows["kept"] == [f"{split['kept']:,}" for split in splits]


@pytest.fixture
def running(run) -> Path:
    """A run whose training has continued on two GPUs after its model was written."""
    path = run / "config.yaml"
    tree = yaml.safe_load(path.read_text())
    tree["trainer"]["max_steps"] = 90
    path.write_text(yaml.safe_dump(tree))
    row = dict.fromkeys(metrics_of(run)[0], "")
    row.update(step="70", loss="2.5", skipped="2")
    with (run / "metrics.csv").open("a") as file:
        file.write(",".join(row.values()) + "\n")
    environment = {"devices": ["H200", "H200"], "peaks": {"H200": 5.0}}
    (run / "environment.json").write_text(json.dumps(environment))
    return run


def test_page_of_a_running_training_with_an_older_model(nmt, running):
    with FileLock(running / ".lock"):
        assert nmt("report", "copy", "sentences=0").code == 0
    root = parsed(running / "report.html")
    header = text(root.find("body/header"))
    assert "running" in header
    assert "Training has continued: the model in copy/model is still from update 60" in header
    assert set(titles(root)) >= {"Gradient norm", "Padding", "MFU", "Skipped updates"}
    environment = text(section(root, "Environment"))
    assert "H200, H200" in environment
    assert "peaks.H2005.0" in environment
    assert facts(root)["Update"] == "70 of 90"
    assert "to go" in facts(root)["Training time"]


def test_page_of_a_run_without_a_model(nmt, running):
    shutil.rmtree(running / "model")
    assert nmt("report", "copy", "output=page.html").code == 0
    root = parsed(Path("page.html"))
    translations = section(root, "Translations")
    assert "no model directory yet" in text(translations)
    assert "`" not in text(translations)
    assert translations.findtext("p/code") == "nmt average"
    assert "Training has continued" not in text(root.find("body/header"))


def test_single_checkpoint_is_not_called_an_average(nmt, run):
    score = {"metric": "bleu", "name": "BLEU", "value": 5.0, "sentences": 4, "signature": "s"}
    add_to_description(run, averaged=[2617], score=score)
    assert nmt("report", "copy", "sentences=0").code == 0
    numbers = facts(parsed(run / "report.html"))
    assert numbers["Validation BLEU"].startswith("5.00 checkpoint of update 2,617, 4")


def examples_in(shown: ET.Element) -> dict[tuple[str, ...], str]:
    """The chrF of each example, by its source, reference and translation."""
    scores = {}
    for article in shown.iter("article"):
        texts = tuple(text(element) for element in article.find("dl").findall("dd"))
        scores[texts] = text(article.find("div"))
    return scores


def test_scores_and_examples_match_translations(nmt, run, toy):
    search = ("decode.beam_size=2", "decode.max_extra_length=5", "decode.length_penalty=1")
    options = ("split=test", "sentences=15", "examples=20")
    assert nmt("report", "run=copy", *search, *options).code == 0
    prepared = Path(toy[-1].removeprefix("prepared="))
    sources = (prepared / "test.en").read_text().splitlines()[:15]
    references = (prepared / "test.de").read_text().splitlines()[:15]
    Path("lines").write_text("".join(f"{line}\n" for line in sources))
    assert nmt("translate", "run=copy", "input=lines", "output=hyp", *search).code == 0
    hypotheses = Path("hyp").read_text().splitlines()

    root = parsed(run / "report.html")
    scores = section(root, "Scores").find("dl").findall("div")
    bleu, chrf = (list(row.itertext()) for row in scores)
    scorer = sacrebleu.metrics.BLEU()
    assert f"{scorer.corpus_score(hypotheses, [references]).score:.2f}" in bleu
    assert str(scorer.get_signature()) in bleu
    assert f"{sacrebleu.corpus_chrf(hypotheses, [references]).score:.2f}" in chrf

    shown = section(root, "Translations")
    assert "15 of 20 lines of the test set, beam 2, length penalty 1.0" in text(shown)
    expected = {}
    for source, reference, hypothesis in zip(sources, references, hypotheses, strict=True):
        score = sacrebleu.sentence_chrf(hypothesis, [reference]).score
        expected[source, reference, hypothesis or "(empty)"] = f"{score:.1f}"
    assert examples_in(shown) == expected


def test_page_loads_and_runs_nothing(nmt, run):
    """Even if texts from the run or its corpus contain scripts."""
    tree = yaml.safe_load((run / "config.yaml").read_text())
    corpus = Path(shutil.copytree(tree["prepared"], "corpus"))
    for language in ("en", "de"):
        (corpus / f"valid.{language}").write_text(f"{HOSTILE}\n" * 40)
    manifest = manifest_of(corpus)
    manifest["content"]["sources"] = {HOSTILE: HOSTILE}
    manifest["counts"]["train"]["dropped"] = {HOSTILE: 3}
    write_manifest(corpus, manifest)
    tree["name"] = HOSTILE
    tree["data"]["name"] = HOSTILE
    tree["model"]["name"] = HOSTILE
    tree["experiment"] = HOSTILE
    (run / "config.yaml").write_text(yaml.safe_dump(tree))
    (run / "environment.json").write_text(json.dumps({HOSTILE: HOSTILE}))
    search = ("decode=greedy", "decode.max_extra_length=5")
    assert nmt("report", "copy", "prepared=corpus", *search).code == 0
    root = parsed(run / "report.html")
    assert_loads_nothing(root)
    tags = {element.tag for element in root.iter()}
    assert tags.isdisjoint({"script", "img", "image", "iframe", "object", "form", "a"})
    assert content_security_policy(root).startswith("default-src 'none'")
    assert not re.search(r"url\(|@import", root.find("head/style").text)
    assert text(root).count("<script>alert(1)</script>") > 10


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], ["run=runs/latest: not a training run of `nmt train` (no config.yaml)"]),
        (["copy", "other"], ["takes one run"]),
        (["copy", "output=nowhere/x.html"], ["output=nowhere"]),
        (["copy", "output=copy"], ["output=copy: is a folder", "output=copy/report.html"]),
    ],
)
def test_mistakes_are_one_line(nmt, run, words, problem):
    nmt("report", *words).refused(*problem)


def test_a_corpus_that_does_not_fit_is_one_line(nmt, run):
    tree = yaml.safe_load((run / "config.yaml").read_text())
    corpus = Path(shutil.copytree(tree["prepared"], "other"))
    manifest = manifest_of(corpus)
    manifest["counts"]["test"]["kept"] = 0
    write_manifest(corpus, manifest)
    nmt("report", "copy", "prepared=other", "split=test").refused("other has no test set")
    manifest["fingerprint"] = "0" * 64
    write_manifest(corpus, manifest)
    nmt("report", "copy", "prepared=other").refused("is not the corpus", "pass prepared=FOLDER")
