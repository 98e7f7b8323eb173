"""XLIFF 1.2 (https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nmt.config import NMTError
from nmt.plugins.documents.document import Part, notice_of
from nmt.plugins.documents.elements import Element, escaped, parse_xml, text_of
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.message_units import MessageUnit, message_unit
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.plural_forms import lacking
from nmt.plugins.documents.scripts import join_scripts
from nmt.plugins.documents.xliff_scripts import with_scripts
from nmt.plugins.documents.xml import Flow
from nmt.plugins.documents.xml_tokens import CODES, text_token
from nmt.text import language_tag, match_language, with_code
from nmt.translation import Translated

OPEN = ("new", "needs-translation")
"""States of targets that nmt replaces."""
# The lookbehind saves time: a run of white space is tried only from its beginning.
STATE = re.compile(r"""(?<!\s)(?:\s++state\s*=\s*("[^"]*"|'[^']*')|\s*+/?>$)""")
"""The parts to remove from the opening tag of a target: its state and its end."""
REVIEW = ' state="needs-review-translation">'
LINE_BREAK = re.compile(r"((?:[ ]*(?:[\t\r\n]|&#(?:[xX]0*[aAdD9]|0*(?:9|10|13));))+[ ]*)")
LONGEST_CODE = 40  # of a language, in messages
TEXT_BETWEEN = "units with text between segments, which is left untranslated"
MISSING = "segments left untranslated because their target lacks them"
REFUSED = "units left untranslated because the model lost their placeholders"
UNREADABLE = "units left untranslated because nmt cannot parse their ICU syntax"


def needs_target(file: Element) -> bool:
    """Whether a file of XLIFF declares a source language only."""
    return "source-language" in file.spans and not file.attributes.get("target-language")


def declared_target(file: Element, target: str) -> Part:
    """The target language of a file, behind its source language."""
    tag = language_tag(target) or target
    if "target-language" in file.spans:  # which is empty
        return Part(*file.spans["target-language"], otherwise=tag)
    # Behind the quote of the value.
    at = file.spans["source-language"][1] + 1
    return Part(at, at, otherwise=f' target-language="{tag}"')


def check_languages(file: Element, source: str, target: str) -> None:
    """Raise NMTError if a file orders a translation between other languages than the model's."""
    for name, language in (("source-language", source), ("target-language", target)):
        declared = file.attributes.get(name, "").strip()[:LONGEST_CODE]
        if not declared or not language or match_language(declared, [language]):
            continue
        line = file.file.count("\n", 0, file.begin) + 1
        raise NMTError(
            f'line {line}: declares {name}="{declared}", but the model has {with_code(language)}: '
            f"use a model for {with_code(declared)}, or change {name}"
        )


@dataclass(frozen=True)
class TargetPlace:
    """Where a target is written, and its tags."""

    begin: int
    end: int
    """Equal to `begin` unless the new target replaces an existing target."""
    opening: str
    """Up to where the state belongs, such as `<target xml:lang="de"`."""
    closing: str


