"""HTML, parsed as browsers parse it (https://html.spec.whatwg.org, section 13.2.5), with the offsets of all markup."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape, unescape

from nmt.plugins.documents.declarations import Declarations, declares_direction, value
from nmt.plugins.documents.document import MarkedUp, Part, Spliced, Translated, notice_of
from nmt.plugins.documents.markup import Kind, Sentence, Token
from nmt.plugins.documents.neighbors import keep_apart
from nmt.plugins.documents.scripts import NAMES as NAMES_OF_SCRIPTS, join_scripts
from nmt.plugins.protection.finder import USUAL, Finder
from nmt.text import BETWEEN as BETWEEN, BLOCKS, INLINE

# Quantifiers are possessive or atomic so that every input takes linear time.
VALUE = r"""(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z))"""
ATTRIBUTE = re.compile(
    rf"""(?P<name>[^\s/>=][^\s/>=]*+)(?>\s*+=\s*+(?P<value>{VALUE}|[^\s>"'][^\s>]*+)|)"""
)
MARKUP = re.compile(
    r"<(?:!--(?:-?>|.*?(?:--!?>|\Z))|!\[CDATA\[.*?(?:\]\]>|\Z)|[!?][^>]*+(?:>|\Z)|/[^a-zA-Z][^>]*+(?:>|\Z)|"
    rf"""(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)(?P<attributes>(?>(?:[^>"'=]++|=\s*+{VALUE}|["'=])*))(?:>|\Z))""",
    re.DOTALL,
)
READINGS = frozenset(["rt", "rp"])  # above a word, or their parentheses
BASES = frozenset(["ruby", "rb"])  # of readings
RUBY = BASES | READINGS | {"rtc"}
"""The elements of readings. A translation has none: they tell how to pronounce the source."""
READING = re.compile(r"<rt[\s/>]", re.IGNORECASE)
# The tags of bases, and whole readings.
RUBY_MARKUP = re.compile(
    r"</?(?:ruby|rb)\b[^<>]*>|<(rtc?|rp)\b[^<>]*>.*?</\1\s*>",
    re.IGNORECASE | re.DOTALL,
)
ENDED_BY_OPENING = READINGS | {"rb", "rtc"}
ENDED_BY_CLOSING = frozenset(["ruby", "rtc"])
# Inline elements whose content is copied.
COPIED = READINGS | {"rtc", "code", "kbd", "samp", "tt", "var", "math", "svg"}
UNSEEN = frozenset(["script", "style"])
RAW = frozenset(
    ["textarea", "xmp", "iframe", "noembed", "noframes", "plaintext", "pre", "listing"]
)  # left unchanged
# Texts that browsers do not show, or do not end.
UNREAD = frozenset(["iframe", "noembed", "noframes", "plaintext"])
# Attributes with human-readable text: of all elements, of some, and of <meta> with these names.
READ = frozenset(
    """alt title placeholder aria-label aria-description aria-placeholder aria-roledescription
    aria-valuetext""".split()  # noqa: SIM905
)
LABELED = frozenset(["optgroup", "option", "track"])
TEXT_OF_IMAGE = re.compile(
    r"<(?P<name>text|title|desc)\b[^>]*+>(?P<inside>.*?)</(?P=name)\s*>", re.DOTALL
)
TEXTS_IN_IMAGES = "texts in SVG images"
# Elements whose closing tag is optional, and the elements that end them.
ENDED_BY = {
    "p": BLOCKS,
    "li": {"li"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "td": {"td", "th", "tr", "tbody", "tfoot"},
    "th": {"td", "th", "tr", "tbody", "tfoot"},
    "tr": {"tr", "tbody", "tfoot"},
    "option": {"option", "optgroup"},
}
FOREIGN = "passages declared in other languages"
ROOTS = frozenset(["html", "body"])
READINGS_LEFT_OUT = "readings (ruby) left out"
BUTTONS = frozenset(["submit", "button", "reset"])
META = frozenset(
    """description og:title og:description og:image:alt twitter:title twitter:description twitter:image:alt
    dc.title dc.description dcterms.title dcterms.description""".split()  # noqa: SIM905
)


@dataclass
class Tag:
    """A tag, comment or similar; `attributes` maps names to the spans of their values, including quotes."""

    begin: int
    end: int
    name: str  # lowercase; empty for a comment
    closes: bool
    attributes: dict[str, tuple[int, int]] = field(default_factory=dict)
    partner: int = 0  # the index of the closing tag; 0: none


def tags_of(text: str) -> list[Tag]:
    """The tags in `text`, in order, except those inside elements that contain only text, such as scripts."""
    tags, at, opened = list[Tag](), 0, defaultdict[str, list[int]](list)
    is_xml = text.startswith("<?xml")  # where <script/> is a whole element
    while markup := MARKUP.search(text, at):
        at = markup.end()
        tag = Tag(markup.start(), at, (markup["name"] or "").lower(), markup["end"] == "/")
        if tag.name in (ENDED_BY_CLOSING if tag.closes else ENDED_BY_OPENING):
            for name in READINGS:
                if opened[name]:  # its closing tag is optional
                    tags[opened[name].pop()].partner = len(tags)
                    tags.append(Tag(tag.begin, tag.begin, name, closes=True))
        tags.append(tag)
        if tag.closes and opened[tag.name]:
            tags[opened[tag.name].pop()].partner = len(tags) - 1
        elif tag.name and not tag.closes:
            opened[tag.name].append(len(tags) - 1)
            values = [*ATTRIBUTE.finditer(text, *markup.span("attributes"))][
                ::-1
            ]  # browsers use a name's first value
            tag.attributes = {
                match["name"].lower(): match.span("value") for match in values if match["value"]
            }
            if tag.name in UNSEEN | RAW | {"title"} and not (is_xml and text[at - 2] == "/"):
                end = re.compile(rf"</{tag.name}[\s/>]", re.IGNORECASE).search(text, at)
                at, tag.end = (end.start(), at) if end else (len(text), len(text))
    return tags


def value_of(tag: Tag, name: str, text: str) -> str:
    """The value of an attribute in lower case; empty if a tag of this text lacks it."""
    return value(text, tag.attributes.get(name, (0, 0)))


def is_fixed(tag: Tag, text: str) -> bool:
    """True if a tag of this text marks its element as not to be translated."""
    return (
        value_of(tag, "translate", text) == "no"
        or "notranslate" in value_of(tag, "class", text).split()
    )


def readable_attributes(tag: Tag, text: str) -> set[str]:
    """The names of the attributes whose text people read on the page, or in search results."""
    names = {*READ}
    if tag.name in LABELED:
        names.add("label")
    elif tag.name == "input" and value_of(tag, "type", text) in BUTTONS:
        names.add("value")
    elif tag.name == "meta" and not META.isdisjoint(
        value_of(tag, key, text) for key in ("name", "property", "itemprop")
    ):
        names.add("content")
    return names & tag.attributes.keys()


def copied(name: str, raw: str) -> Token:
    """The token for an element that is copied, or for a reading, which is left out.

    An icon or an empty element is not part of the text around it.
    """
    if name in RUBY:
        return Token("point", raw, name=name, is_dropped=True)
    text = "" if name == "svg" else unescape(MARKUP.sub("", raw)).strip()
    if not text and name != "math":
        return Token("point", raw, breaks=True)
    return Token("copy", raw, "" if name == "math" else text)


def lost_readings(before: str, after: str) -> int:
    """How many readings of a file its translation lacks."""
    return len(READING.findall(before)) - len(READING.findall(after))


class Page(Part):
    """A page or a fragment of one; its lines are the translatable attribute values, followed by the sentences."""

    def __init__(
        self,
        text: str,
        begin: int = 0,
        declarations: Declarations | None = None,
        foreign: Collection[int] | None = None,
    ) -> None:
        """`declarations` change what the page declares about its text.

        `foreign` are the indices of tags of passages in other languages, if they are known.
        """
        self.text = text
        self.declarations = declarations
        self.tags, self.sentences, self.values = tags_of(text), list[Sentence](), list[Part]()
        if foreign is None:
            indices = range(len(self.tags))
            foreign = frozenset(index for index in indices if self.is_foreign(self.tags[index]))
        self.foreign = foreign
        self.outermost = 0  # the end of the last outermost element
        self.has_root = any(tag.name == "html" for tag in self.tags)
        self.left = Counter[str]()  # what stays untranslated, by its kind
        self.first, self.tokens = (
            0,
            list[Token](),
        )  # where the next sentence begins, and its tokens so far
        at = 0
        for index, tag in enumerate(self.tags):
            if tag.begin >= at:
                self.add_text(at, tag.begin)
                at = self.add(index)
        self.add_text(at, len(text))
        self.end_sentence()
        self.attributes = Spliced(text, self.values)
        super().__init__(
            begin, begin + len(text), self.attributes.lines + Spliced(text, self.sentences).lines
        )

    def add_text(self, begin: int, end: int) -> None:
        if begin < end:
            self.tokens.append(Token("text", self.text[begin:end], unescape(self.text[begin:end])))

    def add(self, index: int) -> int:
        """Add a tag or a whole element; return its end."""
        tag = self.tags[index]
        fixed = index in self.foreign or is_fixed(tag, self.text)
        end = self.end_of_element(index)
        if index in self.foreign and self.declarations:
            self.count_foreign(index, self.declarations)
        last = tag.end
        raw, element = self.text[tag.begin : tag.end], slice(tag.begin, end)
        is_kept = fixed or tag.name in COPIED | RAW
        if self.declarations and tag.name and not tag.closes:
            self.values += self.changes(index, self.declarations, is_kept)
        if (tag.name in COPIED or (fixed and tag.name in INLINE)) and tag.partner:
            self.tokens.append(copied(tag.name, self.text[element]))
            if tag.name == "svg" and not fixed:
                self.count_texts(self.text[element])
            return end
        if tag.name in UNSEEN:
            self.tokens.append(Token("point", self.text[element]))
            return end
        if tag.name in INLINE and raw[-2:-1] != "/" and not fixed:
            is_script = tag.name in NAMES_OF_SCRIPTS and not tag.closes
            kind: Kind = "close" if tag.closes else "open"
            is_base = tag.name in BASES
            token = Token(kind, raw, name=tag.name, is_script=is_script, is_dropped=is_base)
            self.tokens.append(token)
        elif tag.name in INLINE | BETWEEN | COPIED | {""}:
            breaks = tag.name in BETWEEN - {"wbr"}
            self.tokens.append(Token("point", raw, breaks=breaks, is_dropped=tag.name in RUBY))
        else:
            if fixed or tag.name in RAW:
                last = end
            self.end_sentence()
            self.first = last
        if "srcdoc" in tag.attributes and not fixed:
            self.left["embedded pages"] += 1
        names = set[str]() if fixed else readable_attributes(tag, self.text)
        for begin, end in sorted(tag.attributes[name] for name in names):
            quoted = self.text[begin] in "\"'"
            value = self.text[begin + quoted : end - (quoted and end > begin + 1)]
            write = escape if quoted else lambda text: f'"{escape(text)}"'
            self.values.append(
                Sentence(begin + quoted, [Token("text", value, unescape(value))], write)
            )
        return last

    def end_of_element(self, index: int) -> int:
        """The end of the element that a tag opens, whose closing tag may be optional."""
        tag = self.tags[index]
        if tag.partner:
            return self.tags[tag.partner].end
        if tag.closes or tag.name not in ENDED_BY:
            return tag.end
        at = index + 1
        while at < len(self.tags):
            other = self.tags[at]
            if other.closes or other.name in ENDED_BY[tag.name]:
                return other.begin
            at = (other.partner or at) + 1
        return len(self.text)

    def is_foreign(self, tag: Tag) -> bool:
        """Whether an element declares a language other than the source language.

        The language of a whole page is often that of a template, and does not count.
        """
        if self.declarations is None or tag.closes or tag.name in ROOTS:
            return False
        return self.declarations.is_foreign(self.text, tag.attributes)

    def count_foreign(self, index: int, declarations: Declarations) -> None:
        """Count an element in a third language, if it has text."""
        is_target = declarations.is_target(self.text, self.tags[index].attributes)
        if not is_target and any(map(str.isalpha, self.text_of(index))):
            self.left[FOREIGN] += 1

    def changes(self, index: int, declarations: Declarations, is_kept: bool) -> Iterable[Part]:
        """What changes in an opening tag; the text of an element that `is_kept` stays as it is."""
        tag = self.tags[index]
        spans = tag.attributes
        is_outermost = not self.has_root and tag.begin >= self.outermost and tag.name not in INLINE
        if is_outermost:
            # Everything else is inside of <body>, whose closing tag is optional.
            end = len(self.text) if tag.name == "body" else tag.end
            self.outermost = self.tags[tag.partner].end if tag.partner else end
        if is_kept:
            inside = "" if tag.name in UNREAD else self.text_of(index)
            return declarations.kept(tag.begin, tag.name, spans, inside)
        if declares_direction(self.text, spans) and self.is_without_words(index):
            return ()  # such as a telephone number
        if tag.name == "html":
            return declarations.root(self.text, tag.begin, tag.name, spans)
        changes = [*declarations.translated(self.text, tag.name, spans)]
        if is_outermost and "dir" not in spans:
            changes += declarations.outermost(self.text, tag.begin, tag.name, spans)
        return changes

    def is_without_words(self, index: int) -> bool:
        """Whether an element has signs, digits and items, but neither words nor blocks inside.

        The order of signs, as in a telephone number or path, is the same in all languages.
        """
        inside = self.tags[index + 1 : self.tags[index].partner]
        has_blocks = any(tag.name and tag.name not in INLINE for tag in inside)
        if has_blocks:
            return False
        text = self.text_of(index)
        items = Finder([USUAL]).stretches(text)
        rest = "".join(Spliced(text, (Part(*span) for span in items)).render(()))
        return bool(text.strip()) and not any(map(str.isalpha, rest))

    def text_of(self, index: int) -> str:
        """The text inside the element that a tag opens."""
        tag = self.tags[index]
        partner = self.tags[tag.partner] if tag.partner else None
        end = partner.begin if partner else self.end_of_element(index)
        return unescape(MARKUP.sub("", self.text[tag.end : end]))

    def count_texts(self, image: str) -> None:
        """Count the texts in an SVG image."""
        texts = TEXT_OF_IMAGE.finditer(image)
        words = (MARKUP.sub("", text["inside"]) for text in texts)
        self.left[TEXTS_IN_IMAGES] += sum(any(map(str.isalpha, word)) for word in words)

    def end_sentence(self) -> None:
        tokens = keep_apart(join_scripts(self.tokens))
        sentence = Sentence(self.first, tokens, partial(escape, quote=False))
        if sentence.lines:
            self.sentences.append(sentence)
        self.tokens = []

    def render(self, translations: Sequence[Translated]) -> str:
        left = iter(translations)
        text = self.attributes.render(left)
        # The attributes now declare the target language.
        page = Page(text, foreign=self.foreign)
        return Spliced(text, page.sentences).render(left)


class Html(MarkedUp):
    """A page or a fragment of one, which declares the target language and its direction."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.declarations = Declarations(source, target) if target else None
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> list[Part]:
        page = Page(text, 0, self.declarations)
        self.left = page.left
        self.notice = self.notice_with(readings=0)
        return [page] if page.lines else []

    def notice_with(self, readings: int) -> str:
        left = ((f"{what} left untranslated", number) for what, number in self.left.items())
        return notice_of(*left, (READINGS_LEFT_OUT, readings))

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        written = content.removeprefix(self.mark).decode(self.encoding)
        self.notice = self.notice_with(lost_readings(self.text.text, written))
        return content
