"""The texts in YAML front matter, which PyYAML parses (https://yaml.org/spec/1.1)."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import yaml

from nmt.plugins.documents.front_values import Unreadable, Value, Values

TEXT = "tag:yaml.org,2002:str"
BLOCK = re.compile(r"(?P<header>[|>][+-]?[ \t]*(?:#[^\r\n]*)?\r?\n)(?P<body>.*)", re.DOTALL)
"""A literal or folded scalar whose first line decides its indentation."""


class Scalar(NamedTuple):
    """A text of YAML below a path of keys."""

    name: str
    node: yaml.ScalarNode
    is_in_flow: bool
    """Whether it is in brackets or braces."""


def yaml_values(text: str, begin: int, end: int) -> Values:
    """The texts between two offsets; raise Unreadable if PyYAML cannot parse them."""
    inside = text[begin:end]
    scalars = list(scalars_of(inside))
    values = list[Value]()
    for scalar in scalars:
        node = scalar.node
        first = node.start_mark.index
        last = node.end_mark.index
        raw = inside[first:last]
        write = partial(write_scalar, raw, scalar)
        values.append(Value(scalar.name, begin + first, begin + last, node.value, write))

    def read(written: str) -> list[str] | None:
        # The lines around the front matter are the same as before.
        after = written[begin : len(written) - (len(text) - end)]
        try:
            return [scalar.node.value for scalar in scalars_of(after)]
        except Unreadable:
            return None

    return Values(values, read)


def scalars_of(text: str) -> Iterator[Scalar]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Unreadable from error
    if root is not None:
        yield from scalars_below("", root, False, set())


def scalars_below(
    name: str,
    node: yaml.Node,
    is_in_flow: bool,
    seen: set[int],
) -> Iterator[Scalar]:
    """The texts in a node; each is found once, although aliases may lead to it again."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        if node.tag == TEXT:
            yield Scalar(name, node, is_in_flow)
        return
    assert isinstance(node, yaml.CollectionNode)
    is_in_flow = is_in_flow or bool(node.flow_style)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from scalars_below(name, item, is_in_flow, seen)
        return
    for key, value in node.value:
        below = str(key.value)
        path = f"{name}.{below}" if name else below
        yield from scalars_below(path, value, is_in_flow, seen)


def write_scalar(raw: str, scalar: Scalar, text: str) -> str | None:
    """A text in the style of a scalar, which is `raw` in the file."""
    style = scalar.node.style
    if style in ("|", ">"):
        return write_block(raw, style, text)
    if style == '"':
        return double_quoted(text)
    if style == "'" and "\n" not in text:
        return single_quoted(text)
    if not style and is_plain(text, scalar.is_in_flow):
        return text
    # Quotation marks that need no escapes are easiest to read.
    if "\n" in text or ("'" in text and not re.search(r'["\\]', text)):
        return double_quoted(text)
    return single_quoted(text)


def double_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'


def single_quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def is_plain(text: str, is_in_flow: bool) -> bool:
    """Whether a text needs no quotation marks."""
    if "\n" in text:
        return False
    line = f"[{text}]" if is_in_flow else f"key: {text}"
    expected: Any = [text] if is_in_flow else {"key": text}
    try:
        return bool(yaml.safe_load(line) == expected)
    except (yaml.YAMLError, ValueError):
        return False


def write_block(raw: str, style: str, text: str) -> str | None:
    """A literal (|) or folded (>) scalar with the same header and indentation."""
    block = BLOCK.fullmatch(raw)
    if not block:
        return None
    body = block["body"]
    line_end = "\r\n" if "\r\n" in body else "\n"
    content = body.lstrip("\r\n")
    before = body[: len(body) - len(content)]
    indent = content[: len(content) - len(content.lstrip(" "))]
    after = content[len(content.rstrip()) :]
    # In a folded scalar, an empty line stands for a line break.
    break_ = line_end * 2 if style == ">" else line_end
    lines = text.strip("\n").rstrip().split("\n")
    separator = break_ + indent
    written = separator.join(lines)
    if style == "|":
        written = written.replace(f"{line_end}{indent}{line_end}", line_end * 2)
    return block["header"] + before + indent + written + after
