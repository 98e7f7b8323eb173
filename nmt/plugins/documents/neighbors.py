"""Elements that adjoin without white space, such as the links of a menu.

A model must not read their texts as one word: a blank that the file lacks keeps them apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import regex

from nmt.plugins.documents.nodes import MarkupToken, find_pairs
from nmt.text import WITHOUT_BLANKS, blank_between

SEPARATE = frozenset(["a", "label", "link", "page", "note"])
"""Elements whose texts are never parts of one word."""
SCRIPTS = frozenset(["sub", "sup"])
"""Subscripts and superscripts."""
WORD_END = regex.compile(r"\w$")
CLOSING_END = regex.compile(r"[\p{Pe}\u201d\u00bb:;!?%\u2026]$")
"""A closing bracket or quotation mark, or a sign after a word, at the end of a text."""
PERIOD_END = regex.compile(r"[.,]$")
WORD_BEGIN = regex.compile(r"\w")
OPENING_BEGIN = regex.compile(r"[\p{Ps}\p{Pi}\u201e]")
"""An opening bracket or quotation mark at the beginning of a text."""
JOINT = regex.compile(r"\s?[+\u2013\u2192>-]\s?")
"""The sign between keys that are pressed together, or between the steps of a menu path."""
DIVIDER = regex.compile(r"[^\w\s]{1,3}")
"""The text between the links of a menu."""
ENDING = regex.compile(r"\(\w{1,3}\)")
"""The ending of a plural, as in file(s)."""


def keep_apart(tokens: Iterable[MarkupToken]) -> list[MarkupToken]:
    """The tokens with a blank for the model wherever one element ends and another one begins.

    Elements that form one word together get no blank: <b>O</b><i>pen</i>.
    """
    # Tokens without anything would hide that others are neighbors. A style of SubStation Alpha ends
    # without a tag where the next one begins.
    written = (token for token in tokens if token.raw or token.text or token.kind == "close")
    tokens = join_copies(written)
    if not any(token.kind == "open" for token in tokens):
        return tokens
    borders = find_borders(tokens)
    result = list[MarkupToken]()
    for index, token in enumerate(tokens):
        if index in borders:
            result.append(MarkupToken("text", "", " "))
            token = replace(token, is_apart=True)
        result.append(token)
    return result


def join_copies(tokens: Iterable[MarkupToken]) -> list[MarkupToken]:
    """The tokens with a single one for a key combination or a path through menus.

    An example is <kbd>Ctrl</kbd>+<kbd>S</kbd>.
    """
    result = list[MarkupToken]()
    for token in tokens:
        # The result may be joined to the next one: Ctrl+Alt+S.
        if token.kind == "copy" and ends_with_joint(result):
            between = result.pop()
            first = result.pop()
            raw = first.raw + between.raw + token.raw
            text = first.text + between.text + token.text
            token = replace(first, raw=raw, text=text)
        result.append(token)
    return result


def ends_with_joint(tokens: Sequence[MarkupToken]) -> bool:
    """Whether the last tokens are code and a sign that joins it to further code."""
    if len(tokens) < 2:
        return False
    code = tokens[-2]
    joint = tokens[-1]
    is_joint = joint.kind == "text" and JOINT.fullmatch(joint.text) is not None
    return is_joint and code.kind == "copy"


def find_borders(tokens: Sequence[MarkupToken]) -> set[int]:
    """The indices of the opening tags before which the model needs a blank."""
    partners = find_pairs(tokens)
    borders = set[int]()
    # The index of the last text; None if something the model sees, such as code, follows it.
    last: int | None = None
    for index, token in enumerate(tokens):
        if is_divider(tokens, index):
            # The links on both sides need a blank, as if there were no divider.
            continue
        if token.kind == "text" and token.text:
            if last is not None:
                border = border_between(tokens, partners, last, index)
                if border and border.separates_words():
                    borders.add(border.tag)
            last = index
        elif token.kind == "copy" or token.breaks or token.raw[:4].lower() == "<wbr":
            # The texts are apart already, or, around <wbr>, they may be one word.
            last = None
    return borders


def is_divider(tokens: Sequence[MarkupToken], index: int) -> bool:
    """True if a text divides two links."""
    token = tokens[index]
    if token.kind != "text" or not 0 < index < len(tokens) - 1:
        return False
    if not DIVIDER.fullmatch(token.text):
        return False
    before = tokens[index - 1]
    after = tokens[index + 1]
    is_behind_link = before.kind == "close" and before.name in SEPARATE
    is_before_link = after.kind == "open" and after.name in SEPARATE
    return is_behind_link and is_before_link


@dataclass(frozen=True)
class Border:
    """The border between two elements without a blank between their texts."""

    tag: int
    """The index of the first tag that opens here."""

    before: str
    """The text of the outermost element that ends here."""

    after: str
    """The text of the outermost element that begins here."""

    closed: frozenset[str]
    """The names of the elements that end here."""

    opened: frozenset[str]
    """The names of the elements that begin here."""

    is_in_word: bool
    """Whether letters directly precede the first element or follow the second one."""

    def separates_words(self) -> bool:
        """Whether the two texts are words of their own, although no blank separates them.

        True for the links <a>Home</a><a>News</a>, False for <b>O</b><i>pen</i>.
        """
        begins_with_word = WORD_BEGIN.match(self.after) is not None
        begins_quotation = OPENING_BEGIN.match(self.after) is not None
        # Before other signs, such as an apostrophe, both texts may be one word.
        if not begins_with_word and not begins_quotation:
            return False
        are_separate = self.are_separate_elements()
        # In Chinese and Japanese, words are not separated by blanks anyway.
        if not are_separate and not blank_between(self.before, self.after):
            return False
        # The end of the first text decides: a closing sign, a period, a letter, or another sign.
        if CLOSING_END.search(self.before):
            return True  # nothing in the same word follows such a sign
        if PERIOD_END.search(self.before):
            # A number or file name may continue: <b>3.</b><i>14</i>, <b>a.</b><i>txt</i>
            may_continue = self.after[0].isdigit() or self.after[0].islower()
            return not may_continue
        if not WORD_END.search(self.before):
            return False
        if are_separate:
            return True
        if begins_quotation:
            return not ENDING.fullmatch(self.after)
        return not self.may_be_in_one_word()

    def are_separate_elements(self) -> bool:
        """Whether the elements cannot be parts of one word, such as links."""
        if "note" in self.opened:
            return True
        return not SEPARATE.isdisjoint(self.closed) and not SEPARATE.isdisjoint(self.opened)

    def may_be_in_one_word(self) -> bool:
        """Whether two texts without punctuation between them may be parts of one word."""
        if not SCRIPTS.isdisjoint(self.closed | self.opened):
            return True
        last = self.before[-1]
        first = self.after[0]
        if last.isdigit() and first.isdigit():
            return True
        if WITHOUT_BLANKS.match(last) or WITHOUT_BLANKS.match(first):
            return True
        # An initial in another color, an ending in bold: <b>O</b><i>pen</i>
        is_single_letter = min(len(self.before), len(self.after)) == 1
        return self.is_in_word or (is_single_letter and first.islower())


def border_between(
    tokens: Sequence[MarkupToken],
    partners: dict[int, int],
    last: int,
    index: int,
) -> Border | None:
    """The border between two texts, if an element ends and another one begins there.

    `last` and `index` are the tokens of the texts. `partners` maps the tag that opens an element to
    the one that closes it, and the other way round. For example, `<b>A</b><i>B</i>` has a border
    between A and B.
    """
    closed = list[int]()  # the indices of the tags of elements that end here
    opened = list[int]()
    for at in range(last + 1, index):
        if at not in partners:
            continue
        # An element that both opens and closes between the texts has no text.
        if partners[at] <= last:
            closed.append(at)
        elif partners[at] > index:
            opened.append(at)
    if not closed or not opened:
        return None
    # The outermost element that ends here, and the outermost one that begins.
    first = range(partners[closed[-1]], closed[-1])
    second = range(opened[0], partners[opened[0]])
    return Border(
        tag=opened[0],
        before=text_of(tokens, first),
        after=text_of(tokens, second),
        closed=frozenset(tokens[at].name for at in closed),
        opened=frozenset(tokens[at].name for at in opened),
        is_in_word=is_in_word(tokens, first, second),
    )


def text_of(tokens: Sequence[MarkupToken], element: range) -> str:
    """The text of an element, given the indices of its tokens without its closing tag."""
    return "".join(tokens[at].text for at in element)


def is_in_word(tokens: Sequence[MarkupToken], first: range, second: range) -> bool:
    """True if letters directly precede the first of two elements, or follow the second one."""
    if first.start > 0:
        before = tokens[first.start - 1]
        if before.kind == "text" and WORD_END.search(before.text):
            return True
    behind = second.stop + 1  # `stop` is the index of the closing tag
    if behind == len(tokens):
        return False
    after = tokens[behind]
    return after.kind == "text" and WORD_BEGIN.match(after.text) is not None
