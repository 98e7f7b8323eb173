"""XLIFF 1.2 and 2 (https://docs.oasis-open.org/xliff), TMX 1.4 (https://www.gala-global.org/tmx-14b).

Units without a target get one, all else stays as it is.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from lxml import etree

from nmt.errors import NMTError
from nmt.plugins.documents.document import Direction, Document, Translated, base, differ
from nmt.plugins.documents.markup import Kind, Token
from nmt.plugins.documents.xml import Element, Tree, Unit, name_of, parse_xml, serialized, text_token

PAIRED = frozenset(("g", "pc", "mrk", "hi"))
"""Elements around text; the text in others is code of the original file."""
OPENS, CLOSES = ("bpt", "bx", "sc"), ("ept", "ex", "ec")
"""Code that opens or closes something has the same reference at both ends."""
REFERENCES = ("rid", "startRef", "i", "id")
UNTRANSLATED = ("new", "needs-translation", "initial")
"""States of a target of version 1.2, or of a segment of version 2, without a translation."""
LANGUAGES = ("{http://www.w3.org/XML/1998/namespace}lang", "lang", "srclang")


def attribute(element: Element | None, *names: str) -> str:
    """The first of these attributes that an element has; empty if it has none of them."""
    return next((value for name in names if element is not None and (value := element.get(name))), "")


def child(element: Element, name: str) -> Element | None:
    """The first child of that name, in whatever namespace."""
    return next((child for child in element if name_of(child) == name), None)


def text_of(element: Element | None) -> str:
    return "" if element is None else str(element.xpath("string()"))


def tokens_of(unit: Unit, element: Element) -> Iterator[Token]:
    """The tokens of the content of a source."""
    if element.text:
        yield text_token(element.text)
    for inside in element:
        name = name_of(inside)
        if name == "mrk" and (inside.get("translate") == "no" or inside.get("mtype") == "protected"):
            yield Token("copy" if text_of(inside) else "point", unit.alone(inside), text_of(inside))
        elif name in PAIRED and (len(inside) or inside.text):
            opening, closing = unit.around(inside)
            yield Token("open", opening, name=name)
            yield from tokens_of(unit, inside)
            yield Token("close", closing, name=name)
        else:
            kind: Kind = "open" if name in OPENS else "close" if name in CLOSES else "point"
            yield Token(kind, unit.alone(inside), name=attribute(inside, *REFERENCES) if name else "")
        if inside.tail:
            yield text_token(inside.tail)


def units_for(source: Element, target: Callable[[], Element]) -> Iterator[Unit]:
    """The sentence in a source, for a target that is looked up or made when it is written; nothing without words."""
    unit = Unit(lambda references: unit.fill(target(), references), always=True)
    unit.tokens += tokens_of(unit, source)
    if unit.content().lines:
        yield unit


def added(name: str, behind: Element, **attributes: str) -> Element:
    """A new element behind another, in its namespace."""
    element = etree.Element(etree.QName(etree.QName(behind).namespace, name), attributes)
    behind.addnext(element)
    return element


class WithUnits(Document):
    """A file of units, each with a text in two or more languages."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content, self.model = content, Direction(source, target)
        self.lines = [line for unit in self.units(parse_xml(content)) for line in unit.content().lines]

    @abstractmethod
    def units(self, tree: Tree) -> Iterable[Unit]:
        """The units whose target is missing."""

    def join(self, translations: Sequence[Translated]) -> bytes:
        tree = parse_xml(self.content)
        for unit, translation in zip(list(self.units(tree)), translations, strict=True):
            unit.render(translation)
        return serialized(tree, self.content) if translations else self.content


class Xliff(WithUnits):
    """A file of XLIFF; NMTError where it is not well-formed, or in other languages than the model's."""

    def units(self, tree: Tree) -> Iterator[Unit]:
        for element in tree.iter("{*}xliff", "{*}file"):
            source = attribute(element, "source-language", "srcLang")
            Direction(source, attribute(element, "target-language", "trgLang")).check(self.model)
        for element in tree.iter("{*}trans-unit", "{*}segment"):
            source, target = child(element, "source"), child(element, "target")
            state = attribute(target, "state") or attribute(element, "state")
            says = (attribute(around, "translate") for around in (element, *element.iterancestors()))
            fixed = next(filter(None, says), "")
            if source is not None and fixed != "no" and (state in UNTRANSLATED or not text_of(target).strip()):
                yield from units_for(source, partial(self.target, element))

    def target(self, element: Element) -> Element:
        """The target of a unit, which says that it has a translation now."""
        target = child(element, "target")
        if target is None:
            behind = [inside for inside in element if name_of(inside) in ("source", "seg-source")]
            target = added("target", behind[-1])
        if name_of(element) == "trans-unit":
            target.set("state", "needs-review-translation")
        elif element.get("state", "initial") in UNTRANSLATED:
            element.attrib.pop("subState", None)  # it specifies the state
            element.set("state", "translated")
        return target


def language_of(element: Element | None) -> str:
    """The language that an element names, without its country."""
    code = attribute(element, *LANGUAGES)
    return base(code) or code


class TranslationMemory(WithUnits):
    """A translation memory, of which units without the target language get it; NMTError as for XLIFF."""

    def units(self, tree: Tree) -> list[Unit]:
        if not self.model.target:
            raise NMTError("the target language is not known: pass target=CODE to a model for several languages")
        usual = language_of(next(tree.iter("{*}header"), None))
        units = [unit for element in tree.iter("{*}tu") for unit in self.variant(element, usual)]
        if not units and usual != "*all*":
            Direction(usual).check(self.model)
        return units

    def variant(self, element: Element, usual: str) -> Iterator[Unit]:
        """The missing variant of a unit in the target language."""
        tuvs, source = element.findall("{*}tuv"), language_of(element) or usual
        segments = [(language_of(tuv), segment) for tuv in tuvs if (segment := child(tuv, "seg")) is not None]
        texts = {language: segment for language, segment in segments if text_of(segment).strip()}
        source = base(self.model.source) if base(self.model.source) in texts else source
        source = next(iter(texts), "") if source == "*all*" else source
        target = base(self.model.target) or self.model.target
        if source not in texts or target in texts or differ(source, self.model.source):
            return
        segment = texts[source]
        if empty := [other for language, other in segments if language == target]:
            yield from units_for(segment, lambda: empty[0])
        elif target not in map(language_of, tuvs):
            yield from units_for(segment, partial(self.added_segment, segment))

    def added_segment(self, source: Element) -> Element:
        tuv = added("tuv", source.getparent())
        tuv.attrib.update({LANGUAGES[0]: self.model.target, "creationtool": "nmt"})
        return etree.SubElement(tuv, etree.QName(etree.QName(source).namespace, "seg"))
