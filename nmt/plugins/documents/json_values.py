"""The texts in JSON front matter."""

import json
import re
from functools import partial

from nmt.plugins.documents.front_values import Value, Values

TOKEN = re.compile(r'(?P<string>"(?>(?:[^"\\]|\\.)*)")(?P<colon>\s*:)?|[{}\[\]]')
AFTER_OBJECT = re.compile(r"[ \t]*(?:\r?\n|\Z)")


def end_of_object(text: str) -> int:
    """The end of the line after the object at the beginning of a file; 0 if there is none."""
    try:
        _, end = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode(text)
    except (ValueError, RecursionError):
        return 0
    line_end = AFTER_OBJECT.match(text, end)
    return line_end.end() if line_end else 0


def json_values(text: str) -> Values:
    """The texts of a valid object."""
    values = list[Value]()
    path = list[str]()  # of the objects and lists around a token
    key = ""
    for token in TOKEN.finditer(text):
        if token["colon"]:
            key = json.loads(token["string"])
        elif token["string"]:
            # Items of a list have no key of their own.
            name = ".".join(filter(None, [*path, key]))
            raw = token["string"]
            write = partial(write_string, raw)
            values.append(Value(name, *token.span("string"), json.loads(raw), write))
            key = ""
        elif token[0] in "{[":
            path.append(key)
            key = ""
        elif path:
            path.pop()
    return Values(values, read_texts)


def read_texts(text: str) -> list[str] | None:
    end = end_of_object(text)
    return [value.text for value in json_values(text[:end]).values] if end else None


def write_string(raw: str, text: str) -> str:
    # Keep the style of the file: programs may read a file with escapes as ASCII.
    return json.dumps(text, ensure_ascii="\\u" in raw)
