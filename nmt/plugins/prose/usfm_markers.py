"""The markers of USFM by what they do to the text around them (https://docs.usfm.bible)."""

import re

NUMBERED = re.compile(r"([a-z]+?)[0-9]*(?:-[0-9]+)?")
"""A marker with its level, such as q2, or with the columns of a cell, such as tc1-2."""
NOTES = frozenset(["f", "fe", "ef", "efe"])
"""Footnotes, which have sentences of their own."""
REFERENCES = frozenset(["x", "ex"])
"""Notes that consist of references."""
PARTS_OF_NOTES = frozenset(
    ["fdc", "fk", "fl", "fq", "fqa", "fs", "ft", "fw", "xk", "xnt", "xq", "xta"]
)
"""Parts of the sentence in a note; each ends the part before it."""
KEPT_IN_NOTES = frozenset(["fm", "fr", "xdc", "xo", "xop", "xot", "xt"])
"""References and numbers in a note, up to the next marker."""
CHARACTERS = frozenset(
    [
        "add",
        "addpn",
        "bd",
        "bdit",
        "bk",
        "dc",
        "em",
        "fv",
        "it",
        "jmp",
        "k",
        "lik",
        "liv",
        "litl",
        "nd",
        "ndx",
        "no",
        "ord",
        "png",
        "pn",
        "qac",
        "qs",
        "qt",
        "rb",
        "sc",
        "sig",
        "sls",
        "sup",
        "tl",
        "w",
        "wa",
        "wg",
        "wh",
        "wj",
        "wr",
        "iqt",
    ]
)
"""Styles of some words in a sentence."""
COPIED = frozenset(["fv", "ior", "pro", "ref", "rq", "xt", "xtSeeAlso"])
"""Styles of references, numbers and pronunciations in a sentence."""
BEFORE_TEXT = frozenset(["ca", "cat", "va", "vp"])
"""Numbers and categories, which end with a closing marker and are not part of a sentence."""
CONTINUING = frozenset(
    [
        "b",
        "iq",
        "m",
        "mi",
        "nb",
        "p",
        "pc",
        "ph",
        "phi",
        "pi",
        "pm",
        "pmc",
        "pmo",
        "pmr",
        "po",
        "pr",
        "ps",
        "psi",
        "q",
        "qc",
        "qm",
        "qr",
    ]
)
"""Paragraphs and lines of poetry; the sentence of a paragraph before may continue in them."""
KEPT = frozenset(["cat", "cp", "id", "ide", "periph", "pub", "restore", "sts", "usfm"])
"""Paragraphs for programs."""
COMMENTS = frozenset(["rem"])
COUNTED = frozenset(["mr", "r", "sr"])
"""Paragraphs that consist of references."""
REFUSED = "zaln-s"
"""Begins words that are aligned with words of the original language."""


def base_of(marker: str) -> str:
    """A marker without its level or columns."""
    match = NUMBERED.fullmatch(marker)
    return match[1] if match else marker
