"""Blocks of text in Markdown: a translation keeps the markup, which markdown-it checks."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from markdown_it.token import Token

from nmt.plugins.documents.dialects import Dialect
from nmt.plugins.documents.document import Part, Spliced
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.neighbors import keep_apart
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.readings import RUBY
from nmt.plugins.documents.scanner import Scanner
from nmt.plugins.documents.scripts import join_scripts
from nmt.plugins.documents.syntax import CODE, LINE_PREFIX, MAY_BE_MARKUP, SOFT_BREAK
from nmt.plugins.documents.tags import tags_of
from nmt.plugins.documents.trees import without_optional
from nmt.translation import Translated

TEXTS = frozenset(["text", "text_special", "softbreak", "hardbreak"])
"""Types of tokens of markdown-it that are not markup."""
EMPHASIS = "*_~"
MAY_BE_LEFT_OUT = re.compile(r"(?:em|strong|s)_|html_inline \{\} </?(?i:ruby|rb|rt|rp|rtc)\b")
"""Markup that a translation may lack, as `Inline.markup_of` describes it: emphasis and readings."""
FIRST_TAGS = re.compile(
    r"(?:<!--(?:-?>|.*?-->)\s*|<[!?][^>]*>\s*|<(?:wbr|img|br|input)\b[^<>]*>\s*)+",
    re.DOTALL | re.IGNORECASE,
)
"""Comments, and elements without content, at the beginning of a block."""
BEGINS_BLOCK = re.compile(
    r"((?:\A|\n[ \t>]*+)(?:\d{1,9}(?=[.)]\s)|(?=[#>-]|\+(?!\+\w)|=+[ \t]*(?:\n|\Z)|\*\s|~~~)))"
)
"""The beginning of a list, heading or similar block, up to the sign to escape."""
CODE_IN_LINES = re.compile(CODE, re.DOTALL)
LINE_BREAK = re.compile(SOFT_BREAK)
CONTINUES_URL = re.compile(r"-?[^\W_]")
"""Text that would become part of the bare address before it."""


class Image(Part):
    """An image, whose line is the text that stands for it."""

    def __init__(
        self,
        text: str,
        whole: tuple[int, int],
        content: tuple[int, int],
        references: dict[str, Any],
        dialect: Dialect,
    ) -> None:
        """`whole` and `content` are the spans of the image and of its text."""
        begin, end = whole
        first, last = content
        inside = text[first:last]
        self.dialect = dialect
        tokens = Scanner(inside, references.get("references", {}), dialect).tokens
        self.sentence = Sentence(first, tokens, dialect.escape)
        super().__init__(begin, end, self.sentence.lines)
        self.raw = text[begin:end]
        self.references = references
        self.closing = text[last:end]
        if self.closing in ("]", "][]"):
            # The text is also the label of the image's address, which a translation needs, too.
            self.closing = f"][{' '.join(inside.split())}]"

    def render(self, translations: Sequence[Translated]) -> str:
        """The image with its text translated, or unchanged if it would become another image."""
        text = self.sentence.render(translations)
        if text == self.sentence.raw:
            return self.raw
        written = f"![{text}{self.closing}"
        # Brackets in the translation could end the text of the image, or make a link of it.
        return written if self.addresses(written) == self.addresses(self.raw) else self.raw

    def addresses(self, text: str) -> list[str]:
        """The types of markup in a text, and where they lead."""
        tokens = parse_inline(text, self.references, self.dialect)
        return [f"{token.type} {token.attrs}" for token in tokens]


class Markup(NamedTuple):
    """The markup of a text in Markdown."""

    tags: Counter[str]
    """Descriptions of its markup."""

    signs: int
    """The number of characters for emphasis in the text."""


class Inline(Sentence):
    """The content of a paragraph, heading or table cell; its translation keeps the markup.

    Its lines are the sentence and the texts of the images inside it.
    """

    def __init__(
        self,
        text: str,
        begin: int,
        end: int,
        references: dict[str, Any],
        in_paragraph: bool,
        dialect: Dialect,
    ) -> None:
        """`references` are those that markdown-it found in the document."""
        self.references = references
        self.labels = references.get("references", {})
        self.in_paragraph = in_paragraph
        self.dialect = dialect
        scanner = Scanner(text[begin:end], self.labels, dialect)
        super().__init__(begin, keep_apart(join_scripts(scanner.tokens)), dialect.escape)
        # The parts of the block outside of the sentence. Whether a sign is emphasis also depends on
        # the characters there.
        self.before = text[begin : self.begin]
        self.after = text[self.end : end]
        self.literal = signs_in(scanner.literal)
        self.urls = Counter(scanner.urls)
        self.parameters_left = scanner.parameters_left
        self.is_refused = False  # True if no translation keeps the markup
        # Text with brackets keeps them as they are, if possible.
        self.escapes: list[Callable[[str], str]] = [dialect.escape]
        if scanner.has_brackets:
            self.escapes.insert(0, dialect.escape_few)
        # Where a page escapes dollars, bare ones could begin a formula.
        if r"\$" in text[begin:end]:
            self.escapes = [with_escaped_dollars(write) for write in self.escapes]
        self.images = list[Image]()  # of the sentence
        self.outside = list[Image]()  # beside it
        for whole, content in scanner.images:
            image = Image(text, moved(whole, begin), moved(content, begin), references, dialect)
            if not image.lines:
                continue
            is_inside = bool(self.lines) and self.begin <= image.begin < self.end
            if is_inside:
                self.images.append(image)
            else:
                self.outside.append(image)
        for image in self.images:
            self.lines += image.lines

    def render(self, translations: Sequence[Translated]) -> str:
        """The translation, without emphasis if it would otherwise lose markup.

        It is the source if even that loses markup. Images are translated in any case.
        """
        images = dict[str, str]()  # raw -> translated
        parts = list[Part]()
        # The first line is that of the sentence.
        for image, translation in zip(self.images, translations[1:], strict=True):
            written = image.render([translation])
            images[image.raw] = written
            parts.append(Part(image.begin, image.end, otherwise=written))
        source = Spliced(self.raw, parts, self.begin)
        self.is_refused = False
        # First with emphasis and few escapes, which keeps most, and last with neither.
        for nodes in (self.nodes, list(without_optional(self.nodes))):
            for write in self.escapes:
                written = self.block(translations, nodes, write)
                # The translation is the same as the source, or there is none.
                if written == self.raw:
                    return source.render(())
                if self.keeps(written, self.with_copies(self.dialect.escape(translations[0].text))):
                    # Images come last: the comparison above is with the source, whose images are
                    # not translated.
                    return self.block(translations, [*with_images(nodes, images)], write)
        self.is_refused = True
        return source.render(())

    def block(
        self,
        translations: Sequence[Translated],
        nodes: Sequence[MarkupToken],
        write: Callable[[str], str],
    ) -> str:
        """The translation with these nodes.

        It does not begin like a list, heading or quotation.
        """
        written = self.written(translations[:1], nodes, write)
        # Letters beside a bare address would become part of it.
        if self.urls and written != self.raw:
            written = with_blanks_around(self.urls, written)
        if self.in_paragraph and written != self.raw:
            written = CODE_IN_LINES.sub(without_line_breaks, written)
            written = self.without_first_tags(written)
            written = BEGINS_BLOCK.sub(r"\1\\", written)
        return written

    def without_first_tags(self, written: str) -> str:
        """The translation with its first tags at its end if they would begin an HTML block."""
        first = FIRST_TAGS.match(written)
        if not first or self.is_paragraph(written):
            return written
        return written[first.end() :] + first[0].rstrip()

    def keeps(self, written: str, plain: str) -> bool:
        """True if `written` has the source's markup, perhaps without emphasis.

        It must not have more signs that could be emphasis, either. `plain` is the translation
        without the markup.
        """
        before = self.markup_of(self.raw)
        after = self.markup_of(written)
        # Nothing new may appear, and only emphasis and readings may be missing.
        if not after.tags <= before.tags:
            return False
        left_out = before.tags - after.tags
        if not all(map(MAY_BE_LEFT_OUT.match, left_out)):
            return False
        # Signs that form no emphasis appear to readers, unless the translation or the source has
        # them.
        # The plain translation is only parsed if its signs matter.
        most = self.literal
        if after.signs > most and after.signs > most + self.markup_of(plain).signs:
            return False
        # markdown-it takes each tag of HTML alone, and does not notice a closing tag before its
        # opening one.
        if closed_elements(written) < closed_elements(self.raw):
            return False
        if self.urls and not self.keeps_urls(written):
            return False
        return not self.in_paragraph or self.is_paragraph(written)

    def keeps_urls(self, written: str) -> bool:
        """True if the bare addresses are the same: what follows one may have become part of it."""
        scanner = Scanner(self.before + written + self.after, self.labels, self.dialect)
        return Counter(scanner.urls) == self.urls

    def markup_of(self, text: str) -> Markup:
        """The markup of the block with `text` as its content."""
        tags = Counter[str]()
        signs = 0
        if not MAY_BE_MARKUP.search(self.before + text + self.after):
            return Markup(tags, signs)
        for token in self.tokens_of(text):
            if token.type not in TEXTS:
                # With attributes and content, so that addresses, code and HTML are compared, too.
                tags[f"{token.type} {token.attrs} {token.content}"] += 1
            elif token.type == "text":
                signs += signs_in(token.content)
        return Markup(tags, signs)

    def tokens_of(self, text: str) -> list[Token]:
        return parse_inline(self.before + text + self.after, self.references, self.dialect)

    def is_paragraph(self, written: str) -> bool:
        """True if the block with this content is a paragraph, and no HTML block or definition."""
        whole = LINE_PREFIX.sub("\n", self.before + written + self.after)
        if not self.dialect.may_be_other.search(whole):  # usual, and worth the speed
            return True
        types = [token.type for token in self.dialect.parser.parse(whole)]
        return types[1:] == ["inline", "paragraph_close"]


def without_line_breaks(code: re.Match[str]) -> str:
    """Code on one line if one of its lines looks like another block; a break in code is a blank."""
    return LINE_BREAK.sub(" ", code[0]) if BEGINS_BLOCK.search(code[0]) else code[0]


def with_escaped_dollars(write: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: write(text).replace("$", r"\$")


def moved(span: tuple[int, int], by: int) -> tuple[int, int]:
    begin, end = span
    return begin + by, end + by


def parse_inline(text: str, references: dict[str, Any], dialect: Dialect) -> list[Token]:
    """The tokens of a text in Markdown, without blocks."""
    [inline] = dialect.parser.parseInline(text, references)
    return inline.children or []


def signs_in(text: str) -> int:
    """The number of characters of a text that could be emphasis."""
    return sum(map(text.count, EMPHASIS))


def closed_elements(text: str) -> int:
    """The number of elements of HTML with a closing tag, without those of readings."""
    return sum(tag.partner > 0 and tag.name not in RUBY for tag in tags_of(text))


def with_blanks_around(urls: Collection[str], text: str) -> str:
    """A text in which no letters adjoin the bare addresses: they would become part of them."""

    def with_blanks_outside(url: re.Match[str]) -> str:
        preceding = text[url.start() - 1 : url.start()]
        following = text[url.end() : url.end() + 2]
        before = " " if preceding.isalnum() else ""
        after = " " if CONTINUES_URL.match(following) else ""
        return before + url[0] + after

    return any_of(urls).sub(with_blanks_outside, text)


def with_images(nodes: Iterable[MarkupToken], images: Mapping[str, str]) -> Iterator[MarkupToken]:
    """Replace images in nodes."""
    pattern = any_of(images)
    for node in nodes:
        raw = node.raw
        # Images are single tags; other nodes contain no image of their own.
        if node.kind == "point":
            raw = pattern.sub(lambda image: images[image[0]], raw)
        yield replace(node, raw=raw, children=[*with_images(node.children, images)])


def any_of(texts: Collection[str]) -> re.Pattern[str]:
    """A pattern for these texts, which matches nothing if there are none."""
    if not texts:
        return re.compile(r"(?!)")
    # The longest first, because an address may begin like a longer one, and ![a] like ![a][b].
    alternatives = sorted(texts, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, alternatives)))
