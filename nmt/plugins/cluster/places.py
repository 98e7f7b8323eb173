"""Files on this machine, or at addresses that fsspec reads, such as s3://BUCKET/NAME."""

import inspect
import io
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import fsspec

from nmt.config import NMTError, one_line
from nmt.files import cannot_write, remove_leftovers, whole_file, write_file
from nmt.text import decompressed, open_bytes, reading

LOCAL = "file://"
PATTERN = frozenset("*?[")
"""Characters that make a name a pattern of several files."""
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci", "r2"})
"""Schemes without folders, where `makedirs` would create the bucket that a wrong name names."""


def is_remote(name: str) -> bool:
    return "://" in name


def plain(name: str) -> str:
    """A name without the scheme of local files, and without a slash at its end."""
    name = name.removeprefix(LOCAL)
    return name.rstrip("/") or "/"


@contextmanager
def accessing(name: str) -> Iterator[None]:
    """Turn errors of a file system into one line."""
    try:
        with remotely():
            yield
    # A scheme that fsspec does not know is a ValueError, and one whose package is missing an
    # ImportError, whose text says what to install.
    except (OSError, ValueError, ImportError) as error:
        raise NMTError(f"{name}: {words_of(error)}") from error


@contextmanager
def remotely() -> Iterator[None]:
    """Turn the errors of a remote file system into OSError."""
    try:
        yield
    except (NMTError, OSError, ValueError, ImportError):
        raise
    # Each of them has its own classes, such as botocore's NoCredentialsError.
    except Exception as error:
        raise OSError(one_line(error) or type(error).__name__) from error


def words_of(error: Exception) -> str:
    """What an error says, on one line."""
    return getattr(error, "strerror", None) or one_line(error) or type(error).__name__


class RemoteFile(io.RawIOBase):
    """A remote file to read, whose errors are OSError, as those of local files."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self.file.seek(offset, whence))

    def tell(self) -> int:
        return int(self.file.tell())

    def readinto(self, buffer: Any) -> int:
        with remotely():
            content = self.file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def readall(self) -> bytes:
        with remotely():
            return bytes(self.file.read())

    def close(self) -> None:
        self.file.close()
        super().close()


def system_of(name: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path in it."""
    scheme, separator, path = name.partition("://")
    with accessing(name):
        if not separator or "::" in name:
            system, path = fsspec.core.url_to_fs(name)
            return system, path
        system = system_at(f"{scheme}://{path.partition('/')[0]}")
        return system, system._strip_protocol(name)


@lru_cache(64)
def system_at(root: str) -> Any:
    """The file system of the addresses that begin with a scheme and a host or bucket.

    fsspec would make a file system, with separate connections, for each thread.
    """
    system, _ = fsspec.core.url_to_fs(root)
    return system


def exists(name: str) -> bool:
    if not is_remote(name):
        return Path(name).exists()
    system, path = system_of(name)
    with accessing(name):
        return bool(system.exists(path))


def size_of(name: str) -> int | None:
    """The size of a file in bytes; None if there is none."""
    try:
        with accessing(name):
            if not is_remote(name):
                return Path(name).stat().st_size
            return int(current_facts(name)["size"])
    except NMTError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise


def current_facts(name: str) -> dict[str, Any]:
    """What a remote file system tells about a file now."""
    system, path = system_of(name)
    # Otherwise it may answer from an earlier list of the folder.
    system.invalidate_cache(path)
    facts: dict[str, Any] = system.info(path)
    return facts


def open_raw(name: str) -> Any:
    """Open a file that can be read at any position, such as a Parquet file."""
    with accessing(name):
        if not is_remote(name):
            return Path(name).open("rb")
        system, path = system_of(name)
        return RemoteFile(system.open(path, "rb"))


def open_content(name: str) -> "io.BufferedReader[Any]":
    """Open a file, whose content is decompressed."""
    if not is_remote(name):
        return open_bytes(name)
    with reading(name):
        return decompressed(io.BufferedReader(open_raw(name)), name)


def read(name: str) -> bytes | None:
    """The content of a file; None if there is none."""
    try:
        if is_remote(name):
            system, path = system_of(name)
            # Unlike `open`, one request.
            with accessing(name):
                return bytes(system.cat_file(path, **options_to_read(system)))
        with open_raw(name) as file, reading(name):
            content: bytes = file.read()
    except NMTError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    return content


