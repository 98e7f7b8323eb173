"""Splitting of lines into sentences: sentencex, plus rules that correct its errors."""

import re
from itertools import accumulate

QUOTES = str.maketrans(dict.fromkeys('"()[]\u00ab\u00bb\u201a\u201c\u201d\u201e\u2039\u203a', " "))
"""Quotes and brackets to hide from sentencex, which never splits inside a pair of them, even a pair of inch marks."""
OPENING = re.compile(r'(?<=\s)(?:["(\[\u00ab\u00bb\u201a\u201c\u201e\u2039\u203a]+|\u00ab\s)$')
TAIL = 80
"""The number of characters at the end of a sentence that the rules examine."""
NUMBER = re.compile(r"\W*(?:\d+|\w)[.)]\s*")
"""The number of a list item."""
ABBREVIATION = re.compile(
    r"\b(?:[Aa]pprox|cf|[Cc]h|e\.g|eds?|[Ee]q|esp|excl|Figs|i\.e|incl|max|min|Ms|resp|Rt|[Tt]el|viz|[Vv]ol|vs|MM?|"
    r"Abb|Anm|Aufl|Bd|Dipl|exkl|geb|gest|Hrsg|inkl|Kap|sog|verh|z\.B|Ziff|zzgl|\u0442\.\u0435)\.$"
)
"""Abbreviations that never end a sentence, in addition to sentencex's."""
NUMBERED = ("bs", "cs", "da", "de", "et", "fi", "hr", "hu", "is", "lv", "nb", "nn", "no", "sk", "sl", "sr", "tr")
"""Languages that write ordinal numbers with a period."""
ORDINAL = re.compile(r"(?:^\w+|\s[^\W\d_A-Z]\w*) \d\d?\.$")
"""A number after the first word or a lowercase word: "Die 5. Klasse", "im 19. Jahrhundert", but not "mit Python 3."."""
LIST_END = re.compile(r"\b(?:etc|usw|u\.\s?s\.\s?w)\.\s+(?=[A-Z])")
"""Abbreviations that may end a sentence, although sentencex never splits after them in some languages."""


def split_sentences(text: str, language: str) -> list[str]:
    """Split a line into sentences with sentencex, plus rules that correct its errors."""
    import sentencex

    ends = {*accumulate(map(len, sentencex.segment(language, text.translate(QUOTES)))), len(text)}
    ends.update(match.end() for match in LIST_END.finditer(text))
    sentences, begin = list[str](), 0
    for end in sorted(ends):
        tail = text[max(begin, end - TAIL) : end]
        if opening := OPENING.search(tail):
            tail = tail[: opening.start()]
            end -= len(opening[0])
        if end == len(text) or is_end(tail, text[end], language):
            sentences.append(text[begin:end])
            begin = end
    return [sentence for sentence in (*sentences, text[begin:]) if sentence.strip()]


def is_end(tail: str, following: str, language: str) -> bool:
    """True if a sentence with this tail really ends before the `following` character, where sentencex splits."""
    stripped = tail.rstrip()
    is_inside = not stripped or (tail == stripped and stripped[-1] in ".([")  # System.IO
    if is_inside or NUMBER.fullmatch(tail) or following in ",;":
        return False
    if not stripped.endswith("."):
        return stripped[-1] in "!?" or not following.islower()  # "What?" she asked
    return not (ABBREVIATION.search(stripped) or (language in NUMBERED and ORDINAL.search(stripped)))
