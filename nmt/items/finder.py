"""Finds the items in a line that its translation must keep unchanged."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from nmt.errors import NMTError
from nmt.items.addresses import Surroundings
from nmt.items.copies import COPY
from nmt.items.forms import Span
from nmt.items.patterns import (
    ADDRESS,
    AFTER_ARGUMENT,
    ALL,
    ANY_SIGN,
    ARGUMENT,
    BEFORE_ARGUMENT,
    BEFORE_GLUE,
    GLUE,
    OPENING,
    SIGN,
    WHOLE,
)

USUAL = "usual"
TAG_DISTANCE = 400  # in characters, between two tags in braces
MOST_BEFORE = 200  # characters before an item that may belong to it
SECONDS = 2  # the time limit per line for a user's regular expression
FINAL_MARKS = ".,;:!?)]}'*`\"([{"
OPENING_BRACKETS = {")": "(", "]": "[", "}": "{"}


class Finder:
    """Finds protected items: matches of the user's patterns first, then the usual kinds."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.patterns: list[Any] = []
        custom = [kind for kind in kinds if kind != USUAL]
        if custom:
            import regex  # unlike re, supports a time limit

            self.patterns += [regex.compile(kind) for kind in custom]
        if USUAL in kinds:
            self.patterns.append(ALL)

    def stretches(self, line: str) -> list[Span]:
        """The spans of a line's items, in order; adjacent items are merged."""
        taken = bytearray(len(line))
        for pattern in self.patterns:
            mark_free_spans(taken, usual_spans(line) if pattern is ALL else spans(pattern, line))
        if not line.isascii():
            # Last, because an item may contain copies, but no item may end inside one.
            for copy in COPY.finditer(line):
                taken[copy.start() : copy.end()] = b"\1" * len(copy[0])
        return [match.span() for match in re.finditer(b"\1+", taken)]


def mark_free_spans(taken: bytearray, spans: Iterable[Span]) -> None:
    """Set the characters of spans to 1, except of those that overlap with what was set before.

    The spans themselves may overlap.
    """
    before = bytes(taken)
    for start, end in spans:
        if end > start and not any(before[start:end]):
            taken[start:end] = b"\1" * (end - start)


def spans(pattern: Any, line: str) -> list[Span]:
    """The spans of the matches of a user's pattern; NMTError if it takes too long."""
    try:
        return [match.span() for match in pattern.finditer(line, timeout=SECONDS)]
    except TimeoutError as error:
        problem = f"takes more than {SECONDS} s for a line of {len(line):,} characters"
        raise NMTError(f"protect={pattern.pattern}: {problem}; avoid nested repetitions") from error


def usual_spans(line: str) -> list[Span]:
    """The spans of the usual kinds of items, which may be empty or overlap."""
    spans = list[Span]()
    if not SIGN.search(line):
        return spans
    # In ASCII, no letters of other scripts adjoin an address.
    surroundings = None if line.isascii() else Surroundings(line)
    # Where the search for the next item begins.
    at = 0
    while match := next_usual(line, at):
        start, end = match.span()
        at = max(end, start + 1)
        if WHOLE.match(line, start):
            if surroundings and ADDRESS.match(line, start):
                start, end = surroundings.without_words(start, end)
                # Further items may stand in the words after a shortened address.
                if end > start:
                    at = max(end, start + 1)
            if end > start:
                spans.append(whole_word(line, start, end))
        elif joins_words(line, start, end):
            spans.append(whole_argument(line, start, end))
        else:
            spans.append((start, end))
    return spans


def next_usual(line: str, at: int) -> re.Match[str] | None:
    """The first match of ALL from an index of a line, which `ALL.search` finds more slowly."""
    while sign := ANY_SIGN.search(line, at):
        # An item begins in the word of its first sign or, as in "€ 10", in the word before it.
        word = line.rfind(" ", at, sign.start())
        begin = max(at, line.rfind(" ", at, max(word, at)))
        for index in range(begin, sign.start() + 1):
            match = ALL.match(line, index)
            if match:
                return match
        at = sign.start() + 1
    return None


def whole_word(line: str, start: int, end: int) -> Span:
    """The span of a version, name or address with what a hyphen, plus or tilde joins to it.

    An example is 1.2-4ubuntu5.
    """
    begin = start_of(BEFORE_GLUE, line, start)
    joined = GLUE.match(line, end)
    if joined:
        end = joined.end()
    return begin, start + len(without_marks(line[start:end]))


def start_of(before: re.Pattern[str], line: str, start: int) -> int:
    """Where an item begins, together with what a pattern joins to it on the left."""
    joined = before.search(line[max(start - MOST_BEFORE, 0) : start])
    return start - len(joined[0]) if joined else start


def joins_words(line: str, start: int, end: int) -> bool:
    """Whether the characters next to a placeholder belong to it, unlike those next to %% or {b}."""
    if line[start:end] == "%%" or not ARGUMENT.match(line, start):
        return False
    tag = OPENING.fullmatch(line, start, end)
    return tag is None or f"{{/{tag[1]}}}" not in line[end : end + TAG_DISTANCE]


def whole_argument(line: str, start: int, end: int) -> Span:
    """The span of a placeholder, including what is joined to it and, for `%s', its quotes."""
    begin = start_of(BEFORE_ARGUMENT, line, start)
    joined = AFTER_ARGUMENT.match(line, end)
    end_of_joined = joined.end() if joined else end
    # The placeholder itself may end with what looks like punctuation.
    end = max(end, begin + len(without_marks(line[begin:end_of_joined])))
    if line[begin - 1 : begin] == "`" and line[end : end + 1] == "'":
        return begin - 1, end + 1
    return begin, end


def without_marks(address: str) -> str:
    """Strip sentence punctuation from the end of an address.

    A closing bracket stays if the address also opens it.
    """
    while address and address[-1] in FINAL_MARKS:
        opening = OPENING_BRACKETS.get(address[-1])
        if opening and address.count(opening) >= address.count(address[-1]):
            break
        address = address[:-1]
    return address
