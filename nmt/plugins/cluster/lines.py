"""Text files and JSONL files, in blocks of lines."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any

from nmt.config import NMTError, one_line
from nmt.plugins.cluster import places
from nmt.plugins.cluster.contents import TRANSLATION, Content, Texts, fields_of_rows
from nmt.plugins.cluster.inputs import InputFile
from nmt.text import (
    MAGIC,
    compressor,
    decoded,
    parallel,
    raw_lines,
    reading,
    with_field,
    without_end,
)
from nmt.translation import RowWork, warn

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


class Rows(Lines):
    """Lines, or lines of two parallel files, that have several texts and stay or are left out."""

    def __init__(self, work: RowWork) -> None:
        super().__init__()
        self.work = work

    def contents(self, file: InputFile, size: int) -> Iterator[Content]:
        if not file.second:
            yield from super().contents(file, size)
            return
        names = (file.path, file.second)
        with ExitStack() as stack:
            sides = []
            for name in names:
                source = stack.enter_context(places.open_content(name))
                stack.enter_context(reading(name))
                sides.append(raw_lines(source, name))
            pairs = parallel(names, sides)
            number = 0
            first = 1
            while block := list(islice(pairs, size)):
                digest = hashlib.sha256(b"".join(chain.from_iterable(block))).hexdigest()
                yield Content(number, first, len(block), digest, block)
                number += 1
                first += len(block)

    def texts(self, file: InputFile, content: Content) -> Texts:
        texts = Texts()
        for number, row in enumerate(content.data, content.first):
            try:
                texts.lines.append(self.work.read_row(row))
            except NMTError as error:
                raise error.within(f"{file.path}, line {number}") from error
            texts.rows.append(number)
        return texts

    def payload(self, content: Content, texts: Texts, results: list[Any]) -> bytes:
        lines = []
        for row, result in zip(content.data, results, strict=True):
            if result is not None:
                lines.append(self.work.write_row(row, result))
        return b"".join(lines)


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
            lines.append(with_translation(line, fields.get(number)))
        return "".join(lines).encode()


def check_names(names: list[str], field: str) -> None:
    """Raise NMTError unless a record has the field to translate, and none for its translation."""
    if field not in names:
        raise NMTError(
            f"no field {field}, only {', '.join(names) or 'an empty record'}; pass ray.field=NAME"
        )
    if TRANSLATION in names:
        raise NMTError(f"has a field {TRANSLATION} already; rename it")


def with_translation(line: bytes, translation: str | None) -> str:
    """A record with the field `translation`; without one, the line as it is."""
    if translation is None:
        return f"{line.decode().removeprefix(BYTE_ORDER_MARK).rstrip()}\n"
    return with_field(line, TRANSLATION, translation)
