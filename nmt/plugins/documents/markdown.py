"""Markdown (CommonMark and GitHub tables): markdown-it finds the blocks and checks the markup of translations."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from html import unescape
from itertools import pairwise, product
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.helpers import parseLinkDestination, parseLinkTitle
from markdown_it.token import Token as Parsed

from nmt.plugins.documents import html
from nmt.plugins.documents.document import Part, Spliced, Text, Translated
from nmt.plugins.documents.markup import Kind, Sentence, Token, find_pairs, without_optional
from nmt.plugins.documents.neighbors import keep_apart
from nmt.plugins.documents.scripts import NAMES as NAMES_OF_SCRIPTS, join_scripts
from nmt.text import INLINE

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
MARKUP = re.compile(
    r"(?P<hard>(?:[ ]{2,}|\\)\r?\n[ \t>]*)|(?P<soft>[ \t]*\r?\n[ \t>]*)|\\(?P<escaped>[!-/:-@\[-`{-~])|&#?\w{1,32};"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?P<code>.+?)(?<!`)(?P=ticks)(?!`)|<(?P<auto>[a-zA-Z][\w.+-]{1,31}:[^\s<>]*)>"
    # What CommonMark lacks: footnotes, task boxes, alerts and a table of contents; citations; pages of a wiki.
    r"|(?P<mark>\[\^[^\]\s]+\]:?|\A\[[ xX]\](?=\s)|\[!\w[\w|-]{0,40}\][+-]?|\[TOC\])"
    r"|(?P<citation>\[(?:(?:see|cf\.|e\.g\.,?) )?-?@\w[^\[\]\n]{0,300}\])(?!\()"
    r"|(?P<wiki>!?\[\[(?P<page>[^\[\]\n|\\]{1,300})(?P<bar>\\?\|(?P<shown>[^\[\]\n]{0,300}))?\]\](?!\())"
    r"|(?P<open>[!^]?\[)|(?P<close>\])|(?P<emphasis>\*+|~~|(?<!\w)_+|_+(?!\w))"
    rf"|(?P<tag>{html.MARKUP.pattern})",
    re.DOTALL,
)
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
ACTIVE = r"[\\`|]|\*(?!\s)|(?<!\s)\*|(?<!\w)_|_(?!\w)|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|~(?=~)"
escape = partial(re.compile(rf"{ACTIVE}|[\[\]]").sub, r"\\\g<0>")
# Leaves most brackets as they are, because the document rarely defines the label in them.
escape_few = partial(re.compile(rf"{ACTIVE}|(?<=\^)\[|\[(?=[\[\]^!@])|\](?=[\[(:])").sub, r"\\\g<0>")
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
TEXTS = frozenset(("text", "text_special", "softbreak", "hardbreak"))
TITLE = re.compile(r"\[!\w[\w|-]{0,40}\][+-]?[ \t]+[^\s][^\n]*\n[ \t>]*")
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
        self.unclosed = set[str]()  # names of elements that no later tag closes
        self.at = 0
        while markup := MARKUP.search(text, self.at):
            self.add_text(self.at, markup.start())
            self.at = markup.end()
            self.add(markup)
        self.add_text(self.at, len(text))
        self.settle_emphasis()

    def add_text(self, begin: int, end: int) -> None:
        raw = self.text[begin:end]
        self.tokens.append(Token("text", raw, raw))

    def is_defined(self, label: str) -> bool:
        return bool(self.labels) and normalizeReference(label) in self.labels

    def add(self, markup: re.Match[str]) -> None:
        """Add the tokens of some markup, usually a single one."""
        raw = markup[0]
        if markup["code"] or markup["auto"]:
            self.tokens.append(Token("copy", raw, markup["auto"] or " ".join(markup["code"].split())))
        elif markup["mark"] or markup["citation"] or markup["wiki"]:
            self.add_extension(markup)
        elif markup["open"]:
            self.open(markup.start(), raw)
        elif markup["close"]:
            self.close(markup.start())
        elif markup["emphasis"]:
            after, before = self.text[self.at : self.at + 1], self.text[markup.start() - 1 : markup.start()]
            opens = after.strip() and not before.strip(" \t\r\n([\"'>*_~")
            self.tokens.append(Token("open" if opens else "close", raw, raw, name=raw, optional=True))
        elif markup["hard"]:
            self.tokens.append(Token("point", raw, breaks=True, optional=True))
        elif markup["tag"] and raw.endswith(">"):
            self.add_tag(markup)
        else:
            self.tokens.append(Token("text", raw, " " if markup["soft"] else markup["escaped"] or unescape(raw)))

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
            self.tokens[-1] = Token("close", raw, name="link", closing=f"][{content}]" if raw in ("]", "][]") else "")
            self.inactive, self.at = len(self.brackets), end
        elif token.raw == "^[":
            self.literal += "^["
            self.tokens[opening.token] = Token("open", "^[", name="note")
            self.tokens[-1] = Token("close", "]", name="note")
        else:
            self.has_brackets = True

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
            self.tokens.append(html.copied(name, self.text[markup.start() : end]))
            self.at = end
            return
        kind: Kind = "point"
        if is_element:
            kind = "close" if raw[1] == "/" else "open"
        is_script = kind == "open" and name in NAMES_OF_SCRIPTS
        self.tokens.append(Token(kind, raw, name=name, breaks=name in html.BETWEEN, is_script=is_script))

    def end_of_copied(self, raw: str, name: str) -> int:
        """The end of an element to copy, whose opening tag has been read; 0 if there is none."""
        is_copied = name in html.COPIED or (name in INLINE and html.is_fixed(html.tags_of(raw)[0], raw))
        if not is_copied or name in self.unclosed:
            return 0
        closing = re.compile(rf"</{re.escape(name)}\s*>", re.IGNORECASE).search(self.text, self.at)
        if not closing:
            self.unclosed.add(name)
        return closing.end() if closing else 0

    def settle_emphasis(self) -> None:
        """Turn the signs of emphasis that have no partner into text."""
        partners = find_pairs(self.tokens)
        for index, token in enumerate(self.tokens):
            if token.name and token.name == token.text:
                token.kind, token.text = (token.kind, "") if index in partners else ("text", token.text)


def signs_in(text: str) -> int:
    return sum(map(text.count, "*_~"))


class Inline(Sentence):
    """The content of a paragraph, heading or table cell; its translation keeps the markup.

    Its lines are the sentence and the texts of the images inside it.
    """

    def __init__(self, text: str, begin: int, end: int, references: dict[str, Any], in_paragraph: bool) -> None:
        scanner = Scanner(text[begin:end], references.get("references", {}))
        super().__init__(begin, keep_apart(join_scripts(scanner.tokens)), escape)
        self.references, self.in_paragraph = references, in_paragraph
        self.before, self.after = text[begin : self.begin], text[self.end : end]
        self.literal = signs_in(scanner.literal)
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
            if written == self.raw:
                break
            if self.keeps(written, self.with_copies(escape(translations[0].text))):
                new = {image.raw: part.otherwise for image, part in zip(self.images, images, strict=True)}
                return self.block(translations, [*with_images(nodes, new)], write)
        return Spliced(self.raw, images, self.begin).render(())

    def block(self, translations: Sequence[Translated], nodes: Sequence[Token], write: Callable[[str], str]) -> str:
        """The translation with these nodes, whose beginning does not look like a list, heading or quotation."""
        written = self.written(translations[:1], nodes, write)
        if self.in_paragraph and written != self.raw:
            written = BEGINS_BLOCK.sub(r"\1\\", written)
        return written

    def markup_of(self, text: str) -> tuple[Counter[str], int]:
        """Parse the block with `text` as its content; return its markup and number of literal emphasis characters."""
        tokens = PARSER.parseInline(self.before + text + self.after, self.references)[0].children or []
        markup = Counter(f"{token.type} {token.attrs} {token.content}" for token in tokens if token.type not in TEXTS)
        return markup, signs_in("".join(token.content for token in tokens if token.type == "text"))

    def keeps(self, written: str, plain: str) -> bool:
        """True if `written` has the source's markup, perhaps without emphasis, and adds no emphasis characters."""
        (before, _), (after, signs), (_, others) = map(self.markup_of, (self.raw, written, plain))
        left_out = all(re.match("em_|strong_|s_", markup) for markup in before - after)
        closed, closed_before = (sum(tag.partner > 0 for tag in html.tags_of(text)) for text in (written, self.raw))
        whole = self.before + written + self.after
        defines = self.in_paragraph and whole.startswith("[") and not PARSER.parse(whole)
        few_signs = signs <= others + self.literal
        return not defines and after <= before and left_out and few_signs and closed >= closed_before


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

    def parts(self, text: str, target: str) -> list[Part]:
        front = FRONT_MATTER.match(text)
        at = front.end() if front else 0
        if front and (keys := SHOWN_KEY.findall(front[0])):
            self.notice = f"front matter left untranslated: {', '.join(dict.fromkeys(keys))}"
        body, parts, references = text[at:], list[Part](), dict[str, Any]()
        begins = [at, *(at + line.end() for line in re.finditer(r"\r\n?|\n|.\Z", body))]
        for opening, token in pairwise([Parsed("", "", 0), *PARSER.parse(body, references)]):
            first, after = token.map or (0, 0)
            if token.type == "html_block" and token.level == 0:
                begin, at = begins[first], begins[min(after, len(begins) - 1)]
                parts.append(html.Page(text[begin:at], begin))
            elif token.type == "inline" and token.content:
                lines = token.content.rstrip().split("\n")
                last = first + len(lines) - 1
                begin = text.find(lines[0].rstrip(), max(at, begins[first]), begins[first + 1])
                end = text.find(lines[-1], max(begin, begins[last]), begins[last + 1])
                at = begins[first + 1] if min(begin, end) < 0 else end + len(lines[-1])
                if min(begin, end) >= 0:
                    in_paragraph = opening.type == "paragraph_open"
                    # The first line of an alert is its title.
                    title = TITLE.match(text, begin, at) if in_paragraph else None
                    edges = [begin, title.end(), at] if title else [begin, at]
                    for span in pairwise(edges):
                        inline = Inline(text, *span, references, in_paragraph)
                        parts += [inline] if inline.lines else []
                        parts += inline.outside
        return parts
