"""A corpus in blocks: every line once, with its number; a folder for one translation."""

import bz2
import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.errors import NMTError
from nmt.plugins.cluster.blocks import Block, claim, cut, find_files, read_block, write_block
from nmt.translation import Translation

LINES = ["one", "", "drei \u2028 vier", "  ", "f\u00fcnf", "six", "seven"]
TEXT = "\n".join(LINES).encode()


@pytest.fixture(params=["plain", "crlf and bom", "gz", "bz2", "parquet"])
def file(request, tmp_path) -> Path:
    """A file of LINES."""
    name = {"gz": "a.txt.gz", "bz2": "a.txt.bz2", "parquet": "a.parquet"}.get(request.param, "a.txt")
    path = tmp_path / name
    if request.param == "parquet":
        pq.write_table(pa.table({"source": LINES, "other": range(7)}), path, row_group_size=3)
    else:
        crlf = b"\xef\xbb\xbf" + TEXT.replace(b"\n", b"\r\n") + b"\r\n"
        content = {"gz": gzip.compress(TEXT), "bz2": bz2.compress(TEXT), "crlf and bom": crlf}
        path.write_bytes(content.get(request.param, TEXT + b"\n"))
    return path


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
def test_blocks_hold_every_line_once_in_order(file, size):
    blocks = cut([file], size, "source")[0]
    assert all(1 <= block.count <= size for block in blocks)
    assert [block.first for block in blocks] == [*range(1, 8, size)]
    read = [read_block(block, "source", pytest.fail) for block in blocks]
    assert [len(lines) for lines in read] == [block.count for block in blocks]
    assert [line for lines in read for line in lines] == LINES


def test_names_of_blocks_are_in_the_order_of_the_input(tmp_path):
    for name in "abc":
        (tmp_path / name).write_text("line\n" * 25)
    names = [block.name for block in cut(find_files(str(tmp_path)), 2, "source")[0]]
    assert len(names) == 39
    assert names == sorted(set(names))


def test_a_missing_text_is_an_empty_one(tmp_path):
    pq.write_table(pa.table({"source": ["a", None, "b"]}), tmp_path / "a.parquet")
    [block], _ = cut([tmp_path / "a.parquet"], 5, "source")
    assert read_block(block, "source", pytest.fail) == ["a", "", "b"]


def test_invalid_utf8_is_told_with_file_and_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a\nb\n\xff\n")
    told: list[str] = []
    block = cut([tmp_path / "a.txt"], 2, "source")[0][1]
    assert read_block(block, "source", told.append) == ["\ufffd"]
    assert told == ["a.txt: line 3: invalid UTF-8 at byte 1, replaced"]


def test_input_is_a_file_a_folder_or_a_pattern(tmp_path):
    for name in ("b.txt", "a.txt", "c.parquet", ".hidden", "_translation.json", "odd[1].txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()

    def found(pattern: str) -> list[str]:
        return [path.name for path in find_files(str(tmp_path / pattern))]

    assert found("") == ["a.txt", "b.txt", "c.parquet", "odd[1].txt"]
    assert found("*.txt") == ["a.txt", "b.txt", "odd[1].txt"]
    assert found("odd[1].txt") == ["odd[1].txt"]
    for nothing in ("folder", "*.gz", "missing"):
        with pytest.raises(NMTError, match="no file is there"):
            found(nothing)


@pytest.mark.parametrize(
    ("table", "named"),
    [({"text": ["a"]}, "no column source; pass ray.column=NAME, there are text"), ({"source": [1]}, "no text but int")],
)
def test_parquet_without_texts_is_refused(tmp_path, table, named):
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    with pytest.raises(NMTError, match=named):
        cut([tmp_path / "a.parquet"], 5, "source")


@pytest.mark.parametrize("name", ["a.parquet", "a.gz"])
def test_a_damaged_file_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(NMTError, match=rf"{name}: cannot be read"):
        cut([tmp_path / name], 5, "source")


def test_what_is_written_can_be_read_and_leaves_nothing_else(tmp_path):
    block = Block("/corpus/a.txt", 3, 11, 2, 100)
    write_block(tmp_path, block, ["a", ""], [Translation("x", -0.5, -1.0), Translation("", 0.0, 0.0)])
    assert [path.name for path in tmp_path.iterdir()] == [block.name]
    assert pq.read_table(tmp_path).to_pylist() == [
        {"file": "/corpus/a.txt", "line": 11, "source": "a", "translation": "x", "score": -0.5, "log_probability": -1},
        {"file": "/corpus/a.txt", "line": 12, "source": "", "translation": "", "score": 0.0, "log_probability": 0.0},
    ]


def test_a_folder_is_for_one_translation(tmp_path):
    folder, description = tmp_path / "new" / "folder", {"input": {"a": "1"}, "split": True}
    claim(folder, description)
    (folder / "000000-000000000001.parquet").touch()
    (folder / ".000000-000000000002.parquet.0123abcd.nmt-tmp").touch()
    claim(folder, description)
    assert {path.name for path in folder.iterdir()} == {"_translation.json", "000000-000000000001.parquet"}
    for other, named in (({"input": {"a": "2"}}, "input"), ({"split": False}, "split")):
        with pytest.raises(NMTError, match=f"other {named}: name another folder"):
            claim(folder, {**description, **other})


def test_a_folder_of_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(NMTError, match="holds other files"):
        claim(tmp_path, {"split": True})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_content_of_files_identifies_a_corpus(tmp_path):
    path = tmp_path / "a.txt"
    found = set()
    for content in ("a\nb\n", "a\nc\n", "a\nb\n"):
        path.write_text(content)
        assert cut([path], 1, "source")[1] == cut([path], 2, "source")[1]
        found.add(cut([path], 1, "source")[1][str(path)])
    assert len(found) == 2
