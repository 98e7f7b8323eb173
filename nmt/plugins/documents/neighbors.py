"""Elements that adjoin without white space, such as the links of a menu.

A model must not read their texts as one word: a blank that the file lacks keeps them apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import regex

from nmt.plugins.documents.markup import Token, find_pairs
from nmt.text import WITHOUT_BLANKS, blank_between

# Elements whose texts are never parts of one word.
SEPARATE = frozenset(["a", "label", "link", "page", "note"])
SCRIPTS = frozenset(["sub", "sup"])
WORD_END = regex.compile(r"\w$")
CLOSING_END = regex.compile(r"[\p{Pe}\u201d\u00bb:;!?%\u2026]$")
PERIOD_END = regex.compile(r"[.,]$")
WORD_BEGIN = regex.compile(r"\w")
JOINT = regex.compile(r"\s?[+\u2013\u2192>-]\s?")
# Between the links of a menu.
DIVIDER = regex.compile(r"[^\w\s]{1,3}")
ENDING = regex.compile(r"\(\w{1,3}\)")  # of a plural: file(s)
OPENING_BEGIN = regex.compile(r"[\p{Ps}\p{Pi}\u201e]")


def join_copies(tokens: Iterable[Token]) -> list[Token]:
    """The tokens with one for a key combination or a path of menus: <kbd>Ctrl</kbd>+<kbd>S</kbd>."""
    result = list[Token]()
    for token in tokens:
        joins = len(result) > 1 and result[-1].kind == "text" and JOINT.fullmatch(result[-1].text)
        if token.kind == "copy" and joins and result[-2].kind == "copy":
            between = result.pop()
            first = result.pop()
            raw = first.raw + between.raw + token.raw
            text = first.text + between.text + token.text
            result.append(replace(first, raw=raw, text=text))
        else:
            result.append(token)
    return result


def keep_apart(tokens: Iterable[Token]) -> list[Token]:
    """The tokens with a blank for the model wherever one element ends and another one begins.

    Elements that form one word together get no blank: <b>O</b><i>pen</i>.
    """
    tokens = join_copies(token for token in tokens if token.raw or token.text)
    if not any(token.kind == "open" for token in tokens):
        return tokens
    partners = find_pairs(tokens)
    apart = set[int]()  # the indices of the tags before which to put a blank
    last = -1  # the index of the text before the current token
    for index, token in enumerate(tokens):
        if is_divider(tokens, index):
            continue
        if token.kind == "text" and token.text:
            if last >= 0:
                apart.update(border(tokens, partners, last, index))
            last = index
        elif token.kind == "copy" or token.breaks or token.raw[:4].lower() == "<wbr":
            last = -1
    result = list[Token]()
    for index, token in enumerate(tokens):
        if index in apart:
            result.append(Token("text", "", " "))
            token = replace(token, is_apart=True)
        result.append(token)
    return result


def border(
    tokens: Sequence[Token],
    partners: dict[int, int],
    last: int,
    index: int,
) -> list[int]:
    """The index of the tag between two texts before which to put a blank, if any."""
    closed, opened = list[int](), list[int]()
    for at in range(last + 1, index):
        if at not in partners:
            continue
        if partners[at] <= last:
            closed.append(at)
        elif partners[at] > index:
            opened.append(at)
    if not (closed and opened):
        return []
    first = partners[closed[-1]], closed[-1]
    second = opened[0], partners[opened[0]]
    names = [{tokens[at].name for at in tags} for tags in (closed, opened)]
    return opened[:1] if are_apart(tokens, first, second, names) else []


def are_apart(
    tokens: Sequence[Token],
    first: tuple[int, int],
    second: tuple[int, int],
    names: Sequence[set[str]],
) -> bool:
    """True if the texts of two adjoining elements are words of their own.

    `first` and `second` are the indices of the elements' tags, and `names` the names of all tags
    between the texts: first those of the closing tags, then those of the opening tags.
    """
    before = text_of(tokens, first)
    after = text_of(tokens, second)
    are_separate = "note" in names[1] or all(not SEPARATE.isdisjoint(of_side) for of_side in names)
    if not are_separate and not blank_between(before, after):
        return False
    begins_word = WORD_BEGIN.match(after) is not None
    begins_quotation = OPENING_BEGIN.match(after) is not None
    if CLOSING_END.search(before):
        return begins_word or begins_quotation
    if PERIOD_END.search(before):
        return begins_quotation or (begins_word and not (after[0].isdigit() or after[0].islower()))
    if not WORD_END.search(before) or not (begins_word or begins_quotation):
        return False
    if are_separate:
        return True
    if begins_quotation:
        return not ENDING.fullmatch(after)
    if not SCRIPTS.isdisjoint(names[0] | names[1]):
        return False
    both = before[-1], after[0]
    if all(map(str.isdigit, both)) or any(map(WITHOUT_BLANKS.match, both)):
        return False
    # An initial in another color, an ending in bold: <b>O</b><i>pen</i>
    is_part = after[0].islower() and min(len(before), len(after)) == 1
    return not (is_part or is_in_word(tokens, first, second))


def is_divider(tokens: Sequence[Token], index: int) -> bool:
    """True if a text divides two links."""
    token = tokens[index]
    if token.kind != "text" or not 0 < index < len(tokens) - 1 or not DIVIDER.fullmatch(token.text):
        return False
    before, after = tokens[index - 1], tokens[index + 1]
    tags = (before, "close"), (after, "open")
    return all(tag.kind == kind and tag.name in SEPARATE for tag, kind in tags)


def text_of(tokens: Sequence[Token], element: tuple[int, int]) -> str:
    """The text of an element; `element` has the indices of its tags."""
    return "".join(token.text for token in tokens[element[0] : element[1]])


def is_in_word(tokens: Sequence[Token], first: tuple[int, int], second: tuple[int, int]) -> bool:
    """True if letters directly precede the first of two elements, or follow the second one."""
    before = tokens[first[0] - 1] if first[0] else None
    after = tokens[second[1] + 1] if second[1] + 1 < len(tokens) else None
    if before and before.kind == "text" and WORD_END.search(before.text):
        return True
    return bool(after and after.kind == "text" and WORD_BEGIN.match(after.text))
