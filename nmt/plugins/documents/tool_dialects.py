"""The states and tags of segments in the dialects of XLIFF 1.2 that translation tools write.

memoQ, Phrase (Memsource) and Trados Studio keep them in attributes of their own, so the tool shows
new text as machine translation that nobody has reviewed. The attributes and values are those that
https://docs.memoq.com/current/en/Globalese/How_Globalese_processes_XLIFF_files.html lists; Phrase:
https://developers.phrase.com/en/guides/mxliff/structure; Trados Studio: the enumeration
ConfirmationLevel of https://developers.rws.com/studio-api-docs.
"""

from collections.abc import Iterable, Iterator, Sequence

from nmt.plugins.documents.bilingual import TargetState, Unit
from nmt.plugins.documents.declared_languages import end_of_attributes
from nmt.plugins.documents.document import Part
from nmt.plugins.documents.elements import Element

UNIT_STATES = {"mq:status": "MachineTranslated", "m:trans-origin": "mt"}
"""Attributes of units with machine translation: those of memoQ and of Phrase."""
SEGMENT_STATES = {"conf": "Draft", "origin": "mt"}
"""Attributes of the definitions of segments with machine translation, in Trados Studio."""
DEFINITIONS = "sdl:seg-defs"
UNLOCKED = ("", "false", "no", "0", "unlocked")


def full_attributes(element: Element) -> dict[str, str]:
    """The attributes of an element as written, by their names with prefixes."""
    return {name: element.file[slice(*span)] for name, span in element.full_spans.items()}


def is_locked(unit: Element) -> bool:
    """Whether a tool has locked or confirmed a unit."""
    attributes = full_attributes(unit)
    for name in ("mq:locked", "m:locked", "m:confirmed"):
        # A number of the step in which the unit was confirmed; 0 is none.
        if attributes.get(name, "").lower() not in UNLOCKED:
            return True
    return False


def definitions_of(unit: Element) -> dict[str, Element]:
    """The definitions of a unit's segments, by `mid` of the segments."""
    definitions = dict[str, Element]()
    for child in unit.children:
        if child.tag == DEFINITIONS:
            for definition in child.children:
                definitions[definition.attributes.get("id", "")] = definition
    return definitions


def locked_segments(unit: Element) -> set[str]:
    """The segments of a unit, by `mid`, that Trados Studio has locked."""
    locked = set[str]()
    for mid, definition in definitions_of(unit).items():
        if definition.attributes.get("locked", "").lower() not in UNLOCKED:
            locked.add(mid)
    return locked


def has_own_states(unit: Element) -> bool:
    """Whether a tool keeps the states of a unit outside of `state` of its target."""
    return not UNIT_STATES.keys().isdisjoint(unit.full_spans) or bool(definitions_of(unit))


def new_states(unit: Element, segments: Sequence[tuple[str, Unit]]) -> Iterator[TargetState]:
    """The new states of a unit whose segments `segments` were translated, each with its `mid`.

    The tools have no states for translations to doubt: the states besides these are those of people
    who edited, confirmed or rejected a translation. Text that stays untranslated keeps its states.
    """
    spans = unit.full_spans
    all_segments = [segment for _, segment in segments]
    for name, value in UNIT_STATES.items():
        if name in spans:
            yield state_in(Part(*spans[name], otherwise=value), unit, all_segments)
    definitions = definitions_of(unit)
    for mid, segment in segments:
        if mid in definitions:
            for part in with_attributes(definitions[mid], SEGMENT_STATES):
                yield state_in(part, unit, [segment])


def state_in(part: Part, unit: Element, segments: Sequence[Unit]) -> TargetState:
    """The state of segments for which the part has the value of machine translation."""
    before = unit.file[part.begin : part.end]
    return TargetState(
        part,
        segments,
        trusted=part.otherwise,
        doubtful=part.otherwise,
        untranslated=before,
        is_mark=False,
    )


def with_attributes(element: Element, values: dict[str, str]) -> Iterator[Part]:
    """Set attributes of an element."""
    spans = element.spans
    added = ""
    for name, value in values.items():
        if name in spans:
            yield Part(*spans[name], otherwise=value)
        else:
            added += f' {name}="{value}"'
    if added:
        at = end_of_attributes(element)
        yield Part(at, at, otherwise=added)


def tag_definitions(elements: Iterable[Element]) -> dict[str, str]:
    """The codes of a file of Trados Studio, which are defined in its header, by the ids of tags."""
    codes = dict[str, str]()
    for element in elements:
        if element.name == "tag-defs":
            for tag in element.children:
                # The opening code, or the only one.
                definitions = [child for child in tag.children if child.name in ("bpt", "ph")]
                if definitions:
                    codes[tag.attributes.get("id", "")] = definitions[0].text
    return codes
