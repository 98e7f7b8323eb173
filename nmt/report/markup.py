"""HTML and SVG that escape by default: all text is foreign until it is Markup."""

import html
import re
from typing import Any

# No browser shows these, and NUL or half a surrogate pair would break the page for every parser and encoder.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
VOID = ("img", "input", "link", "meta", "wbr")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(content: object) -> Markup:
    """Content as HTML: Markup as it is, everything else as text, None as nothing."""
    if isinstance(content, Markup):
        return content
    return Markup(html.escape(UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", "" if content is None else str(content))))


def join(*contents: object) -> Markup:
    """Contents one behind another."""
    return Markup("".join(map(escape, contents)))


def tag(name: str, *contents: object, **attributes: Any) -> Markup:
    """An element: `class_="a"` is class="a", `text_anchor` is text-anchor; attributes that are None are left out.

    Both HTML and XML parsers read it.
    """
    words = [name]
    for key, value in attributes.items():
        if value is not None:
            words.append(f'{key.rstrip("_").replace("_", "-")}="{escape(value)}"')
    opening = " ".join(words)
    return Markup(f"<{opening} />") if name in VOID else Markup(f"<{opening}>{join(*contents)}</{name}>")
