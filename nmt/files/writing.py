"""Write files and folders atomically.

If the process is killed, the disk is full or the power fails, nothing is half written. A file or
folder is written under a temporary name, synced to disk, and renamed. Then its parent folder is
synced, too.
"""

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nmt.config import NMTError, one_line

TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.nmt-tmp")


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/nmt or ~/.cache/nmt."""
    chosen = os.environ.get("XDG_CACHE_HOME")
    parent = Path(chosen) if chosen else Path.home() / ".cache"
    return parent / "nmt"


def temporary_name(path: Path) -> Path:
    """A name in the same folder; `remove_leftovers` recognizes it."""
    # In the same folder, because a rename is atomic only within a
    # file system. Random, so that processes that write the same file
    # do not share a temporary one. Hidden from patterns such as `*`.
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.nmt-tmp")


def cannot_write(path: Path, error: Exception) -> NMTError:
    """The error for a file that cannot be written."""
    reason = one_line(error)
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    advice = "is the disk full, or are you missing permission?"
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        advice = "raise the limit of open files (ulimit -n), or use fewer processes"
    return NMTError(f"cannot write {path} ({reason}): {advice}")


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
    """Yield a temporary path to write to.

    At the end, it is renamed to `path`; after an error, it is removed.
    """
    temporary = temporary_name(path)
    try:
        yield temporary
        # In this order: a rename may reach the disk before
        # the content, and leave an empty file there.
        sync(temporary)
        temporary.replace(path)
        # The new name is an entry of the folder, which has to be on disk, too.
        sync(path.parent)
    # torch and pyarrow raise RuntimeError if the disk is full.
    except (OSError, RuntimeError) as error:
        raise cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)  # still there only after an error


def write_file(path: Path, content: str | bytes) -> None:
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def check_replaceable(folder: Path) -> None:
    """Raise NMTError if a folder cannot be replaced."""
    if folder.is_symlink():
        raise NMTError(f"{folder} is a link: move it out of the way")
    if folder.exists() and not folder.is_dir():
        raise NMTError(f"{folder} is not a folder: move it out of the way")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder to fill; at the end, it replaces `folder`.

    The caller must check that `folder` may be replaced.
    """
    check_replaceable(folder)
    temporary = temporary_name(folder)
    old = temporary_name(folder)
    try:
        temporary.mkdir(parents=True)
        # The permissions that the user's umask allows for a new folder.
        mode = temporary.stat().st_mode
        yield temporary
        # Everything is on disk before the old folder is moved away.
        for path in (*temporary.rglob("*"), temporary):
            if not path.is_dir():
                path.chmod(mode & 0o666)  # safetensors makes files readable only by their owner
            sync(path)
        # A folder cannot be renamed to one that is not empty, so the old one is moved away first.
        if folder.exists():
            folder.rename(old)
        temporary.rename(folder)
        sync(folder.parent)
        # Last: after a failure before this line, the old
        # folder still exists under a temporary name.
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(folder: Path, names: str = ".*") -> None:
    """Remove the temporary files that killed processes left; none may be in use.

    `names` is a regular expression for the final names of the files. Links stay.
    """
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        leftover = TEMPORARY.fullmatch(path.name)
        # nmt creates no links, so a link with such a name is someone else's.
        if leftover is None or path.is_symlink():
            continue
        if not re.fullmatch(names, leftover["name"]):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
