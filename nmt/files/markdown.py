"""Escape text for Markdown."""

import re

SPECIAL = re.compile(r"([\\`*\[\]<>|~]|&(?=#?\w+;))")
"""Characters with a meaning in Markdown."""


def printable(text: str) -> str:
    """Replace the control and format characters in a line."""
    # Format characters can reorder or hide the text around them, as marks of direction do.
    letters = []
    for letter in text:
        letters.append(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}")
    return "".join(letters)


def on_one_line(text: object) -> str:
    return " ".join(str(text).split())


def without_backticks(text: str) -> str:
    """Code ends at a backtick, which cannot be escaped in it."""
    return text.replace("`", "'")


def plain(text: object) -> str:
    """Escape a string for a one-line sentence, heading or table cell.

    It creates no HTML, link or cell.
    """
    return SPECIAL.sub(r"\\\1", printable(on_one_line(text)))


def code(text: object) -> str:
    """Format a string as inline code on one line; in a table, also apply `cell`."""
    return f"`{without_backticks(on_one_line(text))}`"


def block(text: str, language: str = "") -> str:
    """Format a string as a block of code."""
    return f"```{language}\n{without_backticks(text)}\n```"


def cell(markdown: str) -> str:
    """Escape Markdown for the cell of a table."""
    # In a table, a vertical bar ends the cell even inside code.
    return markdown.replace("|", "\\|")
