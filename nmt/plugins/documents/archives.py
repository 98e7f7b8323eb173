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

from nmt.config import NMTError, require
from nmt.errors import one_line
from nmt.plugins.documents.document import Document, Translated
from nmt.plugins.documents.html import Html
from nmt.plugins.documents.office import Runs
from nmt.plugins.documents.xml import Flow, parse_xml

PARTS: dict[str, type[Document]] = {
    r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml": Runs,
    r"ppt/(?:slides/slide|notesSlides/notesSlide)\d*\.xml": Runs,
    r"xl/(?:[sS]haredStrings|worksheets/[^/]+)\.xml": Runs,
    r"\w+/(?:drawings/drawing|charts/chart|diagrams/(?:data|drawing))\d*\.xml": Runs,
    r"(?:Object \d+/)?content\.xml|styles\.xml": Flow,
}
LARGEST, MOST_TAGS = 2**26, 2**20  # bytes of all files when unpacked; tags in them
SIGNED = "signed, and a translation would break the signature: remove the signature first"
SIGNATURE = re.compile("_xmlsignatures/.*|META-INF/.*signatures.xml")
LOCKED = "protected with a password, or in an old format: save it in its current format, without a password"
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
        require(not content.startswith(OLD_OFFICE), LOCKED)
        try:
            with ZipFile(io.BytesIO(content)) as archive:
                self.files, self.comment = archive.infolist(), archive.comment
                size = sum(file.file_size for file in self.files)
                require(size <= LARGEST, f"{size:,} bytes when unpacked; the limit is {LARGEST:,}")
                # Without a size, zipfile would unpack everything that a member holds, whatever its header says.
                self.contents = {file.filename: archive.open(file).read(file.file_size + 1) for file in self.files}
        except UNREADABLE as error:  # zipfile can raise any of these
            raise NMTError(f"not a {FORMATS}, or it is damaged or encrypted: {one_line(error)}") from error
        require(len(self.contents) == len(self.files), "damaged: two of its files have the same name")
        for name in self.contents:
            require(not re.match(r"/|(.*/)?\.\./", name), f"contains a file outside its folder: {name[:40]!r}")
            require(not SIGNATURE.fullmatch(name), SIGNED)
        names = ((name, reader) for part, reader in PARTS.items() for name in self.contents if re.fullmatch(part, name))
        readers = dict(self.chapters() if "META-INF/container.xml" in self.contents else names)
        tags = sum(self.contents[name].count(b"<") for name in readers)
        require(tags <= MOST_TAGS, f"{tags:,} XML tags; the limit is {MOST_TAGS:,}: split the document")
        for name, reader in readers.items():
            try:
                self.members[name] = reader(self.contents[name], source, target)
            except NMTError as error:
                raise NMTError(f"{name}: {error}, or the file is {LOCKED}") from error
        require(bool(self.members), f"not a {FORMATS}, or its text is missing or encrypted")
        keep = frozenset(self.references())
        lines = (line for member in self.members.values() for line in member.lines)
        self.lines = [line for line in dict.fromkeys(lines) if line not in keep]

    def read(self, name: str) -> bytes:
        require(name in self.contents, f"damaged: {name[:100]} is missing")
        return self.contents[name]

    def chapters(self) -> Iterator[tuple[str, type[Document]]]:
        """A book's title, language, chapters and tables of contents."""
        for root in parse_xml(self.read("META-INF/container.xml").decode()).iter():
            if not (package := root.get("full-path")):
                continue
            yield package, Flow
            elements = [*parse_xml(self.read(package).decode()).iter()]
            spine = {element.get("idref") for element in elements if element.name == "itemref"}
            for item in (element for element in elements if element.name == "item"):
                name, kind = normpath(join(dirname(package), unquote(item.get("href")))), item.get("media-type")
                is_contents = "nav" in item.get("properties").split() or kind == "application/x-dtbncx+xml"
                if is_contents or item.get("id") in spine:
                    self.read(name)
                    yield name, Html if "html" in kind else Flow

    def references(self) -> Iterator[str]:
        """Text of cells to leave unchanged: formulas quote it, filters select it, or it names a column."""
        for match in (
            match
            for name in self.contents
            if SHEETS.fullmatch(name)
            for match in REFERENCES.finditer(self.contents[name].decode(errors="replace"))
        ):
            text = unescape(match[match.lastindex])
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
