"""Parts of AsciiDoc besides paragraphs: titles with a line below them, and attributes."""

import re
from collections.abc import Sequence

from nmt.plugins.documents import Part
from nmt.plugins.prose.asciidoc_inline import Inline
from nmt.plugins.prose.asciidoc_lines import Line
from nmt.plugins.prose.sentences import ProseSentence
from nmt.translation import Translated

FIRST = re.compile(r"[ \t]*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|(?P<plain>[^,=\"]*))[ \t]*(?:,|$)")
ALT = re.compile(r"(?:^|,)[ \t]*alt=\"(?P<quoted>(?:[^\"\\]|\\.)*)\"")


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


class SectionTitle(Part):
    """The title of a section, with an anchor if references use the name of the source's title."""

    def __init__(self, text: str, sentence: ProseSentence, title: Line, anchor: str) -> None:
        super().__init__(title.begin, title.end, sentence.lines)
        self.sentence = sentence
        self.raw = text[title.begin : title.end]
        self.before = text[title.begin : sentence.begin]
        self.after = text[sentence.end : title.end]
        self.anchor = anchor

    def render(self, translations: Sequence[Translated]) -> str:
        written = self.sentence.render(translations)
        if written == self.sentence.raw:
            return self.raw
        return self.anchor + self.before + written + self.after


class UnderlinedTitle(Part):
    """A title with a line below it, which must be as long as the title."""

    def __init__(
        self,
        text: str,
        sentence: ProseSentence,
        title: Line,
        underline: Line,
        anchor: str,
    ) -> None:
        super().__init__(title.begin, underline.end, sentence.lines)
        self.anchor = anchor
        self.sentence = sentence
        self.before = text[title.begin : sentence.begin]
        self.raw = text[title.begin : underline.end]
        self.after = text[sentence.end : title.end]
        self.between = text[title.end : underline.begin]
        self.sign = underline.text[0]

    def render(self, translations: Sequence[Translated]) -> str:
        written = self.sentence.render(translations)
        if written == self.sentence.raw:
            return self.raw
        title = self.before + written + self.after
        # Asciidoctor counts characters.
        return self.anchor + title + self.between + self.sign * len(title)


class AttributeText(Part):
    """The first attribute of a macro, which is in quotes if necessary."""

    def __init__(self, text: str, begin: int, end: int, is_quoted: bool) -> None:
        self.is_quoted = is_quoted
        self.sentence = ProseSentence(text, (begin, end), Inline(in_brackets=True))
        super().__init__(self.sentence.begin, self.sentence.end, self.sentence.lines)

    @classmethod
    def first(cls, text: str, begin: int, end: int) -> "AttributeText | None":
        """The alternative text among the attributes between two offsets."""
        attributes = text[begin:end]
        match = ALT.search(attributes) or FIRST.match(attributes)
        if not match:
            return None
        group = "plain" if match["quoted"] is None else "quoted"
        first = begin + match.start(group)
        part = cls(text, first, begin + match.end(group), group == "quoted")
        return part if part.lines else None

    def render(self, translations: Sequence[Translated]) -> str:
        written = self.sentence.render(translations)
        if written == self.sentence.raw:
            return written
        if self.is_quoted:
            return re.sub(r"(?<!\\)\"", r"\\\"", written)
        if re.search(r"[,=\"]", written):
            escaped = re.sub(r"(?<!\\)\"", r"\\\"", written)
            return f'"{escaped}"'
        return written
