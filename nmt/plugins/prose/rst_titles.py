"""Titles in reStructuredText, whose adornment is as long as their text."""

from collections.abc import Sequence

from nmt.plugins.documents import Part
from nmt.plugins.prose.rst_lines import Line
from nmt.plugins.prose.sentences import ProseSentence
from nmt.plugins.prose.wrapping import display_width
from nmt.translation import Translated


class Title(Part):
    """A title with its adornment."""

    def __init__(
        self,
        text: str,
        sentence: ProseSentence,
        line: Line,
        underline: Line,
        overline: Line | None,
        is_referenced: bool,
    ) -> None:
        """`is_referenced` tells whether the document has a reference to the title's text."""
        self.sentence = sentence
        self.line = line
        self.adornment = underline.text
        self.is_referenced = is_referenced
        begin = overline.begin if overline else line.begin
        super().__init__(begin, underline.end, sentence.lines)
        self.raw = text[begin : underline.end]
        # The text around the title and its adornment.
        self.before_sentence = text[line.begin : sentence.begin]
        self.after_sentence = text[sentence.end : line.end]
        self.between = text[line.end : underline.begin]
        self.overline = text[overline.begin : line.begin] if overline else ""

    def render(self, translations: Sequence[Translated]) -> str:
        written = self.sentence.render(translations)
        if written == self.sentence.raw:
            return self.raw
        title = self.before_sentence + written + self.after_sentence
        adornment = self.adornment_of(title)
        overline = self.overline.replace(self.adornment, adornment, 1)
        target = ""
        if self.is_referenced:
            # References to the text of the source still lead here.
            newline = "\r\n" if "\r" in self.between else "\n"
            target = f".. _`{self.line.text}`:{newline}{newline}"
        return target + overline + title + self.between + adornment

    def adornment_of(self, title: str) -> str:
        """The adornment of a new title."""
        sign = self.adornment[0]
        width = display_width(title)
        old = display_width(self.line.text)
        # An adornment as long as the title remains so; a longer one may have a use of its own.
        inset = self.line.column if self.overline else 0
        is_exact = len(self.adornment) in (old, old + 2 * inset)
        size = width if is_exact else max(width, len(self.adornment) - 2 * inset)
        return sign * (max(size, min(4, len(self.adornment))) + 2 * inset)
