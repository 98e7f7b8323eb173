"""Translation memories in TMX 1.4 (https://www.gala-global.org/tmx-14b).

They are read unit by unit in constant memory.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from lxml import etree

from nmt.config import DataConfig, NMTError
from nmt.text import LINE_BYTES, Pair, open_bytes, reading, separates_words

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
CODES = ("bpt", "ept", "it", "ph", "ut")
"""Elements with markup of the original document instead of text."""
MOST_BYTES = 4 * LINE_BYTES
"""The most bytes without the end of a unit: a unit of this size holds several long lines."""
CHUNK = 2**15
"""The bytes to parse at a time."""
EXAMINED = 1000
"""The number of units at the beginning of a file that determine its languages."""
WITH_ENTITIES = "with entities"
"""What units are counted as whose text has entities that are not read."""


class EntityError(NMTError):
    """The text of a unit refers to an entity."""


@dataclass(frozen=True)
class Unit:
    """A text in several languages."""

    line: int
    segments: dict[str, Any]
    """Language in lowercase -> XML element; valid until the next unit is read."""
    date: str = ""
    """When the unit was last changed, such as 20240131T120000Z; empty if it does not say so."""


def text_of(element: Any) -> str:
    """The text of a segment without codes; EntityError if it refers to an entity.

    A code such as a line break, which separates the words around it, becomes a space.
    """
    pieces = [element.text or ""]
    for inside in element:
        if inside.tag is etree.Entity:
            raise EntityError(f"replace the entity {inside.text} with its text")
        if isinstance(inside.tag, str):  # otherwise a comment
            is_code = etree.QName(inside).localname in CODES
            # Elements such as <hi> only mark text, so their content is part of the sentence.
            text = code_text(inside) if is_code else text_of(inside)
            pieces.append(text)
        pieces.append(inside.tail or "")
    return "".join(pieces)


def code_text(code: Any) -> str:
    """A space for a code that separates the words around it, otherwise nothing."""
    pieces = [code.text or ""]
    # Only the text of the code itself: a <sub> in it has separate text, such as a footnote.
    for inside in code:
        pieces.append(inside.tail or "")
    content = "".join(pieces)
    return " " if separates_words(content, code.get("type", "")) else ""


def units(path: str | Path) -> Iterator[Unit]:
    """The units of a file."""
    # Entities are not resolved: they could read other files, or grow without limit.
    parser = etree.XMLPullParser(
        ("end",),
        tag="{*}tu",
        resolve_entities=False,
        no_network=True,
    )
    is_empty = True
    size = 0  # bytes since the last unit
    with open_bytes(str(path)) as file, reading(path):
        try:
            while chunk := file.read(CHUNK):
                is_empty = False
                parser.feed(chunk)
                # Without a unit, nothing is freed, so an endless file would fill the memory.
                size += len(chunk)
                for _, element in parser.read_events():
                    size = 0
                    yield unit_of(element)
                    # The caller has used the unit, because it asks for the next one.
                    free(element)
                check_log(parser, path)
                if size > MOST_BYTES:
                    raise NMTError(
                        f"{path}: more than {MOST_BYTES:,} bytes without a unit: is it a TMX file?"
                    )
            if is_empty:
                raise NMTError(f"{path}: the file is empty; it needs an element <tmx>")
            # Reports a document that ends too early.
            parser.close()
        except etree.XMLSyntaxError as error:
            raise NMTError(
                f"{path}, line {error.lineno}: not well-formed XML ({error.msg})"
            ) from error


def check_log(parser: Any, path: str | Path) -> None:
    """Raise NMTError for an entity that the file does not declare.

    lxml stops there without an exception, and then reports a wrong place.
    """
    for entry in parser.feed_error_log:
        if entry.level == etree.ErrorLevels.FATAL:
            raise NMTError(
                f"{path}, line {entry.line}: not well-formed XML ({entry.message}); write "
                "the character itself, or its number, such as &#160;"
            )


def unit_of(element: Any) -> Unit:
    segments = {}
    for variant in element.iter("{*}tuv"):
        segment = variant.find("{*}seg")
        if segment is not None:
            # Files of older versions of TMX have `lang` without a namespace.
            language = variant.get(LANG, variant.get("lang", ""))
            segments[normalized(language)] = segment
    return Unit(element.sourceline, segments, last_change(element))


def last_change(unit: Any) -> str:
    """The latest date of a unit and of its variants; empty if there is none.

    Dates have one form and are in UTC (section "Date and Time"), so they sort as text.
    """
    dates = list[str]()
    for element in (unit, *unit.iter("{*}tuv")):
        # A unit that was never changed has only the date of its creation.
        dates += [element.get("creationdate", ""), element.get("changedate", "")]
    return max(dates)


def free(element: Any) -> None:
    """Remove a unit, and what precedes it, from the tree that lxml keeps."""
    element.clear()
    # Otherwise an emptied element for each unit would stay in the tree.
    while element.getprevious() is not None:
        del element.getparent()[0]


def normalized(language: str) -> str:
    return language.lower().replace("_", "-")


def without_region(language: str) -> str:
    return language.split("-")[0]


def languages(path: str) -> dict[str, str]:
    """The keys for the languages of the first units, if there are two.

    Regions matter if the codes are otherwise the same.
    """
    codes = dict[str, None]()
    for unit in islice(units(path), EXAMINED):
        # A dict keeps their order: the first language is the source.
        codes.update(dict.fromkeys(unit.segments))
    short = list(dict.fromkeys(without_region(code) for code in codes))
    named = short if len(short) == len(codes) else list(codes)
    # With more languages, the user must choose.
    if len(named) != 2:
        return {}
    source, target = named
    return {"data.source": source, "data.target": target}


def read_pairs(path: Path, config: DataConfig, counts: Counter[str]) -> Iterator[Pair]:
    """The pairs of a file, see `read_dated_pairs`."""
    for _, pair in read_dated_pairs(path, config, counts):
        yield pair


def read_dated_pairs(
    path: Path, config: DataConfig, counts: Counter[str]
) -> Iterator[tuple[str, Pair]]:
    """The pairs of a file, each with the date of its last change.

    A unit without a pair is an error or, with data.errors=skip, only counted.
    """
    for unit in units(path):
        try:
            pair = (text_in(unit, config.source), text_in(unit, config.target))
            yield unit.date, pair
        except NMTError as error:
            if config.errors != "skip":
                raise NMTError(
                    f"{path}, line {unit.line}: {error}, or pass data.errors=skip"
                ) from error
            counts[WITH_ENTITIES if isinstance(error, EntityError) else "malformed"] += 1


def text_in(unit: Unit, language: str) -> str:
    """The text in a language; en also accepts en-US, and en-US also accepts en, but not en-GB."""
    segment = segment_in(unit, normalized(language))
    if segment is None:
        names = ", ".join(unit.segments) or "nothing"
        raise NMTError(f"no {language}, only {names}: pass data.source and data.target")
    text = text_of(segment)
    # The same limit as for lines of text.
    if len(text.encode()) > LINE_BYTES:
        raise NMTError(f"a segment is longer than {LINE_BYTES:,} bytes")
    return text


def segment_in(unit: Unit, language: str) -> Any | None:
    # An exact match first: a unit may have both en-US and en-GB.
    if language in unit.segments:
        return unit.segments[language]
    for name, segment in unit.segments.items():
        if without_region(name) == language or name == without_region(language):
            return segment
    return None
