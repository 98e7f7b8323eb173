"""Facts about large files, which hold until the file changes."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from nmt import files
from nmt.data import IDS_SCHEMA, PreparedSplit
from nmt.errors import NMTError
from nmt.files import facts
from nmt.preparation import arrow_writer


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """The folder of the facts, which are remembered even for small files that just changed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(facts, "LARGE_BYTES", 1)
    monkeypatch.setattr(facts, "SETTLED_NS", 0)
    return tmp_path / "cache" / "nmt" / "facts"


class Examiner:
    """Answers with the content of a file, and counts how often it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.times = 0

    def examine(self) -> str:
        self.times += 1
        return self.path.read_text()

    def answer(self, question: str = "content") -> str:
        return files.remembered(self.path, question, self.examine)


@pytest.fixture
def examiner(tmp_path) -> Examiner:
    path = tmp_path / "file"
    path.write_text("one two")
    return Examiner(path)


def test_an_unchanged_file_is_examined_once(cache, examiner):
    assert [examiner.answer() for _ in range(3)] == ["one two"] * 3
    assert examiner.times == 1
    assert examiner.answer("another question") == "one two"
    assert examiner.times == 2
    (fact, _) = cache.glob("*.fact")
    assert fact.stat().st_mode & 0o777 == 0o600


def wait_for_the_clock(path: Path) -> None:
    """Wait until a change of a file has another time than the last one."""
    clock = path.with_name("clock")
    clock.touch()
    while clock.stat().st_ctime_ns <= path.stat().st_ctime_ns:
        clock.touch()


def edit_with_the_same_times(path: Path) -> None:
    status = path.stat()
    path.write_text("two one")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("one two")
    other.replace(path)


@pytest.mark.parametrize("change", [edit_with_the_same_times, replace, Path.touch])
def test_a_changed_file_is_examined_again(cache, examiner, change):
    examiner.answer()
    wait_for_the_clock(examiner.path)
    change(examiner.path)
    assert examiner.answer() == examiner.path.read_text()
    assert examiner.times == 2


def flip(fact: Path) -> None:
    content = fact.read_bytes()
    fact.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def exchange(fact: Path) -> None:
    """Store the fact of another file, whose own checksum is correct."""
    fact.write_bytes(facts.content_of(fact.with_name("other.fact"), "one two"))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda fact: fact.write_bytes(b""),
    "not text": lambda fact: fact.write_bytes(b"a b \xff"),
    "other answer": flip,
    "other file": exchange,
    "writable by others": lambda fact: fact.chmod(0o622),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_fact_is_replaced(cache, examiner, damage):
    examiner.answer()
    (fact,) = cache.glob("*.fact")
    damage(fact)
    for _ in range(2):
        assert examiner.answer() == "one two"
    assert examiner.times == 2


def test_facts_of_another_user_are_not_used(cache, examiner, monkeypatch):
    examiner.answer()
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    examiner.answer()
    assert examiner.times == 2


def test_small_files_leave_no_fact(cache, examiner, monkeypatch):
    monkeypatch.setattr(facts, "LARGE_BYTES", 8)
    examiner.answer()
    examiner.answer()
    assert (examiner.times, cache.exists()) == (2, False)


def test_what_may_still_change_is_not_remembered(cache, examiner, monkeypatch):
    def change_meanwhile() -> str:
        answer = examiner.examine()
        replace(examiner.path)
        return answer

    files.remembered(examiner.path, "content", change_meanwhile)
    monkeypatch.setattr(facts, "SETTLED_NS", 10**12)
    for _ in range(2):
        examiner.answer()
    assert examiner.times == 3
    assert not list(cache.glob("*.fact"))


def test_without_a_cache_folder_files_are_examined(cache, examiner):
    cache.parent.parent.write_text("a file")
    assert [examiner.answer() for _ in range(2)] == ["one two"] * 2
    assert examiner.times == 2


def test_a_hash_is_that_of_the_file(cache, examiner):
    for _ in range(2):
        assert files.remembered_sha256(examiner.path) == files.sha256(examiner.path)
    link = examiner.path.with_name("link")
    link.symlink_to(examiner.path)
    with pytest.raises(NMTError, match="a link, which is not followed"):
        files.remembered_sha256(link)


EXAMINE = """
import sys
from pathlib import Path
from nmt.files import facts

facts.LARGE_BYTES = 1
facts.SETTLED_NS = 0

def examine():
    print("examined", flush=True)
    return "answer"

print("ready", flush=True)
print(facts.remembered(Path(sys.argv[1]), "content", examine), flush=True)
"""


def test_one_of_several_processes_examines_a_file(cache, examiner):
    examiner.answer()
    (fact,) = cache.glob("*.fact")
    fact.unlink()
    with fact.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        processes = []
        for _ in range(2):
            command = [sys.executable, "-c", EXAMINE, str(examiner.path)]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert sorted(outputs) == ["answer\n", "examined\nanswer\n"]


def write_split(folder: Path, token: int) -> None:
    ids = [[token] * 5]
    with arrow_writer(folder / "pairs.arrow", IDS_SCHEMA) as write:
        columns = [ids, ids, [6], [6], np.arange(1)]
        for batch in pa.table(columns, schema=IDS_SCHEMA).to_batches():
            write(batch)


def test_pairs_are_checked_until_they_are_valid_and_after_each_change(cache, tmp_path, monkeypatch):
    examined = []
    examine = PreparedSplit.examine_file

    def counted(split: PreparedSplit, number: int, *sizes: int) -> None:
        examined.append(sizes)
        examine(split, number, *sizes)

    monkeypatch.setattr(PreparedSplit, "examine_file", counted)
    write_split(tmp_path, token=90)
    for _ in range(2):
        with pytest.raises(NMTError, match="outside the vocabulary"):
            PreparedSplit(tmp_path).check((90, 91))
        PreparedSplit(tmp_path).check((91, 91))
    assert examined == [(90, 91), (91, 91), (90, 91)]
    status = (tmp_path / "pairs.arrow").stat()
    write_split(tmp_path, token=91)
    os.utime(tmp_path / "pairs.arrow", ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(NMTError, match="outside the vocabulary"):
        PreparedSplit(tmp_path).check((91, 91))
