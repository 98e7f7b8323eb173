"""Remember facts about large files that take long to find out, such as their SHA-256.

A fact holds while the file has the same device, inode, size and times. No user can set the time of
a file's last change (ctime), so an edited or replaced file is examined again. Whoever controls the
file system itself can hide an edit, but can also make one after any examination.
"""

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from nmt.errors import NMTError
from nmt.files.cache import open_private, opened_private, private_folder, remove_unused, turn_of
from nmt.files.reading import LARGE, check_regular, sha256
from nmt.files.writing import whole_file

LARGE_BYTES = 1 << 30
"""A smaller file is examined each time, which takes about a second."""

SETTLED_NS = 2 * 10**9
"""Another change in the same tick of the file system's clock would not be noticed."""

FORMAT = "nmt-fact-1"


class Identity(NamedTuple):
    """What changes with the content of a file."""

    device: int
    inode: int
    size: int
    modified_ns: int
    changed_ns: int


def identity_of(file: Path | int) -> Identity:
    """The identity of a file, or of an open file with this descriptor."""
    status = file.stat() if isinstance(file, Path) else os.fstat(file)
    return Identity(
        device=status.st_dev,
        inode=status.st_ino,
        size=status.st_size,
        modified_ns=status.st_mtime_ns,
        changed_ns=status.st_ctime_ns,
    )


def remembered_sha256(path: Path, is_large: bool = False) -> str:
    """The SHA-256 of a regular file, perhaps computed by an earlier process."""
    check_regular(path)
    return remembered(path, "sha256", lambda: sha256(path), is_large)


def remembered(
    file: Path | int, question: str, examine: Callable[[], str], is_large: bool = False
) -> str:
    """The answer to a question about a file's content, remembered if the file is large.

    `file` is a path or an open file's descriptor. `question` also names whatever else decides the
    answer, such as the version of the code. With `is_large`, a small file counts as large, because
    it is one of many. Errors of `examine` are not remembered.
    """
    before = identity_of(file)
    if before.size < LARGE_BYTES and not is_large:
        return examine()
    name = hashlib.sha256(repr((question, *before)).encode()).hexdigest()
    with ExitStack() as turn:
        fact: Path | None = None
        # Without a cache folder, each process examines the file itself.
        with suppress(NMTError, OSError):
            fact = private_folder("facts") / f"{name}.fact"
            # Another process may be examining the file.
            turn.enter_context(turn_of(fact))
        answer = read_fact(fact) if fact else None
        if answer is None:
            is_settled = before.changed_ns < time.time_ns() - SETTLED_NS
            answer = examine()
            if fact and is_settled and identity_of(file) == before:
                write_fact(fact, answer)
    return answer


def content_of(fact: Path, answer: str) -> bytes:
    checksum = hashlib.sha256(f"{fact.name} {answer}".encode()).hexdigest()
    return f"{FORMAT} {checksum} {answer}".encode()


def read_fact(fact: Path) -> str | None:
    """The answer in a file; None if it is missing, damaged or not only in the user's control."""
    try:
        with opened_private(fact) as file:
            content = file.read(LARGE)
        _, _, answer = content.decode().split(" ", 2)
    except (OSError, ValueError):
        return None
    return answer if content == content_of(fact, answer) else None


def write_fact(fact: Path, answer: str) -> None:
    """Remember an answer, unless the disk is full, for example."""
    with suppress(NMTError, OSError):
        remove_unused_once(fact.parent)
        with (
            whole_file(fact) as temporary,
            open(temporary, "xb", opener=open_private) as file,
        ):
            file.write(content_of(fact, answer))


@cache
def remove_unused_once(folder: Path) -> None:
    """Remove unused facts, once per process: a corpus of many files adds thousands."""
    remove_unused(folder)
