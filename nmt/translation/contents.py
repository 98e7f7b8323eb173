"""Recognize files that are not lines of text by their content."""

import codecs
import re
from dataclasses import dataclass

from nmt.translation.formats import (
    ADVICE_BY_SUFFIX,
    CONVERT,
    FROM_CODE,
    FROM_XCODE,
    THROUGH_PO4A,
    THROUGH_XLIFF,
    Kind,
)

CODE = re.compile(
    rb"^[ \t]*(?:[#*;%@<]|//|--|[\w.$-]+[ \t]*[:+?]?=)"
    rb"|^[ \t]*(?:import|from|use|using|namespace|package|module|open|let|var|const|my"
    rb"|func|function|def|class|public|private|export|extends|interface|type|if|else|end)"
    rb"\b.*[^.!?\s]\s*$"
    rb"|[{};(\[=]\s*$"
)
"""A line of source code; few lines of other text match."""
LINES_OF_CODE = 200
"""How many lines decide whether a file is source code."""
SOURCE_CODE = Kind("source code", FROM_CODE)

ZIP = Kind("a ZIP archive", "name the format of a document, such as format=docx")
HTML = Kind("HTML", "pass format=html", "html")
XLIFF = Kind("XLIFF", "pass format=xliff", "xliff")
QT_CATALOG = Kind("a Qt catalog", "pass format=qt", "qt")
TMX = Kind("TMX", "pass format=tmx", "tmx")
ANDROID_STRINGS = Kind("Android strings", THROUGH_XLIFF)
XML = Kind("XML", THROUGH_XLIFF)
PHP = Kind("PHP", ADVICE_BY_SUFFIX["php"])
JSON_LINES = Kind("JSON Lines", ADVICE_BY_SUFFIX["jsonl"])
JSON = Kind("JSON", "pass format=json", "json")
PO_CATALOG = Kind("a PO catalog", "pass format=po", "po")
SRT = Kind("subtitles", "pass format=srt", "srt")
OTHER_SUBTITLES = Kind("subtitles", ADVICE_BY_SUFFIX["sbv"])
STRINGS_TABLE = Kind("a table of strings", FROM_XCODE)
WEBVTT = Kind("WebVTT", ADVICE_BY_SUFFIX["vtt"], "vtt")
ASS = Kind("subtitles", ADVICE_BY_SUFFIX["ass"])
CONFIGURATION = Kind("a configuration file", ADVICE_BY_SUFFIX["ini"])
USFM = Kind("USFM", CONVERT)
LATEX = Kind("LaTeX", THROUGH_PO4A)
MANUAL_PAGE = Kind("a manual page", THROUGH_PO4A)
MARKDOWN = Kind("Markdown with front matter", "pass format=markdown", "markdown")
YAML = Kind("YAML", ADVICE_BY_SUFFIX["yaml"])
PROGRAM = Kind("a program", FROM_CODE)

STRING = rb'"(?:[^"\\\n]|\\.){0,200}"'
BEFORE_ROOT = rb"(?:<\?xml[^>]*>\s*)?(?:<!--(?:[^-]|-(?!->)){0,2000}-->\s*)*"
ROOTS = rb"article|book|concept|plist|reference|resources|root|rss|svg|task|topic|usx"
TAG_OR_COMMENT = rb"(?:<(?:[A-Za-z/][\w:.-]*(?:\s[^<>\n]{0,2000})?|!--[^\n]{0,2000}?--)>[ \t]*)"


@dataclass(frozen=True)
class Content:
    """How files of a kind begin, after white space."""

    pattern: bytes
    kind: Kind


