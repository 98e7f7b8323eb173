"""The direction of text in office documents.

It changes if the target language is read from the other side.

Word: ECMA-376 part 1, 17.3.1.6 (bidi), 17.3.2.30 (rtl), 17.4.1 (bidiVisual). DrawingML: 21.1.2.2.7.
Excel: 18.3.1.87. OpenDocument 1.3 part 3, 20.404 (writing-mode).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from nmt.plugins.documents.document import Part
from nmt.plugins.documents.edits import (
    added_child,
    first_child,
    inserted,
    is_empty,
    place_before,
    place_behind,
    prefix_of,
    with_attribute,
)
from nmt.plugins.documents.elements import Element
from nmt.text import direction

NAMESPACE = re.compile(
    r"""\sxmlns:?(\w*)=["'][^"']*/(word|drawing|spreadsheet|presentation)"""
    r"""(?:processing)?ml/[^"']*main["']"""
)
# Word requires an order of children. These are the ones that follow or precede the added element.
AFTER_BIDI = frozenset(
    [
        "adjustRightInd",
        "snapToGrid",
        "spacing",
        "ind",
        "contextualSpacing",
        "mirrorIndents",
        "suppressOverlap",
        "jc",
        "textDirection",
        "textAlignment",
        "textboxTightWrap",
        "outlineLvl",
        "divId",
        "cnfStyle",
        "rPr",
        "sectPr",
        "pPrChange",
    ]
)
AFTER_RTL = frozenset(
    [
        "cs",
        "em",
        "lang",
        "eastAsianLayout",
        "specVanish",
        "oMath",
        "rPrChange",
    ]
)
AFTER_BIDI_OF_SECTION = frozenset(["rtlGutter", "docGrid", "printerSettings", "sectPrChange"])
BEFORE_BIDI_VISUAL = frozenset(["tblStyle", "tblpPr", "tblOverlap"])
TWINS = {"b": "bCs", "i": "iCs", "sz": "szCs"}
"""Properties of Word, and those that it uses instead for text from right to left."""
SWITCHES = frozenset(["bidi", "rtl", "bidiVisual"])
OFF = frozenset(["0", "false", "off"])
LEVEL = re.compile(r"(?:lvl[1-9]|def)?[pP]Pr")
"""Properties of paragraphs in DrawingML."""
OF_BOXES = frozenset(["tblPr", "bodyPr"])
"""Properties of tables and of boxes with text in DrawingML."""
STYLES = frozenset(
    [
        "titleStyle",
        "bodyStyle",
        "otherStyle",
        "notesStyle",
        "defaultTextStyle",
    ]
)
"""Elements of presentations with the styles that all others inherit from."""
SWAPPED = {"l": "r", "r": "l"}
AFTER_VIEWS = frozenset(["sheetFormatPr", "cols", "sheetData"])
"""Elements of a worksheet that follow its views."""
# OpenDocument
MODES = {"ltr": "lr-tb", "rtl": "rl-tb"}
OF_LINES = {"lr-tb": "ltr", "lr": "ltr", "rl-tb": "rtl", "rl": "rtl"}
SIDES = {
    "rtl": {"start": "right", "left": "right", "end": "left", "right": "left"},
    "ltr": {"start": "left", "left": "right", "end": "left", "right": "left"},
}
"""The new side of an alignment, by the new direction.

In text from right to left, LibreOffice takes `start` for the left side and `end` for the right
side, so that only `left` and `right` are clear.
"""
FAMILIES = frozenset(["paragraph", "graphic"])
"""Families of styles whose text has a direction."""


