"""The file in which `nmt serve` collects suggestions, as its translation memory."""

import os

import pytest

pytest.importorskip("starlette")
from nmt.plugins.memory import files
from nmt.plugins.memory.memory import Memories, Memory
from nmt.translation import Direction
from tests.plugins.serve.serving import as_pairs, serving

DIRECTION = Direction("en", "de")
TIME = "2026-01-02T03:04:05Z"


@pytest.mark.slow
def test_suggestions_count_at_once(word_model, tmp_path):
    path = tmp_path / "new.tsv"
    models = as_pairs(word_model, tmp_path, "en>de", "de>en")
    with serving(*models, f"suggestions={path}", f"memory={path}") as server:
        assert path.read_bytes() == b""
        machine = server.translated("so tu")
        fields = {"q": "so tu\nva we", "s": "eins\nzwei", "source": "en", "target": "de"}
        assert server.ask("/suggest", fields) == (200, {"success": True})
        assert server.translated("so tu\nva we") == "eins\nzwei"
        # Only in the direction of the suggestion.
        status, answer = server.ask("/translate", {"q": "so tu", "source": "de", "target": "en"})
        assert (status, answer["translatedText"]) == (200, machine)
        fields = {"q": "so tu", "s": "drei", "source": "en", "target": "de"}
        assert server.ask("/suggest", fields) == (200, {"success": True})
        assert server.translated("so tu") == "drei"
        # A suggestion that the memory cannot use is collected, and the server logs why.
        fields = {"q": "so %s tu", "s": "ohne", "source": "en", "target": "de"}
        assert server.ask("/suggest", fields) == (200, {"success": True})
        assert server.translated("so %s tu") != "ohne"
        assert any("'ohne': has other placeholders than its text" in line for line in server.log)
        # Without its file, the server keeps the memory, and says so once.
        path.unlink()
        assert server.translated("so tu") == "drei"
        assert server.translated("so tu") == "drei"
        kept = [line for line in server.log if "keeps the memory" in line and "no such" in line]
        assert len(kept) == 1


def test_rows_are_read_in_their_direction(tmp_path):
    path = tmp_path / "a.tsv"
    rows = [
        f"one\teins\ten\tde\t{TIME}\n",
        f"zwei\ttwo\tde\ten\t{TIME}\n",
        f"three\tdrei\teng_Latn\tdeu\t{TIME}\n",
        "four\tvier\n",
        f"five\tfünf\ten\tde\t{TIME[:-3]}\n",
        f"six\tsechs\ten\tde\t{TIME}",
    ]
    path.write_text("".join(rows))
    memory = files.load_memory([str(path)], DIRECTION, 0.75)
    sources = ["one", "zwei", "three", "four", "five", "six"]
    entries = [memory.exact(source) for source in sources]
    targets = [entry and entry.target for entry in entries]
    assert targets == ["eins", None, "drei", "vier", None, "sechs"]
    assert files.names_languages(str(path), DIRECTION)


def test_only_changed_files_are_read_again(tmp_path):
    large = tmp_path / "large.tsv"
    small = tmp_path / "small.tsv"
    large.write_text("one\teins\n")
    small.write_text("two\tzwei\n")
    entries = [str(large), str(small)]
    before = files.load_memory(entries, DIRECTION, 0.75).memories
    small.write_text("one\tneu\n")
    os.utime(small, (1, 1))
    after = files.load_memory(entries, DIRECTION, 0.75)
    assert after.memories[0] is before[0]
    assert after.memories[1] is not before[1]
    assert after.exact("one").target == "neu"


def test_several_memories_are_as_one_with_their_entries_in_order():
    first = [("a b c d", "1"), ("a b c e", "2"), ("a b c f", "3"), ("x", "4")]
    second = [("a b c g", "5"), ("a b c e", "6"), ("x", "7")]
    memories = Memories([Memory(first, 0.5), Memory(second, 0.5)])
    whole = Memory([*first, *second], 0.5)
    for text in ("a b c h", "a b c e", "a b c g", "a b", "x", "y"):
        assert memories.similar(text) == whole.similar(text)
        assert memories.exact(text) == whole.exact(text)
