"""A corpus in blocks: every line once, with its number; a folder for one translation."""

import bz2
import gzip

import pyarrow.parquet as pq
import pytest

from nmt.errors import NMTError
from nmt.plugins.cluster.blocks import Block, claim, cut, find_files, read_block, write_block
from nmt.translation import Translation

LINES = ["one", "", "drei \u2028 vier", "  ", "f\u00fcnf", "six", "seven"]
TEXT = "\n".join(LINES).encode()
FILES = {
    "a.txt": TEXT + b"\n",
    "crlf.txt": b"\xef\xbb\xbf" + TEXT.replace(b"\n", b"\r\n") + b"\r\n",
    "a.txt.gz": gzip.compress(TEXT),
    "a.txt.bz2": bz2.compress(TEXT),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_blocks_hold_every_line_once_in_order(tmp_path, name, size):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    blocks, _ = cut([path], size)
    assert [block.first for block in blocks] == [*range(1, 8, size)]
    assert sorted(block.name for block in blocks) == [block.name for block in blocks]
    rows = [read_block(block, pytest.fail) for block in blocks]
    assert [len(lines) for lines in rows] == [block.count for block in blocks]
    assert [line for lines in rows for line in lines] == LINES


def test_invalid_utf8_is_reported_with_file_and_line(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a\nb\n\xff\n")
    notices: list[str] = []
    block = cut([tmp_path / "a.txt"], 2)[0][1]
    assert read_block(block, notices.append) == ["\ufffd"]
    assert notices == ["a.txt: line 3: invalid UTF-8 at byte 1, replaced; more such lines are not named"]


def test_input_is_a_file_a_folder_or_a_pattern(tmp_path):
    for name in ("b.txt", "a.txt", "c.parquet", ".hidden", "_translation.json", "odd[1].txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    for pattern, names in (
        ("", ["a.txt", "b.txt", "c.parquet", "odd[1].txt"]),
        ("*.txt", ["a.txt", "b.txt", "odd[1].txt"]),
        ("odd[1].txt", ["odd[1].txt"]),
    ):
        assert [path.name for path in find_files(str(tmp_path / pattern))] == names
    for nothing in ("folder", "*.gz", "missing"):
        with pytest.raises(NMTError, match="no file is there"):
            find_files(str(tmp_path / nothing))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.parquet", b"", "Parquet, but lines of text"),
        ("a.gz", b"damaged", r"a.gz: cannot be read"),
    ],
)
def test_files_without_texts_are_refused(tmp_path, name, content, problem):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NMTError, match=problem):
        cut([tmp_path / name], 5)


def test_what_is_written_can_be_read_and_leaves_nothing_else(tmp_path):
    block = Block("/corpus/a.txt", 3, 11, 2, 100)
    write_block(tmp_path, block, ["a", ""], [Translation("x", -0.5, -1.0), Translation("", 0.0, 0.0)], own=[1, 2])
    assert [path.name for path in tmp_path.iterdir()] == [block.name]
    first, second = pq.read_table(tmp_path).to_pylist()
    same = {"file": "/corpus/a.txt"}
    assert first == same | {
        **{"line": 11, "source": "a", "translation": "x"},
        **{"score": -0.5, "log_probability": -1.0, "own": 1},
    }
    assert second == same | {
        **{"line": 12, "source": "", "translation": ""},
        **{"score": 0.0, "log_probability": 0.0, "own": 2},
    }


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
    with pytest.raises(NMTError, match="holds other files"):
        claim(tmp_path, {"split": True})
