"""Readers for files that may come from anyone: they follow no link, trust no size or depth, and run nothing.

The functions at the end keep the text of strangers text in the Markdown that we write.
"""

import hashlib
import json
import math
import os
import pickle
import re
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

import yaml

from nmt.errors import NMTError, is_out_of_memory, one_line

SMALL = 2**20  # bytes of a configuration; real ones have a few thousand
LARGE = 2**26  # bytes of a tokenizer, or another file that is read at once
DEPTH = 32  # levels of lists and mappings
VALUE_LIMIT = 2**20  # numbers, strings and tensors in a file of torch.save
SPECIAL = re.compile(r"([\\`*\[\]<>|~]|&(?=#?\w+;))")  # what Markdown would not take as text


def check_regular(path: Path) -> None:
    """Raise NMTError where a file is missing, or is a link, a folder or a device."""
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError) as error:  # the second for a name with a null byte
        raise NMTError(f"{path}: cannot be read ({getattr(error, 'strerror', error)})") from error
    if not stat.S_ISREG(mode):
        reason = "a link, which is not followed" if stat.S_ISLNK(mode) else "not a regular file"
        raise NMTError(f"{path}: cannot be read ({reason})")


@contextmanager
def opened(path: Path) -> Iterator[BufferedReader]:
    check_regular(path)
    try:
        # Should a link or a pipe take its place in between, it is neither followed nor waited for.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            yield file
    except OSError as error:
        raise NMTError(f"{path}: cannot be read ({error.strerror})") from error


def read_bytes(path: Path, limit: int = LARGE) -> bytes:
    """Read a regular file of at most `limit` bytes; NMTError for any other."""
    with opened(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise NMTError(f"{path}: larger than the {limit:,} bytes that are allowed for such a file")
    return content


def read_text(path: Path, limit: int = LARGE) -> str:
    """Read a regular file in UTF-8 of at most `limit` bytes; NMTError for any other."""
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError as error:
        raise NMTError(f"{path}: cannot be read (invalid UTF-8 at byte {error.start + 1})") from error


def sha256(path: Path) -> str:
    """The SHA-256 of a regular file, in hexadecimal digits."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_tree(tree: Any, parts: Callable[[Any], Iterable[Any]], limit: float = math.inf) -> None:
    """ValueError where a tree, whose values have these `parts`, is nested too deeply or holds too many of them."""
    level, seen = [tree], 1
    for _ in range(DEPTH):
        below: list[Any] = []
        for value in level:
            below += parts(value)
            if seen + len(below) > limit:  # now, before a list that is in here many times takes memory each time
                raise ValueError(f"it holds more than {limit:,} values")
        if not below:
            return
        level, seen = below, seen + len(below)
    raise ValueError("nested too deeply")


def plain_parts(value: Any) -> Iterable[Any]:
    """The values in a mapping or a list; ValueError for a number that is too large or not finite."""
    if isinstance(value, float | int) and not abs(value) < (2**63 if isinstance(value, int) else math.inf):
        raise ValueError(f"{str(value)[:20]} is not a finite number, or too large")
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON value of finite numbers and few levels; ValueError for anything else."""
    try:
        tree = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    check_tree(tree, plain_parts)
    return tree


class PlainLoader(yaml.SafeLoader):
    """YAML without aliases, with which a few lines could stand for billions of values."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("it holds an alias")
        return super().compose_node(parent, index)


def parse_yaml(text: str) -> Any:
    """Parse a YAML value of finite numbers and few levels; ValueError for anything else."""
    try:
        tree = yaml.load(text, PlainLoader)
    except (yaml.YAMLError, RecursionError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"not plain YAML: {one_line(error)}") from error
    check_tree(tree, plain_parts)
    return tree


def read_mapping(path: Path, parse: Callable[[str], Any], limit: int = SMALL) -> dict[str, Any]:
    """Read the mapping in a JSON or YAML file (`parse_json`, `parse_yaml`); NMTError where it holds none."""
    text = read_text(path, limit)
    try:
        tree = parse(text)
    except ValueError as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    if not isinstance(tree, dict) or not all(isinstance(key, str) for key in tree):
        raise NMTError(f"{path}: cannot be read (not a mapping of names to values)")
    return tree


def check_version(path: Path, version: Any, current: int, advice: str = "use the nmt that wrote it") -> None:
    """NMTError where a file has another format version than the current one."""
    if version != current:
        raise NMTError(f"{path}: format version {repr(version)[:20]}, but this nmt reads {current}: {advice}")


def check_members(archive: zipfile.ZipFile, size: int) -> None:
    """ValueError where the archive of torch.save in a file of `size` bytes is larger than the file, or damaged."""
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
        raise ValueError("its members are compressed, which torch.save does not do")
    if sum(member.file_size for member in archive.infolist()) > size:
        raise ValueError("it claims to hold more than the file does")
    if damaged := archive.testzip():
        raise ValueError(f"{damaged} within it is damaged: its check sum differs")


def load_plain(path: Path) -> Any:
    """Load a file of torch.save, memory-mapped; ValueError where it is damaged or holds more than plain values."""
    import torch

    def parts(value: Any) -> Iterable[Any]:
        if isinstance(value, torch.Tensor):
            # With strides of 0, a few bytes can be a tensor of any size.
            if value.layout != torch.strided or value.numel() * value.element_size() > value.untyped_storage().nbytes():
                raise ValueError("a tensor in it is larger than its bytes")
        elif value is not None and not isinstance(value, int | float | str | list | tuple | dict):
            raise ValueError(f"it holds a {type(value).__name__}, which is not a tensor, number or string")
        if isinstance(value, dict):
            return [*value, *value.values()]
        return value if isinstance(value, list | tuple) else ()

    check_regular(path)
    if not zipfile.is_zipfile(path):
        raise ValueError("it is empty, cut, or a bare pickle, which is not run")
    try:
        with zipfile.ZipFile(path) as archive:
            check_members(archive, path.stat().st_size)
        # With weights_only, a pickle can only construct tensors and containers.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:  # whose message advises to run the pickle
        raise ValueError("it holds more than plain tensors, numbers and strings") from error
    except Exception as error:  # zipfile and torch raise all kinds for a damaged archive
        if is_out_of_memory(error):
            raise  # the archive may be whole
        raise ValueError(f"it is cut or damaged: {one_line(error)}") from error
    check_tree(content, parts, VALUE_LIMIT)
    return content


def printable(text: str) -> str:
    """A text on one line without what would move a cursor or turn the order of letters."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def plain(text: object) -> str:
    """Escape a text for a sentence, a heading or a table, on one line, so that it makes no HTML, link or cell."""
    return SPECIAL.sub(r"\\\1", printable(" ".join(str(text).split())))


def code(text: object) -> str:
    """Format a text as inline code on one line; a table also needs `cell`."""
    return f"`{' '.join(str(text).split()).replace('`', chr(39))}`"


def block(text: str) -> str:
    return f"```\n{text.replace('`', chr(39))}\n```"


def cell(markdown: str) -> str:
    return markdown.replace("|", "\\|")
