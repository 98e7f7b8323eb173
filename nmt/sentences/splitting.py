"""Splitting of lines into sentences: sentencex with corrections, or the rules of a language."""

import re
from itertools import accumulate

from nmt.sentences.by_rules import END, ends_by_rules
from nmt.sentences.enclosures import Enclosure, enclosures, enclosures_around
from nmt.sentences.rules import rules_of
from nmt.text import subtags

QUOTES = str.maketrans(dict.fromkeys('"()[]\u00ab\u00bb\u201a\u201c\u201d\u201e\u2039\u203a', " "))
"""Quotes and brackets to hide from sentencex, which never splits inside a pair of them, even a pair
of inch marks."""
OPENING = re.compile(r'(?<=\s)(?:["(\[\u00ab\u00bb\u201a\u201c\u201e\u2039\u203a]+|\u00ab\s)$')
TAIL = 80
"""The number of characters at the end of a sentence that the rules examine."""
NUMBER = re.compile(r"\W*(?:\d+|\w)[.)]\s*")
"""The number of a list item."""
ABBREVIATION = re.compile(
    r"\b(?:[Aa]pprox|cf|[Cc]h|e\.g|eds?|[Ee]q|esp|excl|Figs|i\.e|incl|max|min|Ms|resp|Rt|[Tt]el|viz|[Vv]ol|vs|MM?|"
    r"Abb|Anm|Aufl|Bd|Dipl|exkl|geb|gest|Hrsg|inkl|Kap|sog|verh|z\.B|Ziff|zzgl)\.$"
)
"""Abbreviations that never end a sentence, in addition to sentencex's."""
NUMBERED = frozenset("bs cs da de et fi hr hu is lv nn no sk sl sr tr".split())  # noqa: SIM905
"""Languages that write ordinal numbers with a period."""
ORDINAL = re.compile(r"(?:^\w+|\s[^\W\d_A-Z]\w*) \d\d?\.$")
"""A number after the first word or a lowercase word: "Die 5. Klasse", "im 19. Jahrhundert", but not
"mit Python 3."."""
LIST_END = re.compile(r"\b(?:etc|usw|u\.\s?s\.\s?w)\.\s+(?=[A-Z])")
"""Abbreviations that may end a sentence, although sentencex never splits after them in some
languages."""
SENTENCEX_MARKS = ".!?\u2026"
"""Marks that sentencex knows well. The others have no other use than to end a sentence."""


def split_sentences(text: str, language: str) -> list[str]:
    """Split a line into sentences, each with the blanks that follow it.

    `language` is a code in any form, such as ja, jpn or zh_CN. Nothing of the text is lost, except
    for parts that are only blanks.
    """
    rules = rules_of(language)
    ends = ends_of_sentencex(text, language) if rules is None else ends_by_rules(text, rules)
    begin = 0
    sentences = []
    for end in [*ends, len(text)]:
        sentences.append(text[begin:end])
        begin = end
    return [sentence for sentence in sentences if sentence.strip()]


def ends_of_sentencex(text: str, language: str) -> list[int]:
    """Where sentences end inside a line, by sentencex and the rules that correct its errors."""
    import sentencex

    language = subtags(language).language
    ends = {*accumulate(map(len, sentencex.segment(language, text.translate(QUOTES))))}
    ends.update(match.end() for match in LIST_END.finditer(text))
    others = (match for match in END.finditer(text) if match[0][0] not in SENTENCEX_MARKS)
    ends.update(match.end() for match in others)
    spans = [span for span in enclosures(text) if not span.is_quote]
    result = []
    begin = 0
    for end in sorted(ends):
        tail = text[max(begin, end - TAIL) : end]
        if opening := OPENING.search(tail):
            tail = tail[: opening.start()]
            end -= len(opening[0])
        if end >= len(text) or is_inside(text, begin, end, spans):
            continue
        if is_end(tail, text[end], language):
            result.append(end)
            begin = end
    return result


def is_inside(text: str, begin: int, end: int, spans: list[Enclosure]) -> bool:
    """True if a sentence from `begin` to `end` would end inside brackets that it had opened after
    its first word."""
    nearby = enclosures_around(spans, end)
    inside = [span for span in nearby if begin < span.begin and end <= span.end]
    return any(text[begin : span.begin].strip() for span in inside)


def is_end(tail: str, following: str, language: str) -> bool:
    """True if a sentence with this tail really ends before the `following` character.

    sentencex splits there.
    """
    stripped = tail.rstrip()
    # As in System.IO.
    is_in_name = not stripped or (tail == stripped and stripped[-1] in ".([")
    if is_in_name or NUMBER.fullmatch(tail) or following in ",;":
        return False
    if not stripped.endswith("."):
        return stripped[-1] in "!?" or not following.islower()  # "What?" she asked
    return not (
        ABBREVIATION.search(stripped) or (language in NUMBERED and ORDINAL.search(stripped))
    )
