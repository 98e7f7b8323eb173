"""Sentences in OpenDocument files, and in the titles and tables of contents of EPUB."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape

from nmt.plugins.documents.code_pairs import name_of_code
from nmt.plugins.documents.directions import turn_of
from nmt.plugins.documents.document import MarkedUp, Part, Spliced
from nmt.plugins.documents.elements import Element, escaped, parse_xml
from nmt.plugins.documents.languages import change_of, declared
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.nested import Paragraph, marked, paragraph_parts
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.placeholder_codes import is_placeholder
from nmt.plugins.documents.scripts import join_scripts
from nmt.plugins.documents.xml_tokens import (
    AROUND,
    BREAKS,
    CODED,
    CODES,
    text_token,
)
from nmt.text import separates_words

RUBY = frozenset(["ruby", "ruby-base"])
READING = "ruby-text"
STRING = re.compile(r"""string-value=(?:"([^"]*)"|'([^']*)')""")
"""The text of a cell, which overrides its content."""
VALUE = re.compile(r""":formula=|office:value-type=["'](?!string["'])""")
"""Marks a cell that has no text to translate."""
UNREAD = frozenset(["annotation", "tracked-changes"])
RAISED_OR_LOWERED = re.compile(r"super|sub|-?\d+(\.\d+)?%")
ON_THE_LINE = ("0%", "-0%")


def styles_of_scripts(elements: Iterable[Element]) -> Iterator[tuple[str, str]]:
    """The names of the styles that raise or lower text, and "sup" or "sub" for each."""
    for style in elements:
        if style.tag != "style:style":
            continue
        for properties in style.children:
            # A position and, optionally, a size, such as "super 58%".
            declared_position = properties.attributes.get("text-position", "").split()
            position = declared_position[0] if declared_position else ""
            # A style may also set its text back on the line.
            if position in ON_THE_LINE or not RAISED_OR_LOWERED.fullmatch(position):
                continue
            is_lowered = position.startswith(("sub", "-"))
            yield style.attributes.get("name", ""), "sub" if is_lowered else "sup"


