"""TTML and DFXP: the text of paragraphs (https://www.w3.org/TR/ttml2)."""

import re
from collections.abc import Sequence

from nmt.plugins.documents.cues import Subtitle, Wrapped, notice_of_limits
from nmt.plugins.documents.document import Part, Spliced, notice_of
from nmt.plugins.documents.elements import Element, check_root
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.readings import READINGS_LEFT_OUT
from nmt.plugins.documents.subtitle_layout import Markup
from nmt.plugins.documents.subtitle_options import NO_LIMITS, SubtitlesConfig
from nmt.plugins.documents.xml import Flow
from nmt.text import language_tag, match_language
from nmt.translation import Translated

MARKUP = Markup(unseen=r"<[^<>]*+>", line_break=r"<(?:\w+:)?br\b[^<>]*+>\s*+")
TIME = re.compile(r"(?:(\d{1,4}):(\d\d):)?(\d{1,9}(?:\.\d{1,9})?)(s?)", re.ASCII)
RUBY = ("container", "baseContainer", "base")
READINGS = ("text", "textContainer", "delimiter")
"""The roles of spans with readings, and of the signs around them."""
FOREIGN = "elements in other languages left unchanged"
READING = re.compile(r"""ruby=["']text["']""")


class Caption(Subtitle):
    """The sentences of a paragraph, with markup between them."""

    def __init__(self, element: Element, parts: Sequence[Part], number: int) -> None:
        self.number = number
        self.seconds = duration(element)
        self.markup = MARKUP
        self.inner = Spliced(element.raw, parts, element.begin)
        self.written = element.raw
        super().__init__(element.begin, element.end, self.inner.lines)

    def render(self, translations: Sequence[Translated]) -> str:
        self.written = self.inner.render(translations)
        return self.written


class TimedText(Flow):
    """The texts of a file of TTML; metadata and styles stay."""

    paragraphs = frozenset(["p", "altText"])  # the second is that of a picture

    def __init__(
        self,
        content: bytes,
        source: str = "",
        target: str = "",
        options: SubtitlesConfig = NO_LIMITS,
    ) -> None:
        self.options = options
        self.source = source
        self.target = target
        self.number = 0
        self.foreign = 0
        super().__init__(content, source, target)

    def declarations(self, elements: Sequence[Element]) -> list[Part]:
        """The declarations of the source language, which become those of the target language."""
        check_root(elements[0], "tt")
        parts = list[Part]()
        for element in elements:
            if self.target and self.is_in_source(element):
                tag = language_tag(self.target) or self.target
                parts.append(Part(*element.spans["lang"], otherwise=tag))
        return parts

    def is_in_source(self, element: Element) -> bool:
        declared = element.attributes.get("lang", "")
        return bool(declared and self.source and match_language(declared, [self.source]))

    def sentences(self, element: Element) -> list[Part]:
        # The language of the whole file is often that of the template that it was made from.
        declared = element.name != "tt" and element.attributes.get("lang", "")
        if declared and self.source and not self.is_in_source(element):
            self.foreign += has_letters(element.text)
            return []
        return super().sentences(element)

    def paragraph(self, element: Element) -> list[Part]:
        self.number += element.name == "p"
        parts = super().paragraph(element)
        if not parts:
            return []
        if self.options.max_line:
            limit = self.options.max_line
            parts = [Wrapped(part, element.file, MARKUP, limit) for part in parts]
        return [Caption(element, parts, self.number)]

    def tokens_of_child(self, child: Element, notes: list[Spliced] | None) -> list[MarkupToken]:
        if child.name == "span" and child.attributes.get("ruby", "") in READINGS:
            return [MarkupToken("point", child.raw, is_dropped=True)]
        return super().tokens_of_child(child, notes)

    def tokens_around(
        self,
        element: Element,
        separates: bool,
        notes: list[Spliced] | None,
    ) -> list[MarkupToken]:
        tokens = super().tokens_around(element, separates, notes)
        is_ruby = element.attributes.get("ruby", "") in RUBY
        for tag in (tokens[0], tokens[-1]):
            # Programs time spans without text, too.
            tag.optional = False
            tag.is_dropped = is_ruby
        return tokens

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        notices = [
            notice_of((FOREIGN, self.foreign)),
            notice_of_limits(self.text.parts, self.options),
        ]
        written = "".join(part.written for part in self.text.parts if isinstance(part, Caption))
        source = "".join(part.inner.text for part in self.text.parts if isinstance(part, Caption))
        lost = len(READING.findall(source)) - len(READING.findall(written))
        if lost:
            notices.append(f"{READINGS_LEFT_OUT}: {lost:,}")
        self.notice = "; ".join(filter(None, notices))
        return content


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def duration(element: Element) -> float:
    """The seconds for which an element is shown; 0 if its times are missing or count frames."""
    attributes = element.attributes
    begin = TIME.fullmatch(attributes.get("begin", ""))
    end = TIME.fullmatch(attributes.get("end", ""))
    length = TIME.fullmatch(attributes.get("dur", ""))
    if length:
        return seconds(length)
    if not begin or not end:
        return 0
    return max(seconds(end) - seconds(begin), 0)


def seconds(time: re.Match[str]) -> float:
    total = float(time[3])
    if time[1]:
        total += 3600 * int(time[1]) + 60 * int(time[2])
    return total
