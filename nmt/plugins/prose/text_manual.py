"""The base of manuals in plain text, whose sentences may lose their markup in a translation."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from nmt.plugins.documents import Part, Text, notice_of
from nmt.translation import Translated

REFUSED = "blocks of text left untranslated because their markup would be lost"


class ReadPage(Protocol):
    """A document that has been read."""

    parts: list[Part]
    sentences: list[Any]
    """The parts that know, after they have been written, whether a translation was refused."""
    left: Counter[str]
    """The number of texts that stay untranslated, by their kind."""


class TextManual(Text):
    """A document whose notice counts what stays untranslated, also because of its translation."""

    @abstractmethod
    def read_page(self, text: str) -> ReadPage:
        """Read a document."""

    def parts(self, text: str, target: str) -> list[Part]:
        self.page = self.read_page(text)
        self.notice = self.notice_with(0)
        return self.page.parts

    def notice_with(self, refused: int) -> str:
        left = Counter[str]()
        for what, number in self.page.left.items():
            left[f"{what} left untranslated"] = number
        return notice_of(*left.items(), (REFUSED, refused))

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        refused = sum(sentence.is_refused for sentence in self.page.sentences)
        self.notice = self.notice_with(refused)
        return content
