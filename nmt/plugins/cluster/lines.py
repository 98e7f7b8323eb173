"""Text files and JSONL files, in blocks of lines."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from nmt.config import NMTError, one_line
from nmt.plugins.cluster import places
from nmt.plugins.cluster.contents import TRANSLATION, Content, Texts, fields_of_rows
from nmt.plugins.cluster.inputs import InputFile
from nmt.text import MAGIC, compressor, decoded, raw_lines, reading, without_end
from nmt.translation import warn

BYTE_ORDER_MARK = "\ufeff"


class Lines:
    """Lines of text, whose translations are lines of text."""

    def __init__(self) -> None:
        self.has_warned = False

    def contents(self, file: InputFile, size: int) -> Iterator[Content]:
        with places.open_content(file.path) as source, reading(file.path):
            lines = raw_lines(source, file.path)
            number = 0
            first = 1
            while block := list(islice(lines, size)):
                digest = hashlib.sha256(b"".join(block)).hexdigest()
                yield Content(number, first, len(block), digest, block)
                number += 1
                first += len(block)

    def texts(self, file: InputFile, content: Content) -> Texts:
        lines = map(without_end, content.data)
        texts = list(decoded(lines, f"{file.path}, ", content.first, self.warn_once))
        if content.first == 1:
            texts[0] = texts[0].removeprefix(BYTE_ORDER_MARK)
        return Texts(texts, list(range(content.first, content.first + len(texts))))

    def warn_once(self, words: str) -> None:
        if not self.has_warned:
            warn(f"{words}; further such lines are not reported")
        self.has_warned = True

    def payload(self, content: Content, texts: Texts, translations: list[str]) -> bytes:
        return "".join(f"{translation}\n" for translation in translations).encode()

    def join(self, file: InputFile, payloads: Iterable[bytes], output: Path) -> None:
        suffix = Path(file.output).suffix
        with output.open("wb") as target:
            if suffix not in MAGIC:
                target.writelines(payloads)
                return
            with compressor(target, suffix) as compressed:
                for payload in payloads:
                    compressed.write(payload)


class Records(Lines):
    """Records of JSONL, which get a field with the translation of another field.

    The records keep their bytes: nmt inserts the new field before the closing brace.
    """

    def __init__(self, field: str) -> None:
        super().__init__()
        self.field = field

    def texts(self, file: InputFile, content: Content) -> Texts:
        texts = Texts()
        for number, line in enumerate(content.data, content.first):
            if not line.strip():
                continue  # a blank line stays as it is
            try:
                text = self.text_of(line)
            except NMTError as error:
                raise error.within(f"{file.path}, line {number}") from error
            texts.add(text, number)
        return texts

    def text_of(self, line: bytes) -> str:
        """The text in a record; NMTError if it has none."""
        try:
            # RecursionError: thousands of nested lists.
            record = json.loads(line.decode().removeprefix(BYTE_ORDER_MARK))
        except (ValueError, RecursionError) as error:
            raise NMTError(f"not JSON ({one_line(error)})") from error
        if not isinstance(record, dict):
            raise NMTError("not a record: each line must be an object such as {...}")
        check_names(list(record), self.field)
        text = record[self.field]
        if not isinstance(text, str):
            raise NMTError(f"the field {self.field} is {type(text).__name__}, but must be a string")
        return text

    def payload(self, content: Content, texts: Texts, translations: list[str]) -> bytes:
        fields = fields_of_rows(texts, translations)
        lines = []
        for number, line in enumerate(content.data, content.first):
            lines.append(with_field(line, fields.get(number)))
        return "".join(lines).encode()


def check_names(names: list[str], field: str) -> None:
    """Raise NMTError unless a record has the field to translate, and none for its translation."""
    if field not in names:
        raise NMTError(
            f"no field {field}, only {', '.join(names) or 'an empty record'}; pass ray.field=NAME"
        )
    if TRANSLATION in names:
        raise NMTError(f"has a field {TRANSLATION} already; rename it")


def with_field(line: bytes, translation: str | None) -> str:
    """A record with the field `translation`; without one, the line as it is."""
    text = line.decode().removeprefix(BYTE_ORDER_MARK).rstrip()
    if translation is None:
        return f"{text}\n"
    # Readable in any script. A record with the field to translate is not empty, so a comma fits.
    value: Any = json.dumps(translation, ensure_ascii=False)
    inner = text.removesuffix("}").rstrip()
    return f'{inner}, "{TRANSLATION}": {value}}}\n'
