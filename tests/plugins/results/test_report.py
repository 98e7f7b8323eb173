"""`nmt report`: one page about the files of a run, which loads nothing."""

import csv
import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import sacrebleu
import yaml
from filelock import FileLock

from tests.plugins.results.test_compare import HOSTILE, parsed, section


@pytest.fixture
def run(finished, tmp_path) -> Path:
    """A copy of the finished run."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def metrics_of(run: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((run / "metrics.csv").read_text().splitlines()))


def text(element: ET.Element) -> str:
    return "".join(element.itertext())


def facts(root: ET.Element) -> dict[str, str]:
    """The numbers of the page's head."""
    (shown,) = (element for element in root.iter("dl") if element.get("class") == "facts")
    return {
        div.findtext("dt"): " ".join(" ".join(div.find("dd").itertext()).split())
        for div in shown.findall("div")
    }


def titles(root: ET.Element) -> list[str]:
    return [caption.findtext("span/b") for caption in root.iter("figcaption")]


def test_page_of_a_finished_run(nmt, run, toy):
    score = {
        "metric": "bleu",
        "name": "BLEU",
        "value": 12.345,
        "sentences": 4,
        "signature": "nrefs:1|version:2",
    }
    facts_of_training = {
        "tokens": 12_345,
        "devices": "1 x abacus",
        "versions": {"abacus": "0.0.7"},
        "score": score,
    }
    description = json.loads((run / "model/config.json").read_text())
    description["training"] |= facts_of_training
    (run / "model/config.json").write_text(json.dumps(description))
    outcome = nmt("report", "copy", "decode=greedy", "decode.max_extra_length=5")
    assert (outcome.code, outcome.out) == (0, f"{Path('copy/report.html')}\n"), outcome.err
    task = "40 of 40 lines of the validation set, beam 1, length penalty 0.6, engine torch, with the model in copy"
    assert task in outcome.err
    root = parsed(run / "report.html")
    head = facts(root)
    assert head["Update"] == "60 of 60"
    assert head["Parameters"].startswith("10,176")
    rows = [row for row in metrics_of(run) if row["valid_loss"]]
    assert head["Best validation loss"].startswith(
        f"{min(float(row['valid_loss']) for row in rows):.3f}"
    )
    assert head["Validation BLEU"].startswith(
        "12.35 mean of 5 checkpoints up to update 60, 4 sentences"
    )
    assert head["Validation BLEU"].endswith("nrefs:1|version:2")
    assert head["Target tokens"] == "12,345"
    assert "abacus" in head["Training time"]
    assert "0.0.7" in text(section(root, "Environment"))
    assert {"Loss", "Perplexity", "BLEU", "Learning rate", "Throughput"} <= set(titles(root))
    assert len(list(root.iter("svg"))) == len(titles(root))
    training, validation = (
        line.get("points").split() for line in next(root.iter("svg")).iter("polyline")
    )
    assert (len(training), len(validation)) == (
        len([r for r in metrics_of(run) if r["loss"]]),
        len(rows),
    )
    assert "finished" in text(root.find("body/header"))
    manifest = json.loads((Path(toy[-1].removeprefix("prepared=")) / "manifest.json").read_text())
    assert manifest["fingerprint"] in text(section(root, "Corpus"))
    # A column per split fits a phone.
    counts = next(section(root, "Corpus").iter("table"))
    assert [cell.text for cell in counts.find("thead/tr")] == [None, *manifest["counts"]]
    rows_of_counts = {
        row.findtext("th"): [cell.text for cell in row.findall("td")]
        for row in counts.find("tbody")
    }
    assert rows_of_counts["pairs read"] == [
        f"{split['read']:,}" for split in manifest["counts"].values()
    ]
    assert rows_of_counts["kept"] == [f"{split['kept']:,}" for split in manifest["counts"].values()]
    assert "600" in text(section(root, "Corpus"))
    assert [element.findtext("h2") for element in root.iter("section")] == [
        *("Translations", "Scores", "Curves", "Corpus", "Configuration", "Environment")
    ]


def test_page_of_a_running_training_with_an_older_model(nmt, run):
    tree = yaml.safe_load((run / "config.yaml").read_text())
    tree["trainer"]["max_steps"] = 90
    (run / "config.yaml").write_text(yaml.safe_dump(tree))
    row = dict.fromkeys(metrics_of(run)[0], "") | {"step": "70", "loss": "2.5", "skipped": "2"}
    with (run / "metrics.csv").open("a") as file:
        file.write(",".join(row.values()) + "\n")
    (run / "environment.json").write_text(
        json.dumps({"devices": ["H200", "H200"], "peaks": {"H200": 5.0}})
    )
    with FileLock(run / ".lock"):
        assert nmt("report", "copy", "sentences=0").code == 0
    root = parsed(run / "report.html")
    assert "running" in text(root.find("body/header"))
    assert "Training has continued: the model in copy/model is still from update 60" in text(
        root.find("body/header")
    )
    assert {"Gradient norm", "Padding", "MFU", "Skipped updates"} <= set(titles(root))
    assert all(
        words in text(section(root, "Environment")) for words in ("H200, H200", "peaks.H2005.0")
    )
    assert facts(root)["Update"] == "70 of 90"
    assert "to go" in facts(root)["Training time"]
    shutil.rmtree(run / "model")
    assert nmt("report", "copy", "output=page.html").code == 0
    root = parsed(Path("page.html"))
    assert "no model directory yet" in text(section(root, "Translations"))
    assert "`" not in text(section(root, "Translations"))
    assert section(root, "Translations").findtext("p/code") == "nmt average"
    assert "Training has continued" not in text(root.find("body/header"))


