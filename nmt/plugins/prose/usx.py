"""Bible translations in USX, which is USFM in XML (https://docs.usfm.bible/usfm/latest/usx)."""

from nmt.plugins.documents import Element, MarkupToken, Spliced
from nmt.plugins.prose.manual import Manual, has_letters
from nmt.plugins.prose.usfm_markers import (
    COMMENTS,
    COPIED,
    COUNTED,
    KEPT,
    KEPT_IN_NOTES,
    REFERENCES,
    base_of,
)
from nmt.plugins.prose.vocabulary import Vocabulary

LEFT_REFERENCES = "cross references left untranslated"

USX = Vocabulary(
    title="USX",
    evidence="<usx",
    blocks=frozenset(
        ["cell", "chapter", "para", "periph", "row", "sidebar", "table", "usx", "verse"]
    ),
    inline=frozenset(["char", "ms", "optbreak"]),
    labels=frozenset(),
    notes=frozenset(["figure", "note"]),
    copied=frozenset(["ref"]),
    kept=frozenset(["book"]),
    titles=frozenset(),
    counted={},
    scripts={},
    attributes=frozenset(["alt"]),
)


class Usx(Manual):
    """The style of an element decides, as a marker does in USFM."""

    vocabulary = USX

    def language_attribute(self, root: Element) -> str:
        return ""  # USX declares none

    def is_kept(self, element: Element) -> bool:
        base = style_of(element)
        if element.name == "note" and base in REFERENCES:
            self.left[LEFT_REFERENCES] += 1
            return True
        if element.name == "para" and base in COUNTED:
            self.left[LEFT_REFERENCES] += has_letters(element.text)
            return True
        is_for_programs = element.name == "para" and (base in KEPT or base in COMMENTS)
        is_number = element.name == "char" and base in KEPT_IN_NOTES
        return is_for_programs or is_number or super().is_kept(element)

    def is_inline(self, element: Element, is_mixed: bool) -> bool:
        # The number at the beginning of a note is not a part of its sentence.
        is_number = element.name == "char" and style_of(element) in KEPT_IN_NOTES - COPIED
        return not is_number and super().is_inline(element, is_mixed)

    def tokens_of_child(self, child: Element, notes: list[Spliced] | None) -> list[MarkupToken]:
        if child.name == "char" and style_of(child) in COPIED:
            return [self.copied(child)]
        return super().tokens_of_child(child, notes)


def style_of(element: Element) -> str:
    """The marker of USFM that an element stands for, without its level."""
    return base_of(element.attributes.get("style", ""))
