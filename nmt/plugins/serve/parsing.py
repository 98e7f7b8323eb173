"""Documents of clients, which are parsed in separate processes."""

import math
import os
import resource
import time
from pathlib import PurePath
from typing import NamedTuple

from nmt.config import NMTError
from nmt.registry import entries_of
from nmt.translation import (
    HEAD_BYTES,
    Document,
    Translated,
    advice_for,
    is_name_of_text,
    kind_of_content,
    may_be_code,
    read_document,
)

NICENESS = 5  # translation has priority, but parsing still gets a quarter of a busy core
Line = list[Translated]  # the translations of a line, best first


class SentDocument(NamedTuple):
    """A client's document, which is parsed twice, to read and to write it, because parsing processes keep no state."""

    content: bytes
    name: str  # its suffix determines the format
    source: str = ""
    target: str = ""


def formats_of_documents() -> dict[str, str]:
    """Map file name suffixes to formats."""
    return {
        suffix: name
        for name, entry in entries_of("document").items()
        for suffix in entry.facts["suffixes"]
    }


def format_of(sent: SentDocument) -> str:
    """The format of a document; NMTError if it is unknown, or if it is text with markup.

    Like the command line, the server translates files line by line if their name says that they
    are text, as `test.en` and names without a suffix do.
    """
    formats = formats_of_documents()
    format = formats.get(PurePath(sent.name).suffix.lower(), "")
    # Unlike the command line, the server reads no compressed files.
    suffix = file_suffix(file_name(sent.name)).removeprefix(".")
    if not format and is_name_of_text(suffix):
        format = "text"
    if not format:
        advice = advice_for(suffix)
        hint = f"; {advice}" if advice else ""
        raise NMTError(f"unsupported file type{hint}; supported: {', '.join(formats)}")
    head = sent.content[:HEAD_BYTES]
    kind = kind_of_content(head, may_be_code(suffix)) if format == "text" else None
    if kind:
        convert = f"give its name the suffix of {kind.format}" if kind.format else kind.advice
        problem = f"its content is {kind.name}, which line-by-line translation would damage"
        raise NMTError(f"{problem}; {convert}")
    return format


def file_suffix(name: str) -> str:
    """The suffix of a file name, with its dot. In "Notes of Mr. Smith", the dot begins no suffix."""
    suffix = PurePath(name).suffix
    return "" if " " in suffix else suffix


def file_name(name: str) -> str:
    """The last part of a path of any operating system."""
    return PurePath(name.replace("\\", "/")).name


def parsed(limits: tuple[int, int], sent: SentDocument) -> tuple[str, Document]:
    """Return a document's format and the parsed document; exceeding a limit raises MemoryError or kills the process."""
    for kind, most in zip((resource.RLIMIT_AS, resource.RLIMIT_CPU), limits, strict=True):
        used = math.ceil(time.process_time()) if kind == resource.RLIMIT_CPU else 0
        resource.setrlimit(kind, (used + most, resource.getrlimit(kind)[1]))
    os.nice(NICENESS - os.nice(0))
    format = format_of(sent)
    return format, read_document(format, sent.content, sent.target, sent.source)


def read_lines(limits: tuple[int, int], sent: SentDocument, most: int) -> tuple[list[str], bool]:
    """The first `most` + 1 lines of a document, and whether its format has markup."""
    format, document = parsed(limits, sent)
    return document.lines[: most + 1], format != "text"


class Written(NamedTuple):
    """A translated document, and what its user should know, such as the number of strings left untranslated."""

    content: bytes
    notice: str = ""


def write(limits: tuple[int, int], sent: SentDocument, lines: list[Line]) -> Written:
    """The document with each line replaced by its best translation."""
    _, document = parsed(limits, sent)
    content = document.join([line[0] for line in lines])
    return Written(content, document.notice)
