"""Strings of PHP (https://www.php.net/manual/language.types.string.php)."""

import re

INTERPOLATED = re.compile(
    r"(?<!\\)(?:\\\\)*+(?:\$[A-Za-z_\x80-\U0010ffff{]|\{\$|\\[xue0-7])",
)
"""A variable in a string, or an escape for a character by its number."""
ESCAPE = re.compile(r"\\([\\$\"nrtvf])")
ESCAPE_IN_SINGLE = re.compile(r"\\([\\'])")
LETTERS = {"n": "\n", "r": "\r", "t": "\t", "v": "\v", "f": "\f"}
CONTROLS = {value: f"\\{letter}" for letter, value in LETTERS.items()}
TO_ESCAPE = re.compile(r"[\\\"$\n\r\t\v\f]")


def read_string(raw: str, quote: str) -> str:
    """The text of a string without its quotes; it has no variables."""
    if quote == "'":
        return ESCAPE_IN_SINGLE.sub(r"\1", raw)
    return ESCAPE.sub(lambda escape: LETTERS.get(escape[1], escape[1]), raw)


def write_string(text: str, quote: str) -> str:
    """A string with its quotes."""
    if quote == "'":
        written = re.sub(r"[\\']", r"\\\g<0>", text)
    else:
        written = TO_ESCAPE.sub(lambda sign: CONTROLS.get(sign[0], f"\\{sign[0]}"), text)
    return f"{quote}{written}{quote}"
