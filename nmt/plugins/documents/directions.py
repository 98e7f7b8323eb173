"""The direction of text in office documents, which changes if the target is read from the other side.

Word: ECMA-376 part 1, 17.3.1.6 (bidi), 17.3.2.30 (rtl), 17.4.1 (bidiVisual). DrawingML: 21.1.2.2.7.
Excel: 18.3.1.87. OpenDocument 1.3 part 3, 20.404 (writing-mode).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from nmt.plugins.documents.document import Part
from nmt.plugins.documents.elements import Element
from nmt.text import direction

NAMESPACE = re.compile(
    r"""\sxmlns:?(\w*)=["'][^"']*/(word|drawing|spreadsheet|presentation)"""
    r"""(?:processing)?ml/[^"']*main["']"""
)
# Word requires an order of children. These are the ones that follow the element to be added.
AFTER_BIDI = frozenset(
    """adjustRightInd snapToGrid spacing ind contextualSpacing mirrorIndents suppressOverlap jc
    textDirection textAlignment textboxTightWrap outlineLvl divId cnfStyle rPr sectPr
    pPrChange""".split()  # noqa: SIM905
)
AFTER_RTL = frozenset("cs em lang eastAsianLayout specVanish oMath rPrChange".split())  # noqa: SIM905
AFTER_BIDI_OF_SECTION = frozenset("rtlGutter docGrid printerSettings sectPrChange".split())  # noqa: SIM905
BEFORE_BIDI_VISUAL = frozenset(["tblStyle", "tblpPr", "tblOverlap"])
# Word formats text from right to left with properties of its own.
TWINS = {"b": "bCs", "i": "iCs", "sz": "szCs"}
SWITCHES = frozenset(["bidi", "rtl", "bidiVisual"])
OFF = frozenset(["0", "false", "off"])
LEVEL = re.compile(r"(?:lvl[1-9]|def)?[pP]Pr")  # properties of paragraphs in DrawingML
# Elements of presentations with the styles that all others inherit from.
STYLES = frozenset(["titleStyle", "bodyStyle", "otherStyle", "notesStyle", "defaultTextStyle"])
SWAPPED = {"l": "r", "r": "l"}
AFTER_VIEWS = frozenset(["sheetFormatPr", "cols", "sheetData"])
# OpenDocument
MODES = {"ltr": "lr-tb", "rtl": "rl-tb"}
OF_LINES = {"lr-tb": "ltr", "lr": "ltr", "rl-tb": "rtl", "rl": "rtl"}
OF_BOXES = frozenset(["tblPr", "bodyPr"])  # properties of tables and of boxes with text
SIDES = {
    "rtl": {"start": "right", "left": "right", "end": "left", "right": "left"},
    "ltr": {"start": "left", "left": "right", "end": "left", "right": "left"},
}
"""The new side of an alignment, by the new direction. In text from right to left, LibreOffice takes
`start` for the left side and `end` for the right side, so that only `left` and `right` are clear."""
FAMILIES = frozenset(["paragraph", "graphic"])  # of styles whose text has a direction


def turn_of(source: str, target: str) -> "Turn | None":
    """The change of direction between two languages; None if it stays the same."""
    if not target:
        return None
    before = direction(source) if source else "ltr"
    after = direction(target)
    return Turn(before, after) if before != after else None


