"""What a model thinks of pairs: `nmt score run=...` and the details of `nmt translate format=jsonl`."""

import json
import math
from pathlib import Path

import pytest
import torch

from nmt.config import BOS, EOS
from nmt.model import load_model
from nmt.plugins.judge.flags import flags
from nmt.text import read_tokenizer

SOURCES = ["ka lo mi", "so", "nu pe ri so tu va", "", "we  ka"]
TARGETS = ["mi lo ka", "", "va tu so ri pe nu", "ka", "ka we"]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in SOURCES))
    (tmp_path / "t").write_text("".join(f"{line}\n" for line in TARGETS))
    return ["source=s", "hypothesis=t", "device=cpu"]


def expected(run: Path) -> list[list[float]]:
    """log P of each token of each pair, by the model's logits for it alone."""
    model, tokenizer = load_model(run / "model"), read_tokenizer(run / "model")
    found = []
    for pair in zip(SOURCES, TARGETS, strict=True):
        source, target = tokenizer.encode([" ".join(line.split()) for line in pair])
        logits = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[0]
        indices = torch.arange(len(target) + 1), torch.tensor([*target, EOS])
        found.append(logits.log_softmax(-1)[indices].tolist())
    return found


def test_pairs_are_scored_line_by_line(nmt, finished, files):
    done = nmt("score", f"run={finished}", *files, "format=tsv", "buffer=2")
    assert done.code == 0, done.err
    wanted = expected(finished)
    for row, tokens, number in zip(done.out.splitlines(), wanted, range(1, 6), strict=True):
        line, log_probability, perplexity, length = map(float, row.split("\t"))
        assert (line, length) == (number, len(tokens))
        assert log_probability == pytest.approx(sum(tokens), abs=1e-4)
        assert perplexity == pytest.approx(math.exp(-sum(tokens) / len(tokens)), rel=1e-3)
    summary = done.err.splitlines()[-1]
    total, count = sum(map(sum, wanted)), sum(map(len, wanted))
    assert f"5 pairs, {count} tokens, log probability " in summary
    assert float(summary.split("log probability ")[1].split(",")[0]) == pytest.approx(total, abs=1e-3)
    assert float(summary.rsplit(" ", 1)[1]) == pytest.approx(math.exp(-total / count), rel=1e-3)


def test_machines_are_told_each_token(nmt, finished, files):
    done = nmt("score", f"run={finished}", *files, "--json", "batch_tokens=7")
    records = [json.loads(line) for line in done.out.splitlines()]
    for record, target, wanted in zip(records, TARGETS, expected(finished), strict=True):
        assert record["token_log_probabilities"] == pytest.approx(wanted, abs=1e-4)
        assert record["log_probability"] == pytest.approx(sum(wanted), abs=1e-4)
        assert record["length"] == len(record["tokens"]) + 1 == len(wanted)
        assert "".join(record["tokens"]).replace("\u2581", " ").strip() == target


def test_mistakes_are_one_line(nmt, finished, files, tmp_path):
    words = ["score", f"run={finished}", *files]
    nmt(*words, "source=nowhere").refused("nowhere: No such file")
    nmt(*words, "reference=t").refused("leave reference and examples out")
    (tmp_path / "t").write_bytes(b"ka\n\xff\n")
    assert "nmt: t, line 2: invalid UTF-8 at byte 1, replaced" in nmt(*words).err
    (tmp_path / "t").write_text("ka\n")
    nmt(*words).refused("s has 5 lines but t has 1")
    for name in ("s", "t"):
        (tmp_path / name).write_text("")
    done = nmt(*words)
    assert (done.code, done.out) == (0, "")
    assert "nothing to score" in done.err


def test_translations_have_the_log_probability_that_score_gives_them(nmt, finished, tmp_path):
    (tmp_path / "s").write_text("ka lo mi\nnu  pe ri\n\n")
    words = ["translate", f"run={finished}", "input=s", "format=jsonl", "device=cpu"]
    records = [json.loads(line) for line in nmt(*words, "decode.n_best=2").out.splitlines()]
    assert [record["source"] for record in records] == ["ka lo mi", "nu  pe ri", ""]
    for record in records[:2]:
        for translation in record["translations"]:
            assert sum(translation["token_log_probabilities"]) == pytest.approx(
                translation["log_probability"], abs=1e-4
            )
            assert {target for _, target in translation["alignment"]} == set(range(len(translation["text"].split())))
    assert records[2]["translations"] == [
        {
            **{"text": "", "score": 0.0, "log_probability": 0.0, "flags": []},
            **{"tokens": [], "token_log_probabilities": [], "alignment": [], "word_log_probabilities": []},
        }
    ]


