"""Parameters of tags in Markdown whose text readers see, such as title="Warning"."""

import re
from collections.abc import Iterator

from nmt.plugins.documents.extensions import NAME_OF_TAG, TAG
from nmt.plugins.documents.html import READ

QUOTED = r"\"(?P<double>(?:[^\"\\]|\\.)*)\"|'(?P<single>(?:[^'\\]|\\.)*)'|`(?P<raw>[^`]*)`"
NAMED = re.compile(rf"(?<![\w-])(?P<name>[\w-]+)[ \t]*[=:][ \t]*(?:{QUOTED})", re.DOTALL)
UNNAMED = re.compile(rf"(?<=\s)(?:{QUOTED})", re.DOTALL)
WORDS = re.compile(r"[^\W\d_][^\s/]*\s+\S*[^\W\d_]")
READABLE = frozenset(READ) | {
    *("caption", "label", "summary", "description", "desc", "heading", "header", "subtitle"),
    *("text", "tooltip", "message", "content", "footer", "attribution"),
}
"""Names of parameters with text."""
OF_LOGIC = frozenset(
    [
        *("if", "elsif", "elif", "unless", "for", "case", "when", "assign", "set", "include"),
        *("include_relative", "render", "extends", "import", "from", "ref", "relref", "link"),
        *("post_url", "param"),
    ]
)
"""Tags whose values without a name are compared or lead to files."""


def count_readable(text: str) -> int:
    """How many parameters in a line of tags, or in a tag, contain text that readers see."""
    return sum(any(map(str.isalpha, value)) for value in readable_values(text))


def readable_values(text: str) -> Iterator[str]:
    for parameter in NAMED.finditer(text):
        if parameter["name"].lower() in READABLE:
            yield value_of(parameter)
    for tag in TAG.finditer(text):
        name = NAME_OF_TAG.match(tag[0])
        if not name or (name[1] or name[2]) in OF_LOGIC:
            continue
        without_named = NAMED.sub("", tag[0])
        # A single word may be a name or an identifier.
        yield from filter(WORDS.match, map(value_of, UNNAMED.finditer(without_named)))


def value_of(parameter: re.Match[str]) -> str:
    return parameter["double"] or parameter["single"] or parameter["raw"] or ""
