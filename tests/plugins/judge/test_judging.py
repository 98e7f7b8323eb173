"""`nmt score run=...`, `nmt score flags=true`, and flags in `nmt translate format=jsonl`."""

import json
import math
from pathlib import Path

import pytest
import torch

from nmt.config import BOS, EOS
from nmt.flags.finding import flags
from nmt.model import load_model
from nmt.plugins.judge import judge
from nmt.text import read_tokenizer

SOURCES = ["ka lo mi", "so", "nu pe ri so tu va", "", "we  ka"]
TARGETS = ["mi lo ka", "", "va tu so ri pe nu", "ka", "ka we"]
SCORE_FLAGS = ["score", "h", "source=s", "flags=true"]
FIRST_LINES = "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ..."


def write(name: str, *lines: str) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def words(nmt, finished) -> list[str]:
    write("s", *SOURCES)
    write("t", *TARGETS)
    return ["score", f"run={finished}", "source=s", "hypothesis=t", "device=cpu"]


@pytest.fixture
def expected(finished) -> list[list[float]]:
    """log P of the tokens of each pair, computed without batches."""
    model = load_model(finished / "model")
    tokenizer = read_tokenizer(finished / "model")
    scores = []
    for pair in zip(SOURCES, TARGETS, strict=True):
        source, target = tokenizer.encode([" ".join(line.split()) for line in pair])
        logits = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[0]
        positions = torch.arange(len(target) + 1)
        tokens = torch.tensor([*target, EOS])
        scores.append(logits.log_softmax(-1)[positions, tokens].tolist())
    return scores


def test_score_writes_a_row_for_each_pair(nmt, words, expected, monkeypatch):
    monkeypatch.setattr(judge, "BUFFER", 2)
    done = nmt(*words, "format=tsv")
    assert done.code == 0, done.err
    for row, tokens, number in zip(done.out.splitlines(), expected, range(1, 6), strict=True):
        line, log_probability, perplexity, length = map(float, row.split("\t"))
        assert (line, length) == (number, len(tokens))
        assert log_probability == pytest.approx(sum(tokens), abs=1e-4)
        assert perplexity == pytest.approx(math.exp(-sum(tokens) / len(tokens)), rel=1e-3)


def test_score_ends_with_a_summary(nmt, words, expected):
    summary = nmt(*words, "format=tsv").err.splitlines()[-1]
    total = sum(map(sum, expected))
    count = sum(map(len, expected))
    assert f"pairs: 5, tokens: {count}, log probability " in summary
    log_probability = float(summary.split("log probability ")[1].split(",")[0])
    assert log_probability == pytest.approx(total, abs=1e-3)
    perplexity = float(summary.rsplit(" ", 1)[1])
    assert perplexity == pytest.approx(math.exp(-total / count), rel=1e-3)


def test_score_writes_the_tokens_of_each_pair_as_json(nmt, words, expected):
    lines = nmt(*words, "--json", "batch_tokens=7").out.splitlines()
    records = [json.loads(line) for line in lines]
    for record, target, tokens in zip(records, TARGETS, expected, strict=True):
        assert record["token_log_probabilities"] == pytest.approx(tokens, abs=1e-4)
        assert record["log_probability"] == pytest.approx(sum(tokens), abs=1e-4)
        assert record["length"] == len(record["tokens"]) + 1 == len(tokens)
        assert "".join(record["tokens"]).replace("\u2581", " ").strip() == target


def test_mistakes_are_reported_on_one_line(nmt, words):
    nmt(*words, "source=nowhere").refused("nowhere: No such file")
    nmt(*words, "reference=t").refused("omit reference and examples")
    Path("t").write_bytes(b"ka\n\xff\n")
    assert "nmt: t, line 2: invalid UTF-8 at byte 1 (if" in nmt(*words).err
    write("t", "ka")
    nmt(*words).refused("s has 5", "t has 1")


