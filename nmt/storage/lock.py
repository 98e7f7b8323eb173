"""One process at a time in a folder."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from nmt.errors import NMTError

NAME = ".lock"


@contextmanager
def only_process(folder: Path, key: str) -> Iterator[None]:
    """NMTError where another process is within this context for the same folder; a process that dies leaves it.

    The folder, which `key` names, is made where it is missing, and removed again where nothing came of it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / NAME)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise NMTError(f"{folder}: another nmt is at work there; let it end, or pass {key}=OTHER") from error
    except OSError as error:
        raise NMTError(f"cannot write {folder} ({error.strerror}): pass {key}=FOLDER elsewhere") from error
    try:
        yield
    finally:
        lock.release()
        if [path.name for path in folder.iterdir()] == [NAME]:
            with suppress(OSError):
                (folder / NAME).unlink()
                folder.rmdir()
