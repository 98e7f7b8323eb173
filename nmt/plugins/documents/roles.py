"""Roles of MyST, such as {ref}`text <target>`."""

import re

ROLE = re.compile(
    r"(?P<role>\{(?P<role_name>[a-zA-Z][\w:.+-]{0,50})\}(?P<ticks_of_role>`+)(?!`)"
    r"(?P<argument>.{1,2000}?)(?<!`)(?P=ticks_of_role)(?!`))",
    re.DOTALL,
)
WITH_TARGET = re.compile(r"(?P<text>\S(?:[^<>`]{0,500}\S)?)\s*<[^<>]{1,500}>", re.DOTALL)
ABBREVIATION = re.compile(r"(?P<short>[^()]{1,100}?)\s*\((?P<text>[^()]{1,500})\)", re.DOTALL)
WITH_TEXT = frozenset(["del", "smallcaps", "strike", "sub", "sup", "u"])
"""Roles whose whole argument readers see as text."""
OF_FORMULAS = frozenset(["math", "eq", "code", "raw"])


def parts_of_role(role: str) -> tuple[str, str, str]:
    """A role's text that readers see, and what is before and after it.

    The text is empty if readers see none beside the role's name or address.
    """
    parts = ROLE.fullmatch(role)
    assert parts
    name = parts["role_name"].lower()
    begin, end = parts.span("argument")
    argument = parts["argument"]
    text: re.Match[str] | None = None
    if name == "abbr":
        text = ABBREVIATION.fullmatch(argument)
    elif name not in OF_FORMULAS:
        text = WITH_TARGET.fullmatch(argument)
    if text:
        end = begin + text.end("text")
        begin += text.start("text")
    elif name not in WITH_TEXT:
        return role, "", ""
    return role[:begin], role[begin:end], role[end:]
