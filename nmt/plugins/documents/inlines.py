"""Blocks of text in Markdown: a translation keeps the markup, which markdown-it checks."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from nmt.plugins.documents import html
from nmt.plugins.documents.commonmark import PARSER
from nmt.plugins.documents.document import Part, Spliced, Translated
from nmt.plugins.documents.markup import Sentence, Token, without_optional
from nmt.plugins.documents.neighbors import keep_apart
from nmt.plugins.documents.scanner import LINE_PREFIX, Scanner
from nmt.plugins.documents.scripts import join_scripts

ACTIVE = r"[\\`|]|\*(?!\s)|(?<!\s)\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|~(?=~)|(?<=~)~"
escape = partial(re.compile(rf"{ACTIVE}|[\[\]]").sub, r"\\\g<0>")
# Leaves most brackets as they are, because the document rarely defines the label in them.
escape_few = partial(
    re.compile(rf"{ACTIVE}|(?<=\^)\[|\[(?=[\[\]^!@])|\](?=[\[(:])").sub, r"\\\g<0>"
)
TEXTS = frozenset(("text", "text_special", "softbreak", "hardbreak"))
MAY_BE_LEFT_OUT = re.compile(r"(?:em|strong|s)_|html_inline \{\} </?(?i:ruby|rb|rt|rp|rtc)\b")
"""Markup, as `markup_of` describes it, that a translation may lack: emphasis and readings."""
# Comments, and elements without content.
FIRST_TAGS = re.compile(
    r"(?:<!--(?:-?>|.*?-->)\s*|<[!?][^>]*>\s*|<(?:wbr|img|br|input)\b[^<>]*>\s*)+",
    re.DOTALL | re.IGNORECASE,
)
MAY_BE_OTHER = re.compile(r"(?:\A|\n)[ \t]*[\[<]")  # a block that begins so may be no paragraph
BEGINS_BLOCK = re.compile(r"((?:\A|\n[ \t>]*+)(?:\d{1,9}(?=[.)]\s)|(?=[#>+=-]|\*\s|~~~)))")


class Image(Part):
    """An image, whose line is the text that stands for it."""

    def __init__(
        self, text: str, span: tuple[int, int], content: tuple[int, int], references: dict[str, Any]
    ) -> None:
        inside = text[slice(*content)]
        self.sentence = Sentence(
            content[0], Scanner(inside, references.get("references", {})).tokens, escape
        )
        self.raw, self.references = text[slice(*span)], references
        closing = text[content[1] : span[1]]
        # The text may also be the label of the image's address.
        self.label = f"][{' '.join(inside.split())}]" if closing in ("]", "][]") else closing
        super().__init__(*span, self.sentence.lines)

    def render(self, translations: Sequence[Translated]) -> str:
        """The image with its text translated, or unchanged if it would become another image."""
        text = self.sentence.render(translations)
        written = f"![{text}{self.label}" if text != self.sentence.raw else self.raw
        return written if self.addresses(written) == self.addresses(self.raw) else self.raw

    def addresses(self, text: str) -> list[str]:
        """The types of markup in a text, and where they lead."""
        tokens = PARSER.parseInline(text, self.references)[0].children or []
        return [f"{token.type} {token.attrs}" for token in tokens]


def signs_in(text: str) -> int:
    return sum(map(text.count, "*_~"))


class Inline(Sentence):
    """The content of a paragraph, heading or table cell; its translation keeps the markup.

    Its lines are the sentence and the texts of the images inside it.
    """

    def __init__(
        self, text: str, begin: int, end: int, references: dict[str, Any], in_paragraph: bool
    ) -> None:
        self.labels = references.get("references", {})
        scanner = Scanner(text[begin:end], self.labels)
        super().__init__(begin, keep_apart(join_scripts(scanner.tokens)), escape)
        self.references, self.in_paragraph = references, in_paragraph
        self.before, self.after = text[begin : self.begin], text[self.end : end]
        self.literal = signs_in(scanner.literal)
        self.urls = Counter(scanner.urls)
        self.parameters_left = scanner.parameters_left
        self.is_refused = False  # True if no translation keeps the markup
        # Text with brackets keeps them as they are, if possible.
        self.escapes = [escape_few, escape] if scanner.has_brackets else [escape]
        spans = [[(begin + first, begin + last) for first, last in pair] for pair in scanner.images]
        images = [
            image
            for span, content in spans
            if (image := Image(text, span, content, references)).lines
        ]
        self.images, self.outside = list[Image](), list[Image]()  # of the sentence
        for image in images:
            is_inside = self.lines and self.begin <= image.begin < self.end
            (self.images if is_inside else self.outside).append(image)
        self.lines += (line for image in self.images for line in image.lines)

    def render(self, translations: Sequence[Translated]) -> str:
        """The translation, without emphasis if it would otherwise lose markup; the source if even that loses markup."""
        images = list[Part]()
        for image, translation in zip(self.images, translations[1:], strict=True):
            images.append(Part(image.begin, image.end, otherwise=image.render([translation])))
        for nodes, write in product((self.nodes, list(without_optional(self.nodes))), self.escapes):
            written = self.block(translations, nodes, write)
            self.is_refused = written != self.raw
            if not self.is_refused:
                break
            if self.keeps(written, self.with_copies(escape(translations[0].text))):
                self.is_refused = False
                new = {
                    image.raw: part.otherwise
                    for image, part in zip(self.images, images, strict=True)
                }
                return self.block(translations, [*with_images(nodes, new)], write)
        return Spliced(self.raw, images, self.begin).render(())

    def block(
        self,
        translations: Sequence[Translated],
        nodes: Sequence[Token],
        write: Callable[[str], str],
    ) -> str:
        """The translation with these nodes, whose beginning does not look like a list, heading or quotation."""
        written = self.written(translations[:1], nodes, write)
        if self.urls and written != self.raw:
            written = with_blanks_around(self.urls, written)
        if self.in_paragraph and written != self.raw:
            written = BEGINS_BLOCK.sub(r"\1\\", self.without_first_tags(written))
        return written

    def without_first_tags(self, written: str) -> str:
        """The translation with its first tags at its end if they would begin an HTML block."""
        first = FIRST_TAGS.match(written)
        if not first or self.is_paragraph(written):
            return written
        return written[first.end() :] + first[0].rstrip()

    def markup_of(self, text: str) -> tuple[Counter[str], int]:
        """Parse the block with `text` as its content; return its markup and number of literal emphasis characters."""
        tokens = (
            PARSER.parseInline(self.before + text + self.after, self.references)[0].children or []
        )
        markup = Counter(
            f"{token.type} {token.attrs} {token.content}"
            for token in tokens
            if token.type not in TEXTS
        )
        return markup, signs_in("".join(token.content for token in tokens if token.type == "text"))

    def keeps(self, written: str, plain: str) -> bool:
        """True if `written` has the source's markup, perhaps without emphasis, and adds no emphasis characters."""
        (before, _), (after, signs), (_, others) = map(self.markup_of, (self.raw, written, plain))
        left_out = all(MAY_BE_LEFT_OUT.match(markup) for markup in before - after)
        closed, closed_before = map(closed_elements, (written, self.raw))
        whole = self.before + written + self.after
        few_signs = signs <= others + self.literal
        is_same = after <= before and left_out and few_signs and closed >= closed_before
        if self.urls:  # what follows an address may have become part of it
            is_same = is_same and Counter(Scanner(whole, self.labels).urls) == self.urls
        return is_same and (not self.in_paragraph or self.is_paragraph(written))

    def is_paragraph(self, written: str) -> bool:
        """True if the block with this content is a paragraph, and no HTML block or definition."""
        whole = LINE_PREFIX.sub("\n", self.before + written + self.after)
        if not MAY_BE_OTHER.search(whole):
            return True
        return [token.type for token in PARSER.parse(whole)][1:] == ["inline", "paragraph_close"]


def closed_elements(text: str) -> int:
    """The number of elements of HTML with a closing tag, without those of readings."""
    return sum(tag.partner > 0 and tag.name not in html.RUBY for tag in html.tags_of(text))


def with_blanks_around(urls: Collection[str], text: str) -> str:
    """A text in which no letters adjoin the bare addresses: they would become part of them."""

    def with_blanks_outside(url: re.Match[str]) -> str:
        before = " " if text[url.start() - 1 : url.start()].isalnum() else ""
        after = " " if re.match(r"-?[^\W_]", text[url.end() : url.end() + 2]) else ""
        return before + url[0] + after

    # The longest first, because an address may be the beginning of a longer address.
    alternatives = sorted(urls, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, alternatives)), with_blanks_outside, text)


def with_images(nodes: Iterable[Token], images: dict[str, str]) -> Iterator[Token]:
    """Replace images in nodes."""
    # The longest first, because ![a] also begins ![a][b].
    alternatives = sorted(images, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, alternatives)) or r"(?!)")
    for node in nodes:
        raw = node.raw
        if node.kind == "point":
            raw = pattern.sub(lambda image: images[image[0]], raw)
        yield replace(node, raw=raw, children=[*with_images(node.children, images)])
