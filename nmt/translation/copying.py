"""Find the stretches of a line that a model cannot read, which are copied to the translation."""

import re
from itertools import chain

import regex

from nmt.text import WITHOUT_BLANKS
from nmt.translation.lines import Span

MARKUP_TAG = re.compile(r"</?[^\W\d_][^<>]*>")
"""A markup tag, unlike `a < b`."""
LETTER = rf"(?!{WITHOUT_BLANKS.pattern})[\p{{L}}\p{{N}}]"
COPIED_UNIT = regex.compile(
    rf"(?:{LETTER}\p{{M}}*+[\u200c\u200d]*+(?:['\u2019\u02bc\u05f3\u05f4](?={LETTER}))?+)++|\X"
)
"""A word with its accents, joiners and apostrophes (also Hebrew's), in scripts that separate words
with spaces; otherwise a grapheme cluster."""
PUNCTUATION_BEFORE = regex.compile(r"(?r)[\p{P}--[_]]+", regex.VERSION1)
"""Matches backwards, from the end."""
PUNCTUATION_AFTER = regex.compile(r"[\p{P}--[_]]+", regex.VERSION1)


def copied_spans(
    line: str,
    characters: frozenset[str] | None,
    cut_at: frozenset[str] = frozenset(),
) -> list[Span]:
    """Spans to copy, in order: characters unknown to the model or in `cut_at`, with their context.

    The context is the tag or word around a character. In scripts without spaces between words, and
    among symbols, it is only the grapheme cluster.

    Spans with no letter or digit between them are joined. The first span begins with the line if no
    letter or digit precedes it; likewise, the last span ends with the line if none follows.
    """
    # Most lines have only known characters. Sets show that without running a pattern on the line.
    used = set(line)
    unknown = used & cut_at
    if characters is not None:
        unknown |= used - characters
    if not unknown:
        return []
    spans = list[Span]()
    # A word may also be inside a tag; joining the spans removes what they have in common.
    for unit in chain(MARKUP_TAG.finditer(line), COPIED_UNIT.finditer(line)):
        if not unknown.isdisjoint(unit[0]):
            # The model could not translate the rest of a word or tag by itself.
            spans.append(with_punctuation(line, unit.span()))
    return joined_spans(line, sorted(spans))


def with_punctuation(line: str, span: Span) -> Span:
    """A span with the punctuation that directly adjoins it.

    A model would lose this punctuation without the words beside it.
    """
    begin, end = span
    # `(?r)` matches backwards from `begin`; a forward
    # search would be quadratic in the line's length.
    before = PUNCTUATION_BEFORE.match(line, 0, begin)
    if before:
        begin = before.start()
    after = PUNCTUATION_AFTER.match(line, end)
    if after:
        end = after.end()
    return begin, end


def joined_spans(line: str, spans: list[Span]) -> list[Span]:
    """Sorted spans, which may overlap, without gaps that have no letter or digit."""
    joined = list[Span]()
    last = 0
    for begin, end in spans:
        # Between two copies, punctuation alone would become
        # a segment that gives the model nothing to read.
        if is_without_words(line[last:begin]):
            begin = joined.pop()[0] if joined else 0
        # A word within a tag ends before the tag does.
        last = max(last, end)
        joined.append((begin, last))
    if is_without_words(line[last:]):
        joined[-1] = joined[-1][0], len(line)
    return joined


def is_without_words(text: str) -> bool:
    return not any(map(str.isalnum, text))
