"""The order of a large corpus's pairs, which the processes of a machine share in a file."""

import fcntl
import mmap
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from nmt.config import BatchingConfig
from nmt.data import BatchPlanner, sharing
from nmt.data.grouping import Groups, group_by_lengths
from nmt.data.lengths import GrownLengths
from nmt.data.mixing import Mixture
from nmt.data.sharing import MappedOrder, key_of, shared_groups
from nmt.errors import NMTError
from nmt.files import facts

PAIRS = 4000
BUDGET = 500
DAY = 86_400


def random_lengths(seed: int, pairs: int = PAIRS) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    source = random.lognormal(2.5, 0.7, pairs).clip(1, 120)
    target = (source * random.lognormal(0, 0.3, pairs)).clip(1, 120)
    return source.astype(np.int32) + 1, target.astype(np.int32) + 1


SOURCES, TARGETS = random_lengths(1)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The folder of the orders, which even small corpora share."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sharing, "SHARED_PAIRS", 1)
    return tmp_path / "nmt" / "orders"


@pytest.fixture
def path(folder) -> Path:
    """The file for SOURCES and TARGETS."""
    return folder / f"{key_of(SOURCES, TARGETS, BUDGET).hex()}.order"


def is_shared(groups: Groups) -> bool:
    return isinstance(groups.order, MappedOrder)


def check_equal(groups: Groups, expected: Groups) -> None:
    for actual, array in zip(groups, expected, strict=True):
        assert actual[:].dtype == array.dtype
        assert np.array_equal(actual[:], array)


def check_order() -> Groups:
    """Group SOURCES and TARGETS in a file, and compare with groups in memory."""
    groups, problem = shared_groups(SOURCES, TARGETS, BUDGET)
    check_equal(groups, group_by_lengths(SOURCES, TARGETS, BUDGET))
    assert is_shared(groups) == (problem == "")
    return groups


