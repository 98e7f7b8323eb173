"""Prepared corpora: their manifest, batches padded on the right, and refusals of what does not belong together."""

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
from nmt.data.prepared import padded_batch
from nmt.preparation import arrow_writer

PAD, START, END = 0, 1, 2
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


def test_the_fingerprint_depends_on_every_value_that_decides_what_is_prepared_and_not_on_the_order():
    others = [
        {"seed": 2},
        {"data": DATA | {"train": ["b", "a"]}},
        {"data": DATA | {"filters": {"max_ratio": 4.0}}},
        {"sources": {"a.en": "0123", "Größe.tsv": "4568"}},
    ]
    assert len({fingerprint(CONTENT | other) for other in ({}, *others)}) == 5
    assert fingerprint(dict(reversed(CONTENT.items()))) == fingerprint(CONTENT)
    assert fingerprint(CONTENT | {"data": DATA | {"noise": {"upper": 1.0}}}) == fingerprint(CONTENT)


def test_an_option_that_came_later_is_in_the_fingerprint_only_if_it_changes_the_corpus():
    explicit = {"train": ["a"], "columns": []}
    sources = [[{"train": ["a"]}], [explicit], [{"train": ["a"], "columns": [2, 3]}]]
    same = DATA | {"columns": []}
    others = [
        DATA | {"columns": [2, 3]},
        *(DATA | {"columns": [2, 3], "sources": part} for part in sources),
    ]
    assert fingerprint(CONTENT | {"data": same}) == fingerprint(CONTENT)
    assert len({fingerprint(CONTENT | {"data": data}) for data in (DATA, *others)}) == 5


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    MANIFEST.write(tmp_path)
    manifest = read_manifest(tmp_path)
    assert replace(manifest, content=CONTENT) == MANIFEST
    data = with_defaults(DataConfig, DATA)
    tokenizer = with_defaults(TokenizerConfig, CONTENT["tokenizer"])
    assert manifest.content == CONTENT | {"data": data, "tokenizer": tokenizer}
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
def test_a_manifest_of_anyone_is_checked_where_it_is_read(tmp_path, changes, words):
    replace(MANIFEST, **changes).write(tmp_path)
    with pytest.raises(NMTError, match=rf"manifest\.json.*{words}") as error:
        read_manifest(tmp_path)
    assert "\n" not in str(error.value)


@pytest.fixture
def corpus(toy: list[str]) -> PreparedCorpus:
    return open_corpus(Path(toy[-1].removeprefix("prepared=")))


def test_padding_and_shifting():
    for sentences, target_in, target_out, real in (
        (
            [[], [5, 6, 7]],
            [[1, 0, 0, 0], [1, 5, 6, 7]],
            [[2, 0, 0, 0], [5, 6, 7, 2]],
            [0, 4, 5, 6, 7],
        ),
        ([[], []], [[1], [1]], [[2], [2]], [0, 1]),
    ):
        column = pa.array(sentences, pa.list_(pa.int32()))
        batch = padded_batch(column, column)
        assert [tensor.tolist() for tensor in batch[:4]] == [
            target_out,
            target_in,
            target_out,
            real,
        ]
        assert batch.padded == (len(real) < batch.source.numel())


def test_a_split_in_many_chunks_is_sent_to_other_processes_by_its_name(tmp_path):
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
def test_a_corpus_that_lies_about_its_pairs_is_refused(corpus, tmp_path, lie, words):
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


def test_a_model_leads_to_the_corpus_that_it_was_trained_on_and_to_no_other(
    corpus, tmp_path, monkeypatch
):
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
    for training, words in (
        (trained | {"corpus": "another"}, "is not the corpus that .*mine was trained on"),
        ({}, "does not record its corpus"),
        ({"config": {"prepared": "nowhere"}}, "nowhere: no prepared corpus"),
    ):
        with pytest.raises(NMTError, match=words):
            corpus_of(run, training)
    with pytest.raises(NMTError, match="has no other set"):
        corpus.text("other")
