"""Recognize files that are not lines of text by their content."""

import codecs
import re
from dataclasses import dataclass

from nmt.translation.formats import (
    ADVICE_BY_SUFFIX,
    FROM_CODE,
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
ANDROID_STRINGS = Kind("Android strings", "pass format=android", "android")
PROPERTY_LIST = Kind("a property list", "pass format=stringsdict", "stringsdict")
TTML = Kind("TTML", "pass format=ttml", "ttml")
TMX = Kind("TMX", "pass format=tmx", "tmx")
XML = Kind("XML", THROUGH_XLIFF)
PHP_ARRAY = Kind("an array of PHP", "pass format=php", "php")
PHP = Kind("PHP", FROM_CODE)
JSON_LINES = Kind("JSON Lines", ADVICE_BY_SUFFIX["jsonl"])
ARB = Kind("Flutter's messages", "pass format=arb", "arb")
STRING_CATALOG = Kind("a String Catalog", "pass format=xcstrings", "xcstrings")
NOTEBOOK = Kind("a Jupyter notebook", "pass format=ipynb", "ipynb")
JSON = Kind("JSON", "pass format=json", "json")
PO_CATALOG = Kind("a PO catalog", "pass format=po", "po")
SRT = Kind("subtitles", "pass format=srt", "srt")
STRINGS_TABLE = Kind("a table of strings", "pass format=strings", "strings")
WEBVTT = Kind("WebVTT", "pass format=vtt", "vtt")
ASS = Kind("subtitles", "pass format=ass", "ass")
SBV = Kind("subtitles", "pass format=sbv", "sbv")
MICRODVD = Kind("subtitles", "pass format=sub", "sub")
LYRICS = Kind("lyrics with times", "pass format=lrc", "lrc")
CONFIGURATION = Kind("a configuration file", ADVICE_BY_SUFFIX["ini"])
USFM = Kind("USFM", "pass format=usfm", "usfm")
DOCBOOK = Kind("DocBook", "pass format=docbook", "docbook")
DITA = Kind("DITA", "pass format=dita", "dita")
USX = Kind("USX", "pass format=usx", "usx")
LATEX = Kind("LaTeX", THROUGH_PO4A)
MANUAL_PAGE = Kind("a manual page", THROUGH_PO4A)
ASCIIDOC = Kind("AsciiDoc", "pass format=asciidoc", "asciidoc")
RST = Kind("reStructuredText", "pass format=rst", "rst")
MARKDOWN = Kind("Markdown with front matter", "pass format=markdown", "markdown")
RAILS = Kind("a locale of Rails", "pass format=rails", "rails")
YAML = Kind("YAML", "pass format=yaml", "yaml")
RESOURCES = Kind("resources of .NET", "pass format=resx", "resx")
PROGRAM = Kind("a program", FROM_CODE)

STRING = rb'"(?:[^"\\\n]|\\.){0,200}"'
BEFORE_ROOT = rb"(?:<\?xml[^>]*>\s*)?(?:<!--(?:[^-]|-(?!->)){0,2000}-->\s*)*"
ROOTS = rb"article|book|concept|plist|reference|resources|root|rss|svg|task|tmx|topic|usx"
# With the declarations of entities in a DOCTYPE.
BEFORE_RESOURCES = (
    rb"(?>(?:(?:<\?xml[^>]*>|<!--(?:[^-]|-(?!->)){0,2000}-->"
    rb"|<!DOCTYPE\s+resources\b[^>\[]{0,500}(?:\[[^\]]{0,8000}\]\s*)?>)\s*)*)"
)
HAS_STRINGS = rb"(?=[\s\S]*?<(?:string|plurals|item\s[^<>]{0,200}type\s*=\s*[\"']string)\b)"
BEFORE_MANUAL = rb"(?>(?:<\?xml[^>]*>|<!--(?:[^-]|-(?!->)){0,2000}-->)\s*)*+<"
DOCTYPE = rb"!DOCTYPE\s+[\w:.-]+\s[^>\[]{0,500}"
OF_DOCBOOK = (
    rb"DocBook|(?:refentry|chapter|sect1)[\s>]|[a-z]\w*\s[^<>]{0,2000}docbook\.org/ns/docbook"
)
OF_DITA = rb"DITA|[a-zA-Z]+\s[^<>]{0,2000}(?:DITAArchVersion|class=['\"]- (?:topic|map)/)"
PHP_SPACE = rb"(?:\s|(?://|#(?!\[))[^\n]*\n|/\*(?>(?:[^*]|\*(?!/))*)\*/)*+"
PHP_BRACKET = rb"\s*+(?:\[|array\s*+\()"
PHP_DECLARATION = rb"(?![ \t]*(?:(?:abstract|final)\s)?(?:class|function|interface|trait)\s)"
# Statements that end a program which does not include the file, and declarations.
PHP_GUARD = (
    rb"(?i:(?:if\s*+\(\s*+!\s*+)?+defined\s*+\([^()\n]{0,200}\)\s*+"
    rb"(?:\|\||or\b|\)\s*+\{?)\s*+(?:die|exit)\b[^;\n]{0,200};(?:\s*+\})?+"
    rb"|declare\s*+\([^()\n]{0,200}\)\s*+;|(?:namespace|use)\s[^;\n]{0,200};)"
)
# Programs assign to keys of other variables, such as $config['url'].
PHP_STRINGS = (
    rb"\$(?i:l|_|_?lang(?:uage)?|labels?|messages?|strings?|te?xts?|translations?)\s*+"
    rb"(?:\[\s*+(?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\")\s*+\]\s*+=\s*+(?:array\s*+\(|['\"\[])"
    rb"|=\s*+(?:array\s*+\(|\[))"
)
TAG_OR_COMMENT = (
    rb"(?:<(?:[A-Za-z/][\w:.-]*(?:\s[^<>\n]{0,2000})?|!--(?:[^\n-]|-(?!->)){0,2000}--)>[ \t]*)"
)


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
    Content(BEFORE_RESOURCES + rb"<resources[\s>]" + HAS_STRINGS, ANDROID_STRINGS),
    # Colors, styles and the like.
    Content(BEFORE_RESOURCES + rb"<resources[\s>]", XML),
    Content(rb"(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE plist\b|<plist[\s>])", PROPERTY_LIST),
    Content(BEFORE_ROOT + rb"<(?:\w+:)?tt[\s>]", TTML),
    Content(BEFORE_ROOT + rb"<root>\s*<(?:!--|xsd:schema|resheader|data)\b", RESOURCES),
    Content(BEFORE_MANUAL + rb"usx[\s>]", USX),
    Content(BEFORE_MANUAL + rb"(?:" + DOCTYPE + OF_DOCBOOK + rb")", DOCBOOK),
    Content(BEFORE_MANUAL + rb"(?:" + DOCTYPE + OF_DITA + rb")", DITA),
    Content(rb"<\?xml\s|<!DOCTYPE\s|<[\w:.-]+\s[^<>]{0,2000}\bxmlns\b", XML),
    # A line of tags, before another tag or the end of an element.
    Content(TAG_OR_COMMENT + rb"+\r?\n(?=\s*<|[\s\S]*</)", XML),
    Content(rb"<(?:" + ROOTS + rb")>\s*\n", XML),
    # As in Laravel: nothing but comments before the array.
    Content(
        rb"<\?php\b(?:" + PHP_DECLARATION + rb"[^\n]{0,200}\n){0,60}?\s*return" + PHP_BRACKET,
        PHP_ARRAY,
    ),
    # As in Moodle: strings assigned one by one.
    Content(
        rb"<\?php\b" + PHP_SPACE + rb"(?:" + PHP_GUARD + PHP_SPACE + rb"){0,9}"
        rb"(?:" + PHP_STRINGS + rb"|return" + PHP_BRACKET + rb")",
        PHP_ARRAY,
    ),
    Content(rb"<\?php\b", PHP),
    Content(
        rb'\{\s*"cells"\s*:\s*\[\s*\{\s*"(?:attachments|cell_type|id|metadata|source)"',
        NOTEBOOK,
    ),
    Content(rb"\{.{0,2000}\}\s*\n\s*\{\s*\"", JSON_LINES),
    Content(rb'\{\s*"@@locale"\s*:', ARB),
    Content(rb'\{\s*"sourceLanguage"\s*:', STRING_CATALOG),
    Content(rb"(?:\[\s*)*\{\s*" + STRING + rb"\s*:", JSON),
    Content(rb"\[\s*" + STRING + rb"\s*,?\s*\n", JSON),
    Content(rb"\[\s*" + STRING + rb"\s*(?:,\s*" + STRING + rb"\s*)*\]\s*$", JSON),
    Content(rb'(?:#.*\n|\s)*msg(?:id|ctxt) "', PO_CATALOG),
    Content(rb"\d+\s*\n\s*\d+:\d\d:\d\d[,.]\d+\s*-->", SRT),
    Content(rb"\d+:\d\d:\d\d\.\d+,\d+:\d\d", SBV),
    Content(rb"\{\d+\}\{\d*\}", MICRODVD),
    Content(rb"\[\d\d:\d\d[.:]\d\d", LYRICS),
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
    Content(rb"= \S.*\n(?:.*\n){0,8}?:!?[a-z][\w-]*!?:(?:[ ].*)?\n", ASCIIDOC),
    Content(rb"(?:\[\[[\w-]+\]\]|\[[#.][\w-]+\])\s*\n={1,6} \S", ASCIIDOC),
    Content(rb"\.\. (?:_[^\n:]{1,200}:|[\w:-]{1,40}::)(?: .*)?\r?\n", RST),
    Content(rb"([=*#~^-])\1{3,200}\r?\n ?\S.*\r?\n\1{4,201}\r?\n", RST),
    # Front matter, which is YAML, and then text.
    Content(
        rb"---[ \t]*\n(?:[\w-]+:.*\n|[ \t#-].*\n|\n){1,200}---[ \t]*\n\s*\S",
        MARKDOWN,
    ),
    # A language code, and below it a mapping.
    Content(
        # `on` begins workflows of GitHub.
        rb"(?:(?:#[^\n]*|---[ \t]*)?\n){0,60}"
        rb"(?!on\b)[\"']?[a-z]{2}(?:[-_][A-Za-z\d]{2,8})?[\"']?:[ \t]*\n"
        rb"(?:[ \t]*(?:#[^\n]*)?\n){0,20}[ \t]+[^\s:#-]",
        RAILS,
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
    # The patterns have line feeds only.
    start = start.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
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
