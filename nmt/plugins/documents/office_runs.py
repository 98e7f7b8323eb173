"""Sentences in runs of Office Open XML: stretches of a paragraph with the same formatting.

A run has properties and text: `<w:r><w:rPr><w:b/></w:rPr><w:t>text</w:t></w:r>`. A sentence has no
tags for the properties that most of its text has; for others, it has elements.
"""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from nmt.plugins.documents.document import Part, Spliced
from nmt.plugins.documents.elements import Element, escaped
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.nested import INSIDE, MARK
from nmt.plugins.documents.nodes import Kind, MarkupToken
from nmt.plugins.documents.scripts import join_scripts
from nmt.plugins.documents.xml_tokens import AROUND, BREAKS
from nmt.translation import Translated

PARAGRAPHS = frozenset(["p", "si", "is"])
"""Paragraphs, and the strings of cells."""
TEXTS = frozenset(["t", "noBreakHyphen"])
NESTED = frozenset(["ruby", "rubyBase", "r"])
"""Elements in a run that contain further text."""
DROPPED = frozenset(
    [
        "rPr",
        "proofErr",
        "lastRenderedPageBreak",
        "softHyphen",
        "rubyPr",
        "rt",
        "rPh",
    ]
)
"""Elements that a translation lacks, such as readings and positions of spelling errors."""
READING_OF_CELL = "rPh"
UNSEEN = re.compile(
    r"<(?:\w+:)?(?:lang|noProof)\b[^>]*>"
    r"""|\s(?:lang|altLang|noProof|dirty|err|smtClean)=(?:"[^"]*"|'[^']*')"""
)
"""Properties that do not change how text looks."""
EMPTY = re.compile(r"<[^\s<>]*/>|<([^\s<>]*)></\1>")
SCRIPT = re.compile(
    r"""vertAlign\b[^<>]*["'](?:superscript|(?P<sub>subscript))["']"""
    r"""|\bbaseline=["'](?!-?0+%?["'])(?P<minus>-)?"""
    r"""|rStyle\b[^<>]*["'][^<>"']*(?i:superscript|(?P<lowers>subscript))"""
)
"""Properties that raise or lower text. The name of a style may show it, too."""
SPACE = re.compile(r"((?:_x000[9AaDd]_|[\t\r\n])+)")
"""Line breaks in cells, and tabs that align words on slides."""
DRAWING = re.compile(r'\sxmlns:?(\w*)="[^"]*/drawingml/')
"""Declares the prefix of text on slides and in drawings."""
FORMAT = "\2"
"""Marks the formatting of the following text."""


class Piece(NamedTuple):
    """A token of a sentence, and how it looks: properties of a run, or None outside of runs."""

    look: str | None
    token: MarkupToken


class InRuns(Part):
    """A sentence in runs, or in a cell without formatting, which has only text."""

    def __init__(
        self,
        covered: Sequence[Element],
        tokens: Sequence[MarkupToken],
        prefix: str,
        text_tag: str,
        properties: str,
    ) -> None:
        """The sentence replaces the elements that it has `covered`.

        `text_tag` is the opening tag of text without its brackets. `properties` are those of the
        sentence's runs, except where its tokens change them.
        """
        # Text and markup as one string, because white space at its ends belongs to no sentence.
        raw = "".join(token.raw for token in tokens)
        sentence = Sentence(0, join_scripts(tokens), escaped)
        self.content = Spliced(raw, [sentence])
        begin = covered[0].begin
        # The elements may contain each other, so the last one does not always end last.
        end = max(element.end for element in covered)
        super().__init__(begin, end, self.content.lines)
        self.source = covered[0].file[begin:end]
        self.text_tag = text_tag
        self.properties = properties
        # The text of a cell without runs is directly in the cell.
        self.run = "" if covered[0].name == "t" else f"{prefix}r"

    def render(self, translations: Sequence[Translated]) -> str:
        """The elements of the file for the translation, each stretch of text in a run.

        The content alternates between text and markup, which is between two marks: properties of
        the text after it, something to put in a run, or a tag.
        """
        content = self.content.render(translations)
        if content == self.content.text:
            return self.source
        properties = self.properties
        result = ""
        closing_tag = self.text_tag.split()[0]  # without attributes
        for number, piece in enumerate(content.split(MARK)):
            is_markup = number % 2 == 1  # it was between two marks
            if is_markup and piece.startswith(FORMAT):
                properties = piece.removeprefix(FORMAT)
            elif is_markup and piece.startswith(INSIDE):
                result += self.in_run(piece.removeprefix(INSIDE), properties)
            elif is_markup:
                result += piece
            elif piece:
                result += self.in_run(f"<{self.text_tag}>{piece}</{closing_tag}>", properties)
        return result

    def in_run(self, content: str, properties: str) -> str:
        """Text or other content in a run of its own, unless the file has no runs there."""
        if not self.run:
            return content
        return f"<{self.run}>{properties}{content}</{self.run}>"


