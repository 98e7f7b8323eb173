"""Flags of likely failures of a translation: by its text, its source, and the probabilities of its tokens.

Each is a rule with thresholds, chosen such that translations by people seldom break it: docs/translation.md has how
often, and tests/plugins/judge/test_flags.py how many injected failures are detected.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.text import CHARACTERS_OF_A_WORD, WITHOUT_BLANKS, clean, script

FLAGS = (
    *("empty", "repetition", "copied_source", "number", "url", "placeholder"),
    *("wrong_script", "length_ratio", "low_confidence"),
)
PHRASE_WORDS, PHRASE_CHARACTERS, LONGEST_PHRASE = 2, 10, 20
"""A phrase that must not stand twice in a row: least words, or characters in scripts without blanks; most of them."""
IN_A_ROW = 3
"""Repetitions from which on a phrase of any length is too many."""
REPEATED_CHARACTERS = re.compile(r"(\S.{0,9}?)\1{7,}")
COPIED_SHARE, COPIED_WORDS = 0.8, 3
"""Share of the words that are also in the source, and the fewest words that are not taken for a name."""
WRONG_LETTERS = 2
"""Letters in a row of another script; a single one may be a symbol."""
LENGTH_RATIO, LENGTH_SLACK = 1.75, 12.0
"""A side is too long with more letters and digits than the ratio times those of the other and the slack."""
LETTERS_OF_A_WORD, LETTERS_OF_A_SYLLABLE = 6.0, 2.0
"""Letters of an English word, by which those of scripts without blanks are weighed, and of a syllable in Hangul."""
LEAST_PROBABILITY = 0.45
"""Geometric mean of the probabilities of the tokens and the end symbol."""
IN_WORDS = 31
"""Numbers up to this one, such as days and most of the times of day, are often written in words."""
FIRST_LINES = 10
"""Line numbers in the report of a flag."""

URL = re.compile(r"\b(?:https?://|ftp://|www\.)(?=\w)[!#-;=?-~]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
URL_END = ".,;:!?)]}'*`"
PLACEHOLDER = re.compile(
    r"\$?\{+[^{}\s]*\}+|\{\{ [^{}]{1,60} \}\}"  # {name}, {{name}}, ${name}, {{ name }}
    r"|(?<!\w)%(?:\(\w+\)|\d+\$|\{\w+\})?[-+0#]*\d*(?:\.\d+)?[sdifuxXgGcr@](?!\w)"  # %s, %1$s, %(name)d
    r"|</?([A-Za-z][\w-]*)(?:\s+[\w:-]+=(?:\"[^\"]*\"|'[^']*'|[^\s>\"']+))*\s*/?>"  # <b>, </b>, <a href="...">
)
WORD = re.compile(r"[^\W\d_]+")
INTEGER = re.compile(r"\d+|\d{1,3}(\D)(?:\d{2,3}\1)*\d{3}")  # in India, all groups but the last have two digits
PLAIN = r"\d+(?:[.,'\u2019\u066b\u066c]\d+)*"
NUMERALS = re.compile(PLAIN), re.compile(rf"(?<!\d)\d{{1,3}}(?: \d{{3}})+(?!\d)(?:[.,\u066b]\d+)?|{PLAIN}")
"""Two ways to find the numerals of a text: in the second, 1 234 is one."""
TWELVE_HOURS = re.compile(r"(\d{1,2})(?:[:.]\d\d)? ?[ap]\.? ?m\b", re.I)


def units(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation around them; in scripts without blanks, its characters."""
    spaced = WITHOUT_BLANKS.sub(r" \g<0> ", text.lower())
    return [unit for word in spaced.split() if (unit := re.sub(r"^[\W_]+|[\W_]+$", "", word))]