@dataclass(frozen=True)
class Turn:
    """A change of the direction of text, from `ltr` to `rtl` or the other way around."""

    before: str
    after: str

    @property
    def is_rtl(self) -> bool:
        return self.after == "rtl"

    def parts(self, elements: Sequence[Element]) -> Iterator[Part]:
        """The changes in a file of an office document."""
        namespaces = dict(NAMESPACE.findall(elements[0].file))
        for element in elements:
            prefix = element.tag.removesuffix(element.name).removesuffix(":")
            kind = namespaces.get(prefix, "")
            if kind == "word":
                yield from self.word(element)
            elif kind == "drawing" and LEVEL.fullmatch(element.name):
                yield from self.drawing(element)
            elif kind == "drawing" and element.name in OF_BOXES:
                yield from self.box(element)
            elif kind == "presentation" and element.name in STYLES and self.is_rtl:
                for level in element.children:
                    yield from self.inherited(level)
            elif kind == "spreadsheet" and element.name == "worksheet":
                yield from self.worksheet(element)
            elif element.tag.startswith("style:"):
                yield from self.open_document(element)

    def word(self, element: Element) -> Iterator[Part]:
        if element.name in SWITCHES and not element.children:
            yield from self.switch(element)
        for child in element.children:
            if child.name == "rPr":
                yield from twins(child, self.is_rtl)
        if not self.is_rtl:  # without a switch, text is from left to right
            return
        if element.name == "p":
            yield from with_switch(element, "pPr", "bidi", AFTER_BIDI)
        elif element.name == "r":
            yield from with_switch(element, "rPr", "rtl", AFTER_RTL)
        elif element.name == "sectPr" and not has_child(element, "bidi"):
            yield inserted(element, "bidi", place_before(element, AFTER_BIDI_OF_SECTION))
        elif element.name == "tblPr" and not has_child(element, "bidiVisual"):
            yield inserted(element, "bidiVisual", place_behind(element, BEFORE_BIDI_VISUAL))

    def switch(self, element: Element) -> Iterator[Part]:
        """Turn a switch of Word on or off."""
        is_on = element.attributes.get("val", "1") not in OFF
        if is_on != self.is_rtl:
            value = "1" if self.is_rtl else "0"
            yield with_attribute(element, f"{prefix_of(element)}val", value)

    def drawing(self, element: Element) -> Iterator[Part]:
        """Turn what slides and drawings declare; alignments are to a side of the page."""
        attributes = element.attributes
        value = "1" if self.is_rtl else "0"
        if attributes.get("rtl") == value:  # a text in the other direction already
            return
        if "rtl" in attributes:
            yield with_attribute(element, "rtl", value)
        if attributes.get("algn") in SWAPPED:
            yield with_attribute(element, "algn", SWAPPED[attributes["algn"]])

    def box(self, element: Element) -> Iterator[Part]:
        """Turn the columns of a table, or of a box with text."""
        is_table = element.name == "tblPr"
        name = "rtl" if is_table else "rtlCol"
        is_declared = name in element.attributes
        if is_declared or (is_table and self.is_rtl):
            yield with_attribute(element, name, "1" if self.is_rtl else "0")

    @staticmethod
    def inherited(level: Element) -> Iterator[Part]:
        """Set what a style of a presentation leaves to the usual direction."""
        if LEVEL.fullmatch(level.name):
            for name, value in (("rtl", "1"), ("algn", "r")):
                if name not in level.attributes:
                    yield with_attribute(level, name, value)

    def worksheet(self, element: Element) -> Iterator[Part]:
        value = "1" if self.is_rtl else "0"
        inside = chain.from_iterable(child.children for child in element.children)
        views = [view for view in inside if view.name == "sheetView"]
        for view in views:
            if self.is_rtl or "rightToLeft" in view.attributes:
                yield with_attribute(view, "rightToLeft", value)
        if self.is_rtl and not views:
            prefix = prefix_of(element)
            written = f'<{prefix}sheetView rightToLeft="1" workbookViewId="0"/>'
            at = next((child.begin for child in element.children if child.name in AFTER_VIEWS), -1)
            if at >= 0:
                yield Part(at, at, otherwise=f"<{prefix}sheetViews>{written}</{prefix}sheetViews>")

    def open_document(self, element: Element) -> Iterator[Part]:
        attributes = element.attributes
        if OF_LINES.get(attributes.get("writing-mode", "")) == self.before:
            yield with_attribute(element, "style:writing-mode", MODES[self.after])
        if element.name == "paragraph-properties" and "text-align" in attributes:
            yield from self.aligned(element)
        is_default = element.tag == "style:default-style" and attributes.get("family") in FAMILIES
        if is_default and self.is_rtl:
            yield from self.default_style(element)

    def aligned(self, element: Element) -> Iterator[Part]:
        """Change the side that a paragraph is aligned to."""
        attributes = element.attributes
        side = SIDES[self.after].get(attributes["text-align"])
        is_turned = OF_LINES.get(attributes.get("writing-mode", "")) == self.after
        if side and not is_turned:
            yield with_attribute(element, "fo:text-align", side)

    def default_style(self, style: Element) -> Iterator[Part]:
        """Set the direction and the side of paragraphs that declare none."""
        mode = f'style:writing-mode="{MODES[self.after]}"'
        of_paragraphs = (child for child in style.children if child.name == "paragraph-properties")
        properties = next(of_paragraphs, None)
        if properties is None:
            written = f'<style:paragraph-properties {mode} fo:text-align="right"/>'
            at = place_behind(style, frozenset(["graphic-properties"]))
            yield added_child(style, written, at)
            return
        attributes = properties.attributes
        if attributes.get("writing-mode", "page") == "page":
            yield with_attribute(properties, "style:writing-mode", MODES[self.after])
        if "text-align" not in attributes:
            yield with_attribute(properties, "fo:text-align", "right")


