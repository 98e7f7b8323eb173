"""A split that is divided among files equals the same split in one file."""

import json
import os
import pickle
import resource
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nmt.config import BatchingConfig
from nmt.data import (
    IDS_SCHEMA,
    BatchPlanner,
    PreparedCorpus,
    PreparedSplit,
    check_ours,
    open_corpus,
    same_pairs,
)
from nmt.data.lengths import GrownLengths
from nmt.data.mapped_files import MappedFiles
from nmt.errors import NMTError
from nmt.files import facts, sha256
from tests.helpers.division import cut_blocks, divide, divide_corpus, write_stream

PAIRS = 500
VOCABULARY = (99, 99)


def write_split(folder: Path) -> None:
    random = np.random.default_rng(1)
    columns = []
    for _ in range(2):
        lengths = random.integers(0, 20, PAIRS)
        columns.append([random.integers(4, 99, length).tolist() for length in lengths])
    columns += [[len(ids) + 1 for ids in side] for side in columns]
    table = pa.table([*columns, np.arange(PAIRS)], schema=IDS_SCHEMA)
    folder.mkdir()
    write_stream(folder / "pairs.arrow", table.to_batches())
    cut_blocks(folder, 30)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """The folder of the facts, which are remembered even for files that just changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(facts, "SETTLED_NS", 0)
    return tmp_path / "cache" / "nmt" / "facts"


@pytest.fixture
def whole(tmp_path) -> PreparedSplit:
    write_split(tmp_path / "whole")
    return PreparedSplit(tmp_path / "whole")


@pytest.fixture
def folder(tmp_path, whole) -> Path:
    """The folder of the same split in five files."""
    folder = Path(shutil.copytree(whole.folder, tmp_path / "divided"))
    assert divide(folder, 5) == [90, 90, 120, 90, 110]
    return folder


ROWS = [90, 90, 120, 90, 110]
SELECTIONS = {
    "none": np.array([], np.int64),
    "all": np.arange(PAIRS),
    "backwards": np.arange(PAIRS)[::-1],
    "of one file": np.array([95, 91, 170]),
    "at borders": np.array([89, 90, 0, 499, 179, 180, 90, 90, 299, 300]),
    "any": np.random.default_rng(2).integers(0, PAIRS, 200),
}


@pytest.mark.parametrize("selection", SELECTIONS.values(), ids=SELECTIONS)
def test_rows_equal_those_of_one_file(whole, folder, selection):
    divided = PreparedSplit(folder, ROWS)
    assert len(divided) == PAIRS
    for actual, expected in zip(divided.rows(selection), whole.rows(selection), strict=True):
        assert actual.type == expected.type
        assert actual.to_pylist() == expected.to_pylist()
    for one, other in (
        (divided.source_lengths, whole.source_lengths),
        (divided.target_lengths, whole.target_lengths),
    ):
        assert one[selection].dtype == np.int32
        assert one[selection].tolist() == other[selection].tolist()


@pytest.mark.parametrize(
    ("begin", "end"), [(0, PAIRS), (0, 0), (5, 2), (0, 90), (89, 91), (95, 100), (60, 420)]
)
def test_slices_equal_those_of_one_file(whole, folder, begin, end):
    divided = PreparedSplit(folder)
    expected = whole.target_lengths[:].tolist()[begin:end]
    assert divided.target_lengths[begin:end].tolist() == expected
    assert divided.target_lengths.max(begin, end) == max(expected, default=0)
    assert whole.target_lengths.max(begin, end) == max(expected, default=0)


def test_summaries_equal_those_of_one_file(whole, folder):
    divided = PreparedSplit(folder, ROWS)
    lengths = whole.source_lengths[:]
    for split in (whole, divided):
        assert split.source_lengths.max() == lengths.max()
        assert split.source_lengths.sum() == lengths.sum()
        assert split.source_lengths.tolist() == lengths.tolist()
    assert divided.table.equals(whole.table)
    bounds = np.array([0, 100, 100, PAIRS])
    growth = np.array([1.4, 9, 1])
    grown = np.ceil(lengths * np.repeat(growth, np.diff(bounds)))
    assert GrownLengths(divided.source_lengths, bounds, growth).max() == grown.max()


def test_updates_and_batches_equal_those_of_one_file(whole, folder):
    divided = pickle.loads(pickle.dumps(PreparedSplit(folder, ROWS)))
    planners = []
    for split in (whole, divided):
        batching = BatchingConfig(400, 2)
        planners.append(BatchPlanner(split.source_lengths, split.target_lengths, batching, 1))
    for update in (0, 1, 77):
        for one, other in zip(*(planner.update(update) for planner in planners), strict=True):
            assert one.indices.tolist() == other.indices.tolist()
            assert one[1:] == other[1:]
            for tensor, expected in zip(
                divided.batch(one.indices)[:4], whole.batch(one.indices)[:4], strict=True
            ):
                assert tensor.equal(expected)


def test_a_file_is_mapped_when_a_row_of_it_is_needed(folder, monkeypatch):
    split = PreparedSplit(folder, ROWS)
    split.check(VOCABULARY)
    split.source_lengths.digest()
    longest = split.source_lengths.max()
    opened = []
    open_file = MappedFiles.open

    def counted(files: MappedFiles, number: int):
        opened.append(number)
        return open_file(files, number)

    monkeypatch.setattr(MappedFiles, "open", counted)
    again = PreparedSplit(folder, ROWS)
    again.check(VOCABULARY)
    assert again.source_lengths.max() == longest
    assert again.source_lengths.digest() == split.source_lengths.digest()
    received = pickle.loads(pickle.dumps(again))
    assert (len(received), opened) == (PAIRS, [])
    received.rows(np.array([91, 499, 92]))
    received.rows(np.array([95]))
    assert opened == [1, 4]


def test_blocks_are_listed_once(folder, cache, monkeypatch):
    expected = PreparedSplit(folder, ROWS).rows(np.arange(PAIRS))[0]
    monkeypatch.setattr("nmt.data.columns.BlockIndex.of_stream", None)
    assert PreparedSplit(folder, ROWS).rows(np.arange(PAIRS))[0].equals(expected)


def test_many_files_need_few_descriptors(tmp_path, whole):
    blocks = [*pa.ipc.open_stream((whole.folder / "pairs.arrow").read_bytes())]
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(80):
        write_stream(folder / f"pairs-{number + 1:05}.arrow", [blocks[number % 10]])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = len([*Path("/proc/self/fd").iterdir()])
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors + 40, limits[1]))
    try:
        split = PreparedSplit(folder, [30] * 80)
        split.check(VOCABULARY)
        assert len(split.batch(np.arange(0, 2400, 30)).source) == 80
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replace_by_link(path: Path) -> None:
    path.rename(path.parent.parent / "moved")
    path.symlink_to(path.parent.parent / "moved")


def write_other_columns(path: Path) -> None:
    table = pa.table({"source": [1, 2]})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)


def write_one_block(path: Path) -> None:
    blocks = [*pa.ipc.open_stream(path.read_bytes())]
    write_stream(path, blocks[:1])


def add_one(path: Path) -> None:
    shutil.copy(path, path.with_name("pairs-00006.arrow"))


def add_whole(path: Path) -> None:
    shutil.copy(path, path.with_name("pairs.arrow"))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            Path.unlink,
            "lacks pairs-00002.arrow of its files pairs-00001.arrow to pairs-00005.arrow: copy it",
        ),
        (add_one, "pairs-00006.arrow is none of this corpus's files .*: move it away"),
        (add_whole, "has pairs-00001.arrow beside pairs.arrow; prepare the corpus again"),
        (truncate, r"pairs-00002.arrow: damaged or not a prepared corpus \(.*prepare it again"),
        (replace_by_link, "pairs-00002.arrow: cannot be read .a link, which is not followed"),
        (write_other_columns, "pairs-00002.arrow: .*does not have a prepared corpus's columns"),
        (write_one_block, "pairs-00002.arrow has 30 pairs, but the manifest says 90: prepare it"),
    ],
)
def test_a_damaged_file_is_named(folder, damage, words):
    PreparedSplit(folder, ROWS).check(VOCABULARY)
    damage(folder / "pairs-00002.arrow")
    with pytest.raises(NMTError, match=words) as raised:
        PreparedSplit(folder, ROWS).check(VOCABULARY)
    assert "\n" not in str(raised.value)


def test_without_a_manifest_a_gap_in_the_numbers_is_an_error(folder):
    (folder / "pairs-00002.arrow").unlink()
    with pytest.raises(NMTError, match=r"lacks pairs-00002\.arrow of its files .* to pairs-00004"):
        PreparedSplit(folder)


def test_a_wrong_id_is_found_in_any_file(folder):
    with pytest.raises(NMTError, match=r"pairs-0000\d.arrow: .*outside the vocabulary"):
        PreparedSplit(folder, ROWS).check((98, 99))
    # Errors are not remembered.
    with pytest.raises(NMTError, match="outside the vocabulary"):
        PreparedSplit(folder, ROWS).check((98, 99))


def test_pairs_are_compared_across_divisions(whole, folder):
    one = [whole.folder / "pairs.arrow"]
    five = sorted(folder.glob("*.arrow"))
    other = Path(shutil.copytree(whole.folder, folder.parent / "other"))
    divide(other, 3)
    three = sorted(other.glob("*.arrow"))
    divisions = [one, five, three]
    for paths in divisions:
        for expected in divisions:
            hashes = [sha256(path) for path in expected]
            assert same_pairs(paths, hashes)
            assert not same_pairs(paths, hashes[:-1])
            assert not same_pairs(paths, [*hashes, hashes[0]])
            assert not same_pairs(paths[:-1], hashes)
    assert not same_pairs(five[::-1], [sha256(one[0])])
    truncate(five[3])
    assert not same_pairs(five, [sha256(one[0])])


@pytest.fixture
def corpora(toy, tmp_path) -> tuple[PreparedCorpus, PreparedCorpus]:
    """The toy corpus with its pairs in one file, and in three."""
    prepared = toy[-1].removeprefix("prepared=")
    one = Path(shutil.copytree(prepared, tmp_path / "one"))
    cut_blocks(one / "train", 10)
    three = Path(shutil.copytree(one, tmp_path / "three"))
    divide_corpus(three, 3)
    return open_corpus(one), open_corpus(three)


def test_a_divided_corpus_is_the_same_corpus(corpora):
    one, three = corpora
    assert three.manifest.fingerprint == one.manifest.fingerprint
    assert three.split("train").table.equals(one.split("train").table)
    assert three.bounds("train").tolist() == one.bounds("train").tolist()
    check_ours(three.folder)


@pytest.mark.parametrize("files", [[], [0, 5], [-1, 6], [5], [2, 2], [2, "3"], 5])
def test_a_manifest_with_wrong_files_is_rejected(corpora, files):
    path = corpora[1].folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["counts"]["train"]["files"] = files
    path.write_text(json.dumps(manifest))
    with pytest.raises(NMTError, match="files"):
        open_corpus(path.parent)


@pytest.mark.slow
def test_training_and_resuming_do_not_depend_on_the_division(corpora, toy, nmt, training_state):
    options = [*toy[:-1], "checkpoints.every_steps=4"]
    for run, corpus, steps in (
        ("resumed", corpora[0], 4),
        ("resumed", corpora[1], 8),
        ("straight", corpora[1], 8),
    ):
        words = [f"prepared={corpus.folder}", f"run={run}", f"trainer.max_steps={steps}"]
        assert nmt("train", *options, *words).code == 0
    resumed, straight = (training_state(Path(run)) for run in ("resumed", "straight"))
    assert resumed["step"] == 8
    check_equal(resumed, straight)


def check_equal(one, other) -> None:
    assert one.keys() == other.keys()
    for key, value in one.items():
        if isinstance(value, dict):
            check_equal(value, other[key])
        elif hasattr(value, "equal"):
            assert value.equal(other[key])
        else:
            assert value == other[key]
