"""Documents that are ZIP archives: Office Open XML, OpenDocument and EPUB; members without new text stay unchanged."""

import io
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from copy import copy
from html import unescape
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from nmt.config import NMTError, one_line, require
from nmt.plugins.documents.document import Document, Translated
from nmt.plugins.documents.html import Html
from nmt.plugins.documents.xml import Flow, Runs, parse_xml

PARTS: dict[str, type[Document]] = {
    r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml": Runs,
    r"ppt/(?:slides/slide|notesSlides/notesSlide)\d*\.xml": Runs,
    r"xl/(?:[sS]haredStrings|worksheets/[^/]+)\.xml": Runs,
    r"\w+/(?:drawings/drawing|charts/chart|diagrams/(?:data|drawing))\d*\.xml": Runs,
    r"(?:Object \d+/)?content\.xml|styles\.xml": Flow,
}
LARGEST, MOST_TAGS = 2**26, 2**20  # maximum bytes of all unpacked files; maximum XML tags
LOCKED = "save it in its current format, without a password, or convert it: soffice --convert-to docx FILE"
FORMATS = "DOCX, PPTX, XLSX, OpenDocument or EPUB file"
OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # the container of old formats and of encrypted files
UNREADABLE = (BadZipFile, EOFError, LookupError, OSError, RuntimeError, ValueError, struct.error, zlib.error)
SHEETS = re.compile(r"xl/(?:workbook|worksheets/|tables/|pivotCache/pivotCacheDef)[^/]*\.xml|content\.xml")
REFERENCES = re.compile(  # formulas, column names and filters, which contain the text of cells
    r'<(?:\w+:)?(?:f\w*|definedName)\b[^<>]*>([^<]+)<|\s(?:\w+:)?(?:formula|condition|source-field-name)="([^"]*)"'
    r'|<(?:\w+:)?(?:filter\b[^<>]*?\sval|(?:tableColumn|cacheField)\b[^<>]*?\sname)="([^"]*)"'
)


class Archive(Document):
    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content, self.members = content, dict[str, Document]()
        require(not content.startswith(OLD_OFFICE), f"protected with a password, or in an old format: {LOCKED}")
        try:
            with ZipFile(io.BytesIO(content)) as archive:
                self.files, self.comment = archive.infolist(), archive.comment
                size = sum(file.file_size for file in self.files)
                require(size <= LARGEST, f"{size:,} bytes when unpacked; the limit is {LARGEST:,}")
                # Without a size, zipfile would unpack everything that a member holds, whatever its header says.
                self.contents = {file.filename: archive.open(file).read(file.file_size + 1) for file in self.files}
        except UNREADABLE as error:  # zipfile can raise any of these
            raise NMTError(f"not a {FORMATS}, or it is damaged or encrypted: {one_line(error)}") from error
        tags = sum(content.count(b"<") for content in self.contents.values())
        require(tags <= MOST_TAGS, f"{tags:,} XML tags; the limit is {MOST_TAGS:,}: split the document")
        names = ((name, reader) for part, reader in PARTS.items() for name in self.contents if re.fullmatch(part, name))
        readers = dict(self.chapters() if "META-INF/container.xml" in self.contents else names)
        for name, reader in readers.items():
            try:
                self.members[name] = reader(self.contents[name], source, target)
            except NMTError as error:
                raise NMTError(f"{name}: {error}; if it has a password, save it without a password") from error
        require(bool(self.members), f"not a {FORMATS}, or its text is missing or encrypted")
        keep = frozenset(self.references())
        lines = (line for member in self.members.values() for line in member.lines)
        self.lines = [line for line in dict.fromkeys(lines) if line not in keep]

    def attributes(self, file: str, *names: str) -> list[list[dict[str, str]]]:
        """For each name, the attributes of a file's elements of that name."""
        require(file in self.contents, f"damaged: {file[:100]} is missing")
        elements = parse_xml(self.contents[file].decode("utf-8-sig", "replace"))
        return [[element.attributes for element in elements if element.name == name] for name in names]

    def chapters(self) -> Iterator[tuple[str, type[Document]]]:
        """A book's title, language, chapters and tables of contents."""
        [roots] = self.attributes("META-INF/container.xml", "rootfile")
        for package in filter(None, (root.get("full-path") for root in roots)):
            yield package, Flow
            references, items = self.attributes(package, "itemref", "item")
            spine = {reference.get("idref", "") for reference in references}
            for item in items:
                id, href, kind, properties = (item.get(key, "") for key in ("id", "href", "media-type", "properties"))
                name = normpath(join(dirname(package), unquote(href)))
                if id in spine or kind == "application/x-dtbncx+xml" or "nav" in properties.split():
                    require(name in self.contents, f"damaged: {name[:100]} is missing")
                    yield name, Html if "html" in kind else Flow

    def references(self) -> Iterator[str]:
        """Cell text to leave unchanged, because a formula quotes it, a filter selects it, or it names a column."""
        sheets = (content.decode(errors="replace") for name, content in self.contents.items() if SHEETS.fullmatch(name))
        for text in (unescape("".join(texts)) for sheet in sheets for texts in REFERENCES.findall(sheet)):
            for part in re.findall('"([^"]*)"', text) or [text]:
                yield " ".join(re.sub("_x000[9AaDd]_", " ", part).split())

    def join(self, translations: Sequence[Translated]) -> bytes:
        new, contents = dict(zip(self.lines, translations, strict=True)), self.contents.copy()
        for name, member in self.members.items():
            contents[name] = member.join([new.get(line, Translated(line)) for line in member.lines])
        if contents == self.contents:
            return self.content
        written = io.BytesIO()
        with ZipFile(written, "w") as archive:
            archive.comment = self.comment
            for file in self.files:
                archive.writestr(copy(file), contents[file.filename])
        return written.getvalue()
