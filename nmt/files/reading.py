"""Read untrusted files: follow no links, trust no size or depth, and run no code."""

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from nmt.config import IF_LATIN_1, NMTError, one_line

SMALL = 2**20
"""Maximum number of bytes in a configuration file; real ones have a few thousand."""
LARGE = 2**26
"""Maximum number of bytes in a tokenizer or any other file that is read all at once."""
DEPTH = 32
"""Maximum nesting of lists and mappings."""
INTEGER_LIMIT = 2**63
"""Larger integers do not fit into the 64 bits of arrays and tensors."""


def check_regular(path: Path) -> None:
    """Raise NMTError if a file is missing or is a link, folder or device."""
    try:
        # `lstat`, because `stat` would follow a link and describe its target.
        mode = path.lstat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        reason = getattr(error, "strerror", error)
        raise NMTError(f"{path}: cannot be read ({reason})") from error
    if stat.S_ISLNK(mode):
        raise NMTError(f"{path}: cannot be read (a link, which is not followed)")
    if not stat.S_ISREG(mode):
        raise NMTError(f"{path}: cannot be read (not a regular file)")


def open_descriptor(path: str, flags: int) -> int:
    """Open a file for `open`.

    If a link or pipe has replaced the file since it was checked, do not follow it or wait for it.
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    """A regular file; NMTError if it is anything else, or if reading it in the block fails."""
    # Checked before it is opened, for a message that names the cause. `open_descriptor` covers the
    # time between the check and the opening.
    check_regular(path)
    try:
        with open(path, "rb", opener=open_descriptor) as file:
            yield file
    except OSError as error:
        raise NMTError(f"{path}: cannot be read ({error.strerror})") from error


def read_bytes(path: Path, limit: int = LARGE) -> bytes:
    """Read a regular file of at most `limit` bytes; NMTError if it is anything else."""
    with opened(path) as file:
        content = file.read(limit + 1)  # its size may have changed since it was opened
    if len(content) > limit:
        raise NMTError(f"{path}: larger than {limit:,} bytes, the limit for such a file")
    return content


def read_text(path: Path, limit: int = LARGE) -> str:
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError as error:
        raise NMTError(f"{path}: invalid UTF-8 at byte {error.start + 1} {IF_LATIN_1}") from error


def sha256(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_tree(
    tree: Any,
    parts: Callable[[Any], Iterable[Any]],
    limit: float = math.inf,
) -> None:
    """Raise ValueError if a tree is too deep or has over `limit` values.

    `parts` returns a value's children.
    """
    # Level by level, because recursion over a deep tree would overflow Python's stack.
    level = [tree]
    seen = 1
    for _ in range(DEPTH):
        below: list[Any] = []
        for value in level:
            below += parts(value)
            # Checked for each value, because a level may contain the same list many times.
            if seen + len(below) > limit:
                raise ValueError(f"it contains more than {limit:,} values")
        if not below:
            return
        level = below
        seen += len(below)
    raise ValueError("nested too deeply")


def plain_parts(value: Any) -> Iterable[Any]:
    """The values in a mapping or list; ValueError for a number that is too large or not finite."""
    if isinstance(value, float | int):
        limit = INTEGER_LIMIT if isinstance(value, int) else math.inf
        if not abs(value) < limit:  # NaN is not smaller, either
            raise ValueError(f"{str(value)[:20]} is too large or not finite")
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return ()


def parse_json(text: str | bytes) -> Any:
    """Parse JSON.

    Raises ValueError if it is malformed, nested too deeply, or has numbers that are too large or
    not finite.
    """
    try:
        # Python's parser recurses, and raises RecursionError long before it runs out of memory.
        tree = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    check_tree(tree, plain_parts)
    return tree


def parse_yaml(text: str, kind: str = "SafeLoader") -> Any:
    """Like `parse_json`, for plain YAML.

    Aliases are rejected, because they let a few lines expand to billions of values.
    """
    import yaml  # here, because completion must not load it

    in_python = getattr(yaml, kind)
    loader = getattr(yaml, f"C{kind}", in_python)  # libyaml's is faster, if it is installed
    try:
        # A first pass over the events, because `load` would already have built the tree.
        check_events(yaml.parse(text, loader))
        tree = yaml.load(text, loader)
    except (yaml.YAMLError, RecursionError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"not plain YAML: {one_line(error)}") from error
    check_tree(tree, plain_parts)
    return tree


def check_events(events: Iterable[Any]) -> None:
    """Raise ValueError if YAML contains an alias or is nested too deeply.

    Checked while it is parsed, because too deep a tree would overflow libyaml's stack.
    """
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH:
            raise ValueError("nested too deeply")
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it contains an alias")


def read_mapping(path: Path, parse: Callable[[str], Any], limit: int = SMALL) -> dict[str, Any]:
    """Read a file that contains a mapping, with `parse_json` or `parse_yaml`.

    Raises NMTError if it contains anything else.
    """
    text = read_text(path, limit)
    try:
        tree = parse(text)
    except ValueError as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise NMTError(f"{path}: cannot be read (not a mapping of names to values)")
    return tree


def check_version(
    path: Path,
    version: Any,
    current: int,
    advice: str = "use the nmt version that wrote it",
) -> None:
    """Raise NMTError if a file does not have the current format version."""
    # The version may come from a file that anyone has written, so the message is short.
    if version != current:
        found = repr(version)[:20]
        raise NMTError(
            f"{path}: format version {found}, but this nmt reads version {current}: {advice}"
        )
