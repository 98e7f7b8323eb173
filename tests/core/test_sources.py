"""Mixtures: sources with shares, tags, stages and noise, from their text to the batches of an update."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import toy_options, write_toy_text

from nmt.commands import compose
from nmt.config import SourceConfig
from nmt.data import UpdateDataModule, open_corpus, stages
from nmt.data.planning import shares
from nmt.errors import NMTError
from nmt.preparation import preprocess
from nmt.text import load_tokenizer


def source(name: str, **keys: object) -> SourceConfig:
    return SourceConfig(None, name, **keys)


def test_shares_follow_sizes_weights_and_temperature():
    two = [source("a"), source("b")]
    assert shares(two, [300, 100], 1.0) == pytest.approx([0.75, 0.25])
    assert shares([source("a"), source("b", weight=3)], [300, 100], 1.0) == pytest.approx([0.5, 0.5])
    assert shares(two, [32 * 100, 100], 5.0) == pytest.approx([2 / 3, 1 / 3])
    assert shares(two, [10**6, 1], 1000.0) == pytest.approx([0.5, 0.5], abs=0.01)

    three = [source("a"), source("b", share=0.4), source("c")]
    assert shares(three, [100, 7, 200], 1.0) == pytest.approx([0.2, 0.4, 0.4])


def test_stages_begin_where_a_source_comes_or_goes():
    result = stages([source("a", stop=50), source("b", start=20), source("c", start=50)], [100, 300, 50], 1.0)
    assert [stage.start for stage in result] == [0, 20, 50]
    assert [stage.copies.tolist() for stage in result] == [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    [rare] = stages([source("a", share=0.001), source("b")], [3000, 2], 1.0)
    assert rare.copies * [3000, 2] == pytest.approx([3000 * 64 / 1000, 3000 * 64 * 0.999], rel=0.01)
    for share in (1.0, 0.9999999, 1e-9):
        with pytest.raises(NMTError, match=r"leave . less than a sentence"):
            stages([source("a", share=share), source("b")], [30, 200], 1.0)
    with pytest.raises(NMTError, match="none of them is used from update 9 on"):
        stages([source("a", stop=9)], [5], 1.0)


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A mixture of two corpora: the second one has a tag and noise, and is used from update 4 on."""
    folder = tmp_path_factory.mktemp("mixture")
    for name, seed in (("general", 5), ("domain", 6)):
        (folder / name).mkdir()
        write_toy_text(folder / name, seed)
    entries = [
        f"{{train: {folder}/general/train, valid: {folder}/general/valid, name: general}}",
        f"{{train: {folder}/domain/train, valid: {folder}/domain/valid, name: domain, share: 0.3, start: 4,"
        " tag: '<2xx>', noise: {upper: 0.5, bpe_dropout: 0.3}}",
    ]
    texts = [word for word in toy_options(folder) if not word.startswith(("data.train", "data.valid", "data.test"))]
    return [
        *texts,
        f"data.test={folder}/domain/test",
        f"data.sources=[{','.join(entries)}]",
        f"prepared={folder}/prepared",
    ]


@pytest.fixture(scope="module")
def prepared(options) -> Path:
    config = compose("preprocess", options)
    preprocess(config, lambda words: None)
    return Path(config.prepared)


def test_sources_are_prepared_one_after_another_with_their_tags(prepared):
    manifest = json.loads((prepared / "manifest.json").read_text())
    counts = manifest["counts"]["train"]
    assert list(counts["sources"]) == ["general", "domain"]
    assert sum(counts["sources"].values()) == counts["kept"]
    corpus, tokenizer = open_corpus(prepared), load_tokenizer(prepared / "tokenizer.model")
    tag, (_, border, end) = tokenizer.tag_id("<2xx>"), corpus.bounds("train")
    rows = corpus.split("train").table[np.arange(end)].column("source").to_pylist()
    assert not any(tag in row for row in rows[:border])
    assert all(row[0] == tag and tag not in row[1:] for row in rows[border:])
    assert tokenizer.decode(rows[-1]) == tokenizer.decode(rows[-1][1:]) != ""
    assert tokenizer.encode(["<2xx> ka lo"])[0] == [tag, *tokenizer.encode(["ka lo"])[0]]
    assert tag not in tokenizer.encode(["ka <2xx> lo"])[0]
    assert (prepared / "valid.en").read_text().count("\n") == 80


def updates(options: list[str], prepared: Path) -> UpdateDataModule:
    return UpdateDataModule(open_corpus(prepared), compose("train", options))


def test_batches_have_the_noise_of_their_source_and_are_functions_of_update_and_row(options, prepared):
    module, other = updates(options, prepared), updates(options, prepared)
    tokenizer, bounds = load_tokenizer(prepared / "tokenizer.model"), module.mixture.bounds
    plain = changed = capitals = 0
    for number in range(24):
        for planned in module.planner.update(number):
            batch, again = module.batches.batch(planned), other.batches.batch(planned)
            assert (batch.source == again.source).all()
            assert (batch.target_out == again.target_out).all()
            clean = module.split.batch(planned.indices)
            for row, index in enumerate(planned.indices):
                noise, unchanged = (
                    [tokenizer.decode(side[row].tolist()) for side in (sentences.source, sentences.target_out)]
                    for sentences in (batch, clean)
                )
                if index < bounds[1]:
                    assert noise == unchanged
                    plain += 1
                else:
                    assert noise in (unchanged, [side.upper() for side in unchanged])
                    assert batch.source[row, 0] == tokenizer.tag_id("<2xx>")
                    changed += 1
                    capitals += noise != unchanged
            assert batch.source.shape[1] <= planned.widths[0]
            assert len(batch.source) * max(planned.widths) <= 120
    assert number == 23
    assert 0.2 < changed / (plain + changed) < 0.35
    assert 0.25 < capitals / changed < 0.6


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        ("[{train: a}, 7]", "data.sources: 7 is not a mapping"),
        ("[{train: a}, {train: x/a}]", "data.sources: two are called a; give each a name"),
        ("[{train: a, start: 3}]", "none of them is used from the beginning"),
        ("[{train: a, share: 0.7}, {train: b, share: 0.6}]", "their shares are 1.3 together"),
        ("[{train: a, share: 0.5, weight: 2}]", "a: share=0.5 and weight=2"),
        ("[{train: a, tag: 2de}]", "data.sources, a: data.tag='2de': must be a word in angle brackets"),
        ("[{train: a, stop: 3, start: 5}]", "stop=3 is not after start=5"),
        (
            "[{train: a, target: de, tag: '<2de>'}, {train: b, target: fr}]",
            "each source needs a tag, such as <2de>; fr has",
        ),
    ],
)
def test_sources_that_cannot_be_are_refused(sources, problem):
    with pytest.raises(NMTError) as error:
        compose("preprocess", ["data=files", "data.name=x", f"data.sources={sources}"])
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_a_source_without_a_pair_is_named(tmp_path):
    for name, lines in (("some", 40), ("none", 0)):
        for language in ("en", "de"):
            (tmp_path / f"{name}.{language}").write_text("".join(f"{language} {'ka' * i}\n" for i in range(lines)))
    entries = f"[{{train: {tmp_path}/some}},{{train: {tmp_path}/none}}]"
    words = ["data=files", "data.name=x", f"data.sources={entries}", "data.valid_size=5", "data.test_size=5"]
    config = compose("preprocess", [*words, f"prepared={tmp_path}/prepared", "workers=1"])
    with pytest.raises(NMTError, match=r"data.sources, none: no training pair is left of 0"):
        preprocess(config, lambda words: None)
