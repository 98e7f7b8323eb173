"""TMX 1.4b (https://www.gala-global.org/tmx-14b), whose units get a variant in another language."""

from nmt.config import NMTError
from nmt.plugins.documents.bilingual import Bilingual, copied_texts
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.elements import Element
from nmt.text import language_tag, match_language

LANGUAGE = ("xml:lang", "lang")
"""The attribute with the language of a variant; before TMX 1.4, it had no prefix."""
ALL = "*all*"
"""A source language that means any language."""
WITHOUT_SOURCE = "units left untranslated because they have no text in the source language"


class Tmx(Bilingual):
    """A translation memory; units without text in the target language are translated."""

    def parts_of_file(self, elements: list[Element]) -> list[Part]:
        if not any(element.name == "tmx" for element in elements):
            raise NMTError("not a translation memory: it has no <tmx>")
        self.default_language = ""
        parts = list[Part]()
        for element in elements:
            if element.name == "header":
                self.default_language = element.attributes.get("srclang", "")
            elif element.name == "tu" and self.target:
                parts += self.parts_of_unit(element)
        return parts

    def parts_of_unit(self, unit: Element) -> list[Part]:
        variants = [child for child in unit.children if child.name == "tuv"]
        source = self.source_variant(unit, variants)
        targets = [variant for variant in variants if has_language(variant, self.target)]
        if any(segment_text(variant).strip() for variant in targets):
            return []
        segment = segment_of(source) if source else None
        if source is None or segment is None:
            self.left[WITHOUT_SOURCE] += 1
            return []
        sentence = self.sentence_of(segment)
        if targets:
            return filled_variant(segment, sentence, targets[0])
        return self.new_variant(source, segment, sentence)

    def source_variant(self, unit: Element, variants: list[Element]) -> Element | None:
        """The variant of a unit that is translated."""
        declared = unit.attributes.get("srclang") or self.default_language
        language = self.source or declared
        for variant in variants:
            if not language or language == ALL or has_language(variant, language):
                return variant
        return None

    def new_variant(self, source: Element, segment: Element, sentence: Part) -> list[Part]:
        """A variant behind that of the source, and indented like it."""
        file = source.file
        name, _ = language_of(source)
        tag = language_tag(self.target) or self.target
        opening = f'<{source.tag} {name}="{tag}"><{segment.tag}>'
        closing = f"</{segment.tag}></{source.tag}>"
        before = Part(source.end, source.end, otherwise=space_before(file, source) + opening)
        # The white space inside of a variant, such as in front of <seg>, is not repeated.
        return copied_texts(segment, [sentence], source.end, before, closing)


def filled_variant(segment: Element, sentence: Part, target: Element) -> list[Part]:
    """The text of a variant that is empty."""
    empty = segment_of(target)
    if empty is None:
        return []
    opening = target.file[empty.begin : empty.inside].removesuffix("/>").removesuffix(">").rstrip()
    before = Part(empty.begin, empty.end, otherwise=f"{opening}>")
    return copied_texts(segment, [sentence], empty.end, before, f"</{empty.tag}>")


def language_of(variant: Element) -> tuple[str, str]:
    """The attribute that declares the language of a variant, and the language."""
    spans = variant.full_spans
    for name in LANGUAGE:
        if name in spans:
            return name, variant.file[slice(*spans[name])].strip()
    return LANGUAGE[0], ""


def has_language(variant: Element, language: str) -> bool:
    _, declared = language_of(variant)
    return bool(declared) and match_language(declared, [language]) is not None


def segment_of(variant: Element) -> Element | None:
    for child in variant.children:
        if child.name == "seg":
            return child
    return None


def segment_text(variant: Element) -> str:
    segment = segment_of(variant)
    return segment.text if segment else ""


def space_before(file: str, element: Element) -> str:
    """The white space between an element and the markup in front of it."""
    space = file[file.rfind(">", 0, element.begin) + 1 : element.begin]
    return space if space.isspace() else ""
