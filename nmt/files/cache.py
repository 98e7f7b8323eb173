"""Files in the cache folder that the processes of a machine share and that no one else can change.

Processes that need the same file make it in turn. A file is used only if it belongs to the user and
no one else may write to it. On a file system without locks, two processes may do the same work, and
nothing is removed.
"""

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path

from nmt.errors import NMTError
from nmt.files.reading import open_descriptor
from nmt.files.writing import TEMPORARY, cache_folder, cannot_write

LOCK = ".lock"

UNUSED_SECONDS = 7 * 86_400
"""nmt removes a file that no process has opened for this time."""

MARK_SECONDS = 86_400
"""A file is marked as used at most this often, because each mark changes its identity."""


def private_folder(name: str) -> Path:
    """A folder in the cache folder, made if it is missing.

    NMTError if that fails, or if anyone else can write to the folder.
    """
    try:
        folder = cache_folder() / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_safe = is_ours(folder.stat())
    except OSError as error:
        raise cannot_write(folder, error) from error
    except RuntimeError as error:  # Path.home, for a user without a home folder
        raise NMTError(f"no cache folder ({error}): set XDG_CACHE_HOME") from error
    # Someone else could hold a lock there forever.
    if not is_safe:
        raise NMTError(f"other users may write to {folder}: set XDG_CACHE_HOME")
    return folder


def is_ours(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user, and no one else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def open_private(path: str, flags: int) -> int:
    """Open a file for `open` that only the user may read and write."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


@contextmanager
def turn_of(path: Path) -> Iterator[None]:
    """Wait until no other process makes this file."""
    with open(path.with_suffix(LOCK), "ab", opener=open_private) as file:
        lock_if_possible(file.fileno(), fcntl.LOCK_EX)
        yield


def lock_if_possible(descriptor: int, kind: int) -> None:
    """Lock an open file, unless the file system has no locks or, with LOCK_NB, it is locked."""
    with suppress(OSError):
        fcntl.flock(descriptor, kind)


@contextmanager
def opened_private(path: Path) -> Iterator[BufferedReader]:
    """A file that only the user controls, marked as used; OSError for any other file.

    `remove_unused` keeps the file while it is open or mapped.
    """
    with open(path, "rb", opener=open_descriptor) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not is_ours(status):
            raise PermissionError(f"{path} is not a file that only this user may write")
        lock_if_possible(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        if status.st_mtime < time.time() - MARK_SECONDS:
            with suppress(OSError):  # a read-only file system
                os.utime(file.fileno())
        yield file


def remove_unused(folder: Path) -> None:
    """Remove files that no process uses: those not opened for a while, and those of killed ones."""
    oldest = time.time() - UNUSED_SECONDS
    for path in folder.iterdir():
        # Another process may remove the file first.
        with suppress(OSError):
            is_temporary = TEMPORARY.fullmatch(path.name) is not None
            if path.lstat().st_mtime >= oldest and not is_temporary:
                continue
            with open(path, "rb", opener=open_descriptor) as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
