"""Files and folders are whole, or as they were before."""

import os
from pathlib import Path

import pytest

from nmt.errors import NMTError
from nmt.files import remove_leftovers, whole_file, whole_folder, write_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    write_file(tmp_path / "a", "one")
    write_file(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_text() == "two"
    assert names(tmp_path) == ["a"]


def test_what_fails_leaves_the_file_as_it_was(tmp_path):
    write_file(tmp_path / "a", "one")

    def write_half() -> None:
        with whole_file(tmp_path / "a") as temporary:
            temporary.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(NMTError, match=r"cannot write .*No space"):
        write_half()
    assert (tmp_path / "a").read_text() == "one"
    assert names(tmp_path) == ["a"]


def test_a_link_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "other").write_text("precious")
    (tmp_path / "a").symlink_to("other")
    write_file(tmp_path / "a", "ours")
    assert (tmp_path / "other").read_text() == "precious"
    assert (tmp_path / "a").read_text() == "ours"


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_the_umask_is_respected(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_file(tmp_path / "a", "")
        with whole_folder(tmp_path / "b") as folder:
            (folder / "c").touch(0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~umask
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o777 & ~umask
    assert (tmp_path / "b" / "c").stat().st_mode & 0o777 == 0o666 & ~umask


def test_all_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch):
    """The order that survives a power cut: content, name, and the folder that holds the name."""
    calls, fsync, replace = [], os.fsync, Path.replace

    def recorded_fsync(descriptor):
        calls.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        fsync(descriptor)

    def recorded_replace(self, target):
        calls.append(("rename", str(self)))
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", recorded_fsync)
    monkeypatch.setattr(Path, "replace", recorded_replace)
    write_file(tmp_path / "a", "content")
    (_, temporary) = calls[0]
    assert calls == [("sync", temporary), ("rename", temporary), ("sync", str(tmp_path))]


def test_a_folder_is_replaced_whole(tmp_path):
    for content in ("one", "two"):
        with whole_folder(tmp_path / "a") as folder:
            (folder / content).write_text(content)
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["two"]


def test_what_is_no_folder_is_not_replaced_by_one(tmp_path):
    """To remove a pipe as a folder would wait for ever."""
    os.mkfifo(tmp_path / "a")
    with pytest.raises(NMTError, match="is not a folder"), whole_folder(tmp_path / "a"):
        pytest.fail("the work began")


def test_a_folder_that_is_a_link_is_refused_before_any_work(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "a").symlink_to("other")
    with pytest.raises(NMTError, match="is a link"), whole_folder(tmp_path / "a"):
        pytest.fail("the work began")


def test_leftovers_are_known_by_name_and_links_are_not_followed(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / ".b.0123abcd.nmt-tmp").mkdir()
    (tmp_path / ".b.0123abcd.nmt-tmp" / "file").touch()
    (tmp_path / ".a.0123abcd.nmt-tmp").touch()
    (tmp_path / ".a.0123abce.nmt-tmp").symlink_to("other")
    for other in (".c.0123abcd.nmt-tmp", ".a.tmp", "a", ".a.0123abcd.nmt-tmp.bak"):
        (tmp_path / other).touch()
    remove_leftovers(tmp_path, "a|b")
    assert names(tmp_path) == sorted(
        [".c.0123abcd.nmt-tmp", ".a.tmp", "a", ".a.0123abcd.nmt-tmp.bak", ".a.0123abce.nmt-tmp", "other"]
    )
