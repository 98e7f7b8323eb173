"""Documents in reStructuredText, as docutils and Sphinx read them."""

import re
from collections import Counter
from collections.abc import Sequence

from nmt.plugins.documents import Part, Text, notice_of
from nmt.plugins.prose.rst_blocks import Body, Page
from nmt.plugins.prose.rst_inline import NAME, Inline, normalized
from nmt.plugins.prose.rst_lines import lines_of
from nmt.translation import Translated

REFERENCES = re.compile(
    rf"`([^`<>]{{1,500}})`_(?!_)|<([^<>`]{{1,500}})_>`|(?<![\w`])({NAME})_(?![\w_])"
)
"""Names of targets in references: `phrase`_, `text <name_>`_ and name_."""
TARGETS = re.compile(r"^[ \t]*\.\. _(?:`([^`\n]+)`|((?:[^:\\\n]|\\.)+)):", re.MULTILINE)
INCLUDE = re.compile(r"^[ \t]*\.\. include::", re.MULTILINE)
REFUSED = "blocks of text left untranslated because their markup would be lost"


class Rst(Text):
    """A document in reStructuredText."""

    def parts(self, text: str, target: str) -> list[Part]:
        referenced = set[str]()
        for names in REFERENCES.findall(text):
            referenced.update(map(normalized, filter(None, names)))
        targets = {normalized(quoted or plain) for quoted, plain in TARGETS.findall(text)}
        if INCLUDE.search(text):
            # An included file may define words such as clang_, often with an address, and
            # docutils refuses a second target of this name. A phrase is mostly a title.
            targets |= {name for name in referenced if " " not in name}
        self.page = Page(text, Inline(referenced), targets)
        Body(self.page, lines_of(text), base=0).read()
        self.notice = self.notice_with(0)
        return self.page.parts

    def notice_with(self, refused: int) -> str:
        left = Counter({f"{what} left untranslated": n for what, n in self.page.left.items()})
        return notice_of(*left.items(), (REFUSED, refused))

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        refused = sum(sentence.is_refused for sentence in self.page.sentences)
        self.notice = self.notice_with(refused)
        return content
