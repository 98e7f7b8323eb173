"""Sentences with markup: extract plain text for a translator, and put the markup back.

In the plain text, a mark stands for each piece of code and the like, and the code replaces the mark
in the translation.
"""

import re
from collections.abc import Callable, Sequence

from nmt.items import COPY
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.nodes import (
    Placed,
    Token,
)
from nmt.plugins.documents.projection import Projection
from nmt.plugins.documents.trees import (
    all_nodes,
    tree,
)
from nmt.plugins.documents.trimming import core, with_whole_words
from nmt.text import blank_between
from nmt.translation import Translated


def on_one_line(plain: str) -> tuple[str, list[int]]:
    """A text on a single line, and the place in it for each character of the text and for its end.

    White space becomes a blank. In Chinese and Japanese, the line breaks of a paragraph become
    nothing.
    """
    text = ""
    places = list[int]()
    at = 0
    for word in re.finditer(r"\S+", plain):
        space = plain[at : word.start()]
        places += [len(text)] * len(space)
        if not text:
            blank = ""
        # A line break in the file is only the wrapping of a paragraph, so it is a blank, or
        # nothing.
        elif "\n" in space or "\r" in space:
            blank = blank_between(text, word[0])
        else:
            blank = " "
        text += blank
        places += range(len(text), len(text) + len(word[0]))
        text += word[0]
        at = word.end()
    # White space at the end maps to the end of the line, and so does the end of the text.
    rest = len(plain) - at
    places += [len(text)] * (rest + 1)
    return text, places


def has_letters(tokens: Sequence[Token]) -> bool:
    """Whether the texts of some tokens have letters, as opposed to code, which may have some."""
    text = "".join(token.text for token in tokens if token.kind == "text")
    return any(map(str.isalpha, text))


class Sentence(Part):
    """A part translated as one line; its tokens start at offset `begin`.

    `escape` encodes text for the file.
    """

    def __init__(self, begin: int, tokens: Sequence[Token], escape: Callable[[str], str]) -> None:
        offset, inside = core(with_whole_words(tokens))
        self.raw = "".join(token.raw for token in inside)
        self.escape = escape
        plain, self.nodes = tree(inside)
        self.plain, places = on_one_line(plain)
        # The tree counts in the text with its line breaks, but translators and alignments see one
        # line.
        for node in all_nodes(self.nodes):
            node.begin = places[node.begin]
            node.end = places[node.end]
        # Without letters, there is nothing to translate, and the tokens are written as they are.
        lines = [self.plain] if has_letters(inside) else []
        begin += offset
        super().__init__(begin, begin + len(self.raw), lines)

    def render(self, translations: Sequence[Translated]) -> str:
        return self.written(translations, self.nodes, self.escape)

    def written(
        self,
        translations: Sequence[Translated],
        nodes: Sequence[Token],
        escape: Callable[[str], str],
    ) -> str:
        """The translation with these nodes placed in it.

        It is the source as it is in the file if there is no translation, or if it is the same text.
        """
        # A line break from a translator could end a paragraph or a subtitle.
        text = " ".join(translations[0].text.split()) if translations else ""
        # Text that does not change keeps its bytes. Escaped again, it could be written in another
        # way.
        if text in ("", self.plain):
            return self.raw
        # The sentence is like an element, so elements at any level are placed in the same way.
        root = Token("open", "", end=len(self.plain), children=list(nodes))
        projection = Projection(self.plain, root, text, translations[0].alignment)
        place = Placed(0, len(text), root, range(len(projection.target.starts)))
        return projection.render(place, escape)

    def with_copies(self, text: str) -> str:
        """A text with code in place of its marks."""
        copies = {node.text[0]: node.raw for node in all_nodes(self.nodes) if node.kind == "copy"}
        # A mark that is not of this sentence is a character of the text itself.
        return COPY.sub(lambda copy: copies.get(copy[1], copy[0]), text)
