"""Atomic writes and locks: if the process is killed, the disk is full or the power fails, nothing is half written.

A file or folder is written under a temporary name, synced to disk, and renamed. Then its parent folder is synced, too.
"""

import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from nmt.config import NMTError, one_line

TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.nmt-tmp")
LOCK = ".lock"
WAIT_SECONDS = 1  # a killed process's workers also hold its locks, but exit within this time


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/nmt or ~/.cache/nmt."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nmt"


def temporary_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.nmt-tmp")


def cannot_write(path: Path, error: Exception) -> NMTError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)
    return NMTError(f"cannot write {path} ({reason}): is the disk full, or are you missing permission?")


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk; NMTError if a file cannot be written."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not path.is_dir():  # some network file systems do not support fsync of folders
            raise cannot_write(path, error) from error
    finally:
        os.close(descriptor)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; rename it to `path` at the end, or remove it after an error."""
    temporary = temporary_name(path)
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except (OSError, RuntimeError) as error:  # torch and pyarrow raise RuntimeError if the disk is full
        raise cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_file(path: Path, content: str | bytes) -> None:
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def check_replaceable(folder: Path) -> None:
    """Raise NMTError if a folder cannot be replaced."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise NMTError(f"{folder} is {'a link' if folder.is_symlink() else 'not a folder'}: move it out of the way")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to fill; at the end, it replaces `folder`. The caller must check that `folder` may be replaced."""
    check_replaceable(folder)
    temporary, old = temporary_name(folder), temporary_name(folder)
    try:
        temporary.mkdir(parents=True)
        mode = temporary.stat().st_mode
        yield temporary
        for path in (*temporary.rglob("*"), temporary):
            if not path.is_dir():
                path.chmod(mode & 0o666)  # safetensors makes files readable only by their owner
            sync(path)
        if folder.exists():
            folder.rename(old)
        temporary.rename(folder)
        sync(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(folder: Path, names: str = ".*") -> None:
    """Remove temporary files that killed processes left for names matching `names` (not links); none may be in use."""
    for path in folder.iterdir() if folder.is_dir() else ():
        leftover = TEMPORARY.fullmatch(path.name)
        if leftover and re.fullmatch(names, leftover["name"]) and not path.is_symlink():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


@contextmanager
def locked_file(path: Path, replace: bool, refusal: str, wait: float = WAIT_SECONDS) -> Iterator[None]:
    """Lock a file to read it or, with `replace`, to replace it; NMTError(refusal) if another lock prevents that.

    The system releases a killed process's locks. A missing file or a file system without locks is not an error.
    """
    kind, deadline = fcntl.LOCK_EX if replace else fcntl.LOCK_SH, time.monotonic() + wait
    with ExitStack() as held:
        while path.is_file():
            file = path.open("r+b" if replace else "rb")  # reopened each time, as another process may have replaced it
            held.callback(file.close)
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise NMTError(refusal) from error
                time.sleep(0.1)
            except OSError:
                break
        yield


@contextmanager
def only_process(folder: Path, key: str, replaced: bool = False) -> Iterator[None]:
    """Hold the lock on `folder`, the value of the option `key`; NMTError if another process holds it.

    The lock is a file in the folder, or next to it if the folder will be `replaced`. At the end, a folder that
    contains nothing else is removed.
    """
    path = folder.with_name(f".{folder.name}{LOCK}") if replaced else folder / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK, 0o666))  # O_NONBLOCK: do not wait for a pipe
    except OSError as error:
        raise NMTError(f"cannot write {folder} ({error.strerror}): pass another {key}=FOLDER") from error
    with locked_file(path, True, f"{folder}: another nmt is using it; wait until it exits, or pass {key}=OTHER"):
        try:
            yield
        finally:
            if not replaced and [file.name for file in folder.iterdir()] == [LOCK]:
                with suppress(OSError):
                    path.unlink()
                    folder.rmdir()
