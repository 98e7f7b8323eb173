"""Words of others within Markdown that we write: they stay words, whatever they hold."""

import re

SPECIAL = re.compile(r"([\\`*\[\]<>|~]|&(?=#?\w+;))")


def plain(text: object) -> str:
    """A text on one line, within a sentence, a heading or a table: no HTML, link or cell of its own."""
    words = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in one_line(text))
    return SPECIAL.sub(r"\\\1", words)


def code(text: object) -> str:
    """A text on one line as code, within a sentence; in a table it needs `cell`, too."""
    line = one_line(text)
    marks = "`" * (longest_run(line) + 1)
    blank = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{marks}{blank}{line}{blank}{marks}"


def block(text: str) -> str:
    """A text of several lines as code."""
    fence = "`" * max(3, longest_run(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def cell(markdown: str) -> str:
    """What is Markdown already, within a table."""
    return markdown.replace("|", "\\|")


def one_line(text: object) -> str:
    return " ".join(str(text).split())


def longest_run(text: str) -> int:
    """Backquotes in a row at most."""
    return max((len(run) for run in re.findall("`+", text)), default=0)
