"""Documents that are ZIP archives: Office Open XML, OpenDocument and EPUB; members without new text stay unchanged."""

import io
import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from html import unescape
from posixpath import dirname, join, normpath
from urllib.parse import unquote
from zipfile import BadZipFile, ZipFile

from nmt.config import NMTError, one_line, require
from nmt.plugins.documents.document import Document, Translated, notice_of
from nmt.plugins.documents.elements import parse_xml
from nmt.plugins.documents.html import READINGS_LEFT_OUT, Html
from nmt.plugins.documents.properties import Contents, Languages, Package, Properties
from nmt.plugins.documents.xml import Flow, Runs

PARTS: dict[str, type[Document]] = {
    r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml": Runs,
    r"ppt/(?:slides/slide|notesSlides/notesSlide)\d*\.xml": Runs,
    r"xl/(?:[sS]haredStrings|worksheets/[^/]+)\.xml": Runs,
    r"\w+/(?:drawings/drawing|charts/chart(?:Ex)?|diagrams/(?:data|drawing))\d*\.xml": Runs,
    r"(?:Object \d+/)?content\.xml|styles\.xml": Flow,
}
# Parts without the text of a document; they stay unchanged if they are damaged.
BESIDE: dict[str, type[Document]] = {
    r"docProps/core\.xml|meta\.xml": Properties,
    r"word/styles\.xml|ppt/presentation\.xml|ppt/(?:slideMaster|slideLayout|notesMaster)s/[^/]+\.xml": Languages,
}
# A header or footer with letters besides the codes for fonts, places and fields, such as
# &amp;C&amp;"Arial"&amp;P.
HEADER_CODE = r"""&amp;(?:K[\dA-F]{6}|\d+|[A-Za-z]|(?:"|&quot;)[^"&<]*(?:"|&quot;))"""
HEADER = (
    r"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)>"
    rf"(?>(?:{HEADER_CODE}|(?!<)[\W\d_])*)[^\W\d_]"
)
LETTER = r"[^\W\d_]"
WORDS = rf"""(?:"[^"]*?{LETTER}|'[^']*?{LETTER})"""
INTERNAL = r"""[^<>]*\bname=["']_xlnm"""
VALIDATION = (
    rf"<(?:\w+:)?dataValidation\s[^<>]*?\b(?:prompt|error)(?:Title)?={WORDS}"
    rf"|<(?:\w+:)?formula1>\s*(?:\"|&quot;)[^<>]*{LETTER}"
)
# A shape with text that is no placeholder, whose text would only tell authors what to enter.
MASTERS = r"ppt/(?:slide|notes|handout)(?:Master|Layout)s/[^/]+\.xml"
NO_PLACEHOLDER = r"(?:(?!<(?:\w+:)?(?:ph|sp)[\s/>]|</(?:\w+:)?sp>).)*?"
SHAPE = rf"(?s)<(?:\w+:)?sp[\s>]{NO_PLACEHOLDER}<a:t>[^<>]*{LETTER}"
# A property, unless a program made it for itself.
CUSTOM = (
    r"""<property\b(?![^<>]*\bname=["'](?:MSIP_|ContentTypeId|KSO|_))[^<>]*>\s*"""
    rf"<vt:lpw?str>[^<>]*{LETTER}"
)
EMBEDDED = r"(?s)\A."
# What else stays in the source language: what to name, the files, and what to count in them.
COUNTED = (
    ("comments", r"(?:word|xl|ppt)/comments.*\.xml", r"<(?:\w+:)?(?:comment|cm)[\s>]"),
    ("comments", r"content\.xml", r"<office:annotation[\s>]"),
    ("sheet names", r"xl/workbook\.xml", r"<(?:\w+:)?sheet\s"),
    ("sheet names", r"content\.xml", r"<table:table\s(?=[^<>]*\btable:name=)"),
    ("headers and footers of sheets", r"xl/worksheets/[^/]+\.xml", HEADER),
    ("defined names", r"xl/workbook\.xml", rf"<(?:\w+:)?definedName\s(?!{INTERNAL})"),
    ("texts of data validation", r"xl/worksheets/[^/]+\.xml", VALIDATION),
    ("texts of pivot tables", r"xl/pivotCache/.*\.xml", rf"<(?:\w+:)?s\s[^<>]*\bv={WORDS}"),
    ("texts of slide masters and layouts", MASTERS, SHAPE),
    ("names of slide sections", r"ppt/presentation\.xml", r"<\w+:section\s[^<>]*\bname="),
    ("deleted texts", r"word/[^/]+\.xml", rf"<(?:\w+:)?delText\b[^<>]*>[^<>]*{LETTER}"),
    ("deleted texts", r"content\.xml|styles\.xml", r"<text:deletion[\s>]"),
    ("entries of forms", r"word/[^/]+\.xml", r"<(?:\w+:)?(?:listItem|listEntry)\s"),
    ("entries of forms", r"content\.xml", r"<text:label\s|\sform:label="),
    ("index entries", r"word/[^/]+\.xml", r"<(?:\w+:)?instrText\b[^<>]*>\s*XE\s"),
    ("index entries", r"content\.xml", r"\stext:string-value="),
    ("tooltips of links", r"content\.xml|styles\.xml", r"<\w+:a\s[^<>]*\soffice:title="),
    ("embedded files", r"\w+/embeddings/.+", EMBEDDED),
    ("embedded files", r"word/[^/]+\.xml", r"<(?:\w+:)?altChunk\s"),
    ("categories", r"docProps/core\.xml", rf"<cp:category>[^<>]*{LETTER}"),
    ("custom properties", r"docProps/custom\.xml", CUSTOM),
    ("custom properties", r"meta\.xml", rf"<meta:user-defined\b[^<>]*>[^<>]*{LETTER}"),
    ("keywords", r"docProps/core\.xml|meta\.xml", r"<(?:cp:keywords|meta:keyword)>[^<>]*[^\W\d_]"),
)
# Readings, which a translation lacks.
READINGS = (
    (r"word/[^/]+\.xml", rb"<w:rt[\s>]"),
    (r"content\.xml|styles\.xml", rb"<text:ruby-text[\s>]"),
    (r".+\.(?:x?html?|xml)", rb"(?i)<rt[\s>]"),
)
QUOTED = "cell texts that formulas, filters or table headers contain"
LARGEST, MOST_TAGS = 2**26, 2**20  # maximum bytes of all unpacked files; maximum XML tags
LOCKED = "save it in its current format, without a password, or convert it: soffice --convert-to docx FILE"
FORMATS = "DOCX, PPTX, XLSX, OpenDocument or EPUB file"
OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # the container of old formats and of encrypted files
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
SHEETS = re.compile(
    r"xl/(?:workbook|worksheets/|tables/|pivotCache/pivotCacheDef)[^/]*\.xml|content\.xml"
)
ATTRIBUTE = r"""=(?:"([^"]*)"|'([^']*)')"""
# Formulas, column names and filters, which contain the text of cells.
REFERENCES = re.compile(
    r"<(?:\w+:)?(?:f|formula\w*|definedName)(?=[\s>])[^<>]*>([^<]+)<"
    rf"|\s(?:\w+:)?(?:formula|condition|source-field-name){ATTRIBUTE}"
    r"|<(?:\w+:)?(?:filter\b[^<>]*?\sval|(?:tableColumn|cacheField)\b[^<>]*?\sname)"
    rf"{ATTRIBUTE}"
)


