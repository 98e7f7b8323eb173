"""Files of units, each with a source text and a place for its translation."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice

from nmt.items import COPY
from nmt.plugins.documents.code_pairs import with_pairs
from nmt.plugins.documents.document import Part, notice_of
from nmt.plugins.documents.elements import Element, escaped, parse_xml
from nmt.plugins.documents.markup import Sentence
from nmt.plugins.documents.message_units import MessageUnit, message_unit
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.plural_forms import lacking
from nmt.plugins.documents.scripts import join_scripts
from nmt.plugins.documents.strings import has_items
from nmt.plugins.documents.xliff_scripts import with_scripts
from nmt.plugins.documents.xml import Flow
from nmt.plugins.documents.xml_tokens import text_token
from nmt.translation import MARKED, OMITTED, TRUSTED, Translated

LINE_BREAK = re.compile(r"((?:[ ]*(?:[\t\r\n]|&#(?:[xX]0*[aAdD9]|0*(?:9|10|13));))+[ ]*)")
REFUSED = "units left untranslated because the translation lost their placeholders"
UNREADABLE = "units left untranslated because nmt cannot parse their ICU syntax"
SUBFLOWS = "texts inside of codes (<sub>), which are left untranslated"
REORDERED = "units left untranslated because their codes must keep their order"


class UnitSentence(Sentence):
    """A source text whose translation must keep its placeholders, and some codes their order."""

    def __init__(
        self,
        begin: int,
        tokens: Sequence[MarkupToken],
        escape: Callable[[str], str],
        fixed: Sequence[str] = (),
    ) -> None:
        """`fixed` are the codes, as written in the file, that must keep their order."""
        super().__init__(begin, tokens, escape)
        self.fixed = fixed
        self.problem = ""
        """Why the translation was refused."""

    def render(self, translations: Sequence[Translated]) -> str:
        self.problem = ""
        text = super().render(translations)
        # Codes are placed by alignment, so even a code that the model lost is in the text.
        line = COPY.sub(" ", self.plain)
        if translations and not has_items(line, COPY.sub(" ", translations[0].text)):
            self.problem = REFUSED
        elif not are_in_order(self.fixed, text):
            self.problem = REORDERED
        self.is_refused = bool(self.problem)
        return self.raw if self.is_refused else text


def are_in_order(codes: Sequence[str], text: str) -> bool:
    """Whether a text contains some codes in their order."""
    at = 0
    for code in codes:
        begin = text.find(code, at)
        if begin < 0:
            return False
        at = begin + len(code)
    return True


Unit = UnitSentence | MessageUnit
"""A source text with its translation."""


@dataclass
class TargetState:
    """The part of a file that states how much its translations can be trusted."""

    part: Part
    units: Sequence[Unit]
    trusted: str
    """The text of the part if all units are probable enough for a user's minimum."""
    doubtful: str
    """The text of the part if a unit is not."""
    untranslated: str
    """The text of the part if a unit stays untranslated."""
    usual: str = field(init=False)
    """The text of the part without a user's minimum."""
    is_mark: bool = True
    """Whether readers can tell `trusted` from `doubtful`."""

    def __post_init__(self) -> None:
        self.usual = self.part.otherwise

    def text_for(self, translations: dict[int, list[Translated]]) -> str:
        """The text of the part; `translations` are those of each unit, by `id` of the unit."""
        trusts = set[str]()
        for unit in self.units:
            lines = translations[id(unit)]
            if stays_untranslated(unit, lines):
                return self.untranslated
            trusts.update(line.trust for line in lines)
        if trusts == {TRUSTED}:
            return self.trusted
        return self.usual if trusts.isdisjoint([MARKED]) else self.doubtful


def stays_untranslated(unit: Unit, translations: Sequence[Translated]) -> bool:
    """Whether a rendered unit has source text in place of a translation, for any reason."""
    # `render` writes the source of lines without a translation, too.
    return unit.is_refused or any(
        line.trust == OMITTED or not line.text.strip() for line in translations
    )


