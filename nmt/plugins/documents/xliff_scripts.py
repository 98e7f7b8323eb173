"""Codes of XLIFF that stand for the tags of superscripts and subscripts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import unescape

from nmt.plugins.documents.nodes import MarkupToken, find_pairs

TAG = re.compile(r"<(/?)(sup|sub)\b[^<>]*>", re.IGNORECASE)
KIND = re.compile(
    r"""\sctype\s*=\s*["'](?:x-)?(?:html-)?"""
    r"""(sup|sub)(?:erscript|script)?["']""",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ScriptTag:
    """The tag that a code stands for."""

    name: str
    """The element, sup or sub."""
    closes: bool | None
    """Whether the tag is a closing one; None if the code does not say."""


def with_scripts(tokens: Sequence[MarkupToken]) -> list[MarkupToken]:
    """The tokens in which codes for superscripts and subscripts are tags with these names.

    Codes may come as a pair of tags or as single ones: <bpt>&lt;sup></bpt>2<ept>&lt;/sup></ept> or
    <x ctype="x-html-sup"/>2<x ctype="x-html-sup"/>.
    """
    result = [*tokens]
    partners = find_pairs(tokens)
    opened = list[str]()  # the names of scripts that single codes have opened
    for index, token in enumerate(tokens):
        if token.kind in ("text", "copy"):
            continue
        tag = tag_of(token.raw)
        if tag is None:
            continue
        name = tag.name
        if token.kind == "open" and index in partners:
            last = partners[index]
            result[index] = replace(token, name=name, is_script=True)
            result[last] = replace(tokens[last], name=name)
        # A single code whose kind is unknown closes an open script, or else opens one.
        elif token.kind == "point" and name in opened and tag.closes is not False:
            opened.remove(name)
            result[index] = replace(token, kind="close", name=name)
        elif token.kind == "point" and not tag.closes:
            opened.append(name)
            result[index] = replace(token, kind="open", name=name, is_script=True)
    return result


def tag_of(raw: str) -> ScriptTag | None:
    """The tag of a superscript or subscript that a code stands for, if any."""
    text = unescape(unescape(raw))  # some tools escape the content twice
    tags = TAG.findall(text)
    # A code may stand for several tags, and only a single one is a script.
    if len(tags) == 1:
        [(slash, name)] = tags
        return ScriptTag(name.lower(), closes=bool(slash))
    if tags:
        return None
    # Without the tag itself, an attribute may name the kind of the code.
    kind = KIND.search(text)
    return ScriptTag(kind[1].lower(), closes=None) if kind else None
