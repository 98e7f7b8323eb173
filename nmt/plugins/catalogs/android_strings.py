"""The notation of Android's string resources, which is text with escapes inside of XML.

https://developer.android.com/guide/topics/resources/string-resource#FormattingAndStyling
"""

import re
from collections.abc import Callable, Sequence
from html import unescape

from nmt.plugins.documents import (
    Inset,
    Kind,
    MarkupToken,
    Part,
    Reader,
    String,
    escaped,
    has_items,
    is_technical,
    join_surrogates,
)
from nmt.translation import Translated

ESCAPE = re.compile(r'\\(?:u([\da-fA-F]{4})|(.?))|"', re.DOTALL)
MEANINGS = {"n": "\n", "t": "\t"}
ESCAPED = re.compile(r"""["'\\]""")
REFERENCE = re.compile(
    r"\s*(?:@null|@empty|@\+?(?:[\w.*]+:)?\w+/[\w.]+|\?(?:[\w.*]+[:/])+[\w.]+)\s*"
)
"""A reference to another resource, such as @string/app_name or ?attr/title."""
REFERS = re.compile(r"\s*[@?]")
QUOTED = re.compile(r'\s*"((?>(?:[^"\\]|\\.)*))"\s*', re.DOTALL)
SECTION = r"<!\[CDATA\[((?:(?!]]>).)*+)]]>"
CDATA = re.compile(rf"\s*{SECTION}\s*", re.DOTALL)
COMMENT_OR_CDATA = re.compile(rf"<!--.*?-->|{SECTION}", re.DOTALL)
BULLET = r"(?:[•・]|\\u2022|&#(?:8226|[xX]2022);)\s*+"
ITEM_MARK = rf"(?:{BULLET}|(?:[-*\u2013]|\\u2013|&#(?:8211|[xX]2013);)\s++)"
"""The mark at the beginning of a line of a list or dialog."""
MARKUP = (
    r"(?P<path>\\\\)"  # a backslash, which is text, even before an n
    rf"|(?P<paragraph>\A\s*+{ITEM_MARK}|(?>(?:\\n\s*+)+){ITEM_MARK}|(?:\\n\s*+){{2,}}+)"
    r"|(?P<hard_space>\\u(?:00[aA][0dD]|0020|20[02][\da-fA-F]))"
    r"|(?P<literal>\\[nt])"
    r"|<!--(?:[^-]|-(?!->)){0,2000}+-->"
    r"|</?(?P<name>[A-Za-z][\w:.-]{0,99}+)(?>\s[^<>]*+|/|)>"
    # A tag that a program reads, in a string with other tags.
    r"|&lt;/?[A-Za-z][^<>&]{0,999}+(?:>|&gt;)"
)
UNQUOTED = re.compile(MARKUP)
# Outside of quotes, a line break is a blank.
IN_QUOTES = re.compile(rf"{MARKUP}|(?P<line>\r?\n)")
FIXED = re.compile(r"<(xliff:g|code|pre|script|style|tt)(?=[\s>])[^<>]*+>([^<>]*+)</\1\s*>")
"""An element whose content stays."""


def read_escapes(raw: str) -> str:
    """The text of a string as a reader sees it: without escapes, and quotes that hold spaces."""

    def meaning(escape: re.Match[str]) -> str:
        if escape[1]:
            return chr(int(escape[1], 16))
        return MEANINGS.get(escape[2] or "", escape[2] or "")

    return join_surrogates(ESCAPE.sub(meaning, raw))


def write_escapes(text: str) -> str:
    # Without the backslash, aapt2 refuses apostrophes and removes quotes.
    return ESCAPED.sub(r"\\\g<0>", text)


def read_xml(raw: str) -> str:
    return read_escapes(unescape(raw))


def write_xml(text: str) -> str:
    return escaped(write_escapes(text))


class AndroidString(String):
    """A string with escapes, and with tags of XML or, if it is decoded, of HTML."""

    def __init__(self, text: str, is_decoded: bool, is_quoted: bool) -> None:
        """`is_decoded` means that references of XML were replaced with their characters."""
        self.read_notation = read_escapes if is_decoded else read_xml
        write = write_escapes if is_decoded else write_xml
        markup = IN_QUOTES if is_quoted else UNQUOTED
        self.kind = Kind(markup, self.read_notation, write, is_html=False)
        super().__init__(text)

    def find_parts(self, text: str) -> list[Part]:
        if is_technical(self.read_notation(text)):
            return []
        insets = list[Inset]()
        for element in FIXED.finditer(text):
            shown = self.read_notation(element[2])
            if shown:
                token = MarkupToken("copy", element[0], shown)
            else:
                token = MarkupToken("point", element[0])
            insets.append(Inset(*element.span(), token))
        return Reader(text, 0, self.kind, insets).parts

    def keeps(self, translations: Sequence[Translated], text: str) -> bool:
        return has_items(self.read_notation(self.text), self.read_notation(text))


def android_string(raw: str) -> tuple[int, int, AndroidString, Callable[[str], str]] | None:
    """The string in the content of an element: its span, itself, and how to write another text.

    None for a reference to another resource.
    """
    if REFERENCE.fullmatch(raw):
        return None
    begin = 0
    end = len(raw)
    cdata = CDATA.fullmatch(raw)
    plain = raw if cdata else COMMENT_OR_CDATA.sub(without_section, raw)
    if plain != raw:
        return string_with_sections(raw, plain)
    if cdata:
        begin, end = cdata.span(1)
    # Quotes around the whole string hold its white space, so they stay where they are.
    quoted = QUOTED.fullmatch(raw, begin, end)
    if quoted:
        begin, end = quoted.span(1)
    inside = raw[begin:end]
    is_escaped_html = "&lt;" in inside and "<" not in inside
    write: Callable[[str], str] = str
    text = inside
    if cdata:
        write = write_cdata
    elif is_escaped_html:
        text = unescape(inside)
        write = write_html if "&gt;" in inside else write_html_with_signs
    string = AndroidString(
        text,
        is_decoded=bool(cdata) or is_escaped_html,
        is_quoted=bool(quoted),
    )

    def written(text: str) -> str:
        # At the beginning of a string, these signs would refer to another resource.
        if REFERS.match(text) and not quoted and not REFERS.match(string.text):
            space = len(text) - len(text.lstrip())
            text = f"{text[:space]}\\{text[space:]}"
        return write(text)

    return begin, end, string, written


def string_with_sections(
    raw: str,
    plain: str,
) -> tuple[int, int, AndroidString, Callable[[str], str]] | None:
    """The string in text with sections of CDATA, which another text replaces without sections.

    `plain` is the same text without sections.
    """
    content = android_string(plain)
    if not content:
        return None
    begin, end, string, write = content

    def written(text: str) -> str:
        return plain[:begin] + write(text) + plain[end:]

    return 0, len(raw), string, written


def without_section(markup: re.Match[str]) -> str:
    """The text of a section with the references of XML; a comment stays."""
    return markup[0] if markup[1] is None else escaped(markup[1])


def write_cdata(text: str) -> str:
    # A section ends at these signs, so they are in two.
    return text.replace("]]>", "]]]]><![CDATA[>")


def write_html(text: str) -> str:
    return escaped(text)


def write_html_with_signs(text: str) -> str:
    """HTML as text of XML, with `>` as it is."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
