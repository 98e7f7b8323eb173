"""HTML: the text of a page in sentences, the attributes that people read, and its declarations."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from html import escape, unescape

from nmt.items import USUAL, Finder
from nmt.plugins.documents.declarations import Declarations, declares_direction
from nmt.plugins.documents.document import MarkedUp, Part, Spliced, notice_of
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.neighbors import keep_apart
from nmt.plugins.documents.nodes import Kind, MarkupToken
from nmt.plugins.documents.readings import (
    BASES,
    READINGS_LEFT_OUT,
    RUBY,
    lost_readings,
)
from nmt.plugins.documents.scripts import NAMES as NAMES_OF_SCRIPTS, join_scripts
from nmt.plugins.documents.tags import (
    COPIED,
    ENDED_BY,
    MARKUP,
    RAW,
    UNREAD,
    UNSEEN,
    Tag,
    copied,
    is_fixed,
    readable_attributes,
    tags_of,
)
from nmt.text import BETWEEN, INLINE
from nmt.translation import Translated

TEXT_OF_IMAGE = re.compile(
    r"<(?P<name>text|title|desc)\b[^>]*+>(?P<inside>.*?)</(?P=name)\s*>",
    re.DOTALL,
)
TEXTS_IN_IMAGES = "texts in SVG images"
FOREIGN = "passages declared in other languages"
EMBEDDED = "embedded pages"
ROOTS = frozenset(["html", "body"])
IN_SENTENCES = INLINE | BETWEEN | COPIED | {""}
"""The names of tags and comments that do not end a sentence."""


class Page(Part):
    """A page or a fragment of one.

    Its lines are the translatable attribute values, followed by the sentences.
    """

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
        self.tags = tags_of(text)
        self.has_root = any(tag.name == "html" for tag in self.tags)
        if foreign is None:
            foreign = self.foreign_tags()
        self.foreign = foreign
        self.left = Counter[str]()  # what stays untranslated, by its kind
        self.values = list[Part]()  # changes of attributes
        self.sentences = list[Sentence]()
        # In a fragment, without <html>, the outermost elements declare the direction.
        self.outermost = 0  # the end of the last outermost element
        self.first = 0  # where the next sentence begins
        self.tokens = list[MarkupToken]()  # of the next sentence so far
        self.read()
        self.attributes = Spliced(text, self.values)
        lines = self.attributes.lines + Spliced(text, self.sentences).lines
        super().__init__(begin, begin + len(text), lines)

    def read(self) -> None:
        """Find the sentences and the attributes."""
        at = 0
        for index, tag in enumerate(self.tags):
            if tag.begin >= at:  # not inside an element that was added as a whole
                self.add_text(at, tag.begin)
                at = self.add(index)
        self.add_text(at, len(self.text))
        self.end_sentence()

    def render(self, translations: Sequence[Translated]) -> str:
        left = iter(translations)
        text = self.attributes.render(left)
        # Tags inside of sentences have attributes, too, which are now translated and have moved the
        # text behind them. The sentences of the changed page are the same, but have the new tags
        # and offsets. Its attributes declare the target language, so they no longer show which
        # passages are in other languages.
        page = Page(text, foreign=self.foreign)
        return Spliced(text, page.sentences).render(left)

    def add_text(self, begin: int, end: int) -> None:
        if begin < end:
            raw = self.text[begin:end]
            self.tokens.append(MarkupToken("text", raw, unescape(raw)))

    def add(self, index: int) -> int:
        """Add a tag or a whole element, and return its end.

        A whole element is one whose content is not read, such as code or a script.
        """
        tag = self.tags[index]
        # Both declare that text stays: another language, or `translate="no"`.
        is_untranslated = index in self.foreign or is_fixed(tag, self.text)
        self.add_changes(index, is_untranslated)
        # Inside of a sentence, text that stays is one item, so that the model sees where it
        # belongs.
        is_copied = tag.name in COPIED or (is_untranslated and tag.name in INLINE)
        if is_copied and tag.partner:
            return self.add_copied(index, is_untranslated)
        end = self.end_of_element(index)
        # A script or style is not shown, so the sentence around it continues.
        if tag.name in UNSEEN:
            self.tokens.append(MarkupToken("point", self.text[tag.begin : end]))
            return end
        if not is_untranslated:
            self.add_values(tag)
        if tag.name in IN_SENTENCES:
            self.tokens.append(self.token_of(tag, is_untranslated))
            return tag.end
        # A block ends the sentence. Its text follows, or is left out.
        self.end_sentence()
        is_skipped = is_untranslated or tag.name in RAW
        self.first = end if is_skipped else tag.end
        return self.first

    def add_changes(self, index: int, is_untranslated: bool) -> None:
        """Add the changes of a tag's declarations."""
        if self.declarations is None:
            return
        tag = self.tags[index]
        if index in self.foreign:
            self.count_foreign(index, self.declarations)
        # Comments and closing tags declare nothing.
        if tag.name and not tag.closes:
            is_kept = is_untranslated or tag.name in COPIED | RAW
            self.values += self.changes(index, self.declarations, is_kept)

    def add_copied(self, index: int, is_untranslated: bool) -> int:
        """Add an element inside a sentence that is copied, and return its end."""
        tag = self.tags[index]
        end = self.tags[tag.partner].end
        element = self.text[tag.begin : end]
        self.tokens.append(copied(tag.name, element))
        # Browsers show these texts, but nmt does not translate them.
        if tag.name == "svg" and not is_untranslated:
            self.count_texts(element)
        return end

    def token_of(self, tag: Tag, is_untranslated: bool) -> MarkupToken:
        """The token for a tag inside a sentence."""
        raw = self.text[tag.begin : tag.end]
        # In XHTML, <b/> is a whole element.
        is_empty = raw[-2:-1] == "/"
        if tag.name not in INLINE or is_empty or is_untranslated:
            # <wbr> may be inside a word, which it does not separate.
            breaks = tag.name in BETWEEN and tag.name != "wbr"
            return MarkupToken("point", raw, breaks=breaks, is_dropped=tag.name in RUBY)
        kind: Kind = "close" if tag.closes else "open"
        return MarkupToken(
            kind,
            raw,
            name=tag.name,
            is_script=tag.name in NAMES_OF_SCRIPTS and not tag.closes,
            is_dropped=tag.name in BASES,
        )

    def add_values(self, tag: Tag) -> None:
        """Add the attributes of a tag that people read."""
        # The page in `srcdoc` is escaped HTML, which nmt does not read.
        if "srcdoc" in tag.attributes:
            self.left[EMBEDDED] += 1
        names = readable_attributes(tag, self.text)
        for begin, end in sorted(tag.attributes[name] for name in names):
            self.values.append(value_part(self.text, begin, end))

    def end_sentence(self) -> None:
        # Scripts first: a power and its number are one word, which nothing may divide.
        tokens = keep_apart(join_scripts(self.tokens))
        # In text, quotation marks need no references.
        sentence = Sentence(self.first, tokens, partial(escape, quote=False))
        if sentence.lines:
            self.sentences.append(sentence)
        self.tokens = []

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
            # The closing tag of an element around this one ends it, too.
            if other.closes or other.name in ENDED_BY[tag.name]:
                return other.begin
            # Continue behind an element inside this one.
            at = (other.partner or at) + 1
        return len(self.text)

    def text_of(self, index: int) -> str:
        """The text inside the element that a tag opens."""
        tag = self.tags[index]
        end = self.tags[tag.partner].begin if tag.partner else self.end_of_element(index)
        return unescape(MARKUP.sub("", self.text[tag.end : end]))

    def foreign_tags(self) -> frozenset[int]:
        """The indices of tags whose elements declare another language than the source language.

        The language of a whole page is often that of a template, and does not count.
        """
        if self.declarations is None:
            return frozenset()
        foreign = set[int]()
        for index, tag in enumerate(self.tags):
            if tag.closes or tag.name in ROOTS:
                continue
            if self.declarations.is_foreign(self.text, tag.attributes):
                foreign.add(index)
        return frozenset(foreign)

    def count_foreign(self, index: int, declarations: Declarations) -> None:
        """Count an element in a third language, if it has text."""
        is_target = declarations.is_target(self.text, self.tags[index].attributes)
        if not is_target and has_letters(self.text_of(index)):
            self.left[FOREIGN] += 1

    def count_texts(self, image: str) -> None:
        """Count the texts in an SVG image."""
        matches = TEXT_OF_IMAGE.finditer(image)
        texts = [MARKUP.sub("", match["inside"]) for match in matches]
        self.left[TEXTS_IN_IMAGES] += sum(map(has_letters, texts))

    def changes(self, index: int, declarations: Declarations, is_kept: bool) -> Iterable[Part]:
        """The changes of an opening tag; the text of an element that `is_kept` stays as it is."""
        tag = self.tags[index]
        spans = tag.attributes
        is_outermost = self.is_outermost(tag)
        # Elements inside this element are not outermost, even if they follow other elements.
        if is_outermost:
            self.outermost = self.end_of_outermost(tag)
        # Kept text is still in the language that the tag declares.
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

    def is_outermost(self, tag: Tag) -> bool:
        """Whether no other element contains the element of a tag, in a fragment of a page."""
        if self.has_root or tag.name in INLINE:
            return False
        return tag.begin >= self.outermost

    def end_of_outermost(self, tag: Tag) -> int:
        """The end of an outermost element."""
        if tag.partner:
            return self.tags[tag.partner].end
        # Everything else is inside of <body>, whose closing tag is optional.
        return len(self.text) if tag.name == "body" else tag.end

    def is_without_words(self, index: int) -> bool:
        """Whether an element has signs, digits and items, but neither words nor blocks inside.

        The order of signs, as in a telephone number or path, is the same in all languages.
        """
        inside = self.tags[index + 1 : self.tags[index].partner]
        if any(tag.name and tag.name not in INLINE for tag in inside):
            return False
        text = self.text_of(index)
        items = [Part(begin, end) for begin, end in Finder([USUAL]).stretches(text)]
        without_items = Spliced(text, items).render(())
        return bool(text.strip()) and not has_letters(without_items)


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def value_part(text: str, begin: int, end: int) -> Sentence:
    """The sentence in an attribute, given the span of its value, perhaps with quotes."""
    # In HTML, the quotes around a value are optional.
    if text[begin] not in "\"'":
        value = text[begin:end]
        return Sentence(begin, [MarkupToken("text", value, unescape(value))], quoted)
    quote = text[begin]
    begin += 1
    # At the end of a file, the second quote may be missing.
    if end > begin and text[end - 1] == quote:
        end -= 1
    value = text[begin:end]
    return Sentence(begin, [MarkupToken("text", value, unescape(value))], escape)


def quoted(text: str) -> str:
    """The value of an attribute, which may contain blanks now."""
    return f'"{escape(text)}"'


class Html(MarkedUp):
    """A page or a fragment of one, which declares the target language and its direction."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.declarations = Declarations(source, target) if target else None
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> list[Part]:
        page = Page(text, 0, self.declarations)
        self.left = page.left
        self.notice = self.notice_with(readings=0)
        # A page without text to translate stays in the language that it declares.
        return [page] if page.lines else []

    def notice_with(self, readings: int) -> str:
        """A notice of the texts left untranslated and the number of readings left out."""
        counts = [(f"{what} left untranslated", number) for what, number in self.left.items()]
        return notice_of(*counts, (READINGS_LEFT_OUT, readings))

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        # Only the written page shows which readings are left out: sentences that stay keep theirs.
        written = content.removeprefix(self.mark).decode(self.encoding)
        self.notice = self.notice_with(lost_readings(self.text.text, written))
        return content