class Flow(MarkedUp):
    """A file whose formatting is inside of paragraphs: of OpenDocument, EPUB or XLIFF."""

    paragraphs = frozenset(
        [
            "p",
            "h",
            "navLabel",
            "docTitle",
            "svg:title",
            "svg:desc",
            "presentation:header-decl",
            "presentation:footer-decl",
        ]
    )
    """Names or tags of elements that are translated as a sentence."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.change = change_of(source, target)
        self.turn = turn_of(source, target)
        self.scripts = dict[str, str]()  # style -> "sup" or "sub"
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> Sequence[Part]:
        elements = parse_xml(text)
        self.scripts = dict(styles_of_scripts(elements))
        # The first element is the document itself, and all others are inside it.
        return [*self.declarations(elements), *self.sentences(elements[0])]

    def declarations(self, elements: Sequence[Element]) -> list[Part]:
        """The changes of the languages and directions that the file declares."""
        return declared(elements, self.change, self.turn)

    def script_of(self, span: Element) -> str | None:
        """Whether a span raises ("sup") or lowers ("sub") its text."""
        if not self.scripts:  # usual, and worth the speed
            return None
        return self.scripts.get(span.attributes.get("style-name", ""))

    def sentences(self, element: Element) -> list[Part]:
        """The sentences in an element, including those inside of other sentences."""
        # Some need their prefix: svg:title is a text, but other elements are named `title`, too.
        if element.name in self.paragraphs or element.tag in self.paragraphs:
            return self.paragraph(element)
        # Comments and deleted text are counted by `texts_left`, not translated.
        if element.name in UNREAD:
            return []
        parts = list[Part]()
        # Programs compute what a cell with a number or a formula shows.
        if element.name == "table-cell":
            if VALUE.search(element.file, element.begin, element.inside):
                return parts
            parts += overriding_text(element)
        for child in element.children:
            parts += self.sentences(child)
        return parts

    def paragraph(self, element: Element) -> list[Part]:
        notes = list[Spliced]()
        tokens = join_scripts(self.tokens_of(element, notes))
        paragraph = Paragraph(element.inside, tokens, notes, escaped)
        return paragraph_parts(paragraph, notes)

    def text_tokens(self, raw: str) -> list[MarkupToken]:
        return [text_token(raw)]

    def tokens_of(self, element: Element, notes: list[Spliced] | None = None) -> list[MarkupToken]:
        """The tokens of a sentence.

        With `notes`, elements with sentences of their own are marked in it and added to `notes`.
        """
        tokens = list[MarkupToken]()
        at = element.inside
        for child in element.children:
            tokens += self.text_tokens(element.file[at : child.begin])
            tokens += self.tokens_of_child(child, notes)
            at = child.end
        tokens += self.text_tokens(element.file[at : element.outside])
        return tokens

    def tokens_of_child(self, child: Element, notes: list[Spliced] | None) -> list[MarkupToken]:
        """The tokens of an element in a sentence."""
        # First what must not change, then what contains text, then codes, and last any other
        # element.
        is_coded = child.name in CODED
        if is_coded and is_protected(child):
            return [protected(child)]
        separates = is_coded and self.code_separates_words(child)
        # Without content, it is a tag between words, like any other.
        if child.name in AROUND | RUBY and child.inside < child.outside:
            return self.tokens_around(child, separates, notes)
        placeholder = self.placeholder_of(child)
        if placeholder and not separates:
            return [MarkupToken("copy", child.raw, placeholder)]
        if child.name in CODES:
            return spaced(code_token(child), separates)
        if child.name == READING:  # in letters that people pronounce
            return [MarkupToken("point", child.raw, is_dropped=True)]
        is_field = not child.children and child.text != ""  # such as a page number
        if is_field:
            return [copied(child)]
        return [self.point(child, separates, notes)]

    def code_of(self, element: Element) -> str:
        """The code that an element of XLIFF or TMX stands for; empty if the file lacks it."""
        code = element.attributes.get("equiv-text", "")
        # Otherwise, its content is the original code.
        if not code and element.name in CODES:
            code = element.text
        return code

    def code_separates_words(self, element: Element) -> bool:
        """Whether the code that an element stands for separates words, as line breaks do."""
        attributes = element.attributes
        kind = attributes.get("ctype") or attributes.get("type", "")
        return separates_words(self.code_of(element), kind)

    def placeholder_of(self, element: Element) -> str:
        """The placeholder that an element of XLIFF or TMX stands for; empty for any other code."""
        if element.name not in ("x", "ph"):
            return ""
        name = element.attributes.get("id", "")
        code = self.code_of(element) or name
        return code if is_placeholder(code) or is_placeholder(name) else ""

    def point(self, child: Element, separates: bool, notes: list[Spliced] | None) -> MarkupToken:
        """The token of an element between words."""
        raw = child.raw if notes is None else self.with_mark(child, notes)
        return MarkupToken("point", raw, breaks=separates or child.name in BREAKS)

    def with_mark(self, element: Element, notes: list[Spliced]) -> str:
        """The text of an element in a sentence.

        It is the element itself or, if the element has sentences, a mark. Then the element is added
        to `notes`.
        """
        parts = self.sentences(element)
        if not parts:
            return element.raw
        note = Spliced(element.raw, parts, element.begin)
        notes.append(note)
        return marked(note)

    def tokens_around(
        self,
        element: Element,
        separates: bool,
        notes: list[Spliced] | None,
    ) -> list[MarkupToken]:
        """The tokens of an element whose text belongs to the sentence around it."""
        is_span = element.name == "span"
        script = self.script_of(element) if is_span else None
        name = script or element.name
        is_dropped = element.name in RUBY
        opening = MarkupToken(
            "open",
            element.file[element.begin : element.inside],
            name=name,
            # A span only formats its words. Other elements, such as links, must not disappear.
            optional=is_span,
            is_script=script is not None,
            is_dropped=is_dropped,
        )
        closing = MarkupToken(
            "close",
            element.file[element.outside : element.end],
            name=name,
            is_dropped=is_dropped,
        )
        inside = self.tokens_of(element, notes)
        return [*spaced(opening, separates), *inside, *spaced(closing, separates)]


def copied(element: Element) -> MarkupToken:
    """The token of an element that is copied with its text."""
    return MarkupToken("copy", element.raw, element.text)


def protected(element: Element) -> MarkupToken:
    """The token of an element that must not be translated."""
    return copied(element) if element.text else MarkupToken("point", element.raw)


def code_token(element: Element) -> MarkupToken:
    """The token of an inline code of XLIFF or TMX."""
    return MarkupToken(CODES[element.name], element.raw, name=name_of_code(element.attributes))


def overriding_text(cell: Element) -> Iterator[Part]:
    """The text in the opening tag of a cell, if it has one."""
    match = STRING.search(cell.file, cell.begin, cell.inside)
    if match:
        group = match.lastindex or 1  # for each kind of quotes
        yield Sentence(match.start(group), [text_token(match[group])], escape)


def is_protected(element: Element) -> bool:
    """Whether an element of XLIFF marks text that must not be translated."""
    attributes = element.attributes
    return attributes.get("translate") == "no" or attributes.get("mtype") == "protected"


def spaced(token: MarkupToken, separates: bool) -> list[MarkupToken]:
    """A tag that perhaps separates words, for the model only."""
    if not separates:
        return [token]
    if token.kind == "point":
        return [replace(token, breaks=True)]
    space = MarkupToken("text", "", " ")  # without `raw`, it is not written
    return [space, token, space]
