"""The tokens that a sentence consists of: without the white space and the tags around its words."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

import regex

from nmt.plugins.documents.nodes import MarkupToken, find_pairs

# Up to nine letters beside code are its ending, as in `x`s. Longer ones may be a word that only
# lacks a space.
LETTERS_BEFORE = regex.compile(r"(?<!\w)\p{Latin}{1,9}$")
LETTERS_AFTER = regex.compile(r"\p{Latin}{1,9}(?!\w)")


def has_text(token: MarkupToken) -> bool:
    return token.kind == "copy" or bool(token.text.strip())


def strip(token: MarkupToken, cut: Callable[[str], str]) -> str:
    """Strip whitespace from one end of a token, in place, and return the whitespace.

    `cut` is str.lstrip or str.rstrip.
    """
    # Only white space that `raw` shows is cut: a blank that is written as &nbsp; stays.
    before = token.raw
    token.raw = cut(before)
    if token.raw != before:
        token.text = cut(token.text)
    # The token was only white space.
    if not token.raw:
        return before
    return before.replace(token.raw, "", 1)


def without_ends(token: MarkupToken, first: int, last: int) -> MarkupToken:
    """A text without its `first` characters and its `last` ones."""
    raw = token.raw[first : len(token.raw) - last]
    text = token.text[first : len(token.text) - last]
    return replace(token, raw=raw, text=text)


def with_whole_words(tokens: Sequence[MarkupToken]) -> list[MarkupToken]:
    """The tokens, with Latin letters that directly adjoin code joined to it.

    In `x`s, the s is not a separate word.
    """
    result = [*tokens]
    for index, token in enumerate(result):
        if token.kind == "copy":
            join_letters_before(result, index)
            join_letters_after(result, index)
    return result


def join_letters_before(tokens: list[MarkupToken], index: int) -> None:
    """Move letters at the end of a text into the code that follows it, in place."""
    if index == 0 or tokens[index - 1].kind != "text":
        return
    before = tokens[index - 1]
    match = LETTERS_BEFORE.search(before.text)
    # Letters that are written as references, such as &eacute;, cannot be moved by their number.
    if not match or not before.raw.endswith(match[0]):
        return
    letters = match[0]
    code = tokens[index]
    # Code without a text for the model has only a mark, even with letters beside it.
    text = letters + code.text if code.text else ""
    tokens[index] = replace(code, raw=letters + code.raw, text=text)
    tokens[index - 1] = without_ends(before, 0, len(letters))


def join_letters_after(tokens: list[MarkupToken], index: int) -> None:
    """Move letters at the beginning of a text into the code before it, in place."""
    if index + 1 == len(tokens) or tokens[index + 1].kind != "text":
        return
    after = tokens[index + 1]
    match = LETTERS_AFTER.match(after.text)
    if not match or not after.raw.startswith(match[0]):
        return
    letters = match[0]
    code = tokens[index]
    text = code.text + letters if code.text else ""
    tokens[index] = replace(code, raw=code.raw + letters, text=text)
    tokens[index + 1] = without_ends(after, len(letters), 0)


def trimmed_sentence(tokens: Sequence[MarkupToken]) -> tuple[int, list[MarkupToken]]:
    """The tokens without the white space and the tags around a sentence, and its offset.

    The offset counts in the `raw` of all tokens; see `worded_span` for the tags. Elements without
    words become single tags. A line break absorbs the white space around it; any other tag between
    two spaces absorbs one of them.
    """
    # One text is usual, and worth the speed. The rules below are about tags.
    if len(tokens) == 1 and tokens[0].kind == "text" and not tokens[0].closing:
        return trimmed_text(tokens[0])
    begin, end = worded_span(tokens)
    offset = sum(len(token.raw) for token in tokens[:begin])
    inside = without_empty(tokens[begin:end])
    # White space at the ends stays in the file as it is, and so do the tags outside.
    if inside and inside[0].kind == "text":
        offset += len(strip(inside[0], str.lstrip))
    if inside and inside[-1].kind == "text":
        strip(inside[-1], str.rstrip)
    absorb_blanks(inside)
    return offset, inside


def trimmed_text(token: MarkupToken) -> tuple[int, list[MarkupToken]]:
    """A text without the white space around it, and its offset in the whole text."""
    if not has_text(token):
        return 0, []
    text = token.copied()
    offset = len(strip(text, str.lstrip))
    strip(text, str.rstrip)
    return offset, [text]


def worded_span(tokens: Sequence[MarkupToken]) -> tuple[int, int]:
    """The indices of the first token of a sentence and of the token behind its last one.

    The sentence is from the first to the last word. An element around all words stays outside, and
    one around some of them is part of the sentence with both tags: of <p><b>One</b> word.</p>, the
    sentence is <b>One</b> word. Without words, the result is (0, 0).
    """
    # A closing tag that is written differently in a translation must be part of the sentence.
    worded = [index for index, token in enumerate(tokens) if has_text(token) or token.closing]
    if not worded:
        return 0, 0
    first = worded[0]
    last = worded[-1]
    partners = find_pairs(tokens)
    before = range(first)
    behind = range(last + 1, len(tokens))
    # Tags before the first word and behind the last one whose partners are between the words.
    opening_tags = [index for index in before if first < partners.get(index, -1) <= last]
    closing_tags = [index for index in behind if first <= partners.get(index, -1) <= last]
    begin = min(opening_tags, default=first)
    end = max(closing_tags, default=last)
    # An element to drop may enclose the whole sentence, and must not survive around it.
    for index in range(begin):
        if tokens[index].is_dropped and partners.get(index, -1) > end:
            return index, partners[index] + 1
    return begin, end + 1


def without_empty(tokens: Sequence[MarkupToken]) -> list[MarkupToken]:
    """Copies of the tokens in which each element without words is a single tag."""
    partners = find_pairs(tokens)
    # Sums from the start answer for each element, in constant time, whether it has words.
    words_before = [0, *accumulate(map(has_text, tokens))]  # how many precede each token
    result = list[MarkupToken]()
    at = 0
    while at < len(tokens):
        last = partners.get(at, at)
        if last > at and words_before[at] == words_before[last]:
            result.append(as_single_tag(tokens[at : last + 1]))
            at = last + 1
        else:
            result.append(tokens[at].copied())
            at += 1
    return result


def as_single_tag(element: Sequence[MarkupToken]) -> MarkupToken:
    """A tag for an element without words."""
    # A break or blank inside it separates the words around it.
    breaks = any(token.breaks or token.text for token in element)
    raw = "".join(token.raw for token in element)
    is_dropped = all(token.is_dropped for token in element)
    return MarkupToken("point", raw, breaks=breaks, is_dropped=is_dropped)


def absorb_blanks(tokens: Sequence[MarkupToken]) -> None:
    """Move whitespace beside tags into their `raw`, in place."""
    nothing = MarkupToken("point", "")
    padded = [nothing, *tokens, nothing]
    for index, token in enumerate(tokens):
        before = padded[index]
        after = padded[index + 2]
        if token.breaks:
            # The break separates the words already, so the white space is written only with it.
            if after.kind == "text":
                token.raw += strip(after, str.lstrip)
            if before.kind == "text":
                token.raw = strip(before, str.rstrip) + token.raw
        elif token.kind == "point" and before.kind == after.kind == "text":
            # The blank before the tag is enough.
            blanks = strip(after, str.lstrip) if before.text[-1:].isspace() else ""
            token.raw += blanks
