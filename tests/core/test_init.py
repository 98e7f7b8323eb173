"""Training that starts from a model: its weights and vocabulary, and the corpora that fit them."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from nmt.commands import compose
from nmt.data import open_corpus
from nmt.files import sha256
from nmt.preparation import preprocess
from nmt.text import load_tokenizer
from nmt.training import read_metrics
from nmt.training.initial import joined
from tests.conftest import toy_options, write_toy_text

SHORT = [
    "trainer.max_steps=20",
    "trainer.precision=32-true",
    "validation.every_steps=100",
    "validation.bleu_sentences=0",
    "run=run",
]
STILL = ["optim.learning_rate=1e-12", "optim.warmup=1"]
"""A learning rate at which the weights stay the same."""


@pytest.fixture(scope="module")
def domain(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides that train from `finished` on another corpus, prepared with its vocabulary."""
    folder = tmp_path_factory.mktemp("domain")
    write_toy_text(folder, seed=3)
    data = ("data", "workers", "tokenizer")
    texts = [
        word
        for word in toy_options(folder)
        if word.startswith(data) and not word.startswith("tokenizer")
    ]
    start = f"init={finished}"
    preprocess(
        compose("preprocess", [*texts, f"prepared={folder / 'prepared'}", start]),
        lambda words: None,
    )
    others = [word for word in toy_options(folder) if not word.startswith((*data, "model"))]
    return [str(folder / "prepared"), start, *others]


def test_a_run_starts_with_the_vocabulary_and_weights_of_the_model(domain, finished, nmt):
    folder = Path(domain[0])
    assert (folder / "tokenizer.model").read_bytes() == (
        finished / "model/tokenizer.model"
    ).read_bytes()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["content"]["init"] == {"tokenizer": sha256(finished / "model/tokenizer.model")}
    assert manifest["content"]["tokenizer"]["vocabulary_size"] == manifest["vocabulary_size"]
    once = ("checkpoints.every_steps=1", "trainer.max_steps=1")
    assert nmt("train", *domain, *SHORT, *STILL, *once).code == 0
    ours, theirs = (load_file(run / "model/model.safetensors") for run in (Path("run"), finished))
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)
    weights = sha256(finished / "model/model.safetensors")
    assert json.loads(Path("run/model/config.json").read_text())["training"]["init"] == weights
    assert f"{finished}, weights `{weights[:16]}`" in Path("run/model/README.md").read_text()


def test_a_model_has_seen_its_old_corpus_and_its_new_one():
    before = {
        "characters": {"source": "ab", "target": "x"},
        "lengths": {"source": {"p99": 9, "max": 30}},
    }
    now = {
        "characters": {"source": "bc", "target": "x"},
        "lengths": {"source": {"p99": 12, "max": 20}},
    }
    assert joined(before, now) == {
        "characters": {"source": "abc", "target": "x"},
        "lengths": {"source": {"p99": 12, "max": 30}},
    }


@pytest.mark.slow
def test_a_run_that_began_with_other_weights_is_not_resumed(domain, toy, finished, nmt):
    assert nmt("train", *domain, *SHORT, "trainer.max_steps=2").code == 0
    other = Path(shutil.copytree(finished, "other"))
    weights = load_file(other / "model/model.safetensors")
    save_file(
        {name: tensor * 1.01 for name, tensor in weights.items()}, other / "model/model.safetensors"
    )
    nmt("train", *domain, *SHORT, f"init={other}").refused(
        "began with different weights than init=other", "name=OTHER"
    )
    from_random = [word for word in toy if word.startswith("model")]
    nmt("train", domain[0], *domain[2:], *from_random, *SHORT).refused(
        "than init=null", "name=OTHER"
    )


def test_a_corpus_with_another_vocabulary_or_direction_is_rejected(
    domain, toy, finished, nmt, other_text
):
    assert (
        nmt("preprocess", *other_text, "tokenizer.vocabulary_size=310", "prepared=data/other").code
        == 0
    )
    refused = nmt("train", "data/other", *SHORT, f"init={finished}")
    refused.refused("a different vocabulary", f"nmt preprocess init={finished}")
    assert not Path("run").exists()
    changed = Path(shutil.copytree(finished, "changed"))
    path = changed / "model/config.json"
    path.write_text(path.read_text().replace('"target": "de"', '"target": "fr"'))
    nmt("train", *domain, *SHORT, "init=changed").refused("is en to fr", "en to de")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["separate", "tagged"])
def test_an_imported_model_is_trained_further(other_text, nmt, name):
    pytest.importorskip("nmt.plugins.exchange")
    fixture = Path(__file__).parents[1] / "fixtures" / "marian" / name
    assert nmt("import", str(fixture), "output=theirs", "source=en", "target=de").code == 0
    texts = [word for word in other_text if word.startswith(("data", "workers"))]
    [valid] = (word.partition("=")[2] for word in texts if word.startswith("data.valid="))
    line = "\u00bd ka \u2026"  # which NFKC would change, but this vocabulary does not
    for language in ("en", "de"):
        Path(f"valid.{language}").write_text(f"{Path(f'{valid}.{language}').read_text()}{line}\n")
    assert (
        nmt("preprocess", *texts, "data.valid=valid", "init=theirs", "prepared=data/mine").code == 0
    )
    rows = open_corpus(Path("data/mine")).split("valid").table
    assert rows.column("source")[-1:].to_pylist() == load_tokenizer(
        Path("theirs/tokenizer.model")
    ).encode([line])
    options = [
        "data/mine",
        "init=theirs",
        "batching.tokens_per_update=2000",
        "batching.micro_batches=2",
        *SHORT,
    ]
    assert nmt("train", *options, *STILL, "trainer.max_steps=1", "run=still").code == 0
    ours, theirs = (
        load_file(path) for path in ("still/model/model.safetensors", "theirs/model.safetensors")
    )
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)
    learned = nmt(
        "train", *options, "optim.schedule=constant", "optim.learning_rate=1e-3", "optim.warmup=5"
    )
    assert learned.code == 0
    before, after = (
        [float(row["valid_loss"] or 0) for row in read_metrics(Path(run))]
        for run in ("still", "run")
    )
    assert 0 < max(after) < max(before)
    training = json.loads(Path("run/model/config.json").read_text())["training"]
    assert training["length_penalty_kind"] == "marian"
