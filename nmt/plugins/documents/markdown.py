"""Markdown (CommonMark, GitHub tables and others) and MDX: markdown-it finds the blocks."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from markdown_it.token import Token

from nmt.config import setting
from nmt.plugins.documents import html
from nmt.plugins.documents.declarations import Declarations
from nmt.plugins.documents.dialects import MARKDOWN, MDX, Dialect
from nmt.plugins.documents.document import Part, Text, notice_of, with_names
from nmt.plugins.documents.fragments import LinkedPage
from nmt.plugins.documents.front_matter import FrontMatter
from nmt.plugins.documents.inlines import Inline
from nmt.plugins.documents.myst_rules import OF_CODE
from nmt.plugins.documents.nested_pages import NestedPage, nested_page
from nmt.plugins.documents.nodes import MarkupToken, find_pairs
from nmt.plugins.documents.parameters import count_readable
from nmt.plugins.documents.parsed_pages import parse_page
from nmt.plugins.documents.properties_of_tags import count_in_expressions, properties_of
from nmt.plugins.documents.readings import READINGS_LEFT_OUT, lost_readings
from nmt.plugins.documents.scanner import Scanner
from nmt.plugins.documents.tags import Tag, readable_attributes, tags_of, value_of
from nmt.text import BLOCKS
from nmt.translation import Translated

TITLE_OF_ALERT = re.compile(r"\[!\w[\w|-]{0,40}\][+-]?[ \t]+[^\s][^\n]*\n[ \t>]*")
BLOCK_TAG = re.compile(rf"</?(?:{'|'.join(BLOCKS)})\b", re.IGNORECASE)
REFUSED = "blocks of text left untranslated because their markup would be lost"
LINKS = "links to headings of other files, whose anchors may change"
# What stays untranslated; the notice adds "left untranslated".
BLOCKS_OF_TEXT = "blocks of text"
HTML_BLOCKS = "HTML blocks"
TITLES = "titles of links and images"
ATTRIBUTES = "attributes of HTML in text"
PARAMETERS = "parameters of tags"
DIRECTIVES = "directives with text left untranslated"
READABLE_OPTION = re.compile(r"^[ \t]*:(?:caption|alt|title):[ \t]+.*[^\W\d_]", re.MULTILINE)


USUAL = "usual"
USUAL_KEYS = [
    "title",
    "subtitle",
    "description",
    "summary",
    "excerpt",
    "tagline",
    "image-alt",
    "linkTitle",
    "shortTitle",
    "sidebar_label",
    "sidebar.label",
    "pagination_label",
    "hero.title",
    "hero.text",
    "hero.tagline",
    "hero.image.alt",
    "hero.actions.text",
    "features.title",
    "features.details",
    "banner.content",
    "prev.label",
    "next.label",
]
"""Keys of front matter whose values readers see, in Hugo, Jekyll, Docusaurus, VitePress and
Starlight."""


@dataclass
class MarkdownConfig:
    """Options of Markdown and MDX."""

    front_matter: list[str] = setting([USUAL])
    """Keys of front matter to translate, such as [title,sidebar.label]; usual: titles, descriptions
    and similar keys."""


class Markdown(Text):
    """A Markdown file with front matter in YAML, TOML or JSON."""

    dialect = MARKDOWN
    has_front_matter = True
    follows_headings = True
    """Whether links to headings lead to the translated headings."""

    def __init__(
        self,
        content: bytes,
        source: str = "",
        target: str = "",
        options: MarkdownConfig | None = None,
    ) -> None:
        self.source = source
        self.keys = list[str]()
        for key in (options or MarkdownConfig()).front_matter:
            self.keys += USUAL_KEYS if key == USUAL else [key]
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> list[Part]:
        self.front = FrontMatter(text if self.has_front_matter else "", self.keys)
        declarations = Declarations(self.source, target) if target else None
        self.blocks = Blocks(text, self.front.end, declarations, self.dialect)
        self.linked = LinkedPage(self.blocks.page) if self.follows_headings else None
        self.notice = self.notice_with(refused=0, readings=0)
        return [self.front, *self.blocks.parts]

    def notice_with(self, refused: int, readings: int, is_followed: bool = True) -> str:
        """`is_followed` tells whether the links within the page lead to its translated headings."""
        counts = [
            (f"{what} left untranslated", number) for what, number in self.blocks.left.items()
        ]
        counts.append((REFUSED, refused))
        counts.append((READINGS_LEFT_OUT, readings))
        if self.linked:
            within = self.linked.undecided() if is_followed else len(self.linked.links)
            counts.append((LINKS, self.linked.elsewhere + within))
        self.counts = counts
        directives = with_names(DIRECTIVES, self.blocks.directives)
        return "; ".join(filter(None, (self.front.notice(), notice_of(*counts, directives))))

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        inlines = [part for part in self.blocks.parts if isinstance(part, Inline)]
        refused = sum(inline.is_refused for inline in inlines)
        written = content.removeprefix(self.mark).decode(self.encoding)
        readings = lost_readings(self.text.text, written)
        followed = self.with_new_anchors(written)
        self.notice = self.notice_with(refused, readings, followed is not None)
        return content if followed in (None, written) else self.mark + self.encoded(followed)

    def with_new_anchors(self, written: str) -> str | None:
        """The translation with links to its headings; None if they cannot be found."""
        # Without links, the translation need not be parsed.
        if not self.linked or not self.linked.links or written == self.text.text:
            return written
        end = FrontMatter(written if self.has_front_matter else "", ()).end
        page = parse_page(written, end, self.dialect)
        return LinkedPage(page).with_links_of(self.linked)


class Mdx(Markdown):
    """A file of MDX, which is Markdown with JavaScript and tags of components."""

    dialect = MDX


class Blocks:
    """The parts of a Markdown file, and the number of texts left untranslated, by their kind."""

    def __init__(
        self,
        text: str,
        begin: int,
        declarations: Declarations | None,
        dialect: Dialect,
    ) -> None:
        """`begin` is the end of the front matter; `declarations` are those of blocks of HTML."""
        self.text = text
        self.dialect = dialect
        self.declarations = declarations
        self.parts = list[Part]()
        self.left = Counter[str]()
        self.directives = Counter[str]()
        """The names of directives with text that stay."""
        self.page = parse_page(text, begin, dialect)
        self.begins = self.page.begins
        self.at = begin  # the end of the last block
        self.references = self.page.env
        self.labels = self.page.references
        self.add_blocks(self.page.tokens)
        # Definitions of references are not blocks of text, and their titles are not translated.
        titles = [reference["title"] for reference in self.labels.values()]
        for token in self.page.tokens:
            self.count_attributes(token.children or (), titles)
        self.left[TITLES] += sum(map(has_letters, titles))

    def add_blocks(self, tokens: Sequence[Token]) -> None:
        type_before = ""
        for token in tokens:
            if token.type == "html_block":
                self.add_html(token)
            elif token.type == "jsx_block":
                self.add_tags(token)
            elif token.type == "too_deep":
                self.left[BLOCKS_OF_TEXT] += has_letters(token.content)
            elif token.type == "copied_block":
                self.left[PARAMETERS] += count_readable(token.content)
            elif token.type == "fence" and token.info.startswith("{"):
                self.count_directive(token)
            elif token.type == "inline" and token.content:
                self.add_inline(token, type_before)
            type_before = token.type

    def add_html(self, token: Token) -> None:
        first, after = token.map or (0, 0)
        begin = self.page.begin_of(first)
        self.at = self.page.begin_of(after)
        raw = self.text[begin : self.at]
        page: html.Page | NestedPage | None
        # In a list or quotation, the lines of HTML have prefixes, which are not part of it.
        if token.level:
            page = nested_page(raw, begin, token.content, self.declarations)
        else:
            page = html.Page(raw, begin, self.declarations)
        if page:
            self.parts.append(page)
            self.left.update(page.left)
        else:
            self.left[HTML_BLOCKS] += 1

    def add_tags(self, token: Token) -> None:
        """Add the properties of components that readers see."""
        first, after = token.map or (0, 0)
        begin = self.page.begin_of(first)
        self.at = self.page.begin_of(after)
        properties = properties_of(self.text, begin, self.at)
        self.parts += properties
        rest = self.text[begin : self.at]
        for sentence in properties:
            rest = rest.replace(sentence.raw, "", 1)
        self.left[PARAMETERS] += count_readable(rest) + count_in_expressions(rest)

    def count_directive(self, token: Token) -> None:
        """Count a directive of MyST that stays although readers may see its text."""
        name = token.info.strip("{").partition("}")[0].lower()
        if name not in OF_CODE and has_letters(token.content):
            self.directives[name] += 1
        self.left[PARAMETERS] += len(READABLE_OPTION.findall(token.content))

    def add_inline(self, token: Token, opening: str) -> None:
        """Add the sentences of a block of text, which follows a token of the type `opening`."""
        span = self.span_of(token, is_cell=opening in ("th_open", "td_open"))
        if not span:
            self.left[BLOCKS_OF_TEXT] += has_letters(token.content)
            return
        begin, self.at = span
        # GitHub and Obsidian show the first line of an alert as its title, not as part of the text.
        in_paragraph = opening == "paragraph_open"
        title = TITLE_OF_ALERT.match(self.text, begin, self.at) if in_paragraph else None
        if title:
            self.add_sentences(begin, title.end(), in_paragraph)
            begin = title.end()
        self.add_sentences(begin, self.at, in_paragraph)

    def add_sentences(self, begin: int, end: int, in_paragraph: bool) -> None:
        """Add the sentences between two offsets of a block of text."""
        # Only the beginning of a paragraph could look like another block.
        is_first = in_paragraph
        for span in self.spans_between_tags(begin, end):
            inline = Inline(self.text, *span, self.references, is_first, self.dialect)
            self.left[PARAMETERS] += inline.parameters_left
            if inline.lines:
                self.parts.append(inline)
            self.parts += inline.outside
            is_first = False

    def span_of(self, token: Token, is_cell: bool) -> tuple[int, int] | None:
        """The offsets of a block of text; None if its text looks otherwise in the file.

        The parser only tells the block's lines and its text, in which prefixes such as "> " are
        missing.
        """
        first = token.map[0] if token.map else 0
        # markdown-it removes the backslash before a bar in a cell.
        content = token.content.replace("|", r"\|") if is_cell else token.content
        # Without the prefixes and the indentation of lines, `content` as a whole may not be in the
        # file. Its first and last line are.
        lines = content.rstrip().split("\n")
        last = first + len(lines) - 1
        # Several cells of a table are on the same line, so search after the last block.
        # A title knows its place.
        at = max(self.at, self.begins[first] + token.meta.get("column", 0))
        begin = self.text.find(lines[0].rstrip(), at, self.begins[first + 1])
        if begin < 0:
            return None
        at = max(begin, self.begins[last])
        last_begin = self.text.find(lines[-1], at, self.begins[last + 1])
        if last_begin < 0:
            return None
        return begin, last_begin + len(lines[-1])

    def spans_between_tags(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The spans between tags that separate sentences: for One<li>Two, those of One and Two.

        HTML tags of blocks may be inside of text, such as a list in the cell of a table.
        """
        # Usual, and worth the speed: a scan of the text can be spared.
        if not BLOCK_TAG.search(self.text, begin, end):
            yield begin, end
            return
        tokens = list[MarkupToken]()
        for token in Scanner(self.text[begin:end], self.labels, self.dialect).tokens:
            # As single tags, the tags of blocks do not count as elements around one another.
            is_block = token.name in BLOCKS and bool(token.raw)
            tokens.append(replace(token, kind="point") if is_block else token)
        partners = find_pairs(tokens)
        depth = 0  # the number of elements around a token
        first = begin
        at = begin
        for index, token in enumerate(tokens):
            # A tag inside of emphasis or a link cannot separate sentences.
            if token.kind == "point" and token.name in BLOCKS and depth == 0:
                yield first, at
                first = at + len(token.raw)
            if index in partners:
                depth += 1 if token.kind == "open" else -1
            at += len(token.raw)
        yield first, end

    def count_attributes(self, tokens: Iterable[Token], titles: Sequence[str]) -> None:
        """Count titles and attributes that stay untranslated; `titles` are those of references."""
        in_image = False
        for token in tokens:
            title = str(token.attrs.get("title", ""))
            # A link with a reference has its title, which is counted once.
            self.left[TITLES] += title not in titles and has_letters(title)
            if token.type == "html_inline":
                # The parser has a token for each tag, so text inside <svg> is a token between two
                # others.
                for tag in tags_of(token.content):
                    self.count_attributes_of(tag, token.content)
                    if tag.name == "svg":
                        in_image = not tag.closes
            elif in_image:  # only text elements have content
                self.left[html.TEXTS_IN_IMAGES] += has_letters(token.content)

    def count_attributes_of(self, tag: Tag, text: str) -> None:
        """Count the attributes of a tag of this text that stay untranslated."""
        for name in readable_attributes(tag, text):
            value = value_of(tag, name, text)
            self.left[ATTRIBUTES] += has_letters(value)


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))
