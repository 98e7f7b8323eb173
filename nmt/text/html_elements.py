"""HTML elements by their effect on the words around them (https://html.spec.whatwg.org)."""

import re
from html import unescape

INLINE = frozenset(
    """a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark meter nobr
    output q ruby rb rp rt s small span strike strong sub sup time u""".split()  # noqa: SIM905
)
"""Elements inside a sentence, perhaps inside a word. All elements in no other set end one."""
BETWEEN = frozenset(["area", "br", "embed", "img", "input", "wbr"])
"""Inline elements without content."""
SEPARATORS = (BETWEEN - {"wbr"}) | frozenset(
    """audio button canvas iframe object picture progress select svg textarea
    video""".split()  # noqa: SIM905
)
"""Elements that separate words, even without a space, but may be part of a sentence."""
BLOCKS = frozenset(
    """address article aside blockquote body caption center col colgroup dd details dialog dir
    div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header
    hgroup hr html legend li main menu nav noscript ol optgroup option p pre search
    section summary table tbody td tfoot th thead title tr ul""".split()  # noqa: SIM905
)
"""Elements that end a sentence in a string of a program.

There, other names may be placeholders, such as <name> and <link>.
"""
SEPARATING = SEPARATORS | BLOCKS
AMBIGUOUS = frozenset(
    """address article aside body caption center details dialog figure footer form head header
    legend main menu nav option search section summary table title""".split()  # noqa: SIM905
)
"""Names of blocks that are also words, and so may be placeholders: git <option>."""
TAG = re.compile(r"</?([a-zA-Z][\w-]*)[^<>]*>")
BREAK = re.compile(r"[\n\r\t\v\u2028]|\\(?:[nNrt]|line|page|pard?|tab)(?![a-zA-Z])|\[br ?/?\]")
"""Line breaks and tabs, also as programs and RTF write them."""
SEPARATING_KINDS = frozenset(["lb", "pb", "image"])
"""Kinds of inline codes in XLIFF 1.2 that separate words: line break, page break, image."""


def separates_words(code: str, kind: str = "") -> bool:
    r"""True if a code in a translation file separates the words around it.

    `code` is the code's content in the original file, such as `<br/>` or `\n`; `kind` is its
    `ctype` (XLIFF) or `type` (TMX), such as lb, x-html-br or x-p.
    """
    kind = kind.lower()
    # XLIFF 1.2 prefixes custom types with `x-`, and the elements of HTML with `x-html-`.
    element = kind.removeprefix("x-").removeprefix("html-")
    if kind in SEPARATING_KINDS or element in SEPARATING:
        return True
    code = unescape(code)  # some tools escape the content twice
    for name in TAG.findall(code):
        if name.lower() in SEPARATING:
            return True
    text = TAG.sub("", code)
    return BREAK.search(text) is not None
