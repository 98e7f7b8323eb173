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
"""How many characters the vocabulary may lack, or spell in another way, between two tokens.

With a limit, short tokens are not found far behind their place, and a line takes linear time.
"""


class Words:
    """The words of a text, which have the numbers 0, 1, and so on.

    For example, `Words("see you").at(1, 5)` is range(0, 2), because both words have characters in
    this span.
    """

    def __init__(self, text: str) -> None:
        self.spans = word_spans(text)
        self.begins = [begin for begin, _ in self.spans]
        self.ends = [end for _, end in self.spans]

    def __len__(self) -> int:
        return len(self.spans)

    def at(self, begin: int, end: int) -> range:
        """The words that a span of characters overlaps.

        A span of white space belongs to the word after it. An empty span belongs to the word that
        contains it or ends there, otherwise to the next word. At the end of the text, there is no
        next word, and the last one is returned. A blank text has no words.
        """
        first = bisect_right(self.ends, begin)  # the first word that ends after `begin`
        if begin == end:
            first = bisect_left(self.ends, begin)  # at `begin` or after it
        stop = bisect_left(self.begins, end)  # the first word that begins at `end` or after it
        if first < stop:
            return range(first, stop)
        # No word overlaps the span, so `first` is the one after it.
        if not self.spans:
            return range(0)
        nearest = min(first, len(self) - 1)
        return range(nearest, nearest + 1)


def token_spans(
    tokenizer: Tokenizer,
    ids: Sequence[int],
    text: str,
    side: int = TARGET,
) -> list[Span]:
    """The span of each token's characters in the text that the tokens spell.

    White space belongs to the token after it. All bytes of a character have the span of that
    character. A token that is not in the text, such as an unknown one, has the span between its
    neighbors. For example, if `Hé du` has the tokens `▁H`, two for the bytes of `é`, and `▁du`,
    their spans are (0, 1), (1, 2), (1, 2) and (2, 5).
    """
    spans = list[Span | None]()
    # Tokens that spell a character together, byte by byte, are a group: they decode only together.
    group = 0  # the index of its first token
    group_begin = 0  # where its text begins
    spelled = 0  # the end of what all tokens so far spell
    for index, symbol in enumerate(tokenizer.subwords(ids, side)):
        piece = tokenizer.decode(ids[group : index + 1], side)
        # A control symbol has no text. A lone blank decodes to nothing, too, but has a place.
        if not piece and not symbol.startswith(META):
            spans.append((spelled, spelled))
            continue
        start = group_begin
        # Decoding strips the blank before a first token.
        if text.startswith(" ", start) and not piece.startswith(" "):
            start += 1
        whole_characters = piece.rstrip(UNDECODED)
        lacks_bytes = False
        if text.startswith(piece, start):
            stop = start + len(piece)
            spans.append((spelled, stop))
        elif text.startswith(whole_characters, start):
            # The last character lacks bytes, which the next tokens spell. Its span is already the
            # whole character, which only the last byte counts as spelled.
            lacks_bytes = True
            stop = start + len(whole_characters)
            spans.append((spelled, stop + 1))
        else:
            token = tokenizer.decode(ids[index : index + 1], side).strip()
            span = span_of_token(token, text, spelled)
            stop = span[1] if span else spelled
            spans.append(span)
        spelled = stop
        # The next token begins a new group, unless it completes this one.
        if not lacks_bytes:
            group = index + 1
            group_begin = spelled
    return with_gaps(spans, len(text))


def span_of_token(token: str, text: str, start: int) -> Span | None:
    """The span of a single token that begins at `start` or soon after; None if there is none."""
    begin = text.find(token, start, start + FAR)
    if not token or begin < 0:
        return None
    return begin, begin + len(token)


def with_gaps(spans: Sequence[Span | None], size: int) -> list[Span]:
    """Replace each None with the span between its neighbors, in a text of `size` characters.

    For example, with (0, 2), None and (3, 5), None becomes (2, 3).
    """
    # For each span, where the next one that is not None begins, found from the end.
    next_begins = list[int]()
    next_begin = size
    for span in reversed(spans):
        if span:
            next_begin = span[0]
        next_begins.append(next_begin)
    next_begins.reverse()
    result = list[Span]()
    last_end = 0
    for span, next_begin in zip(spans, next_begins, strict=True):
        if span:
            last_end = span[1]
            result.append(span)
        else:
            result.append((last_end, max(last_end, next_begin)))
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
