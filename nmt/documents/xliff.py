"""XLIFF 1.2 and 2 (https://docs.oasis-open.org/xliff), TMX 1.4 (https://www.gala-global.org/tmx-14b).

Units without a target get one, all else stays as it is.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape, unescape
from typing import Literal
from xml.parsers import expat

from nmt.documents.document import Part, Spliced, Translated
from nmt.documents.markup import Sentence, Token
from nmt.errors import NMTError

TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[(?P<data>.*?)\]\]>|<\?.*?\?>|<![^>]*>|"
    r"""<(?P<end>/?)(?P<full>(?:[\w.-]+:)?(?P<name>[\w.-]+))(?P<rest>(?:[^>"']++|"[^"]*"|'[^']*')*+)>""",
    re.DOTALL,
)
PAIRED = frozenset(("g", "pc", "mrk", "hi"))
"""Elements around text; the text in others is code of the original file."""
KINDS: dict[str, Literal["open", "close"]] = {
    **dict.fromkeys(("bpt", "bx", "sc"), "open"),
    **dict.fromkeys(("ept", "ex", "ec"), "close"),
}
"""What code does, which has the same reference where it opens and closes."""
REFERENCES = [re.compile(rf"""\s{name}\s*=\s*["']([^"']*)""") for name in ("i", "rid", "startRef", "id")]
LANGUAGE = re.compile(r"""\s(?:xml:)?(?:src)?lang\s*=\s*["']([\w*-]+)""")
TARGET = {"trans-unit": '<target state="needs-review-translation">', "segment": "<target>"}
"""The beginning of a target, in each kind of unit."""


def check_xml(text: str) -> None:
    """NMTError for XML that is not well-formed, or declares entities, of which a few lines can stand for billions."""

    def refuse(name: str, *_: object) -> None:
        raise NMTError(f"it declares the entity {name[:40]!r}: write out what that stands for")

    parser = expat.ParserCreate("utf-8")
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise NMTError(f"line {error.lineno}: not well-formed XML ({expat.ErrorString(error.code)})") from error


def reference_of(attributes: str) -> str:
    return next((found[1] for each in REFERENCES if (found := each.search(attributes))), "")


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of the content of a source."""
    at = begun = depth = 0
    attributes = ""
    for found in TAG.finditer(text):
        if not depth:
            if at < found.start():
                yield Token("text", text[at : found.start()], unescape(text[at : found.start()]))
            begun, attributes = found.start(), found["rest"] or ""
        at, name, opens = found.end(), found["name"], not found[0].endswith("/>")
        if found["data"] is not None and not depth:
            yield Token("text", found[0], found["data"])
        elif name in PAIRED and opens and not depth:
            yield Token("close" if found["end"] else "open", found[0], name=name)
        else:
            depth += (-1 if found["end"] else 1) if name and opens else 0
            if not depth:
                yield Token(KINDS.get(name, "point"), text[begun:at], name=reference_of(attributes))
    if at < len(text):
        yield Token("text", text[at:], unescape(text[at:]))


class Target:
    """A new target, in the place of an empty one or behind the source; tags are before and after its text."""

    def __init__(self, place: tuple[int, int], tags: tuple[str, str], source: str) -> None:
        self.begin, self.end = place
        self.tags = tags
        self.source = Spliced(source, [Sentence(0, list(tokens_of(source)), partial(escape, quote=False))])
        self.lines = self.source.lines

    def render(self, translations: Sequence[Translated]) -> str:
        return self.source.render(translations).join(self.tags)


def targets_of(text: str) -> Iterator[Target]:
    """The targets that are missing."""
    unit, place, begun, others = "", (0, 0), 0, 0
    source: str | None = None
    for tag in TAG.finditer(text):
        name, opens, empty = tag["name"], not tag["end"], tag[0].endswith("/>")
        if name in ("alt-trans", "matches", "glossary") and not empty:
            others += 1 if opens else -1
        elif others or not name:
            continue
        elif name in TARGET and opens:
            unit, source = "" if re.search(r"""translate\s*=\s*["']no""", tag["rest"]) else name, None
        elif name == "source" and not empty:
            if opens:
                begun = tag.end()
            else:
                source, place = text[begun : tag.start()], (tag.end(), tag.end())
        elif name == "target":
            if opens:
                begun = tag.start()
            if empty or not opens:
                unit = "" if TAG.sub("", text[begun : tag.end()]).strip() else unit
                place = begun, tag.end()
        elif name in TARGET and unit and source is not None:
            yield Target(place, (TARGET[unit], "</target>"), source)


def tuvs_of(text: str, target: str) -> Iterator[Target]:
    """The variants in a target language that are missing in a translation memory."""
    usual = wanted = language = content = ""
    begun = 0
    variants = dict[str, tuple[int, str]]()
    for tag in TAG.finditer(text):
        name, opens = tag["name"], not tag["end"]
        named = LANGUAGE.search(tag["rest"] or "")
        if name == "header" and opens:
            usual = named[1] if named else ""
        elif name == "tu" and opens:
            wanted, variants = named[1] if named else usual, {}
        elif name == "tuv" and opens:
            language, content = named[1] if named else "", ""
        elif name == "seg" and opens:
            begun = tag.end()
        elif name == "seg":
            content = text[begun : tag.start()]
        elif name == "tuv":
            variants.setdefault(primary(language), (tag.end(), content))
        elif name == "tu" and primary(target) not in variants and variants:
            first = next(iter(variants)) if wanted == "*all*" else primary(wanted)
            if first in variants:
                end, source = variants[first]
                opening = f'<tuv xml:lang="{escape(target)}" creationtool="nmt"><seg>'
                yield Target((end, end), (opening, "</seg></tuv>"), source)


def primary(language: str) -> str:
    """The language of a tag such as de-AT."""
    return language.lower().partition("-")[0]


def read_xliff(text: str) -> Spliced:
    """A file of XLIFF; NMTError where it is not well-formed."""
    check_xml(text)
    parts: list[Part] = [target for target in targets_of(text) if target.lines]
    return Spliced(text, parts)


def read_tmx(text: str, target: str) -> Spliced:
    """A translation memory, of which units without this language get it; NMTError where it is not well-formed."""
    check_xml(text)
    if not target:
        raise NMTError("the target language is not known: pass target=CODE to a model for several languages")
    parts: list[Part] = [variant for variant in tuvs_of(text, target) if variant.lines]
    return Spliced(text, parts)
