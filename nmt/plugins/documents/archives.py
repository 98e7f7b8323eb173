"""Documents that are ZIP archives: Office Open XML, OpenDocument and EPUB.

Members without new text stay unchanged.
"""

import io
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile, ZipInfo

from nmt.config import NMTError, one_line
from nmt.plugins.documents.archive_counts import readings_in, texts_left
from nmt.plugins.documents.cell_texts import referenced_texts
from nmt.plugins.documents.document import notice_of
from nmt.plugins.documents.elements import Element, parse_xml
from nmt.plugins.documents.html import Html
from nmt.plugins.documents.office import Runs
from nmt.plugins.documents.properties import Contents, Languages, Package, Properties
from nmt.plugins.documents.readings import READINGS_LEFT_OUT
from nmt.plugins.documents.xml import Flow
from nmt.translation import Document, Translated

Readers = dict[str, type[Document]]
NamedReaders = Iterator[tuple[str, type[Document]]]
"""The names of files with their readers."""
TEXTS: Readers = {
    r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml": Runs,
    r"ppt/(?:slides/slide|notesSlides/notesSlide)\d*\.xml": Runs,
    r"xl/(?:[sS]haredStrings|worksheets/[^/]+)\.xml": Runs,
    r"\w+/(?:drawings/drawing|charts/chart(?:Ex)?|diagrams/(?:data|drawing))\d*\.xml": Runs,
    r"(?:Object \d+/)?content\.xml|styles\.xml": Flow,
}
"""Patterns for files with the text of a document -> their readers."""
BESIDE: Readers = {
    r"docProps/core\.xml|meta\.xml": Properties,
    (
        r"word/styles\.xml|ppt/presentation\.xml"
        r"|ppt/(?:slideMaster|slideLayout|notesMaster)s/[^/]+\.xml"
    ): Languages,
}
"""Files without the text of a document; they stay unchanged if they are damaged."""
CONTAINER = "META-INF/container.xml"
"""The file of a book that names its package."""
TABLE_OF_CONTENTS = "application/x-dtbncx+xml"
LARGEST = 2**26
"""Maximum bytes of all unpacked files."""
MOST_TAGS = 2**20
"""Maximum XML tags of all files, which bounds memory and time.

A long book has about half a million.
"""
OLD_OFFICE = b"\xd0\xcf\x11\xe0"
"""The first bytes of old formats and of encrypted files."""
LOCKED = (
    "save it in its current format, without a password, "
    "or convert it: soffice --convert-to docx FILE"
)
FORMATS = "DOCX, PPTX, XLSX, OpenDocument or EPUB file"
UNREADABLE = (
    BadZipFile,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    ValueError,
    struct.error,
    zlib.error,
)
"""The exceptions that zipfile may raise for a damaged or encrypted archive."""
REPEATED = "cell texts that formulas, filters or table headers contain"
DAMAGED = "damaged properties and styles"


@dataclass(frozen=True)
class Unpacked:
    """The files of an archive."""

    entries: list[ZipInfo]
    comment: bytes
    contents: dict[str, bytes]


