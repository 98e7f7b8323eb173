"""JSON, parsed with the offsets of all values, so that the rest of a file keeps its bytes."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nmt.plugins.documents import Part, check_json

JSON_STRING = re.compile(r'"(?>(?:[^"\\]|\\.)*)"')
TOKEN = re.compile(rf'{JSON_STRING.pattern}|[{{}}\[\],:]|[^\s{{}}\[\],:"]++')


@dataclass(slots=True)
class Node:
    """A value; `kind` is its first character."""

    kind: str
    begin: int
    end: int = 0
    members: list["Member"] = field(default_factory=list)
    """The members of an object, or the items of an array, which have no name."""

    def get(self, name: str) -> "Node | None":
        """The value of the last member with a name, which is the one that programs read."""
        for member in reversed(self.members):
            if member.name == name:
                return member.value
        return None


@dataclass(slots=True)
class Member:
    """A name and its value; `begin` is the offset of the name."""

    name: str
    begin: int
    value: Node


def parse_json(text: str) -> Node:
    """The value that a file contains; NMTError if the file is not valid JSON."""
    # First, because the loop below relies on the order of tokens.
    check_json(text)
    document = Node("[", 0)
    opened = [document]
    name = ""
    begin = -1  # of the name before a value
    for token in TOKEN.finditer(text):
        sign = token[0][0]
        if sign in "}]":
            opened.pop().end = token.end()
            continue
        if sign in ",:":
            continue
        if sign == '"' and opened[-1].kind == "{" and begin < 0:
            name = json.loads(token[0])
            begin = token.start()
            continue
        node = Node(sign, token.start(), token.end())
        member_begin = begin if begin >= 0 else token.start()
        opened[-1].members.append(Member(name, member_begin, node))
        name = ""
        begin = -1
        if sign in "{[":
            opened.append(node)
    return document.members[0].value


def all_members(node: Node) -> Iterator[Member]:
    """All members of objects and items of arrays in a value, in order."""
    # A list instead of recursion, because a file may be nested deeply.
    waiting = [*reversed(node.members)]
    while waiting:
        member = waiting.pop()
        yield member
        waiting += reversed(member.value.members)


def without(text: str, members: Sequence[Member], dropped: Sequence[Member]) -> list[Part]:
    """The parts that remove some members of an object, with their commas, but not all members."""
    parts = list[Part]()
    names = {member.begin for member in dropped}
    kept = [member.begin for member in members if member.begin not in names]
    for index, member in enumerate(members):
        if member.begin not in names:
            continue
        is_followed = member.begin < kept[-1]
        if is_followed:
            parts.append(Part(member.begin, members[index + 1].begin))
        else:
            parts.append(Part(members[index - 1].value.end, member.value.end))
    return parts


def read_string(text: str, node: Node) -> str:
    return str(json.loads(text[node.begin : node.end]))


def write_string(text: str, before: str) -> str:
    """A string of JSON in the style of another, which it replaces."""
    # Programs may read a file with escapes as ASCII.
    written = json.dumps(text, ensure_ascii="\\u" in before)
    return written.replace("/", "\\/") if "\\/" in before else written
