"""The base of all document formats: extracts a document's lines to translate and puts the translations back."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from nmt.config import NMTError, TranslateConfig, require, shown
from nmt.plugins.documents.encodings import decode_file
from nmt.plugins.protection.copies import readable
from nmt.registry import entries_of
from nmt.text import LINE_BYTES, TOO_LONG

Alignment = (
    Sequence[tuple[int, int]] | None
)  # pairs of source and target word indices, counted from 0


class Translated(NamedTuple):
    text: str
    alignment: Alignment = None


class Document(ABC):
    """A file in one of the supported formats."""

    lines: list[str]  # the lines to translate; none is blank or contains a line break
    notice = ""  # a warning for the user, complete after `join`

    @abstractmethod
    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        """Parse a file; the language codes may be empty. Raise NMTError if the file is damaged."""

    @abstractmethod
    def join(self, translations: Sequence[Translated]) -> bytes:
        """Return the file with each line replaced by its translation."""


def read_document(format: str, content: bytes, target: str = "", source: str = "") -> Document:
    """Parse a file; raise NMTError if it is damaged or a line is too long."""
    document: Document = entries_of("document")[format].load()(content, source, target)
    for line in document.lines:
        if len(line) > LINE_BYTES // 4 and len(line.encode()) > LINE_BYTES:
            raise NMTError(f"{readable(line[:40])!r}: {TOO_LONG}")
    return document


def translate_document(config: TranslateConfig) -> None:
    """Translate the file `config.input` to `config.output`."""
    import nmt.translation as steps

    with ExitStack() as stack:
        content, output = steps.open_document(config, stack)
        refusal = f"{config.format} is not text to show: pass output=FILE.{config.format}, or redirect with > FILE"
        require(not (content.startswith(b"PK") and output.file.isatty()), refusal)
        models = steps.find_models(config.translator.run)
        source, target = models.descriptions[0].source, models.target(config.translator)
        try:
            document = read_document(config.format, content, target, source)
        except NMTError as error:
            raise NMTError(
                f"{'standard input' if config.input == '-' else config.input}: {error}"
            ) from error
        lines, translations, counts = document.lines, list[Translated](), output.notes.counts
        show = steps.progress_of(config, "translate", 0, len(lines), stack)
        if lines:
            translator = steps.open_translator(config, stack)
        else:
            steps.warn(f"{config.format}: the document has no text to translate")
        try:
            for line, ranked in zip(
                lines, translator.stream(lines, config.buffer) if lines else (), strict=True
            ):
                best = ranked[0]
                translations.append(
                    Translated(best.text, best.details.alignment if best.details else None)
                )
                steps.report(translator.stages, line, best, repr(shown(readable(line))), counts)
                show(len(translations))
        except steps.RefusedLine as error:
            raise NMTError(f"{shown(readable(lines[error.index]))!r}: {error.problem}") from error
        output.write(document.join(translations), len(translations))
        if document.notice:
            steps.warn(document.notice)
    steps.summarize(counts)


@dataclass
class Part:
    """A span of text, replaced with the translation of its line or, if it has no line, with `otherwise`."""

    begin: int
    end: int
    lines: list[str] = field(default_factory=list)
    otherwise: str = ""

    def render(self, translations: Sequence[Translated]) -> str:
        return translations[0].text if translations else self.otherwise


class Spliced:
    """A string whose `parts`, which count from `begin`, are replaced; the rest is kept."""

    def __init__(self, text: str, parts: Iterable[Part], begin: int = 0) -> None:
        self.text, self.parts, self.begin = text, sorted(parts, key=lambda part: part.begin), begin
        self.lines = [line for part in self.parts for line in part.lines]

    def render(self, translations: Iterable[Translated]) -> str:
        pieces, at, left = list[str](), 0, iter(translations)
        for part in self.parts:
            pieces += [
                self.text[at : part.begin - self.begin],
                part.render([*islice(left, len(part.lines))]),
            ]
            at = part.end - self.begin
        return "".join(pieces) + self.text[at:]


def notice_of(*counts: tuple[str, int]) -> str:
    """A warning with each number that is not zero."""
    return "; ".join(f"{what}: {count:,}" for what, count in counts if count)


class Text(Document):
    """A text file, written back in its original encoding."""

    charset: re.Pattern[bytes] | None = (
        None  # matches an encoding declaration; group 1 is the encoding's name
    )

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        declared = self.charset and self.charset.search(content[:1024])
        text, self.mark, self.encoding = decode_file(
            content, declared[1].decode() if declared else "utf-8"
        )
        self.text = Spliced(text, self.parts(text, target))
        self.lines = self.text.lines

    @abstractmethod
    def parts(self, text: str, target: str) -> Sequence[Part]:
        """The parts to replace; `target` is a language code or empty."""

    def join(self, translations: Sequence[Translated]) -> bytes:
        return self.mark + self.text.render(translations).encode(self.encoding, "xmlcharrefreplace")


class MarkedUp(Text):
    charset = re.compile(
        rb"""<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*["']?([\w.-]+)""", re.IGNORECASE
    )


def plain_text(text: str) -> Spliced:
    """Find the lines to translate in a text; blank lines and the whitespace around lines stay unchanged."""
    return Spliced(
        text,
        [Part(*line.span(), [line[0]]) for line in re.finditer(r"[^\s](?:[^\n]*[^\s])?", text)],
    )


class PlainText(Text):
    def parts(self, text: str, target: str) -> Sequence[Part]:
        return plain_text(text).parts
