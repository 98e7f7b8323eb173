"""Sentences with markup: extract plain text for a translator, and put the markup back into the translation.

In the plain text, a mark stands for each piece of code and the like, and the code replaces the mark in the translation.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, cycle

import regex

from nmt.plugins.documents.document import Part, Translated
from nmt.plugins.documents.nodes import (
    DEEPEST as DEEPEST,
    Kind as Kind,
    Token as Token,
    find_pairs as find_pairs,
)
from nmt.plugins.documents.projection import Placed, Projection
from nmt.plugins.protection.copies import COPIES, COPY, copy_of
from nmt.text import blank_between

# As written in a file: of HTML, of office documents, of subtitles, as an escape, as a reference.
LINE_BREAK = re.compile(
    r"[\r\n]|<(?:\w+:)?(?:br|line-break|cr)\b|\\[nN]|&#(?:10|13|x0*[aAdD]);|_x000[aAdD]_",
    re.IGNORECASE,
)
# Longer ones may be a word that only lacks a space.
LETTERS_BEFORE, LETTERS_AFTER = (
    regex.compile(r"(?<!\w)\p{Latin}{1,9}$"),
    regex.compile(r"\p{Latin}{1,9}(?!\w)"),
)


def unused_marks(text: str) -> Iterator[str]:
    """Marks that do not occur in a text; after the last one, they repeat."""
    used = set(text).intersection(COPIES)
    # If a text uses all marks, a blank separates the words around the code.
    return cycle([mark for mark in COPIES if mark not in used] or [" "])


def tree(tokens: Sequence[Token]) -> tuple[str, list[Token]]:
    """The plain text of `tokens`, with a marked item for each "copy", and their markup as a list of trees."""
    partners, pieces, size = find_pairs(tokens), list[str](), 0
    stack = [Token("open", "")]
    marks: Iterator[str] = iter(())
    if any(token.kind == "copy" for token in tokens):
        marks = unused_marks("".join(token.text for token in tokens))
    for index, token in enumerate(tokens):
        node = replace(
            token, begin=size, is_glued=bool(pieces and pieces[-1][-1:].strip()), children=[]
        )
        if index not in partners:
            if token.kind == "copy":
                node.text = copy_of(next(marks), token.text)
            elif token.kind != "text":
                node.kind = "point"
            separator = node.breaks and separator_of(node)
            pieces += [piece for piece in (separator, node.text) if piece]
            size += node.breaks + len(node.text)
            node = replace(node, end=node.begin + len(node.text), closing="")
            if node.kind != "text" and not node.is_dropped:
                stack[-1].children.append(node)
        elif token.kind == "open":
            stack.append(node)
        else:
            element = stack.pop()
            element.end, element.closing = size, token.closing or token.raw
            stack[-1].children += element.children if element.is_dropped else [element]
    return "".join(pieces), stack[0].children


def separator_of(node: Token) -> str:
    """White space for a tag that separates words: a line break, which some scripts replace by nothing."""
    return "\n" if LINE_BREAK.search(node.raw) else " "


def all_nodes(nodes: Iterable[Token]) -> list[Token]:
    """The nodes and all nodes inside them."""
    result = [*nodes]
    for node in result:
        result += node.children
    return result


def on_one_line(plain: str) -> tuple[str, list[int]]:
    """A text on a single line, and the place in it for each character of the text and for its end.

    White space becomes a blank. In Chinese and Japanese, the line breaks of a paragraph become
    nothing.
    """
    text = ""
    places = list[int]()
    at = 0
    for word in re.finditer(r"\S+", plain):
        blank = ""
        if text:
            space = plain[at : word.start()]
            blank = blank_between(text, word[0]) if "\n" in space or "\r" in space else " "
        places += [len(text)] * (word.start() - at)
        if blank and places:
            places[-1] = len(text)
        text += blank
        places += range(len(text), len(text) + len(word[0]))
        text += word[0]
        at = word.end()
    return text, [*places, *[len(text)] * (len(plain) - at + 1)]


def strip(token: Token, cut: Callable[[str], str]) -> str:
    """Strip whitespace from one end of a token and return the whitespace."""
    whole, token.raw = token.raw, cut(token.raw)
    if token.raw != whole:
        token.text = cut(token.text)
    return whole.replace(token.raw, "", 1) if token.raw else whole


def without_ends(token: Token, first: int, last: int) -> Token:
    """A text without its first and last characters."""
    end = len(token.text) - last
    return replace(token, raw=token.raw[first : len(token.raw) - last], text=token.text[first:end])


def with_whole_words(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with Latin letters that directly adjoin code joined to it: in `x`s, the s is not a separate word."""
    result = [*tokens]
    for index, token in enumerate(result):
        if token.kind != "copy":
            continue
        before = result[index - 1] if index else token
        if (
            before.kind == "text"
            and (match := LETTERS_BEFORE.search(before.text))
            and before.raw.endswith(match[0])
        ):
            token = replace(
                token, raw=match[0] + token.raw, text=match[0] + token.text if token.text else ""
            )
            result[index - 1] = without_ends(before, 0, len(match[0]))
        after = result[index + 1] if index + 1 < len(result) else token
        if (
            after.kind == "text"
            and (match := LETTERS_AFTER.match(after.text))
            and after.raw.startswith(match[0])
        ):
            token = replace(
                token, raw=token.raw + match[0], text=token.text + match[0] if token.text else ""
            )
            result[index + 1] = without_ends(after, len(match[0]), 0)
        result[index] = token
    return result


