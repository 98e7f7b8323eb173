"""What a file gives to be translated, and how it takes the translations back.

To add a format, register a subclass of `Document`, here in another package:

    class Properties(Document):
        def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
            self.rows = [row.partition("=") for row in content.decode().split("\\n")]
            self.lines = [value for _, _, value in self.rows if value.strip()]

        def join(self, translations: Sequence[Translated]) -> bytes:
            new = iter(translations)
            rows = (key + sign + (next(new).text if value.strip() else value) for key, sign, value in self.rows)
            return "\\n".join(rows).encode()

    def register(add):  # the entry point of the package, in the group `nmt.plugins`
        add("document", "properties", "package.module:Properties", suffixes=(".properties",))
"""

import codecs
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from nmt.config import TranslateConfig, shown
from nmt.errors import NMTError
from nmt.registry import entries_of
from nmt.text import BOM, LINE_BYTES, TOO_LONG, problem_of

MARKS = {BOM: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
CHARSETS = re.compile(r"(iso8859|cp\d|koi8|mac|gb|big5|euc|shift_jis|tis).*")
"""Encodings whose first 128 characters are those of ASCII, by their names in Python."""
LARGER = {"gb2312": "gb18030", "shift_jis": "cp932"}
"""The encodings that browsers use instead of the declared ones."""
CHARSET = re.compile(rb"<(?:\?xml|meta)[^>]*?(?:encoding|charset)\s*=\s*[\"']?([\w-]+)", re.IGNORECASE)
SAME = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "src": "", "tgt": "", "mul": "", "und": ""}
"""Codes of one language, and codes of none."""


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
        """Read a file; NMTError if it is damaged, or in other languages than the model (codes; empty: unknown)."""

    @abstractmethod
    def join(self, translations: Sequence[Translated]) -> bytes:
        """The file with a translation in place of each line."""

    @classmethod
    def translate(cls, config: TranslateConfig) -> None:
        """Translate the document `config.input` to `config.output`."""
        import nmt.translation as steps

        with ExitStack() as stack:
            content, output = steps.open_document(config, stack)
            try:
                document = read_document(
                    config.format, content, steps.target_language(config), steps.source_language(config)
                )
            except NMTError as error:
                raise NMTError(f"{'standard input' if config.input == '-' else config.input}: {error}") from error
            lines, translations, stages = document.lines, list[Translated](), tuple[steps.Stage, ...]()
            if not lines:
                steps.warn(f"{config.format}: nothing to translate was found")
            show = steps.progress_of(config, "translate", 0, len(lines), stack)
            if lines:
                translator = steps.open_translator(config, stack)
                stages = translator.stages
            try:
                for line, ranked in zip(lines, translator.stream(lines, config.buffer) if lines else (), strict=True):
                    best = ranked[0]
                    translations.append(Translated(best.text, best.details.alignment if best.details else None))
                    output.notes.counts.update(steps.report(stages, line, ranked)[1])
                    steps.remark(best, repr(shown(line)), output.notes.counts, steps.warn)
                    show(len(translations))
            except steps.RefusedLine as error:
                raise NMTError(f"{shown(lines[error.index])!r}: {error.problem}") from error
            output.write(document.join(translations), len(translations))
            if document.notice:
                steps.warn(document.notice)
        steps.summarize(output.notes.counts, steps.warn, stages)


def read_document(format: str, content: bytes, target: str = "", source: str = "") -> Document:
    """The document in a file of that format; NMTError if it is damaged, or for a model of other languages."""
    document: Document = entries_of("document")[format].load()(content, source, target)
    for line in document.lines:
        if len(line) > LINE_BYTES // 4 and len(line.encode()) > LINE_BYTES:
            raise NMTError(f"{line[:40]!r}: {TOO_LONG}")
    return document


def base(code: str) -> str:
    """The language of a code such as de-AT or de_AT in small letters, without its country."""
    language = re.match(r"\s*([a-zA-Z]{2,8})(?![a-zA-Z])", code)
    return SAME.get(language[1].lower(), language[1].lower()) if language else ""


def differ(one: str, other: str) -> bool:
    """True for codes of two languages; a code of two letters is not compared with one of three (de and deu)."""
    return bool(base(one) and base(other)) and len(base(one)) == len(base(other)) and base(one) != base(other)


@dataclass(frozen=True)
class Direction:
    """From one language to another; empty: unknown."""

    source: str = ""
    target: str = ""

    def __str__(self) -> str:
        words = (("from", self.source), ("into", self.target))
        return " ".join(f"{word} {code:.40}" for word, code in words if code)

    def check(self, model: "Direction") -> None:
        """NMTError where a model translates from, or into, another language than that of a file."""
        if differ(self.source, model.source) or differ(self.target, model.target):
            raise NMTError(f"it is {self}, but the model translates {model}: take another model, or mend its codes")


class Part(Protocol):
    """A stretch of a text that is written anew."""

    begin: int
    end: int

    @property
    def lines(self) -> list[str]:
        """The lines of it that are translated."""

    def render(self, translations: Sequence[Translated]) -> str:
        """The stretch with translations instead of its lines."""


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


def decoded(content: bytes, declares: bool = False, convert: str = "save it as UTF-8") -> tuple[str, bytes, str]:
    """A text, its byte order mark and its encoding: UTF-8, UTF-16 with a mark, or what HTML declares."""
    mark = next((mark for mark in MARKS if content.startswith(mark)), b"")
    encoding, text = MARKS.get(mark, "utf-8"), content[len(mark) :]
    charset = CHARSET.search(content[:1024]) if declares and not mark else None
    declared = charset[1].decode().lower() if charset else ""
    if problem := "" if encoding.startswith("utf-16") else problem_of(content[:8192]):
        raise NMTError(problem)
    try:
        # In ASCII under another declaration, characters that are not ASCII are written as references.
        ascii_only = declared not in ("", "utf-8", "utf8") and text.isascii()
        return text.decode(encoding), mark, "ascii" if ascii_only else encoding
    except UnicodeDecodeError as error:
        try:
            name = codecs.lookup(declared or "utf-8").name
            name = "cp1252" if name == "iso8859-1" and re.search(rb"[\x80-\x9f]", text) else LARGER.get(name, name)
            if CHARSETS.fullmatch(name) and text.decode(name).encode(name) == text:
                return text.decode(name), mark, name
        except (LookupError, UnicodeError):
            pass
        what = f"not {encoding.upper()} at byte {error.start + 1}"
        what = f"neither UTF-8 nor {declared}, as it says" if declared else what
        raise NMTError(f"{what}: {convert}") from error


class Text(Document):
    """A text that is written in the encoding it was read in, and of which only some parts change."""

    declares = False
    """Whether the format can declare an encoding."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        text, self.mark, self.encoding = decoded(content, self.declares)
        self.text = Spliced(text, self.parts(text, Direction(source, target)))
        self.lines = self.text.lines

    def parts(self, text: str, model: Direction) -> Sequence[Part]:
        """The parts to translate, in the order of the text."""
        raise NotImplementedError

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

    def parts(self, text: str, model: Direction) -> Sequence[Part]:
        return [Stretch(*line.span(), [line[0]]) for line in re.finditer(r"[^\s](?:[^\n]*[^\s])?", text)]