def write_contrast(folder: Path) -> list[tuple[str, str, str, str]]:
    """Pairs of the toy language, the first a tie: the model does not see double blanks."""
    rows = [("ka lo", "lo ka", "lo  ka", "blank"), ("ka lo mi", "mi lo ka", "va va", "words")]
    rows += [("so tu", "va we ka", "tu so", "words"), ("ka lo mi", "mi lo ka", "mi lo", "length")]
    (folder / "c.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return rows


def test_contrastive_pairs_are_told_apart_by_the_sums_that_score_gives(nmt, finished, tmp_path):
    rows = write_contrast(tmp_path)
    expected = []
    for side in (1, 2):
        (tmp_path / "s").write_text("".join(f"{row[0]}\n" for row in rows))
        (tmp_path / "t").write_text("".join(f"{row[side]}\n" for row in rows))
        done = nmt("score", f"run={finished}", "source=s", "hypothesis=t", "format=tsv", "device=cpu")
        expected.append([float(line.split("\t")[1]) for line in done.out.splitlines()])
    words = ["score", str(finished), "contrast=c.tsv", "device=cpu"]
    done = nmt(*words, "format=tsv", "buffer=3")
    found = [line.split("\t") for line in done.out.splitlines()]
    wins = [int(right > wrong) for right, wrong in zip(*expected, strict=True)]
    assert wins[0] == 0
    assert [int(line[1]) for line in found] == wins
    for side in (0, 1):
        assert [float(line[2 + side]) for line in found] == pytest.approx(expected[side], abs=1e-3)
    assert found[0][2] == found[0][3]
    assert [line[4] for line in found] == [row[3] for row in rows]
    records = json.loads(nmt(*words, "--json").out)
    assert [(record["category"], record["pairs"]) for record in records] == [
        *(("blank", 1), ("length", 1), ("words", 2), ("all pairs", 4)),
    ]
    assert (records[-1]["right"], records[-1]["ties"]) == (sum(wins), 1)
    assert f"{sum(wins)} of 4, 1 ties  all pairs" in nmt(*words).out.splitlines()[-1]


def test_mistakes_with_contrastive_sets_are_one_line(nmt, finished, tmp_path):
    write_contrast(tmp_path)
    nmt("score", "contrast=c.tsv").refused("pass run=RUN")
    nmt("score", str(finished), "contrast=c.tsv", "source=c.tsv").refused("leave source and hypothesis out")
    nmt("score", str(finished), "contrast=nowhere", "device=cpu").refused("nowhere: No such file")
    nmt("score", str(finished), "contrast=c.tsv", "format=jsonl").refused("format=jsonl")
    (tmp_path / "c.tsv").write_text("ka\tka\n")
    nmt("score", str(finished), "contrast=c.tsv", "device=cpu").refused("c.tsv, line 1: no contrastive pair")
    (tmp_path / "c.tsv").write_text("")
    nmt("score", str(finished), "contrast=c.tsv", "device=cpu").refused("c.tsv: no contrastive pairs")


def test_flags_are_counted_beside_those_of_the_references(nmt, tmp_path):
    for name, lines in (("s", "In 1998.\nYes.\n"), ("h", "1989.\n\n"), ("r", "1998.\nJa.\n")):
        (tmp_path / name).write_text(lines)
    words = ["score", "h", "source=s", "flags=true"]
    wanted = ["empty: 1, 50.00%: lines 2", "number: 1, 50.00%: lines 1", "any: 2, 100.00%: lines 1, 2"]
    assert nmt(*words).out.splitlines() == wanted
    done = nmt(*words, "reference=r", "metrics=bleu").out.splitlines()
    assert done[0].startswith("BLEU = ")
    assert done[1] == "empty: 1, 50.00% (references 0.00%): lines 2"
    tree = json.loads(nmt(*words, "reference=r", "metrics=bleu", "--json").out)
    assert [score["metric"] for score in tree["scores"]] == ["bleu"]
    assert {flag["flag"]: flag["lines"] for flag in tree["flags"] if flag["count"]} == {
        **{"empty": [2], "number": [1], "any": [1, 2]},
    }
    nmt("score", "h", "flags=true").refused("source: a value is needed with flags=true")
    (tmp_path / "s").write_text("Yes.\n")
    nmt(*words).refused("s has 1 lines but h has 2")


def test_translations_have_flags(nmt, finished, tmp_path):
    lines = ["ka lo mi", "ka " * 9, "ka https://a.org/x lo", ""]
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in lines))
    done = nmt("translate", f"run={finished}", "input=s", "format=jsonl", "device=cpu", "decode.n_best=2")
    raised = []
    for source, record in zip(lines, map(json.loads, done.out.splitlines()), strict=True):
        for found in record["translations"]:
            expected = flags(source, found["text"], frozenset(["LATIN"]), found["token_log_probabilities"])
            assert found["flags"] == expected
            raised += expected
    assert "low_confidence" in raised
