"""Patterns for the markup in strings of programs and in subtitles, such as tags and escapes."""

import re

from nmt.text import BLOCKS, SEPARATORS

ESCAPED = "\ue000"
"""Stands for the backslash of C escapes in catalogs."""
MASK = "\ue001"
"""Stands for arguments while markup is found."""
FIRST_CODE = "\ue100"
CODE = re.compile(f"[{FIRST_CODE}-\uf8ff]")
"""A private character: an icon, or a stand-in for a code in XLIFF."""

PATH = (
    r"(?<![\w/.])[A-Za-z]:\\[^\s\"<>|*?]{1,400}+"  # C:\folder\file
    r"|\\\\\w[\w.-]*\\[^\s\"<>|*?]{1,400}+"  # \\server\folder
)
"""A path of Windows, whose backslashes begin no escapes."""

# Quantifiers are limited, possessive or atomic where a string could take quadratic time.
HTML = "|".join(sorted(SEPARATORS | BLOCKS, key=len, reverse=True))
ATTRIBUTES = (
    r"(?>(?:"
    r"""=\s{0,9}(?:"[^"]{0,2000}+"|'[^']{0,2000}+')"""  # a value in quotes
    r"""|[^<>"'=]++"""  # names, spaces, and values without quotes
    r"|="
    r"""|"[^"<]{0,2000}+"|'[^'<]{0,2000}+'"""  # quotes that are not a value
    r"""|["']"""  # a quote that nothing closes
    r")*)"
)
HTML_TAG = rf"</?(?P<html>(?i:{HTML}))(?:\s{ATTRIBUTES}|/)?>"
# Elements of HTML may have any attributes. Attributes of other names need a value, because
# "a <b and c> d" is text. <PRId64> is a macro of C that stands for a directive. React numbers its
# elements: <1>text</1>.
OTHER_TAG = (
    r"</?(?P<name>(?!PRI[diouxX])[a-zA-Z][\w:-]*|\d{1,3})(?:"
    rf"\s+[\w:-]+\s*(?==){ATTRIBUTES}"
    rf"|(?:\s+[\w:-]+){{1,9}}\s*(?==\s*[\"']){ATTRIBUTES}"
    r"|\s*/"
    r")?>"
)
COMMENT = r"<!--(?:[^<>-]|-(?!->)){0,2000}-->"
STYLE_OVERRIDE = r"\{\\[^{}]*\}"
"""Formatting in subtitles, such as {\\an8}."""

# A letter after \n may belong to a command, as in \nu, unless the escape directly follows a word.
AFTER_WORD = r"[^\s\\$({]"
LITERAL = (
    r"\\(?:r\\n|[nNr])(?:"
    r"(?![a-z])"
    rf"|(?<={AFTER_WORD}\\[nNr])"
    rf"|(?<={AFTER_WORD}\\r\\n)"
    r")"
)
"""A line break that a program writes as an escape."""
LATER = rf"&lt;/?(?i:{HTML})(?:\s[^<>&]{{0,200}})?/?&gt;|\[br ?/?\]"
"""A tag that a program writes out later."""
TAB = rf"(?P<tab>\t+|\\t(?![a-z])|(?<={AFTER_WORD})\\t)"
ESCAPE = (
    rf"{ESCAPED}(?:"
    r"(?:x[\da-fA-F]+|[0-7]{1,3})(?:\[[\d;]*[a-zA-Z])?"  # also a whole code of a terminal: \033[1m
    r"|."
    r")"
)
MNEMONIC = r"(?:\A|(?<=[\s>]))(?:&(?!\w{1,30};)|_(?!\w{0,60}_))(?=[^\W\d_])"
"""A mark whose letter a program underlines: &Open, Save _as; but not &nbsp; or _x_."""

UNSPACED_DASHES = [rf"{mark}(?![{mark}\d])" for mark in "\uff0d\u2010\u2014\u2015・"]
UNSPACED = "|".join(UNSPACED_DASHES)
"""A mark of a dialog or list that needs no blank after it. Repeated, it is a pause."""
TAGS = r"(?:<[a-zA-Z][^<>]{0,99}>|\{\\[^{}]{0,99}\})*"
BEGINS_PARAGRAPH = rf"[ \t\r\n]|{TAGS}(?:[-*•\u2013♪♫♬]|{UNSPACED})"
LINE = rf"(?P<line>\r\n?|\n)(?P<paragraph>(?={BEGINS_PARAGRAPH}|\d+[.)]))?"
SENTENCE_END = "[.!?:\u2026\u3002\uff01\uff1f]"
"""Signs after which a line break of a string ends a sentence, and so keeps its place."""
AFTER_SENTENCE = rf"(?<={SENTENCE_END}\n)|(?<={SENTENCE_END}\r\n)"
LINE_OF_STRING = LINE.replace("(?P<paragraph>", rf"(?P<paragraph>{AFTER_SENTENCE}|")
DASH = rf"(?:\A|(?<=[\n\r]))[ \t]*(?:[-*•\u2013]\s+|(?:{UNSPACED})[ \t\u3000]*)"
"""The mark at the beginning of a line of a dialog or list."""


def string_markup(line: str, mark: str = DASH) -> str:
    """A pattern for the markup of strings.

    `line` is the pattern of a line break, and `mark` that of a mark at the beginning of a line.
    """
    return "|".join(
        [
            rf"(?P<path>{PATH})",
            line,
            mark,
            TAB,
            rf"(?P<literal>{LITERAL}|{LATER})",
            HTML_TAG,
            OTHER_TAG,
            COMMENT,
            STYLE_OVERRIDE,
            ESCAPE,
            CODE.pattern,
            MNEMONIC,
        ]
    )


STRING_MARKUP = re.compile(string_markup(LINE_OF_STRING))