def test_translate_writes_flags_and_log_probabilities_as_jsonl(nmt, finished):
    lines = ["ka lo mi", "nu  pe ri", "ka " * 9, "ka https://a.org/x lo", ""]
    write("s", *lines)
    done = nmt(
        "translate", f"run={finished}", "input=s", "format=jsonl", "device=cpu", "decode.n_best=2"
    )
    records = [json.loads(line) for line in done.out.splitlines()]
    raised = set[str]()
    assert [record["source"] for record in records] == lines
    for source, record in zip(lines[:-1], records, strict=False):
        for item in record["translations"]:
            scores = item["token_log_probabilities"]
            assert sum(scores) == pytest.approx(item["log_probability"], abs=1e-4)
            assert item["flags"] == flags(source, item["text"], frozenset(["LATIN"]), scores)
            raised.update(item["flags"])
            if "http" not in source:
                aligned = {target for _, target in item["alignment"]}
                assert aligned == set(range(len(item["text"].split())))
    assert "low_confidence" in raised
    assert records[-1]["translations"] == [
        {
            "text": "",
            "score": 0.0,
            "log_probability": 0.0,
            "flags": [],
            "tokens": [],
            "token_log_probabilities": [],
            "alignment": [],
            "word_log_probabilities": [],
        }
    ]


@pytest.fixture
def hypotheses(here) -> None:
    """Eleven translations with a wrong number, and an empty one."""
    write("s", *["In 1998."] * 11, "Yes.")
    write("h", *["1989."] * 11, "")


@pytest.mark.usefixtures("hypotheses")
def test_score_counts_flags_and_lists_the_first_lines(nmt):
    assert nmt(*SCORE_FLAGS).out.splitlines() == [
        "empty: 1, 8.33%: lines 12",
        f"number: 11, 91.67%: {FIRST_LINES}",
        f"any: 12, 100.00%: {FIRST_LINES}",
    ]


@pytest.mark.usefixtures("hypotheses")
def test_score_also_counts_flags_of_references(nmt):
    write("r", *["1998."] * 9, *["1999."] * 3)
    words = [*SCORE_FLAGS, "reference=r", "metrics=bleu"]
    row = f"number: 11, 91.67% (references 16.67%): {FIRST_LINES}"
    assert row in nmt(*words).out.splitlines()
    tree = json.loads(nmt(*words, "--json").out)
    assert [score["metric"] for score in tree["scores"]] == ["bleu"]
    lines = {flag["flag"]: flag["lines"] for flag in tree["flags"] if flag["count"] == 1}
    assert lines == {"empty": [12]}


@pytest.mark.usefixtures("hypotheses")
def test_flags_need_a_source(nmt):
    nmt("score", "h", "flags=true").refused("source: required with flags=true")


def test_target_names_both_languages_of_a_model_of_many(nmt, nllb_model, tmp_path):
    text = "ཀ ক ອая"
    (tmp_path / "s").write_text(f"{text}\n<fr2de> {text}\n")
    (tmp_path / "t").write_text(f"{text}\n{text}\n")
    job = ["score", f"run={nllb_model}", "source=s", "hypothesis=t", "format=tsv"]
    scores = {}
    for target in ("en2ru", "fr2de"):
        done = nmt(*job, f"target={target}")
        assert done.code == 0, done.err
        scores[target] = [line.split("\t")[1] for line in done.out.splitlines()]
    # The second line has a tag of its own.
    assert scores["en2ru"][1] == scores["fr2de"][1] == scores["fr2de"][0] != scores["en2ru"][0]
    missing = nmt(*job, "target=ru")
    assert missing.code == 2
    assert "line 1: its source language is not known; pass target=en2de" in missing.err


def test_a_target_selects_the_tag_of_a_multilingual_model(nmt, tagged_model, tmp_path):
    (tmp_path / "s").write_text("va so tu.\n")
    (tmp_path / "t").write_text("ut os av.\n")
    job = ["score", f"run={tagged_model}", "source=s", "hypothesis=t", "format=tsv"]
    outputs = {nmt(*job, f"target={target}").out for target in ("deu", "fra")}
    assert len(outputs) == 2
