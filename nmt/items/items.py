"""Find the items of a line in its translations, which must keep them unchanged."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from nmt.items.directives import DIRECTIVE, as_in_source
from nmt.items.forms import (
    JOINED_DIRECTIVE,
    NUMERIC,
    Span,
    edges,
    is_measure,
    pattern_of,
    with_narrow_numbers,
)
from nmt.items.measures import Measures, ascii_digits, is_whole
from nmt.items.patterns import COUNTED, PLACEHOLDER
from nmt.items.times import TIME, standard_time
from nmt.text import WITHOUT_BLANKS, script, single_blanks

NOTHING = "(?!)"
"""A pattern that matches nothing."""


def item(line: str, stretch: Span) -> str:
    """An item's text, with white space collapsed as in every translation."""
    start, end = stretch
    return single_blanks(line[start:end])


class Items:
    """Finds the items of a line in its translations."""

    def __init__(self, line: str, stretches: Sequence[Span]) -> None:
        self.line = single_blanks(line)
        self.texts = [item(line, stretch) for stretch in stretches]
        self.literals = dict[str, str]()
        """The pattern of each item that is not a measurement."""
        self.joined = dict[str, str]()
        """The patterns of the same items for texts without blanks between words."""
        self.names = dict[str, str]()
        """The text of each of these items, as it is and with ASCII digits -> its own text."""
        self.times = dict[str, str]()
        """Maps the standard form of each time of day to its own text."""
        measures = list[str]()
        # Item -> the lookarounds before and after it (see `edges`).
        guards = dict[str, tuple[str, str]]()
        for text, stretch in zip(self.texts, stretches, strict=True):
            if is_measure(line, stretch):
                measures.append(text)
                continue
            before, after = edges(line, stretch)
            other_before, other_after = guards.get(text, (before, after))
            # An occurrence inside something longer has no guard, "", which is the minimum. Then the
            # other occurrences have none, either.
            guards[text] = min(before, other_before), min(after, other_after)
        # The longest first, because an item may begin with a shorter item.
        for text in sorted(guards, key=len, reverse=True):
            self.add_literal(text, *guards[text])
        self.measures = Measures(measures)
        self.patterns = dict[tuple[frozenset[str], bool], re.Pattern[str]]()
        self.pattern = self.pattern_for("")
        # An item's text may also occur outside items, such as the second $x in $x$x; it must stay
        # there, too.
        expected = [self.name_of(text) or text for text in self.texts]
        in_line = self.find(self.line)
        self.expected = in_line if Counter(in_line) >= Counter(expected) else expected

    def add_literal(self, text: str, before: str, after: str) -> None:
        """Add an item that is not a measurement, with lookarounds for what may adjoin it."""
        # No groups: each would take time at every position.
        pattern = pattern_of(text)
        self.literals[text] = before + pattern + after
        if DIRECTIVE.fullmatch(text) and after:
            after = JOINED_DIRECTIVE
        self.joined[text] = before + pattern + after
        self.names[text] = text
        if NUMERIC.fullmatch(text):
            self.names[ascii_digits(text)] = text
        if TIME.fullmatch(text):
            self.times.setdefault(standard_time(text), text)

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
        if self.measures.units:
            measure = self.measures.text_of(text)
            if measure:
                return measure
        if self.times:
            return self.times.get(standard_time(text))
        return None

    def which(self, match: re.Match[str]) -> str | None:
        """The line's item that a match of the pattern is; None if it is something else."""
        name = self.name_of(match[0])
        if name in self.literals or is_whole(match):
            return name
        return None  # a measurement that is the beginning of a longer word

    def replaced(self, text: str, texts: Sequence[str]) -> str:
        """The text with its items, which must be distinct, replaced with `texts`."""
        return self.substituted(text, dict(zip(self.texts, texts, strict=True)))

    def substituted(self, text: str, replacements: Mapping[str, str]) -> str:
        """The text with each of its items replaced as a mapping says."""

        def replacement(match: re.Match[str]) -> str:
            name = self.which(match)
            return match[0] if name is None else replacements[name]

        return self.pattern_for(text).sub(replacement, text)

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
        for placeholder in PLACEHOLDER.finditer(rest):
            if placeholder[0] not in self.line:
                return False
        if not in_order:
            return True
        return counted_items(items) == counted_items(self.expected)

    def without(self, text: str) -> str:
        """The text with a blank in the place of each item."""
        return self.substituted(text, dict.fromkeys([*self.texts, *self.literals], " "))


def counted_items(texts: Iterable[str]) -> list[str]:
    """The items that are placeholders for the next argument."""
    return [text for text in texts if is_counted(text)]


def is_counted(text: str) -> bool:
    """True for a placeholder that takes the next argument: %s or {}, but not %(name)s or {0}."""
    return bool(COUNTED.match(text))


def replaced(line: str, stretches: Iterable[Span], names: Iterable[str]) -> tuple[str, list[Span]]:
    """Replace a line's stretches, given in order, with names.

    Returns the new line and the spans of the names.
    """
    text = ""
    spans = list[Span]()
    end_before = 0
    for (start, end), name in zip(stretches, names, strict=True):
        text += line[end_before:start]
        spans.append((len(text), len(text) + len(name)))
        text += name
        end_before = end
    return text + line[end_before:], spans


def hidden(line: str, stretches: Sequence[Span]) -> str:
    """The line with each character of its stretches replaced with a null character."""
    nulls = ["\0" * (end - start) for start, end in stretches]
    text, _ = replaced(line, stretches, nulls)
    return text
