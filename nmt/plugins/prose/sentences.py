"""Blocks of text with inline markup, which a translation must keep."""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from nmt.plugins.documents import MarkupToken, Paragraph, Spliced, keep_apart
from nmt.plugins.prose.wrapping import SOFT_BREAK, layout_of
from nmt.translation import Translated

BEGINS = "\ufdd0"
ENDS = "\ufdd1"
"""Noncharacters that mark where markup begins and ends, while a translation is written."""
GLUE = "\ufdd2"
"""A blank in code, at which no line may end."""
EDGES = re.compile(f"[{BEGINS}{ENDS}]")
RESERVED = re.compile(f"[{BEGINS}{ENDS}{GLUE}]")


class Syntax(ABC):
    """The inline markup of a language."""

    @abstractmethod
    def tokens(self, text: str) -> list[MarkupToken]:
        """The text and markup of a block; the `name` of an opening tag identifies it."""

    @abstractmethod
    def escape(self, text: str) -> str:
        """A text written so that nothing in it is markup."""

    @abstractmethod
    def variants(self, nodes: Sequence[MarkupToken]) -> Iterable[Sequence[MarkupToken]]:
        """Ways to write the nodes of a translation, the best one first."""

    def finished(self, text: str, before: str, after: str) -> str:
        """A translation without the marks of its `variants`, which stands between two texts."""
        return EDGES.sub("", text)

    def unwrapped(self, text: str) -> str:
        """A text whose line breaks have no meaning on one line."""
        return SOFT_BREAK.sub(" ", text)

    def may_begin(self, word: str) -> bool:
        """Whether a line of a wrapped paragraph may begin with a word."""
        return True

    def guarded(self, text: str, begins_line: bool) -> str:
        """A translation that is not another kind of block, which may begin a line."""
        return text

    def is_same(self, written: str, raw: str) -> bool:
        """Whether a translation of `raw` is the same kind of block."""
        return True


class ProseSentence(Paragraph):
    """The text of a paragraph, heading or item, which is one sentence for the model."""

    def __init__(
        self,
        text: str,
        span: tuple[int, int],
        syntax: Syntax,
        notes: Sequence[Spliced] = (),
        scanned: str | None = None,
    ) -> None:
        """`scanned` is the block with stand-ins for its notes."""
        begin, end = span
        self.syntax = syntax
        self.is_refused = False
        block = text[begin:end] if scanned is None else scanned
        tokens = syntax.tokens(block)
        super().__init__(begin, keep_apart(tokens), notes, syntax.escape)
        self.before = block[: self.begin - begin]
        self.after = block[self.end - begin :]
        self.layout = layout_of(text, self.begin, self.end)
        self.markup = markup_in(tokens)
        first = text.rfind("\n", 0, begin) + 1
        self.begins_line = not text[first:begin].strip()
        if RESERVED.search(block):
            self.lines = []

    def written(
        self,
        translations: Sequence[Translated],
        nodes: Sequence[MarkupToken],
        escape: Callable[[str], str],
    ) -> str:
        """The translation, without emphasis if it would otherwise lose markup.

        It is the source if even that loses markup.
        """
        self.is_refused = False
        if any(RESERVED.search(translated.text) for translated in translations):
            self.is_refused = True
            return self.raw
        for variant in self.syntax.variants(nodes):
            text = super().written(translations, glued(variant), escape)
            if text == self.raw:
                return self.raw
            text = self.syntax.finished(self.syntax.unwrapped(text), self.before, self.after)
            if self.keeps(text.replace(GLUE, " ")):
                text = self.syntax.guarded(text, self.begins_line and not self.before)
                return self.layout.wrapped(text, self.syntax.may_begin).replace(GLUE, " ")
        self.is_refused = True
        return self.raw

    def keeps(self, written: str) -> bool:
        """True if a translation has the source's markup, perhaps without emphasis."""
        if not self.syntax.is_same(self.before + written + self.after, self.raw):
            return False
        after = markup_in(self.syntax.tokens(self.before + written + self.after))
        if not after <= self.markup:
            return False
        return all(is_optional for _, is_optional in self.markup - after)


def markup_in(tokens: Iterable[MarkupToken]) -> Counter[tuple[str, bool]]:
    """The markup of a block, and whether it may be left out."""
    markup = Counter[tuple[str, bool]]()
    for token in tokens:
        if token.kind == "open":
            markup[token.name, token.optional] += 1
        elif token.kind in ("point", "copy"):
            markup[" ".join((token.name or token.raw).split()), False] += 1
    return markup


def glued(nodes: Iterable[MarkupToken]) -> list[MarkupToken]:
    """The nodes with code on one line."""
    result = list[MarkupToken]()
    for node in nodes:
        raw = node.raw
        if node.kind == "copy":
            raw = SOFT_BREAK.sub(" ", raw).replace(" ", GLUE)
        result.append(replace(node, raw=raw, children=glued(node.children)))
    return result


def with_edges(nodes: Iterable[MarkupToken]) -> list[MarkupToken]:
    """The nodes with marks where each of them begins and ends."""
    result = list[MarkupToken]()
    for node in nodes:
        if node.kind == "open":
            edges = replace(
                node,
                raw=BEGINS + node.raw,
                closing=node.closing + ENDS,
                children=with_edges(node.children),
            )
        else:
            edges = replace(node, raw=BEGINS + node.raw + ENDS)
        result.append(edges)
    return result