def readings_in(contents: dict[str, bytes]) -> int:
    """How many words in the files of a document have readings."""
    return sum(
        len(re.findall(pattern, content))
        for files, pattern in READINGS
        for name, content in contents.items()
        if re.fullmatch(files, name)
    )


class Archive(Document):
    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content, self.members = content, dict[str, Document]()
        require(
            not content.startswith(OLD_OFFICE),
            f"protected with a password, or in an old format: {LOCKED}",
        )
        try:
            with ZipFile(io.BytesIO(content)) as archive:
                self.files, self.comment = archive.infolist(), archive.comment
                size = sum(file.file_size for file in self.files)
                require(size <= LARGEST, f"{size:,} bytes when unpacked; the limit is {LARGEST:,}")
                # Without a size, zipfile would unpack everything that a member holds, whatever its header says.
                self.contents = {
                    file.filename: archive.open(file).read(file.file_size + 1)
                    for file in self.files
                }
        except UNREADABLE as error:  # zipfile can raise any of these
            raise NMTError(
                f"not a {FORMATS}, or it is damaged or encrypted: {one_line(error)}"
            ) from error
        tags = sum(content.count(b"<") for content in self.contents.values())
        require(
            tags <= MOST_TAGS, f"{tags:,} XML tags; the limit is {MOST_TAGS:,}: split the document"
        )
        is_book = "META-INF/container.xml" in self.contents
        readers = dict(self.chapters() if is_book else self.named(PARTS))
        require(bool(readers), f"not a {FORMATS}, or its text is missing or encrypted")
        self.left = self.counts()
        for name, reader in readers.items():
            try:
                self.members[name] = reader(self.contents[name], source, target)
            except NMTError as error:
                raise NMTError(
                    f"{name}: {error}; if it has a password, save it without a password"
                ) from error
        for name, reader in self.named(BESIDE):
            try:
                self.members[name] = reader(self.contents[name], source, target)
            except NMTError:
                self.left["damaged properties and styles"] += 1
        for member in self.members.values():
            self.left.update(member.left if isinstance(member, Html) else {})
        keep = frozenset(self.references())
        lines = dict.fromkeys(line for member in self.members.values() for line in member.lines)
        self.lines = [line for line in lines if line not in keep]
        self.left[QUOTED] += len(lines) - len(self.lines)

    def named(self, readers: dict[str, type[Document]]) -> Iterator[tuple[str, type[Document]]]:
        """The files with a reader."""
        for pattern, reader in readers.items():
            yield from ((name, reader) for name in self.contents if re.fullmatch(pattern, name))

    def counts(self) -> Counter[str]:
        """How much text stays in the source language, by kind."""
        counts = Counter[str]()
        is_text = b"<office:spreadsheet" not in self.contents.get("content.xml", b"")
        for kind, files, pattern in COUNTED:
            for name, content in self.contents.items():
                is_table_of_text = kind == "sheet names" and name == "content.xml" and is_text
                if re.fullmatch(files, name) and not is_table_of_text:
                    counts[kind] += len(re.findall(pattern, content.decode(errors="replace")))
        return counts

    def attributes(self, file: str, *names: str) -> list[list[dict[str, str]]]:
        """For each name, the attributes of a file's elements of that name."""
        require(file in self.contents, f"damaged: {file[:100]} is missing")
        elements = parse_xml(self.contents[file].decode("utf-8-sig", "replace"))
        return [
            [element.attributes for element in elements if element.name == name] for name in names
        ]

    def chapters(self) -> Iterator[tuple[str, type[Document]]]:
        """A book's title, language, chapters and tables of contents."""
        [roots] = self.attributes("META-INF/container.xml", "rootfile")
        # A container may list a package many times, but each is parsed only once.
        packages = dict.fromkeys(root.get("full-path", "") for root in roots)
        for package in filter(None, packages):
            yield package, Package
            references, items = self.attributes(package, "itemref", "item")
            spine = {reference.get("idref", "") for reference in references}
            for item in items:
                id, href, kind, properties = (
                    item.get(key, "") for key in ("id", "href", "media-type", "properties")
                )
                name = normpath(join(dirname(package), unquote(href)))
                if id in spine or kind == "application/x-dtbncx+xml" or "nav" in properties.split():
                    require(name in self.contents, f"damaged: {name[:100]} is missing")
                    yield name, Html if "html" in kind else Contents

    def references(self) -> Iterator[str]:
        """Cell text to leave unchanged: a formula quotes it, a filter or a list allows it, or it names a column."""
        sheets = (
            content.decode(errors="replace")
            for name, content in self.contents.items()
            if SHEETS.fullmatch(name)
        )
        for text in (
            unescape("".join(texts)) for sheet in sheets for texts in REFERENCES.findall(sheet)
        ):
            for part in re.findall('"([^"]*)"', text) or [text]:
                # A cell's list of allowed values is one string: "Yes,No".
                for value in {part, *part.split(",")}:
                    yield " ".join(re.sub("_x000[9AaDd]_", " ", value).split())

    def join(self, translations: Sequence[Translated]) -> bytes:
        new, contents = dict(zip(self.lines, translations, strict=True)), self.contents.copy()
        for name, member in self.members.items():
            contents[name] = member.join([new.get(line, Translated(line)) for line in member.lines])
        readings = readings_in(self.contents) - readings_in(contents)
        left = ((f"{what} left untranslated", number) for what, number in self.left.items())
        self.notice = notice_of(*left, (READINGS_LEFT_OUT, readings))
        if contents == self.contents:
            return self.content
        written = io.BytesIO()
        with ZipFile(written, "w") as archive:
            archive.comment = self.comment
            for file in self.files:
                archive.writestr(copy(file), contents[file.filename])
        return written.getvalue()
