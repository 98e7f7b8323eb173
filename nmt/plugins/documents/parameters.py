"""Parameters of tags in Markdown whose text readers see, such as title="Warning"."""

import re
from collections.abc import Iterator

from nmt.plugins.documents.extensions import NAME_OF_TAG, TAG
from nmt.plugins.documents.tags import READ

QUOTED = (
    r"\"(?P<double>(?:[^\"\\]|\\.)*)\""
    r"|'(?P<single>(?:[^'\\]|\\.)*)'"
    r"|`(?P<raw>[^`]*)`"
)
NAMED = re.compile(rf"(?<![\w-])(?P<name>[\w-]+)[ \t]*[=:][ \t]*(?:{QUOTED})", re.DOTALL)
UNNAMED = re.compile(rf"(?<=\s)(?:{QUOTED})", re.DOTALL)
# Two words with letters, which paths and addresses do not have.
TWO_WORDS = re.compile(r"[^\W\d_][^\s/]*\s+\S*[^\W\d_]")
READABLE = frozenset(READ) | {
    "attribution",
    "caption",
    "content",
    "desc",
    "description",
    "fig-alt",
    "fig-cap",
    "footer",
    "header",
    "heading",
    "label",
    "message",
    "subtitle",
    "summary",
    "tbl-cap",
    "text",
    "tooltip",
}
"""Names of parameters with text."""
OF_LOGIC = frozenset(
    [
        "assign",
        "case",
        "elif",
        "elsif",
        "extends",
        "for",
        "from",
        "if",
        "import",
        "include",
        "include_relative",
        "link",
        "param",
        "post_url",
        "ref",
        "relref",
        "render",
        "set",
        "unless",
        "when",
    ]
)
"""Tags whose values without a name are compared or lead to files."""


def count_readable(text: str) -> int:
    """The number of parameters in a line of tags, or in a tag, with text that readers see."""
    count = 0
    for value in readable_values(text):
        if any(map(str.isalpha, value)):
            count += 1
    return count


def readable_values(text: str) -> Iterator[str]:
    """The values of parameters with text, and of those without a name that have several words."""
    for parameter in NAMED.finditer(text):
        if parameter["name"].lower() in READABLE:
            yield value_of(parameter)
    for tag in TAG.finditer(text):
        name = NAME_OF_TAG.match(tag[0])
        # These tags compare values without a name, or load them as files.
        if not name or (name[1] or name[2]) in OF_LOGIC:
            continue
        # Values with a name have been looked at above.
        without_named = NAMED.sub("", tag[0])
        for parameter in UNNAMED.finditer(without_named):
            value = value_of(parameter)
            # A single word may be a name or an identifier.
            if TWO_WORDS.match(value):
                yield value


def value_of(parameter: re.Match[str]) -> str:
    return parameter["double"] or parameter["single"] or parameter["raw"] or ""
