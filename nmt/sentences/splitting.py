"""Splitting of lines into sentences: sentencex with corrections, or the rules of a language."""

import re

from nmt.sentences.by_rules import ends_by_rules
from nmt.sentences.enclosures import Enclosure, enclosures, enclosures_around
from nmt.sentences.last_words import last_word
from nmt.sentences.marks import END
from nmt.sentences.rules import rules_of
from nmt.text import subtags

QUOTES = str.maketrans(dict.fromkeys('"()[]\u00ab\u00bb\u201a\u201c\u201d\u201e\u2039\u203a', " "))
"""Quotes and brackets to hide from sentencex.

It never splits inside a pair of them, even a pair of inch marks.
"""
OPENING = re.compile(r'(?<=\s)(?:["(\[\u00ab\u00bb\u201a\u201c\u201e\u2039\u203a]+|\u00ab\s)$')
TAIL = 80
"""The number of characters at the end of a sentence that the rules examine."""
NUMBER = re.compile(r"\W*(?:\d+|\w)[.)]\s*")
"""The number of a list item."""
ENGLISH = (
    r"[Aa]pprox|cf|[Cc]h|e\.g|eds?|[Ee]q|esp|excl|Figs|i\.e|incl|max|min|Ms|resp|Rt"
    r"|[Tt]el|viz|[Vv]ol|vs"
)
FRENCH = r"MM?"
GERMAN = r"Abb|Anm|Aufl|Bd|Dipl|exkl|geb|gest|Hrsg|inkl|Kap|sog|verh|z\.B|Ziff|zzgl"
ABBREVIATION = re.compile(rf"\b(?:{ENGLISH}|{FRENCH}|{GERMAN})\.$")
"""Abbreviations that never end a sentence, in addition to sentencex's."""
NUMBERED = frozenset(
    [
        "bs",
        "cs",
        "da",
        "de",
        "et",
        "fi",
        "hr",
        "hu",
        "is",
        "lv",
        "nn",
        "no",
        "sk",
        "sl",
        "sr",
        "tr",
    ]
)
"""Languages that write ordinal numbers with a period."""
ORDINAL = re.compile(r"(?:^\w+|\s[^\W\d_A-Z]\w*) \d\d?\.$")
"""A number after the first word or a lowercase word.

For example in "Die 5. Klasse" and "im 19. Jahrhundert", but not in "mit Python 3.".
"""
LIST_END = re.compile(r"\b(?:etc|usw|u\.\s?s\.\s?w)\.\s+(?=[A-Z])")
"""Abbreviations that may end a sentence.

In some languages, sentencex never splits after them.
"""
SENTENCEX_MARKS = ".!?\u2026"
"""Marks that sentencex knows well. All other marks are used only to end a sentence."""


def split_sentences(text: str, language: str) -> list[str]:
    """Split a line into sentences, each with the blanks that follow it.

    `language` is a code in any form, such as ja, jpn or zh_CN. Nothing of the text is lost, except
    for parts that are only blanks.
    """
    rules = rules_of(language)
    ends = ends_by_rules(text, rules) if rules else ends_of_sentencex(text, language)
    begin = 0
    sentences = []
    for end in [*ends, len(text)]:
        sentences.append(text[begin:end])
        begin = end
    return [sentence for sentence in sentences if sentence.strip()]


def ends_of_sentencex(text: str, language: str) -> list[int]:
    """Where sentences end inside a line, by sentencex and the rules that correct its errors."""
    language = subtags(language).language
    # Quotes may contain several sentences, which are split. Brackets stay in their sentence.
    brackets = [span for span in enclosures(text) if not span.is_quote]
    result = []
    begin = 0
    for end in sorted(candidates_of_sentencex(text, language)):
        tail = text[max(begin, end - TAIL) : end]
        # A quotation mark or bracket that opens the next sentence belongs to it.
        opening = OPENING.search(tail)
        if opening:
            tail = tail[: opening.start()]
            end -= len(opening[0])
        if end >= len(text) or is_inside(text, begin, end, brackets):
            continue
        if is_end(tail, text[end], language):
            result.append(end)
            begin = end
    return result


def candidates_of_sentencex(text: str, language: str) -> set[int]:
    """Where sentences may end: by sentencex, after items of lists, and after marks it lacks."""
    import sentencex

    candidates = set[int]()
    end = 0
    # `translate` replaces each character by one other, so lengths are those in the line.
    for sentence in sentencex.segment(language, text.translate(QUOTES)):
        end += len(sentence)
        candidates.add(end)
    for pattern in (LIST_END, last_word(language)):
        candidates.update(match.end() for match in pattern.finditer(text))
    for match in END.finditer(text):
        if match[0][0] not in SENTENCEX_MARKS:
            candidates.add(match.end())
    return candidates


def is_inside(text: str, begin: int, end: int, brackets: list[Enclosure]) -> bool:
    """True if a sentence from `begin` to `end` would end inside brackets.

    Brackets that the sentence opened before its first word do not matter.
    """
    for span in enclosures_around(brackets, end):
        is_within = begin < span.begin and end <= span.end
        if is_within and text[begin : span.begin].strip():
            return True
    return False


def is_end(tail: str, following: str, language: str) -> bool:
    """True if a sentence with this tail really ends before the `following` character.

    sentencex splits there.
    """
    stripped = tail.rstrip()
    if not stripped or following in ",;":
        return False
    has_blank = tail != stripped
    if not has_blank and stripped[-1] in ".([":  # as in System.IO
        return False
    # A number alone belongs to the item after it.
    if NUMBER.fullmatch(tail):
        return False
    if not stripped.endswith("."):
        return stripped[-1] in "!?" or not following.islower()  # "What?" she asked
    if ABBREVIATION.search(stripped):
        return False
    return language not in NUMBERED or not ORDINAL.search(stripped)
