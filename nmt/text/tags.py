"""HTML elements by their effect on the words around them (https://html.spec.whatwg.org)."""

import re
from html import unescape

# Elements inside a sentence, perhaps inside a word. All elements in no other set end a sentence.
INLINE = frozenset(
    """a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark meter nobr
    output q ruby rb rp rt s small span strike strong sub sup time u""".split()  # noqa: SIM905
)
# Inline elements without content.
BETWEEN = frozenset(["area", "br", "embed", "img", "input", "wbr"])
# Elements that separate words, even without a space, but may be part of a sentence.
SEPARATORS = (BETWEEN - {"wbr"}) | frozenset(
    """audio button canvas iframe object picture progress select svg textarea
    video""".split()  # noqa: SIM905
)
# Elements that end a sentence in a string of a program, where other names may be placeholders,
# such as <name> and <link>.
BLOCKS = frozenset(
    """address article aside blockquote body caption center col colgroup dd details dialog dir
    div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header
    hgroup hr html legend li main menu nav noscript ol optgroup option p pre search
    section summary table tbody td tfoot th thead title tr ul""".split()  # noqa: SIM905
)
SEPARATING = SEPARATORS | BLOCKS
# Names of blocks that are also words, and so may be placeholders: git <option>.
AMBIGUOUS = frozenset(
    """address article aside body caption center details dialog figure footer form head header
    legend main menu nav option search section summary table title""".split()  # noqa: SIM905
)
TAG = re.compile(r"</?([a-zA-Z][\w-]*)[^<>]*>")
# Line breaks and tabs, including the forms that programs and RTF write.
BREAK = re.compile(r"[\n\r\t\v\u2028]|\\(?:[nNrt]|line|page|pard?|tab)(?![a-zA-Z])|\[br ?/?\]")
KINDS = frozenset(["lb", "pb", "image"])  # of inline codes in XLIFF 1.2


def separates_words(code: str, kind: str = "") -> bool:
    r"""True if a code in a translation file separates the words around it.

    `code` is the code's content in the original file, such as `<br/>` or `\n`; `kind` is its
    `ctype` (XLIFF) or `type` (TMX), such as lb, x-html-br or x-p.
    """
    kind = kind.lower()
    # XLIFF 1.2 prefixes custom types with `x-`, and the elements of HTML with `x-html-`.
    element = kind.removeprefix("x-").removeprefix("html-")
    if kind in KINDS or element in SEPARATING:
        return True
    code = unescape(code)  # some tools escape the content twice
    for name in TAG.findall(code):
        if name.lower() in SEPARATING:
            return True
    text = TAG.sub("", code)
    return BREAK.search(text) is not None
