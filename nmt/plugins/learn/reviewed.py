"""Read reviewed translations from message catalogs and XLIFF.

Catalogs: https://www.gnu.org/software/gettext/manual, section "PO Files". XLIFF 1.2:
https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html, sections "state" and "approved".
XLIFF 2: https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html, section 4.3.1.31.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polib
from lxml import etree

from nmt.config import NMTError
from nmt.text import read_texts, separates_words

REVIEWED_1 = ("final", "signed-off", "translated")
"""The states of XLIFF 1.2 without open work: other states say what a target still needs."""
# Not `translated`: `nmt translate` and other programs give it to text that nobody has reviewed.
REVIEWED_2 = ("reviewed", "final")
CODES = {"bpt", "ept", "it", "ph", "x", "bx", "ex", "sc", "ec", "cp"}
"""Elements with markup of the original document instead of text."""
NOT_REVIEWED = "not reviewed"
WITHOUT_TRANSLATION = "without a translation"
WITH_PLURAL = "with plural forms"
STRING = r'"(?>(?:[^"\\]|\\.)*)"'
CATALOG_LINE = re.compile(
    rf"\s*(?:#.*|(?:msg(?:ctxt|id|id_plural|str(?:\[\d+\])?)\s*)?{STRING}\s*)?"
)
"""A comment, a keyword with its string, the continuation of a string, or a blank line."""


@dataclass(frozen=True)
class Reviewed:
    """A text and its reviewed translation."""

    line: int
    source: str
    target: str
    source_language: str = ""
    target_language: str = ""


def catalog_entries(path: Path, skipped: Counter[str]) -> Iterator[Reviewed]:
    """The translated messages of a catalog that are neither fuzzy nor obsolete."""
    # polib accepts a string without a closing quotation mark, and drops its last character.
    for number, line in enumerate(read_texts(path), 1):
        if not CATALOG_LINE.fullmatch(line):
            raise NMTError(f"{path}, line {number}: not a line of a message catalog; fix it")
    try:
        catalog = polib.pofile(str(path), encoding="utf-8")
    # The exceptions that polib raises for damaged files.
    except (OSError, ValueError, IndexError) as error:
        raise NMTError(f"{path}: not a message catalog, or it is damaged: {error}") from error
    target = catalog.metadata.get("Language", "").strip()
    for entry in catalog:
        if entry.obsolete or entry.fuzzy:
            skipped[NOT_REVIEWED] += 1
        elif entry.msgid_plural:
            # A form is for some numbers only, so it is no translation of the message alone.
            skipped[WITH_PLURAL] += 1
        elif not entry.msgstr.strip():
            skipped[WITHOUT_TRANSLATION] += 1
        else:
            yield Reviewed(
                # polib counts lines from 1, but gives the first message of a file line 0.
                max(entry.linenum, 1),
                on_one_line(entry.msgid),
                on_one_line(entry.msgstr),
                target_language=target,
            )


def xliff_units(path: Path, skipped: Counter[str]) -> Iterator[Reviewed]:
    """The reviewed units of an XLIFF file of any version."""
    # Entities are not resolved: they could read other files, or grow without limit.
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        root = etree.parse(str(path), parser).getroot()
    except etree.XMLSyntaxError as error:
        place = f"{path}, line {error.lineno}"
        raise NMTError(f"{place}: not well-formed XML ({error.msg})") from error
    version = root.get("version", "")
    if etree.QName(root).localname != "xliff" or version[:2] not in ("1.", "2."):
        raise NMTError(f"{path}: not XLIFF 1 or 2; check the root element and its version")
    reader = units_of_1 if version.startswith("1.") else segments_of_2
    yield from reader(root, skipped)


def units_of_1(root: Any, skipped: Counter[str]) -> Iterator[Reviewed]:
    for file in root.iter("{*}file"):
        languages = (file.get("source-language", ""), file.get("target-language", ""))
        for unit in file.iter("{*}trans-unit"):
            target = unit.find("{*}target")
            is_approved = unit.get("approved") == "yes"
            state = "" if target is None else target.get("state", "")
            # An explicit "no" says that the final review is still to come.
            is_reviewed = state in REVIEWED_1 and unit.get("approved") != "no"
            yield from reviewed(
                unit.find("{*}source"), target, languages, is_approved or is_reviewed, skipped
            )


def segments_of_2(root: Any, skipped: Counter[str]) -> Iterator[Reviewed]:
    languages = (root.get("srcLang", ""), root.get("trgLang", ""))
    for segment in root.iter("{*}segment"):
        is_reviewed = segment.get("state") in REVIEWED_2
        source = segment.find("{*}source")
        yield from reviewed(source, segment.find("{*}target"), languages, is_reviewed, skipped)


def reviewed(
    source: Any,
    target: Any,
    languages: tuple[str, str],
    is_reviewed: bool,
    skipped: Counter[str],
) -> Iterator[Reviewed]:
    """The unit of a source and a target, unless it is open or empty."""
    if source is None or target is None or not text_of(target):
        skipped[WITHOUT_TRANSLATION] += 1
    elif not is_reviewed:
        skipped[NOT_REVIEWED] += 1
    else:
        yield Reviewed(target.sourceline, text_of(source), text_of(target), *languages)


def text_of(element: Any) -> str:
    """The text of an element without codes, on one line."""
    return on_one_line("".join(pieces_of(element)))


def pieces_of(element: Any) -> Iterator[str]:
    yield element.text or ""
    for inside in element:
        name = etree.QName(inside).localname if isinstance(inside.tag, str) else ""
        if name in CODES:
            # A code such as a line break, which separates the words around it, becomes a space.
            kind = inside.get("ctype") or inside.get("type") or ""
            yield " " if separates_words(inside.text or "", kind) else ""
        # Elements such as <g> and <pc> only mark text, so their content is part of the sentence.
        elif name:
            yield from pieces_of(inside)
        yield inside.tail or ""


def on_one_line(text: str) -> str:
    return " ".join(text.split())
