"""Manuals and books in a vocabulary of XML, whose elements have categories."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from nmt.config import NMTError
from nmt.plugins.documents import (
    REFERENCE,
    Element,
    Flow,
    MarkupToken,
    Paragraph,
    Part,
    Sentence,
    Spliced,
    attribute_escaped,
    attribute_token,
    character_of,
    declared_entities,
    escaped,
    join_scripts,
    keep_apart,
    notice_of,
    paragraph_parts,
    parse_xml,
    text_token,
)
from nmt.plugins.prose.vocabulary import Vocabulary
from nmt.text import language_tag, match_language

PIECE = re.compile(rf"(?P<cdata><!\[CDATA\[.*?]]>)|{REFERENCE.pattern}", re.DOTALL)
"""In CDATA, a reference is text."""
FOREIGN = "passages declared in other languages left untranslated"
IN_ATTRIBUTES = "texts in attributes left untranslated"
OF_ENTITIES = "texts of entities left untranslated"
LONGEST_VALUE = 60
"""The longest text of an entity, in characters, that the model reads in its place."""


class Manual(Flow):
    """Runs of text and inline elements are sentences; all other elements divide them."""

    vocabulary: Vocabulary

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.source = source
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> Sequence[Part]:
        elements = parse_xml(text, has_entities=True)
        self.left = Counter[str]()  # what stays untranslated, by its kind
        self.target = target
        self.entities = declared_entities(text)
        self.with_blocks = dict[int, bool]()  # offset of an inline element -> whether it has blocks
        # The document also has comments beside its root.
        self.root = next(child for child in elements[0].children if child.tag)
        self.check_root()
        self.left[OF_ENTITIES] += sum(map(is_running_text, self.entities.values()))
        parts = [*self.languages(elements), *self.sentences(self.root)]
        counts = [(what, number) for what, number in self.left.items()]
        self.notice = notice_of(*counts)
        return parts

    def check_root(self) -> None:
        """Raise NMTError if the file is in another vocabulary, whose code would be translated."""
        root = self.root
        head = root.file[: root.inside].lower()
        # Parts of a document may be files of their own, whose root is any block.
        if root.name in self.vocabulary.blocks or self.vocabulary.evidence in head:
            return
        line = root.file.count("\n", 0, root.begin) + 1
        title = self.vocabulary.title
        raise NMTError(
            f"line {line}: <{root.tag[:40]}> is not an element of {title}; pass another format"
        )

    def language_attribute(self, root: Element) -> str:
        """The attribute that declares the language of a document; empty if there is none."""
        return "xml:lang"

    def languages(self, elements: Sequence[Element]) -> Iterator[Part]:
        """The changes of declared languages."""
        if not self.target:
            return
        tag = language_tag(self.target) or self.target
        yield from self.added_language(tag)
        for element in elements:
            # In a comment, it is text.
            spans = element.spans if element.tag else {}
            if "lang" not in spans:
                continue
            language = element.attributes["lang"]
            # An entity chooses the language elsewhere.
            if REFERENCE.search(language):
                continue
            is_source = self.source and match_language(language, [self.source])
            is_target = match_language(language, [self.target])
            # The language of a whole document is often that of a template.
            if (is_source or element is self.root) and not is_target:
                yield Part(*spans["lang"], otherwise=tag)

    def added_language(self, tag: str) -> Iterator[Part]:
        """The language of a document that declares none."""
        root = self.root
        attribute = self.language_attribute(root)
        if attribute and "lang" not in root.spans:
            at = root.begin + 1 + len(root.tag)
            yield Part(at, at, otherwise=f' {attribute}="{tag}"')

    def is_fixed(self, element: Element) -> bool:
        """Whether an element declares that its text stays."""
        attributes = element.attributes
        if attributes.get("translate") == "no":
            return True
        return bool(attributes.get("lang")) and self.is_foreign(element, attributes["lang"])

    def is_foreign(self, element: Element, language: str) -> bool:
        """Whether an element is in another language than the source language."""
        if element is self.root or not self.source or REFERENCE.search(language):
            return False
        return match_language(language, [self.source]) is None

    def is_kept(self, element: Element) -> bool:
        """Whether the content of an element outside of sentences stays, and count it if need be."""
        what = self.vocabulary.counted.get(element.name)
        if what:
            self.left[f"{what} left untranslated"] += has_letters(element.text)
            return True
        if self.is_fixed(element):
            self.count_foreign(element)
            return True
        if element.name in self.vocabulary.titles:
            return len(element.text.split()) < 2
        return element.name in self.vocabulary.kept or element.name in self.vocabulary.copied

    def count_foreign(self, element: Element) -> None:
        language = element.attributes.get("lang", "")
        # What is in the target language already needs no translation.
        if not language or match_language(language, [self.target]):
            return
        self.left[FOREIGN] += has_letters(element.text)

    def sentences(self, element: Element) -> list[Part]:
        """The sentences in an element: its runs of text and inline elements, and its blocks."""
        if self.is_kept(element):
            return []
        parts = [*self.attribute_parts(element)]
        is_mixed = has_text_beside_elements(element)
        run = list[Element]()
        begin = element.inside
        for child in element.children:
            if self.is_inline(child, is_mixed):
                run.append(child)
                continue
            parts += self.run_parts(element, begin, child.begin, run)
            parts += self.sentences(child)
            run = []
            begin = child.end
        return [*parts, *self.run_parts(element, begin, element.outside, run)]

    def is_inline(self, element: Element, is_mixed: bool) -> bool:
        """Whether an element belongs to the text around it."""
        # Comments and instructions have no tag.
        if not element.tag:
            return True
        name = element.name
        vocabulary = self.vocabulary
        if vocabulary.divides(name):
            return False
        if name in vocabulary.copied or name in vocabulary.notes:
            return True
        is_known = name in vocabulary.inline or name in vocabulary.labels
        return (is_known or is_mixed) and not self.has_blocks(element)

    def has_blocks(self, element: Element) -> bool:
        """Whether an inline element contains blocks, such as a list in a link."""
        answer = self.with_blocks.get(element.begin)
        if answer is None:
            answer = not all(self.is_inline(child, True) for child in element.children)
            self.with_blocks[element.begin] = answer
        return answer

    def run_parts(self, element: Element, begin: int, end: int, run: list[Element]) -> list[Part]:
        """The parts of a run of text and inline elements between two offsets of an element."""
        # Usual between blocks, and worth the speed.
        if not run and not element.file[begin:end].strip():
            return []
        notes = list[Spliced]()
        tokens = list[MarkupToken]()
        at = begin
        for child in run:
            tokens += self.text_tokens(element.file[at : child.begin])
            tokens += self.tokens_of_child(child, notes)
            at = child.end
        tokens += self.text_tokens(element.file[at:end])
        tokens = keep_apart(join_scripts(tokens))
        return paragraph_parts(Paragraph(begin, tokens, notes, escaped), notes)

    def text_tokens(self, raw: str) -> list[MarkupToken]:
        """The tokens of text; references to entities are copied."""
        tokens = list[MarkupToken]()
        at = 0
        for piece in PIECE.finditer(raw):
            if piece["cdata"] or self.is_character(piece["name"]):
                continue
            if piece.start() > at:
                tokens.append(text_token(raw[at : piece.start()]))
            tokens.append(MarkupToken("copy", piece[0], self.text_of_entity(piece["name"])))
            at = piece.end()
        if at < len(raw):
            tokens.append(text_token(raw[at:]))
        return tokens

    def is_character(self, name: str) -> bool:
        """Whether an entity is a character that the model can read."""
        return name not in self.entities and bool(character_of(name))

    def text_of_entity(self, name: str) -> str:
        """What the model reads for an entity: its text, if that is short, or its name."""
        value = self.entities.get(name, "")
        is_plain = 0 < len(value) <= LONGEST_VALUE and not set(value) & set("<&%\n")
        return value if is_plain else name

    def tokens_of_child(self, child: Element, notes: list[Spliced] | None) -> list[MarkupToken]:
        vocabulary = self.vocabulary
        name = child.name
        if not child.tag:
            return [MarkupToken("point", child.raw)]
        if name in vocabulary.copied or self.is_fixed(child):
            return [self.copied(child)]
        if name in vocabulary.notes and notes is not None:
            return [MarkupToken("point", self.with_mark(child, notes))]
        self.count_attributes(child)
        # An element without content is a tag between words.
        if child.inside == child.outside or name in vocabulary.notes:
            return [MarkupToken("point", child.raw)]
        return self.tokens_around(child, False, notes)

    def copied(self, element: Element) -> MarkupToken:
        if element.name not in self.vocabulary.copied:
            self.count_foreign(element)
        text = element.text.strip()
        if not text:
            return MarkupToken("point", element.raw)
        return MarkupToken("copy", element.raw, text)

    def tokens_around(
        self,
        element: Element,
        separates: bool,
        notes: list[Spliced] | None,
    ) -> list[MarkupToken]:
        script = self.vocabulary.scripts.get(element.name)
        # `keep_apart` knows elements that are never parts of a word by this name.
        is_label = element.name in self.vocabulary.labels
        name = script or ("label" if is_label else element.name)
        opening = MarkupToken(
            "open",
            element.file[element.begin : element.inside],
            name=name,
            is_script=script is not None,
        )
        closing = MarkupToken("close", element.file[element.outside : element.end], name=name)
        return [opening, *self.tokens_of(element, notes), closing]

    def attribute_parts(self, element: Element) -> Iterator[Part]:
        """The attributes of an element outside of sentences that people read."""
        spans = element.spans
        for name in sorted(self.vocabulary.attributes & spans.keys()):
            begin, end = spans[name]
            yield Sentence(begin, [attribute_token(element.file[begin:end])], attribute_escaped)

    def count_attributes(self, element: Element) -> None:
        """Count the attributes inside a sentence that people read."""
        attributes = element.attributes
        names = self.vocabulary.attributes & attributes.keys()
        self.left[IN_ATTRIBUTES] += sum(has_letters(attributes[name]) for name in names)


def has_letters(text: str) -> bool:
    return any(map(str.isalpha, text))


def is_running_text(value: str) -> bool:
    """Whether the text of an entity has several words, unlike a name or a version."""
    words = REFERENCE.sub("", value).split()
    return sum(map(has_letters, words)) > 2


def has_text_beside_elements(element: Element) -> bool:
    """Whether an element has text that is not inside other elements."""
    at = element.inside
    for child in element.children:
        if element.file[at : child.begin].strip():
            return True
        at = child.end
    return bool(element.file[at : element.outside].strip())
