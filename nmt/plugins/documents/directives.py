"""Directives of the formats that a message catalog may name, such as %s."""

import re
from collections import Counter

from nmt.text import is_counted

PRINTF = (
    r"%(?:%|\{\w{1,60}+\}|(?:\d{1,3}+\$|\([^()%]{1,60}+\)|<(?!PRI)\w{1,60}+>)?+[-+#0' ,I]{0,5}+"
    r"(?:\d{1,9}+|\*(?:\d{1,3}+\$)?+)?+(?:\.(?:\d{1,9}+|\*(?:\d{1,3}+\$)?+)?+)?+(?:hh|ll|[hlLqjzZt])?"
    r"(?:[A-Za-z@]|<PRI\w{1,20}+>))"
)
BRACES = r"\{\{|\}\}|\{(?:[^{}]|\{[^{}]{0,60}+\}){0,100}+\}"
DIRECTIVES = {
    **dict.fromkeys(("python-brace", "csharp"), (BRACES, "{}")),
    "java": (BRACES, "{}'"),
    "perl-brace": (r"\{[A-Za-z_]\w{0,60}+\}", ""),
    "sh": (r"\$(?:\w{1,60}+|\{\w{1,60}+\})", "$"),
    **dict.fromkeys(("qt", "qt-plural", "kde"), (r"%L?+(?:\d{1,2}+|n)", "")),
    "kde-kuit": (r"%L?+(?:\d{1,2}+|n)|</?\w[^<>]{0,200}+>", "<&"),
    **dict.fromkeys(("lisp", "scheme"), (r"~(?:'.|[-+#\w,]){0,20}?[:@]{0,2}(?:[^\w\s#,:@+'-]|[A-Za-z\n])", "~")),
    "object-pascal": (r"%(?:%|(?:(?:\d{1,9}+|\*)?:)?-?(?:\d{1,9}+|\*)?+(?:\.(?:\d{1,9}+|\*))?+[A-Za-z])", "%"),
    **dict.fromkeys(("gcc-internal", "gfc-internal"), (rf"{PRINTF}|%[<>'{{}}]", "%")),
    "perl": (rf"%V[A-Za-z]|{PRINTF}|%v?_", "%"),
    "ruby": (rf"%[-+#0 ]{{0,5}}+(?:\d{{1,9}}+)?+(?:\.\d{{1,9}}+)?+\{{\w{{1,60}}+\}}|{PRINTF}", "%"),
    "ycp": (r"%(?:%|\d)", "%"),
}
"""The directives of gettext's formats, and characters of which no more may stand outside of them than in the source.

Any other format is taken for one of printf's (https://www.gnu.org/software/gettext/manual, section Formatted Strings).
"""
LITERAL = ("%%", "{{", "}}", "%m")
"""Directives that stand for none of the arguments."""
IN_ORDER = ("gcc-internal", "gfc-internal", "kde-kuit", "lisp", "scheme")
"""Formats whose directives open and close or go back to arguments: all of them stay, in their order."""


def same_directives(format: str, source: str, translation: str) -> bool:
    """True if a translation takes the same arguments as its source, by the rules of `msgfmt --check`."""
    pattern, alone = DIRECTIVES.get(format, (PRINTF, "%"))
    literal = () if format in IN_ORDER else LITERAL
    sides = [[word for word in re.findall(pattern, text) if word not in literal] for text in (source, translation)]
    before, after = (re.sub(pattern, "", text) for text in (source, translation))
    return (
        (sides[0] == sides[1] if format in IN_ORDER else Counter(sides[0]) == Counter(sides[1]))
        and list(filter(is_counted, sides[0])) == list(filter(is_counted, sides[1]))
        and all(after.count(character) <= before.count(character) for character in alone)
    )