def options_to_read(system: Any) -> dict[str, int]:
    """Options that read a small file with one request; s3fs would also ask for its size."""
    method = getattr(system, "_cat_file", system.cat_file)
    is_needed = "max_concurrency" in inspect.signature(method).parameters
    return {"max_concurrency": 1} if is_needed else {}


def write(name: str, content: bytes) -> None:
    """Write a file, which appears as a whole."""
    if not is_remote(name):
        path = Path(name)
        make_folder(path.parent)
        write_file(path, content)
        return
    system, path_there = system_of(name)
    with writing(name):
        make_remote_folder(name, system, path_there)
        system.pipe_file(path_there, content)


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Turn errors of writing a remote file into one line."""
    try:
        with remotely():
            yield
    except (OSError, ValueError) as error:
        raise NMTError(f"cannot write {name} ({words_of(error)})") from error


def make_remote_folder(name: str, system: Any, path: str) -> None:
    """Make the folder of a remote file, unless the file system has none."""
    if name.partition("://")[0] not in OBJECT_STORES:
        system.makedirs(system._parent(path), exist_ok=True)


@contextmanager
def written(name: str) -> Iterator[Path]:
    """A path of this machine to write to; at the end, the file appears under its name.

    A remote file is written here first, because closing a failed upload would publish its
    beginning.
    """
    if not is_remote(name):
        path = Path(name)
        make_folder(path.parent)
        with whole_file(path) as temporary:
            yield temporary
        return
    system, path_there = system_of(name)
    with TemporaryDirectory(prefix="nmt-") as folder:
        local = Path(folder, "content")
        try:
            yield local
        except OSError as error:  # this machine's disk is full
            raise cannot_write(local, error) from error
        with writing(name):
            make_remote_folder(name, system, path_there)
            system.put_file(str(local), path_there)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def remove(name: str) -> None:
    """Remove a file or folder, if it exists."""
    system, path = system_of(name)
    with accessing(name), suppress(FileNotFoundError):
        system.rm(path, recursive=True)


def remove_temporary(folder: str) -> None:
    """Remove the temporary files that a killed command has left in a folder."""
    if not is_remote(folder):
        remove_leftovers(Path(folder))


def remove_temporary_of(names: Iterable[str]) -> None:
    """Remove the temporary files of killed commands that were writing these files.

    Reads each folder once, because a folder may have a file for each of 100,000 inputs.
    """
    patterns = dict[Path, list[str]]()
    for name in names:
        if not is_remote(name):
            path = Path(name)
            patterns.setdefault(path.parent, []).append(re.escape(path.name))
    for folder, names_there in patterns.items():
        remove_leftovers(folder, "|".join(names_there))


def names_in(folder: str) -> Iterator[str]:
    """The names of the files in a folder that are not empty; none if there is no folder."""
    if not is_remote(folder):
        with suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.stat().st_size:
                    yield entry.name
        return
    system, path = system_of(folder)
    with accessing(folder):
        system.invalidate_cache(path)
        files = system.find(path, detail=True)
    for path, facts in files.items():
        if facts.get("size"):
            yield path.rpartition("/")[2]


def files_in(name: str) -> list[str]:
    """The paths of the files below a folder, relative to it, in order; hidden ones are left out."""
    system, root = system_of(name)
    with accessing(name):
        paths = sorted(system.find(root))
    names = [os.path.relpath(path, root) for path in paths]
    return [name for name in names if not is_hidden(name)]


def is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def is_folder(name: str) -> bool:
    if not is_remote(name):
        return Path(name).is_dir()
    system, path = system_of(name)
    with accessing(name):
        return bool(system.isdir(path))


def matching(pattern: str) -> tuple[str, list[str]]:
    """The folder of a pattern's fixed part, and the files that match, relative to it."""
    parts = pattern.split("/")
    first = next(index for index, part in enumerate(parts) if PATTERN.intersection(part))
    folder = "/".join(parts[:first])
    system, path = system_of(pattern)
    with accessing(pattern):
        paths = sorted(path for path in system.glob(path) if system.isfile(path))
    if not folder and not pattern.startswith("/"):
        folder = "."
    _, root = system_of(folder or "/")
    names = [os.path.relpath(path, root) for path in paths]
    return folder or "/", [name for name in names if not is_hidden(name)]