def repetitions(text: str) -> dict[int, int]:
    """How often phrases of each length stand in a row, at most, for lengths of which one stands there twice."""
    items, most = units(text), dict[int, int]()
    for length in range(1, min(LONGEST_PHRASE, len(items) // 2) + 1) if len(set(items)) < len(items) else ():
        run = longest = 0
        for item, before in zip(items[length:], items, strict=False):
            run = run + 1 if item == before else 0
            longest = max(longest, run)
        if longest >= length:
            most[length] = longest // length + 1
    return most


def is_repetitive(source: str, translation: str) -> bool:
    """True for a phrase or characters that are repeated, and more often than any in the source."""
    if REPEATED_CHARACTERS.search(translation) and not REPEATED_CHARACTERS.search(source):
        return True
    shortest = PHRASE_CHARACTERS if WITHOUT_BLANKS.search(translation) else PHRASE_WORDS
    repeated = repetitions(translation).items()
    times = max((times for length, times in repeated if times >= IN_A_ROW or length >= shortest), default=1)
    return times > max(repetitions(source).values(), default=1)


def is_copied(source: str, translation: str) -> bool:
    """True where most words are those of the source, so many that it is no name."""
    before, after = ([unit for unit in units(text) if WORD.search(unit)] for text in (source, translation))
    common = (Counter(after) & Counter(before)).total()
    return len(after) >= COPIED_WORDS and common >= COPIED_SHARE * len(after)


def numeral(written: str) -> tuple[set[str], set[str]]:
    """The possible values of a numeral, of which 1.234 has two, and those of the parts of 14.3.2015.

    Values are in decimal digits, without leading zeros and without zeros after the last decimal.
    """
    # Digits of any script become those of ASCII; not by int(), which refuses thousands of digits.
    written = "".join(str(unicodedata.decimal(sign)) if sign.isdecimal() else sign for sign in written)
    *whole, decimals = re.split(r"\D(?=\d+$)", written)

    def integer(digits: str) -> str:
        return re.sub(r"\D", "", digits).lstrip("0") or "0"

    values = {integer(written)} if INTEGER.fullmatch(written) else set()
    mark = written[-len(decimals) - 1 : -len(decimals)]
    if whole and mark not in whole[0] and INTEGER.fullmatch(whole[0]):
        values.add(f"{integer(whole[0])}.{decimals}".rstrip("0").rstrip("."))
    return values, set(map(integer, re.split(r"\D", written)))


def missing_numerals(text: str, other: str) -> list[set[str]]:
    """The values of the numerals of a text that another does not have: as such, in parts, or as hours after noon."""
    ways, others = ([[numeral(n) for n in kind.findall(side)] for kind in NUMERALS] for side in (text, other))
    have = {value for way in others for values, parts in way for value in values | parts}
    have |= {str(int(hour) + 12) for hour in TWELVE_HOURS.findall(other)}
    return min(([v for v, parts in way if not (v & have or parts <= have)] for way in ways), key=len)


def is_number_lost(source: str, translation: str) -> bool:
    """True where a translation lacks a number of the source, or has another one instead.

    A number up to IN_WORDS that is just missing may be there in words: it is lost only if there is a number that the
    source does not have.
    """
    lost = missing_numerals(source, translation)
    small = all(any(len(value) <= 2 and int(value) <= IN_WORDS for value in values) for values in lost)
    return bool(lost) and (not small or bool(missing_numerals(translation, source)))


def placeholders(text: str) -> Counter[str]:
    """The placeholders of a text; of a tag the name alone, as its attributes may be translated."""
    return Counter(
        f"<{'/' * tag[0].startswith('</')}{tag[1].lower()}>" if tag[1] else tag[0] for tag in PLACEHOLDER.finditer(text)
    )


def is_wrong_script(source: str, translation: str, scripts: frozenset[str]) -> bool:
    """True for letters in a row of a script that is not among these, unless the source has them."""
    wrong = [sign if sign.isalpha() and script(sign) not in ("", *scripts) else " " for sign in translation.lower()]
    return any(len(run) >= WRONG_LETTERS and run not in source.lower() for run in "".join(wrong).split())


def letters(text: str) -> float:
    """The letters and digits of a text, those of scripts without blanks weighed as so many of English."""
    count: float = sum(map(str.isalnum, text))
    if not text.isascii():
        count += (LETTERS_OF_A_SYLLABLE - 1) * len(re.findall("[\uac00-\ud7a3]", text))
        count += sum((LETTERS_OF_A_WORD / size - 1) * len(kind.findall(text)) for kind, size in CHARACTERS_OF_A_WORD)
    return count


def flags(
    source: str, translation: str, scripts: frozenset[str] | None = None, log_probabilities: Sequence[float] = ()
) -> list[str]:
    """The flags of a translation, in the order of FLAGS; of an empty one, that alone.

    `scripts` are those of the target language, None if they are not known, and `log_probabilities` those of the tokens,
    none if no model was asked.
    """
    source, translation = clean(source), clean(translation)
    if not any(map(str.isalnum, translation)) and any(map(str.isalnum, source)):
        return ["empty"]
    # Addresses and placeholders have rules of their own.
    sides = [PLACEHOLDER.sub(" ", URL.sub(" ", text)) for text in (source, translation)]
    shorter, longer = sorted(map(letters, sides))
    mean = sum(log_probabilities) / len(log_probabilities) if log_probabilities else 0.0
    raised = {
        "repetition": is_repetitive(source, translation),
        "copied_source": is_copied(*sides),
        "number": is_number_lost(*sides),
        "url": any(address.rstrip(URL_END) not in translation for address in URL.findall(source)),
        "placeholder": placeholders(source) != placeholders(translation),
        "wrong_script": scripts is not None and is_wrong_script(source, PLACEHOLDER.sub(" ", translation), scripts),
        "length_ratio": longer > LENGTH_RATIO * shorter + LENGTH_SLACK,
        "low_confidence": mean < math.log(LEAST_PROBABILITY),
    }
    return [flag for flag, is_raised in raised.items() if is_raised]


@dataclass
class FlagCount:
    """How many lines have a flag, or any."""

    flag: str
    count: int
    share: float
    """Of all lines, 0 to 1."""
    reference_share: float | None
    """Share of the references that have it, as a measure of false alarms; None without references."""
    lines: list[int]
    """Numbers of the first lines that have it, from 1."""

    def __str__(self) -> str:
        """A line of text; empty for a flag that no line has."""
        if not self.count and self.flag != "any":
            return ""
        references = "" if self.reference_share is None else f" (references {self.reference_share:.2%})"
        more = ", ..." if self.count > len(self.lines) else ""
        lines = f": lines {', '.join(map(str, self.lines))}{more}" if self.lines else ""
        return f"{self.flag}: {self.count:,}, {self.share:.2%}{references}{lines}"


def count_flags(
    sources: list[str], hypotheses: list[str], references: list[str], scripts: frozenset[str] | None
) -> list[FlagCount]:
    """The counts of each flag, and of lines with any, in translations and in their references, if there are any."""

    def flagged_lines(translations: list[str]) -> dict[str, list[int]]:
        raised = [flags(*pair, scripts) for pair in zip(sources, translations, strict=True)]
        lines = {flag: [number for number, row in enumerate(raised, 1) if flag in row] for flag in FLAGS}
        return {**lines, "any": [number for number, row in enumerate(raised, 1) if row]}

    alarms, total = flagged_lines(references) if references else {}, max(len(sources), 1)
    return [
        FlagCount(flag, len(at), len(at) / total, len(alarms[flag]) / total if alarms else None, at[:FIRST_LINES])
        for flag, at in flagged_lines(hypotheses).items()
    ]
