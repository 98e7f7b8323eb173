"""The declarations of HTML pages about their text: its language and its direction.

https://html.spec.whatwg.org, sections 3.2.6.2 and 3.2.6.4.
"""

import re
from collections.abc import Iterator, Mapping

from nmt.plugins.documents.document import Part
from nmt.text import direction, direction_of_text, language_tag, match_language

LANGUAGES = ("lang", "xml:lang")
WITHOUT_TEXT = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "frame",
        "head",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "noscript",
        "param",
        "script",
        "source",
        "style",
        "template",
        "title",
        "track",
        "wbr",
    ]
)
"""Elements outside of <html> that need no direction.

They are empty, or browsers show no text in them.
"""
FIELDS = frozenset(["input", "textarea", "select"])
"""Elements whose direction is that of what users enter."""
BOXES = frozenset(["embed", "hr", "iframe", "img", "input", "object", "table"])
"""Elements that `align` moves to a side of the page, with text around them."""
STYLE = re.compile(
    r"(?<![\w-])(?:text-align\s*:\s*(?P<side>left|right)|direction\s*:\s*(?P<direction>ltr|rtl))\b",
    re.IGNORECASE,
)
OTHER_SIDE = {"left": "right", "right": "left"}
SETS_ITS_DIRECTION = frozenset(["math", "rp", "rt", "rtc"])
"""Formulas, which browsers show from left to right, and readings, which a translation lacks."""
Spans = Mapping[str, tuple[int, int]]


class Declarations:
    """Changes what a page declares when its text is translated from `source` to `target`.

    Both are language codes, and `source` may be empty. Each method yields the changes of one tag:
    `text` is the page, `begin` the offset of the tag, `name` its name in lower case, and `spans`
    maps the names of its attributes to the spans of their values with their quotes.
    """

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.tag = language_tag(target) or target.replace("_", "-")
        # Without a source language, text is taken to be from left to right.
        self.before = direction(source) if source else "ltr"
        self.after = direction(target)
        self.turns = self.before != self.after

    def root(self, text: str, begin: int, name: str, spans: Spans) -> Iterator[Part]:
        """The changes of <html>, whose language is always the target language."""
        declared = [attribute for attribute in LANGUAGES if attribute in spans]
        for attribute in declared:
            # With quotes, which the old value may lack.
            yield Part(*spans[attribute], otherwise=f'"{self.tag}"')
        if not declared:
            # XHTML 1.1, which EPUB 2 is based on, has no `lang`.
            attribute = "xml:lang" if text.startswith("<?xml") else "lang"
            yield self.added(begin, name, self.tag, attribute)
        yield from self.outermost(text, begin, name, spans)

    def outermost(self, text: str, begin: int, name: str, spans: Spans) -> Iterator[Part]:
        """The direction of an element that no other element with a direction contains."""
        if not self.turns or name in WITHOUT_TEXT:
            return
        if "dir" in spans:
            yield from self.turned(text, spans)
        else:
            yield self.added(begin, name, self.after)

    def translated(self, text: str, name: str, spans: Spans) -> Iterator[Part]:
        """The changes of an element with translated text."""
        for attribute, code in languages(text, spans):
            # All text of a page is in <body>, whatever its template declares.
            if name == "body" or self.is_source(code):
                yield Part(*spans[attribute], otherwise=f'"{self.tag}"')
        # Fields keep their direction, because users may enter any language.
        if name not in FIELDS:
            yield from self.turned(text, spans)
            yield from self.aligned(text, name, spans)

    def aligned(self, text: str, name: str, spans: Spans) -> Iterator[Part]:
        """The other side for text that is aligned to one side."""
        # Text in the new direction is aligned for it already.
        in_place = "dir" in spans and value(text, spans["dir"]) == self.after
        if not self.turns or in_place:
            return
        if "align" in spans and name not in BOXES:
            side = OTHER_SIDE.get(value(text, spans["align"]))
            if side:
                yield Part(*spans["align"], otherwise=f'"{side}"')
        if "style" in spans:
            begin, end = spans["style"]
            for match in STYLE.finditer(text, begin, end):
                declared = match["side"] or match["direction"]
                # A side becomes the other side; a direction becomes that of the target language.
                changed = OTHER_SIDE.get(declared.lower(), self.after)
                # The declared value is at the end of the match.
                begin_of_value = match.end() - len(declared)
                yield Part(begin_of_value, match.end(), otherwise=changed)

    def is_foreign(self, text: str, spans: Spans) -> bool:
        """Whether an element declares a language other than the source language.

        False if the source language is unknown, and for what is not a language code.
        """
        if not self.source:
            return False
        for _, code in languages(text, spans):
            if language_tag(code):
                return not self.is_source(code)
        return False

    def is_target(self, text: str, spans: Spans) -> bool:
        """Whether an element declares the target language."""
        return any(match_language(code, [self.tag]) for _, code in languages(text, spans))

    def is_source(self, code: str) -> bool:
        """Whether a declared language is the source language, in any region."""
        return bool(self.source and match_language(code, [self.source]))

    def turned(self, text: str, spans: Spans) -> Iterator[Part]:
        """The change of a declared direction, if it is that of the source language."""
        # The other direction marks text that is not in the source language, and stays.
        if self.turns and "dir" in spans and value(text, spans["dir"]) == self.before:
            yield Part(*spans["dir"], otherwise=f'"{self.after}"')

    def kept(self, begin: int, name: str, spans: Spans, inside: str) -> Iterator[Part]:
        """The direction of an element whose text, `inside`, is not translated, such as code.

        Without one, the order of its letters and signs would become that of the text around it.
        """
        has_direction = "dir" in spans or name in FIELDS | SETS_ITS_DIRECTION
        if has_direction or not self.turns or not inside.strip():
            return
        of_text = direction_of_text(inside)
        if of_text != self.after:
            # SVG has an attribute of another name.
            attribute = "direction" if name == "svg" else "dir"
            yield self.added(begin, name, of_text, attribute)

    @staticmethod
    def added(begin: int, name: str, value: str, attribute: str = "dir") -> Part:
        """A new attribute, directly after the name of a tag."""
        at = begin + 1 + len(name)
        return Part(at, at, otherwise=f' {attribute}="{value}"')


def declares_direction(text: str, spans: Spans) -> bool:
    """Whether a tag declares a direction, with `dir` or `style`."""
    if "dir" in spans:
        return True
    if "style" not in spans:
        return False
    begin, end = spans["style"]
    return any(style["direction"] for style in STYLE.finditer(text, begin, end))


def languages(text: str, spans: Spans) -> list[tuple[str, str]]:
    """The attributes of a tag that declare a language, each with the language."""
    declared = list[tuple[str, str]]()
    for attribute in LANGUAGES:
        if attribute in spans:
            declared.append((attribute, value(text, spans[attribute])))
    return declared


def value(text: str, span: tuple[int, int]) -> str:
    """The value of an attribute in lower case, without quotes."""
    begin, end = span
    return text[begin:end].lower().strip("\"' \t\r\n")
