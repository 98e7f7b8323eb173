"""HTML inside a list or quotation of Markdown."""

from collections.abc import Sequence

from nmt.plugins.documents.declarations import Declarations
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.html import Page
from nmt.translation import Translated


class NestedPage(Part):
    """HTML inside a list or quotation, whose lines have prefixes."""

    def __init__(
        self,
        raw: str,
        begin: int,
        prefixes: Sequence[str],
        lines: Sequence[str],
        declarations: Declarations | None,
    ) -> None:
        """`raw` is the HTML at `begin` in the file; its `lines` lack their `prefixes`."""
        self.raw = raw
        self.prefixes = prefixes
        self.text = "\n".join(lines)
        self.page = Page(self.text, 0, declarations)
        self.left = self.page.left
        super().__init__(begin, begin + len(raw), self.page.lines)

    def render(self, translations: Sequence[Translated]) -> str:
        text = self.page.render(translations)
        if text == self.text:
            return self.raw
        lines = text.split("\n")
        prefixes = self.prefixes
        # Tags that moved may have line breaks, so there may be more lines or fewer.
        if len(lines) != len(prefixes):
            # A line without content may lack the blanks of the prefix.
            usual = max(prefixes[1:], key=len)
            prefixes = [prefixes[0]] + [usual] * (len(lines) - 1)
        written = [prefix + line for prefix, line in zip(prefixes, lines, strict=True)]
        line_end = "\r\n" if "\r\n" in self.raw else "\n"
        end = self.raw[len(self.raw.rstrip("\r\n")) :]
        return line_end.join(written) + end


def nested_page(
    raw: str,
    begin: int,
    content: str,
    declarations: Declarations | None,
) -> NestedPage | None:
    """The page with this content, whose lines in the file are `raw`; None if they differ."""
    in_file = raw.rstrip("\r\n").splitlines()
    lines = content.rstrip("\n").split("\n")
    if len(in_file) != len(lines):
        return None
    prefixes = list[str]()
    for whole, line in zip(in_file, lines, strict=True):
        # Tabs in the indentation may have become blanks, and then the prefix is unknown.
        if not whole.endswith(line):
            return None
        prefixes.append(whole.removesuffix(line) if line else whole)
    return NestedPage(raw, begin, prefixes, lines, declarations)
