"""Readers for untrusted files, which follow no links, trust no size or depth, and run no code. Escapes for Markdown.

Atomic writes and locks: if the process is killed, the disk is full or the power fails, nothing is half written. A file
or folder is written under a temporary name, synced to disk, and renamed. Then its parent folder is synced, too.
"""

import fcntl
import hashlib
import json
import math
import os
import pickle
import re
import secrets
import shutil
import stat
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

from nmt.config import IF_LATIN_1, NMTError, is_out_of_memory, one_line, require

SMALL = 2**20  # maximum number of bytes in a configuration file; real ones have a few thousand
LARGE = 2**26  # maximum number of bytes in a tokenizer or any other file that is read all at once
DEPTH = 32  # maximum nesting of lists and mappings
VALUE_LIMIT = 2**20  # maximum number of values (numbers, strings and tensors) in a torch.save file
SPECIAL = re.compile(r"([\\`*\[\]<>|~]|&(?=#?\w+;))")  # characters with a meaning in Markdown


def check_regular(path: Path) -> None:
    """Raise NMTError if a file is missing or is a link, folder or device."""
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        raise NMTError(f"{path}: cannot be read ({getattr(error, 'strerror', error)})") from error
    if not stat.S_ISREG(mode):
        reason = "a link, which is not followed" if stat.S_ISLNK(mode) else "not a regular file"
        raise NMTError(f"{path}: cannot be read ({reason})")


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    check_regular(path)
    try:
        # If a link or pipe has replaced the file since the check, do not follow it or wait for it.
        with open(
            path,
            "rb",
            opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK),
        ) as file:
            yield file
    except OSError as error:
        raise NMTError(f"{path}: cannot be read ({error.strerror})") from error


def read_bytes(path: Path, limit: int = LARGE) -> bytes:
    """Read a regular file of at most `limit` bytes; NMTError if it is anything else."""
    with opened(path) as file:
        content = file.read(limit + 1)
    require(
        len(content) <= limit, f"{path}: larger than {limit:,} bytes, the limit for such a file"
    )
    return content


def read_text(path: Path, limit: int = LARGE) -> str:
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError as error:
        raise NMTError(f"{path}: invalid UTF-8 at byte {error.start + 1} {IF_LATIN_1}") from error


