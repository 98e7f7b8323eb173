"""XLIFF 1.2 and 2 (https://docs.oasis-open.org/xliff): units without a target get one, all else stays as it is."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from html import escape, unescape
from xml.parsers import expat

from nmt.documents.document import Part, Spliced, Translated
from nmt.documents.markup import Sentence, Token
from nmt.errors import NMTError

TAG = re.compile(
    r"<!--.*?-->|<!\[CDATA\[(?P<data>.*?)\]\]>|<\?.*?\?>|<![^>]*>|"
    r"""<(?P<end>/?)(?:[\w.-]+:)?(?P<name>[\w.-]+)(?P<rest>(?:[^>"']++|"[^"]*"|'[^']*')*+)>""",
    re.DOTALL,
)
PAIRED = frozenset(("g", "pc", "mrk"))
"""Elements around text; the text in others is code of the original file."""
TARGET = {"trans-unit": '<target state="needs-review-translation">', "segment": "<target>"}
"""The beginning of a target, in each kind of unit."""


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of the content of a source."""
    at, inside = 0, list[str]()
    for found in TAG.finditer(text):
        raw, name, plain = found[0], found["name"], text[at : found.start()]
        if plain:
            yield Token("point", plain) if inside else Token("text", plain, unescape(plain))
        at = found.end()
        if found["data"] is not None and not inside:
            yield Token("text", raw, found["data"])
        elif not name or raw.endswith("/>"):
            yield Token("point", raw)
        elif name in PAIRED and not inside:
            yield Token("close" if found["end"] else "open", raw, name=name)
        else:
            yield Token("point", raw)
            inside = inside[:-1] if found["end"] else [*inside, name]
    if at < len(text):
        yield Token("text", text[at:], unescape(text[at:]))


class Target:
    """A new target, in the place of an empty one or behind the source."""

    def __init__(self, place: tuple[int, int], opening: str, source: str) -> None:
        self.begin, self.end = place
        self.opening = opening
        self.source = Spliced(source, [Sentence(0, list(tokens_of(source)), partial(escape, quote=False))])
        self.lines = self.source.lines

    def render(self, translations: Sequence[Translated]) -> str:
        return f"{self.opening}{self.source.render(translations)}</target>"


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
            yield Target(place, TARGET[unit], source)


def read_xliff(text: str) -> Spliced:
    """A file of XLIFF; NMTError where it is not well-formed."""
    try:
        expat.ParserCreate("utf-8").Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise NMTError(f"line {error.lineno}: not well-formed XML ({expat.ErrorString(error.code)})") from error
    parts: list[Part] = [target for target in targets_of(text) if target.lines]
    return Spliced(text, parts)
