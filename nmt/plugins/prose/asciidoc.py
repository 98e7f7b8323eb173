"""Documents in AsciiDoc, as Asciidoctor reads them."""

from collections import Counter
from collections.abc import Sequence

from nmt.plugins.documents import Part, Text, notice_of
from nmt.plugins.prose.asciidoc_blocks import Blocks, Page
from nmt.translation import Translated

REFUSED = "blocks of text left untranslated because their markup would be lost"


class AsciiDoc(Text):
    """A document in AsciiDoc."""

    def parts(self, text: str, target: str) -> list[Part]:
        self.page = Page(text)
        Blocks(self.page, 0, len(text)).read()
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
