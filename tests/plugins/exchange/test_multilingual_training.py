"""Prepare corpora for an imported model with languages on both sides, and train it further."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from nmt.data import open_corpus
from nmt.files import read_description
from nmt.text import load_tokenizer
from tests.helpers.multilingual import change, names_in, write_folder

pytest.importorskip("transformers")

REVISION = "0123456789abcdef0123456789abcdef01234567"
LANGUAGES = ("en", "de", "fr")
TRAIN = (
    "init=../model",
    "experiment=adapt",
    "trainer.max_steps=4",
    "optim.warmup=1",
    "checkpoints.every_steps=2",
    "batching.tokens_per_update=500",
)
MANY = """
defaults: [files]
name: many
temperature: 5
valid_size: 0
test_size: 0
sources:
- {name: to-german, source: en, target: de, train: train, valid: valid, test: test}
- name: to-french
  source: eng_Latn
  target: fra_Latn
  train: train.en:train.fr
  valid: valid.en:valid.fr
  test: test.en:test.fr
- {name: from-german, source: de, target: en, train: train, valid: valid}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """An imported model, and text in three languages beside it."""
    from nmt.plugins.exchange.importing import ImportConfig, run_import

    folder = tmp_path_factory.mktemp("multilingual")
    write_folder(folder / "hub", "nllb")
    (folder / "hub" / "README.md").write_text("---\nlicense: cc-by-nc-4.0\n---\n")
    change(folder / "hub" / "config.json", _name_or_path="facebook/nllb-tiny")
    run_import(ImportConfig(path=str(folder / "hub"), output=str(folder / "model"), verify=False))
    for language in LANGUAGES:
        names = names_in(language)
        parts = {"train": names[:600], "valid": names[600:640], "test": names[640:644]}
        for split, lines in parts.items():
            (folder / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def beside(nmt, model, tmp_path) -> Path:
    """A working directory with the text, beside a link to the model's folder."""
    for path in model.glob("*.??"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def first_ids(corpus: Path, side: str) -> set[int]:
    """The first ids of the training sentences of one side."""
    with pa.memory_map(str(corpus / "train" / "pairs.arrow")) as file:
        table = pa.ipc.open_stream(file).read_all()
    return {row[0].as_py() for row in table.column(side)}


@pytest.mark.slow
def test_pairs_begin_with_the_tags_of_their_languages(nmt, model, beside):
    done = nmt(
        "preprocess",
        f"init={model}/model",
        "data=files",
        "data.name=one",
        "data.train=train",
        "data.valid=valid",
        "data.test_size=0",
    )
    assert done.code == 0
    corpus = beside / "data" / "one"
    languages = load_tokenizer(corpus / "tokenizer.model").languages
    assert first_ids(corpus, "source") == {languages["eng_Latn"]}
    assert first_ids(corpus, "target") == {languages["deu_Latn"]}


@pytest.mark.slow
def test_several_directions_are_trained_at_once(nmt, model, beside):
    (beside / "conf" / "data").mkdir(parents=True)
    (beside / "conf" / "data" / "many.yaml").write_text(MANY)
    prepare = nmt("preprocess", "--config-dir", "conf", "data=many", f"init={model}/model")
    assert prepare.code == 0
    corpus = beside / "data" / "many"
    languages = load_tokenizer(corpus / "tokenizer.model").languages
    assert first_ids(corpus, "source") == {languages["eng_Latn"], languages["deu_Latn"]}
    assert len(first_ids(corpus, "target")) == 3
    done = nmt("train", "data/many", *TRAIN[1:], f"init={model}/model")
    assert done.code == 0
    assert "to-german" in done.err
    description = json.loads(
        (beside / "runs" / "many-m2m_100" / "model" / "config.json").read_text()
    )
    assert (description["source"], description["target"]) == ("mul", "mul")
    translate = nmt(
        "translate", "runs/many-m2m_100", "source=de", "target=en", "Hallo.", "engine=torch"
    )
    assert translate.code == 0
    check_held_out_lines_have_languages(nmt, model)


def check_held_out_lines_have_languages(nmt, model):
    """The held-out sets contain text without tags; commands add those of each source."""
    run = "runs/many-m2m_100"
    tags = open_corpus(Path("data/many")).tags("test")
    assert set(tags) == {"<eng_Latn2deu_Latn> ", "<eng_Latn2fra_Latn> "}
    search = ("engine=torch", "decode=greedy", "decode.max_extra_length=2")
    # The first system's corpus also serves the second one, which was imported.
    compare = nmt("compare", run, f"{model}/model", *search, "output=null")
    assert compare.code == 0, compare.err
    report = nmt("report", run, "split=test", *search)
    assert report.code == 0, report.err
    export = nmt("export", run)
    assert export.code == 0, export.err
    assert re.search(r"the same translation for \d+ of \d+ lines", export.out), export.out
    assert "were not compared" not in export.out


@pytest.mark.slow
def test_the_trained_direction_is_the_default(nmt, model, beside):
    keys = ["data=files", "data.name=one", "data.train=train", "data.valid=valid"]
    assert nmt("preprocess", f"init={model}/model", *keys, "data.test_size=0").code == 0
    assert nmt("train", "data/one", *TRAIN[1:], f"init={model}/model").code == 0
    words = ("translate", "runs/one-m2m_100", "format=tsv", "engine=torch", "Hello.")
    assert nmt(*words).out == nmt(*words, "source=en", "target=deu_Latn").out
    assert nmt(*words).out != nmt(*words, "target=fr").out


def test_languages_that_the_model_lacks_are_named(nmt, model, beside):
    keys = [
        "data=files",
        "data.name=one",
        "data.train=train.en:train.de",
        "data.valid=valid.en:valid.de",
    ]
    done = nmt("preprocess", f"init={model}/model", *keys, "data.source=tlh", "data.test_size=0")
    assert done.code == 2
    assert "data.source=tlh" in done.err
    assert "nmt extend" in done.err


@pytest.mark.slow
def test_license_and_origin_survive_extension_training_and_averaging(nmt, model, beside):
    """NLLB's license forbids commercial use of any model that is made from it."""
    words = ("languages=[tyv_Cyrl]", "like=[rus_Cyrl]")
    change(model / "model" / "config.json", training=with_revision(model / "model"))
    assert nmt("extend", f"{model}/model", "output=extended", *words).code == 0
    keys = ["data=files", "data.name=one", "data.train=train", "data.valid=valid"]
    assert nmt("preprocess", "init=extended", *keys, "data.test_size=0").code == 0
    assert nmt("train", "data/one", *TRAIN[1:], "init=extended", "name=further").code == 0
    assert nmt("average", "runs/further", "last=2", "output=averaged").code == 0
    for folder in ("extended", "runs/further/model", "averaged"):
        record = read_description(Path(folder)).record
        assert record.license == "cc-by-nc-4.0"
        assert (record.base_model, record.revision) == ("facebook/nllb-tiny", REVISION)
        card = Path(folder, "README.md").read_text()
        assert "license: cc-by-nc-4.0\n" in card
        assert "base_model: facebook/nllb-tiny\n" in card
        assert "| License | cc-by-nc-4.0" in card
    card = Path("averaged/README.md").read_text()
    assert f"| Base model | facebook/nllb-tiny, commit {REVISION} |" in card
    details = nmt("runs", "runs/further").out
    assert "cc-by-nc-4.0" in details
    assert "facebook/nllb-tiny" in details
    again = nmt("train", "data/one", *TRAIN[1:], "init=runs/further", "name=again")
    assert again.code == 0
    assert read_description(Path("runs/again/model")).record.license == "cc-by-nc-4.0"


def with_revision(folder: Path) -> dict[str, Any]:
    """The training record of a model as if it had been downloaded."""
    return {**read_description(folder).training, "revision": REVISION}