class Xliff(Flow):
    """Units without a translation are translated, segment by segment if they have segments."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.source = source
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> Sequence[Part]:
        self.left = Counter[str]()  # what stays untranslated, by the reason
        self.messages = list[MessageUnit]()
        self.language = target
        elements = parse_xml(text)
        parts = list[Part]()
        if target:
            files = [element for element in elements if element.name == "file"]
            for file in files:
                # Before anything is translated, because the translation would be in the wrong
                # language.
                check_languages(file, self.source, target)
            parts += [declared_target(file, target) for file in files if needs_target(file)]
        return [*parts, *self.sentences(elements[0])]

    def text_tokens(self, raw: str) -> list[MarkupToken]:
        """Line breaks and tabs keep their places: units, as of Xcode, contain whole paragraphs."""
        tokens = list[MarkupToken]()
        for number, piece in enumerate(LINE_BREAK.split(raw)):
            is_break = number % 2 == 1  # the pattern's group, which `split` includes
            tokens.append(
                MarkupToken("point", piece, breaks=True) if is_break else text_token(piece)
            )
        return tokens

    def sentences(self, element: Element, translate: str = "") -> list[Part]:
        attributes = element.attributes
        if element.name == "xliff" and attributes.get("version", "").startswith("2"):
            raise NMTError("cannot read XLIFF 2: convert it to XLIFF 1.2")
        # Inside a unit or group, `translate` applies until an element declares it again.
        translate = attributes.get("translate", translate)
        if element.name == "trans-unit":
            return [] if translate == "no" else self.parts_of_unit(element)
        parts = list[Part]()
        for child in element.children:
            parts += self.sentences(child, translate)
        return parts

    def parts_of_unit(self, unit: Element) -> list[Part]:
        children = {child.name: child for child in unit.children}
        source = children.get("source")
        segmented = children.get("seg-source")
        target = children.get("target")
        if source is None:
            return []
        segments = list(segments_of(segmented)) if segmented else []
        # Only segments that are still empty are filled; all other text stays.
        if target and is_translated(target):
            return self.filled(target, segments)
        # Without segments, the whole source is like one segment.
        content = segmented if segmented and segments else source
        # A new target follows the source and its segments, as the standard orders them.
        place = place_of(target) if target else place_behind(segmented or source)
        return self.new_target(content, segments or [source], place)

    def new_target(
        self,
        content: Element,
        segments: list[Element],
        place: TargetPlace,
    ) -> list[Part]:
        """A target at a place, with a copy of `content` in which the segments are translated.

        `content` is the source, or its `seg-source`, whose markup around the segments the target
        needs as well. For example, <seg-source><mrk mid="1">One</mrk> </seg-source> becomes <target
        state="..."><mrk mid="1">Eins</mrk> </target>. No parts if no segment has text.
        """
        file = content.file
        end = place.end
        # The first part replaces the old target. All others insert text behind it, in the order of
        # this list.
        parts = [Part(place.begin, end, otherwise=place.opening + REVIEW)]
        copied_to = content.inside  # the part of `content` before this offset is in `parts`
        has_sentences = False
        for segment in segments:
            sentence = self.sentence_of(segment)
            if not sentence.lines:
                continue  # copied with the text around it
            has_sentences = True
            parts.append(Part(end, end, otherwise=file[copied_to : sentence.begin]))
            parts.append(sentence)
            copied_to = sentence.end
            # The translation is written into the target; the source stays.
            sentence.begin = end
            sentence.end = end
        rest = file[copied_to : content.outside]
        parts.append(Part(end, end, otherwise=rest + place.closing))
        is_segmented = segments[0] is not content
        if is_segmented and has_words("".join(texts_between(content))):
            self.left[TEXT_BETWEEN] += 1
        return parts if has_sentences else []

    def filled(self, target: Element, segments: list[Element]) -> list[Part]:
        """The translations of the segments that are empty in a target."""
        # `mid` connects a segment of the source with that of the target.
        sources = {segment.attributes.get("mid", ""): segment for segment in segments}
        missing = set(sources)
        parts = list[Part]()
        has_segments = False
        for segment in segments_of(target):
            has_segments = True
            mid = segment.attributes.get("mid", "")
            missing.discard(mid)
            if mid in sources:
                parts += self.filled_segment(segment, sources[mid])
        # A target without segments is one text, which lacks nothing.
        if segments and has_segments:
            self.left[MISSING] += sum(has_words(sources[mid].text) for mid in missing)
        return parts

    def filled_segment(self, empty: Element, source: Element) -> list[Part]:
        """The translation of a segment, if it is empty in the target."""
        sentence = self.sentence_of(source)
        if not sentence.lines or empty.text.strip():
            return []
        file = source.file
        tag = file[empty.begin : empty.inside]
        # An empty segment may be a single tag.
        opening = tag.removesuffix("/>").removesuffix(">") + ">"
        before = opening + file[source.inside : sentence.begin]
        after = file[sentence.end : source.outside] + f"</{empty.tag}>"
        sentence.begin = empty.end
        sentence.end = empty.end
        return [
            Part(empty.begin, empty.end, otherwise=before),
            sentence,
            Part(empty.end, empty.end, otherwise=after),
        ]

    def sentence_of(self, element: Element) -> Part:
        """The text of a source or a segment; without lines if it cannot be translated."""
        tokens = self.tokens_of(element)
        joined = join_scripts(with_scripts(tokens))
        # A message may contain single codes, but no pairs of tags. If all scripts were joined, the
        # results are single codes, too.
        has_tags = any(token.kind in ("open", "close") for token in joined)
        message = message_unit(element, tokens if has_tags else joined)
        if message is None:
            return Sentence(element.inside, joined, escaped)
        self.messages.append(message)
        if not message.string.is_readable:
            self.left[UNREADABLE] += 1
        return message

    def join(self, translations: Sequence[Translated]) -> bytes:
        # Only written messages show whether their placeholders are there.
        content = super().join(translations)
        messages = [unit.string.message for unit in self.messages if unit.string.message]
        refused = sum(unit.is_refused for unit in self.messages)
        self.notice = notice_of(
            *self.left.items(),
            (REFUSED, refused),
            lacking(messages, self.language),
        )
        return content


def place_of(target: Element) -> TargetPlace:
    opening = STATE.sub("", target.file[target.begin : target.inside])
    return TargetPlace(target.begin, target.end, opening, f"</{target.tag}>")


def place_behind(source: Element) -> TargetPlace:
    """The place of a new target behind an element, with the same prefix of XML."""
    prefix = source.tag.removesuffix(source.name)
    return TargetPlace(source.end, source.end, f"<{prefix}target", f"</{prefix}target>")


def is_translated(target: Element) -> bool:
    """Whether a target has a translation to keep."""
    return target.attributes.get("state") not in OPEN and bool(target.text.strip())


def is_segment(element: Element) -> bool:
    return element.name == "mrk" and element.attributes.get("mtype") == "seg"


def segments_of(element: Element) -> Iterator[Element]:
    """The segments of a source or target, in order."""
    for child in element.children:
        if is_segment(child):
            yield child
        else:
            yield from segments_of(child)


def texts_between(element: Element) -> Iterator[str]:
    """The text of a segmented source outside of its segments and codes."""
    at = element.inside
    for child in element.children:
        yield text_of(element.file[at : child.begin])
        at = child.end
        # What is in a code is code.
        if child.name not in CODES and not is_segment(child):
            yield from texts_between(child)
    yield text_of(element.file[at : element.outside])


def has_words(text: str) -> bool:
    return any(map(str.isalpha, text))
