"""Blocks of lines end at fixed line numbers, wherever a job or a part begins."""

import io

import pytest
from hypothesis import given, strategies as st

from nmt.config import Part
from nmt.translation import Job
from nmt.translation.output import Output
from nmt.translation.parts import slice_of


@given(st.integers(0, 30), st.integers(1, 9), st.integers(0, 12), st.integers(0, 12))
def test_blocks_of_a_resumed_job_end_where_those_of_a_whole_job_end(total, size, before, done):
    """Also if an older nmt stopped within a block."""
    output = Output("out", io.BytesIO())
    output.notes.lines = done
    start = before + done
    job = Job(iter(range(start + 1, total + 1)), output, lambda number: None, before)
    lines = []
    for first, block in job.blocks(size):
        assert first == block[0]
        assert block[-1] == total or block[-1] % size == 0
        assert len({(line - 1) // size for line in block}) == 1
        lines += block
    assert lines == list(range(start + 1, total + 1))


@given(
    lines=st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=40),
    ends_line=st.booleans(),
    count=st.integers(1, 12),
    block=st.integers(2, 9),
)
def test_parts_are_cut_at_blocks(tmp_path_factory, lines, ends_line, count, block):
    content = b"\n".join(lines) + (b"\n" if ends_line else b"")
    path = tmp_path_factory.getbasetemp() / "cut-at-blocks"
    path.write_bytes(content)
    position = 0
    for number in range(1, count + 1):
        cut = slice_of(str(path), Part(number, count), block)
        assert cut.begin == position
        position = cut.end
        is_end = position == len(content)
        assert is_end or content[:position].count(b"\n") % block == 0
        assert is_end or content[position - 1 : position] in (b"", b"\n")
    assert position == len(content)


@pytest.mark.parametrize("block", [1, 2, 3])
def test_an_unfinished_last_line_is_in_one_part(tmp_path, block):
    path = tmp_path / "in"
    path.write_bytes(b"a\nb\nc\nd")
    cuts = [slice_of(str(path), Part(number, 2), block) for number in (1, 2)]
    assert cuts[0].end == cuts[1].begin == {1: 4, 2: 4, 3: 6}[block]
