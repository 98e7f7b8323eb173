"""Encodings of documents, which are decoded as browsers do (https://encoding.spec.whatwg.org).

XML is decoded as XML parsers do: in the encoding that it declares, not in a larger one.
"""

import codecs
import re
from contextlib import suppress

from nmt.config import NMTError
from nmt.text import problem_of

MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
CHARSETS = re.compile(r"(iso8859|cp\d|koi8|mac|gb|big5|euc|shift_jis|tis).*|utf-8|utf-16|ascii")
"""Python's names of the supported encodings.

Its other codecs may decompress data or decode it in other ways.
"""
LABELS = {
    "chinese": "gb2312",
    "cn-big5": "big5",
    "dos-874": "cp874",
    "gb_2312-80": "gb2312",
    "iso-8859-6-e": "iso8859-6",
    "iso-8859-6-i": "iso8859-6",
    "iso-8859-8-e": "iso8859-8",
    "iso-8859-8-i": "iso8859-8",
    "koi": "koi8-r",
    "koi8-ru": "koi8-u",
    "logical": "iso8859-8",
    "unicode-1-1-utf-8": "utf-8",
    "visual": "iso8859-8",
    "windows-31j": "cp932",
    "windows-874": "cp874",
    "windows-936": "gbk",
    "windows-949": "cp949",
    "x-euc-jp": "euc_jp",
    "x-gbk": "gbk",
    "x-mac-cyrillic": "mac-cyrillic",
    "x-mac-roman": "mac-roman",
    "x-mac-ukrainian": "mac-cyrillic",
    "x-sjis": "cp932",
    "x-x-big5": "big5",
}
"""Names of encodings that browsers know, but Python does not."""
LARGER = {
    "ascii": ["cp1252"],
    "big5": ["big5hkscs", "cp950"],
    "big5hkscs": ["big5hkscs", "cp950"],
    "euc_jp": ["euc_jp", "euc_jis_2004"],
    "euc_kr": ["cp949"],
    "gb2312": ["gbk", "gb18030"],
    "gbk": ["gbk", "gb18030"],
    "iso8859-1": ["cp1252"],
    "iso8859-9": ["cp1254"],
    "iso8859-11": ["cp874"],
    "shift_jis": ["cp932", "shift_jis_2004"],
    "tis-620": ["cp874"],
}
"""The encodings with more characters in which browsers decode text, in order of preference."""
DECLARED = re.compile(
    rb"""<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*["']?([\w.-]+)""",
    re.IGNORECASE,
)
"""The declaration of an encoding in HTML or XML; group 1 is the encoding's name."""
XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml\b")
CONTROLS = re.compile("[\x80-\x9f]")
"""Characters that nobody writes; in larger encodings, their bytes are quotation marks."""
UNSURE = {
    "big5": (
        "\u00a2\u00a3\u00a5\u2022\u203e\u223c\u2609\u2641\uff0f\uff3c\uff64\u02cd\u2574\uffe3"
    ),
    "mac-roman": "\u20ac\u03a9\u2206\uf8ff",
}
"""Characters that XML parsers read in different ways, by the encoding."""
USER_DEFINED = re.compile(rb"[\xc6-\xc8][\xa1-\xfe]|[\xc7\xc8].", re.DOTALL)
LONGEST = 4
"""Bytes of a character in any encoding."""
SECTION = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?]]>", re.DOTALL)


def codecs_of(label: str, is_xml: bool = False) -> list[str]:
    """Python's names of the encodings with a label; none if the label is unknown."""
    label = label.strip().lower()
    # Such as x-cp1252.
    if label.startswith("x-cp125"):
        label = label.removeprefix("x-")
    try:
        name = codecs.lookup(LABELS.get(label, label)).name
    except LookupError:
        return []
    names = LARGER.get(name, [name])
    if is_xml:
        # The writers of many files declare an encoding, but write the larger one.
        names = [name, *LARGER.get(name, [])]
    return names if all(map(CHARSETS.fullmatch, names)) else []


