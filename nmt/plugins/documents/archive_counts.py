"""Texts of office documents and books that stay in the source language, counted for the notice."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

LETTER = r"[^\W\d_]"
WORDS = rf"""(?:"[^"]*?{LETTER}|'[^']*?{LETTER})"""
"""The value of an attribute with words."""
COMMENT = r"<(?:\w+:)?(?:comment|cm)[\s>]"
# A header or footer with letters besides the codes for fonts, places and fields, such as
# &amp;C&amp;"Arial"&amp;P.
HEADER_CODE = r"""&amp;(?:K[\dA-F]{6}|\d+|[A-Za-z]|(?:"|&quot;)[^"&<]*(?:"|&quot;))"""
HEADER = (
    r"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)>"
    rf"(?>(?:{HEADER_CODE}|(?!<)[\W\d_])*)[^\W\d_]"
)
INTERNAL = r"""[^<>]*\bname=["']_xlnm"""
DEFINED_NAME = rf"<(?:\w+:)?definedName\s(?!{INTERNAL})"
VALIDATION = (
    rf"<(?:\w+:)?dataValidation\s[^<>]*?\b(?:prompt|error)(?:Title)?={WORDS}"
    rf"|<(?:\w+:)?formula1>\s*(?:\"|&quot;)[^<>]*{LETTER}"
)
# A shape with text that is not a placeholder, whose text would only tell authors what to enter.
MASTERS = r"ppt/(?:slide|notes|handout)(?:Master|Layout)s/[^/]+\.xml"
NO_PLACEHOLDER = r"(?:(?!<(?:\w+:)?(?:ph|sp)[\s/>]|</(?:\w+:)?sp>).)*?"
SHAPE = rf"(?s)<(?:\w+:)?sp[\s>]{NO_PLACEHOLDER}<a:t>[^<>]*{LETTER}"
SECTION = r"<\w+:section\s[^<>]*\bname="
DELETED = rf"<(?:\w+:)?delText\b[^<>]*>[^<>]*{LETTER}"
# A property, unless a program made it for itself.
CUSTOM = (
    r"""<property\b(?![^<>]*\bname=["'](?:MSIP_|ContentTypeId|KSO|_))[^<>]*>\s*"""
    rf"<vt:lpw?str>[^<>]*{LETTER}"
)
USER_DEFINED = rf"<meta:user-defined\b[^<>]*>[^<>]*{LETTER}"
KEYWORDS = rf"<(?:cp:keywords|meta:keyword)>[^<>]*{LETTER}"
# Matches once in a file that is not empty.
ANY_CONTENT = r"(?s)\A."
CONTENT = r"content\.xml"
CONTENT_OR_STYLES = r"content\.xml|styles\.xml"
WORD = r"word/[^/]+\.xml"
SHEET = r"xl/worksheets/[^/]+\.xml"
SPREADSHEET = b"<office:spreadsheet"


@dataclass(frozen=True)
class Counted:
    """A kind of text that stays in the source language."""

    kind: str
    """The name in the notice."""
    files: str
    """A pattern for the names of the files with such texts."""
    pattern: str
    """A pattern for the texts to count in these files."""
    in_spreadsheets: bool = False
    """Whether only spreadsheets have such texts, among OpenDocument files."""


COUNTED = (
    Counted("comments", r"(?:word|xl|ppt)/comments.*\.xml", COMMENT),
    Counted("comments", CONTENT, r"<office:annotation[\s>]"),
    Counted("sheet names", r"xl/workbook\.xml", r"<(?:\w+:)?sheet\s"),
    Counted(
        "sheet names",
        CONTENT,
        r"<table:table\s(?=[^<>]*\btable:name=)",
        in_spreadsheets=True,  # tables of other documents have names that nobody sees
    ),
    Counted("headers and footers of sheets", SHEET, HEADER),
    Counted("defined names", r"xl/workbook\.xml", DEFINED_NAME),
    Counted("texts of data validation", SHEET, VALIDATION),
    Counted("texts of pivot tables", r"xl/pivotCache/.*\.xml", rf"<(?:\w+:)?s\s[^<>]*\bv={WORDS}"),
    Counted("texts of slide masters and layouts", MASTERS, SHAPE),
    Counted("names of slide sections", r"ppt/presentation\.xml", SECTION),
    Counted("deleted texts", WORD, DELETED),
    Counted("deleted texts", CONTENT_OR_STYLES, r"<text:deletion[\s>]"),
    Counted("entries of forms", WORD, r"<(?:\w+:)?(?:listItem|listEntry)\s"),
    Counted("entries of forms", CONTENT, r"<text:label\s|\sform:label="),
    Counted("index entries", WORD, r"<(?:\w+:)?instrText\b[^<>]*>\s*XE\s"),
    Counted("index entries", CONTENT, r"\stext:string-value="),
    Counted("tooltips of links", CONTENT_OR_STYLES, r"<\w+:a\s[^<>]*\soffice:title="),
    Counted("embedded files", r"\w+/embeddings/.+", ANY_CONTENT),
    Counted("embedded files", WORD, r"<(?:\w+:)?altChunk\s"),
    Counted("categories", r"docProps/core\.xml", rf"<cp:category>[^<>]*{LETTER}"),
    Counted("custom properties", r"docProps/custom\.xml", CUSTOM),
    Counted("custom properties", r"meta\.xml", USER_DEFINED),
    Counted("keywords", r"docProps/core\.xml|meta\.xml", KEYWORDS),
)
READINGS = (
    (WORD, rb"<w:rt[\s>]"),
    (CONTENT_OR_STYLES, rb"<text:ruby-text[\s>]"),
    (r".+\.(?:x?html?|xml)", rb"(?i)<rt[\s>]"),
)
"""Files and what begins a reading in them. A translation has no readings."""


def texts_left(contents: Mapping[str, bytes]) -> Counter[str]:
    """The number of texts in a document's files that stay in the source language, by kind."""
    counts = Counter[str]()
    is_spreadsheet = SPREADSHEET in contents.get("content.xml", b"")
    for counted in COUNTED:
        if counted.in_spreadsheets and not is_spreadsheet:
            continue
        for name, content in contents.items():
            if re.fullmatch(counted.files, name):
                # Damaged bytes do not matter for a count.
                text = content.decode(errors="replace")
                counts[counted.kind] += len(re.findall(counted.pattern, text))
    return counts


def readings_in(contents: Mapping[str, bytes]) -> int:
    """The number of words with readings in the files of a document."""
    count = 0
    for files, pattern in READINGS:
        for name, content in contents.items():
            if re.fullmatch(files, name):
                count += len(re.findall(pattern, content))
    return count
