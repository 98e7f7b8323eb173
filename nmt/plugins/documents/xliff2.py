"""XLIFF 2.0 to 2.2 (https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html)."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from nmt.plugins.documents.bilingual import TargetState, Unit, copied_texts
from nmt.plugins.documents.declared_languages import LanguageAttributes, end_of_attributes
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.elements import Element
from nmt.plugins.documents.xliff2_codes import Codes

if TYPE_CHECKING:
    from nmt.plugins.documents.bilingual import Bilingual

LANGUAGES = LanguageAttributes("srcLang", "trgLang")
CONTAINERS = ("file", "group", "unit")
INITIAL = "initial"
TRANSLATED = "translated"
"""The state of a segment with a translation that nobody has reviewed (section 4.3.1.31)."""
REVIEW = ' subState="nmt:needs-review"'
"""Version 2 has no state for translations to review, but states of the tool that wrote them."""
SUB_STATE = re.compile(r"""(?<!\s)\s++subState\s*+=\s*+(?:"[^"]*"|'[^']*')""")


class Units2:
    """Finds the segments of a file that have no translation."""

    def __init__(self, file: "Bilingual") -> None:
        self.file = file

    def parts(self, root: Element) -> list[Part]:
        parts = LANGUAGES.settled([root], self.file.source, self.file.target)
        for child in root.children:
            parts += self.parts_of(child, "yes")
        return parts

    def parts_of(self, element: Element, translate: str) -> list[Part]:
        """The parts of a file, a group or a unit, whose parent has this value of `translate`."""
        # Other elements, such as matches and glossaries, contain no text of the document.
        if element.name not in CONTAINERS:
            return []
        translate = element.attributes.get("translate", translate)
        parts = list[Part]()
        if element.name == "unit":
            return parts if translate == "no" else self.parts_of_unit(element)
        for child in element.children:
            parts += self.parts_of(child, translate)
        return parts

    def parts_of_unit(self, unit: Element) -> list[Part]:
        codes = Codes(self.file, unit)
        parts = list[Part]()
        # Text between the segments is in <ignorable>. It needs no target (section 4.2.2.7).
        for child in unit.children:
            if child.name == "segment":
                parts += self.parts_of_segment(child, codes)
        return parts

    def parts_of_segment(self, segment: Element, codes: Codes) -> list[Part]:
        children = {child.name: child for child in segment.children}
        source = children.get("source")
        target = children.get("target")
        if source is None or (target and is_translated(segment, target)):
            return []
        tokens = codes.tokens_of(source)
        sentence = self.file.sentence_with(source, tokens, codes.in_fixed_order(source))
        prefix = source.tag.removesuffix(source.name)
        if target:
            tag = target.file[target.begin : target.inside]
            opening = tag.removesuffix("/>").removesuffix(">").rstrip()
            before = Part(target.begin, target.end, otherwise=f"{opening}>")
        else:
            before = Part(source.end, source.end, otherwise=opening_of_target(source, prefix))
        closing = f"</{prefix}target>"
        parts = copied_texts(source, [sentence], before.end, before, closing)
        if not parts:
            return []
        states = [*new_state(segment, sentence)]
        self.file.states += states
        return [*old_sub_state(segment), *(state.part for state in states), *parts]


def is_translated(segment: Element, target: Element) -> bool:
    """Whether a segment has a translation to keep."""
    # The state is optional, so only text that is explicitly in its initial state is replaced.
    return segment.attributes.get("state") != INITIAL and bool(target.raw_inside.strip())


def opening_of_target(source: Element, prefix: str) -> str:
    """The opening tag of a new target, with the declaration about the white space of its source."""
    if "space" not in source.spans:
        return f"<{prefix}target>"
    return f'<{prefix}target xml:space="{source.attributes["space"]}">'


def old_sub_state(segment: Element) -> list[Part]:
    """Removes the more precise state of a segment, whose state changes."""
    sub_state = SUB_STATE.search(segment.file, segment.begin, segment.inside)
    return [Part(*sub_state.span())] if sub_state else []


def new_state(segment: Element, unit: Unit) -> Iterator[TargetState]:
    """The new state of a segment, and its more precise state if it needs a review."""
    at = end_of_attributes(segment)
    if "state" in segment.spans:
        part = Part(*segment.spans["state"], otherwise=TRANSLATED)
        initial = INITIAL
    else:
        part = Part(at, at, otherwise=f' state="{TRANSLATED}"')
        initial = f' state="{INITIAL}"'
    translated = part.otherwise
    yield TargetState(part, [unit], translated, translated, initial)
    yield TargetState(Part(at, at), [unit], "", REVIEW, REVIEW)
