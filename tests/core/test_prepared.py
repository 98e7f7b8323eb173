"""Prepared corpora: their manifest, padded batches, and the rejection of damaged files."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nmt.config import DataConfig, NMTError, TokenizerConfig, with_defaults
from nmt.data import (
    FORMAT_VERSION,
    IDS_SCHEMA,
    Manifest,
    PreparedCorpus,
    PreparedSplit,
    corpus_of,
    fingerprint,
    open_corpus,
    read_manifest,
)
from nmt.data.batches import padded_batch
from nmt.preparation import arrow_writer

PAD = 0
START = 1
END = 2
DATA = {
    "name": "toy",
    "kind": "files",
    "source": "en",
    "target": "de",
    "filters": {"max_ratio": None},
}
CONTENT = {
    "data": DATA,
    "tokenizer": {"kind": "bpe", "normalization": "canonical"},
    "seed": 1,
    "sources": {"a.en": "0123", "Größe.tsv": "4567"},
}
LENGTHS = {"source": {"p99": 3, "max": 3}, "target": {"p99": 3, "max": 4}}
TRAIN = {
    "read": 3,
    "dropped": {"empty side": 1},
    "kept": 2,
    "tokens": {"source": 5, "target": 6},
    "lengths": LENGTHS,
}
MANIFEST = Manifest(FORMAT_VERSION, "abc", CONTENT, {"train": TRAIN}, 300, "def", {"datasets": "5"})


def test_fingerprint_depends_on_every_decisive_value_but_not_on_the_order():
    others = [
        {"seed": 2},
        {"data": DATA | {"train": ["b", "a"]}},
        {"data": DATA | {"filters": {"max_ratio": 4.0}}},
        {"sources": {"a.en": "0123", "Größe.tsv": "4568"}},
    ]
    assert len({fingerprint(CONTENT | other) for other in ({}, *others)}) == 5
    assert fingerprint(dict(reversed(CONTENT.items()))) == fingerprint(CONTENT)
    assert fingerprint(CONTENT | {"data": DATA | {"noise": {"upper": 1.0}}}) == fingerprint(CONTENT)


def test_fingerprint_contains_a_later_option_only_if_it_changes_the_corpus():
    explicit = {"train": ["a"], "columns": []}
    sources = [[{"train": ["a"]}], [explicit], [{"train": ["a"], "columns": [2, 3]}]]
    same = DATA | {"columns": []}
    others = [
        DATA | {"columns": [2, 3]},
        *(DATA | {"columns": [2, 3], "sources": part} for part in sources),
    ]
    assert fingerprint(CONTENT | {"data": same}) == fingerprint(CONTENT)
    assert len({fingerprint(CONTENT | {"data": data}) for data in (DATA, *others)}) == 5


def test_a_manifest_survives_writing_and_reading(tmp_path):
    MANIFEST.write(tmp_path)
    manifest = read_manifest(tmp_path)
    assert replace(manifest, content=CONTENT) == MANIFEST
    data = with_defaults(DataConfig, DATA)
    tokenizer = with_defaults(TokenizerConfig, CONTENT["tokenizer"])
    assert manifest.content == CONTENT | {"data": data, "tokenizer": tokenizer}


def test_a_manifest_of_another_format_is_rejected(tmp_path):
    replace(MANIFEST, format_version=2).write(tmp_path)
    with pytest.raises(
        NMTError,
        match=rf"format version 2, but this nmt reads .* {FORMAT_VERSION}: .*overwrite=true",
    ):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"content": CONTENT | {"data": DATA | {"kind": ["files"]}}},
            "not written by `nmt preprocess`",
        ),
        (
            {"content": CONTENT | {"data": DATA | {"source": "../../etc/passwd"}}},
            "not written by `nmt preprocess`",
        ),
        ({"content": CONTENT | {"sources": ["a"]}}, "not written by `nmt preprocess`"),
        ({"counts": {"train": TRAIN | {"dropped": {"a": "b"}}}}, "dropped"),
        ({"vocabulary_size": 2**40}, "not written by `nmt preprocess`"),
        ({"versions": {"datasets": 5}}, "versions"),
    ],
)
def test_a_malformed_manifest_is_rejected_when_it_is_read(tmp_path, changes, words):
    replace(MANIFEST, **changes).write(tmp_path)
    with pytest.raises(NMTError, match=rf"manifest\.json.*{words}") as error:
        read_manifest(tmp_path)
    assert "\n" not in str(error.value)


@pytest.fixture
def corpus(toy: list[str]) -> PreparedCorpus:
    return open_corpus(Path(toy[-1].removeprefix("prepared=")))


@pytest.mark.parametrize(
    ("sentences", "target_in", "target_out", "target_indices"),
    [
        (
            [[], [5, 6, 7]],
            [[START, PAD, PAD, PAD], [START, 5, 6, 7]],
            [[END, PAD, PAD, PAD], [5, 6, 7, END]],
            [0, 4, 5, 6, 7],
        ),
        (
            [[], []],
            [[START], [START]],
            [[END], [END]],
            [0, 1],
        ),
    ],
)
def test_padding_and_shifting(sentences, target_in, target_out, target_indices):
    column = pa.array(sentences, pa.list_(pa.int32()))
    batch = padded_batch(column, column)
    assert batch.source.tolist() == target_out
    assert batch.target_in.tolist() == target_in
    assert batch.target_out.tolist() == target_out
    assert batch.target_indices.tolist() == target_indices
    assert batch.padded == (len(target_indices) < batch.source.numel())


def test_another_process_gets_a_split_by_its_name(tmp_path):
    random = np.random.default_rng(1)
    sentences = [random.integers(4, 100, random.integers(0, 9)).tolist() for _ in range(5300)]
    lengths = np.array([len(sentence) + 1 for sentence in sentences], dtype=np.int32)
    columns = [
        sentences,
        [sentence[::-1] for sentence in sentences],
        lengths,
        lengths,
        np.arange(5300),
    ]
    with arrow_writer(tmp_path / "pairs.arrow", IDS_SCHEMA) as write:
        for block in pa.table(columns, schema=IDS_SCHEMA).to_batches(1000):
            write(block)
    sent = pickle.dumps(PreparedSplit(tmp_path))
    assert len(sent) < 1000
    split = pickle.loads(sent)
    assert split.source_lengths.tolist() == lengths.tolist()
    indices = np.array([0, 999, 1000, 1001, 5299, 3000, 2999])
    batch = split.batch(indices)
    for row, index in enumerate(indices):
        assert batch.source[row].tolist()[: lengths[index]] == [*sentences[index], END]
        assert batch.target_in[row].tolist()[: lengths[index]] == [START, *sentences[index][::-1]]


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ({"source_length": 1}, "its source_length is not the length"),
        ({"target_length": 2**31 - 1}, "its target_length is not the length"),
        ({"source": [5, 10**9]}, "an id in source is outside the vocabulary"),
        ({"target": [END]}, "an id in target is outside the vocabulary"),
        ({"source": None}, "does not have a prepared corpus's columns"),
        ({"source": [5, None]}, "an id in source is outside the vocabulary"),
        ({}, "2 pairs, but the manifest says 2,000"),
    ],
)
def test_a_corpus_with_wrong_pairs_is_rejected(corpus, tmp_path, lie, words):
    row = {"source": [5, 6], "target": [7], "source_length": 3, "target_length": 2, "line": 1}
    (tmp_path / "train").mkdir()
    with arrow_writer(tmp_path / "train" / "pairs.arrow", IDS_SCHEMA) as write:
        write(pa.RecordBatch.from_pylist([row, {**row, **lie}], schema=IDS_SCHEMA))
    counts = {"train": {**corpus.manifest.counts["train"], "kept": 2}}
    prepared = PreparedCorpus(tmp_path, replace(corpus.manifest, counts=counts))
    if not lie:
        assert len(prepared.split("train")) == 2
        counts["train"]["kept"] = 2000
    with pytest.raises(NMTError, match=words):
        prepared.split("train")


def test_a_corpus_does_not_open_with_another_tokenizer(corpus, checkpoint, tmp_path):
    folder = shutil.copytree(corpus.folder, tmp_path / "prepared")
    shutil.copy(Path(checkpoint, "tokenizer.model"), folder)
    with pytest.raises(NMTError, match=r"tokenizer\.model is not the tokenizer"):
        open_corpus(folder)


def test_a_model_leads_to_the_corpus_that_it_was_trained_on(corpus, tmp_path, monkeypatch):
    assert (corpus.source_language, corpus.target_language) == ("en", "de")
    texts = [(corpus.folder / f"valid.{code}").read_text().splitlines() for code in ("en", "de")]
    assert list(corpus.text("valid")) == texts
    run = corpus.folder.parent / "runs" / "mine"
    trained = {"config": {"prepared": "prepared"}, "corpus": corpus.manifest.fingerprint}
    monkeypatch.chdir(tmp_path)  # so that the name is only found above the run
    assert corpus_of(run / "model", trained).folder == corpus.folder
    assert corpus_of(Path("elsewhere"), {}, str(corpus.folder)).text("valid") == corpus.text(
        "valid"
    )
    with pytest.raises(NMTError, match=r"is not the corpus that .*mine was trained on"):
        corpus_of(run, trained | {"corpus": "another"})


@pytest.mark.parametrize(
    ("training", "words"),
    [
        ({}, "does not record its corpus"),
        ({"config": {"prepared": "nowhere"}}, "nowhere: no prepared corpus"),
    ],
)
def test_a_model_without_its_corpus_is_rejected(tmp_path, training, words):
    with pytest.raises(NMTError, match=words):
        corpus_of(tmp_path / "runs" / "mine", training)


def test_a_split_that_was_not_prepared_is_rejected(corpus):
    with pytest.raises(NMTError, match="has no other set"):
        corpus.text("other")
