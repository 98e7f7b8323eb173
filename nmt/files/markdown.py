"""Escaping: text from others stays text in Markdown that we write, whatever it holds."""

import re

SPECIAL = re.compile(r"([\\`*\[\]<>|~]|&(?=#?\w+;))")


def printable(text: str) -> str:
    """A text on one line without what would move a cursor or turn the order of letters."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def plain(text: object) -> str:
    """Escape a text for a sentence, a heading or a table, on one line, so that it makes no HTML, link or cell."""
    return SPECIAL.sub(r"\\\1", printable(on_one_line(text)))


def code(text: object) -> str:
    """Format a text as inline code, on one line; a table also needs `cell`."""
    line = on_one_line(text)
    marks = "`" * (longest_backquotes(line) + 1)
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{blank}{line}{blank}{marks}"


def block(text: str) -> str:
    """Format a text as a code block."""
    fence = "`" * max(3, longest_backquotes(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def cell(markdown: str) -> str:
    """Escape Markdown for a table."""
    return markdown.replace("|", "\\|")


def on_one_line(text: object) -> str:
    return " ".join(str(text).split())


def longest_backquotes(text: str) -> int:
    """Length of the longest run of backquotes."""
    return max(map(len, re.findall("`+", text)), default=0)
