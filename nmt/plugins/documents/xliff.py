"""XLIFF 1.2 (https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nmt.plugins.documents.bilingual import Bilingual, TargetState, Unit, copied_texts
from nmt.plugins.documents.declared_languages import LanguageAttributes, end_of_attributes
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.elements import Element, check_root, text_of
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.phrase_tags import is_of_phrase, phrase_tokens
from nmt.plugins.documents.tool_dialects import (
    has_own_states,
    is_locked,
    locked_segments,
    new_states,
    tag_definitions,
)
from nmt.plugins.documents.xliff2 import Units2
from nmt.plugins.documents.xml_tokens import CODES

LANGUAGES = LanguageAttributes("source-language", "target-language")
OPEN = ("new", "needs-translation")
"""States of targets that nmt replaces."""
# The lookbehind saves time: a run of white space is tried only from its beginning.
STATE = re.compile(r"""(?<!\s)(?:\s++state\s*=\s*("[^"]*"|'[^']*')|\s*+/?>$)""")
"""The parts to remove from the opening tag of a target: its state and its end."""
NEEDS_REVIEW = "needs-review-translation"
REVIEW = f' state="{NEEDS_REVIEW}"'
TRANSLATED = ' state="translated"'
"""The state of targets that are probable enough for a user's minimum."""
SPACE = ' xml:space="preserve"'
TEXT_BETWEEN = "units with text between segments, which is left untranslated"
MISSING = "segments left untranslated because their target lacks them"
LOCKED = "units or segments left untranslated because a tool locked or confirmed them"


@dataclass(frozen=True)
class TargetPlace:
    """Where a target is written, and its tags."""

    begin: int
    end: int
    """Equal to `begin` unless the new target replaces an existing target."""
    opening: str
    """Up to where the state belongs, such as `<target xml:lang="de"`."""
    closing: str


class Xliff(Bilingual):
    """Units without a translation are translated, segment by segment if they have segments."""

    def parts_of_file(self, elements: list[Element]) -> list[Part]:
        check_root(elements[0], "xliff")
        self.has_phrase_tags = False
        self.definitions = tag_definitions(elements)
        for root in elements:
            if root.name == "xliff":
                if root.attributes.get("version", "").startswith("2"):
                    return Units2(self).parts(root)
                self.has_phrase_tags = is_of_phrase(root)
        files = [element for element in elements if element.name == "file"]
        parts = LANGUAGES.settled(files, self.source, self.target)
        return [*parts, *self.sentences(elements[0])]

    def text_tokens(self, raw: str) -> list[MarkupToken]:
        tokens = super().text_tokens(raw)
        return phrase_tokens(tokens) if self.has_phrase_tags else tokens

    def code_of(self, element: Element) -> str:
        code = super().code_of(element)
        return code or self.definitions.get(element.attributes.get("id", ""), "")

    def sentences(self, element: Element, translate: str = "") -> list[Part]:
        # Inside a unit or group, `translate` applies until an element declares it again.
        translate = element.attributes.get("translate", translate)
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
        if is_locked(unit):
            self.count_locked(source, target)
            return []
        # Only segments that are still empty are filled; all other text stays.
        if target and is_translated(target):
            return self.filled(unit, target, segments)
        # A new target follows the source and its segments, as the standard orders them.
        place = place_of(target) if target else place_behind(source, segmented or source)
        if segmented and segments:
            return self.new_target(unit, segmented, segments, place)
        # Without segments, the whole source is like one segment.
        return self.new_target(unit, source, [source], place)

    def count_locked(self, source: Element, target: Element | None) -> None:
        """Count a locked unit, unless it has a translation or needs none."""
        is_done = target is not None and is_translated(target)
        if not is_done and has_words(source.text):
            self.left[LOCKED] += 1

    def new_target(
        self,
        unit: Element,
        content: Element,
        segments: list[Element],
        place: TargetPlace,
    ) -> list[Part]:
        """A target at a place, with a copy of `content` in which the segments are translated.

        `content` is the source, or its `seg-source`, whose markup around the segments the target
        needs as well. For example, <seg-source><mrk mid="1">One</mrk> </seg-source> becomes <target
        state="..."><mrk mid="1">Eins</mrk> </target>. No parts if no segment has text.
        """
        locked = locked_segments(unit)
        translated = list[tuple[str, Unit]]()
        # What stays as it is in a target is counted, here and in `sentence_of`.
        left_before = self.left.total()
        for segment in segments:
            mid = segment.attributes.get("mid", "")
            sentence = self.sentence_of(segment)
            if not sentence.lines:
                continue
            if mid in locked:
                self.left[LOCKED] += 1
                continue
            translated.append((mid, sentence))
        is_segmented = segments[0] is not content
        if is_segmented and has_words("".join(texts_between(content))):
            self.left[TEXT_BETWEEN] += 1
        sentences = [sentence for _, sentence in translated]
        has_state = not has_own_states(unit)
        review = f"{place.opening}{REVIEW if has_state else ''}>"
        before = Part(place.begin, place.end, otherwise=review)
        parts = copied_texts(content, sentences, place.end, before, place.closing)
        if not parts:
            return []
        if has_state:
            is_complete = self.left.total() == left_before
            trusted = f"{place.opening}{TRANSLATED}>" if is_complete else review
            self.states.append(TargetState(before, sentences, trusted, review, review))
        return [*self.states_of_tool(unit, translated), *parts]

    def states_of_tool(self, unit: Element, segments: list[tuple[str, Unit]]) -> list[Part]:
        """The parts with the states that a tool keeps of these segments, each with its `mid`."""
        states = [*new_states(unit, segments)]
        self.states += states
        return [state.part for state in states]

    def filled(self, unit: Element, target: Element, segments: list[Element]) -> list[Part]:
        """The translations of the segments that are empty in a target."""
        # `mid` connects a segment of the source with that of the target.
        sources = {segment.attributes.get("mid", ""): segment for segment in segments}
        locked = locked_segments(unit)
        parts = list[Part]()
        translated = list[tuple[str, Unit]]()
        for segment in segments_of(target):
            mid = segment.attributes.get("mid", "")
            if mid not in sources or segment.text.strip():
                continue
            sentence = self.sentence_of(sources[mid])
            filling = filled_segment(segment, sources[mid], sentence)
            if filling and mid in locked:
                self.left[LOCKED] += 1
            elif filling:
                parts += filling
                translated.append((mid, sentence))
        self.left[MISSING] += count_missing(sources, target)
        if not parts:
            return []
        if not has_own_states(unit):
            state = state_of_filled(target, [sentence for _, sentence in translated])
            self.states.append(state)
            parts.append(state.part)
        return [*self.states_of_tool(unit, translated), *parts]


