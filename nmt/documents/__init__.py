"""Documents: which stretches of a file are translated, and how their markup goes around the translation."""

from collections.abc import Callable, Sequence

from nmt.documents.document import Document, PlainText, Translated
from nmt.documents.html import read_html
from nmt.documents.markdown import read_markdown
from nmt.documents.po import read_po
from nmt.documents.strings import read_srt
from nmt.errors import NMTError
from nmt.text.files import BOM, LINE_BYTES, TOO_LONG

__all__ = ["READERS", "Document", "PlainText", "Translated", "read_document"]

READERS: dict[str, Callable[[str], Document]] = {
    "text": PlainText,
    "html": read_html,
    "markdown": read_markdown,
    "po": read_po,
    "srt": read_srt,
}
"""By the name of a format, as in nmt.config.translation."""


class File:
    """A document with the byte order mark before it."""

    def __init__(self, document: Document) -> None:
        self.document, self.lines = document, document.lines

    def join(self, translations: Sequence[Translated]) -> bytes:
        return BOM + self.document.join(translations)


def read_document(format: str, content: bytes) -> Document:
    """The document in a file of that format; NMTError where it is damaged."""
    try:
        document = READERS[format](content.removeprefix(BOM).decode())
    except UnicodeDecodeError as error:
        raise NMTError(f"not UTF-8 at byte {error.start + 1}: save it as UTF-8") from error
    for line in document.lines:
        if len(line) > LINE_BYTES // 4 and len(line.encode()) > LINE_BYTES:
            raise NMTError(f"{line[:40]!r}: {TOO_LONG}")
    return File(document) if content.startswith(BOM) else document