def markup(
    kind: Kind,
    raw: str,
    *,
    name: str = "",
    breaks: bool = False,
    optional: bool = False,
    is_script: bool = False,
) -> MarkupToken:
    """A tag, which is enclosed in marks to tell it from text when the sentence is written."""
    return MarkupToken(
        kind,
        f"{MARK}{raw}{MARK}",
        name=name,
        breaks=breaks,
        optional=optional,
        is_script=is_script,
    )


class RunReader:
    """Finds the `sentences` in the paragraphs of a part, given all its elements in order."""

    def __init__(self, text: str, elements: Sequence[Element]) -> None:
        self.sentences = list[Part]()
        self.prefix = ""  # of the tags of a paragraph; a file may use several
        self.properties = dict[str, str]()  # look -> properties of the first run with this look
        self.pieces = list[Piece]()  # of the sentence that is being read
        self.covered = list[Element]()  # the elements that these pieces are from
        self.drawing_prefixes = DRAWING.findall(text)
        # Where elements begin that do not belong inside a sentence, by their names or tags.
        self.places = defaultdict[str, list[int]](list)
        for element in elements:
            # A drawing in a paragraph of Word has paragraphs with another prefix.
            is_of_any_prefix = element.name in ("p", "fldChar")
            key = element.name if is_of_any_prefix else element.tag
            self.places[key].append(element.begin)
        # Results of `joins`, by the prefix of the paragraph and where the element begins.
        self.joining = dict[tuple[str, int], bool]()
        for paragraph in elements:
            # Paragraphs in text boxes are inside others; each is read here on its own.
            if paragraph.name in PARAGRAPHS:
                self.prefix = paragraph.tag.removesuffix(paragraph.name)
                self.read(paragraph.children)
                self.end()

    def read(self, elements: Iterable[Element]) -> None:
        """Read the content of a paragraph or of an element that wraps runs."""
        for element in elements:
            if element.name in DROPPED or element.name.endswith("Pr"):
                # Readings of a cell are behind its text, and are replaced with it.
                if element.name == READING_OF_CELL and self.covered:
                    self.covered.append(element)
            elif not self.joins(element):
                self.read_apart(element)
            elif element.name == "r":
                self.read_run(element, element.children)
            elif element.name == "t":  # of a cell without runs
                self.read_run(element, [element])
            elif element.name in AROUND and element.inside < element.end:
                self.read_around(element)
            else:
                breaks = element.name in BREAKS
                self.add(markup("point", element.raw, breaks=breaks), element)

    def joins(self, element: Element) -> bool:
        """True if an element belongs inside a sentence.

        This is a run, a link or similar, or anything without text.
        """
        if element.name in ("t", "fld"):  # the text of a cell without runs, or a field of a slide
            return True
        if element.name in AROUND:
            key = (self.prefix, element.begin)
            if key not in self.joining:  # nested elements are asked again and again
                self.joining[key] = all(map(self.joins, element.children))
            return self.joining[key]
        # A text box contains separate paragraphs, and a program computes the text between the two
        # ends of a field.
        if self.contains(element, "p") or self.contains(element, "fldChar"):
            return False
        return element.name == "r" or not self.contains(element, f"{self.prefix}t")

    def contains(self, element: Element, key: str) -> bool:
        """Whether an element, or an element in it, has a name or tag of `places`."""
        # `elements` are in order, so the offsets are, too.
        begins = self.places[key]
        return bisect_left(begins, element.begin) < bisect_left(begins, element.end)

    def read_apart(self, element: Element) -> None:
        """Read an element that ends the sentence before it, such as a run with a field."""
        self.end()
        # Paragraphs inside a run or a paragraph are read by themselves.
        if element.name not in ("r", "p"):
            self.read(element.children)
            self.end()

    def read_around(self, element: Element) -> None:
        """Read an element inside a sentence that wraps runs, such as a link."""
        opening = element.file[element.begin : element.inside]
        # Properties of the element, such as those of a smart tag, belong to its opening tag.
        for child in element.children:
            if child.name.endswith("Pr"):
                opening += child.raw
        self.add(markup("open", opening, name=element.name), element)
        self.read(element.children)
        self.add(markup("close", f"</{element.tag}>", name=element.name))

    def read_run(
        self,
        run: Element,
        content: Iterable[Element],
        outer: Element | None = None,
    ) -> None:
        """Read the content of a run, which may be inside an outer run."""
        covered = outer or run
        properties = "".join(child.raw for child in run.children if child.name == "rPr")
        # Word also begins a run where the language or the spelling check changes. Nobody sees that.
        look = UNSEEN.sub("", properties)
        if EMPTY.fullmatch(look):
            look = ""
        # One look may have several properties, which differ in what nobody sees.
        self.properties.setdefault(look, properties)
        for part in content:
            if part.name in TEXTS:
                self.add_text(part.text, covered, look)
            elif part.name in NESTED:
                self.read_run(part, part.children, covered)
            elif part.name not in DROPPED:
                tag = markup("point", INSIDE + part.raw, breaks=part.name in BREAKS)
                self.add(tag, covered, look)

    def add_text(self, text: str, run: Element, look: str) -> None:
        """Add the text of a run, in which white space may be markup."""
        for number, piece in enumerate(SPACE.split(text)):
            is_space = number % 2 == 1  # texts and what separates them alternate
            if is_space:
                token = MarkupToken("point", escaped(piece), breaks=True)
            else:
                token = MarkupToken("text", escaped(piece), piece)
            self.add(token, run, look)

    def add(
        self, token: MarkupToken, covered: Element | None = None, look: str | None = None
    ) -> None:
        """Add a token of the sentence, and the element that it is from."""
        self.pieces.append(Piece(look, token))
        if covered:
            self.covered.append(covered)

    def end(self) -> None:
        """End a sentence, and begin the next one."""
        sizes = Counter[str]()  # characters with each look
        for look, token in self.pieces:
            if look is not None and token.text:
                sizes[look] += len(token.text)
        if sizes:
            # The formatting of most characters is that of the sentence, and has no tags.
            usual = max(sizes, key=sizes.__getitem__)
            # Word drops white space at the ends of a text without this attribute. DrawingML keeps
            # it, and does not know the attribute.
            text_tag = f"{self.prefix}t"
            if self.prefix.removesuffix(":") not in self.drawing_prefixes:
                text_tag += ' xml:space="preserve"'
            properties = self.properties[usual]
            tokens = self.with_looks(usual)
            sentence = InRuns(self.covered, tokens, self.prefix, text_tag, properties)
            self.sentences.append(sentence)
        self.pieces = []
        self.covered = []

    def with_looks(self, usual: str) -> list[MarkupToken]:
        """The tokens of a sentence, with an element around text that does not look as usual."""
        tokens = list[MarkupToken]()
        for look, group in groupby(self.pieces, lambda piece: piece.look):
            inside = [piece.token for piece in group]
            if look is None or look == usual:
                tokens += inside
                continue
            script = script_of(look)
            name = script or "r"
            # Emphasis without words may disappear, but not a link.
            is_optional = "hlinkClick" not in look
            opening = markup(
                "open",
                FORMAT + self.properties[look],
                name=name,
                optional=is_optional,
                is_script=script is not None,
            )
            closing = markup(
                "close",
                FORMAT + self.properties[usual],
                name=name,
                optional=is_optional,
            )
            tokens += [opening, *inside, closing]
        return tokens


def script_of(look: str) -> str | None:
    """Whether properties raise text ("sup") or lower it ("sub")."""
    match = SCRIPT.search(look)
    if match is None:
        return None
    return "sub" if match["sub"] or match["minus"] or match["lowers"] else "sup"
