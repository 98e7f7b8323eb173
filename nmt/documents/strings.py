"""Sentences of short texts, such as messages of a program and subtitles: tags in them, and line ends that matter."""

import re
from collections.abc import Iterator

from nmt.documents.document import Spliced
from nmt.documents.markup import Sentence, Token

MARKUP = re.compile(r"(?P<line>\r?\n)|</?(?P<name>[a-zA-Z][\w:-]*)(?:\s[^<>]*)?>|\{\\[^{}]*\}|\A\s*[-*•\u2013]\s+")
"""A line end, a tag, a command of subtitles such as {\\an8}, or the dash at the beginning."""
PARAGRAPH = re.compile(r"\r?\n(?=[ \t\r\n]|[-*•\u2013]|\d+[.)])")
"""The end of a line after which nothing goes on: an empty line, an item of a list, or an indented line follows."""


def same(text: str) -> str:
    return text


def tokens_of(text: str) -> Iterator[Token]:
    at = 0
    for found in MARKUP.finditer(text):
        raw, name = found[0], found["name"]
        yield Token("text", text[at : found.start()], text[at : found.start()])
        at = found.end()
        if not name or raw.endswith("/>"):
            yield Token("point", raw, breaks=bool(found["line"]), optional=bool(found["line"]))
        else:
            yield Token("close" if raw[1] == "/" else "open", raw, name=name.lower())
    yield Token("text", text[at:], text[at:])


def sentences_of(text: str, begin: int = 0) -> list[Sentence]:
    """The sentences of a text that stands at `begin` in a file."""
    found, at = list[Sentence](), 0
    for end in [*(each.end() for each in PARAGRAPH.finditer(text)), len(text)]:
        found.append(Sentence(begin + at, list(tokens_of(text[at:end])), same))
        at = end
    return found


CUE = re.compile(r"^[ \t]*\d[\d:.,]* +--> .*\n(?P<text>(?:[ \t\r]*+\S.*(?:\n|\Z))*+)", re.MULTILINE)


def read_srt(text: str) -> Spliced:
    """Subtitles: lines of text below a line of times, up to an empty line."""
    cues = (found.span("text") for found in CUE.finditer(text))
    return Spliced(text, [sentence for begin, end in cues for sentence in sentences_of(text[begin:end], begin)])