class Archive(Document):
    """An office document or a book."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content = content
        self.unpacked = unpack(content)
        contents = self.unpacked.contents
        self.left = texts_left(contents)
        self.members = dict[str, Document]()
        """The files of the archive with text, by their names."""
        # A book has a container. Its text is in the files that its package lists, whatever their
        # names.
        texts = chapters(contents) if CONTAINER in contents else named(contents, TEXTS)
        # A dictionary, because a file that is listed twice is read once.
        for name, reader in dict(texts).items():
            try:
                # OpenDocument encrypts the files in an archive, which are then not XML.
                self.members[name] = reader(contents[name], source, target)
            except NMTError as error:
                raise NMTError(
                    f"{name}: {error}; if it has a password, save it without a password"
                ) from error
        if not self.members:
            raise NMTError(f"not a {FORMATS}, or its text is missing or encrypted")
        # Properties and styles have little text, so damaged ones are only counted.
        for name, reader in named(contents, BESIDE):
            try:
                self.members[name] = reader(contents[name], source, target)
            except NMTError:
                self.left[DAMAGED] += 1
        for member in self.members.values():
            if isinstance(member, Html):
                self.left.update(member.left)
        self.lines = self.lines_to_translate()

    def lines_to_translate(self) -> list[str]:
        """Each line of the members once, except for those that formulas repeat."""
        # In a spreadsheet, the same text may be in thousands of cells; it is translated once.
        lines = dict[str, None]()
        for member in self.members.values():
            lines.update(dict.fromkeys(member.lines))
        # Texts that a formula compares with must stay, wherever they are.
        fixed = referenced_texts(self.unpacked.contents)
        result = [line for line in lines if line not in fixed]
        self.left[REPEATED] += len(lines) - len(result)
        return result

    def join(self, translations: Sequence[Translated]) -> bytes:
        new = dict(zip(self.lines, translations, strict=True))
        old_contents = self.unpacked.contents
        contents = old_contents.copy()
        for name, member in self.members.items():
            # Text that was not translated, such as in a formula, is its own translation.
            translated = [new.get(line, Translated(line)) for line in member.lines]
            contents[name] = member.join(translated)
        readings = readings_in(old_contents) - readings_in(contents)
        left = [(f"{what} left untranslated", number) for what, number in self.left.items()]
        self.notice = notice_of(*left, (READINGS_LEFT_OUT, readings))
        if contents == old_contents:
            return self.content  # written again, the same files could have other bytes
        written = io.BytesIO()
        # EPUB and OpenDocument require "mimetype" as the first file, without compression. Entries
        # keep their order and their compression.
        with ZipFile(written, "w") as archive:
            archive.comment = self.unpacked.comment
            for entry in self.unpacked.entries:
                # Writing changes an entry, but `join` may be called again.
                archive.writestr(copy(entry), contents[entry.filename])
        return written.getvalue()


def unpack(content: bytes) -> Unpacked:
    """Unpack an archive; NMTError if it is damaged, encrypted or too large."""
    # Office encrypts documents in a container of the old formats, not in a ZIP archive.
    if content.startswith(OLD_OFFICE):
        raise NMTError(f"protected with a password, or in an old format: {LOCKED}")
    contents = dict[str, bytes]()
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            # A small archive may unpack to gigabytes.
            size = sum(entry.file_size for entry in entries)
            if size > LARGEST:
                raise NMTError(f"{size:,} bytes when unpacked; the limit is {LARGEST:,}")
            for entry in entries:
                # Without a size, zipfile would unpack everything that a member holds, whatever its
                # header says.
                contents[entry.filename] = archive.open(entry).read(entry.file_size + 1)
            unpacked = Unpacked(entries, archive.comment, contents)
    except UNREADABLE as error:
        raise NMTError(
            f"not a {FORMATS}, or it is damaged or encrypted: {one_line(error)}"
        ) from error
    # As an object, a tag needs much more memory than in the file.
    tags = sum(file.count(b"<") for file in contents.values())
    if tags > MOST_TAGS:
        raise NMTError(f"{tags:,} XML tags; the limit is {MOST_TAGS:,}: split the document")
    return unpacked


def named(contents: dict[str, bytes], readers: Readers) -> NamedReaders:
    """The files with a reader."""
    for pattern, reader in readers.items():
        for name in contents:
            if re.fullmatch(pattern, name):
                yield name, reader


def chapters(contents: dict[str, bytes]) -> NamedReaders:
    """A book's title, language, chapters and tables of contents, with their readers."""
    # A container may list a package many times, but each is parsed only once.
    packages = dict[str, None]()
    for element in elements_of(contents, CONTAINER):
        if element.name == "rootfile":
            packages[element.attributes.get("full-path", "")] = None
    for package in packages:
        if package:
            yield package, Package
            yield from chapters_of(contents, package)


def chapters_of(contents: dict[str, bytes], package: str) -> NamedReaders:
    """The chapters and tables of contents that a package of a book lists."""
    elements = elements_of(contents, package)
    references = [element for element in elements if element.name == "itemref"]
    spine = {reference.attributes.get("idref", "") for reference in references}
    for element in elements:
        if element.name != "item":
            continue
        attributes = element.attributes
        kind = attributes.get("media-type", "")
        # Chapters are in the spine. The navigation does not have to be.
        is_chapter = attributes.get("id", "") in spine
        is_navigation = "nav" in attributes.get("properties", "").split()
        if is_chapter or is_navigation or kind == TABLE_OF_CONTENTS:
            # An address is relative to the package, and may have escapes as in a URL.
            href = unquote(attributes.get("href", ""))
            name = normpath(join(dirname(package), href))
            if name not in contents:
                raise NMTError(f"damaged: {name[:100]} is missing")
            yield name, Html if "html" in kind else Contents


def elements_of(contents: dict[str, bytes], file: str) -> list[Element]:
    """The elements of an XML file of a book, which may be missing if the book is damaged."""
    if file not in contents:
        raise NMTError(f"damaged: {file[:100]} is missing")
    return parse_xml(contents[file].decode("utf-8-sig", "replace"))
