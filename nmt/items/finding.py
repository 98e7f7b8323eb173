"""Items that a translation must keep unchanged, in lines and in their translations."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nmt.errors import NMTError
from nmt.items.addresses import Surroundings
from nmt.items.directives import DIRECTIVE, as_in_source
from nmt.items.forms import (
    JOINED_DIRECTIVE,
    NUMERIC,
    edges,
    is_measure,
    pattern_of,
    with_narrow_numbers,
)
from nmt.items.measures import Measures, ascii_digits, is_whole
from nmt.items.patterns import (
    ADDRESS,
    AFTER_ARGUMENT,
    ALL,
    ARGUMENT,
    BEFORE_ARGUMENT,
    BEFORE_GLUE,
    COUNTED,
    GLUE,
    OPENING,
    PLACEHOLDER,
    SIGN,
    WHOLE,
)
from nmt.items.times import TIME, standard_time
from nmt.text import WITHOUT_BLANKS, script, single_blanks

USUAL = "usual"
TAG_DISTANCE = 400  # in characters, between two tags in braces
SECONDS = 2  # the time limit per line for a user's regular expression
NOTHING = "(?!)"
Span = tuple[int, int]
COPIES, BLANK = "".join(map(chr, range(0x10E000, 0x10E7FF))), "\U0010e7ff"
"""Private-use characters. The first ones enclose what a document copies; see `copy_of`."""
COPY = re.compile(rf"([{COPIES[0]}-{COPIES[-1]}])(?:([^\s{COPIES[0]}-{COPIES[-1]}]*)\1)?")
LONGEST_COPY = 60  # characters; a model is shown only shorter texts


class Finder:
    """Finds protected items: matches of the user's patterns first, then the usual kinds."""

    def __init__(self, kinds: Sequence[str]) -> None:
        custom = [kind for kind in kinds if kind != USUAL]
        if custom:
            import regex  # unlike re, supports a time limit

            custom = [regex.compile(kind) for kind in custom]
        self.patterns = [*custom, *([ALL] if USUAL in kinds else [])]

    def stretches(self, line: str) -> list[Span]:
        """The spans of a line's items, in order; adjacent items are merged."""
        taken = bytearray(len(line))
        for pattern in self.patterns:
            earlier = bytes(taken)  # by patterns of the user
            for start, end in usual_spans(line) if pattern is ALL else spans(pattern, line):
                if end > start and not any(earlier[start:end]):
                    taken[start:end] = b"\1" * (end - start)
        # Last, because an item may contain copies, but no item may end inside one.
        for copy in () if line.isascii() else COPY.finditer(line):
            taken[copy.start() : copy.end()] = b"\1" * len(copy[0])
        return [match.span() for match in re.finditer(b"\1+", taken)]


def spans(pattern: Any, line: str) -> list[Span]:
    """The spans of the matches of a user's pattern; NMTError if it takes too long."""
    try:
        return [match.span() for match in pattern.finditer(line, timeout=SECONDS)]
    except TimeoutError as error:
        problem = f"takes more than {SECONDS} s for a line of {len(line):,} characters"
        raise NMTError(f"protect={pattern.pattern}: {problem}; avoid nested repetitions") from error


def usual_spans(line: str) -> list[Span]:
    """The spans of the usual kinds of items, which may be empty or overlap."""
    found = list[Span]()
    if not SIGN.search(line):
        return found
    surroundings = None if line.isascii() else Surroundings(line)
    at = 0
    while match := ALL.search(line, at):
        start, end = match.span()
        at = max(end, start + 1)
        if WHOLE.match(line, start):
            if surroundings and ADDRESS.match(line, start):
                start, end = surroundings.without_words(start, end)
                # Further items may stand in what is left.
                at = max(end, at if end == start else start + 1)
            if end > start:
                found.append(whole_word(line, start, end))
        elif joins_words(line, start, end):
            found.append(whole_argument(line, start, end))
        else:
            found.append((start, end))
    return found


