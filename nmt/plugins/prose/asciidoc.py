"""Documents in AsciiDoc, as Asciidoctor reads them."""

from nmt.plugins.prose.asciidoc_blocks import Blocks, Page
from nmt.plugins.prose.text_manual import TextManual


class AsciiDoc(TextManual):
    """A document in AsciiDoc."""

    def read_page(self, text: str) -> Page:
        page = Page(text)
        Blocks(page, 0, len(text)).read()
        return page
