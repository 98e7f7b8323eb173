"""Train a parser on a treebank, parse and score, on the command line."""

import csv
import random
from pathlib import Path

import pytest

from nmt.commands import compose
from nmt.plugins.parse.trees import parse
from nmt.translation.limits import limits_of
from tests.core.test_segments import described

MODEL = [
    "model=tiny",
    "model.d_model=16",
    "model.d_ff=32",
    "model.heads=2",
    "model.norm=pre",
    "model.dropout=0",
    "model.encoder_layers=1",
    "model.decoder_layers=1",
    "optim.warmup=20",
    "batching.tokens_per_update=400",
    "batching.micro_batches=1",
    "trainer.accelerator=cpu",
    "trainer.devices=1",
    "trainer.precision=32-true",
    "validation.bleu_sentences=8",
    "logger=csv",
    "decode=greedy",
]


def phrase(generator: random.Random, label: str, depth: int) -> str:
    """A random phrase; its first word tells its kind, so that a model learns it quickly."""
    if depth == 0 or generator.random() < 0.4:
        return f"({label}-SBJ (DT the) (NN {generator.choice(['cat', 'dog', 'NP'])}))"
    inner = phrase(generator, "NP", depth - 1)
    return f"({label} (IN of) {inner} (-NONE- *T*))"


def write_treebank(folder: Path) -> list[str]:
    generator = random.Random(1)
    for split, size in (("train", 300), ("valid", 12), ("test", 8)):
        trees = [f"( (S\n  {phrase(generator, 'NP', 2)}\n  (. .)) )\n" for _ in range(size)]
        (folder / f"{split}.mrg").write_text("".join(trees))
    return [f"data.{split}={folder}/{split}.mrg" for split in ("train", "valid", "test")]


@pytest.fixture(scope="module")
def parser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a parser's run and its prepared corpus."""
    from rich.console import Console

    from nmt.preparation import preprocess
    from nmt.training import train

    folder = tmp_path_factory.mktemp("parser")
    options = [
        "data=treebank",
        *write_treebank(folder),
        "data.filters.deduplicate=false",
        "tokenizer.kind=bpe",
        "tokenizer.vocabulary_size=320",
        "workers=1",
        *MODEL,
        f"prepared={folder / 'prepared'}",
    ]
    preprocess(compose("preprocess", options), lambda words: None)
    options += [f"run={folder / 'run'}", "trainer.max_steps=160", "validation.every_steps=80"]
    train(compose("train", options), Console(quiet=True))
    return folder


def test_parse_writes_a_tree_over_the_words_of_each_line(parser, nmt, tmp_path):
    sentences = (parser / "prepared" / "test.words").read_text().splitlines()
    hostile = ["", "  ", "f(x) ] )NP", "\u00b4 caf\u00e9 \uff08", "(S (NP"]
    (tmp_path / "input").write_text("\n".join([*sentences, *hostile]))
    outcome = nmt("parse", f"run={parser / 'run'}", "input=input", "decode.max_extra_length=20")
    assert outcome.code == 0
    lines = outcome.out.split("\n")
    assert lines.pop() == ""
    trees = [tree for line in lines for tree in parse(line)]
    words = [tree.words for tree in trees]
    assert words[: len(sentences)] == [sentence.split() for sentence in sentences]
    assert lines[-5:-3] == ["", ""]
    assert words[-3:] == [
        ["f-LRB-x-RRB-", "]", "-RRB-NP"],
        ["\u00b4", "caf\u00e9", "\uff08"],
        ["-LRB-S", "-LRB-NP"],
    ]
    assert "repaired " in outcome.err


def test_trees_are_scored_after_and_during_training(parser, nmt):
    reference = parser / "prepared" / "test.trees"
    words = [f"input={reference.with_suffix('.words')}", "output=test.trees", "decode.beam_size=3"]
    assert nmt("parse", f"run={parser / 'run'}", *words).code == 0
    outcome = nmt("score", "hypothesis=test.trees", f"reference={reference}", "metrics=[brackets]")
    assert float(outcome.out.split()[3]) > 60
    assert "sentences:8|errors:0" in outcome.out
    with (parser / "run" / "metrics.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["valid_perplexity"]]
    assert [row["step"] for row in rows] == ["80", "160"]
    for row in rows:
        assert 0 <= float(row["valid_f1"]) <= 100
        assert not row["valid_bleu"]
    card = (parser / "run" / "model" / "README.md").read_text()
    assert "validation Bracketing F1" in card
    assert "nmt parse run=" in card


def test_parse_refuses_translation_model(checkpoint, nmt):
    nmt("parse", f"run={checkpoint}").refused("translates from en to de", "data=treebank")


def test_parser_copies_no_characters():
    parser = described(characters={"source": "abc"}, config={"data": {"kind": "treebank"}})
    assert limits_of([parser], False).characters is None