def whole_word(line: str, start: int, end: int) -> Span:
    """The span of a version, name or address with what a hyphen, plus or tilde joins to it.

    An example is 1.2-4ubuntu5.
    """
    joined = GLUE.match(line, end)
    end = start + len(without_marks(line[start : joined.end() if joined else end]))
    before = BEFORE_GLUE.search(line[max(start - 200, 0) : start])
    return start - len(before[0] if before else ""), end


def joins_words(line: str, start: int, end: int) -> bool:
    """Whether the characters next to a placeholder belong to it, unlike those next to %% or {b}."""
    opening = OPENING.fullmatch(line, start, end)
    is_tag = opening is not None and f"{{/{opening[1]}}}" in line[end : end + TAG_DISTANCE]
    return bool(ARGUMENT.match(line, start)) and line[start:end] != "%%" and not is_tag


def whole_argument(line: str, start: int, end: int) -> Span:
    """The span of a placeholder, including what is joined to it and, for `%s', its quotes."""
    before, joined = (
        BEFORE_ARGUMENT.search(line[max(start - 200, 0) : start]),
        AFTER_ARGUMENT.match(line, end),
    )
    begin = start - len(before[0] if before else "")
    end = max(end, begin + len(without_marks(line[begin : joined.end() if joined else end])))
    quoted = line[begin - 1 : begin] == "`" and line[end : end + 1] == "'"
    return begin - quoted, end + quoted


def without_marks(address: str) -> str:
    """Strip sentence punctuation from the end of an address.

    A closing bracket stays if the address also opens it.
    """
    while address and address[-1] in ".,;:!?)]}'*`\"([{":
        opening = {")": "(", "]": "[", "}": "{"}.get(address[-1])
        if opening and address.count(opening) >= address.count(address[-1]):
            break
        address = address[:-1]
    return address


def copy_of(mark: str, text: str) -> str:
    """An item, without blanks, for something that a document copies.

    `text` is what a model may see in its place.
    """
    text = re.sub(f"[{COPIES[0]}-{BLANK}]", "", " ".join(text.split()))
    if len(text) > LONGEST_COPY or not any(map(str.isalnum, text)):
        return mark
    return f"{mark}{text.replace(' ', BLANK)}{mark}"


def readable(text: str, otherwise: str = "\u2026") -> str:
    """The text with what its copies show; `otherwise` stands for copies that show nothing."""
    return COPY.sub(lambda copy: (copy[2] or otherwise).replace(BLANK, " "), text)


def item(line: str, stretch: Span) -> str:
    """An item's text, with white space collapsed as in every translation."""
    return single_blanks(line[slice(*stretch)])


