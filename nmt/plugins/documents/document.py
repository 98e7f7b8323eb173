"""What a file gives to be translated, and how it takes the translations back."""

import codecs
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from nmt.config import TranslateConfig, shown
from nmt.errors import NMTError
from nmt.registry import entries_of
from nmt.text import LINE_BYTES, TOO_LONG, problem_of

MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
CHARSETS = re.compile(r"(iso8859|cp\d|koi8|mac|gb|big5|euc|shift_jis).*")
"""Python's names of encodings of text; others compress or transform."""
LARGER = {"iso8859-1": "cp1252", "gb2312": "gb18030", "shift_jis": "cp932"}
"""Encodings that browsers use in place of those declared (https://encoding.spec.whatwg.org)."""


class Translated(NamedTuple):
    """The translation of a line, and pairs of a source word and a target word, counted from 0; None: unknown."""

    text: str
    alignment: Sequence[tuple[int, int]] | None = None


class Document(ABC):
    """A file whose lines are translated."""

    lines: list[str]
    """None of them is blank or contains a line end."""
    notice = ""
    """What a user should know after `join`; empty if there is nothing."""

    @abstractmethod
    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        """Read a file, for a model of these languages (codes; empty: unknown); NMTError if it is damaged."""

    @abstractmethod
    def join(self, translations: Sequence[Translated]) -> bytes:
        """The file with a translation in place of each line."""

    @classmethod
    def translate(cls, config: TranslateConfig) -> None:
        """Translate the document `config.input` to `config.output`."""
        import nmt.translation as steps

        with ExitStack() as stack:
            content, output = steps.open_document(config, stack)
            models = steps.find_models(config.translator.run)
            try:
                target = models.target(config.translator)
                document = read_document(config.format, content, target, models.source)
            except NMTError as error:
                raise NMTError(f"{'standard input' if config.input == '-' else config.input}: {error}") from error
            lines, translations, counts = document.lines, list[Translated](), output.notes.counts
            show = steps.progress_of(config, "translate", 0, len(lines), stack)
            if lines:
                translator = steps.open_translator(config, stack)
            else:
                steps.warn(f"{config.format}: nothing to translate was found")
            try:
                for line, ranked in zip(lines, translator.stream(lines, config.buffer) if lines else (), strict=True):
                    best = ranked[0]
                    translations.append(Translated(best.text, best.details.alignment if best.details else None))
                    steps.report(translator.stages, line, best, repr(shown(line)), counts, steps.warn)
                    show(len(translations))
            except steps.RefusedLine as error:
                raise NMTError(f"{shown(lines[error.index])!r}: {error.problem}") from error
            output.write(document.join(translations), len(translations))
            if document.notice:
                steps.warn(document.notice)
        steps.summarize(counts, steps.warn)


def read_document(format: str, content: bytes, target: str = "", source: str = "") -> Document:
    """The document in a file of that format; NMTError if it is damaged."""
    document: Document = entries_of("document")[format].load()(content, source, target)
    for line in document.lines:
        if len(line) > LINE_BYTES // 4 and len(line.encode()) > LINE_BYTES:
            raise NMTError(f"{line[:40]!r}: {TOO_LONG}")
    return document


class Part(Protocol):
    """A stretch of a text, with the lines of it that are translated, which is written anew with their translations."""

    begin: int
    end: int

    @property
    def lines(self) -> list[str]: ...

    def render(self, translations: Sequence[Translated]) -> str: ...


class Spliced:
    """A text of which some parts are written anew, and all others stay as they are."""

    def __init__(self, text: str, parts: Sequence[Part]) -> None:
        self.text, self.parts = text, parts
        self.lines = [line for part in parts for line in part.lines]

    def render(self, translations: Sequence[Translated]) -> str:
        pieces, at, used = list[str](), 0, 0
        for part in self.parts:
            end = used + len(part.lines)
            pieces += [self.text[at : part.begin], part.render(translations[used:end])]
            at, used = part.end, end
        return "".join(pieces) + self.text[at:]


def decoded(content: bytes, declared: str = "", convert: str = "save it as UTF-8") -> tuple[str, bytes, str]:
    """A text, its byte order mark and its encoding: UTF-8, UTF-16 with a mark, or the encoding that it declares."""
    mark = next((mark for mark in MARKS if content.startswith(mark)), b"")
    encoding, text = MARKS.get(mark, "utf-8"), content[len(mark) :]
    if problem := "" if encoding.startswith("utf-16") else problem_of(content[:8192]):
        raise NMTError(problem)
    try:
        # In ASCII under another declaration, characters that are not ASCII are written as references.
        is_plain = declared not in ("", "utf-8", "utf8") and not mark and text.isascii()
        return text.decode(encoding), mark, "ascii" if is_plain else encoding
    except UnicodeDecodeError as error:
        with suppress(LookupError, UnicodeError):
            name = codecs.lookup(declared).name
            name = LARGER.get(name, name)
            if CHARSETS.fullmatch(name) and text.decode(name).encode(name) == text:
                return text.decode(name), mark, name
        what = f"neither UTF-8 nor {declared}, as it says" if declared else f"not {encoding.upper()} at byte "
        raise NMTError(f"{what}{'' if declared else error.start + 1}: {convert}") from error


class Text(Document):
    """A text that is written in the encoding that it was read in, and of which only some parts change."""

    charset: re.Pattern[bytes] | None = None
    """Where the beginning of a text declares its encoding."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        declared = self.charset and self.charset.search(content[:1024])
        text, self.mark, self.encoding = decoded(content, declared[1].decode().lower() if declared else "")
        self.text = Spliced(text, self.parts(text, target))
        self.lines = self.text.lines

    @abstractmethod
    def parts(self, text: str, target: str) -> Sequence[Part]:
        """The parts to translate, in the order of the text; `target` is the language, if it is known."""

    def join(self, translations: Sequence[Translated]) -> bytes:
        return self.mark + self.text.render(translations).encode(self.encoding, "xmlcharrefreplace")


@dataclass
class Stretch:
    """Characters instead of which a translation stands as it is, or what is `written` if nothing is translated."""

    begin: int
    end: int
    lines: list[str] = field(default_factory=list)
    written: str = ""

    def render(self, translations: Sequence[Translated]) -> str:
        return translations[0].text if translations else self.written


class PlainText(Text):
    """Lines of text; line ends, blank lines and white space around a line stay as they are."""

    def parts(self, text: str, target: str) -> Sequence[Part]:
        return [Stretch(*line.span(), [line[0]]) for line in re.finditer(r"[^\s](?:[^\n]*[^\s])?", text)]
