"""Prepared corpora: batches padded on the right, and a corpus that opens only with its own tokenizer."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pytest
import torch
from numpy.typing import NDArray

from nmt.config import DataConfig, ExperimentConfig, TokenizerConfig
from nmt.data import IDS_SCHEMA, PreparedCorpus, PreparedSplit, corpus_of, open_corpus
from nmt.data.prepared import pad, shift
from nmt.errors import NMTError
from nmt.preparation import arrow_writer, preprocess

PAD, START, END = 0, 1, 2
WORDS = ["ein", "kleines", "Haus", "am", "See,", "das", "im", "Winter", "leer", "steht", "und", "friert"]
PAIRS = [(" ".join(WORDS[i : i + n]), " ".join(WORDS[n : n + i + 1])) for n in range(1, 7) for i in range(6)]


def prepare(folder: Path, vocabulary_size: int = 300) -> Path:
    (folder / "train.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    (folder / "empty_sides.tsv").write_text("\t\na\t\n\tb\n")
    data = DataConfig(
        name="toy",
        kind="files",
        source="de",
        target="nl",
        train=str(folder / "train.tsv"),
        valid=str(folder / "train.tsv"),
        test=str(folder / "empty_sides.tsv"),
    )
    tokenizer = TokenizerConfig(kind="bpe", vocabulary_size=vocabulary_size)
    prepared = folder / "prepared"
    preprocess(ExperimentConfig(prepared=str(prepared), workers=1, data=data, tokenizer=tokenizer), lambda words: None)
    return prepared


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> PreparedCorpus:
    return open_corpus(prepare(tmp_path_factory.mktemp("corpus")))


@pytest.mark.parametrize("indices", [[35, 0, 17], list(range(36))])
def test_a_batch_holds_the_sentences_in_order_padded_on_the_right(corpus: PreparedCorpus, indices: list[int]) -> None:
    rows = [datasets.Dataset.from_file(str(corpus.folder / "train" / "pairs.arrow"))[i] for i in indices]
    batch = corpus.split("train").batch(np.array(indices))
    sources = [[*row["source"], END] for row in rows]
    expected = {
        "source": sources,
        "target_in": [[START, *row["target"]] for row in rows],
        "target_out": [[*row["target"], END] for row in rows],
    }
    for name, sentences in expected.items():
        tensor = getattr(batch, name)
        assert tensor.dtype == torch.int64
        assert tensor.shape == (len(indices), max(map(len, sentences)))
        assert tensor.tolist() == [ids + [PAD] * (tensor.shape[1] - len(ids)) for ids in sentences]


@pytest.fixture(scope="module")
def long_split(tmp_path_factory: pytest.TempPathFactory) -> tuple[PreparedSplit, list[list[int]]]:
    """A split in many chunks, as a large corpus is; its target is its source backwards."""
    random = np.random.default_rng(1)
    sentences = [random.integers(4, 100, random.integers(0, 9)).tolist() for _ in range(5300)]
    columns = {"source": sentences, "target": [sentence[::-1] for sentence in sentences]}
    lengths = np.array([len(sentence) + 1 for sentence in sentences], dtype=np.int32)
    folder = tmp_path_factory.mktemp("long")
    columns |= {"source_length": lengths, "target_length": lengths, "line": np.arange(len(lengths))}
    datasets.Dataset(pa.table(columns, schema=IDS_SCHEMA)).save_to_disk(folder)
    return PreparedSplit(folder), sentences


def test_another_number_of_pairs_than_the_manifest_counts_is_refused(corpus, tmp_path):
    folder = shutil.copytree(corpus.folder, tmp_path / "short")
    counts = {"train": {**corpus.manifest.counts["train"], "kept": 7}}
    with pytest.raises(NMTError, match="not 7 as the manifest says"):
        PreparedCorpus(folder, replace(corpus.manifest, counts=counts)).split("train")


def test_a_corpus_with_each_lie_about_its_ids_is_refused(corpus, tmp_path):
    """Lengths that are all 1 would pass the token budget; ids outside the vocabulary would end in a traceback."""
    rows = [{"source": [5, 6], "target": [7], "source_length": 3, "target_length": 2, "line": 1}]
    for number, (lie, words) in enumerate(
        [
            ({}, None),
            ({"source_length": 1}, "its source_length is not the length"),
            ({"target_length": 2**31 - 1}, "its target_length is not the length"),
            ({"source": [5, 10**9]}, "an id in source is outside the vocabulary"),
            ({"target": [PAD]}, "an id in target is outside the vocabulary"),
            ({"source": None}, "not the columns of a prepared corpus"),
            ({"source": [5, None]}, "an id in source is outside the vocabulary"),
        ]
    ):
        folder = tmp_path / str(number)
        (folder / "train").mkdir(parents=True)
        with arrow_writer(folder / "train" / "data-00000-of-00001.arrow", IDS_SCHEMA) as write:
            write(pa.RecordBatch.from_pylist([*rows, {**rows[0], **lie}], schema=IDS_SCHEMA))
        prepared = PreparedCorpus(folder, replace(corpus.manifest, counts={}))
        if words is None:
            assert len(prepared.split("train")) == 2
        else:
            with pytest.raises(NMTError, match=words):
                prepared.split("train")


def check(split: PreparedSplit, sentences: list[list[int]], indices: NDArray[np.int64]) -> None:
    batch = split.batch(indices)
    for row, index in enumerate(indices.tolist()):
        assert batch.source[row].tolist()[: len(sentences[index]) + 1] == [*sentences[index], END]
        assert batch.target_in[row].tolist()[: len(sentences[index]) + 1] == [START, *sentences[index][::-1]]


def test_batches_of_a_split_in_many_chunks(long_split: tuple[PreparedSplit, list[list[int]]]) -> None:
    split, sentences = long_split
    assert split.table.data.column("source").num_chunks > 5
    check(*long_split, np.array([0, 999, 1000, 1001, 5299, 3000, 2999]))
    check(*long_split, np.random.default_rng(2).permutation(5300))
    assert split.source_lengths.tolist() == [len(sentence) + 1 for sentence in sentences]


def test_a_split_is_sent_to_other_processes_by_its_name(long_split: tuple[PreparedSplit, list[list[int]]]) -> None:
    split, sentences = long_split
    sent = pickle.dumps(split)
    assert len(sent) < 1000
    check(pickle.loads(sent), sentences, np.array([7, 4000, 1]))


@pytest.mark.parametrize(
    ("sentences", "closed", "behind_the_start"),
    [
        ([[5], [6, 7]], [[5, 2, 0], [6, 7, 2]], [[1, 5, 0], [1, 6, 7]]),
        ([[], [5, 6, 7]], [[2, 0, 0, 0], [5, 6, 7, 2]], [[1, 0, 0, 0], [1, 5, 6, 7]]),
        ([[], []], [[2], [2]], [[1], [1]]),
    ],
)
def test_pad(sentences: list[list[int]], closed: list[list[int]], behind_the_start: list[list[int]]) -> None:
    padded = pad(pa.array(sentences, pa.list_(pa.int32())))
    assert padded.tolist() == closed
    assert shift(padded).tolist() == behind_the_start


def test_a_corpus_does_not_open_with_another_tokenizer(corpus: PreparedCorpus, tmp_path: Path) -> None:
    folder = prepare(tmp_path, 310)
    shutil.copy(corpus.tokenizer_file, folder)
    with pytest.raises(NMTError, match=r"tokenizer\.model is not the tokenizer"):
        open_corpus(folder)


def test_a_model_leads_to_the_corpus_that_it_was_trained_on_and_to_no_other(corpus, tmp_path, monkeypatch):
    assert (corpus.source_language, corpus.target_language) == ("de", "nl")
    assert list(zip(*corpus.text("valid"), strict=True)) == PAIRS
    run = corpus.folder.parent / "runs" / "mine"
    trained = {"config": {"prepared": "prepared"}, "corpus": corpus.manifest.fingerprint}
    monkeypatch.chdir(tmp_path)  # so that the name is only found above the run
    assert corpus_of(run / "model", trained).folder == corpus.folder
    assert corpus_of(Path("elsewhere"), {}, str(corpus.folder)).text("valid") == corpus.text("valid")
    for training, words in (
        (trained | {"corpus": "another"}, "another corpus than the one that .*mine was trained on"),
        ({}, "does not say what it was trained on"),
        ({"config": {"prepared": "nowhere"}}, "nowhere: no prepared corpus"),
    ):
        with pytest.raises(NMTError, match=words):
            corpus_of(run, training)
    with pytest.raises(NMTError, match="holds no other set"):
        corpus.text("other")
