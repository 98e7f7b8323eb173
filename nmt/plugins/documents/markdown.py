"""Markdown (CommonMark and GitHub tables): markdown-it finds the blocks and checks the markup of translations."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from html import unescape
from itertools import pairwise, product
from typing import Any, NamedTuple

from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token as Parsed

from nmt.plugins.documents import html
from nmt.plugins.documents.commonmark import PARSER, NestedPage, nested_page
from nmt.plugins.documents.declarations import Declarations
from nmt.plugins.documents.document import Part, Spliced, Text, Translated, notice_of
from nmt.plugins.documents.emphasis import Run, settle_emphasis
from nmt.plugins.documents.extensions import ADDRESS, ATTRIBUTES, TAG
from nmt.plugins.documents.formulas import FORMULA, FORMULA_IN_BRACKETS
from nmt.plugins.documents.markup import Kind, Sentence, Token, find_pairs, without_optional
from nmt.plugins.documents.neighbors import keep_apart
from nmt.plugins.documents.scripts import NAMES as NAMES_OF_SCRIPTS, join_scripts
from nmt.text import BLOCKS, INLINE, SEPARATORS

# YAML or TOML. After empty lines, --- is front matter only if a key follows; otherwise, it is a line across the page.
FRONT_MATTER = re.compile(
    r"(?:(?:---[ \t]*\r?\n|(?:[ \t]*\r?\n)+---[ \t]*\r?\n(?=(?:[ \t]*(?:#[^\n]*)?\r?\n)*[\w\"'-]+[ \t]*:(?:\s|\Z)))"
    r".*?\n(?:---|\.\.\.)|(?:[ \t]*\r?\n)*\+\+\+[ \t]*\r?\n.*?\n\+\+\+)[ \t]*(?:\r?\n|\Z)",
    re.DOTALL,
)
SHOWN_KEY = re.compile(
    r"^[\"']?((?i:(?:link|short|sub|nav|sidebar)_?)?(?i:title|label)|(?i:description|summary|excerpt|abstract|tagline))[\"']?"
    r"[ \t]*[:=][ \t]*[^\s#]",
    re.MULTILINE,
)  # of front matter, with text that readers of the page see
LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){1,999})\]", re.DOTALL)
LONGEST_LABEL, LONGEST_ADDRESS = 999, 4000  # characters; the first limit is CommonMark's
MAIL = r"[\w.!#$%&'*+/=?^`{|}~-]{1,200}@[a-zA-Z\d](?:[a-zA-Z\d.-]{0,200}[a-zA-Z\d])?"
# As GitHub links it, without brackets that it does not close.
BARE_URL = (
    r"(?<![^\W_])(?i:https?://|ftp://|(?<![/@.-])www\.)(?=\w)"
    "(?:[^\\s<>()\\[\\]`\u201c\u201d\u3001\u3002\uff08\uff09\uff0c]"
    r"|\([^\s<>()\[\]`]{0,500}\)){1,2000}"
)
AFTER_URL = "?!.,:;'\"\\"  # punctuation that ends a sentence
MARKUP = re.compile(
    rf"(?P<brackets>{FORMULA_IN_BRACKETS})|"
    r"(?P<hard>(?:[ ]{2,}|\\)\r?\n[ \t>]*)|(?P<soft>[ \t]*\r?\n[ \t>]*)|\\(?P<escaped>[!-/:-@\[-`{-~])|&#?\w{1,32};"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)"
    rf"|<(?P<auto>[a-zA-Z][\w.+-]{{1,31}}:[^\s<>]*|{MAIL})>|(?P<url>{BARE_URL})"
    rf"|(?P<tags>(?:{TAG.pattern})+|{ATTRIBUTES})|(?P<formula>{FORMULA})"
    # What CommonMark lacks: footnotes, task boxes, alerts and a table of contents; citations; pages of a wiki.
    r"|(?P<mark>\[\^[^\]\s]+\]:?|\A\[[ xX]\](?=\s)|\[!\w[\w|-]{0,40}\][+-]?|\[TOC\])"
    r"|(?P<citation>\[(?:(?:see|cf\.|e\.g\.,?) )?-?@\w[^\[\]\n]{0,300}\])(?!\()"
    r"|(?P<wiki>!?\[\[(?P<page>[^\[\]\n|\\]{1,300})(?P<bar>\\?\|(?P<shown>[^\[\]\n]{0,300}))?\]\](?!\())"
    r"|(?P<open>(?:!(?!\[\^[^\]\s]+\](?!\())|\^)?\[)|(?P<close>\])|(?P<emphasis>\*+|_+|~{2,})"
    rf"|(?P<tag>{html.MARKUP.pattern})",
    re.DOTALL,
)
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
ACTIVE = r"[\\`|]|\*(?!\s)|(?<!\s)\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|~(?=~)|(?<=~)~"
escape = partial(re.compile(rf"{ACTIVE}|[\[\]]").sub, r"\\\g<0>")
# Leaves most brackets as they are, because the document rarely defines the label in them.
escape_few = partial(re.compile(rf"{ACTIVE}|(?<=\^)\[|\[(?=[\[\]^!@])|\](?=[\[(:])").sub, r"\\\g<0>")
TEXTS = frozenset(("text", "text_special", "softbreak", "hardbreak"))
MAY_BE_LEFT_OUT = re.compile(r"(?:em|strong|s)_|html_inline \{\} </?(?i:ruby|rb|rt|rp|rtc)\b")
"""Markup, as `markup_of` describes it, that a translation may lack: emphasis and readings."""
TITLE = re.compile(r"\[!\w[\w|-]{0,40}\][+-]?[ \t]+[^\s][^\n]*\n[ \t>]*")
LINE_PREFIX = re.compile(r"\n[ \t>]+")
# Elements whose content is not text.
NO_TEXT = frozenset(["script", "style", "pre", "textarea"])
BLOCK_TAG = re.compile(rf"</?(?:{'|'.join(BLOCKS)})\b", re.IGNORECASE)
REFUSED = "blocks of text left untranslated because their markup would be lost"
TITLES = "titles of links and images"
ATTRIBUTES = "attributes of HTML in text"
# Comments, and elements without content.
FIRST_TAGS = re.compile(
    r"(?:<!--(?:-?>|.*?-->)\s*|<[!?][^>]*>\s*|<(?:wbr|img|br|input)\b[^<>]*>\s*)+",
    re.DOTALL | re.IGNORECASE,
)
MAY_BE_OTHER = re.compile(r"(?:\A|\n)[ \t]*[\[<]")  # a block that begins so may be no paragraph
BEGINS_BLOCK = re.compile(r"((?:\A|\n[ \t>]*+)(?:\d{1,9}(?=[.)]\s)|(?=[#>+=-]|\*\s|~~~)))")


class Bracket(NamedTuple):
    """An opening bracket: the index of its token, and where its content begins."""

    token: int
    content: int


class Image(Part):
    """An image, whose line is the text that stands for it."""

    def __init__(self, text: str, span: tuple[int, int], content: tuple[int, int], references: dict[str, Any]) -> None:
        inside = text[slice(*content)]
        self.sentence = Sentence(content[0], Scanner(inside, references.get("references", {})).tokens, escape)
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


def end_of_address(text: str, begin: int) -> int:
    """The end of the "(address 'title')" of a link that begins here; 0 if there is none."""
    text = text[begin : begin + LONGEST_ADDRESS]
    if not text.startswith("("):
        return 0
    template = ADDRESS.match(text)
    if template:
        return begin + template.end()

    def after_blanks(at: int) -> int:
        return len(text) - len(text[at:].lstrip())

    at = after_blanks(1)
    address = parseLinkDestination(text, at, len(text))
    if address.ok and PARSER.validateLink(PARSER.normalizeLink(address.str)):
        at = after_blanks(address.pos)
        title = parseLinkTitle(text, at, len(text))
        if title.ok and at > address.pos:
            at = after_blanks(title.pos)
    return begin + at + 1 if text[at : at + 1] == ")" else 0


class Scanner:
    """Splits a block into text and possible markup; `Inline.keeps` later checks that a translation keeps the markup.

    `labels` are the normalized labels that the document defines an address for.
    """

    def __init__(self, text: str, labels: Collection[str]) -> None:
        self.text, self.labels, self.tokens = text, labels, list[Token]()
        self.images = list[tuple[tuple[int, int], tuple[int, int]]]()  # the spans of images and of the texts in them
        self.literal = ""  # markup that CommonMark takes for text
        self.has_brackets = False  # in its text
        self.brackets, self.inactive = list[Bracket](), 0  # the first brackets are outside of a link, so not links
        self.urls = list[str]()  # bare addresses
        self.opened = set[str]()  # signs that may open emphasis
        self.unclosed = set[str]()  # names of elements that no later tag closes
        # The prefixes of lines in a quotation do not count as punctuation before a sign.
        source = LINE_PREFIX.sub(lambda prefix: "\n".ljust(len(prefix[0])), text)
        self.state = StateInline(source, PARSER, {}, [])
        self.at = 0
        while markup := MARKUP.search(text, self.at):
            self.add_text(self.at, markup.start())
            self.at = markup.end()
            self.add(markup)
        self.add_text(self.at, len(text))
        self.tokens = with_blanks(settle_emphasis(self.tokens))

    def add_text(self, begin: int, end: int) -> None:
        raw = self.text[begin:end]
        self.tokens.append(Token("text", raw, raw))

    def is_defined(self, label: str) -> bool:
        return bool(self.labels) and normalizeReference(label) in self.labels

    def add(self, markup: re.Match[str]) -> None:
        """Add the tokens of some markup, usually a single one."""
        raw = markup[0]
        if markup["url"]:
            self.add_url(markup.start(), raw)
        elif markup["code"] or markup["auto"]:
            self.tokens.append(Token("copy", raw, markup["auto"] or " ".join(markup["code"].split())))
        elif markup["tags"]:
            self.literal += raw
            self.tokens.append(Token("point", raw))
        elif markup["formula"] or markup["brackets"]:
            self.literal += raw
            self.tokens.append(Token("copy", raw, " ".join(raw.split())))
        elif markup["mark"] or markup["citation"] or markup["wiki"]:
            self.add_extension(markup)
        elif markup["open"]:
            self.open(markup.start(), raw)
        elif markup["close"]:
            self.close(markup.start())
        elif markup["emphasis"]:
            scanned = self.state.scanDelims(markup.start(), canSplitWord=raw[0] != "_")
            run = Run("text", raw, raw, opens=scanned.can_open, closes=scanned.can_close)
            run.left = len(raw)
            self.tokens.append(run)
            if run.opens:
                self.opened.add(raw[0])
        elif markup["hard"]:
            self.tokens.append(Token("point", raw, breaks=True, optional=True))
        elif markup["tag"] and raw.endswith(">"):
            self.add_tag(markup)
        else:
            self.tokens.append(Token("text", raw, "\n" if markup["soft"] else markup["escaped"] or unescape(raw)))

    def add_url(self, begin: int, raw: str) -> None:
        """Add an address without the punctuation after it, which may end emphasis."""
        while raw[-1] in AFTER_URL or raw[-1] in self.opened:
            raw = raw[:-1]
        self.at = begin + len(raw)
        self.urls.append(raw)
        self.tokens.append(Token("copy", raw, raw))

    def add_extension(self, markup: re.Match[str]) -> None:
        """Add what CommonMark lacks, unless the document defines the label in its brackets."""
        raw, page, shown = markup[0], markup["page"], markup["shown"] or ""
        if self.is_defined(page or raw.partition("[")[2].rpartition("]")[0]):
            first = raw[: raw.index("[") + 1]
            self.at = markup.start() + len(first)
            self.open(markup.start(), first)
        elif raw.startswith("!") or markup["mark"]:  # an embedded page is like an image
            self.literal += raw
            self.tokens.append(Token("point", raw, breaks=bool(page)))
        elif any(map(str.isalpha, shown)):
            opening = raw[: -len(shown) - 2]
            self.literal += opening
            text = Token("text", shown, ESCAPED.sub(r"\1", shown))
            self.tokens += [Token("open", opening, name="page"), text, Token("close", "]]", name="page")]
        else:
            self.tokens.append(Token("copy", raw, page or ""))

    def open(self, begin: int, raw: str) -> None:
        """Add an opening bracket as text, until its closing bracket shows what it is."""
        self.tokens.append(Token("text", raw, raw))
        self.brackets.append(Bracket(len(self.tokens) - 1, begin + len(raw)))

    def close(self, begin: int) -> None:
        """Add a closing bracket: the end of a link, image or inline footnote, or text."""
        self.at = begin + 1
        self.tokens.append(Token("text", "]", "]"))
        if not self.brackets:
            self.has_brackets = True
            return
        opening = self.brackets.pop()
        token, is_active = self.tokens[opening.token], len(self.brackets) >= self.inactive
        self.inactive = min(self.inactive, len(self.brackets))
        end = self.end_of_link(opening.content, begin)
        if token.raw == "![" and end:
            while self.images and self.images[-1][0][0] >= opening.content:  # images in the text of this one
                self.images.pop()
            self.images.append(((opening.content - 2, end), (opening.content, begin)))
            self.tokens[opening.token :] = [Token("point", self.text[opening.content - 2 : end], breaks=True)]
            self.at = end
        elif token.raw == "[" and end and is_active:
            raw = self.text[begin:end]
            # The text may also be the label of the link's address.
            content = " ".join(self.text[opening.content : begin].split())
            self.tokens[opening.token] = Token("open", "[", name="link")
            closing = f"][{content}]" if raw in ("]", "][]") else ""
            self.tokens[-1] = Token("close", raw, name="link", closing=closing)
            self.settle_inside(opening)
            self.inactive, self.at = len(self.brackets), end
        elif token.raw == "^[":
            self.close_note(opening)
        else:
            self.has_brackets = True

    def close_note(self, opening: Bracket) -> None:
        """Turn the brackets of an inline footnote into an element, apart from the word before it."""
        self.literal += "^["
        before = self.text[: opening.content - 2][-1:]
        is_apart = bool(before.strip())
        self.tokens[opening.token] = Token("open", "^[", name="note", is_apart=is_apart)
        self.tokens[-1] = Token("close", "]", name="note")
        self.settle_inside(opening)
        # Tokens without `raw` are for the model only.
        if is_apart:
            self.tokens.insert(opening.token, Token("text", "", " "))
        if self.text[self.at : self.at + 1].isalnum():
            self.tokens.append(Token("text", "", " "))

    def end_of_link(self, content: int, closing: int) -> int:
        """The end of a link or image with a bracketed text from `content` to `closing`; 0 if it is not one."""
        begin = closing + 1
        if end := end_of_address(self.text, begin):
            return end
        if label := LABEL.match(self.text, begin):
            return label.end() if self.is_defined(label[1]) else 0
        if closing - content > LONGEST_LABEL or not self.is_defined(self.text[content:closing]):
            return 0
        return begin + 2 * self.text.startswith("[]", begin)

    def add_tag(self, markup: re.Match[str]) -> None:
        """Add an HTML tag, or a whole element that is copied."""
        raw, name = markup[0], (markup["name"] or "").lower()
        is_element = bool(name) and name not in html.BETWEEN and not raw.endswith("/>")
        if is_element and raw[1] != "/" and (end := self.end_of_copied(raw, name)):
            element = self.text[markup.start() : end]
            if name in NO_TEXT:
                self.tokens.append(Token("point", element, breaks=name in html.RAW))
            else:
                self.tokens.append(html.copied(name, element))
            self.at = end
            return
        kind: Kind = "point"
        if is_element:
            kind = "close" if raw[1] == "/" else "open"
        token = Token(
            kind,
            raw,
            name=name,
            breaks=name in SEPARATORS | BLOCKS,
            is_script=kind == "open" and name in NAMES_OF_SCRIPTS,
            is_dropped=name in html.RUBY,
        )
        self.tokens.append(token)

    def end_of_copied(self, raw: str, name: str) -> int:
        """The end of an element to copy, whose opening tag has been read; 0 if there is none."""
        is_copied = name in html.COPIED | NO_TEXT
        if not is_copied and name in INLINE:
            is_copied = html.is_fixed(html.tags_of(raw)[0], raw)
        if not is_copied or name in self.unclosed:
            return 0
        closing = re.compile(rf"</{re.escape(name)}\s*>", re.IGNORECASE).search(self.text, self.at)
        if not closing:
            self.unclosed.add(name)
        return closing.end() if closing else 0

    def settle_inside(self, opening: Bracket) -> None:
        """Settle the emphasis in a link: its signs have no partners outside of the link."""
        inside = slice(opening.token + 1, len(self.tokens) - 1)
        self.tokens[inside] = settle_emphasis(self.tokens[inside])


def with_blanks(tokens: list[Token]) -> list[Token]:
    """The tokens with blanks for the model around the tags of elements that separate words."""
    if not any(token.breaks and token.kind == "open" for token in tokens):
        return tokens
    partners = find_pairs(tokens)
    result = list[Token]()
    for index, token in enumerate(tokens):
        blank = [Token("text", "", " ")] if token.breaks and index in partners else []
        result += [*blank, token, *blank]
    return result


def signs_in(text: str) -> int:
    return sum(map(text.count, "*_~"))


class Inline(Sentence):
    """The content of a paragraph, heading or table cell; its translation keeps the markup.

    Its lines are the sentence and the texts of the images inside it.
    """

    def __init__(self, text: str, begin: int, end: int, references: dict[str, Any], in_paragraph: bool) -> None:
        self.labels = references.get("references", {})
        scanner = Scanner(text[begin:end], self.labels)
        super().__init__(begin, keep_apart(join_scripts(scanner.tokens)), escape)
        self.references, self.in_paragraph = references, in_paragraph
        self.before, self.after = text[begin : self.begin], text[self.end : end]
        self.literal = signs_in(scanner.literal)
        self.urls = Counter(scanner.urls)
        self.is_refused = False  # True if no translation keeps the markup
        # Text with brackets keeps them as they are, if possible.
        self.escapes = [escape_few, escape] if scanner.has_brackets else [escape]
        spans = [[(begin + first, begin + last) for first, last in pair] for pair in scanner.images]
        images = [image for span, content in spans if (image := Image(text, span, content, references)).lines]
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
                new = {image.raw: part.otherwise for image, part in zip(self.images, images, strict=True)}
                return self.block(translations, [*with_images(nodes, new)], write)
        return Spliced(self.raw, images, self.begin).render(())

    def block(self, translations: Sequence[Translated], nodes: Sequence[Token], write: Callable[[str], str]) -> str:
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
        tokens = PARSER.parseInline(self.before + text + self.after, self.references)[0].children or []
        markup = Counter(f"{token.type} {token.attrs} {token.content}" for token in tokens if token.type not in TEXTS)
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


class Markdown(Text):
    """A Markdown file; YAML or TOML front matter is left unchanged, and its texts are reported."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.source = source
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> list[Part]:
        front = FRONT_MATTER.match(text)
        keys = SHOWN_KEY.findall(front[0]) if front else []
        declarations = Declarations(self.source, target) if target else None
        self.blocks = Blocks(text, front.end() if front else 0, declarations)
        self.front = f"front matter left untranslated: {', '.join(dict.fromkeys(keys))}" if keys else ""
        self.notice = self.notice_with(refused=0, readings=0)
        return self.blocks.parts

    def notice_with(self, refused: int, readings: int) -> str:
        left = [(f"{what} left untranslated", number) for what, number in self.blocks.left.items()]
        left.append((REFUSED, refused))
        left.append((html.READINGS_LEFT_OUT, readings))
        return "; ".join(filter(None, (self.front, notice_of(*left))))

    def join(self, translations: Sequence[Translated]) -> bytes:
        content = super().join(translations)
        inlines = [part for part in self.blocks.parts if isinstance(part, Inline)]
        refused = sum(inline.is_refused for inline in inlines)
        written = content.removeprefix(self.mark).decode(self.encoding)
        self.notice = self.notice_with(refused, html.lost_readings(self.text.text, written))
        return content


