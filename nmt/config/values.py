"""Values of keys: their types, and how messages show them."""

import os
from types import UnionType
from typing import Any, get_args, get_origin

from nmt.errors import SettingError

SHOWN = 60
"""The maximum number of characters of a user's text in a message."""
LONGEST_NAME = 200
"""Maximum bytes in a name; file systems allow 255, and nmt adds suffixes."""

exists = os.path.exists  # unlike Path.exists, False for a string that cannot be a file name


def is_number(value: Any) -> bool:
    # In Python, a bool is an int.
    return isinstance(value, int | float) and not isinstance(value, bool)


def matches(value: Any, kind: Any) -> bool:
    """True if a value matches a type annotation.

    An int also matches float, but a bool matches neither.
    """
    arguments = get_args(kind)
    if isinstance(kind, UnionType):
        return any(matches(value, option) for option in arguments)
    # `isinstance` does not accept types such as list[str], alone or in a union.
    if get_origin(kind) is list:
        [item_kind] = arguments
        return isinstance(value, list) and all(matches(item, item_kind) for item in value)
    if get_origin(kind) is dict:
        return isinstance(value, dict) and items_match(value, *arguments)
    if kind is Any:
        return True
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float)
    return isinstance(value, kind)


def items_match(mapping: dict[Any, Any], key_kind: Any, value_kind: Any) -> bool:
    for key, value in mapping.items():
        if not matches(key, key_kind) or not matches(value, value_kind):
            return False
    return True


def in_words(value: Any) -> str:
    """Format a value as a user would write it after KEY=."""
    if isinstance(value, list | tuple):
        return f"[{','.join(map(in_words, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "null"
    return str(value)


def shown(value: Any) -> str:
    """A value on one line without control characters, cut to SHOWN characters."""
    line = " ".join(str(value).split())
    # The value may come from somebody else's file, and control characters can rewrite a terminal.
    printable = "".join(letter for letter in line if letter.isprintable())
    return printable if len(printable) <= SHOWN else f"{printable[:SHOWN]}..."


def as_list(value: Any) -> list[str]:
    """The items of a list as strings; of another value, only itself; of None, nothing."""
    if value is None:
        return []
    items = value if isinstance(value, list | tuple) else [value]
    return [str(item) for item in items]


def check_name(key: str, name: str) -> None:
    """Raise NMTError unless each part of a path can be the name of a file or folder."""
    for part in name.split("/"):
        # An empty part would be an absolute path, and `..` begins with a dot: no name leaves its
        # folder.
        is_blank = not part.strip() or not part.isprintable()
        is_hidden = part.startswith(".")
        if is_blank or is_hidden or len(part.encode()) > LONGEST_NAME:
            raise SettingError(
                "must be a file name of printable characters without a leading dot",
                key=key,
                value=repr(shown(name)),
            )
