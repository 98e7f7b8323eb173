"""Sentences of USFM, in whose translations the markers of lines keep their order."""

import re
from collections.abc import Callable, Sequence

from nmt.plugins.documents import MarkupToken, Paragraph
from nmt.translation import Translated

MARKUP = re.compile(r"[\\|]")
OPENING = re.compile(r"\\\+?[A-Za-z]+[0-9]*(?:-[0-9]+)?\Z")
"""A marker without the blank that separates it from text."""


class Verse(Paragraph):
    """A verse, heading or note."""

    def written(
        self,
        translations: Sequence[Translated],
        nodes: Sequence[MarkupToken],
        escape: Callable[[str], str],
    ) -> str:
        text = super().written(translations, nodes, escape)
        if text == self.raw:
            return text
        return with_blanks(in_order(text, self.nodes), self.nodes)


def in_order(text: str, nodes: Sequence[MarkupToken]) -> str:
    """A translation with the markers that divide it in the order of the source.

    The second line of a verse may become its first, but has its indentation then.
    """
    raws = [node.raw for node in nodes if node.kind == "point" and node.name and "\\" in node.raw]
    if len(set(raws)) < 2:
        return text
    # Longer markers first, because they may begin with others.
    pattern = "|".join(re.escape(raw) for raw in sorted(set(raws), key=len, reverse=True))
    if len(re.findall(pattern, text)) != len(raws):
        return text
    left = iter(raws)
    return re.sub(pattern, lambda _: next(left), text)


def with_blanks(text: str, nodes: Sequence[MarkupToken]) -> str:
    """A translation with a blank behind each marker that was before another marker."""
    bare = {node.raw for node in nodes if OPENING.search(node.raw)}
    for raw in bare:
        text = re.sub(rf"{re.escape(raw)}(?![\s\\*])", lambda marker: marker[0] + " ", text)
    return text


def without_markers(text: str) -> str:
    """Text of a translation, which cannot contain the signs of markers and attributes."""
    return MARKUP.sub("", text)
