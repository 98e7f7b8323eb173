"""The marks at the beginnings of lines in the dialogs and songs of subtitles."""

from nmt.plugins.documents.string_markup import MASK, UNSPACED

CHEVRONS = r"(?:>>>?(?!>)|(?:&gt;){2,3})"
"""The mark of another speaker, or of another subject, in captions of the United States."""
SPACED = r"[-*•\u2013](?:[^\S\r\n]+|(?=[\r\n]))"
# Many people write no blank after a dash. A number may be negative, and an arrow is no dash.
DIRECT = r"[-\u2013](?=[^-\u2013\s\d>])(?![.,$€£]\d)"
MARK = rf"(?:{SPACED}|{DIRECT}|(?:{UNSPACED})[ \t\u3000]*|{CHEVRONS}[ \t]*)"
SIGNS = rf"(?:[-*•\u2013♪♫♬]|{UNSPACED}|{CHEVRONS})"
"""The signs of dialogs, lists and songs at the beginnings of lines."""
TAGS = rf"(?:</?[a-zA-Z][^<>]{{0,99}}>|\{{\\[^{{}}]{{0,99}}\}}|{MASK})*"
BEGINS_TURN = rf"[ \t\r\n]|{TAGS}{SIGNS}"
"""What follows a line break that ends a sentence."""
SPEAKER = rf"(?<=\s){CHEVRONS}(?=[ \t]*+(?:[^\Wa-z\d_]|[\[(\"♪]))"
"""Another speaker on the same line."""


def line_mark(before: str) -> str:
    """A pattern for a mark at the beginning of a text, or behind one of the signs in `before`.

    A reader must check that only tags precede the mark on its line.
    """
    return rf"(?P<mark>(?:\A|(?<=[{before}{MASK}]))[ \t]*+{MARK})"
