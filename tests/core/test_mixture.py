"""Mixtures: sources with shares, tags and noise, from their text to a model with tags."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from nmt.commands import compose
from nmt.config import sources_of
from nmt.data import Batch, MicroBatch, UpdateDataModule, open_corpus
from nmt.errors import NMTError
from nmt.preparation import preprocess
from nmt.text import load_tokenizer
from nmt.training import corpus_hashes, read_metrics
from tests.conftest import toy_options, write_toy_text

SHORT = [
    "trainer.max_steps=12",
    "validation.every_steps=6",
    "checkpoints.every_steps=6",
    "validation.bleu_sentences=3",
    "batching.micro_batches=4",
    "trainer.precision=bf16-mixed",
    "optim.optimizer=muon",
]


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides that train on two tagged corpora, of which the second one has noise."""
    pytest.importorskip("nmt.plugins.augment")
    folder = tmp_path_factory.mktemp("mixture")
    for name, seed in (("de", 5), ("fr", 6)):
        (folder / name).mkdir()
        write_toy_text(folder / name, seed)
    (folder / "data").mkdir()
    (folder / "data/mixed.yaml").write_text(
        f"""defaults: [files]
name: mixed
target: xx
sources:
- {{target: de, train: {folder}/de/train, valid: {folder}/de/valid, test: {folder}/de/test, tag: <2de>, name: german}}
- train: "{folder}/fr/train.en:{folder}/fr/train.de"
  valid: "{folder}/fr/valid.en:{folder}/fr/valid.de"
  test: "{folder}/fr/test.en:{folder}/fr/test.de"
  target: fr
  name: french
  tag: <2fr>
  share: 0.3
  noise: {{upper: 0.5, bpe_dropout: 0.3}}
"""
    )
    plain = [word for word in toy_options(folder) if not word.startswith("data")]
    options = [*plain, "data=mixed", f"prepared={folder / 'prepared'}"]
    preprocess(compose("preprocess", options, folder), lambda words: None)
    of_training = [word for word in plain if not word.startswith(("tokenizer", "workers"))]
    return [str(folder / "prepared"), *of_training]


@pytest.mark.parametrize("split", ["train", "valid"])
def test_the_border_between_sources_is_hashed(mixture, tmp_path, split):
    shutil.copytree(mixture[0], tmp_path / "prepared")
    before = corpus_hashes(open_corpus(tmp_path / "prepared"))
    path = tmp_path / "prepared/manifest.json"
    tree = json.loads(path.read_text())
    sources = tree["counts"][split]["sources"]
    sources["german"] += 1
    sources["french"] -= 1
    path.write_text(json.dumps(tree))
    after = corpus_hashes(open_corpus(tmp_path / "prepared"))
    changed = [name for name in before | after if before.get(name) != after.get(name)]
    assert changed == [f"number of pairs of each source in {split}"]


def test_sources_are_prepared_one_after_another_with_their_tags(mixture):
    corpus = open_corpus(Path(mixture[0]))
    counts = corpus.manifest.counts["train"]
    assert list(counts["sources"]) == ["german", "french"]
    assert sum(counts["sources"].values()) == counts["kept"]
    tokenizer = load_tokenizer(corpus.tokenizer_file)
    _, border, end = corpus.bounds("train")
    rows = corpus.split("train").table.column("source")[:end].to_pylist()
    for tag, part in (("<2de>", rows[:border]), ("<2fr>", rows[border:])):
        tag_id = tokenizer.tag_id(tag)
        assert all(row[0] == tag_id and tag_id not in row[1:] for row in part)
    assert tokenizer.decode(rows[-1]) == tokenizer.decode(rows[-1][1:]) != ""
    assert tokenizer.encode(["<2fr> ka lo"])[0] == [tag_id, *tokenizer.encode(["ka lo"])[0]]
    assert tag_id not in tokenizer.encode(["ka <2fr> lo"])[0]
    assert (corpus.folder / "valid.en").read_text().count("\n") == 80
    assert (corpus.folder / "test.french.fr").read_text().count("\n") == 20


def micro_batches(module: UpdateDataModule) -> Iterator[MicroBatch]:
    """The plans of 24 updates."""
    for update in range(24):
        yield from module.planner.update(update)


def test_batches_depend_only_on_the_plan_and_fit_it(mixture):
    corpus = open_corpus(Path(mixture[0]))
    config = compose("train", mixture)
    module = UpdateDataModule(corpus, config)
    other = UpdateDataModule(corpus, config)
    for planned in micro_batches(module):
        batch = module.batches.batch(planned)
        again = other.batches.batch(planned)
        assert all(map(torch.equal, batch[:4], again[:4]))
        assert batch.source.shape[1] <= planned.widths[0]
        assert len(batch.source) * max(planned.widths) <= 120


