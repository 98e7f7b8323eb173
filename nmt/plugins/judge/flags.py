"""Flags of likely failures of a translation: by its text, its source, and the probabilities of its tokens.

Each is a rule with thresholds, chosen such that translations by people seldom break it: docs/translation.md has how
often, and tests/plugins/judge/test_flags.py how many injected failures are detected.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.plugins.judge.numerals import is_number_lost
from nmt.text import CHARACTERS_OF_A_WORD, WITHOUT_BLANKS, clean, script

FLAGS = (
    *("empty", "repetition", "copied_source", "number", "url", "placeholder"),
    *("wrong_script", "length_ratio", "low_confidence"),
)
PHRASE_WORDS, LONGEST_PHRASE = 2, 20
"""Words in a phrase that must not stand twice in a row: from, to."""
PHRASE_CHARACTERS = 10
"""In scripts without blanks, fewest characters of such a phrase."""
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
FIRST_LINES = 10
"""Line numbers in the report of a flag."""

URL = re.compile(r"\b(?:https?://|ftp://|www\.)(?=\w)[!#-;=?-~]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
URL_END = ".,;:!?)]}'*`"
PLACEHOLDER = re.compile(
    r"\$?\{+[^{}\s]*\}+|\{\{ [^{}]{1,60} \}\}"  # {name}, {{name}}, ${name}, {{ name }}
    r"|(?<!\w)%(?:\(\w+\)|\d+\$|\{\w+\})?[-+0#]*\d*(?:\.\d+)?[sdifuxXgGcr@](?!\w)"  # %s, %1$s, %(name)d
    r"|</?([A-Za-z][\w-]*)(?:\s+[\w:-]+=(?:\"[^\"]*\"|'[^']*'|[^\s>\"']+))*\s*/?>"  # <b>, </b>, <a href="...">
)
EDGES = re.compile(r"^[\W_]+|[\W_]+$")
WORD = re.compile(r"[^\W\d_]+")
HANGUL = re.compile("[\uac00-\ud7a3]")


def units(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation around them; in scripts without blanks, its characters."""
    spaced = WITHOUT_BLANKS.sub(r" \g<0> ", text.lower())
    return [unit for word in spaced.split() if (unit := EDGES.sub("", word))]


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
    common = sum((Counter(after) & Counter(before)).values())
    return len(after) >= COPIED_WORDS and common >= COPIED_SHARE * len(after)


def placeholders(text: str) -> Counter[str]:
    """The placeholders of a text; of a tag the name alone, as its attributes may be translated."""
    matches = PLACEHOLDER.finditer(text)
    return Counter(
        f"<{'/' * match[0].startswith('</')}{match[1].lower()}>" if match[1] else match[0] for match in matches
    )


def is_wrong_script(source: str, translation: str, scripts: frozenset[str]) -> bool:
    """True for letters in a row of a script that is not among these, unless the source has them."""
    source = source.lower()
    for word in WORD.findall(translation.lower()):
        wrong = "".join(letter if script(letter) not in ("", *scripts) else " " for letter in word).split()
        if any(len(letters) >= WRONG_LETTERS and letters not in source for letters in wrong):
            return True
    return False


def letters(text: str) -> float:
    """The letters and digits of a text, those of scripts without blanks weighed as so many of English."""
    count: float = sum(map(str.isalnum, text))
    if not text.isascii():
        count += (LETTERS_OF_A_SYLLABLE - 1) * len(HANGUL.findall(text))
        count += sum((LETTERS_OF_A_WORD / size - 1) * len(kind.findall(text)) for kind, size in CHARACTERS_OF_A_WORD)
    return count


def flags(
    source: str, translation: str, scripts: frozenset[str] | None = None, log_probabilities: Sequence[float] = ()
) -> list[str]:
    """The flags of a translation, in the order of FLAGS; of an empty one, that alone.

    `scripts` are those of the target language (nmt/text/scripts.py), None if they are not known, and
    `log_probabilities` those of the tokens, none if no model was asked.
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
    """How many lines have a flag."""

    flag: str
    """One of FLAGS, or any."""
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


def flagged_lines(sources: list[str], translations: list[str], scripts: frozenset[str] | None) -> dict[str, list[int]]:
    """The numbers of the lines that have each flag, or any, from 1."""
    flagged = dict[str, list[int]]({flag: [] for flag in (*FLAGS, "any")})
    for number, pair in enumerate(zip(sources, translations, strict=True), 1):
        raised = flags(*pair, scripts)
        for flag in [*raised, "any"] if raised else []:
            flagged[flag].append(number)
    return flagged


def count_flags(
    sources: list[str], hypotheses: list[str], references: list[str], scripts: frozenset[str] | None
) -> list[FlagCount]:
    """The counts of each flag, and of lines with any, in translations and in their references, if there are any."""
    alarms = flagged_lines(sources, references, scripts) if references else {}
    total = max(len(sources), 1)
    return [
        FlagCount(flag, len(at), len(at) / total, len(alarms[flag]) / total if alarms else None, at[:FIRST_LINES])
        for flag, at in flagged_lines(sources, hypotheses, scripts).items()
    ]
