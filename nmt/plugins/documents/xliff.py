"""XLIFF 1.2 and 2 (https://docs.oasis-open.org/xliff), TMX 1.4 (https://www.gala-global.org/tmx-14b).

Units without a target get one, all else stays as it is.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
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


def text_of(element: Element | None) -> str:
    return "" if element is None else str(element.xpath("string()"))


def tokens_of(unit: Unit, element: Element) -> Iterator[Token]:
    """The tokens of the content of a source."""
    yield text_token(element.text or "")
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
        yield text_token(inside.tail or "")


def added(name: str, behind: Element) -> Element:
    """A new element behind another, in its namespace."""
    element = etree.Element(etree.QName(etree.QName(behind).namespace, name))
    behind.addnext(element)
    return element


class WithUnits(Document):
    """A file of units, each with a text in two or more languages."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content, self.model = content, Direction(source, target)
        self.lines = [line for unit, _ in self.units(parse_xml(content)) for line in unit.content().lines]

    def units(self, tree: Tree) -> Iterator[tuple[Unit, Callable[[], Element]]]:
        """The sentences without a translation, and what makes an element for it."""
        for source, target in self.sources(tree):
            unit = Unit()
            unit.tokens += tokens_of(unit, source)
            if unit.content().lines:
                yield unit, target

    @abstractmethod
    def sources(self, tree: Tree) -> Iterator[tuple[Element, Callable[[], Element]]]:
        """The texts without a translation, and what makes an element for it."""

    def join(self, translations: Sequence[Translated]) -> bytes:
        tree = parse_xml(self.content)
        for (unit, target), translation in zip(list(self.units(tree)), translations, strict=True):
            unit.fill(target(), unit.render(translation)[0])
        return serialized(tree, self.content) if translations else self.content


class Xliff(WithUnits):
    """A file of XLIFF; NMTError where it is not well-formed, or in other languages than the model's."""

    def sources(self, tree: Tree) -> Iterator[tuple[Element, Callable[[], Element]]]:
        for element in tree.iter("{*}xliff", "{*}file"):
            source = attribute(element, "source-language", "srcLang")
            Direction(source, attribute(element, "target-language", "trgLang")).check(self.model)
        for element in tree.iter("{*}trans-unit", "{*}segment"):
            source, target = element.find("{*}source"), element.find("{*}target")
            state = attribute(target, "state") or attribute(element, "state")
            says = (attribute(around, "translate") for around in (element, *element.iterancestors()))
            fixed = next(filter(None, says), "")
            if source is not None and fixed != "no" and (state in UNTRANSLATED or not text_of(target).strip()):
                yield source, partial(self.target, element)

    def target(self, element: Element) -> Element:
        """The target of a unit, which says that it has a translation now."""
        target = element.find("{*}target")
        if target is None:
            target = added("target", [*element.findall("{*}source"), *element.findall("{*}seg-source")][-1])
        if name_of(element) == "trans-unit":
            target.set("state", "needs-review-translation")
        elif element.get("state", "initial") in UNTRANSLATED:
            element.attrib.pop("subState", None)  # it specifies the state
            element.set("state", "translated")
        return target


class TranslationMemory(WithUnits):
    """A translation memory, whose units without the target language get it; NMTError as for XLIFF."""

    def sources(self, tree: Tree) -> Iterator[tuple[Element, Callable[[], Element]]]:
        target = base(self.model.target) or self.model.target
        if not target:
            raise NMTError("the target language is not known: pass target=CODE to a model for several languages")
        header, model, count = attribute(next(tree.iter("{*}header"), None), *LANGUAGES), base(self.model.source), 0
        for element in tree.iter("{*}tu"):
            variants = [tuv for tuv in element.findall("{*}tuv") if tuv.find("{*}seg") is not None]
            texts = {base(attribute(tuv, *LANGUAGES)): tuv for tuv in variants}
            code = attribute(element, *LANGUAGES) or header
            source = model if model in texts else next(iter(texts), "") if code == "*all*" else base(code)
            if source in texts and target not in texts and not differ(source, model):
                count += 1
                yield texts[source].find("{*}seg"), partial(self.segment, texts[source])
        if not count:
            Direction(base(header)).check(self.model)

    def segment(self, source: Element) -> Element:
        variant = added("tuv", source)
        variant.attrib.update({LANGUAGES[0]: self.model.target, "creationtool": "nmt"})
        return etree.SubElement(variant, etree.QName(etree.QName(source).namespace, "seg"))