def test_batches_have_the_noise_and_the_share_of_their_source(mixture):
    corpus = open_corpus(Path(mixture[0]))
    module = UpdateDataModule(corpus, compose("train", mixture))
    assert module.shares() == pytest.approx({"german": 0.7, "french": 0.3})
    tokenizer = load_tokenizer(corpus.tokenizer_file)
    border = module.mixture.bounds[1]

    def texts(batch: Batch, row: int) -> list[str]:
        sides = (batch.source, batch.target_out)
        return [tokenizer.decode(side[row].tolist()) for side in sides]

    counts = Counter()
    for planned in micro_batches(module):
        batch = module.batches.batch(planned)
        clean = module.split.batch(planned.indices)
        for row, index in enumerate(planned.indices):
            assert batch.source[row, 0] == clean.source[row, 0]  # the tag
            noisy = texts(batch, row)
            unchanged = texts(clean, row)
            if index < border:
                counts["german"] += 1
                assert noisy == unchanged
            else:
                counts["french"] += 1
                counts["upper"] += noisy != unchanged
                assert noisy in (unchanged, [text.upper() for text in unchanged])
    assert 0.2 < counts["french"] / (counts["german"] + counts["french"]) < 0.4
    assert 0.25 < counts["upper"] / counts["french"] < 0.6


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        ("[{train: a}, 7]", "data.sources: 7 is not a mapping"),
        ("[{train: a}, {train: x/a}]", "data.sources: two are named a; give each its own name"),
        ("[{train: a, share: 0.7}, {train: b, share: 0.6}]", "the shares add up to 1.3"),
        ("[{train: a, share: 0.5, weight: 2}]", "a: share=0.5 and weight=2"),
        (
            "[{train: a, tag: 2de}]",
            "data.sources, a: data.tag='2de': must be a word in angle brackets",
        ),
        (
            "[{train: a, tag: '<0x41>'}]",
            "data.sources, a: data.tag='<0x41>': must be a word in angle brackets",
        ),
        (
            "[{train: a, target: de, tag: '<2de>'}, {train: b, target: fr}]",
            "each source needs a tag, such as <2de>",
        ),
    ],
)
def test_impossible_sources_are_rejected(sources, problem):
    with pytest.raises(NMTError) as error:
        compose("preprocess", ["data=files", "data.name=x", f"data.sources={sources}"])
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "shares", [(0.56, 0.34, 0.1), (0.34, 0.55, 0.11), (0.1, 0.2, 0.7), (0.1,) * 10]
)
def test_shares_may_add_up_to_one_but_for_rounding(shares):
    sources = []
    for number, share in enumerate(shares):
        sources.append(f"{{train: corpus{number}, share: {share}}}")
    words = ["data=files", "data.name=x", f"data.sources=[{', '.join(sources)}]"]
    config = compose("preprocess", words)
    assert tuple(source.share for source in sources_of(config.data)) == shares


@pytest.fixture(scope="module")
def model(mixture, trained) -> Path:
    """A run on the mixture."""
    return trained(*mixture, *SHORT)


@pytest.mark.slow
def test_a_run_on_a_mixture_has_the_same_bits_on_any_devices(
    mixture, model, train_on, training_state, here
):
    for devices, updates in ((2, 5), (1, 12)):
        train_on(devices, *mixture, *SHORT, "run=resumed", f"trainer.max_steps={updates}")
    state = training_state(Path("resumed"))
    torch.testing.assert_close(state, training_state(model), rtol=0, atol=0)


@pytest.mark.slow
def test_training_reports_shares_and_validates_each_domain(mixture, nmt):
    output = nmt("train", *mixture, *SHORT, "run=run").err
    assert "shares of sentences: german 70.0%, french 30.0%" in output
    validations = [row for row in read_metrics(Path("run")) if row["valid_loss"]]
    assert validations
    for row in validations:
        german = float(row["valid_loss/german"])
        french = float(row["valid_loss/french"])
        assert min(german, french) <= float(row["valid_loss"]) <= max(german, french)
        assert row["valid_bleu/french"]


@pytest.fixture
def run(model, here) -> None:
    """A copy of the run in the current folder; commands print where a link leads."""
    shutil.copytree(model, "run")


@pytest.mark.slow
def test_a_tag_or_the_target_selects_the_language(run, nmt):
    tagged = nmt("translate", "run", "text=<2fr> ka lo", "format=tsv").out
    assert nmt("translate", "run", "text=ka lo", "target=fr", "format=tsv").out == tagged
    assert nmt("translate", "run", "text=ka lo", "target=FR-CA", "format=tsv").out == tagged
    nmt("translate", "run", "text=ka lo", "target=cs").refused(
        "target=cs: the model supports de, fr"
    )
    nmt("translate", "run", "text= <2cs> ka lo").refused(
        "line 1: <2cs>: the model supports <2de>, <2fr>"
    )
    assert "target=de" in nmt("translate", "run", "text=ka lo").err
    assert "targets     de, fr (2 languages)" in nmt("runs", "run").out


def test_lines_of_a_file_may_have_different_tags(run, nmt):
    def translated(text: str, *options: str) -> str:
        Path("lines").write_text(text)
        return nmt("translate", "run", "format=tsv", "input=lines", *options).out

    both = translated("<2fr> ka lo\n\n<2de> ka lo\n")
    assert both.count("\n") == 3
    assert both != translated("ka lo\n\nka lo\n", "target=fr")


def test_scores_depend_on_the_tag_of_the_source(run, nmt):
    Path("hypothesis").write_text("ka lo\n")
    for source, target in (("ka lo", "fr"), ("<2fr> ka lo", "de")):
        Path(target).write_text(f"{source}\n")
    score = ["score", "run", "hypothesis=hypothesis", "format=tsv"]
    assert nmt(*score, "source=fr", "target=fr").out == nmt(*score, "source=de", "target=de").out
    assert nmt(*score, "source=fr", "target=fr").out != nmt(*score, "source=fr", "target=de").out