CONTENTS = (
    # Formats come before those that they are written in: XLIFF before XML, JSON Lines before JSON.
    # Bounded repetitions keep the time for a hostile beginning proportional to its length.
    Content(rb"PK[\3\5]", ZIP),
    Content(rb"(?i:<!DOCTYPE\s+html|<html[\s>])", HTML),
    Content(BEFORE_ROOT + rb"<xliff\s", XLIFF),
    Content(BEFORE_ROOT + rb"(?:<!DOCTYPE TS|<TS[\s>])", QT_CATALOG),
    Content(BEFORE_ROOT + rb"(?:<!DOCTYPE tmx\b|<tmx\s)", TMX),
    Content(BEFORE_ROOT + rb"<resources[\s>]", ANDROID_STRINGS),
    Content(rb"<\?xml\s|<!DOCTYPE\s|<[\w:.-]+\s[^<>]{0,2000}\bxmlns\b", XML),
    # A line of tags, before another tag or the end of an element.
    Content(TAG_OR_COMMENT + rb"+\r?\n(?=\s*<|[\s\S]*</)", XML),
    Content(rb"<(?:" + ROOTS + rb")>\s*\n", XML),
    Content(rb"<\?php\b", PHP),
    Content(rb"\{.{0,2000}\}\s*\n\s*\{\s*\"", JSON_LINES),
    Content(rb"(?:\[\s*)*\{\s*" + STRING + rb"\s*:", JSON),
    Content(rb"\[\s*" + STRING + rb"\s*,?\s*\n", JSON),
    Content(rb"\[\s*" + STRING + rb"\s*(?:,\s*" + STRING + rb"\s*)*\]\s*$", JSON),
    Content(rb'(?:#.*\n|\s)*msg(?:id|ctxt) "', PO_CATALOG),
    Content(rb"\d+\s*\n\s*\d+:\d\d:\d\d[,.]\d+\s*-->", SRT),
    Content(
        rb"\d:\d\d:\d\d\.\d+,\d+:\d\d|\{\d+\}\{\d+\}|\[\d\d:\d\d[.:]\d\d",
        OTHER_SUBTITLES,
    ),
    Content(STRING + rb"\s*=\s*" + STRING + rb"\s*;", STRINGS_TABLE),
    Content(rb"WEBVTT\b", WEBVTT),
    Content(rb"\[Script Info\]", ASS),
    Content(rb"\[[\w .-]+\]\s*\n[\w.-]+ ?=", CONFIGURATION),
    Content(rb"\\id [A-Z0-9]{3}\b", USFM),
    Content(
        rb"(?:%.*\n|\s)*\\(?:documentclass|usepackage|begin|section|chapter)\b",
        LATEX,
    ),
    Content(rb"(?:[.']\\\".*\n)*\.(?:TH|Dd|SH) ", MANUAL_PAGE),
    # Front matter, which is YAML, and then text.
    Content(
        rb"---[ \t]*\n(?:[\w-]+:.*\n|[ \t#-].*\n|\n){1,200}---[ \t]*\n\s*\S",
        MARKDOWN,
    ),
    Content(rb"[\w-]+:[ \t]*\n[ \t]+[\w.-]+:[ \t]", YAML),
    Content(rb"%YAML |---\s*\n[\w-]+:\s", YAML),
    Content(rb"#! ?/|%!PS", PROGRAM),
)
"""No text to translate begins like these. The first match decides."""


def kind_of_content(head: bytes, may_be_code: bool) -> Kind | None:
    """The kind of a file that begins with these bytes; None for text to translate line by line."""
    # Formats allow white space before their first sign, and editors add a byte order mark.
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    for content in CONTENTS:
        if re.match(content.pattern, start):
            return content.kind
    # Only for doubtful suffixes, because text may look
    # like code, such as a list whose items begin with `*`.
    if may_be_code and is_mostly_code(start):
        return SOURCE_CODE
    return None


def is_mostly_code(start: bytes) -> bool:
    """Whether more than half of the lines look like source code."""
    lines = [line for line in start.splitlines()[:LINES_OF_CODE] if line.strip()]
    of_code = sum(CODE.search(line) is not None for line in lines)
    return of_code > len(lines) / 2
