"""Locks: of a folder, for one process; of a file, for all that read it, or for one that replaces it."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.errors import NMTError

NAME = ".lock"
WAIT_SECONDS = 1
"""The workers of a killed process, which also hold the lock, take less to end."""


@contextmanager
def only_process(folder: Path, key: str, replaced: bool = False) -> Iterator[None]:
    """Hold the lock of `folder`, which `key` names; NMTError where another process holds it. Death frees the lock.

    The lock is a file in the folder, which is made, and removed again if nothing else was written there. For a folder
    that is to be `replaced`, it is a file beside it.
    """
    path = folder.with_name(f".{folder.name}{NAME}") if replaced else folder / NAME
    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=WAIT_SECONDS)
    except Timeout as error:
        raise NMTError(f"{folder}: another nmt is at work there; let it end, or pass {key}=OTHER") from error
    except OSError as error:
        raise NMTError(f"cannot write {folder} ({error.strerror}): pass {key}=FOLDER elsewhere") from error
    try:
        yield
    finally:
        lock.release()
        if not replaced and [found.name for found in folder.iterdir()] == [NAME]:
            with suppress(OSError):
                path.unlink()
                folder.rmdir()


@contextmanager
def locked_file(path: Path, replace: bool, refusal: str) -> Iterator[None]:
    """Keep a file as it is for all who lock it, or with `replace`, for this process alone.

    Raises NMTError(refusal) where another process holds the other lock. Death frees a lock. The file itself holds it,
    so that readers need no permission to write; a file that is missing, or on a file system without locks, is not
    locked.
    """
    kind = fcntl.LOCK_EX if replace else fcntl.LOCK_SH
    deadline = time.monotonic() + WAIT_SECONDS
    file = None
    while file is None and path.is_file():
        file = path.open("r+b" if replace else "rb")  # anew for each try, because another process may have replaced it
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            file = None
            if time.monotonic() > deadline:
                raise NMTError(refusal) from error
            time.sleep(0.1)
        except OSError:
            break
    try:
        yield
    finally:
        if file:
            file.close()
