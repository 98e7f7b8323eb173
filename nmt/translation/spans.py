"""Where the tokens and words of a line and of its translation are, as spans of characters.

Words are the spans that `nmt.text.word_spans` returns. In a script without blanks, a token may
cover several words; in any script, several tokens may cover one word.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from nmt.text import META, TARGET, Tokenizer, origins, word_spans
from nmt.translation.lines import Span

UNDECODED = "\ufffd"
"""The result of decoding a byte without the other bytes of its character."""
FAR = 64
"""The maximum number of characters between two tokens that the vocabulary lacks or respells."""


class Words:
    """The words of a text."""

    def __init__(self, text: str) -> None:
        self.spans = word_spans(text)
        self.begins = [begin for begin, _ in self.spans]
        self.ends = [end for _, end in self.spans]

    def __len__(self) -> int:
        return len(self.spans)

    def at(self, begin: int, end: int) -> range:
        """The words that a span of characters overlaps.

        A span of white space belongs to the word after it, and an empty one to the word that it
        touches. At the end of the text, the last word is returned; only a blank text has no words.
        """
        first = bisect_right(self.ends, begin)
        last = bisect_left(self.begins, end)
        if begin == end:
            # An empty span also touches the word that ends there.
            first = bisect_left(self.ends, begin)
        if first < last:
            return range(first, last)
        first = min(first, len(self) - 1)
        return range(max(first, 0), first + 1)


def token_spans(
    tokenizer: Tokenizer,
    ids: Sequence[int],
    text: str,
    side: int = TARGET,
) -> list[Span]:
    """The span of each token's characters in the text that the tokens spell.

    White space belongs to the token after it. All bytes of a character have the span of that
    character. A token that is not in the text, such as an unknown one, has the span between its
    neighbors.
    """
    spans = list[Span | None]()
    first = 0  # the first token of those that spell a character together
    begin = 0  # where the text of these tokens begins
    at = 0  # where the text that is not spelled yet begins
    symbols = tokenizer.subwords(ids, side)
    for end, symbol in enumerate(symbols, 1):
        # From `first` on: the bytes of one character decode only together.
        piece = tokenizer.decode(ids[first:end], side)
        # A control symbol has no text. A lone blank decodes to nothing, too, but has a place.
        if not piece and not symbol.startswith(META):
            spans.append((at, at))
            continue
        decoded = piece.rstrip(UNDECODED)
        start = begin
        # Decoding strips the blank before a first token.
        if text.startswith(" ", begin) and not piece.startswith(" "):
            start += 1
        is_incomplete = False
        if text.startswith(piece, start):
            stop = start + len(piece)
            spans.append((at, stop))
        elif text.startswith(decoded, start):
            # The last character lacks bytes, which the next tokens spell.
            is_incomplete = True
            stop = start + len(decoded)
            # All bytes of the character get its whole span, which the last one will complete.
            spans.append((at, stop + 1))
        else:
            token = tokenizer.decode(ids[end - 1 : end], side).strip()
            span = span_of_token(token, text, at)
            stop = span[1] if span else at
            spans.append(span)
        at = stop
        if not is_incomplete:
            first = end
            begin = at
    return with_gaps(spans, len(text))


def span_of_token(token: str, text: str, at: int) -> Span | None:
    """The span of a single token near `at`; None if it is not in the text."""
    # Bounded, because a short token such as `a` would be found far behind its place, and because a
    # search to the end for each token would take quadratic time.
    begin = text.find(token, at, at + FAR)
    if not token or begin < 0:
        return None
    return begin, begin + len(token)


def with_gaps(spans: Sequence[Span | None], size: int) -> list[Span]:
    """The spans, with the one between its neighbors for each that is None."""
    next_begins = list[int]()
    following = size
    # From the end, each gap meets the beginning of the next span.
    for span in reversed(spans):
        if span:
            following = span[0]
        next_begins.append(following)
    next_begins.reverse()
    result = list[Span]()
    before = 0
    for span, next_begin in zip(spans, next_begins, strict=True):
        if span:
            before = span[1]
            result.append(span)
        else:
            result.append((before, max(before, next_begin)))
    return result


def places_in(typed: str, clean: Callable[[str], str]) -> list[int]:
    """For each character of the cleaned line, and for its end, its index in the line as typed."""
    # The usual case: each character is in its place.
    if clean(typed) == typed:
        return list(range(len(typed) + 1))
    places = list[int]()
    # By chunk, so that one that cannot be mapped exactly does not spoil the places of the others.
    for chunk in re.finditer(r"\S+", typed):
        begin, end = chunk.span()
        size = len(clean(chunk[0]))
        if not size:
            continue
        exact = origins(chunk[0], clean)
        if exact is None:
            # Spread the characters evenly.
            exact = [number * (end - begin) // size for number in range(size)]
        if places:
            places.append(begin - 1)  # the blank before the chunk
        places += [begin + place for place in exact[:size]]
    places.append(len(typed.rstrip()))
    return places
