"""Training that starts from a model: its weights and its vocabulary, and what has to agree with them."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import torch
from conftest import toy_options, write_toy_text
from safetensors.torch import load_file

from nmt.data import open_corpus
from nmt.files import sha256
from nmt.text import load_tokenizer

SHORT = ["trainer.max_steps=20", "validation.every_steps=100", "validation.bleu_sentences=0", "run=run"]
STILL = ["optim.learning_rate=1e-12", "optim.warmup=1"]
"""A rate at which nothing is learnt."""


@pytest.fixture(scope="module")
def domain(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides that train from the run `finished` on another corpus, which is prepared with its vocabulary."""
    from nmt.commands import compose
    from nmt.preparation import preprocess

    folder = tmp_path_factory.mktemp("domain")
    write_toy_text(folder, seed=3)
    data = ("data", "workers", "tokenizer")
    texts = [word for word in toy_options(folder) if word.startswith(data) and not word.startswith("tokenizer")]
    start = f"init={finished}"
    preprocess(compose("preprocess", [*texts, f"prepared={folder / 'prepared'}", start]), lambda words: None)
    others = [word for word in toy_options(folder) if not word.startswith((*data, "model"))]
    return [str(folder / "prepared"), start, *others]


def test_the_vocabulary_is_that_of_the_model(domain, finished):
    folder = Path(domain[0])
    assert (folder / "tokenizer.model").read_bytes() == (finished / "model/tokenizer.model").read_bytes()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["content"]["init"] == {"tokenizer": sha256(finished / "model/tokenizer.model")}
    assert manifest["content"]["tokenizer"]["vocabulary_size"] == manifest["vocabulary_size"]


def test_training_begins_with_the_weights_of_the_model_and_tells_so(domain, finished, nmt):
    assert nmt("train", *domain, *SHORT, *STILL, "checkpoints.every_steps=1", "trainer.max_steps=1").code == 0
    own, theirs = (load_file(run / "model/model.safetensors") for run in (Path("run"), finished))
    torch.testing.assert_close(own, theirs, rtol=0, atol=1e-9)
    weights = sha256(finished / "model/model.safetensors")
    assert json.loads(Path("run/model/config.json").read_text())["training"]["init"] == weights
    assert f"{finished}, weights `{weights[:16]}`" in Path("run/model/README.md").read_text()


def test_a_run_that_goes_on_is_the_run_that_was_not_stopped(domain, nmt, training_state, metrics):
    options = [*domain, *SHORT, "optim.schedule=constant", "checkpoints.every_steps=5"]
    assert nmt("train", *options, "run=straight").code == 0
    for steps in (8, 20):
        assert nmt("train", *options, f"trainer.max_steps={steps}").code == 0
    one, other = (training_state(Path(run)) for run in ("straight", "run"))
    torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_run_of_another_start_is_not_gone_on_with(domain, toy, finished, nmt):
    assert nmt("train", *domain, *SHORT, "trainer.max_steps=2").code == 0
    other = Path(shutil.copytree(finished, "other"))
    weights = load_file(other / "model/model.safetensors")
    from safetensors.torch import save_file

    save_file({name: tensor * 1.01 for name, tensor in weights.items()}, other / "model/model.safetensors")
    nmt("train", *domain, *SHORT, f"init={other}").refused("began with other weights than those of init", "name=OTHER")
    from_random = [word for word in toy if word.startswith("model")]
    nmt("train", domain[0], *domain[2:], *from_random, *SHORT).refused("than those of init=null", "name=OTHER")


def test_a_corpus_of_another_vocabulary_or_direction_is_refused(domain, toy, finished, nmt, other_text):
    assert nmt("preprocess", *other_text, "tokenizer.vocabulary_size=310", "prepared=data/other").code == 0
    nmt("train", "data/other", *SHORT, f"init={finished}").refused(
        "another vocabulary", f"nmt preprocess init={finished}"
    )
    changed = Path(shutil.copytree(finished, "changed"))
    path = changed / "model/config.json"
    path.write_text(path.read_text().replace('"target": "de"', '"target": "fr"'))
    nmt("train", *domain, *SHORT, "init=changed").refused("is en to fr", "en to de")


@pytest.mark.parametrize("name", ["tied", "separate", "tagged"])
def test_an_imported_model_is_trained_further(other_text, nmt, name):
    fixture = Path(__file__).parents[1] / "fixtures" / "marian" / name
    assert nmt("import", str(fixture), "output=theirs", "source=en", "target=de").code == 0
    texts = [word for word in other_text if word.startswith(("data", "workers"))]
    [valid] = (word.partition("=")[2] for word in texts if word.startswith("data.valid="))
    line = "\u00bd ka \u2026"  # which NFKC would change, but this vocabulary does not
    for language in ("en", "de"):
        Path(f"valid.{language}").write_text(f"{Path(f'{valid}.{language}').read_text()}{line}\n")
    assert nmt("preprocess", *texts, "data.valid=valid", "init=theirs", "prepared=data/mine").code == 0
    rows = open_corpus(Path("data/mine")).split("valid").table
    assert rows[len(rows) - 1]["source"].to_pylist() == load_tokenizer(Path("theirs/tokenizer.model")).encode([line])
    options = ["data/mine", "init=theirs", "batching.tokens_per_update=2000", "batching.micro_batches=2", *SHORT]
    assert nmt("train", *options, *STILL, "trainer.max_steps=1", "run=still").code == 0
    own, theirs = (load_file(path) for path in ("still/model/model.safetensors", "theirs/model.safetensors"))
    torch.testing.assert_close(own, theirs, rtol=0, atol=1e-9)
    learnt = nmt("train", *options, "optim.schedule=constant", "optim.learning_rate=1e-3", "optim.warmup=5")
    assert learnt.code == 0
    with Path("run/metrics.csv").open(newline="") as file:
        losses = [float(row["valid_loss"]) for row in csv.DictReader(file) if row["valid_loss"]]
    with Path("still/metrics.csv").open(newline="") as file:
        before = [float(row["valid_loss"]) for row in csv.DictReader(file) if row["valid_loss"]]
    assert losses[-1] < before[-1]
    training = json.loads(Path("run/model/config.json").read_text())["training"]
    assert training["length_penalty_kind"] == "marian"
    assert nmt("translate", "run", "text=ka lo").code == 0
