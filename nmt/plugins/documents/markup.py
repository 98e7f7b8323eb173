"""Sentences with markup: extract plain text for a translator, and put the markup back.

In the plain text, a mark stands for each piece of code and the like, and the code replaces the mark
in the translation.
"""

import re
from collections.abc import Callable, Sequence

from nmt.items import COPY
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.nodes import MarkupToken, Placed
from nmt.plugins.documents.projection import Projection
from nmt.plugins.documents.trees import all_nodes, text_and_nodes
from nmt.plugins.documents.trimming import trimmed_sentence, with_whole_words
from nmt.text import blank_between
from nmt.translation import Translated


def line_and_offsets(plain: str) -> tuple[str, list[int]]:
    """A text on a single line, and the offset in it of each character of the text and of its end.

    Runs of white space become one blank, or nothing at the ends of the text: " a \\nb" becomes
    "a b" with the offsets [0, 0, 1, 1, 2, 3]. In Chinese and Japanese, runs with a line break
    become nothing.
    """
    line = ""
    offsets = list[int]()
    at = 0  # behind the last word
    for word in re.finditer(r"\S+", plain):
        space = plain[at : word.start()]
        offsets += [len(line)] * len(space)
        if not line:
            separator = ""
        elif "\n" in space or "\r" in space:
            # The line break only wraps a paragraph of the file.
            separator = blank_between(line, word[0])
        else:
            separator = " "
        line += separator
        offsets += range(len(line), len(line) + len(word[0]))
        line += word[0]
        at = word.end()
    # White space at the end maps to the end of the line, and so does the end of the text.
    rest = len(plain) - at
    offsets += [len(line)] * (rest + 1)
    return line, offsets


def has_letters(tokens: Sequence[MarkupToken]) -> bool:
    """Whether the texts of some tokens have letters, as opposed to code, which may have some."""
    text = "".join(token.text for token in tokens if token.kind == "text")
    return any(map(str.isalpha, text))


class Sentence(Part):
    """A part translated as one line, without its markup; its tokens start at offset `begin`.

    `escape` encodes text for the file. `plain` is the line: of Use <code>ls</code>!, it is "Use"
    and an item for the code, followed by "!".
    """

    def __init__(
        self, begin: int, tokens: Sequence[MarkupToken], escape: Callable[[str], str]
    ) -> None:
        offset, inside = trimmed_sentence(with_whole_words(tokens))
        self.raw = "".join(token.raw for token in inside)
        self.escape = escape
        plain, self.nodes = text_and_nodes(inside)
        if not self.nodes and "\n" not in plain and "\r" not in plain:
            self.plain = " ".join(plain.split())
        else:
            self.plain, offsets = line_and_offsets(plain)
            # The nodes count in the text with its line breaks, but translators and alignments see
            # one line.
            for node in all_nodes(self.nodes):
                node.begin = offsets[node.begin]
                node.end = offsets[node.end]
        # Without letters, there is nothing to translate, and the tokens are written as they are.
        lines = [self.plain] if has_letters(inside) else []
        begin += offset
        super().__init__(begin, begin + len(self.raw), lines)

    def render(self, translations: Sequence[Translated]) -> str:
        return self.written(translations, self.nodes, self.escape)

    def written(
        self,
        translations: Sequence[Translated],
        nodes: Sequence[MarkupToken],
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
        # Without markup, there is nothing to place. Most sentences are such, and the alignment of
        # words takes most of the time for the others.
        if not nodes:
            return escape(text)
        # The sentence is like an element, so elements at any level are placed in the same way.
        root = MarkupToken("open", "", end=len(self.plain), children=list(nodes))
        projection = Projection(self.plain, root, text, translations[0].alignment)
        place = Placed(0, len(text), root, range(len(projection.target.starts)))
        return projection.render(place, escape)

    def with_copies(self, text: str) -> str:
        """A text with code in place of its marks."""
        copies = {node.text[0]: node.raw for node in all_nodes(self.nodes) if node.kind == "copy"}
        # A mark that is not of this sentence is a character of the text itself.
        return COPY.sub(lambda copy: copies.get(copy[1], copy[0]), text)
