"""Pages of Markdown as markdown-it reads them."""

import re
from typing import Any, NamedTuple

from markdown_it.token import Token

from nmt.plugins.documents.dialects import Dialect


class ParsedPage(NamedTuple):
    text: str

    begins: list[int]
    """The offsets of the lines that tokens count, and of the end of the text."""

    tokens: list[Token]

    env: dict[str, Any]
    """What the parser adds for inline text, such as the references that the page defines."""

    @property
    def references(self) -> dict[str, Any]:
        references: dict[str, Any] = self.env.get("references", {})
        return references

    def begin_of(self, line: int) -> int:
        """The offset of a line; after the last line, the end of the file."""
        return self.begins[min(line, len(self.begins) - 1)]


def parse_page(text: str, begin: int, dialect: Dialect) -> ParsedPage:
    """Parse a text from the offset `begin`, which is the end of its front matter."""
    # CommonMark would take front matter for a line and a heading, so the parser does not see it.
    body = text[begin:]
    # markdown-it takes \r\n, \r and \n for line ends, and its tokens count lines.
    lines = re.finditer(r"\r\n?|\n|.\Z", body)
    begins = [begin, *(begin + line.end() for line in lines)]
    env = dict[str, Any]()
    tokens = dialect.parser.parse(body, env)
    return ParsedPage(text, begins, tokens, env)