def has_text(token: Token) -> bool:
    return token.kind == "copy" or bool(token.text.strip())


def without_empty(tokens: Sequence[Token]) -> list[Token]:
    """Copies of the tokens in which each element without words is a single tag."""
    partners, result, at = find_pairs(tokens), list[Token](), 0
    words = [0, *accumulate(map(has_text, tokens))]  # the number of them before each token
    while at < len(tokens):
        last = partners.get(at, at)
        if last > at and words[at] == words[last]:
            element = tokens[at : last + 1]
            # A break or blank inside it separates the words around it.
            breaks = any(token.breaks or token.text for token in element)
            raw = "".join(token.raw for token in element)
            is_dropped = all(token.is_dropped for token in element)
            result.append(Token("point", raw, breaks=breaks, is_dropped=is_dropped))
        else:
            last = at
            result.append(replace(tokens[at]))
        at = last + 1
    return result


def core(tokens: Sequence[Token]) -> tuple[int, list[Token]]:
    """The offset and the tokens of the span from the first to the last word, extended to all elements that it touches.

    It also grows by elements to drop that contain all of it. A line break absorbs the whitespace
    around it; any other tag between two spaces absorbs one of them.
    """
    partners = find_pairs(tokens)
    worded = [index for index, token in enumerate(tokens) if has_text(token) or token.closing] or [
        0,
        -1,
    ]
    first, last = worded[0], worded[-1]
    begin = min([first, *(i for i in range(first) if first < partners.get(i, -1) <= last)])
    end = max(
        [last, *(i for i in range(last + 1, len(tokens)) if first <= partners.get(i, -1) <= last)]
    )
    around = (i for i in range(begin) if tokens[i].is_dropped and partners.get(i, -1) > end)
    if (outermost := next(around, None)) is not None:
        begin, end = outermost, partners[outermost]
    size = sum(len(token.raw) for token in tokens[:begin])
    inside = without_empty(tokens[begin : end + 1])
    if inside and inside[0].kind == "text":
        size += len(strip(inside[0], str.lstrip))
    if inside and inside[-1].kind == "text":
        strip(inside[-1], str.rstrip)
    absorb_blanks(inside)
    return size, inside


def absorb_blanks(tokens: Sequence[Token]) -> None:
    """Move whitespace beside tags into their `raw`, in place."""
    nothing = Token("point", "")
    for before, token, after in zip(
        [nothing, *tokens], tokens, [*tokens[1:], nothing], strict=False
    ):
        between_texts = before.kind == after.kind == "text"
        if token.breaks:
            if after.kind == "text":
                token.raw += strip(after, str.lstrip)
            if before.kind == "text":
                token.raw = strip(before, str.rstrip) + token.raw
        elif token.kind == "point" and between_texts and before.text[-1:].isspace():
            token.raw += strip(after, str.lstrip)


def without_optional(nodes: Iterable[Token]) -> Iterator[Token]:
    """Replace all optional elements with their content."""
    for node in nodes:
        children = list(without_optional(node.children))
        yield from (
            children
            if node.optional and node.kind == "open"
            else [replace(node, children=children)]
        )


class Sentence(Part):
    """A part translated as one line; its tokens start at offset `begin`, and `escape` encodes text for the file."""

    def __init__(self, begin: int, tokens: Sequence[Token], escape: Callable[[str], str]) -> None:
        size, inside = core(with_whole_words(tokens))
        self.raw, self.escape = "".join(token.raw for token in inside), escape
        plain, self.nodes = tree(inside)
        self.plain, places = on_one_line(plain)
        for node in all_nodes(self.nodes):
            node.begin = places[node.begin]
            node.end = places[node.end]
        has_words = any(c.isalpha() for token in inside if token.kind == "text" for c in token.text)
        lines = [self.plain] if has_words else []
        super().__init__(begin + size, begin + size + len(self.raw), lines)

    def render(self, translations: Sequence[Translated]) -> str:
        return self.written(translations, self.nodes, self.escape)

    def written(
        self,
        translations: Sequence[Translated],
        nodes: Sequence[Token],
        escape: Callable[[str], str],
    ) -> str:
        """The translation with these nodes placed in it; the source if the translation is missing or the same."""
        text = " ".join(translations[0].text.split()) if translations else ""
        if text in ("", self.plain):
            return self.raw
        root = Token("open", "", end=len(self.plain), children=list(nodes))
        projection = Projection(self.plain, root, text, translations[0].alignment)
        place = Placed(0, len(text), root, range(len(projection.target.starts)))
        return projection.render(place, escape)

    def with_copies(self, text: str) -> str:
        """A text with code in place of its marks."""
        copies = {node.text[0]: node.raw for node in all_nodes(self.nodes) if node.kind == "copy"}
        return COPY.sub(lambda copy: copies.get(copy[1], copy[0]), text)
