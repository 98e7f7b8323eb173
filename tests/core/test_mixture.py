"""Mixtures: sources with shares, tags and noise, from their text to the batches of an update and a model with tags."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from conftest import toy_options, write_toy_text

from nmt.commands import compose
from nmt.config import sources_of
from nmt.data import UpdateDataModule, open_corpus
from nmt.errors import NMTError
from nmt.preparation import preprocess
from nmt.text import load_tokenizer
from nmt.training import corpus_hashes, read_metrics

SHORT = [
    *(
        "trainer.max_steps=12",
        "validation.every_steps=6",
        "checkpoints.every_steps=6",
        "validation.bleu_sentences=3",
    ),
    *("batching.micro_batches=4", "trainer.precision=bf16-mixed", "optim.optimizer=muon"),
]


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides of two tagged corpora, which are prepared; the second one has noise."""
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
    return [
        str(folder / "prepared"),
        *(word for word in plain if not word.startswith(("tokenizer", "workers"))),
    ]


@pytest.mark.parametrize("split", ["train", "valid"])
def test_the_border_between_sources_is_part_of_a_runs_identity(mixture, tmp_path, split):
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
    tokenizer, (_, border, end) = load_tokenizer(corpus.tokenizer_file), corpus.bounds("train")
    rows = corpus.split("train").table.column("source")[:end].to_pylist()
    for tag, part in (("<2de>", rows[:border]), ("<2fr>", rows[border:])):
        tag_id = tokenizer.tag_id(tag)
        assert all(row[0] == tag_id and tag_id not in row[1:] for row in part)
    assert tokenizer.decode(rows[-1]) == tokenizer.decode(rows[-1][1:]) != ""
    assert tokenizer.encode(["<2fr> ka lo"])[0] == [tag_id, *tokenizer.encode(["ka lo"])[0]]
    assert tag_id not in tokenizer.encode(["ka <2fr> lo"])[0]
    assert (corpus.folder / "valid.en").read_text().count("\n") == 80
    assert (corpus.folder / "test.french.fr").read_text().count("\n") == 20


def test_batches_have_the_noise_of_their_source_and_are_functions_of_update_and_row(mixture):
    corpus = open_corpus(Path(mixture[0]))
    module, other = (UpdateDataModule(corpus, compose("train", mixture)) for _ in range(2))
    assert module.shares() == pytest.approx({"german": 0.7, "french": 0.3})
    tokenizer, border = load_tokenizer(corpus.tokenizer_file), module.mixture.bounds[1]
    counts = {"german": 0, "french": 0, "upper": 0}
    for planned in (
        micro_batch for number in range(24) for micro_batch in module.planner.update(number)
    ):
        batch, again = module.batches.batch(planned), other.batches.batch(planned)
        assert all(map(torch.equal, batch[:4], again[:4]))
        clean = module.split.batch(planned.indices)
        for row, index in enumerate(planned.indices):
            noisy, unchanged = (
                [
                    tokenizer.decode(side[row].tolist())
                    for side in (sentences.source, sentences.target_out)
                ]
                for sentences in (batch, clean)
            )
            if index < border:
                assert noisy == unchanged
            else:
                assert noisy in (unchanged, [side.upper() for side in unchanged])
                counts["upper"] += noisy != unchanged
            counts["french" if index >= border else "german"] += 1
            assert batch.source[row, 0] == clean.source[row, 0]
        assert batch.source.shape[1] <= planned.widths[0]
        assert len(batch.source) * max(planned.widths) <= 120
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
def test_sources_that_cannot_be_are_refused(sources, problem):
    with pytest.raises(NMTError) as error:
        compose("preprocess", ["data=files", "data.name=x", f"data.sources={sources}"])
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "shares", [(0.56, 0.34, 0.1), (0.34, 0.55, 0.11), (0.1, 0.2, 0.7), (0.1,) * 10]
)
def test_shares_whose_sum_is_one_but_for_rounding_are_accepted(shares):
    sources = ", ".join(
        f"{{train: corpus{number}, share: {share}}}" for number, share in enumerate(shares)
    )
    config = compose("preprocess", ["data=files", "data.name=x", f"data.sources=[{sources}]"])
    assert tuple(source.share for source in sources_of(config.data)) == shares


def test_a_run_on_a_mixture_is_exact_on_any_devices_and_its_model_has_tags(
    mixture, nmt, train_on, training_state
):
    straight = nmt("train", *mixture, *SHORT, "run=run")
    assert straight.code == 0
    assert "shares of sentences: german 70.0%, french 30.0%" in straight.err
    for devices, updates in ((2, 5), (1, 12)):
        train_on(devices, *mixture, *SHORT, "run=resumed", f"trainer.max_steps={updates}")
    torch.testing.assert_close(
        training_state(Path("run")), training_state(Path("resumed")), rtol=0, atol=0
    )
    for row in (row for row in read_metrics(Path("run")) if row["valid_loss"]):
        one, other, both = (
            float(row[key]) for key in ("valid_loss/german", "valid_loss/french", "valid_loss")
        )
        assert min(one, other) <= both <= max(one, other)
        assert row["valid_bleu/french"]

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

    def translated(text: str, *options: str) -> str:
        Path("lines").write_text(text)
        return nmt("translate", "run", "format=tsv", "input=lines", *options).out

    both = translated("<2fr> ka lo\n\n<2de> ka lo\n")
    assert both.count("\n") == 3
    assert both != translated("ka lo\n\nka lo\n", "target=fr")
    Path("hypothesis").write_text("ka lo\n")
    for source, target in (("ka lo", "fr"), ("<2fr> ka lo", "de")):
        Path(target).write_text(f"{source}\n")
    score = ["score", "run", "hypothesis=hypothesis", "format=tsv"]
    assert nmt(*score, "source=fr", "target=fr").out == nmt(*score, "source=de", "target=de").out
    assert nmt(*score, "source=fr", "target=fr").out != nmt(*score, "source=fr", "target=de").out