class Items:
    """Finds the items of a line in its translations."""

    def __init__(self, line: str, stretches: Sequence[Span]) -> None:
        self.line, self.texts = single_blanks(line), [item(line, stretch) for stretch in stretches]
        measures = list[str]()
        guards = dict[str, tuple[str, str]]()
        """The edges that every occurrence of an item in the source has."""
        for text, stretch in zip(self.texts, stretches, strict=True):
            if is_measure(line, stretch):
                measures.append(text)
                continue
            before, after = edges(line, stretch)
            other_before, other_after = guards.get(text, (before, after))
            guards[text] = min(before, other_before), min(after, other_after)
        alternatives = sorted(guards, key=len, reverse=True)
        # No groups: each would take time at every position.
        self.literals = dict[str, str]()
        self.joined = dict[str, str]()
        """The same for texts without blanks between words."""
        self.names = dict[str, str]()
        self.times = dict[str, str]()
        for text in alternatives:
            before, after = guards[text]
            self.literals[text] = before + pattern_of(text) + after
            if DIRECTIVE.fullmatch(text) and after:
                after = JOINED_DIRECTIVE
            self.joined[text] = before + pattern_of(text) + after
            self.names[text] = text
            if NUMERIC.fullmatch(text):
                self.names[ascii_digits(text)] = text
            if TIME.fullmatch(text):
                self.times.setdefault(standard_time(text), text)
        self.measures = Measures(measures)
        self.patterns = dict[tuple[frozenset[str], bool], re.Pattern[str]]()
        self.pattern = self.pattern_for("")
        # An item's text may also occur outside items, such as the second $x in $x$x; it must stay
        # there, too.
        expected, in_line = (
            [self.name_of(text) or text for text in self.texts],
            self.find(self.line),
        )
        self.expected = in_line if Counter(in_line) >= Counter(expected) else expected

    def pattern_for(self, text: str) -> re.Pattern[str]:
        """A pattern for the items, with measurements in the forms of the text's scripts.

        It also matches other measurements with the same units.
        """
        scripts = frozenset[str]()
        if self.measures.units and not text.isascii():
            scripts = frozenset(map(script, {*text})) - {"", "LATIN"}
        without_blanks = not text.isascii() and WITHOUT_BLANKS.search(text) is not None
        key = scripts, without_blanks
        if key not in self.patterns:
            literals = self.joined if without_blanks else self.literals
            patterns = [*literals.values(), *self.measures.patterns(sorted(scripts))]
            self.patterns[key] = re.compile("|".join(patterns) or NOTHING)
        return self.patterns[key]

    def name_of(self, text: str) -> str | None:
        """The line's own text for an item in any form; None for other text."""
        literal = self.names.get(text) or self.names.get(ascii_digits(text))
        if literal:
            return literal
        if self.measures.units and (measure := self.measures.text_of(text)):
            return measure
        return self.times.get(standard_time(text)) if self.times else None

    def which(self, match: re.Match[str]) -> str | None:
        """The item that a match of the pattern is; None if it is none of the line."""
        name = self.name_of(match[0])
        return name if name in self.literals or is_whole(match) else None

    def replaced(self, text: str, texts: Sequence[str]) -> str:
        """The text with its items, which must be distinct, replaced with `texts`."""
        others = dict(zip(self.texts, texts, strict=True))
        return self.substituted(text, others)

    def substituted(self, text: str, others: Mapping[str, str]) -> str:
        def other(match: re.Match[str]) -> str:
            name = self.which(match)
            return match[0] if name is None else others[name]

        return self.pattern_for(text).sub(other, text)

    def find(self, text: str) -> list[str]:
        """The items found in a text, in order, except where they are part of something longer."""
        names = map(self.which, self.pattern_for(text).finditer(text))
        return [name for name in names if name is not None]

    def arrive(self, text: str) -> bool:
        """Whether a text has exactly the source's items and no other placeholder.

        Placeholders that take the next argument, such as %s, must be in order, unless the text
        numbers them.
        """
        if self.has_items(text):
            return True
        folded_text = with_narrow_numbers(text)
        if folded_text != text and self.has_items(folded_text):
            return True
        reordered = as_in_source(self.line, folded_text)
        return reordered is not None and self.has_items(reordered, in_order=False)

    def has_items(self, text: str, *, in_order: bool = True) -> bool:
        """Whether a text has exactly the source's items and no other placeholder."""
        items = self.find(text)
        if Counter(items) != Counter(self.expected):
            return False
        rest = self.without(text)
        if any(other[0] not in self.line for other in PLACEHOLDER.finditer(rest)):
            return False
        counted = [list(filter(is_counted, side)) for side in (items, self.expected)]
        return not in_order or counted[0] == counted[1]

    def without(self, text: str) -> str:
        """The text with a blank in the place of each item."""
        return self.substituted(text, dict.fromkeys([*self.texts, *self.literals], " "))


def replaced(line: str, stretches: Iterable[Span], names: Iterable[str]) -> tuple[str, list[Span]]:
    """Replace a line's stretches, given in order, with names.

    Returns the new line and the spans of the names.
    """
    text, last, places = "", 0, list[Span]()
    for (start, end), name in zip(stretches, names, strict=True):
        text += line[last:start]
        places.append((len(text), len(text) + len(name)))
        text, last = text + name, end
    return text + line[last:], places


def is_counted(text: str) -> bool:
    """True for a placeholder that takes the next argument: %s or {}, but not %(name)s or {0}."""
    return bool(COUNTED.match(text))


def hidden(line: str, stretches: Sequence[Span]) -> str:
    """The line with each character of its stretches replaced with a null character."""
    return replaced(line, stretches, ["\0" * (end - start) for start, end in stretches])[0]
