"""Text of others within Markdown that we write: it stays text, whatever it holds."""

import re

SPECIAL = re.compile(r"([\\`*\[\]<>|~]|&(?=#?\w+;))")


def plain(text: object) -> str:
    """Escape a text for a sentence, a heading or a table, on one line: no HTML, link or cell of its own."""
    printable = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in on_one_line(text))
    return SPECIAL.sub(r"\\\1", printable)


def code(text: object) -> str:
    """Write a text as code within a sentence, on one line; in a table it needs `cell`, too."""
    line = on_one_line(text)
    marks = "`" * (longest_backquotes(line) + 1)
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{blank}{line}{blank}{marks}"


def block(text: str) -> str:
    """Write a text of several lines as code."""
    fence = "`" * max(3, longest_backquotes(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def cell(markdown: str) -> str:
    """Escape Markdown for a table."""
    return markdown.replace("|", "\\|")


def on_one_line(text: object) -> str:
    return " ".join(str(text).split())


def longest_backquotes(text: str) -> int:
    """The most backquotes in a row."""
    return max(map(len, re.findall("`+", text)), default=0)
