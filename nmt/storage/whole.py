"""Files and folders that are whole or not there, whatever happens while they are written: killed, full disk, no power.

Each is filled under a temporary name, brought to the disk, and renamed; then its folder is brought to the disk, too. A
temporary name is `.NAME.RANDOM.nmt-tmp`, so that what a killed process leaves behind is known for what it is.
"""

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nmt.errors import NMTError, one_line

TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.nmt-tmp")


def temporary_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.nmt-tmp")


def cannot_write(path: Path, error: Exception) -> NMTError:
    """The error to raise where a file or folder could not be written."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)
    return NMTError(f"cannot write {path} ({reason}): is the disk full, or not yours to write?")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk; NMTError where a file does not get there."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not path.is_dir():  # some network file systems know no fsync of folders
            raise cannot_write(path, error) from error
    finally:
        os.close(descriptor)


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary name to a file that a library writes; at the end it gets its own name, or is gone.

    A link of that name is replaced, not written through. Raises NMTError where the disk is full or not writable, also
    when torch or pyarrow say so in their own words (RuntimeError).
    """
    temporary = temporary_name(path)
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except (OSError, RuntimeError) as error:
        raise cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_file(path: Path, content: str | bytes) -> None:
    """Write a whole file; NMTError where that cannot be."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def copy_file(source: Path, path: Path) -> None:
    """Write a whole file with the content of another one."""
    with whole_file(path) as temporary:
        shutil.copyfile(source, temporary)


def check_replaceable(folder: Path) -> None:
    """Raise NMTError, before any work, where a folder of that name could not be replaced."""
    if folder.is_symlink():
        raise NMTError(f"{folder} is a link, which is not written through: name the folder itself, or remove the link")
    if folder.exists() and not folder.is_dir():
        raise NMTError(f"{folder} is no folder: move it away")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Give a folder to be filled under a temporary name, which at the end takes the place of `folder`, or is gone.

    What was there before is removed: whoever calls this has made sure that it is ours. Raises NMTError.
    """
    check_replaceable(folder)
    temporary, old = temporary_name(folder), temporary_name(folder)
    try:
        temporary.mkdir(parents=True)
        mode = temporary.stat().st_mode
        yield temporary
        for path in (*temporary.rglob("*"), temporary):
            if not path.is_dir():
                path.chmod(mode & 0o666)  # safetensors writes for the owner alone
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
    """Remove what killed processes left in a folder of temporary files and folders, for these names, a pattern.

    Only by our own temporary names, and no links. To be called where no other process can be writing there.
    """
    for path in folder.iterdir() if folder.is_dir() else ():
        found = TEMPORARY.fullmatch(path.name)
        if found is None or not re.fullmatch(names, found["name"]) or path.is_symlink():
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
