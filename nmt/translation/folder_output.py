"""Write the files of an output folder."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nmt.config import NMTError
from nmt.files import cannot_write, write_file

FOR_ALL_FILES = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
"""Errors that all other files would have, too."""


class CannotWriteFolder(NMTError):
    """The output folder cannot be written, so the job ends."""


def write_in_folder(path: Path, content: bytes) -> None:
    """Write a file, and the folders around it.

    Raises CannotWriteFolder if no other file could be written, and NMTError if only this one
    cannot.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)
    except (NMTError, OSError) as error:
        # `write_file` raises NMTError, whose cause is the error of the system.
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        if cause.errno in FOR_ALL_FILES:
            raise CannotWriteFolder(str(cannot_write(path, cause))) from error
        if cause.errno == errno.ENAMETOOLONG:
            raise NMTError("its name is too long; pass folder.names= with a shorter one") from error
        raise cannot_write(path, cause) from error


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Create a folder, and hold a lock on it; NMTError if another process holds the lock."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The folder itself, because a lock file would be published with the translations.
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        problem = f"output={folder}: another nmt process is writing it; name another folder"
        raise NMTError(problem) from error
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        os.close(descriptor)
