"""Texts of cells that formulas, filters, lists or tables of a spreadsheet repeat.

Cells with these texts stay as they are, because a formula would no longer find a translated text.
"""

import re
from collections.abc import Iterator, Mapping
from html import unescape

SHEETS = re.compile(
    r"xl/(?:workbook|worksheets/|tables/|pivotCache/pivotCacheDef)[^/]*\.xml|content\.xml"
)
ATTRIBUTE = r"""=(?:"([^"]*)"|'([^']*)')"""
REFERENCES = re.compile(
    r"<(?:\w+:)?(?:f|formula\w*|definedName)(?=[\s>])[^<>]*>([^<]+)<"  # formulas
    rf"|\s(?:\w+:)?(?:formula|condition|source-field-name){ATTRIBUTE}"  # formulas of OpenDocument
    r"|<(?:\w+:)?(?:filter\b[^<>]*?\sval|(?:tableColumn|cacheField)\b[^<>]*?\sname)"
    rf"{ATTRIBUTE}"  # filters and names of columns
)
QUOTED = re.compile('"([^"]*)"')
CONTROL = re.compile("_x000[9AaDd]_")
"""A tab or line break, as spreadsheets write it."""


def referenced_texts(contents: Mapping[str, bytes]) -> frozenset[str]:
    """The texts that the files of a document repeat, with single spaces between words."""
    texts = set[str]()
    for name, content in contents.items():
        if SHEETS.fullmatch(name):
            for groups in REFERENCES.findall(content.decode(errors="replace")):
                reference = unescape("".join(groups))  # only one of the groups matched
                texts.update(values_of(reference))
    return frozenset(texts)


def values_of(reference: str) -> Iterator[str]:
    """The texts that a formula quotes, or a name."""
    # Without quotation marks, it is the name of a column or the value of a filter.
    for quoted in QUOTED.findall(reference) or [reference]:
        # A cell's list of allowed values is one string: "Yes,No".
        for value in (quoted, *quoted.split(",")):
            yield " ".join(CONTROL.sub(" ", value).split())
