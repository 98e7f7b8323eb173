"""HTML as browsers read it (https://html.spec.whatwg.org, section 13.2.5), with the place of everything in the text."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape, unescape
from typing import Literal

from nmt.plugins.documents.document import Direction, Part, Spliced, Stretch, Text, Translated, differ
from nmt.plugins.documents.markup import Sentence, Token

# Possessive, so that no input takes more than linear time.
VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))"""
ATTRIBUTE = re.compile(rf"""(?P<name>[^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?P<value>{VALUE}|[^\s>"'][^\s>]*+))?+""")
MARKUP = re.compile(
    r"<(?:!--(?:-?>|.*?(?:--!?>|\Z))|!\[CDATA\[.*?(?:\]\]>|\Z)|[!?][^>]*+(?:>|\Z)|/[^a-zA-Z][^>]*+(?:>|\Z)|"
    rf"""(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)(?P<attributes>(?:[^>"'=]++|=\s*+{VALUE}|["'=])*+)(?:>|\Z))""",
    re.DOTALL,
)
INLINE = frozenset(
    """a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark meter nobr output q ruby rb rp rt s
    small span strike strong sub sup time u""".split()  # noqa: SIM905
)
BETWEEN = frozenset(["area", "br", "embed", "img", "input", "wbr"])
"""Inline elements without content, which stand between words."""
COPIED = frozenset(["code", "kbd", "samp", "tt", "var", "math", "svg"])
"""Inline elements whose content is copied."""
UNSEEN = frozenset(["script", "style", "template"])
RAW = frozenset(["textarea", "xmp", "iframe", "noembed", "noframes", "plaintext", "pre", "listing"])
"""Other elements whose content is left as it is."""
READ = frozenset(["alt", "title", "placeholder", "aria-label"])
"""Attributes that people read."""
READ_IF = {"input": ("value", "type"), "meta": ("content", "name", "property")}
READ_AS = frozenset(["submit", "button", "reset", "description", "og:title", "og:description"])
"""Of some tags, another attribute that people read, where one of the next has one of these values."""
FIXED = frozenset(["notranslate", "sig-object", "headerlink"])
"""Classes of elements that are not to be translated: Sphinx's are of the signature of a function, and of ¶."""


