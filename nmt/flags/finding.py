"""Flags for likely failures of a translation, from its text, its source and token probabilities.

Each flag is a rule whose thresholds human translations rarely exceed. docs/guides/translate.md has
the false-alarm rates, and tests/core/test_flags.py has the share of injected failures that are
detected.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.flags.numbers import is_number_lost
from nmt.flags.placeholders import (
    is_placeholder_wrong,
    with_distinct_placeholders,
    without_placeholders,
)
from nmt.flags.wording import (
    english_letters,
    is_copied,
    is_other_chinese,
    is_repetitive,
    is_wrong_script,
)
from nmt.text import clean

FLAGS = (
    "empty",
    "repetition",
    "copied_source",
    "number",
    "url",
    "placeholder",
    "broken_text",
    "wrong_script",
    "length_ratio",
    "low_confidence",
)
ANY = "any"
"""The key in counts for lines with at least one flag."""
LENGTH_RATIO = 2.0
LENGTH_SLACK = 20.0
"""The maximum number of letters on one side: ratio * letters on the other side + slack."""
LEAST_PROBABILITY = 0.45
"""The minimum geometric mean of the probabilities of the tokens and the end symbol."""
# A replacement character, a byte in sentencepiece's notation, or UTF-8 that was read as Latin-1:
# \u00c3\u00a4 for \u00e4, \u00e2\u20ac\u2122 for an apostrophe. A quotation mark after a capital
# letter, as in MEN\u00dc\u201c, is none of these.
BROKEN = re.compile(
    r"\ufffd|<0x[\dA-F]{2}>"
    r"|[\u00c2\u00c3\u00d0\u00d1]"
    r"[\u0080-\u009f\u00a1-\u00bf\u20ac\u0192\u0160\u0152\u017d\u0161\u0153\u017e\u0178]"
    r"|\u00e2\u20ac"
    r"[\u0080-\u00bf\u0152\u0153\u02dc\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2122]"
    r"|\u00f0[\u0178\u009f]"
    r"[\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u02dc\u2013-\u203a\u20ac\u2122]"
)
CONTINUATION = (
    r"[\u0080-\u00bf\u20ac\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u017d"
    r"\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u017e\u0178]"
)
"""A byte of UTF-8 after the first one of a character, read as Latin-1 or Windows-1252."""
BROKEN_LETTERS = re.compile(
    rf"(?:[\u00c2-\u00df]{CONTINUATION}"
    rf"|[\u00e0-\u00ef]{CONTINUATION}{{2}}|[\u00f0-\u00f4]{CONTINUATION}{{3}}){{2,}}"
)
"""Two or more characters in a row that were read so. A single one may be right: `\u00e0 \u00bb`."""
FIRST_LINES = 10
"""The maximum number of line numbers that a message has per flag."""
URL = re.compile(
    r"(?<![A-Za-z0-9])(?:https?://|ftp://|www\.)(?=\w)[!#-;=?-~]+"
    r"|[A-Za-z0-9_.+-]{1,64}+@[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+"
)
URL_END = ".,;:!?)]}'*`"


def broken_parts(text: str) -> int:
    """The number of parts of a text that were damaged by conversions."""
    return len(BROKEN.findall(text)) + len(BROKEN_LETTERS.findall(text))


def is_broken(source: str, translation: str) -> bool:
    """True if a translation has more damaged characters than the source."""
    # More than the source: a translation may copy characters that are damaged there.
    return broken_parts(translation) > broken_parts(source)


def flags(
    source: str,
    translation: str,
    scripts: frozenset[str] | None = None,
    log_probabilities: Sequence[float] = (),
    language: str = "",
) -> list[str]:
    """A translation's flags, in the order of FLAGS; an empty translation gets no other flag.

    `scripts` are the target language's, or None if unknown. `log_probabilities` has one value per
    token, if known. `language` is the code of the target language; zh_TW, for example, states that
    simplified characters are wrong.
    """
    # Cleaning removes some of the bytes that reveal broken text.
    is_broken_text = is_broken(source, translation)
    source = clean(source)
    translation = clean(translation)
    # Broken text is not empty, although it may have no letter.
    has_letters = any(map(str.isalnum, translation)) or is_broken_text
    if not has_letters and any(map(str.isalnum, source)):
        return ["empty"]
    # URLs and placeholders have their own rules.
    before = without_placeholders(URL.sub(" ", source))
    after = without_placeholders(URL.sub(" ", translation))
    # Both directions count: text that was dropped, and text that the model invented.
    shorter, longer = sorted((english_letters(before), english_letters(after)))
    # The Latin names of placeholders are right in any script.
    without_names = without_placeholders(translation)
    # The mean of logarithms is the logarithm of the
    # geometric mean, which does not depend on length.
    mean = sum(log_probabilities) / len(log_probabilities) if log_probabilities else 0.0
    is_foreign = scripts is not None and is_wrong_script(source, without_names, scripts)
    # A period or bracket after a URL usually belongs to the sentence.
    addresses = [address.rstrip(URL_END) for address in URL.findall(source)]
    raised = {
        "repetition": is_repetitive(
            with_distinct_placeholders(source),
            with_distinct_placeholders(translation),
        ),
        "copied_source": is_copied(before, after, scripts),
        "number": is_number_lost(before, after),
        "url": any(address not in translation for address in addresses),
        "placeholder": is_placeholder_wrong(source, translation),
        "broken_text": is_broken_text,
        "wrong_script": is_foreign or is_other_chinese(source, translation, language),
        "length_ratio": longer > LENGTH_RATIO * shorter + LENGTH_SLACK,
        "low_confidence": mean < math.log(LEAST_PROBABILITY),
    }
    return [flag for flag, is_raised in raised.items() if is_raised]


@dataclass
class FlagCount:
    """The share of lines with a flag, and the first such lines."""

    flag: str  # or ANY
    count: int
    share: float  # of all lines
    reference_share: float | None  # share of flagged references: false alarms; None without any
    lines: list[int]  # line numbers of the first flagged lines, from 1

    def __str__(self) -> str:
        if not self.count and self.flag != ANY:
            return ""
        text = f"{self.flag}: {self.count:,}, {self.share:.2%}"
        if self.reference_share is not None:
            text += f" (references {self.reference_share:.2%})"
        if self.lines:
            text += f": lines {', '.join(map(str, self.lines))}"
        if self.count > len(self.lines):
            text += ", ..."
        return text


def count_flags(
    sources: list[str],
    hypotheses: list[str],
    references: list[str],
    scripts: frozenset[str] | None,
    language: str,
) -> list[FlagCount]:
    """Count the lines with each flag and with any flag; `references` may be empty.

    `language` is the code of the target language.
    """

    def flagged_lines(translations: list[str]) -> dict[str, list[int]]:
        lines: dict[str, list[int]] = {flag: [] for flag in (*FLAGS, ANY)}
        for number, pair in enumerate(zip(sources, translations, strict=True), 1):
            # Without probabilities, which a file of translations does not have.
            raised = flags(*pair, scripts, language=language)
            for flag in raised:
                lines[flag].append(number)
            if raised:
                lines[ANY].append(number)
        return lines

    # People wrote the references, so flags on them show how often a rule errs on such text.
    false_alarms = flagged_lines(references) if references else None
    total = max(len(sources), 1)
    counts = []
    for flag, lines in flagged_lines(hypotheses).items():
        reference_share = None
        if false_alarms is not None:
            reference_share = len(false_alarms[flag]) / total
        count = len(lines)
        counts.append(FlagCount(flag, count, count / total, reference_share, lines[:FIRST_LINES]))
    return counts
