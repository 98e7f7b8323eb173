"""Scores by a model (`nmt score run=...`), flags, and the details of `nmt translate format=jsonl`."""

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


def write(name: str, *lines: str) -> None:
    Path(name).write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def words(nmt, finished) -> list[str]:
    write("s", *SOURCES)
    write("t", *TARGETS)
    return ["score", f"run={finished}", "source=s", "hypothesis=t", "device=cpu"]


@pytest.fixture
def expected(finished) -> list[list[float]]:
    """log P of the tokens of each pair, by the logits for it alone."""
    model, tokenizer = load_model(finished / "model"), read_tokenizer(finished / "model")
    scores = []
    for pair in zip(SOURCES, TARGETS, strict=True):
        source, target = tokenizer.encode([" ".join(line.split()) for line in pair])
        logits = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[0]
        indices = torch.arange(len(target) + 1), torch.tensor([*target, EOS])
        scores.append(logits.log_softmax(-1)[indices].tolist())
    return scores


def test_pairs_are_scored_line_by_line(nmt, words, expected, monkeypatch):
    monkeypatch.setattr(judge, "BUFFER", 2)
    done = nmt(*words, "format=tsv")
    assert done.code == 0, done.err
    for row, tokens, number in zip(done.out.splitlines(), expected, range(1, 6), strict=True):
        line, log_probability, perplexity, length = map(float, row.split("\t"))
        assert (line, length) == (number, len(tokens))
        assert log_probability == pytest.approx(sum(tokens), abs=1e-4)
        assert perplexity == pytest.approx(math.exp(-sum(tokens) / len(tokens)), rel=1e-3)
    summary = done.err.splitlines()[-1]
    total, count = sum(map(sum, expected)), sum(map(len, expected))
    assert f"pairs: 5, tokens: {count}, log probability " in summary
    assert float(summary.split("log probability ")[1].split(",")[0]) == pytest.approx(
        total, abs=1e-3
    )
    assert float(summary.rsplit(" ", 1)[1]) == pytest.approx(math.exp(-total / count), rel=1e-3)
    records = [
        json.loads(line) for line in nmt(*words, "--json", "batch_tokens=7").out.splitlines()
    ]
    for record, target, tokens in zip(records, TARGETS, expected, strict=True):
        assert record["token_log_probabilities"] == pytest.approx(tokens, abs=1e-4)
        assert record["log_probability"] == pytest.approx(sum(tokens), abs=1e-4)
        assert record["length"] == len(record["tokens"]) + 1 == len(tokens)
        assert "".join(record["tokens"]).replace("\u2581", " ").strip() == target


def test_mistakes_are_one_line(nmt, words):
    nmt(*words, "source=nowhere").refused("nowhere: No such file")
    nmt(*words, "reference=t").refused("omit reference and examples")
    Path("t").write_bytes(b"ka\n\xff\n")
    assert "nmt: t, line 2: invalid UTF-8 at byte 1 (if" in nmt(*words).err
    write("t", "ka")
    nmt(*words).refused("s has 5", "t has 1")


def test_translations_have_flags_and_the_log_probability_that_score_gives_them(nmt, finished):
    lines = ["ka lo mi", "nu  pe ri", "ka " * 9, "ka https://a.org/x lo", ""]
    write("s", *lines)
    done = nmt(
        "translate", f"run={finished}", "input=s", "format=jsonl", "device=cpu", "decode.n_best=2"
    )
    records, raised = [json.loads(line) for line in done.out.splitlines()], set[str]()
    assert [record["source"] for record in records] == lines
    for source, record in zip(lines[:-1], records, strict=False):
        for item in record["translations"]:
            scores = item["token_log_probabilities"]
            assert sum(scores) == pytest.approx(item["log_probability"], abs=1e-4)
            assert item["flags"] == flags(source, item["text"], frozenset(["LATIN"]), scores)
            raised |= {*item["flags"]}
            if "http" not in source:
                assert {target for _, target in item["alignment"]} == set(
                    range(len(item["text"].split()))
                )
    assert "low_confidence" in raised
    empty = {"text": "", "score": 0.0, "log_probability": 0.0, "flags": [], "tokens": []}
    lists = ("token_log_probabilities", "alignment", "word_log_probabilities")
    assert records[-1]["translations"] == [{**empty, **{name: [] for name in lists}}]


def test_flags_are_counted_beside_those_of_the_references(nmt):
    for name, often, *more in (
        ("s", "In 1998.", "Yes."),
        ("h", "1989.", ""),
        ("r", "1998.", "Ja."),
    ):
        write(name, *[often] * 11, *more)
    words, ten = (
        ["score", "h", "source=s", "flags=true"],
        "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...",
    )
    assert (
        nmt(*words).out
        == f"empty: 1, 8.33%: lines 12\nnumber: 11, 91.67%: {ten}\nany: 12, 100.00%: {ten}\n"
    )
    write("r", *["1998."] * 9, *["1999."] * 3)
    assert (
        f"number: 11, 91.67% (references 16.67%): {ten}\n"
        in nmt(*words, "reference=r", "metrics=bleu").out
    )
    tree = json.loads(nmt(*words, "reference=r", "metrics=bleu", "--json").out)
    assert [score["metric"] for score in tree["scores"]] == ["bleu"]
    assert {flag["flag"]: flag["lines"] for flag in tree["flags"] if flag["count"] == 1} == {
        "empty": [12]
    }
    nmt("score", "h", "flags=true").refused("source: required with flags=true")
