"""Strings of programs that have nothing to translate, such as names of classes, paths and dates."""

import re

from nmt.items import USUAL, Finder
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.icu import is_message
from nmt.plugins.documents.strings import String
from nmt.plugins.documents.tags import readable_attributes, tags_of

MEDIA = "application|audio|font|image|multipart|text|video"
IDENTIFIER = re.compile(
    r"[\w$-]{1,200}(?:\.[\w$-]{1,200}){1,50};?"  # org.example.Main
    # /a/b/c or a/b_1/c, but not his/her/their
    r"|(?:/|(?=[a-z/-]{0,200}[\d_.]))(?:[a-z\d_.-]{1,200}/){2,50}[\w.*-]{0,200}"
    rf"|(?:{MEDIA})/(?!(?:{MEDIA})s?$)[\w.+*-]{{1,100}}"  # but not audio/video
    r"|true|false|null",
    re.ASCII,
)
"""A name in a program; a word alone is text."""
COLOR = re.compile(
    r"(?:#|0x)(?:[\da-fA-F]{3,4}|[\da-fA-F]{6}|[\da-fA-F]{8})"
    r"|(?:rgb|hsl)a?\([\d\s.,%/deg]{1,60}\)"
)
DATE_LETTERS = "GyYuUQqMLwWdDFEecabBhHkKmsSAzZOvVXx"
DATE_FIELDS = r"yyyy|yy|MMMM|MMM|MM|dd|HH|hh|mm|ss|SSS|XXX"
DATE_PATTERN = re.compile(
    rf"(?>(?:(?:{DATE_FIELDS}){{2,8}}|([{DATE_LETTERS}])\1{{0,8}})(?![A-SU-Za-z])"
    r"|'[^']{0,40}'"
    r"|T(?=[Hh])"  # between a date and a time
    r"|[^\w']|[年月日時时分秒년월일시분초]){1,60}"
)
"""A pattern of Java or Unicode (https://unicode.org/reports/tr35/tr35-dates.html)."""
IN_DATE = re.compile(rf"{DATE_FIELDS}|DD|YYYY|EEEE?")
DATE_FIELD = re.compile(r"([A-Za-z])\1*")
QUOTED = re.compile(r"'[^']*'")
LONE_FIELD = re.compile(r"yyyy|YYYY|MMMM|EEEE")
STRFTIME = re.compile(r"(?:%[-0^#_]?[A-Za-z%]|T(?=%)|[^\w%]){1,100}")
LONGEST_TECHNICAL = 1000


class StringOfProgram(String):
    """A string of a program, which stays if it is technical."""

    def find_parts(self, text: str) -> list[Part]:
        return [] if is_technical(text) else super().find_parts(text)


def is_technical(text: str) -> bool:
    """Whether a text has nothing to translate, such as a class name, a path, a URL or a number."""
    text = text.strip()
    # A message that chooses among texts looks like a placeholder. A long text has words.
    if is_message(text) or len(text) > LONGEST_TECHNICAL or has_readable_attributes(text):
        return False
    if IDENTIFIER.fullmatch(text) or COLOR.fullmatch(text) or is_date_pattern(text):
        return True
    at = 0
    for begin, end in Finder([USUAL]).stretches(text):
        if any(map(str.isalpha, text[at:begin])):
            return False
        at = end
    return not any(map(str.isalpha, text[at:]))


def has_readable_attributes(text: str) -> bool:
    """Whether a tag of a text has an attribute that people read, such as `alt`."""
    return "<" in text and any(readable_attributes(tag, text) for tag in tags_of(text))


def is_date_pattern(text: str) -> bool:
    """Whether a text is a pattern of dates or times, such as yyyy-MM-dd, h:mm a or %H:%M."""
    if STRFTIME.fullmatch(text):
        return "%" in text
    if LONE_FIELD.fullmatch(text):
        return True
    if not DATE_PATTERN.fullmatch(text):
        return False
    fields = QUOTED.sub("", text)
    # A pattern has several fields, and one of at least two letters: "Q & A" is text.
    return IN_DATE.search(fields) is not None and len({*DATE_FIELD.findall(fields)}) > 1
