"""Documents: which stretches of a file are translated, and how their markup goes around the translation."""

import codecs
import re
from collections.abc import Callable
from pathlib import PurePath

from nmt.config import DOCUMENTS
from nmt.errors import NMTError
from nmt.plugins.documents.document import Document, PlainText, Spliced, Translated
from nmt.plugins.documents.docx import Docx
from nmt.plugins.documents.html import read_html
from nmt.plugins.documents.languages import Direction
from nmt.plugins.documents.markdown import read_markdown
from nmt.plugins.documents.po import read_po
from nmt.plugins.documents.strings import read_srt
from nmt.plugins.documents.xliff import read_tmx, read_xliff
from nmt.text import BOM, LINE_BYTES, TOO_LONG, problem_of

__all__ = ["SUFFIXES", "WITH_LANGUAGES", "Document", "PlainText", "Translated", "read_document", "read_file"]

READERS: dict[str, Callable[[str], PlainText | Spliced]] = {
    "text": PlainText,
    "markdown": read_markdown,
    "srt": read_srt,
}
WITH_LANGUAGES: dict[str, Callable[[str, Direction], Spliced]] = {
    "html": read_html,
    "po": read_po,
    "tmx": read_tmx,
    "xliff": read_xliff,
}
MARKS = {BOM: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
CHARSETS = re.compile(r"(iso8859|cp\d|koi8|mac|gb|big5|euc|shift_jis|tis).*")
"""Those whose first 128 characters are those of ASCII, by their names in Python."""
LARGER = {"gb2312": "gb18030", "shift_jis": "cp932"}
"""What browsers take some for."""
CHARSET = re.compile(rb"<(?:\?xml|meta)[^>]*?(?:encoding|charset)\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
SUFFIXES = {".txt": "text"} | {suffix: format for format, own in DOCUMENTS.items() for suffix in own}


def decoded(format: str, content: bytes) -> tuple[str, bytes, str]:
    """A text, its byte order mark and its encoding: UTF-8, UTF-16 with a mark, or that which HTML or XML declares."""
    mark = next((mark for mark in MARKS if content.startswith(mark)), b"")
    encoding, text = MARKS.get(mark, "utf-8"), content[len(mark) :]
    found = CHARSET.search(content[:1024]) if format in ("html", "tmx", "xliff") and not mark else None
    declared = found[1].decode().lower() if found else ""
    if problem := "" if encoding.startswith("utf-16") else problem_of(content[:8192]):
        raise NMTError(problem)
    try:
        own = text.decode(encoding)
        # Whatever else this may be, its characters that are not ASCII are references.
        other = declared not in ("", "utf-8", "utf8") and text.isascii()
        return own, mark, "ascii" if other else encoding
    except UnicodeDecodeError as error:
        try:
            name = codecs.lookup(declared or "utf-8").name
            name = "cp1252" if name == "iso8859-1" and re.search(rb"[\x80-\x9f]", text) else LARGER.get(name, name)
            if CHARSETS.fullmatch(name) and (own := text.decode(name)).encode(name) == text:
                return own, mark, name
        except (LookupError, UnicodeError):
            pass
        how = "convert it with `msgconv -t UTF-8`" if format == "po" else "save it as UTF-8"
        what = (
            f"neither UTF-8 nor {declared}, as it says"
            if declared
            else f"not {encoding.upper()} at byte {error.start + 1}"
        )
        raise NMTError(f"{what}: {how}") from error


def read_document(format: str, content: bytes, target: str = "", source: str = "") -> Document:
    """The document in a file of that format; NMTError where it is damaged, or for a model of other languages."""
    document: Document
    if format == "docx":
        document = Docx(content)
    else:
        own, mark, encoding = decoded(format, content)
        read = WITH_LANGUAGES.get(format)
        text = read(own, Direction(source, target)) if read else READERS[format](own)
        text.mark, text.encoding = mark, encoding
        document = text
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
