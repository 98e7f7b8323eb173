"""Files on this machine, or at addresses that fsspec reads, such as s3://BUCKET/NAME."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
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
        yield
    # A scheme that fsspec does not know is a ValueError, and one whose package is missing an
    # ImportError, whose text says what to install.
    except (OSError, ValueError, ImportError) as error:
        raise NMTError(f"{name}: {getattr(error, 'strerror', None) or one_line(error)}") from error


def system_of(name: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path in it."""
    with accessing(name):
        system, path = fsspec.core.url_to_fs(name)
    return system, path


def exists(name: str) -> bool:
    if not is_remote(name):
        return Path(name).exists()
    system, path = system_of(name)
    with accessing(name):
        return bool(system.exists(path))


def size_of(name: str) -> int:
    """The size of a file in bytes."""
    with accessing(name):
        if not is_remote(name):
            return Path(name).stat().st_size
        system, path = system_of(name)
        return int(system.size(path))


def open_raw(name: str) -> Any:
    """Open a file that can be read at any position, such as a Parquet file."""
    with accessing(name):
        if not is_remote(name):
            return Path(name).open("rb")
        system, path = system_of(name)
        return system.open(path, "rb")


def open_content(name: str) -> "io.BufferedReader[Any]":
    """Open a file, whose content is decompressed."""
    if not is_remote(name):
        return open_bytes(name)
    with reading(name):
        return decompressed(io.BufferedReader(open_raw(name)), name)


def read(name: str) -> bytes | None:
    """The content of a file; None if there is none."""
    try:
        with open_raw(name) as file, reading(name):
            content: bytes = file.read()
    except NMTError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    return content


def write(name: str, content: bytes) -> None:
    """Write a file, which appears as a whole."""
    if not is_remote(name):
        path = Path(name)
        make_folder(path.parent)
        write_file(path, content)
        return
    system, path_there = system_of(name)
    try:
        system.makedirs(system._parent(path_there), exist_ok=True)
        system.pipe_file(path_there, content)
    except OSError as error:
        raise cannot_write(Path(name), error) from error


@contextmanager
def written(name: str) -> Iterator[Path]:
    """A path of this machine to write to; at the end, the file appears under its name.

    A remote file is written here first, because closing a failed upload would publish its
    beginning.
    """
    if not is_remote(name):
        path = Path(name)
        make_folder(path.parent)
        # Of a killed job; the job that holds the lock is the only one that writes the file.
        remove_leftovers(path.parent, re.escape(path.name))
        with whole_file(path) as temporary:
            yield temporary
        return
    system, path_there = system_of(name)
    with TemporaryDirectory(prefix="nmt-") as folder:
        local = Path(folder, "content")
        try:
            yield local
            system.makedirs(system._parent(path_there), exist_ok=True)
            system.put_file(str(local), path_there)
        except OSError as error:
            raise cannot_write(Path(name), error) from error


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def remove(name: str) -> None:
    """Remove a file or folder, if it exists."""
    if not exists(name):
        return
    system, path = system_of(name)
    with accessing(name):
        system.rm(path, recursive=True)


def remove_temporary(folder: str) -> None:
    """Remove the temporary files that a killed command has left in a folder."""
    if not is_remote(folder):
        remove_leftovers(Path(folder))


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