def decode_file(
    content: bytes,
    declared: str = "utf-8",
    convert: str = "save it as UTF-8",
    is_xml: bool = False,
) -> tuple[str, bytes, str]:
    """Decode UTF-8, UTF-16 with a byte order mark, or the declared encoding.

    Returns the text, the mark and the encoding. Raises NMTError if the encoding is unknown or
    does not fit the file; `convert` advises the user what to do.
    """
    mark = mark_of(content)
    encoding = MARKS.get(mark, "utf-8")
    text = content[len(mark) :]
    # In UTF-16, every second byte may be zero, as in a binary file.
    if not encoding.startswith("utf-16"):
        problem = problem_of(content[:8192])
        if problem:
            raise NMTError(problem)
    names = codecs_of(declared, is_xml)
    if not names:
        raise NMTError(f"nmt cannot read its encoding {declared[:40]!r}: {convert}")
    # UTF-8 first: other text is hardly ever valid UTF-8, but UTF-8 files declare other encodings.
    try:
        decoded = text.decode(encoding)
    except UnicodeDecodeError as error:
        name = fitting_codec(text, names)
        if name:
            return text.decode(name), mark, name
        what = f"neither UTF-8 nor {declared}"
        if names == ["utf-8"]:
            what = f"not {encoding.upper()} at byte {error.start + 1}"
        raise NMTError(f"{what}: {convert}") from error
    # ASCII text that declares another encoding stays ASCII, with character references for other
    # characters.
    if names != ["utf-8"] and not mark and text.isascii():
        encoding = "ascii"
    return decoded, mark, encoding


def decode_markup(content: bytes) -> tuple[str, bytes, str]:
    """Decode HTML or XML, which may declare its encoding: the text, the mark and the encoding."""
    # The HTML standard requires the declaration within the first 1024 bytes.
    declared = DECLARED.search(content[:1024])
    encoding = declared[1].decode() if declared else "utf-8"
    return decode_file(content, encoding, is_xml=XML.match(content) is not None)


def encode_markup(text: str, encoding: str, source: str) -> bytes:
    """Encode HTML or XML, with references for characters that the encoding lacks.

    Characters of the `source` text are written as they are there.
    """
    missing = ""
    # Unicode lacks no character.
    if not encoding.startswith("utf-"):
        new = {*text}.difference(source)
        missing = "".join(character for character in new if is_missing(character, encoding))
    if missing:
        text = with_references(text, re.compile(f"[{re.escape(missing)}]"))
    return text.encode(encoding, "xmlcharrefreplace")


def with_references(text: str, characters: re.Pattern[str]) -> str:
    """A text of HTML or XML with references for some characters."""

    def in_section(section: re.Match[str]) -> str:
        if section[0].startswith("<!--"):
            return section[0]
        # CDATA has no references, so it ends before each and begins again.
        return characters.sub(
            lambda match: f"]]>&#{ord(match[0])};<![CDATA[",
            section[0],
        )

    with_sections = SECTION.sub(in_section, text)
    return characters.sub(lambda match: f"&#{ord(match[0])};", with_sections)


def is_missing(character: str, encoding: str) -> bool:
    """Whether an encoding lacks a character, or programs could read another one."""
    if character in UNSURE.get(encoding, ""):
        return True
    # Programs read these codes of Big5, which users may define, as private characters.
    if encoding == "big5" and USER_DEFINED.fullmatch(character.encode(encoding, "replace")):
        return True
    # In Python, Shift JIS writes the yen sign as a backslash.
    if not has_same_text(character, encoding):
        return True
    # Python writes some syllables in EUC-KR as four characters, which programs read as four.
    return len(character.encode(encoding)) > LONGEST


def mark_of(content: bytes) -> bytes:
    """The byte order mark at the beginning of a file, if any."""
    for mark in MARKS:
        if content.startswith(mark):
            return mark
    return b""


def fitting_codec(text: bytes, names: list[str]) -> str:
    """The encoding of a text, which is not UTF-8; empty if none of these fits."""
    # The text is not UTF-8. Without a mark, UTF-16 would decode nearly any bytes.
    candidates = [name for name in names if name not in ("utf-8", "utf-16")]
    # Encodings that write the same bytes come first, because text that stays must not change.
    for name in candidates:
        if has_same_bytes(text, name) and not CONTROLS.search(text.decode(name)):
            return name
    # Some encodings, such as Shift JIS, have several codes for a character.
    for name in candidates:
        if has_same_characters(text, name):
            return name
    return ""


def has_same_bytes(text: bytes, name: str) -> bool:
    """Whether a text can be decoded and encoded again without any change."""
    with suppress(UnicodeError):
        return text.decode(name).encode(name) == text
    return False


def has_same_characters(text: bytes, name: str) -> bool:
    """Whether a text can be decoded and encoded again, perhaps with other codes."""
    with suppress(UnicodeError):
        return has_same_text(text.decode(name), name)
    return False


def has_same_text(text: str, name: str) -> bool:
    """Whether a text can be encoded, and is the same when it is decoded again."""
    with suppress(UnicodeError):
        return text.encode(name).decode(name) == text
    return False
