"""Readers for files that may come from anyone: no link is followed, no size or depth taken on trust, nothing runs.

Whatever a file holds, the answer is its content, of the types that were asked for, or an NMTError of one line.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from nmt.errors import NMTError, one_line

SMALL = 2**20
"""Bytes of a configuration at most; ours have some thousand."""
LARGE = 2**26
"""Bytes of any other text or tokenizer that is read at once."""
DEPTH = 32
"""Levels within a tree at most."""

Config = TypeVar("Config")


def read_bytes(path: Path, limit: int = LARGE) -> bytes:
    """The content of a regular file of at most `limit` bytes; NMTError for a link, a device, or a larger one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        reason = "a link, which is not followed" if path.is_symlink() else error.strerror
        raise NMTError(f"{path}: cannot be read ({reason})") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise NMTError(f"{path}: cannot be read (no regular file)")
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(limit + 1) if status.st_size <= limit else b""
    if status.st_size > limit or len(content) > limit:
        raise NMTError(f"{path}: larger than the {limit:,} bytes that such a file has at most")
    return content


def check_regular(path: Path) -> None:
    """NMTError where a file that a library will read is missing, a link or a device."""
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise NMTError(f"{path}: cannot be read ({error.strerror})") from error
    if not stat.S_ISREG(mode):
        raise NMTError(
            f"{path}: cannot be read ({'a link, which is not followed' if stat.S_ISLNK(mode) else 'no file'})"
        )


def read_text(path: Path, limit: int = LARGE) -> str:
    """The text of a file in UTF-8, likewise."""
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError as error:
        raise NMTError(f"{path}: cannot be read (invalid UTF-8 at byte {error.start + 1})") from error


def finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is no finite number")
    return number


def integer(text: str) -> int:
    number = int(text)  # of at most 4,300 digits
    if abs(number) >= 2**63:
        raise ValueError(f"{text[:20]}... is too large")
    return number


def refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no finite number")


def parse_json(text: str | bytes) -> Any:
    """A JSON value of finite numbers and few levels; ValueError for anything else."""
    try:
        tree = json.loads(text, parse_float=finite, parse_int=integer, parse_constant=refuse_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    check_depth(tree)
    return tree


def check_depth(tree: Any) -> None:
    """ValueError where lists and mappings are nested too deeply."""
    level = [tree]
    for _ in range(DEPTH):
        level = [
            value
            for item in level
            if isinstance(item, dict | list)
            for value in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return
    raise ValueError("nested too deeply")


class PlainLoader(yaml.SafeLoader):
    """YAML without anchors, by which a few lines may stand for billions of values."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it holds an alias")
        return super().compose_node(parent, index)


def parse_yaml(text: str) -> Any:
    """A YAML value of few levels; ValueError for anything else."""
    try:
        tree = yaml.load(text, PlainLoader)
    except (yaml.YAMLError, RecursionError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"no plain YAML: {one_line(error)}") from error
    check_depth(tree)
    return tree


def read_mapping(path: Path, parse: Callable[[str], Any], limit: int = SMALL) -> dict[str, Any]:
    """The mapping that a JSON or YAML file holds (`parse_json`, `parse_yaml`); NMTError where it holds none."""
    text = read_text(path, limit)
    try:
        tree = parse(text)
    except ValueError as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise NMTError(f"{path}: cannot be read (no mapping of names to values)")
    return tree


def matches(value: Any, kind: Any) -> bool:
    """Whether a value that was parsed is of an annotated type; an int is a float, a bool is neither."""
    origin = get_origin(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(matches(value, option) for option in get_args(kind))
    if origin is list:
        return isinstance(value, list) and all(matches(item, get_args(kind)[0]) for item in value)
    if origin is dict:
        of_keys, of_values = get_args(kind)
        return isinstance(value, dict) and all(matches(k, of_keys) and matches(v, of_values) for k, v in value.items())
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float) if kind is float else isinstance(value, NoneType if kind is None else kind)


def build(cls: type[Config], tree: Any, where: str) -> Config:
    """A dataclass from a mapping of its fields; NMTError where one is unknown, missing, or of another type.

    What the class's own rules refuse is NMTError as well. `where` begins the messages.
    """
    assert is_dataclass(cls)
    if not isinstance(tree, dict):
        raise NMTError(f"{where}: no mapping of names to values")
    hints = get_type_hints(cls)
    known = {field.name: field for field in fields(cls)}
    for name in tree:
        if name not in known:
            raise NMTError(f"{where}: unknown key {str(name)[:40]!r}")
    values = {}
    for name, field in known.items():
        if name not in tree:
            if (field.default is MISSING and field.default_factory is MISSING) or field.default == "???":
                raise NMTError(f"{where}: no key {name!r}")
            continue
        values[name] = build(hints[name], tree[name], f"{where}, {name}") if is_dataclass(hints[name]) else tree[name]
        if not is_dataclass(hints[name]) and not matches(tree[name], hints[name]):
            raise NMTError(f"{where}: {name}={one_line(ValueError(repr(tree[name])))[:40]} is of another type")
    try:
        return cls(**values)
    except NMTError as error:
        raise NMTError(f"{where}: {one_line(error)}") from error


def sha256(path: Path) -> str:
    """The SHA-256 of a regular file, in hexadecimal digits."""
    check_regular(path)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise NMTError(f"{path}: cannot be read ({error.strerror})") from error
