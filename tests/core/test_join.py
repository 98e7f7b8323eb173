"""Joined pairs: which pairs are consecutive, partitions of a corpus, planning and ids."""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.commands import compose
from nmt.config import UNK, BatchingConfig, DataConfig, NMTError, SourceConfig, TokenizerConfig
from nmt.data import MicroBatch, UpdateDataModule, open_corpus
from nmt.data.consecutive import consecutive, continues_text
from nmt.data.datamodule import UpdateDataset
from nmt.data.join_planning import MOST_PARTITIONS, JoinPlanner, partitions_for
from nmt.data.joining import PairJoiner
from nmt.data.partitions import JoinRule, Pairs, drawn_pairs, partition
from nmt.preparation import preprocess
from nmt.text import train_tokenizer

PAIRS = 1000
BOUNDS = np.array([0, 400, PAIRS])
RULES = [
    JoinRule(most=4, probability=0.6, limits=(60, 70), tags=(1, 0)),
    JoinRule(most=1, probability=0.6, limits=(60, 70), tags=(0, 0)),
]


@pytest.fixture(scope="module")
def pairs() -> Pairs:
    """Two sources with random lengths and gaps."""
    random = np.random.default_rng(1)
    continues = random.random(PAIRS) < 0.9
    continues[BOUNDS[:-1]] = False
    source_lengths = random.integers(3, 30, PAIRS, np.int32)
    target_lengths = random.integers(3, 30, PAIRS, np.int32)
    return Pairs(source_lengths, target_lengths, continues, BOUNDS)


def rows_one_by_one(pairs: Pairs, seed: int, number: int) -> list[tuple[int, int, int, int]]:
    """First pair, number of pairs, source and target length of each row, without arrays."""
    rows = []
    for source, (begin, end) in enumerate(pairwise(BOUNDS.tolist())):
        rule = RULES[source]
        drawn = drawn_pairs(rule, np.arange(begin, end), seed, number)
        first = begin
        while first < end:
            lengths = [int(pairs.source_lengths[first]), int(pairs.target_lengths[first])]
            count = 1
            while count < drawn[first - begin] and first + count < end:
                further = first + count
                longer = [
                    lengths[0] + int(pairs.source_lengths[further]) - 1 - rule.tags[0],
                    lengths[1] + int(pairs.target_lengths[further]) - 1 - rule.tags[1],
                ]
                if not pairs.continues[further] or longer[0] > 60 or longer[1] > 70:
                    break
                lengths = longer
                count += 1
            rows.append((first, count, *lengths))
            first += count
    return rows


@pytest.mark.parametrize("block", [7, 1 << 20])
def test_a_partition_equals_one_that_is_made_pair_by_pair(pairs, block, monkeypatch):
    monkeypatch.setattr("nmt.data.partitions.BLOCK_PAIRS", block)
    rows = partition(pairs, RULES, seed=5, number=1)
    firsts, counts = rows.pairs_of(np.arange(len(rows.source_lengths)))
    expected = rows_one_by_one(pairs, 5, 1)
    actual = zip(firsts, counts, rows.source_lengths, rows.target_lengths, strict=True)
    assert [tuple(map(int, row)) for row in actual] == expected
    of_first_source = [row for row in expected if row[0] < BOUNDS[1]]
    assert rows.bounds.tolist() == [0, len(of_first_source), len(expected)]
    assert {count for _, count, *_ in expected} == {1, 2, 3, 4}


def test_pairs_are_joined_with_their_probability():
    rule = JoinRule(most=4, probability=0.3, limits=(99, 99), tags=(0, 0))
    drawn = drawn_pairs(rule, np.arange(30_000), 1, 0)
    shares = np.bincount(drawn) / len(drawn)
    assert np.abs(shares - [0, 0.7, 0.1, 0.1, 0.1]).max() < 0.01


def joined_planner(pairs: Pairs, seed: int = 3) -> JoinPlanner:
    partitions = [partition(pairs, RULES, seed, number) for number in range(3)]
    return JoinPlanner(partitions, BatchingConfig(300, 3), seed)