def test_single_checkpoint_is_not_called_average(nmt, run):
    description = json.loads((run / "model/config.json").read_text())
    score = {"metric": "bleu", "name": "BLEU", "value": 5.0, "sentences": 4, "signature": "s"}
    description["training"] |= {"averaged": [2617], "score": score}
    (run / "model/config.json").write_text(json.dumps(description))
    assert nmt("report", "copy", "sentences=0").code == 0
    assert facts(parsed(run / "report.html"))["Validation BLEU"].startswith(
        "5.00 checkpoint of update 2,617, 4"
    )


def test_scores_and_examples_match_translations(nmt, run, toy):
    search = ("decode.beam_size=2", "decode.max_extra_length=5", "decode.length_penalty=1")
    assert nmt("report", "run=copy", *search, "split=test", "sentences=15", "examples=20").code == 0
    prepared = Path(toy[-1].removeprefix("prepared="))
    (lines := Path("lines")).write_text(
        "".join((prepared / "test.en").read_text().splitlines(keepends=True)[:15])
    )
    assert nmt("translate", "run=copy", f"input={lines}", "output=hyp", *search).code == 0
    hypotheses = Path("hyp").read_text().splitlines()
    references = (prepared / "test.de").read_text().splitlines()[:15]
    shown = section(parsed(run / "report.html"), "Translations")
    assert "15 of 20 lines of the test set, beam 2, length penalty 1.0" in text(shown)
    scores = section(parsed(run / "report.html"), "Scores")
    bleu, chrf = (list(div.itertext()) for div in scores.find("dl").findall("div"))
    scorer = sacrebleu.metrics.BLEU()
    assert f"{scorer.corpus_score(hypotheses, [references]).score:.2f}" in bleu
    assert str(scorer.get_signature()) in bleu
    assert f"{sacrebleu.corpus_chrf(hypotheses, [references]).score:.2f}" in chrf
    triples = {
        tuple(text(dd) for dd in article.find("dl").findall("dd")): text(article.find("div"))
        for article in shown.iter("article")
    }
    expected = {
        (
            source,
            reference,
            hypothesis or "(empty)",
        ): f"{sacrebleu.sentence_chrf(hypothesis, [reference]).score:.1f}"
        for source, reference, hypothesis in zip(
            lines.read_text().splitlines(), references, hypotheses, strict=True
        )
    }
    assert triples == expected


def test_page_loads_and_runs_nothing(nmt, run):
    """Also if text from the run or its corpus contains scripts."""
    tree = yaml.safe_load((run / "config.yaml").read_text())
    corpus = Path(shutil.copytree(tree["prepared"], "corpus"))
    for language in ("en", "de"):
        (corpus / f"valid.{language}").write_text(f"{HOSTILE}\n" * 40)
    manifest = json.loads((corpus / "manifest.json").read_text())
    manifest["content"]["sources"] = {HOSTILE: HOSTILE}
    manifest["counts"]["train"]["dropped"] = {HOSTILE: 3}
    (corpus / "manifest.json").write_text(json.dumps(manifest))
    tree["name"] = tree["data"]["name"] = tree["model"]["name"] = tree["experiment"] = HOSTILE
    (run / "config.yaml").write_text(yaml.safe_dump(tree))
    (run / "environment.json").write_text(json.dumps({HOSTILE: HOSTILE}))
    assert (
        nmt("report", "copy", "prepared=corpus", "decode=greedy", "decode.max_extra_length=5").code
        == 0
    )
    root = parsed(run / "report.html")
    for element in root.iter():
        assert element.tag not in {"script", "img", "image", "iframe", "object", "form", "a"}
        assert not [key for key in element.attrib if key.startswith("on") or key == "src"]
        assert element.get("href", "data:,") == "data:,"
    (policy,) = (
        m.get("content")
        for m in root.iter("meta")
        if m.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"url\(|@import", root.find("head/style").text)
    assert text(root).count("<script>alert(1)</script>") > 10


def test_mistakes_are_one_line(nmt, run):
    corpus = Path(
        shutil.copytree(yaml.safe_load((run / "config.yaml").read_text())["prepared"], "other")
    )
    manifest = json.loads((corpus / "manifest.json").read_text())
    manifest["counts"]["test"]["kept"] = 0
    (corpus / "manifest.json").write_text(json.dumps(manifest))
    nmt("report").refused("run=runs/latest: not a training run of `nmt train` (no config.yaml)")
    nmt("report", "copy", "prepared=other", "split=test").refused("other has no test set")
    (corpus / "manifest.json").write_text(json.dumps(manifest | {"fingerprint": "0" * 64}))
    nmt("report", "copy", "prepared=other").refused("is not the corpus", "pass prepared=FOLDER")
    nmt("report", "copy", "other").refused("takes one run")
    nmt("report", "copy", "output=nowhere/x.html").refused("output=nowhere")
    nmt("report", "copy", "output=copy").refused(
        "output=copy: is a folder", "output=copy/report.html"
    )
