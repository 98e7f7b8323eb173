"""JSON files with the strings of a program."""

import json
import re
from collections.abc import Sequence
from itertools import islice

from nmt.config import NMTError
from nmt.plugins.documents.document import Part, Spliced, notice_of
from nmt.plugins.documents.encodings import decode_file
from nmt.plugins.documents.plural_forms import lacking
from nmt.plugins.documents.readings import READINGS_LEFT_OUT, lost_readings
from nmt.plugins.documents.strings import FRONT_MATTER_LEFT
from nmt.plugins.documents.surrogates import SURROGATES_LEFT
from nmt.plugins.documents.technical import StringOfProgram
from nmt.translation import Document, Translated

STRING = re.compile(r'"(?>(?:[^"\\]|\\.)*)"(?>(?P<is_name>\s*+:)|)')
REFUSED = "strings left untranslated because the translation lost their placeholders"
UNREADABLE = "strings left untranslated because nmt cannot parse their ICU syntax"


class Strings(Document):
    """A JSON file; names and strings that would lose a placeholder stay untranslated."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.text, self.mark, self.encoding = decode_file(content)
        self.target = target
        # First, because in valid JSON, quotation marks are only around strings.
        check_json(self.text)
        self.values = [value for value in STRING.finditer(self.text) if not value["is_name"]]
        # Escapes are read here. Strings that do not change are not written again.
        self.strings = [StringOfProgram(json.loads(value[0])) for value in self.values]
        self.lines = list[str]()
        for string in self.strings:
            self.lines += string.lines

    def join(self, translations: Sequence[Translated]) -> bytes:
        left = iter(translations)
        parts = list[Part]()
        refused = 0
        self.refused = list[Translated]()
        readings = 0
        for value, string in zip(self.values, self.strings, strict=True):
            # Take the lines of every string, even of one that stays, so that the next string gets
            # its own.
            lines = list(islice(left, len(string.lines)))
            text = string.render(lines)
            if text == string.text:
                continue
            if not string.keeps(lines, text):
                refused += 1
                self.refused += lines
                continue
            # Keep the style of the file: programs may read a file with escapes as ASCII.
            ascii_only = "\\u" in value[0]
            written = json.dumps(text, ensure_ascii=ascii_only)
            parts.append(Part(*value.span(), otherwise=written))
            readings += lost_readings(string.text, text)
        self.notice = self.notice_with(refused, readings)
        return self.mark + Spliced(self.text, parts).render(()).encode(self.encoding)

    def notice_with(self, refused: int, readings: int) -> str:
        unreadable = sum(not string.is_readable for string in self.strings)
        fronts = sum(string.has_front_matter for string in self.strings)
        halves = sum(string.has_surrogates for string in self.strings)
        messages = [string.message for string in self.strings if string.message]
        return notice_of(
            (REFUSED, refused),
            (UNREADABLE, unreadable),
            (FRONT_MATTER_LEFT, fronts),
            (SURROGATES_LEFT, halves),
            (READINGS_LEFT_OUT, readings),
            lacking(messages, self.target),
        )


def check_json(text: str) -> None:
    """Raise NMTError if a text is not valid JSON."""
    try:
        # Python limits the digits of an integer that it converts.
        json.loads(text, parse_int=str, parse_float=str)
    except ValueError as error:
        raise NMTError(f"not valid JSON: {error}") from error
    except RecursionError as error:
        raise NMTError("its arrays and objects are nested too deeply") from error