def prefix_of(element: Element) -> str:
    """The prefix of an element's tag with its colon."""
    return element.tag.removesuffix(element.name)


def has_child(element: Element, name: str) -> bool:
    return any(child.name == name for child in element.children)


def is_empty(element: Element) -> bool:
    """Whether an element is a single tag, such as <w:p/>."""
    return element.inside == element.end


def with_attribute(element: Element, name: str, value: str) -> Part:
    """An element's attribute with another value, or a new one behind the name of its tag."""
    local = name.rpartition(":")[2]
    if local in element.spans:
        return Part(*element.spans[local], otherwise=value)
    at = element.begin + 1 + len(element.tag)
    return Part(at, at, otherwise=f' {name}="{value}"')


def twins(properties: Element, is_rtl: bool) -> Iterator[Part]:
    """The formatting of a run of Word, also for text in its new direction."""
    names = {child.name for child in properties.children}
    for name, of_rtl in TWINS.items():
        before, after = (name, of_rtl) if is_rtl else (of_rtl, name)
        if after in names:
            continue
        for child in properties.children:
            if child.name == before:
                raw = child.raw.replace(child.tag, prefix_of(child) + after)
                # Word has the twin for text from right to left behind the other one.
                at = child.end if is_rtl else child.begin
                yield Part(at, at, otherwise=raw)


def with_switch(
    element: Element,
    properties: str,
    name: str,
    following: Iterable[str],
) -> Iterator[Part]:
    """Add a switch of Word to the properties of a paragraph or run with content."""
    if is_empty(element):
        return
    prefix = prefix_of(element)
    own = next((child for child in element.children if child.name == properties), None)
    if own is None:
        written = f"<{prefix}{properties}><{prefix}{name}/></{prefix}{properties}>"
        yield Part(element.inside, element.inside, otherwise=written)
    elif not has_child(own, name):
        yield inserted(own, name, place_before(own, following))


def place_before(element: Element, names: Iterable[str]) -> int:
    """The offset of an element's first child with one of these names, or of its end."""
    return next((child.begin for child in element.children if child.name in names), element.outside)


def place_behind(element: Element, names: Iterable[str]) -> int:
    """The offset behind an element's last child with one of these names, or of its beginning."""
    ends = (child.end for child in element.children if child.name in names)
    return max(ends, default=element.inside)


def inserted(element: Element, name: str, at: int) -> Part:
    """A new child without attributes."""
    return added_child(element, f"<{prefix_of(element)}{name}/>", at)


def added_child(element: Element, written: str, at: int) -> Part:
    """A new child at an offset inside an element, which may be a single tag so far."""
    if is_empty(element):
        return Part(element.end - 2, element.end, otherwise=f">{written}</{element.tag}>")
    return Part(at, at, otherwise=written)
