"""Tags in texts of Phrase (Memsource): {1}, {1>text<1} and {b>text<b}."""

import re
from collections.abc import Iterable

from nmt.plugins.documents.elements import CDATA, Element
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.xml_tokens import text_token

NAMESPACE = "http://www.memsource.com/mxlf/"
TAG = re.compile(
    r"\{(?P<point>\d{1,5})\}|\{(?P<open>[\w^]{1,9})(?:>|&gt;)|(?:<|&lt;)(?P<close>[\w^]{1,9})\}"
)


def is_of_phrase(root: Element) -> bool:
    return any(value.startswith(NAMESPACE) for value in root.attributes.values())


def phrase_tokens(tokens: Iterable[MarkupToken]) -> list[MarkupToken]:
    """The tokens of a text in which the tags of Phrase are tokens, too."""
    result = list[MarkupToken]()
    for token in tokens:
        # A tag must not divide a section of CDATA.
        if token.kind == "text" and CDATA not in token.raw:
            result += tags_in(token.raw)
        else:
            result.append(token)
    return result


def tags_in(raw: str) -> list[MarkupToken]:
    tokens = list[MarkupToken]()
    at = 0
    for tag in TAG.finditer(raw):
        tokens.append(text_token(raw[at : tag.start()]))
        if tag["point"]:
            # It may stand for a value, such as a number, that belongs to the sentence.
            tokens.append(MarkupToken("copy", tag[0], tag[0]))
        elif tag["open"]:
            tokens.append(MarkupToken("open", tag[0], name=f"phrase {tag['open']}"))
        else:
            tokens.append(MarkupToken("close", tag[0], name=f"phrase {tag['close']}"))
        at = tag.end()
    tokens.append(text_token(raw[at:]))
    return tokens
