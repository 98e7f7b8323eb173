"""Documents in reStructuredText, as docutils and Sphinx read them."""

import re

from nmt.plugins.prose.rst_blocks import Body, Page
from nmt.plugins.prose.rst_inline import NAME, Inline, normalized
from nmt.plugins.prose.rst_lines import lines_of
from nmt.plugins.prose.text_manual import TextManual

REFERENCES = re.compile(
    rf"`([^`<>]{{1,500}})`_(?!_)|<([^<>`]{{1,500}})_>`|(?<![\w`])({NAME})_(?![\w_])"
)
"""Names of targets in references: `phrase`_, `text <name_>`_ and name_."""
TARGETS = re.compile(r"^[ \t]*\.\. _(?:`([^`\n]+)`|((?:[^:\\\n]|\\.)+)):", re.MULTILINE)
INCLUDE = re.compile(r"^[ \t]*\.\. include::", re.MULTILINE)


class Rst(TextManual):
    """A document in reStructuredText."""

    def read_page(self, text: str) -> Page:
        referenced = set[str]()
        for names in REFERENCES.findall(text):
            referenced.update(map(normalized, filter(None, names)))
        targets = {normalized(quoted or plain) for quoted, plain in TARGETS.findall(text)}
        if INCLUDE.search(text):
            # An included file may define words such as clang_, often with an address, and
            # docutils refuses a second target of this name. A phrase is mostly a title.
            targets |= {name for name in referenced if " " not in name}
        page = Page(text, Inline(referenced), targets)
        Body(page, lines_of(text), base=0).read()
        return page
