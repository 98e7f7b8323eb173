"""Locks of files and folders, which the system releases when a process is killed."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from nmt.config import NMTError

LOCK = ".lock"
WAIT_SECONDS = 1
"""Seconds to wait for a lock. A killed process's workers also hold its locks; they exit sooner."""
POLL_SECONDS = 0.1
"""The time between two attempts to lock a file."""


@contextmanager
def locked_file(
    path: Path,
    replace: bool,
    refusal: str,
    wait: float = WAIT_SECONDS,
) -> Iterator[None]:
    """Lock a file to read it or, with `replace`, to replace it.

    Raises NMTError(refusal) if another lock prevents that. A missing file or a file system without
    locks is not an error.
    """
    kind = fcntl.LOCK_EX if replace else fcntl.LOCK_SH
    # A reader may lack the permission to write.
    mode = "r+b" if replace else "rb"
    # Polled: a blocking `flock` has no time limit, and cannot notice that the file was replaced.
    deadline = time.monotonic() + wait
    with ExitStack() as held:
        while path.is_file():
            # Reopened each time, because another process may have replaced it.
            file = path.open(mode)
            # Closing releases the lock. Files of earlier attempts hold none.
            held.callback(file.close)
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise NMTError(refusal) from error
                time.sleep(POLL_SECONDS)
            except OSError:  # a file system without locks
                break
        yield


def in_use(folder: Path, key: str) -> str:
    """The message for a folder, the value of the option `key`, that another process has locked."""
    return f"{folder}: another nmt is using it; wait until it exits, or pass {key}=OTHER"


@contextmanager
def only_process(folder: Path, key: str, replaced: bool = False) -> Iterator[None]:
    """Hold the lock on `folder`, the value of the option `key`.

    The lock is a file in the folder, or next to it if the folder will be `replaced`. At the end, a
    folder that contains nothing else is removed. Raises NMTError if another process holds the lock.
    """
    path = folder / LOCK
    if replaced:
        # A lock inside would be moved away with the folder that is replaced.
        path = folder.with_name(f".{folder.name}{LOCK}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Opened only to create the file; `locked_file` opens it again. O_NONBLOCK: do not wait for
        # a pipe.
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK, 0o666)
        os.close(descriptor)
    except OSError as error:
        raise NMTError(
            f"cannot write {folder} ({error.strerror}): pass another {key}=FOLDER"
        ) from error
    with locked_file(path, True, in_use(folder, key)):
        try:
            yield
        finally:
            # Without this, a command that fails at once would leave an empty run behind.
            if not replaced:
                remove_empty(folder)


def remove_empty(folder: Path) -> None:
    """Remove a folder that contains only its lock."""
    if [file.name for file in folder.iterdir()] == [LOCK]:
        # Another process may have written to the folder since it was listed; then it stays.
        with suppress(OSError):
            (folder / LOCK).unlink()
            folder.rmdir()
