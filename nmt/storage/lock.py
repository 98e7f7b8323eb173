"""One process at a time in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.errors import NMTError

NAME = ".lock"
PATIENCE = 1
"""Seconds to wait for the lock: the workers of a killed process, who hold it too, take less to end."""


@contextmanager
def only_process(folder: Path, key: str, replaced: bool = False) -> Iterator[None]:
    """Keep other processes out of `folder`, which `key` names; NMTError where one is in it. Death frees the lock.

    The lock is a file within the folder, which is made, and removed again where nothing came of it; or, for a folder
    that is to be `replaced`, a file beside it.
    """
    path = folder.with_name(f".{folder.name}{NAME}") if replaced else folder / NAME
    lock = FileLock(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=PATIENCE)
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
