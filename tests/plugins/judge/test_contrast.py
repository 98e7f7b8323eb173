"""Contrastive sets: their files, and the interval of a share."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from nmt.errors import NMTError
from nmt.plugins.judge.likelihood import ContrastivePair, Tally, read_contrast, wilson

PAIRS = [ContrastivePair("a b", "x y", "y x", "order"), ContrastivePair("a", "x", "y")]


def written(folder: Path, name: str, *lines: str) -> str:
    content = "".join(f"{line}\n" for line in lines).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return str(folder / name)


def test_both_kinds_of_file_hold_the_same_pairs(tmp_path):
    rows = ["a b\tx y\ty x\torder", "a\tx\ty"]
    records = [json.dumps({"source": p.source, "right": p.right, "wrong": p.wrong}) for p in PAIRS]
    records[0] = json.dumps(vars(PAIRS[0]))
    files = [
        written(tmp_path, "pairs.tsv", *rows),
        written(tmp_path, "headed.tsv", "source\tright\twrong\tcategory", *rows),
        written(tmp_path, "pairs.jsonl.gz", *records),
    ]
    for file in files:
        assert list(read_contrast(file)) == PAIRS


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("x.tsv", "a\tb"),
        ("x.tsv", "a\tb\tc\td\te"),
        ("x.tsv", "a\t \tc"),
        ("x.tsv", ""),
        ("x.jsonl", "[]"),
        ("x.jsonl", "no JSON"),
        ("x.jsonl", '{"source": "a", "right": "b"}'),
        ("x.jsonl", '{"source": "a", "right": "b", "wrong": 3}'),
    ],
)
def test_a_line_that_is_no_pair_is_named(tmp_path, name, line):
    good = "a\tb\tc" if name.endswith("tsv") else '{"source": "a", "right": "b", "wrong": "c"}'
    with pytest.raises(NMTError, match=r"line 2: no contrastive pair; .*source.*wrong"):
        list(read_contrast(written(tmp_path, name, good, line)))


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_ends_of_the_interval_are_shares_that_the_score_test_just_allows(total, part):
    """Wilson's definition: p such that |found - p| is z standard deviations of p."""
    right = round(part * total)
    found = right / total
    low, high = wilson(right, total)
    assert 0 <= low <= found + 1e-12
    assert found - 1e-12 <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            assert (found - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / total, rel=1e-4, abs=1e-9)


def test_the_interval_of_a_textbook():
    """Newcombe 1998, table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29."""
    wanted = {(81, 263): (0.2553, 0.3662), (15, 148): (0.0624, 0.1605), (0, 20): (0, 0.1611), (1, 29): (0.0061, 0.1718)}
    assert {key: tuple(round(end, 4) for end in wilson(*key)) for key in wanted} == wanted


def test_ties_are_wrong():
    tally = Tally("order")
    for right, wrong in ((-1.0, -2.0), (-2.0, -2.0), (-3.0, -2.0), (-1.0, -1.5)):
        tally.add(right, wrong)
    assert (tally.pairs, tally.right, tally.ties, tally.record()["share"]) == (4, 2, 1, 0.5)
    assert str(tally) == " 50.00 % (15.00 to 85.00)  2 of 4, 1 ties  order"
