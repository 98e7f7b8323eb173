"""Plain text with hard line breaks, such as e-mails and books of Project Gutenberg."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from nmt.plugins.documents.cues import listed
from nmt.plugins.documents.document import Part, Text
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.subtitle_layout import Flat, Layout, Markup, column_width
from nmt.plugins.documents.wrapped_lines import ITEM, NUMBER, Line, Unit, lines_of, units_of
from nmt.text import WITHOUT_BLANKS, blank_between
from nmt.translation import Translated

SUBJECT = re.compile(
    r"Subject:[ \t]*(?:(?:Re|Fwd?|AW|WG|SV)(?:\[\d{1,3}\])?:[ \t]*|\[[^\[\]]{1,60}\][ \t]*)*",
    re.IGNORECASE,
)
"""The name of the header, and what mail programs write before the subject."""
EMPHASIS = re.compile(r"(?<![\w*_])(?P<open>[_*])(?=[^\s_*])|(?<=[^\s_*])(?P<close>[_*])(?![\w*_])")
HYPHEN = re.compile(r"\w*[^\W\d_]-$")
WORD_BEGIN = re.compile(r"[^\W\d_]+")
LONGEST = 60
"""The number of characters beside the end of a line that decide how lines are joined."""
NO_HYPHEN = "-"
CONJUNCTIONS = frozenset(["and", "bzw", "oder", "or", "und"])
"""Words behind a hyphen that stays, as in "pre- and postwar"."""
AT_BEGIN = re.compile(
    rf"[-*+•o\u2013]|--|>.*|\(?(?:{NUMBER}|[a-zA-Z])[.)]|\[\d{{1,4}}\]|{NUMBER}|From"
)
"""Words that would begin an item, a quotation or a signature at the beginning of a line."""
WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
OFTEN = 0.02
"""The share of lines with a hyphen at the end from which a text is hyphenated."""
LEFT = "lines of tables, code, headers and signatures left unchanged"
NO_MARKUP = Markup(unseen=r"(?!)", line_break=r"(?!)")


class Filled(Part):
    """A paragraph whose translation is wrapped to its width."""

    def __init__(self, sentence: Sentence, unit: Unit, content: int) -> None:
        """`content` is the offset behind the mark of an item."""
        super().__init__(sentence.begin, sentence.end, sentence.lines)
        self.sentence = sentence
        self.width = unit.width
        first = unit.lines[0]
        self.end_of_line = first.end_of_line or "\n"
        # Where the sentence begins on its line.
        mark = first.text[: sentence.begin - first.start]
        self.before = column_width((first.margin + mark).expandtabs())
        if len(unit.lines) > 1:
            self.margin = unit.lines[1].margin
        else:
            self.margin = first.margin + " " * (content - first.start)

    def render(self, translations: Sequence[Translated]) -> str:
        written = self.sentence.render(translations)
        if written == self.sentence.raw:
            return written
        margin = column_width(self.margin.expandtabs())
        lines = filled(written, self.width - margin, self.before - margin)
        return f"{self.end_of_line}{self.margin}".join(lines)


class WrappedText(Text):
    """Paragraphs, which empty lines, indentation or quotation marks separate."""

    def parts(self, text: str, target: str) -> list[Part]:
        lines = lines_of(text)
        self.hyphenation = Hyphenation(text, lines)
        parts = list[Part]()
        left = list[int]()
        for unit in units_of(lines):
            if unit.kind == "fixed":
                left += [line.number for line in unit.lines if any(map(str.isalpha, line.text))]
                continue
            sentence, content = self.sentence(text, unit)
            if not sentence.lines:
                continue
            parts.append(Filled(sentence, unit, content) if unit.kind == "paragraph" else sentence)
        self.notice = f"{LEFT}: {listed(left, 'line')}" if left else ""
        return parts

    def sentence(self, text: str, unit: Unit) -> tuple[Sentence, int]:
        """The sentence of a unit, and the offset at which it begins."""
        first = unit.lines[0]
        mark = SUBJECT.match(first.text) if unit.kind == "subject" else ITEM.match(first.text)
        content = first.start + (mark.end() if mark else 0)
        tokens = list[MarkupToken]()
        for index, line in enumerate(unit.lines):
            begin = line.start if index else content
            inside = text[begin : line.end]
            if line is unit.lines[-1]:
                tokens += emphasized(inside)
                break
            following = unit.lines[index + 1]
            # The line break and the margin are not part of the translation.
            margin = text[line.end : following.start]
            joint = self.hyphenation.joint(inside, following.text)
            if joint == NO_HYPHEN:
                tokens += emphasized(inside[:-1])
                tokens.append(MarkupToken("text", f"-{margin}", ""))
            else:
                tokens += emphasized(inside)
                tokens.append(MarkupToken("text", margin, joint))
        return Sentence(content, tokens, str), content


class Hyphenation:
    """How a text hyphenates words at the ends of its lines."""

    def __init__(self, text: str, lines: Sequence[Line]) -> None:
        self.words = frozenset(WORD.findall(text.lower()))
        hyphens = sum(line.text.endswith("-") for line in lines)
        self.is_usual = hyphens > OFTEN * len(lines)

    def joint(self, before: str, after: str) -> str:
        """What stands between two lines: a blank, nothing, or NO_HYPHEN if a hyphen disappears."""
        head = HYPHEN.search(before[-LONGEST:])
        tail = WORD_BEGIN.match(after)
        if not head or not tail:
            return blank_between(before[-LONGEST:], after[:LONGEST])
        if tail[0].lower() in CONJUNCTIONS:
            return " "
        beginning = head[0].removesuffix("-").lower()
        if beginning + tail[0].lower() in self.words:
            return NO_HYPHEN
        is_compound = f"{beginning}-{tail[0].lower()}" in self.words
        if is_compound or not tail[0][0].islower() or not self.is_usual:
            return ""
        return NO_HYPHEN


def emphasized(text: str) -> Iterator[MarkupToken]:
    """The tokens of a text, with tags for _emphasis_ and *emphasis*."""
    at = 0
    for mark in EMPHASIS.finditer(text):
        if at < mark.start():
            yield MarkupToken("text", text[at : mark.start()], text[at : mark.start()])
        kind: Literal["open", "close"] = "open" if mark["open"] else "close"
        yield MarkupToken(kind, mark[0], name=mark[0])
        at = mark.end()
    if at < len(text):
        yield MarkupToken("text", text[at:], text[at:])


def filled(text: str, width: int, before: int) -> list[str]:
    """Lines of at most `width` columns, unless a word is longer; `before` precedes the first."""
    if WITHOUT_BLANKS.search(text):
        layout = Layout(Flat(" ".join(text.split()), NO_MARKUP), before)
        return layout.lines(layout.filled(width))
    lines = list[str]()
    line = ""
    room = width - before
    for word in unbroken(text.split()):
        if line and column_width(line) + 1 + column_width(word) > room:
            lines.append(line)
            line = word
            room = width
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def unbroken(words: Iterable[str]) -> Iterator[str]:
    """The words, together with a following one that would mean something at a line's beginning."""
    pending = ""
    for word in words:
        if pending and AT_BEGIN.fullmatch(word):
            pending += f" {word}"
            continue
        if pending:
            yield pending
        pending = word
    if pending:
        yield pending
