"""Translation memories in TMX 1.4 (https://www.gala-global.org/tmx-14b), read unit by unit in constant memory."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from lxml import etree

from nmt.config import DataConfig, NMTError, require
from nmt.text import LINE_BYTES, Pair, open_text, reading, separates_words

LANG = "{http://www.w3.org/XML/1998/namespace}lang"
CODES = (
    "bpt",
    "ept",
    "it",
    "ph",
    "ut",
)  # elements with markup of the original document instead of text
LONGEST = 4 * LINE_BYTES  # the most bytes without the end of a unit


def text_of(element: Any) -> str:
    """The text of a segment without codes; NMTError if it refers to an entity.

    A code such as a line break, which separates the words around it, becomes a space.
    """
    pieces = [element.text or ""]
    for inside in element:
        require(inside.tag is not etree.Entity, f"replace the entity {inside.text} with its text")
        if isinstance(inside.tag, str):
            is_code = etree.QName(inside).localname in CODES
            text = code_text(inside) if is_code else text_of(inside)
            pieces.append(text)
        pieces.append(inside.tail or "")
    return "".join(pieces)


def code_text(code: Any) -> str:
    """A space for a code that separates the words around it, otherwise nothing."""
    content = (code.text or "") + "".join(inside.tail or "" for inside in code)
    return " " if separates_words(content, code.get("type", "")) else ""


def units(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The units of a file: line, and language in lowercase -> segment element, valid until the next unit."""
    parser, size = (
        etree.XMLPullParser(("end",), tag="{*}tu", resolve_entities=False, no_network=True),
        0,
    )
    with open_text(str(path)) as file, reading(path):
        try:
            while chunk := file.read(2**15):
                parser.feed(chunk)
                size += len(chunk)
                for _, unit in parser.read_events():
                    size = 0
                    parts = (
                        (tuv.get(LANG, tuv.get("lang", "")), tuv.find("{*}seg"))
                        for tuv in unit.iter("{*}tuv")
                    )
                    yield (
                        unit.sourceline,
                        {code.lower().replace("_", "-"): x for code, x in parts if x is not None},
                    )
                    unit.clear()
                    while unit.getprevious() is not None:
                        del unit.getparent()[0]
                require(
                    size <= LONGEST,
                    f"{path}: more than {LONGEST:,} bytes without a unit: is it a TMX file?",
                )
            parser.close()
        except etree.XMLSyntaxError as error:
            raise NMTError(
                f"{path}, line {error.lineno}: not well-formed XML ({error.msg})"
            ) from error


def languages(path: str) -> dict[str, str]:
    """The keys for the languages of the first 1,000 units if there are two; regions matter if all else is equal."""
    codes = [*dict.fromkeys(code for _, unit in islice(units(path), 1000) for code in unit)]
    short = [*dict.fromkeys(code.split("-")[0] for code in codes)]
    named = short if len(short) == len(codes) else codes
    return {"data.source": named[0], "data.target": named[1]} if len(named) == 2 else {}


def read_pairs(path: Path, config: DataConfig, counts: Counter[str]) -> Iterator[Pair]:
    """The pairs of a file; a unit without one is an error or, with data.errors=skip, only counted."""
    for line, unit in units(path):
        try:
            yield text_in(unit, config.source), text_in(unit, config.target)
        except NMTError as error:
            require(
                config.errors == "skip", f"{path}, line {line}: {error}, or pass data.errors=skip"
            )
            counts["malformed"] += 1


def text_in(unit: dict[str, Any], language: str) -> str:
    """The text in a language; en also accepts en-US, and en-US also accepts en, but not en-GB."""
    code = language.lower().replace("_", "-")
    near = [code] * (code in unit) + [
        name for name in unit if name.split("-")[0] == code or name == code.split("-")[0]
    ]
    require(
        bool(near),
        f"no {language}, only {', '.join(unit) or 'nothing'}: pass data.source and data.target",
    )
    text = text_of(unit[near[0]])
    require(len(text.encode()) <= LINE_BYTES, f"a segment is longer than {LINE_BYTES:,} bytes")
    return text
