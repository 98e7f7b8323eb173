"""JSON files with the strings of a program."""

import json
import re
from collections.abc import Sequence
from itertools import islice

from nmt.config import NMTError
from nmt.plugins.documents import icu
from nmt.plugins.documents.document import Document, Part, Spliced, Translated, notice_of
from nmt.plugins.documents.encodings import decode_file
from nmt.plugins.documents.html import READINGS_LEFT_OUT, lost_readings
from nmt.plugins.documents.strings import FRONT_MATTER_LEFT, String

VALUE = re.compile(r'"(?>(?:[^"\\]|\\.)*)"(?>(?P<is_name>\s*+:)|)')


class Strings(Document):
    """A JSON file; names and strings that would lose a placeholder stay untranslated."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.text, self.mark, self.encoding = decode_file(content)
        self.target = target
        try:
            json.loads(self.text, parse_int=str, parse_float=str)
        except ValueError as error:
            raise NMTError(f"not valid JSON: {error}") from error
        except RecursionError as error:
            raise NMTError("its arrays and objects are nested too deeply") from error
        self.values = [value for value in VALUE.finditer(self.text) if not value["is_name"]]
        self.strings = [String(json.loads(value[0])) for value in self.values]
        self.lines = [line for string in self.strings for line in string.lines]

    def join(self, translations: Sequence[Translated]) -> bytes:
        left, parts = iter(translations), list[Part]()
        refused = readings = 0
        for value, string in zip(self.values, self.strings, strict=True):
            lines = list(islice(left, len(string.lines)))
            text = string.render(lines)
            if text == string.text:
                continue
            if string.keeps(lines, text):
                ascii_only = "\\u" in value[0]
                written = json.dumps(text, ensure_ascii=ascii_only)
                parts.append(Part(*value.span(), otherwise=written))
                readings += lost_readings(string.text, text)
            else:
                refused += 1
        unreadable = sum(not string.is_readable for string in self.strings)
        fronts = sum(string.has_front_matter for string in self.strings)
        self.notice = notice_of(
            ("strings left untranslated because the model lost their placeholders", refused),
            ("strings left untranslated because nmt cannot parse their ICU syntax", unreadable),
            (FRONT_MATTER_LEFT, fronts),
            (READINGS_LEFT_OUT, readings),
            icu.lacking([string.message for string in self.strings if string.message], self.target),
        )
        return self.mark + Spliced(self.text, parts).render(()).encode(self.encoding)