@dataclass
class Tag:
    """A tag, a comment, or the like."""

    begin: int
    end: int
    name: str = ""
    """In small letters; none for a comment."""
    closes: bool = False
    attributes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where the values are, with their quotes."""
    partner: int = 0
    """The index of the tag that closes the element, if there is one."""

    def value(self, text: str, name: str) -> str:
        """The value of an attribute in small letters; empty where it is not there."""
        return text[slice(*self.attributes.get(name, (0, 0)))].lower().strip("\"' \t\r\n")

    def is_fixed(self, text: str) -> bool:
        """True where a tag says that its element is not to be translated."""
        return self.value(text, "translate") == "no" or not FIXED.isdisjoint(self.value(text, "class").split())


def tags_of(text: str) -> list[Tag]:
    """The tags of a text, in order, without those in scripts and other elements that have text alone."""
    tags, at, opened = list[Tag](), 0, defaultdict[str, list[int]](list)
    while markup := MARKUP.search(text, at):
        at = markup.end()
        tag = Tag(markup.start(), at, (markup["name"] or "").lower(), markup["end"] == "/")
        tags.append(tag)
        if tag.closes and opened[tag.name]:
            tags[opened[tag.name].pop()].partner = len(tags) - 1
        elif tag.name and not tag.closes:
            opened[tag.name].append(len(tags) - 1)
            values = (match for match in ATTRIBUTE.finditer(text, *markup.span("attributes")) if match["value"])
            tag.attributes = {match["name"].lower(): match.span("value") for match in values}
            if tag.name in UNSEEN | RAW | {"title"}:
                end = re.compile(rf"</{tag.name}[\s/>]", re.IGNORECASE).search(text, at)
                at, tag.end = (end.start(), at) if end else (len(text), len(text))
    return tags


class Reader:
    """Collects the sentences of a text, and the values of its attributes that are translated."""

    def __init__(self, text: str, languages: Direction) -> None:
        self.text, self.tags, self.languages = text, tags_of(text), languages
        self.sentences, self.attributes = list[Sentence](), list[Part]()
        self.begin, self.tokens = 0, list[Token]()
        """Where the next sentence begins, and its tokens so far."""
        at = index = 0
        while index < len(self.tags):
            self.add_text(at, self.tags[index].begin)
            index = self.add(index)
            at = self.tags[index].end
            index += 1
        self.add_text(at, len(text))
        self.end_sentence()

    def add_text(self, begin: int, end: int) -> None:
        if begin < end:
            self.tokens.append(Token("text", self.text[begin:end], unescape(self.text[begin:end])))

    def kind(self, tag: Tag) -> Literal["copied", "between", "inline", "left", "block"]:
        """What a tag, or its element, is to the text around it."""
        fixed = tag.is_fixed(self.text)
        if tag.name in COPIED or (fixed and tag.name in INLINE):
            return "copied" if tag.partner else "between"
        if tag.name in UNSEEN | BETWEEN | {""} or (tag.name in INLINE and self.text[tag.end - 2] == "/"):
            return "between"
        return "inline" if tag.name in INLINE else "left" if fixed or tag.name in RAW else "block"

    def add(self, index: int) -> int:
        """Add a tag, or the whole of an element; the index of its last tag."""
        tag, kind = self.tags[index], self.kind(self.tags[index])
        last = (tag.partner or index) if kind in ("copied", "left") or tag.name in UNSEEN else index
        raw = self.text[tag.begin : self.tags[last].end]
        if kind == "copied":
            is_unseen = tag.name in ("math", "svg") or "headerlink" in tag.value(self.text, "class")
            shown = "" if is_unseen else unescape(MARKUP.sub("", raw))
            self.tokens.append(Token("copy", raw, shown, breaks=not shown))
            return last
        if kind == "between":
            self.tokens.append(Token("point", raw, breaks=tag.name in BETWEEN - {"wbr"}))
        elif kind == "inline":
            self.tokens.append(Token("close" if tag.closes else "open", raw, name=tag.name))
        else:
            self.end_sentence()
            self.begin = self.tags[last].end
        self.attributes += self.languages_of(tag) if kind == "block" else ()
        self.attributes += self.read_attributes(tag)
        return last

    def languages_of(self, tag: Tag) -> Iterator[Part]:
        """The attributes of a page, or of a part of it, that is in the target language now."""
        source, target = self.languages.source, self.languages.target.replace("_", "-")
        is_page = tag.name == "html" and not tag.closes
        for name in ("lang", "xml:lang") if target else ():
            place = tag.attributes.get(name)
            if place and not differ(tag.value(self.text, name), source) and (is_page or source):
                yield Stretch(*place, written=f'"{target}"')
            elif name == "lang" and is_page and not place:
                at = tag.begin + len("<html")
                yield Stretch(at, at, written=f' lang="{target}"')

    def read_attributes(self, tag: Tag) -> Iterator[Part]:
        """What people read of a tag's attributes."""
        name, *keys = READ_IF.get(tag.name, ("",))
        read = READ | {name} if any(tag.value(self.text, key) in READ_AS for key in keys) else READ
        names = read & tag.attributes.keys() if not tag.is_fixed(self.text) else ()
        for begin, end in sorted(tag.attributes[name] for name in names):
            quoted = self.text[begin] in "\"'"
            raw = self.text[begin + quoted : end - (quoted and end > begin + 1)]
            write = escape if quoted else lambda text: f'"{escape(text)}"'
            yield Sentence(begin + quoted, [Token("text", raw, unescape(raw))], write)

    def end_sentence(self) -> None:
        sentence = Sentence(self.begin, self.tokens, partial(escape, quote=False))
        self.sentences += [sentence] if sentence.lines else []
        self.tokens = []


class Page:
    """A page, or a part of one; attributes come first, because some stand inside of sentences."""

    def __init__(self, text: str, begin: int = 0, languages: Direction | None = None) -> None:
        reader = Reader(text, languages or Direction())
        self.text, self.begin, self.end = text, begin, begin + len(text)
        self.attributes = Spliced(text, sorted(reader.attributes, key=lambda part: part.begin))
        self.lines = self.attributes.lines + Spliced(text, reader.sentences).lines

    def render(self, translations: Sequence[Translated]) -> str:
        size = len(self.attributes.lines)
        text = self.attributes.render(translations[:size]) if self.lines else self.text
        return Spliced(text, Reader(text, Direction()).sentences).render(translations[size:])


class Html(Text):
    """A page, or a part of one; what is in the model's source language is in its target language then."""

    declares = True

    def parts(self, text: str, model: Direction) -> list[Part]:
        return [Page(text, 0, model)]
