"""Requests to a slow file system: how many there are, and how many at a time."""

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from nmt.errors import NMTError
from nmt.plugins.cluster import inputs, store
from nmt.plugins.cluster.background import Background, Calls
from tests.plugins.cluster.test_blocks import LINES, bulk, expected, write_lines
from tests.plugins.cluster.this_process import Stopped

__all__ = ["bulk", "expected"]
PAUSE = 0.02


class SlowFiles(MemoryFileSystem):
    """A file system that counts the requests for its content, and takes a while for each."""

    protocol = "slow"
    requests: ClassVar[Counter[str]] = Counter()
    running = 0
    most = 0
    lock = threading.Lock()
    fails = ""
    """A part of the paths that cannot be written or read."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(MemoryFileSystem._strip_protocol(path.removeprefix("slow://")))

    def counted(self, name: str, path: str, *words: Any, **options: Any) -> Any:
        kind = SlowFiles
        with kind.lock:
            kind.requests[name] += 1
            kind.running += 1
            kind.most = max(kind.most, kind.running)
        time.sleep(PAUSE)
        try:
            if kind.fails and kind.fails in path:
                raise OSError("the server is on fire")
            return getattr(super(), name)(path, *words, **options)
        finally:
            with kind.lock:
                kind.running -= 1

    def pipe_file(self, path, *words, **options):
        return self.counted("pipe_file", path, *words, **options)

    def cat_file(self, path, *words, **options):
        return self.counted("cat_file", path, *words, **options)

    def find(self, path, *words, **options):
        return self.counted("find", path, *words, **options)

    def info(self, path, *words, **options):
        facts = super().info(path, *words, **options)
        return {**facts, "ETag": str(facts["created"])} if "created" in facts else facts


@pytest.fixture
def slow():
    fsspec.register_implementation("slow", SlowFiles, clobber=True)
    files = MemoryFileSystem()
    files.pipe_file("/in/a.txt", "".join(f"{line}\n" for line in LINES).encode())
    SlowFiles.requests.clear()
    SlowFiles.most = 0
    SlowFiles.fails = ""
    yield files
    for name in files.ls("/", detail=False):
        files.rm(name, recursive=True)


@pytest.mark.slow
def test_a_new_job_needs_few_requests_and_makes_them_at_the_same_time(bulk, expected, slow):
    bulk("input=slow://in/a.txt", "output=slow://a.de", "ray.lines=2")
    assert slow.cat_file("/a.de").decode().split("\n")[:-1] == expected(LINES)
    assert SlowFiles.requests["pipe_file"] == 22  # 20 blocks, the records of the job and the file
    assert SlowFiles.requests["cat_file"] == 21
    assert SlowFiles.most >= 4


@pytest.mark.slow
def test_a_resumed_job_asks_only_for_stored_blocks(bulk, slow):
    with pytest.raises(Stopped):
        bulk("input=slow://in/a.txt", "output=slow://a.de", "ray.lines=2", blocks=10)
    SlowFiles.requests.clear()
    SlowFiles.most = 0
    [workers] = bulk("input=slow://in/a.txt", "output=slow://a.de", "ray.lines=2")
    assert workers.done == 10
    # The stored blocks, those to join, and the records of the job and of the file, twice.
    assert SlowFiles.requests["cat_file"] == 10 + 20 + 3
    assert SlowFiles.most >= 4


@pytest.mark.slow
def test_an_error_of_a_write_ends_the_job_and_keeps_the_other_blocks(bulk, slow):
    SlowFiles.fails = "blocks/a.txt/00000003"
    with pytest.raises(NMTError, match=r"cannot write .*00000003 \(the server is on fire\)"):
        bulk("input=slow://in/a.txt", "output=slow://a.de", "ray.lines=1")
    SlowFiles.fails = ""
    assert not slow.exists("/a.de")
    stored = len(slow.find("/a.de.blocks/blocks"))
    [workers] = bulk("input=slow://in/a.txt", "output=slow://a.de", "ray.lines=1")
    assert workers.done == 40 - stored


def contents_read(monkeypatch) -> list[str]:
    """The inputs that are read from now on."""
    names: list[str] = []
    opened = inputs.places.open_content

    def noted(name: str) -> Any:
        names.append(name)
        return opened(name)

    monkeypatch.setattr(inputs.places, "open_content", noted)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("place", ["", "slow://"])
def test_an_unchanged_file_is_not_read_again(bulk, slow, monkeypatch, place):
    write_lines("in/a.txt", LINES)
    write_lines("in/b.txt", LINES[:3])
    slow.pipe_file("/in/b.txt", Path("in/b.txt").read_bytes())
    monkeypatch.setattr("nmt.plugins.cluster.versions.SETTLED_NS", 0)
    words = [f"input={place}in", f"output={place}out", "format=text"]
    bulk(*words)
    names = contents_read(monkeypatch)
    assert bulk(*words) == []
    assert names == []
    # The same content, but written again.
    write_lines("in/b.txt", LINES[:3])
    slow.pipe_file("/in/b.txt", Path("in/b.txt").read_bytes())
    assert bulk(*words) == []
    assert names == [f"{place}in/b.txt"]
    assert bulk(*words) == []
    assert names == [f"{place}in/b.txt"]
    write_lines("in/b.txt", ["ka", *LINES[1:3]])
    slow.pipe_file("/in/b.txt", Path("in/b.txt").read_bytes())
    with pytest.raises(NMTError, match=r"in/b\.txt: has changed since"):
        bulk(*words)


def test_a_file_that_has_just_changed_is_read_again(bulk, here, monkeypatch):
    """Another change in the same tick of the clock would not be noticed."""
    write_lines("in/a.txt", LINES[:3])
    bulk("input=in", "output=out", "format=text")
    names = contents_read(monkeypatch)
    assert bulk("input=in", "output=out", "format=text") == []
    assert names == ["in/a.txt"]


def test_calls_are_bounded():
    release = threading.Event()
    calls = Calls(2, 2)
    futures = [calls.submit(release.wait) for _ in range(2)]
    threading.Timer(0.05, release.set).start()
    calls.submit(lambda: None)  # waits for one of them
    assert any(future.done() for future in futures)
    calls.finish()


@pytest.mark.parametrize(("lines", "blocks"), [(1, 16), (2000, 16), (8000, 8), (1_000_000, 1)])
def test_large_blocks_are_read_ahead_one_by_one(lines, blocks):
    taken: list[int] = []

    def numbers():
        for number in range(50):
            taken.append(number)
            yield number

    with Background(lines) as background:
        results = background.ahead(lambda number: number * number, numbers())
        assert next(results) == 0
        assert len(taken) == blocks + 1
        assert list(results) == [number * number for number in range(1, 50)]


def test_the_numbers_of_stored_blocks_leave_out_empty_files(here):
    write_lines("out.txt.blocks/blocks/a/00000001", ["content"])
    write_lines("out.txt.blocks/blocks/a/00000002", [])
    write_lines("out.txt.blocks/blocks/a/.00000003.01234567.nmt-tmp", ["half"])
    file = inputs.InputFile("a", "a", "out.txt", inputs.TEXT)
    assert store.Store("out.txt", {}).numbers(file) == {1}
