"""Documents that are ZIP archives: Office Open XML, OpenDocument and EPUB; members without new text stay unchanged."""

import io
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from copy import copy
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from lxml import etree

from nmt.config import NMTError, require
from nmt.errors import one_line
from nmt.files import LARGE
from nmt.plugins.documents.document import Document, Translated
from nmt.plugins.documents.html import Html
from nmt.plugins.documents.office import Runs
from nmt.plugins.documents.xml import Flow, Tree, parse_xml

PARTS: dict[str, type[Document]] = {
    r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml": Runs,
    r"ppt/(?:slides/slide|notesSlides/notesSlide)\d*\.xml": Runs,
    r"xl/(?:[sS]haredStrings|worksheets/[^/]+)\.xml": Runs,
    r"\w+/(?:drawings/drawing|charts/chart|diagrams/(?:data|drawing))\d*\.xml": Runs,
    r"(?:Object \d+/)?content\.xml|styles\.xml": Flow,
}
UNUSUAL = "compressed by an unusual method: save it again in an office program"
SIGNED = "signed, and a translation would break the signature: remove the signature first"
SIGNATURE = re.compile("_xmlsignatures/.*|META-INF/.*signatures.xml")
LOCKED = "protected with a password, or in an old format: save it in its current format, without a password"
FORMATS = "DOCX, PPTX, XLSX, OpenDocument or EPUB file"
OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # the container of old formats and of encrypted files
UNREADABLE = (BadZipFile, EOFError, LookupError, OSError, RuntimeError, ValueError, struct.error, zlib.error)
ENCRYPTED = etree.XPath("//@URI | //*[*[local-name() = 'encryption-data']]/@*[local-name() = 'full-path']")
SHEETS = re.compile(r"xl/(?:workbook|worksheets/|tables/|pivotCache/pivotCacheDef)[^/]*\.xml|content\.xml")
REFERENCES = etree.XPath(  # formulas, column names and filters, which contain the text of cells
    "//*[starts-with(local-name(), 'f') or local-name() = 'definedName']/text() | //@*[local-name() = 'formula'"
    " or local-name() = 'condition' or local-name() = 'source-field-name'] | //*[local-name() = 'filter']/@val"
    " | //*[local-name() = 'tableColumn' or local-name() = 'cacheField']/@name"
)


class Archive(Document):
    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content, self.members = content, dict[str, Document]()
        require(not content.startswith(OLD_OFFICE), LOCKED)
        try:
            with ZipFile(io.BytesIO(content)) as archive:
                self.files, self.comment = archive.infolist(), archive.comment
                size = sum(file.file_size for file in self.files)
                require(size <= LARGE, f"{size:,} bytes when unpacked; the limit is {LARGE:,}")
                require({file.compress_type for file in self.files} <= {ZIP_STORED, ZIP_DEFLATED}, UNUSUAL)
                # Without a size, zipfile would unpack everything that a member holds, whatever its header says.
                self.contents = [archive.open(file).read(file.file_size + 1) for file in self.files]
        except UNREADABLE as error:  # zipfile can raise any of these
            raise NMTError(f"not a {FORMATS}, or it is damaged or encrypted: {one_line(error)}") from error
        self.places = {file.filename: place for place, file in enumerate(self.files)}
        require(len(self.places) == len(self.files), "damaged: two of its files have the same name")
        for name in self.places:
            require(not re.match(r"/|(.*/)?\.\./", name), f"contains a file outside its folder: {name[:40]!r}")
            require(not SIGNATURE.fullmatch(name), SIGNED)
        lists = [name for name in ("META-INF/manifest.xml", "META-INF/encryption.xml") if name in self.places]
        encrypted = {unquote(path) for name in lists for path in ENCRYPTED(self.tree(name))}
        names = ((name, reader) for part, reader in PARTS.items() for name in self.places if re.fullmatch(part, name))
        for name, reader in self.chapters() if "META-INF/container.xml" in self.places else names:
            require(name not in encrypted, LOCKED)
            try:
                self.members[name] = reader(self.contents[self.places[name]], source, target)
            except NMTError as error:
                raise NMTError(f"{name}: {error}") from error
        require("encrypted-package" not in encrypted, LOCKED)
        require(bool(self.members), f"not a {FORMATS}, or its text is missing")
        keep = frozenset(self.references())
        lines = (line for member in self.members.values() for line in member.lines)
        self.lines = [line for line in dict.fromkeys(lines) if line not in keep]

    def tree(self, name: str) -> Tree:
        require(name in self.places, f"damaged: {name[:100]} is missing")
        return parse_xml(self.contents[self.places[name]])

    def chapters(self) -> Iterator[tuple[str, type[Document]]]:
        """A book's title, language, chapters and tables of contents."""
        for package in map(str, self.tree("META-INF/container.xml").xpath("//@full-path")):
            tree = self.tree(package)
            yield package, Flow
            spine = {item.get("idref") for item in tree.iter("{*}itemref")}
            for item in tree.iter("{*}item"):
                name, kind = normpath(join(dirname(package), unquote(item.get("href", "")))), item.get("media-type", "")
                is_contents = "nav" in item.get("properties", "").split() or kind == "application/x-dtbncx+xml"
                if is_contents or item.get("id") in spine:
                    require(name in self.places, f"damaged: {name[:100]} is missing")
                    yield name, Html if "html" in kind else Flow

    def references(self) -> Iterator[str]:
        """Text of cells to leave unchanged: formulas quote it, filters select it, or it names a column."""
        for text in (text for name in self.places if SHEETS.fullmatch(name) for text in REFERENCES(self.tree(name))):
            for part in re.findall('"([^"]*)"', text) or [text]:
                yield " ".join(re.sub("_x000[9AaDd]_", " ", part).split())

    def join(self, translations: Sequence[Translated]) -> bytes:
        new, contents = dict(zip(self.lines, translations, strict=True)), self.contents.copy()
        for name, member in self.members.items():
            contents[self.places[name]] = member.join([new.get(line, Translated(line)) for line in member.lines])
        if contents == self.contents:
            return self.content
        written = io.BytesIO()
        with ZipFile(written, "w") as archive:
            archive.comment = self.comment
            for file, content in zip(self.files, contents, strict=True):
                archive.writestr(copy(file), content)
        return written.getvalue()
