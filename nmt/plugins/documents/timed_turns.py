"""The dialogs in paragraphs of TTML, whose lines begin with marks such as a dash."""

import re
from collections.abc import Sequence

from nmt.plugins.documents.dialogs import MARK, SIGNS
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.xml_tokens import text_token

BREAK = re.compile(r"<(?:\w+:)?br\b")
BEGINS_TURN = re.compile(rf"\s*+{SIGNS}")
LEADING = re.compile(rf"\s*+{MARK}")


def turns_of(tokens: Sequence[MarkupToken], begin: int) -> list[tuple[int, list[MarkupToken]]]:
    """The tokens of each sentence, with their offset; `begin` is that of the first token.

    A line break before a mark ends a sentence.
    """
    turns = [(begin, list[MarkupToken]())]
    ends = ends_of(tokens)
    at = begin
    begins_line = True
    for index, token in enumerate(tokens):
        at += len(token.raw)
        if index in ends:
            turns.append((at, []))
        elif begins_line and token.kind == "text":
            turns[-1][1].extend(marked_off(token))
        else:
            turns[-1][1].append(token)
        if is_break(token):
            begins_line = True
        elif is_word(token):
            begins_line = False
    return turns


def ends_of(tokens: Sequence[MarkupToken]) -> frozenset[int]:
    """The indices of the line breaks before marks; only tags may stand between them."""
    ends = set[int]()
    precedes_mark = False
    # From the end, each token is looked at only once.
    for index in reversed(range(len(tokens))):
        token = tokens[index]
        if is_break(token) and precedes_mark:
            ends.add(index)
        elif is_word(token):
            precedes_mark = token.kind == "text" and BEGINS_TURN.match(token.raw) is not None
    return frozenset(ends)


def is_break(token: MarkupToken) -> bool:
    return token.kind == "point" and BREAK.match(token.raw) is not None


def is_word(token: MarkupToken) -> bool:
    return token.kind == "copy" or (token.kind == "text" and bool(token.raw.strip()))


def marked_off(token: MarkupToken) -> list[MarkupToken]:
    """A text at the beginning of a line, in which a mark is a token of its own."""
    mark = LEADING.match(token.raw)
    if not mark:
        return [token]
    return [MarkupToken("point", mark[0]), text_token(token.raw[mark.end() :])]