def test_each_pass_has_every_pair_once_and_no_two_passes_join_alike(pairs):
    planner = joined_planner(pairs)
    micro_batches: list[MicroBatch] = []
    for number in range(-(-2 * int(planner.starts[-1]) // 3)):
        micro_batches += planner.update(number)
    starts = np.concatenate([planner.starts, planner.starts[1:] + planner.starts[-1]])
    joins = []
    for begin, end in pairwise(starts.tolist()):
        rows = np.concatenate([planned.rows() for planned in micro_batches[begin:end]])
        assert sorted(rows.tolist()) == list(range(PAIRS))
        join = set()
        for planned in micro_batches[begin:end]:
            join |= {*zip(planned.indices.tolist(), planned.joined.tolist(), strict=True)}
        joins.append(join)
    assert joins[0] != joins[1] != joins[2] != joins[0]
    # Partitions recur after a cycle, but in another order.
    assert joins[:3] == joins[3:]
    first = [planned.indices.tolist() for planned in micro_batches[: planner.starts[1]]]
    again = [planned.indices.tolist() for planned in micro_batches[planner.starts[3] :]]
    assert first != again[: len(first)]


def test_sizes_and_widths_are_those_of_joined_pairs(pairs):
    planner = joined_planner(pairs)
    for planned in planner.update(7):
        ends = planned.joined.cumsum()[:-1]
        for side, (lengths, tags) in enumerate(
            [(pairs.source_lengths, 1), (pairs.target_lengths, 0)]
        ):
            sums = []
            for row in np.split(planned.rows(), ends):
                shared = 1 + (tags if row[0] < BOUNDS[1] else 0)
                sums.append(int(lengths[row].sum()) - shared * (len(row) - 1))
            assert max(sums) <= planned.widths[side]
            assert len(sums) * planned.widths[side] <= 100


def test_updates_of_passes_count_whole_passes_exactly(pairs):
    planner = joined_planner(pairs)
    for passes in (1, 2, 3, 4, 7):
        cycles, rest = divmod(passes, 3)
        micro_batches = cycles * planner.starts[-1] + planner.starts[rest]
        assert planner.updates_of(passes) == -(-micro_batches // 3)
    assert planner.pairs_per_pass == PAIRS


def test_partitions_of_large_corpora_are_few():
    assert partitions_for(10_000) == MOST_PARTITIONS
    assert partitions_for(4_500_000) == 3
    assert partitions_for(10**9) == 1


def test_gaps_borders_and_sources_end_consecutive_text():
    lines = np.array([1, 2, 3, 5, 6, 7, 8, 1, 2, 3, 4])
    borders = {"a": [1, 1, 7, 7], "b": [1, 3]}
    continues = consecutive(lines, np.array([0, 7, 11]), borders, ["a", "b"])
    # After 3, line 4 is missing; a new file begins at 7; lines 1 to 3 of b have gaps.
    assert continues.tolist() == [False, True, True, False, True, False, True] + [False] * 3 + [
        True
    ]


SYLLABLES = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
# In letters, because preparation drops lines that differ from held-out ones only in digits.
NAMES = ["".join(SYLLABLES[int(digit)] for digit in f"{number:03}") for number in range(300)]
LINES = [f"ka {name} lo mi." for name in NAMES]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prepared corpus of two files, with an empty line and a duplicate."""
    folder = tmp_path_factory.mktemp("documents")
    first = [*LINES[:100], "", *LINES[100:150]]
    second = [*LINES[150:200], LINES[20], *LINES[200:]]
    for name, lines in (("first", first), ("second", second)):
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{name}.en").write_text(text)
        (folder / f"{name}.de").write_text(text.upper())
    options = [
        "data=files",
        "data.name=documents",
        f"data.train=[{folder}/first,{folder}/second]",
        "data.valid_size=8",
        "data.test_size=8",
        "data.filters.deduplicate=true",
        "tokenizer.kind=bpe",
        "tokenizer.vocabulary_size=300",
        "workers=1",
        f"prepared={folder / 'prepared'}",
    ]
    preprocess(compose("preprocess", options), lambda words: None)
    return folder / "prepared"


def numbers_of(corpus, split: str) -> list[int]:
    """The index of each pair in LINES."""
    tokenizer = PairJoiner(corpus.tokenizer_file, []).tokenizer
    sources, _ = corpus.split(split).rows(np.arange(len(corpus.split(split))))
    return [LINES.index(tokenizer.decode(ids)) for ids in sources.to_pylist()]


def test_consecutive_pairs_are_neighbors_in_the_original_text(documents):
    corpus = open_corpus(documents)
    numbers = numbers_of(corpus, "train")
    continues = continues_text(corpus, ["documents"])
    expected = []
    for before, number in pairwise([-9, *numbers]):
        # 100 follows an empty line, 150 begins a file, 200 follows a dropped duplicate. Numbers
        # are missing where pairs are held out.
        expected.append(number == before + 1 and number not in (100, 150, 200))
    assert continues.tolist() == expected
    assert len(numbers) == 300 - 16


def test_a_corpus_without_recorded_borders_is_refused(documents):
    corpus = open_corpus(documents)
    del corpus.manifest.counts["train"]["borders"]
    with pytest.raises(NMTError, match=r"data\.join needs: prepare it again"):
        continues_text(corpus, ["documents"])


def test_no_line_of_a_block_with_skipped_lines_continues_another(tmp_path):
    lines = [f"{line}\t{line.upper()}\n".encode() for line in LINES[:40]]
    lines[20] = b"\xff\n"
    (tmp_path / "text.tsv").write_bytes(b"".join(lines))
    options = [
        "data=files",
        "data.name=skipped",
        f"data.train={tmp_path}/text.tsv",
        "data.valid_size=2",
        "data.test_size=0",
        "data.errors=skip",
        "tokenizer.kind=bpe",
        "tokenizer.vocabulary_size=300",
        "workers=1",
        f"prepared={tmp_path / 'prepared'}",
    ]
    preprocess(compose("preprocess", options), lambda words: None)
    assert not continues_text(open_corpus(tmp_path / "prepared"), ["skipped"]).any()


Make = Callable[..., UpdateDataModule]


@pytest.fixture(scope="module")
def make(documents: Path) -> Make:
    def make(*options: str) -> UpdateDataModule:
        words = [str(documents), "model=tiny", *options]
        words += ["batching.tokens_per_update=960", "batching.micro_batches=4"]
        return UpdateDataModule(open_corpus(documents), compose("train", words))

    return make


def test_an_update_has_the_joined_text_of_consecutive_pairs(make):
    data = make("data.join=3", "data.join_probability=0.8")
    tokenizer = data.batches.joiner.tokenizer
    counts = Counter[int]()
    for number in range(4, 10):
        batches = list(map(data.batches.batch, data.planner.update(number)))
        tokens = sum(batch.target_indices.numel() for batch in batches)
        # The loss is divided by exactly the number of target tokens.
        assert {batch.size.target_tokens for batch in batches} == {tokens}
        sources = [ids for batch in batches for ids in batch.source.tolist()]
        for ids in sources:
            text = tokenizer.decode([token for token in ids if token > UNK])
            numbers = [NAMES.index(word) for word in text.split()[1::4]]
            assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
            assert text == " ".join(LINES[number] for number in numbers)
            counts[len(numbers)] += 1
    assert set(counts) == {1, 2, 3}


@pytest.mark.slow
@pytest.mark.plugins
def test_joined_updates_do_not_depend_on_devices_or_on_earlier_updates(make):
    options = ("data.join=3", "data.noise.typos=0.5", "data.noise.bpe_dropout=0.1")
    whole = make(*options)
    expected = [whole.batches.batch(planned) for planned in whole.planner.update(41)]
    for devices in (1, 2, 4):
        batches = []
        for rank in range(devices):
            data = make(*options)
            dataset = iter(UpdateDataset(data.batches, data.planner, 41, rank, devices))
            batches += [next(dataset) for _ in range(4 // devices)]
        for batch, other in zip(batches, expected, strict=True):
            assert batch[5:] == other[5:]
            torch.testing.assert_close(batch[:4], other[:4], rtol=0, atol=0)


@pytest.mark.parametrize("options", [["data.join=1"], ["data.join=5", "data.join_probability=0"]])
def test_without_joins_updates_stay_the_same(make, options):
    for planned, other in zip(
        make(*options).planner.update(9), make().planner.update(9), strict=True
    ):
        assert planned.indices.tolist() == other.indices.tolist()
        assert planned.joined is None
        assert planned[1:5] == other[1:5]


@pytest.fixture(scope="module")
def joiner(tmp_path_factory: pytest.TempPathFactory) -> PairJoiner:
    lines = ["Das ist gut. It is good <2de>", "これは本です。それも本です。"]
    tokenizer = train_tokenizer(lines * 9, TokenizerConfig("bpe", 330), tags=["<2ja>"])
    file = tmp_path_factory.mktemp("joiner") / "tokenizer.model"
    tokenizer.save(file)
    plain = DataConfig(name="a", kind="files")
    tagged = DataConfig(name="b", kind="files", tag="<2ja>")
    return PairJoiner(file, [SourceConfig(plain, "a"), SourceConfig(tagged, "b")])


def test_joined_ids_are_those_of_the_joined_text(joiner):
    encode = joiner.tokenizer.encode
    sources = ["It is good.", "Is it?", "Good"]
    pairs = list(
        zip(encode(sources), encode(["これは本です。", "それも本です。", "本"]), strict=True)
    )
    [(source, target), last] = joiner(pairs, np.array([2, 1]), np.array([0, 0]))
    assert [source] == encode(["It is good. Is it?"])
    # No space in Japanese.
    assert [target] == encode(["これは本です。それも本です。"])
    assert last == pairs[2]


def test_a_joined_source_has_its_tag_once(joiner):
    tag = joiner.tokenizer.tag_id("<2ja>")
    bodies = joiner.tokenizer.encode(["It is", "good."])
    pairs = [([tag, *bodies[0]], bodies[0]), ([tag, *bodies[1]], bodies[1])]
    [(source, target)] = joiner(pairs, np.array([2]), np.array([1]))
    assert source == [tag, *bodies[0], *bodies[1]]
    assert target == [*bodies[0], *bodies[1]]