def count_missing(sources: dict[str, Element], target: Element) -> int:
    """The number of segments with words that a target lacks; `sources` has the key `mid`."""
    present = {segment.attributes.get("mid", "") for segment in segments_of(target)}
    # A target without segments is one text, which lacks nothing.
    if not present:
        return 0
    return sum(has_words(source.text) for mid, source in sources.items() if mid not in present)


def filled_segment(empty: Element, source: Element, sentence: Unit) -> list[Part]:
    """The translation of a segment that is empty in the target."""
    tag = source.file[empty.begin : empty.inside]
    # An empty segment may be a single tag.
    opening = tag.removesuffix("/>").removesuffix(">") + ">"
    before = Part(empty.begin, empty.end, otherwise=opening)
    return copied_texts(source, [sentence], empty.end, before, f"</{empty.tag}>")


def state_of_filled(target: Element, sentences: list[Unit]) -> TargetState:
    """The state of a target whose empty segments were filled: it stays if all are trusted."""
    span = target.full_spans.get("state")
    if span:
        before = target.file[slice(*span)]
        return TargetState(
            Part(*span, otherwise=before),
            sentences,
            trusted=before,
            doubtful=NEEDS_REVIEW,
            untranslated=NEEDS_REVIEW,
        )
    at = end_of_attributes(target)
    return TargetState(Part(at, at), sentences, trusted="", doubtful=REVIEW, untranslated=REVIEW)


def place_of(target: Element) -> TargetPlace:
    opening = STATE.sub("", target.file[target.begin : target.inside])
    return TargetPlace(target.begin, target.end, opening, f"</{target.tag}>")


def place_behind(source: Element, last: Element) -> TargetPlace:
    """The place of a new target behind the last source element, with the same prefix of XML."""
    prefix = source.tag.removesuffix(source.name)
    opening = f"<{prefix}target"
    # Without it, programs could drop white space that the source keeps.
    if source.attributes.get("space") == "preserve":
        opening += SPACE
    return TargetPlace(last.end, last.end, opening, f"</{prefix}target>")


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
