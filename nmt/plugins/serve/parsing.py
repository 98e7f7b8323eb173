"""Documents of clients, which are parsed in separate processes."""

import math
import os
import resource
import time
from pathlib import PurePath
from typing import NamedTuple

from nmt.config import DocumentOptions, NMTError, shared_suffixes
from nmt.extensions import DocumentEntry
from nmt.registry import entries_of
from nmt.translation import (
    HEAD_BYTES,
    Document,
    Translated,
    advice_for,
    format_by_content,
    is_name_of_text,
    kind_of_content,
    may_be_code,
    read_document,
)

NICENESS = 5
"""Translation has priority, but parsing still gets a quarter of a busy core."""
Line = list[Translated]
"""The translations of a line, best first."""


AUTO = "auto"


class SentDocument(NamedTuple):
    """A client's document.

    It is parsed twice, to read and to write it, because parsing processes keep no state.
    """

    content: bytes
    name: str
    """The file's name, whose suffix determines the format."""
    source: str = ""
    target: str = ""
    format: str = AUTO
    """The format that the client names, or auto."""
    options: DocumentOptions | None = None


def formats_of_documents() -> dict[str, str]:
    """Map file name suffixes to formats."""
    formats = dict[str, str]()
    for name, entry in entries_of(DocumentEntry).items():
        formats |= dict.fromkeys(entry.suffixes, name)
    return formats


def supported_suffixes() -> list[str]:
    """The suffixes of documents, including those whose files are documents only by content."""
    return [*formats_of_documents(), *shared_suffixes()]


def format_of(sent: SentDocument) -> str:
    """The format of a document; NMTError if it is unknown, or if it is text with markup.

    Like the command line, the server translates files line by line if their name says that they
    are text, as `test.en` and names without a suffix do.
    """
    if sent.format != AUTO:
        names = entries_of(DocumentEntry)
        if sent.format not in names:
            raise NMTError(f"unknown format; supported: {', '.join(names)}")
        return sent.format
    formats = formats_of_documents()
    format = formats.get(PurePath(sent.name).suffix.lower(), "")
    # Unlike the command line, the server reads no compressed files.
    suffix = file_suffix(file_name(sent.name)).removeprefix(".")
    if not format:
        format = format_by_content(suffix, sent.content[:HEAD_BYTES])
    if not format and is_name_of_text(suffix):
        format = "text"
    if not format:
        problem = "unsupported file type"
        advice = advice_for(suffix)
        if advice:
            problem += f"; {advice}"
        raise NMTError(f"{problem}; supported: {', '.join(supported_suffixes())}")
    if format == "text":
        check_content(sent, suffix)
    return format


def check_content(sent: SentDocument, suffix: str) -> None:
    """Raise NMTError if line-by-line translation would damage the content of a file."""
    head = sent.content[:HEAD_BYTES]
    kind = kind_of_content(head, may_be_code(suffix))
    if kind is None:
        return
    problem = f"its content is {kind.name}, which line-by-line translation would damage"
    advice = kind.advice
    if kind.format:
        advice = f"give its name the suffix of {kind.format}"
    raise NMTError(f"{problem}; {advice}")


def file_suffix(name: str) -> str:
    """The suffix of a file name, with its dot; in "Notes of Mr. Smith", the dot begins none."""
    suffix = PurePath(name).suffix
    return "" if " " in suffix else suffix


def file_name(name: str) -> str:
    """The last part of a path of any operating system."""
    return PurePath(name.replace("\\", "/")).name


def parsed(limits: tuple[int, int], sent: SentDocument) -> tuple[str, Document]:
    """A document's format, and the document; `limits` are bytes of memory and seconds of CPU time.

    Exceeding the memory raises MemoryError, and exceeding the time kills the process.
    """
    most_bytes, most_seconds = limits
    # anyio keeps idle processes for later documents, and the limit counts the whole life of a
    # process.
    used_seconds = math.ceil(time.process_time())  # by documents that this process parsed before
    # Soft limits, because a process without privileges cannot raise a hard limit again for its next
    # document. Reaching the soft limit of CPU time sends SIGXCPU, which ends the process.
    set_soft_limit(resource.RLIMIT_AS, most_bytes)
    set_soft_limit(resource.RLIMIT_CPU, used_seconds + most_seconds)
    # `nice` adds to the present value, which may come from an earlier document.
    os.nice(NICENESS - os.nice(0))
    format = format_of(sent)
    document = read_document(format, sent.content, sent.target, sent.source, sent.options)
    return format, document


def set_soft_limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most, hard))


def read_lines(limits: tuple[int, int], sent: SentDocument, most: int) -> tuple[list[str], bool]:
    """The first `most` + 1 lines of a document, and whether its format has markup."""
    format, document = parsed(limits, sent)
    # One line more than allowed is enough to refuse the document, and cheaper to send to the
    # server.
    return document.lines[: most + 1], format != "text"


class Written(NamedTuple):
    """A translated document."""

    content: bytes
    notice: str = ""
    """A message for the user, such as the number of strings left untranslated."""


def write(limits: tuple[int, int], sent: SentDocument, lines: list[Line]) -> Written:
    """The document with each line replaced by its best translation."""
    # Parsed again, since the process that read it may have ended or be busy with another document.
    _, document = parsed(limits, sent)
    content = document.join([line[0] for line in lines])
    return Written(content, document.notice)
