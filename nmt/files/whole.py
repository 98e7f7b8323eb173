"""Writing files and folders atomically: after a kill, a full disk or a power cut, each is either complete or absent.

Each is written under a temporary name, synced to the disk, and renamed; then its folder is synced, too. A temporary
name is `.NAME.RANDOM.nmt-tmp`, so that the leftovers of a killed process can be recognised.
"""

import os
import re
import secrets
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from nmt.errors import NMTError, one_line

TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.nmt-tmp")


def temporary_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.nmt-tmp")


def cannot_write(path: Path, error: Exception) -> NMTError:
    """The error to raise where a file or folder could not be written."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)
    return NMTError(f"cannot write {path} ({reason}): is the disk full, or is permission missing?")


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk; NMTError where a file cannot be written there."""
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
    """Give a temporary name to write to, which at the end is renamed to `path`, or after an error removed.

    A link of that name is replaced, not written through. Raises NMTError where the disk is full or not writable, also
    when torch or pyarrow report that as RuntimeError.
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
    """Write a whole file; NMTError where it cannot be written."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def write_zip(
    parts: Mapping[str, bytes | Path],
    archive: Path | BytesIO,
    compression: int = zipfile.ZIP_STORED,
    comment: bytes = b"",
) -> None:
    """Write a zip archive of bytes and files by name, in which nothing depends on time or machine: dated 1980.

    Uncompressed by default, because compressors differ. `archive` may be the temporary name of `whole_file`.
    """
    with zipfile.ZipFile(archive, "w") as output:
        output.comment = comment
        for name, part in parts.items():
            member = zipfile.ZipInfo(name)
            member.create_system, member.external_attr = 3, 0o100644 << 16  # as on Unix, wherever it is written
            member.compress_type = compression
            if isinstance(part, bytes):
                output.writestr(member, part)
                continue
            member.file_size = part.stat().st_size  # so that zipfile knows whether it needs the format for large files
            with part.open("rb") as source, output.open(member, "w") as target:
                shutil.copyfileobj(source, target)


def check_replaceable(folder: Path) -> None:
    """Raise NMTError, before any work, where a folder could not be replaced."""
    if folder.is_symlink():
        raise NMTError(f"{folder} is a link, which is not written through: name the folder itself, or remove the link")
    if folder.exists() and not folder.is_dir():
        raise NMTError(f"{folder} is not a folder: move it away")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """Give a folder with a temporary name to fill, which at the end replaces `folder`, or after an error is removed.

    The caller must make sure that the old folder is ours, for it is deleted. Raises NMTError.
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
    """Remove the temporary files and folders that killed processes left in a folder, if their own names match `names`.

    Links stay. To be called only where no other process can be writing.
    """
    for path in folder.iterdir() if folder.is_dir() else ():
        found = TEMPORARY.fullmatch(path.name)
        if found is None or not re.fullmatch(names, found["name"]) or path.is_symlink():
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
