"""Documents: which stretches of a file are translated, and how their markup goes around the translation."""

import re
from collections.abc import Callable
from pathlib import PurePath

from nmt.config.translation import DOCUMENTS
from nmt.documents.document import Document, PlainText, Spliced, Translated
from nmt.documents.docx import Docx
from nmt.documents.html import read_html
from nmt.documents.languages import Direction
from nmt.documents.markdown import read_markdown
from nmt.documents.po import read_po
from nmt.documents.strings import read_srt
from nmt.documents.xliff import read_tmx, read_xliff
from nmt.errors import NMTError
from nmt.text.files import BOM, LINE_BYTES, TOO_LONG

__all__ = ["SUFFIXES", "WITH_LANGUAGES", "Document", "PlainText", "Translated", "read_document", "read_file"]

READERS: dict[str, Callable[[str], PlainText | Spliced]] = {
    "text": PlainText,
    "html": read_html,
    "markdown": read_markdown,
    "srt": read_srt,
}
WITH_LANGUAGES: dict[str, Callable[[str, Direction], Spliced]] = {"po": read_po, "tmx": read_tmx, "xliff": read_xliff}
CHARSET = re.compile(rb"<(?:\?xml|meta)[^>]*?(?:encoding|charset)\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
SUFFIXES = {".txt": "text"} | {suffix: format for format, own in DOCUMENTS.items() for suffix in own}


def read_document(format: str, content: bytes, target: str = "", source: str = "") -> Document:
    """The document in a file of that format; NMTError where it is damaged, or for a model of other languages."""
    declared = CHARSET.search(content[:1024]) if format in ("html", "tmx", "xliff") else None
    if declared and declared[1].lower() not in (b"utf-8", b"utf8", b"us-ascii"):
        raise NMTError(f"it says that it is in {declared[1].decode()}: save it as UTF-8, and say so in it")
    try:
        if format == "docx":
            document: Document = Docx(content)
        else:
            text = content.removeprefix(BOM).decode()
            read = WITH_LANGUAGES.get(format)
            document = read(text, Direction(source, target)) if read else READERS[format](text)
            document.mark = content[: len(BOM)] if content.startswith(BOM) else b""
    except UnicodeDecodeError as error:
        how = "convert it with `msgconv -t UTF-8`" if format == "po" else "save it as UTF-8"
        raise NMTError(f"not UTF-8 at byte {error.start + 1}: {how}") from error
    for line in document.lines:
        if len(line) > LINE_BYTES // 4 and len(line.encode()) > LINE_BYTES:
            raise NMTError(f"{line[:40]!r}: {TOO_LONG}")
    return document


def read_file(name: str, content: bytes, target: str = "", source: str = "") -> Document:
    """The document in a file, by its suffix; NMTError where that is not known, or as above."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise NMTError(f"files of this kind are not translated; {', '.join(SUFFIXES)} are")
    return read_document(SUFFIXES[suffix], content, target, source)
