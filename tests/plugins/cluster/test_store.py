"""Finished blocks, and the errors of the file systems that hold them."""

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from nmt.errors import NMTError
from nmt.plugins.cluster import places
from nmt.plugins.cluster.contents import Content
from nmt.plugins.cluster.inputs import TEXT, InputFile
from nmt.plugins.cluster.store import Store

FILE = InputFile("in.txt", "in.txt", "out.txt", TEXT)


def store_with_block(model: str, line: bytes) -> Store:
    store = Store("out.txt", {"model": model})
    store.add(FILE, Content(0, 1, 1, "digest", [line]), line, {})
    return store


def test_a_block_of_another_job_is_not_joined(here):
    """Remote file systems have no locks, so two commands may write at the same time."""
    store = store_with_block("one", b"eins\n")
    store_with_block("two", b"zwei\n")
    with pytest.raises(NMTError, match="another command has written to it at the same time"):
        list(store.payloads(FILE, 1, "any"))


def test_a_block_of_another_input_is_not_joined(here):
    store = store_with_block("one", b"eins\n")
    with pytest.raises(NMTError, match="another command has written to it at the same time"):
        list(store.payloads(FILE, 1, "another digest"))


class StrangeError(Exception):
    """An error that is no OSError, such as those of botocore."""


class StrangeFiles(MemoryFileSystem):
    """A file system without credentials."""

    protocol = "strange"

    def info(self, path, *words, **options):
        raise StrangeError("no\ncredentials")

    pipe_file = cat_file = find = info


@pytest.fixture
def strange():
    fsspec.register_implementation("strange", StrangeFiles, clobber=True)


@pytest.mark.parametrize(
    "access",
    [
        lambda name: places.size_of(name),
        lambda name: places.read(name),
        lambda name: places.write(name, b"content"),
        lambda name: places.files_in(name),
    ],
)
def test_any_error_of_a_remote_file_system_is_one_line(strange, access):
    with pytest.raises(NMTError, match=r"strange://folder/a\b.*no credentials"):
        access("strange://folder/a")


def test_an_error_while_reading_is_an_error_of_the_file():
    class Broken:
        def read(self, size: int) -> bytes:
            raise StrangeError("gone")

        def close(self) -> None:
            pass

    with pytest.raises(OSError, match="gone"):
        places.RemoteFile(Broken()).read(10)