def turn_of(source: str, target: str) -> "Turn | None":
    """The change of direction between two languages; None if it stays the same."""
    if not target:
        return None
    # Without a source language, text is taken to be from left to right.
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

    @property
    def switch_value(self) -> str:
        """The value of a switch that is on for text from right to left."""
        return "1" if self.is_rtl else "0"

    def parts(self, elements: Sequence[Element]) -> Iterator[Part]:
        """The changes in a file of an office document."""
        # A file may use any prefix; only its namespace shows which program reads an element.
        kinds = dict(NAMESPACE.findall(elements[0].file))  # prefix -> kind of document
        for element in elements:
            prefix = prefix_of(element).removesuffix(":")
            if prefix == "style":
                yield from self.open_document(element)
            else:
                yield from self.office_open_xml(element, kinds.get(prefix, ""))

    def office_open_xml(self, element: Element, kind: str) -> Iterator[Part]:
        """The changes of an element in a namespace of this kind."""
        if kind == "word":
            yield from self.word(element)
        elif kind == "drawing" and LEVEL.fullmatch(element.name):
            yield from self.drawing(element)
        elif kind == "drawing" and element.name in OF_BOXES:
            yield from self.box(element)
        # Back to the left, `drawing` turns the levels that declare a direction. Others need none.
        elif kind == "presentation" and element.name in STYLES and self.is_rtl:
            for level in element.children:
                yield from inherited(level)
        elif kind == "spreadsheet" and element.name == "worksheet":
            yield from self.worksheet(element)

    def word(self, element: Element) -> Iterator[Part]:
        if element.name in SWITCHES and not element.children:
            yield from self.switch(element)
        for child in element.children:
            if child.name == "rPr":
                yield from twins(child, self.is_rtl)
        if self.is_rtl:  # without a switch, text is from left to right
            yield from new_switches(element)

    def switch(self, element: Element) -> Iterator[Part]:
        """Turn a switch of Word on or off."""
        # A switch without a value is on.
        is_on = element.attributes.get("val", "1") not in OFF
        if is_on != self.is_rtl:
            yield with_attribute(element, f"{prefix_of(element)}val", self.switch_value)

    def drawing(self, element: Element) -> Iterator[Part]:
        """Turn the declarations of slides and drawings; alignments are to a side of the page."""
        attributes = element.attributes
        if attributes.get("rtl") == self.switch_value:  # a text in the other direction already
            return
        if "rtl" in attributes:
            yield with_attribute(element, "rtl", self.switch_value)
        if attributes.get("algn") in SWAPPED:
            yield with_attribute(element, "algn", SWAPPED[attributes["algn"]])

    def box(self, element: Element) -> Iterator[Part]:
        """Turn the columns of a table, or of a box with text."""
        is_table = element.name == "tblPr"
        name = "rtl" if is_table else "rtlCol"
        is_declared = name in element.attributes
        # Without the attribute, a table is from left to right, but text in a box follows its
        # paragraphs.
        if is_declared or (is_table and self.is_rtl):
            yield with_attribute(element, name, self.switch_value)

    def worksheet(self, element: Element) -> Iterator[Part]:
        """Turn the views of a worksheet, which have the first column on one side."""
        has_views = False
        for child in element.children:
            for view in child.children:
                if view.name != "sheetView":
                    continue
                has_views = True
                if self.is_rtl or "rightToLeft" in view.attributes:
                    yield with_attribute(view, "rightToLeft", self.switch_value)
        # The view of a sheet is optional, and the first column is at the left without one.
        if self.is_rtl and not has_views:
            yield from new_view(element)

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
        # A paragraph in the new direction is aligned for it already.
        is_turned = OF_LINES.get(attributes.get("writing-mode", "")) == self.after
        if side and not is_turned:
            yield with_attribute(element, "fo:text-align", side)

    def default_style(self, style: Element) -> Iterator[Part]:
        """Set the direction and the side of paragraphs that declare none."""
        mode = f'style:writing-mode="{MODES[self.after]}"'
        properties = first_child(style, "paragraph-properties")
        if properties is None:
            written = f'<style:paragraph-properties {mode} fo:text-align="right"/>'
            # The schema of OpenDocument has these properties behind those of graphics.
            at = place_behind(style, frozenset(["graphic-properties"]))
            yield added_child(style, written, at)
            return
        attributes = properties.attributes
        # `page` means the direction of the page.
        if attributes.get("writing-mode", "page") == "page":
            yield with_attribute(properties, "style:writing-mode", MODES[self.after])
        if "text-align" not in attributes:
            yield with_attribute(properties, "fo:text-align", "right")


def twins(properties: Element, is_rtl: bool) -> Iterator[Part]:
    """The formatting of a run of Word, copied for text in its new direction."""
    names = {child.name for child in properties.children}
    for of_ltr, of_rtl in TWINS.items():
        before = of_ltr if is_rtl else of_rtl
        after = of_rtl if is_rtl else of_ltr
        # Formatting that the author gave to text in the other direction stays.
        if after in names:
            continue
        for child in properties.children:
            if child.name == before:
                raw = child.raw.replace(child.tag, prefix_of(child) + after)
                # Word has the twin for text from right to left behind the other one.
                at = child.end if is_rtl else child.begin
                yield Part(at, at, otherwise=raw)


def new_switches(element: Element) -> Iterator[Part]:
    """Turn text from right to left that has no switch so far."""
    if element.name == "p":
        yield from with_switch(element, "pPr", "bidi", AFTER_BIDI)
    elif element.name == "r":
        yield from with_switch(element, "rPr", "rtl", AFTER_RTL)
    elif element.name == "sectPr" and not first_child(element, "bidi"):
        yield inserted(element, "bidi", place_before(element, AFTER_BIDI_OF_SECTION))
    elif element.name == "tblPr" and not first_child(element, "bidiVisual"):
        yield inserted(element, "bidiVisual", place_behind(element, BEFORE_BIDI_VISUAL))


def with_switch(
    element: Element,
    properties_name: str,
    name: str,
    following: Iterable[str],
) -> Iterator[Part]:
    """Add a switch of Word to the properties of a paragraph or run with content."""
    # An empty tag has no text to turn.
    if is_empty(element):
        return
    properties = first_child(element, properties_name)
    if properties is None:
        prefix = prefix_of(element)
        tag = f"{prefix}{properties_name}"
        written = f"<{tag}><{prefix}{name}/></{tag}>"
        # Properties are the first child of a paragraph or run.
        yield Part(element.inside, element.inside, otherwise=written)
    elif not first_child(properties, name):
        yield inserted(properties, name, place_before(properties, following))


def inherited(level: Element) -> Iterator[Part]:
    """Set the properties that a style of a presentation leaves to the usual direction."""
    if not LEVEL.fullmatch(level.name):
        return
    for name, value in (("rtl", "1"), ("algn", "r")):
        if name not in level.attributes:
            yield with_attribute(level, name, value)


def new_view(worksheet: Element) -> Iterator[Part]:
    """Add a view from right to left to a worksheet without views."""
    prefix = prefix_of(worksheet)
    # The schema requires the number of the workbook's view.
    view = f'<{prefix}sheetView rightToLeft="1" workbookViewId="0"/>'
    for child in worksheet.children:
        if child.name in AFTER_VIEWS:
            written = f"<{prefix}sheetViews>{view}</{prefix}sheetViews>"
            yield Part(child.begin, child.begin, otherwise=written)
            return