def sha256(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_tree(tree: Any, parts: Callable[[Any], Iterable[Any]], limit: float = math.inf) -> None:
    """Raise ValueError if a tree is too deep or has over `limit` values; `parts` returns a value's children."""
    level, seen = [tree], 1
    for _ in range(DEPTH):
        below: list[Any] = []
        for value in level:
            below += parts(value)
            if (
                seen + len(below) > limit
            ):  # checked here, as a level may contain the same list many times
                raise ValueError(f"it contains more than {limit:,} values")
        if not below:
            return
        level, seen = below, seen + len(below)
    raise ValueError("nested too deeply")


def plain_parts(value: Any) -> Iterable[Any]:
    """The values in a mapping or list; ValueError for a number that is too large or not finite."""
    if isinstance(value, float | int) and not abs(value) < (
        2**63 if isinstance(value, int) else math.inf
    ):
        raise ValueError(f"{str(value)[:20]} is too large or not finite")
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; ValueError if it is malformed, nested too deeply, or has numbers that are too large or not finite."""
    try:
        tree = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    check_tree(tree, plain_parts)
    return tree


def parse_yaml(text: str, kind: str = "SafeLoader") -> Any:
    """Like `parse_json`, for plain YAML; aliases are rejected, as they let a few lines expand to billions of values."""
    import yaml  # here, because completion must not load it

    loader, depth = getattr(yaml, f"C{kind}", getattr(yaml, kind)), 0
    try:
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(
                event, yaml.CollectionEndEvent
            )
            if (
                isinstance(event, yaml.AliasEvent) or depth > DEPTH
            ):  # too deep a tree would overflow libyaml's stack
                raise ValueError("it contains an alias" if depth <= DEPTH else "nested too deeply")
        tree = yaml.load(text, loader)
    except (yaml.YAMLError, RecursionError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"not plain YAML: {one_line(error)}") from error
    check_tree(tree, plain_parts)
    return tree


def read_mapping(path: Path, parse: Callable[[str], Any], limit: int = SMALL) -> dict[str, Any]:
    """Read a file that contains a mapping, with `parse_json` or `parse_yaml`; NMTError if it contains anything else."""
    text = read_text(path, limit)
    try:
        tree = parse(text)
    except ValueError as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise NMTError(f"{path}: cannot be read (not a mapping of names to values)")
    return tree


def check_version(
    path: Path, version: Any, current: int, advice: str = "use the nmt version that wrote it"
) -> None:
    """Raise NMTError if a file does not have the current format version."""
    if version != current:
        raise NMTError(
            f"{path}: format version {repr(version)[:20]}, but this nmt reads version {current}: {advice}"
        )


def check_members(archive: zipfile.ZipFile, size: int) -> None:
    """Raise ValueError if a torch.save archive of `size` bytes is damaged or claims to unpack to more bytes."""
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
        raise ValueError("its members are compressed, but torch.save never compresses")
    if sum(member.file_size for member in archive.infolist()) > size:
        raise ValueError("it claims to contain more bytes than the file")
    if damaged := archive.testzip():
        raise ValueError(f"its member {damaged} is damaged: the checksum does not match")


def load_plain(path: Path) -> Any:
    """Load a torch.save file, memory-mapped; ValueError if it is damaged or contains more than plain values."""
    import torch

    def parts(value: Any) -> Iterable[Any]:
        if isinstance(value, torch.Tensor):
            # With strides of 0, a tensor of any size can take only a few bytes.
            if (
                value.layout != torch.strided
                or value.numel() * value.element_size() > value.untyped_storage().nbytes()
            ):
                raise ValueError("a tensor in it is larger than its storage")
        elif value is not None and not isinstance(value, int | float | str | list | tuple | dict):
            raise ValueError(
                f"it contains a {type(value).__name__}, which is not a tensor, number or string"
            )
        if isinstance(value, dict):
            return [*value, *value.values()]
        return value if isinstance(value, list | tuple) else ()

    check_regular(path)
    if not zipfile.is_zipfile(path):
        raise ValueError("it is empty, truncated, or a bare pickle, which nmt does not run")
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path.stat().st_size)
        # With weights_only, a pickle can only construct tensors and containers.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:  # torch's own message advises running the pickle
        raise ValueError("it contains more than plain tensors, numbers and strings") from error
    except Exception as error:  # zipfile and torch raise many exception types for a damaged archive
        if is_out_of_memory(error):
            raise
        raise ValueError(f"it is truncated or damaged: {one_line(error)}") from error
    check_tree(content, parts, VALUE_LIMIT)
    return content


def printable(text: str) -> str:
    """Replace the control and format characters in a line."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def plain(text: object) -> str:
    """Escape a string for a one-line sentence, heading or table cell, so that it creates no HTML, link or cell."""
    return SPECIAL.sub(r"\\\1", printable(" ".join(str(text).split())))


def code(text: object) -> str:
    """Format a string as inline code on one line; in a table, also apply `cell`."""
    return f"`{' '.join(str(text).split()).replace('`', chr(39))}`"


def block(text: str) -> str:
    return f"```\n{text.replace('`', chr(39))}\n```"


def cell(markdown: str) -> str:
    return markdown.replace("|", "\\|")


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
    return NMTError(
        f"cannot write {path} ({reason}): is the disk full, or are you missing permission?"
    )


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
    except (
        OSError,
        RuntimeError,
    ) as error:  # torch and pyarrow raise RuntimeError if the disk is full
        raise cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_file(path: Path, content: str | bytes) -> None:
    with whole_file(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def check_replaceable(folder: Path) -> None:
    """Raise NMTError if a folder cannot be replaced."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise NMTError(
            f"{folder} is {'a link' if folder.is_symlink() else 'not a folder'}: move it out of the way"
        )


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
def locked_file(
    path: Path, replace: bool, refusal: str, wait: float = WAIT_SECONDS
) -> Iterator[None]:
    """Lock a file to read it or, with `replace`, to replace it; NMTError(refusal) if another lock prevents that.

    The system releases a killed process's locks. A missing file or a file system without locks is not an error.
    """
    kind, deadline = fcntl.LOCK_EX if replace else fcntl.LOCK_SH, time.monotonic() + wait
    with ExitStack() as held:
        while path.is_file():
            file = path.open(
                "r+b" if replace else "rb"
            )  # reopened each time, as another process may have replaced it
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


def in_use(folder: Path, key: str) -> str:
    """The message for a folder, the value of the option `key`, that another process has locked."""
    return f"{folder}: another nmt is using it; wait until it exits, or pass {key}=OTHER"


@contextmanager
def only_process(folder: Path, key: str, replaced: bool = False) -> Iterator[None]:
    """Hold the lock on `folder`, the value of the option `key`; NMTError if another process holds it.

    The lock is a file in the folder, or next to it if the folder will be `replaced`. At the end, a folder that
    contains nothing else is removed.
    """
    path = folder.with_name(f".{folder.name}{LOCK}") if replaced else folder / LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(
            os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NONBLOCK, 0o666)
        )  # O_NONBLOCK: do not wait for a pipe
    except OSError as error:
        raise NMTError(
            f"cannot write {folder} ({error.strerror}): pass another {key}=FOLDER"
        ) from error
    with locked_file(path, True, in_use(folder, key)):
        try:
            yield
        finally:
            if not replaced and [file.name for file in folder.iterdir()] == [LOCK]:
                with suppress(OSError):
                    path.unlink()
                    folder.rmdir()