@pytest.mark.parametrize("pairs", [1, 2, 127, 128, 3000, 32_767, 32_768, 40_000])
def test_a_shared_order_equals_one_in_memory(folder, pairs, monkeypatch):
    # Several blocks, the last of which is not full.
    monkeypatch.setattr("nmt.data.grouping.BLOCK_PAIRS", 7000)
    source, target = random_lengths(pairs, pairs)
    bounds = np.array([0, pairs // 3, pairs])
    grown = [GrownLengths(side, bounds, np.array([1.0, 1.15])) for side in (source, target)]
    for one, other in ((source, target), grown):
        expected = group_by_lengths(one, other, BUDGET)
        for _ in ("written", "found"):
            groups, problem = shared_groups(one, other, BUDGET)
            assert problem == ""
            assert is_shared(groups)
            check_equal(groups, expected)


@pytest.mark.parametrize("growth", [1.0, 1.2])
def test_updates_from_a_shared_order_equal_those_from_memory(folder, growth, monkeypatch):
    bounds = np.array([0, 500, 1003, PAIRS])
    mixture = Mixture(bounds, np.array([1, 2.5, 1]), np.array([1, growth, 1]))

    def planner() -> BatchPlanner:
        return BatchPlanner(SOURCES, TARGETS, BatchingConfig(1200, 2), 1, mixture=mixture)

    shared = planner()
    assert is_shared(shared.groups)
    monkeypatch.setattr(sharing, "SHARED_PAIRS", PAIRS + 1)
    in_memory = planner()
    assert not is_shared(in_memory.groups)
    received = pickle.loads(pickle.dumps(shared))  # as a worker process receives it
    for number in (0, 1, 50, 1000):
        expected = in_memory.update(number)
        for actual in (shared.update(number), received.update(number)):
            for one, other in zip(actual, expected, strict=True):
                assert one.indices.tolist() == other.indices.tolist()
                assert one[1:] == other[1:]


def test_a_small_corpus_leaves_no_file(folder, monkeypatch):
    monkeypatch.setattr(sharing, "SHARED_PAIRS", PAIRS + 1)
    groups, problem = shared_groups(SOURCES, TARGETS, BUDGET)
    assert (is_shared(groups), problem, folder.exists()) == (False, "", False)


def test_a_resumed_run_finds_the_file(path):
    groups = check_order()
    status = path.stat()
    assert status.st_mode & 0o777 == 0o600
    os.utime(path, (1, 1))
    check_order()
    assert path.stat().st_ino == status.st_ino
    assert path.stat().st_mtime >= status.st_mtime - 1  # its last use
    assert len(pickle.dumps(groups.order)) < 500


def test_whatever_decides_the_order_decides_the_name():
    lengths = SOURCES.copy()
    lengths[-1] += 1
    keys = {
        key_of(SOURCES, TARGETS, BUDGET),
        key_of(SOURCES, TARGETS, BUDGET + 1),
        key_of(TARGETS, SOURCES, BUDGET),
        key_of(lengths, TARGETS, BUDGET),
        key_of(SOURCES, lengths, BUDGET),
        key_of(SOURCES[:-1], TARGETS[:-1], BUDGET),
    }
    assert len(keys) == 6
    assert key_of(SOURCES.astype(np.int64), TARGETS, BUDGET) in keys


PLAN = """
import sys
from nmt.data import sharing
from tests.core.test_sharing import check_order, is_shared

write = sharing.write_groups
def reported(*arguments):
    print("wrote", flush=True)
    write(*arguments)

sharing.SHARED_PAIRS = 1
sharing.write_groups = reported
print("ready", flush=True)
assert is_shared(check_order())
print("shared", flush=True)
"""


def test_one_of_several_processes_writes_the_file(path):
    path.parent.mkdir(mode=0o700, parents=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        processes = []
        for _ in range(2):
            command = [sys.executable, "-c", PLAN]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert sorted(outputs) == ["shared\n", "wrote\nshared\n"]
    assert [file.name for file in path.parent.glob("*.order")] == [path.name]


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def flip(place: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[place] ^= 1
        path.write_bytes(content)

    return change


def wait_for_the_clock(path: Path) -> None:
    """Wait until a change of a file has another time than the last one."""
    clock = path.with_name("clock")
    clock.touch()
    while clock.stat().st_ctime_ns <= path.stat().st_ctime_ns:
        clock.touch()
    clock.unlink()


def replace_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES = {
    "missing": Path.unlink,
    "empty": lambda path: os.truncate(path, 0),
    "shorter": truncate,
    "other format": flip(0),
    "other checksum": flip(16),
    "other key": flip(48),
    "other number of pairs": flip(80),
    "other groups": flip(100),
    "other pairs": flip(-1),
    "writable by others": lambda path: path.chmod(0o620),
    "link": replace_by_link,
    "pipe": replace_by_pipe,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_replaced(path, damage):
    groups = check_order()
    content = path.read_bytes()
    damage(path)
    with pytest.raises(NMTError, match="was removed or changed: start the command again"):
        MappedOrder.open(path, key_of(SOURCES, TARGETS, BUDGET))
    assert is_shared(check_order())
    assert path.read_bytes() == content
    assert not path.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    if damage in (Path.unlink, replace_by_pipe):
        # The other damages change the mapped file itself.
        check_equal(groups, group_by_lengths(SOURCES, TARGETS, BUDGET))


@pytest.mark.parametrize("damage", [flip(-1), flip(0), truncate], ids=["pairs", "head", "size"])
def test_an_unchanged_order_is_verified_once(path, damage, monkeypatch):
    monkeypatch.setattr(facts, "SETTLED_NS", 0)
    verified = []
    checksum_of = sharing.checksum_of

    def counted(content: mmap.mmap) -> bytes:
        verified.append(len(content))
        return checksum_of(content)

    monkeypatch.setattr(sharing, "checksum_of", counted)
    check_order()
    # Once for the file's header, and once when the file is read for the first time.
    assert len(verified) == 2
    for _ in range(2):
        check_order()
    assert len(verified) == 2
    content = path.read_bytes()
    wait_for_the_clock(path)
    damage(path)
    check_order()
    assert path.read_bytes() == content
    assert len(verified) == 5


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@needs_root
def test_a_file_of_another_user_is_replaced(path):
    check_order()
    os.chown(path, 12_345, 12_345)
    assert is_shared(check_order())
    assert path.stat().st_uid == 0


@needs_root
def test_a_folder_of_another_user_is_not_used(path):
    check_order()
    os.chown(path.parent, 12_345, 12_345)
    assert not is_shared(check_order())


def test_a_folder_that_others_may_write_to_is_not_used(path):
    check_order()
    path.parent.chmod(0o770)
    groups, problem = shared_groups(SOURCES, TARGETS, BUDGET)
    assert not is_shared(groups)
    assert problem == f"other users may write to {path.parent}: set XDG_CACHE_HOME"


def test_without_a_cache_folder_the_order_is_in_memory(folder, tmp_path):
    (tmp_path / "nmt").write_text("a file")
    groups, problem = shared_groups(SOURCES, TARGETS, BUDGET)
    check_equal(groups, group_by_lengths(SOURCES, TARGETS, BUDGET))
    assert problem.startswith(f"cannot write {folder} (")


def test_without_a_home_folder_the_order_is_in_memory(monkeypatch):
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sharing, "SHARED_PAIRS", 1)
    monkeypatch.setattr(Path, "home", fail)
    _, problem = shared_groups(SOURCES, TARGETS, BUDGET)
    assert problem.endswith("set XDG_CACHE_HOME")


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Fail to write larger files, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("size", [0, 100, 3000])
def test_on_a_full_disk_the_order_is_in_memory(path, size):
    with largest_file(size):
        groups, problem = shared_groups(SOURCES, TARGETS, BUDGET)
    check_equal(groups, group_by_lengths(SOURCES, TARGETS, BUDGET))
    assert problem.startswith(f"cannot write {path} (")
    # Nothing but the lock is left, and the next process can write the file.
    assert [file.suffix for file in path.parent.iterdir()] == [".lock"]
    assert is_shared(check_order())


def test_files_that_no_process_uses_are_removed(path):
    groups = check_order()
    old = path.stat().st_mtime - 8 * DAY
    mapped = path.with_name("a.order")
    path.rename(mapped)
    names = ["b.order", "b.lock", ".c.order.0123abcd.nmt-tmp", ".d.order.0123abcd.nmt-tmp"]
    for name in names:
        path.with_name(name).touch()
    for name in ("a.order", "b.order", "b.lock"):
        os.utime(path.with_name(name), (old, old))
    path.with_name("e.order").touch()
    with path.with_name(names[-1]).open() as being_written:
        fcntl.flock(being_written, fcntl.LOCK_EX)
        check_order()
    kept = ["a.order", "e.order", names[-1], path.name, path.with_suffix(".lock").name]
    assert {file.name for file in path.parent.iterdir()} == set(kept)
    # Without the mapping, there is no lock.
    del groups
    path.unlink()
    check_order()
    assert not mapped.exists()