class Bilingual(Flow):
    """A file of units, whose source texts stay next to their translations."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.source = source
        self.target = target
        # What stays untranslated, by the reason.
        self.left = Counter[str]()
        self.messages = list[MessageUnit]()
        self.texts = list[UnitSentence]()
        self.states = list[TargetState]()
        super().__init__(content, source, target)

    def parts(self, text: str, target: str) -> Sequence[Part]:
        return self.parts_of_file(parse_xml(text))

    @abstractmethod
    def parts_of_file(self, elements: list[Element]) -> list[Part]:
        """The parts of a file with these elements, the first of which is the document itself."""

    def text_tokens(self, raw: str) -> list[MarkupToken]:
        """Line breaks and tabs keep their places: units, as of Xcode, contain whole paragraphs."""
        tokens = list[MarkupToken]()
        for number, piece in enumerate(LINE_BREAK.split(raw)):
            is_break = number % 2 == 1  # the pattern's group, which `split` includes
            tokens.append(
                MarkupToken("point", piece, breaks=True) if is_break else text_token(piece)
            )
        return tokens

    def sentence_of(self, element: Element) -> Unit:
        """The text of a source or a segment; without lines if it cannot be translated."""
        return self.sentence_with(element, self.tokens_of(element))

    def sentence_with(
        self,
        element: Element,
        tokens: Sequence[MarkupToken],
        fixed: Sequence[str] = (),
    ) -> Unit:
        """The text of an element with these tokens; the codes `fixed` must keep their order."""
        self.left[SUBFLOWS] += count_subflows(element)
        tokens = with_pairs(tokens)
        joined = join_scripts(with_scripts(tokens))
        # A message may contain single codes, but no pairs of tags. If all scripts were joined, the
        # results are single codes, too.
        has_tags = any(token.kind in ("open", "close") for token in joined)
        message = message_unit(element, tokens if has_tags else joined)
        if message is None:
            sentence = UnitSentence(element.inside, joined, escaped, fixed)
            self.texts.append(sentence)
            return sentence
        self.messages.append(message)
        if not message.string.is_readable:
            self.left[UNREADABLE] += 1
        return message

    def join(self, translations: Sequence[Translated]) -> bytes:
        # Only written texts show whether their placeholders are there.
        content = super().join(translations)
        # States stand before the texts on which they depend.
        if self.write_states(translations):
            content = super().join(translations)
        problems = Counter(sentence.problem for sentence in self.texts if sentence.problem)
        problems[REFUSED] += sum(unit.is_refused for unit in self.messages)
        messages = [unit.string.message for unit in self.messages if unit.string.message]
        self.notice = notice_of(
            *self.left.items(),
            *problems.items(),
            lacking(messages, self.target),
        )
        return content

    def write_states(self, translations: Sequence[Translated]) -> bool:
        """Set the states of targets whose texts have been rendered; returns whether any changed."""
        left = iter(translations)
        of_parts = {id(part): [*islice(left, len(part.lines))] for part in self.text.parts}
        is_changed = False
        for state in self.states:
            text = state.text_for(of_parts)
            is_changed = is_changed or text != state.part.otherwise
            state.part.otherwise = text
        return is_changed

    def has_mark(self, line: int) -> bool:
        return line in self.marked_lines

    @cached_property
    def marked_lines(self) -> frozenset[int]:
        """The lines whose unit is part of a target with a state that marks it."""
        units = set[int]()
        for state in self.states:
            if state.is_mark:
                units.update(map(id, state.units))
        numbers = list[int]()
        first = 0
        for part in self.text.parts:
            behind = first + len(part.lines)
            if id(part) in units:
                numbers += range(first, behind)
            first = behind
        return frozenset(numbers)


def count_subflows(element: Element) -> int:
    """The number of texts inside of codes, such as the title of an image."""
    count = 0
    for child in element.children:
        if child.name == "sub":
            count += any(map(str.isalpha, child.text))
        count += count_subflows(child)
    return count


def copied_texts(
    content: Element,
    sentences: Sequence[Part],
    place: int,
    before: Part,
    closing: str,
) -> list[Part]:
    """The parts that write a copy of an element's content, with its sentences translated.

    The copy is written at the offset `place`, behind the part `before` and before `closing`. No
    parts if no sentence has a line.
    """
    # All parts after the first insert text at the same offset, in the order of this list.
    parts = [before]
    copied_to = content.inside  # the part of `content` before this offset is in `parts`
    for sentence in sentences:
        if not sentence.lines:
            continue  # copied with the text around it
        skipped = content.file[copied_to : sentence.begin]
        parts.append(Part(place, place, otherwise=skipped))
        parts.append(sentence)
        copied_to = sentence.end
        # The translation is written into the target; the source stays.
        sentence.begin = place
        sentence.end = place
    if len(parts) == 1:
        return []
    rest = content.file[copied_to : content.outside]
    parts.append(Part(place, place, otherwise=rest + closing))
    return parts
