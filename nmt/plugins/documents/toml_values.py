"""The texts in TOML front matter, which tomllib checks (https://toml.io/en/v1.0.0)."""

import json
import re
import tomllib
from collections.abc import Iterator
from functools import partial
from typing import Any

from nmt.plugins.documents.front_values import Unreadable, Value, Values

BASIC = r'"(?>(?:[^"\\\n]|\\.)*)"'
LITERAL = r"'[^'\n]*'"
LONG_BASIC = r'"""(?>(?:[^"\\]|\\.|"(?!""))*)"{3,5}'
LONG_LITERAL = r"'''(?>(?:[^']|'(?!''))*)'{3,5}"
STRING = rf"{LONG_BASIC}|{LONG_LITERAL}|{BASIC}|{LITERAL}"
KEY_PART = rf"(?:[\w-]+|{BASIC}|{LITERAL})"
KEY = rf"{KEY_PART}(?>(?:[ \t]*\.[ \t]*{KEY_PART})*)"
TOKEN = re.compile(
    rf"^[ \t]*\[\[?[ \t]*(?P<table>{KEY})[ \t]*\]"
    rf"|^[ \t]*(?P<key>{KEY})[ \t]*="
    rf"|(?P<string>{STRING})"
    r"|(?P<comment>#[^\n]*)",
    re.DOTALL | re.MULTILINE,
)
BREAK = r"(?:\r?\n)"


def toml_values(text: str, begin: int, end: int) -> Values:
    """The texts between two offsets; raise Unreadable if they are not valid TOML."""
    texts_of(text[begin:end])
    values = list[Value]()
    table = ""
    key = ""
    for token in TOKEN.finditer(text, begin, end):
        if token["table"]:
            table = name_of(token["table"]) + "."
        elif token["key"]:
            key = name_of(token["key"])
        elif token["string"]:
            raw = token["string"]
            [value] = tomllib.loads(f"key = {raw}").values()
            write = partial(write_string, raw)
            values.append(Value(table + key, *token.span(), value, write))

    def read(written: str) -> list[str] | None:
        after = written[begin : len(written) - (len(text) - end)]
        try:
            return in_order_of(values, texts_of(after))
        except Unreadable:
            return None

    if in_order_of(values, texts_of(text[begin:end])) is None:
        raise Unreadable  # strings in places that the tokens above do not know
    return Values(values, read)


def in_order_of(values: list[Value], texts: dict[str, list[str]]) -> list[str] | None:
    """The texts of a file, by their names, in the order of values; None if the names differ."""
    iterators = {name: iter(of_name) for name, of_name in texts.items()}
    result = list[str]()
    for value in values:
        text = next(iterators.get(value.name, iter(())), None)
        if text is None:
            return None
        result.append(text)
    size = sum(map(len, texts.values()))
    return result if size == len(values) else None


def texts_of(text: str) -> dict[str, list[str]]:
    """The texts of a file by their names."""
    try:
        tree = tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Unreadable from error
    texts = dict[str, list[str]]()
    for name, value in texts_below("", tree):
        texts.setdefault(name, []).append(value)
    return texts


def texts_below(name: str, node: Any) -> Iterator[tuple[str, str]]:
    if isinstance(node, str):
        yield name, node
    elif isinstance(node, list):
        for item in node:
            yield from texts_below(name, item)
    elif isinstance(node, dict):
        for key, value in node.items():
            yield from texts_below(f"{name}.{key}" if name else key, value)


def name_of(key: str) -> str:
    """A dotted key without quotation marks and blanks."""
    parts = re.findall(KEY_PART, key)
    return ".".join(part.strip("\"'") for part in parts)


def write_string(raw: str, text: str) -> str:
    """A text with the quotation marks of a string, which is `raw` in the file."""
    for mark in ('"""', "'''"):
        if raw.startswith(mark):
            # A line break behind the opening mark does not belong to the text.
            opening = re.match(rf"{mark}{BREAK}?", raw)
            assert opening
            if mark == "'''" and mark not in text and not text.endswith("'"):
                return opening[0] + text + mark
            escaped = text.replace("\\", "\\\\").replace('"', '\\"')
            return opening[0].replace("'", '"') + escaped + '"""'
    if raw.startswith("'") and not re.search(r"['\x00-\x08\x0a-\x1f\x7f]", text):
        return f"'{text}'"
    return json.dumps(text, ensure_ascii=False)
