"""XLIFF 1.2 and 2 (https://docs.oasis-open.org/xliff), TMX 1.4 (https://www.gala-global.org/tmx-14b).

Units without a target get one, all else stays as it is.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape, unescape
from xml.parsers import expat

from nmt.errors import NMTError
from nmt.plugins.documents.document import Direction, Spliced, Text, Translated, base, differ
from nmt.plugins.documents.markup import Kind, Sentence, Token

TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[(?P<data>.*?)\]\]>|<\?.*?\?>|<![^>]*>|"
    r"""<(?P<end>/?)(?P<full>(?:[\w.-]+:)?(?P<name>[\w.-]+))(?P<rest>(?:[^>"']++|"[^"]*"|'[^']*')*+)>""",
    re.DOTALL,
)
PAIRED = frozenset(("g", "pc", "mrk", "hi"))
"""Elements around text; the text in others is code of the original file."""
OPENS, CLOSES = ("bpt", "bx", "sc"), ("ept", "ex", "ec")
"""Code that opens or closes something has the same reference at both ends."""
REFERENCE = re.compile(r"""\s(?:i|rid|startRef|id(?!.*\srid))\s*=\s*["']([^"']*)""", re.DOTALL)
LANGUAGE = re.compile(r"""\s(?:xml:|src)?lang\s*=\s*["'](\*all\*|[\w-]+)""")
FILE_SOURCE = re.compile(r"""\s(?:source-language|srcLang)\s*=\s*["']([\w-]+)""")
FILE_TARGET = re.compile(r"""\s(?:target-language|trgLang)\s*=\s*["']([\w-]+)""")
TRANSLATE = re.compile(r"""\stranslate\s*=\s*["'](yes|no)["']""")
PROTECTED = re.compile(r"""<mrk\s(?:[^>]*\s)?(?:translate\s*=\s*["']no|mtype\s*=\s*["']protected)["']""")
UNTRANSLATED = re.compile(r"""\sstate\s*=\s*["'](?:new|needs-translation|initial)["']""")
"""What a target of version 1.2, or a segment of version 2, says that has no translation yet."""
STATE, SUBSTATE = re.compile(r"\sstate\s*="), re.compile(r"""\ssubState\s*=\s*(?:"[^"]*"|'[^']*')""")
"""The second tells more about the first, and has to go with it."""
IGNORED = re.compile(r"(?s)<!--.*?-->|<!\[CDATA\[.*?\]\]>|<(alt-trans|matches|glossary)\b[^>]*(?<!/)>.*?</\1>")
SEGMENT = re.compile(r"<(?P<name>trans-unit|segment)(?P<rest>[^>]*)(?<!/)>(?P<inside>.*?)</(?P=name)>", re.DOTALL)
SOURCE = re.compile(r"<source(?:\s[^>]*)?>(?P<text>.*?)</source>", re.DOTALL)
DONE = re.compile(r"<target(?P<rest>\s[^>]*?)?(?:/>|>(?P<text>.*?)</target>)", re.DOTALL)
UNIT = re.compile(r"<tu(?P<rest>\s[^>]*(?<!/))?>(?P<inside>.*?)</tu>", re.DOTALL)
VARIANT = re.compile(
    r"<tuv(?P<rest>\s[^>]*)>(?:(?!</?tuv).)*?(?P<seg><seg\b[^>]*?(?:/>|>(?P<text>.*?)</seg>)).*?</tuv>", re.DOTALL
)
SEGMENTED = re.compile(r"<seg-source[\s>].*?</seg-source>", re.DOTALL)
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
        elif name in PAIRED and opens and not depth and not PROTECTED.match(found[0]):
            yield Token("close" if found["end"] else "open", found[0], name=name)
        else:
            depth += (-1 if found["end"] else 1) if name and opens else 0
            if not depth and PROTECTED.match(text, begun):
                shown = unescape(TAG.sub(lambda each: each["data"] or "", text[begun:at]))
                yield Token("copy" if shown else "point", text[begun:at], shown)
            elif not depth:
                kind: Kind = "open" if name in OPENS else "close" if name in CLOSES else "point"
                reference = REFERENCE.search(attributes)
                yield Token(kind, text[begun:at], name=reference[1] if reference else "")
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


def is_blank(content: str) -> bool:
    """True where there is nothing but tags and white space."""
    return not TAG.sub(lambda found: found["data"] or "", content).strip()


def fixed_in(text: str) -> set[int]:
    """Where elements begin that are not to be translated, as they or the nearest around them that tells say."""
    found, around = set[int](), [False]
    for tag in TAG.finditer(text):
        if tag["end"]:
            around.pop()
        elif tag["name"] and not tag[0].endswith("/>"):
            own = TRANSLATE.search(tag["rest"])
            around.append(own[1] == "no" if own else around[-1])
            found.update([tag.start()] * around[-1])
    return found


def with_state(attributes: str) -> str:
    """Attributes of a segment of version 2 that has a translation now; without a state, it would be `initial`."""
    if UNTRANSLATED.search(attributes):
        attributes = SUBSTATE.sub("", UNTRANSLATED.sub(' state="translated"', attributes))
    return attributes if STATE.search(attributes) else f'{attributes} state="translated"'


def targets_of(text: str) -> Iterator[Target]:
    """The targets that are missing."""
    fixed = fixed_in(text)
    # Suggestions have sources and targets, too.
    for unit in SEGMENT.finditer(IGNORED.sub(lambda found: " " * len(found[0]), text)):
        source, target = SOURCE.search(unit["inside"]), DONE.search(unit["inside"])
        first = unit.start("inside")
        done = text[first + target.start("text") : first + target.end("text")] if target and target["text"] else ""
        new = UNTRANSLATED.search(unit["rest"] + (target["rest"] or "" if target else ""))
        missing = new or is_blank(done)
        if source and missing and unit.start() not in fixed:
            behind = SEGMENTED.search(unit["inside"]) or source
            begin, end = target.span() if target else (behind.end(), behind.end())
            content = text[first + source.start("text") : first + source.end("text")]
            rest = with_state(unit["rest"]) if unit["name"] == "segment" else unit["rest"]
            before = rest + text[unit.end("rest") : first + begin]
            yield Target((unit.start("rest"), first + end), (before + TARGET[unit["name"]], "</target>"), content)


def language_of(text: str) -> str:
    """The language that attributes or a tag name, without its country."""
    found = LANGUAGE.search(text)
    return (base(found[1]) or found[1]) if found else ""


def tuvs_of(text: str, model: Direction) -> Iterator[Target]:
    """The variants in a target language that are missing in a translation memory."""
    usual, own = usual_language(text), language_of(f" lang='{model.target}'")
    searched = IGNORED.sub(lambda found: " " * len(found[0]), text)
    for unit in UNIT.finditer(searched):
        found = [(language_of(each["rest"]), each) for each in VARIANT.finditer(searched, *unit.span("inside"))]
        variants = {code: each for code, each in found if not is_blank(text[slice(*each.span("text"))])}
        wanted = language_of(unit["rest"] or "") or usual
        wanted = base(model.source) if base(model.source) in variants else wanted
        wanted = next(iter(variants), "") if wanted == "*all*" else wanted
        source = None if differ(wanted, model.source) else variants.get(wanted)
        empty = [each.span("seg") for code, each in found if code == own]
        if not source or own in variants:
            continue
        if empty:
            yield Target(empty[0], ("<seg>", "</seg>"), text[slice(*source.span("text"))])
        elif own not in map(language_of, re.findall(r"<tuv\s[^>]*", unit["inside"])):
            opening = f'<tuv xml:lang="{escape(model.target)}" creationtool="nmt"><seg>'
            yield Target((source.end(), source.end()), (opening, "</seg></tuv>"), text[slice(*source.span("text"))])


def usual_language(text: str) -> str:
    """The source language that the header of a translation memory names."""
    header = re.search(r"<header\s[^>]*>", text)
    return language_of(header[0]) if header else ""


class Xliff(Text):
    """A file of XLIFF; NMTError where it is not well-formed, or in other languages than the model's."""

    declares = True

    def parts(self, text: str, model: Direction) -> list[Target]:
        check_xml(text)
        for tag in TAG.finditer(text):
            if tag["name"] in ("xliff", "file") and not tag["end"]:
                source, target = FILE_SOURCE.search(tag["rest"]), FILE_TARGET.search(tag["rest"])
                Direction(source[1] if source else "", target[1] if target else "").check(model)
        return [target for target in targets_of(text) if target.lines]


class TranslationMemory(Text):
    """A translation memory, of which units without the target language get it; NMTError as for XLIFF."""

    declares = True

    def parts(self, text: str, model: Direction) -> list[Target]:
        check_xml(text)
        if not model.target:
            raise NMTError("the target language is not known: pass target=CODE to a model for several languages")
        variants = [variant for variant in tuvs_of(text, model) if variant.lines]
        if not variants and (usual := usual_language(text)) != "*all*":
            Direction(usual).check(model)
        return variants