class Blocks:
    """The parts of a Markdown file, and the number of texts left untranslated, by their kind."""

    def __init__(self, text: str, begin: int, declarations: Declarations | None) -> None:
        """`begin` is the end of the front matter; `declarations` are those of blocks of HTML."""
        self.text, self.at = text, begin
        self.declarations = declarations
        self.parts, self.left = list[Part](), Counter[str]()
        body = text[begin:]
        lines = re.finditer(r"\r\n?|\n|.\Z", body)
        self.begins = [begin, *(begin + line.end() for line in lines)]
        self.references = dict[str, Any]()
        tokens = PARSER.parse(body, self.references)
        for opening, token in pairwise([Parsed("", "", 0), *tokens]):
            if token.type == "html_block":
                self.add_html(token)
            elif token.type == "inline" and token.content:
                self.add_inline(token, opening.type)
        titles = [reference["title"] for reference in self.references.get("references", {}).values()]
        for token in tokens:
            self.count_attributes(token.children or (), titles)
        self.left[TITLES] += sum(map(has_letters, titles))

    def begin_of(self, line: int) -> int:
        return self.begins[min(line, len(self.begins) - 1)]

    def add_html(self, token: Parsed) -> None:
        first, after = token.map or (0, 0)
        begin, self.at = self.begin_of(first), self.begin_of(after)
        raw = self.text[begin : self.at]
        page: html.Page | NestedPage | None = html.Page(raw, begin, self.declarations)
        if token.level:
            page = nested_page(raw, begin, token.content, self.declarations)
        if page:
            self.parts.append(page)
            self.left.update(page.left)
        else:
            self.left["HTML blocks"] += 1

    def add_inline(self, token: Parsed, opening: str) -> None:
        """Add the sentences of a block of text, which follows a token of the type `opening`."""
        span = self.span_of(token, is_cell=opening in ("th_open", "td_open"))
        if not span:
            self.left["blocks of text"] += has_letters(token.content)
            return
        begin, self.at = span
        in_paragraph = opening == "paragraph_open"
        # The first line of an alert is its title.
        title = TITLE.match(self.text, begin, self.at) if in_paragraph else None
        edges = [begin, title.end(), self.at] if title else [begin, self.at]
        for part in pairwise(edges):
            for number, stretch in enumerate(self.stretches(*part)):
                is_first = in_paragraph and not number
                inline = Inline(self.text, *stretch, self.references, is_first)
                self.parts += [inline] if inline.lines else []
                self.parts += inline.outside

    def span_of(self, token: Parsed, is_cell: bool) -> tuple[int, int] | None:
        """The offsets of a block of text; None if its text looks otherwise in the file."""
        first = token.map[0] if token.map else 0
        content = token.content.replace("|", r"\|") if is_cell else token.content
        lines = content.rstrip().split("\n")
        last = first + len(lines) - 1
        at = max(self.at, self.begins[first])
        begin = self.text.find(lines[0].rstrip(), at, self.begins[first + 1])
        end = self.text.find(lines[-1], max(begin, self.begins[last]), self.begins[last + 1])
        return None if min(begin, end) < 0 else (begin, end + len(lines[-1]))

    def stretches(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The spans between the tags of blocks, which separate sentences, such as <li> in a cell."""
        if not BLOCK_TAG.search(self.text, begin, end):
            yield begin, end
            return
        labels = self.references.get("references", {})
        tokens = list[Token]()
        for token in Scanner(self.text[begin:end], labels).tokens:
            is_block = token.name in BLOCKS and bool(token.raw)
            tokens.append(replace(token, kind="point") if is_block else token)
        partners = find_pairs(tokens)
        depth, first, at = 0, begin, begin
        for index, token in enumerate(tokens):
            if token.kind == "point" and token.name in BLOCKS and not depth:
                yield first, at
                first = at + len(token.raw)
            if index in partners:
                depth += 1 if token.kind == "open" else -1
            at += len(token.raw)
        yield first, end

    def count_attributes(self, tokens: Iterable[Parsed], titles: Sequence[str]) -> None:
        """Count titles and attributes that stay untranslated; `titles` are those of references."""
        in_image = False
        for token in tokens:
            title = str(token.attrs.get("title", ""))
            self.left[TITLES] += title not in titles and has_letters(title)
            if token.type == "html_inline":
                for tag in html.tags_of(token.content):
                    for name in html.readable_attributes(tag, token.content):
                        value = html.value_of(tag, name, token.content)
                        self.left[ATTRIBUTES] += has_letters(value)
                    if tag.name == "svg":
                        in_image = not tag.closes
            elif in_image:  # only text elements have content
                self.left[html.TEXTS_IN_IMAGES] += has_letters(token.content)


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))
