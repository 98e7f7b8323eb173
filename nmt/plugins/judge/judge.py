"""`nmt score run=` prints translations' log P under a model, and `nmt score flags=true` counts likely failures.

Flags are based on a translation's text, its source and its token probabilities. Each flag is a rule whose thresholds
human translations rarely exceed: docs/guides/translate.md has the false-alarm rates, and
tests/plugins/judge/test_flags.py has the share of injected failures that are detected.
"""

import json
import math
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from nmt.commands.score import ScoreConfig
from nmt.config import Compute, DecodeConfig, TranslatorOptions, choice, number, require
from nmt.text import CHARACTERS_OF_A_WORD, WITHOUT_BLANKS, clean, parallel, read_texts, script, scripts_of_language

BUFFER = 2000  # pairs held in memory, to be sorted by length and scored in batches


def perplexity(log_probability: float, tokens: int) -> float:
    return math.exp(min(-log_probability / tokens, 700.0))  # `tokens` includes the end symbol


@dataclass
class JudgeConfig:
    """Options for scoring without references."""

    flags: bool = False
    """Count likely failures, such as repetitions and lost numbers."""
    run: list[str] = choice([])
    """Run or list of runs: print the log P of each hypothesis given its source, for example to filter a corpus."""
    target: str | None = None
    """run: target language; only for multilingual models, whose source sentences begin with a language tag."""
    device: str = "auto"
    """run: auto, cpu, cuda, cuda:1, mps."""
    batch_tokens: int | None = number(None, 1, 10**9)
    """run: tokens per batch, counted on the longer side, including padding; null: 2,000 on a CPU,
    16,000 on a GPU."""

    def takes_over(self, config: ScoreConfig) -> bool:
        """Write the scores from the models in `run` and return True, or return False without `run`."""
        if not self.run:
            return False
        name = f"run={','.join(self.run)}"
        require(not self.flags, f"{name}: omit it with flags=true, which needs no model")
        require(config.reference is None and config.examples == 0, f"{name}: omit reference and examples")
        require(bool(config.source), "source: required with run; pass source=FILE")
        self.write_scores((str(config.source), config.hypothesis), config.format)
        return True

    def write_scores(self, names: tuple[str, str], format: str) -> None:
        from rich.console import Console
        from rich.status import Status

        from nmt.translation import load_translator, score_pairs, warn

        compute, decode = Compute("torch", device=self.device), DecodeConfig(batch_tokens=self.batch_tokens)
        translator = load_translator(TranslatorOptions(self.run, compute, self.target, decode=decode), warn)
        lines = parallel(names, [read_texts(name, warn) for name in names])
        pairs = chain(list(islice(lines, 1)), lines)  # reports a missing file before the status line appears
        count, tokens, total = 0, 0, 0.0
        with Status("scoring", console=Console(stderr=True, quiet=sys.stdout.isatty())) as status:
            while block := list(islice(pairs, BUFFER)):
                for score in score_pairs(translator, block):
                    log_probability, length = score.log_probability, len(score.token_log_probabilities)
                    count, tokens, total = count + 1, tokens + length, total + log_probability
                    per_token = perplexity(log_probability, length)
                    if format == "text":
                        row = f"{log_probability:10.4f}  perplexity {per_token:.4f}  {length} tokens"
                    elif format == "tsv":
                        row = f"{count}\t{log_probability:.4f}\t{per_token:.4f}\t{length}"
                    else:
                        numbers = {"log_probability": log_probability, "perplexity": per_token, "length": length}
                        row = json.dumps({"line": count, **numbers, **vars(score)}, ensure_ascii=False)
                    sys.stdout.buffer.write(f"{row}\n".encode())
                sys.stdout.buffer.flush()
                status.update(f"scored {count:,} pairs")
        figures = f"log probability {total:.4f}, perplexity {perplexity(total, max(tokens, 1)):.4f}"
        warn(f"pairs: {count:,}, tokens: {tokens:,}, {figures}")

    def findings(
        self, config: ScoreConfig, language: str, hypotheses: list[str], references: list[str], sources: list[str]
    ) -> dict[str, list[Any]]:
        if not self.flags:
            return {}
        require(config.source is not None, "source: required with flags=true; pass source=FILE")
        scripts = scripts_of_language(language)
        if scripts is None:
            print(f"nmt: language={language or 'null'}: unknown script; wrong_script is not checked", file=sys.stderr)
        return {"flags": count_flags(sources, hypotheses, references, scripts)}


FLAGS = (
    *("empty", "repetition", "copied_source", "number", "url", "placeholder"),
    *("broken_text", "wrong_script", "length_ratio", "low_confidence"),
)
# Phrases of at least this many words (characters in scripts without spaces), up to LONGEST_PHRASE, must not repeat.
PHRASE_WORDS, PHRASE_CHARACTERS, LONGEST_PHRASE = 2, 10, 20
IN_A_ROW = 3  # a phrase of any length, even a single word, must not occur this many times in a row
REPEATED_CHARACTERS = re.compile(r"(\S.{0,9}?)\1{7,}")
# Minimum share of words copied from the source, and minimum words in the translation: fewer may be a name.
COPIED_SHARE, COPIED_WORDS = 0.8, 3
WRONG_LETTERS = 2  # consecutive letters in another script; a single letter may be a symbol
LENGTH_RATIO, LENGTH_SLACK = 1.75, 12.0  # maximum letters on one side: ratio * letters on the other side + slack
LETTERS_OF_A_WORD, LETTERS_OF_A_SYLLABLE = 6.0, 2.0  # how many English letters a word and a Hangul syllable count as
LEAST_PROBABILITY = 0.45  # minimum geometric mean of the probabilities of the tokens and the end symbol
# A replacement character, a byte in sentencepiece's notation, or UTF-8 that was read as Latin-1:
# \u00c3\u00a4 for \u00e4, \u00e2\u20ac\u2122 for an apostrophe. A quotation mark after a capital letter, as in
# MEN\u00dc\u201c, is none of these.
BROKEN = re.compile(
    r"\ufffd|<0x[\dA-F]{2}>"
    r"|[\u00c2\u00c3\u00d0\u00d1][\u0080-\u009f\u00a1-\u00bf\u20ac\u0192\u0160\u0152\u017d\u0161\u0153\u017e\u0178]"
    r"|\u00e2\u20ac[\u0080-\u00bf\u0152\u0153\u02dc\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2122]"
    r"|\u00f0[\u0178\u009f][\u0080-\u00bf\u0152\u0153\u0160\u0161\u0178\u017d\u02dc\u2013-\u203a\u20ac\u2122]"
)
IN_WORDS = 31  # numbers up to this, such as days and hours, are often written in words
FIRST_LINES = 10  # maximum number of line numbers reported per flag

# The bound and the lookbehind keep the time proportional to a line's length, even for thousands of letters or braces.
URL = re.compile(r"\b(?:https?://|ftp://|www\.)(?=\w)[!#-;=?-~]+|[\w.+-]{1,64}+@[\w-]+(?:\.[\w-]+)+")
URL_END = ".,;:!?)]}'*`"
PLACEHOLDER = re.compile(
    r"\$?(?<!\{)\{++[^{}\s]*+\}+|\{\{ [^{}]{1,60} \}\}"  # {name}, {{name}}, ${name}, {{ name }}
    r"|(?<!\w)%(?:\(\w+\)|\d+\$|\{\w+\})?[-+0#]*\d*(?:\.\d+)?[sdifuxXgGcr@](?!\w)"  # %s, %1$s, %(name)d
    r"|</?([A-Za-z][\w-]*)(?:\s+[\w:-]+=(?:\"[^\"]*\"|'[^']*'|[^\s>\"']+))*\s*/?>"  # <b>, </b>, <a href="...">
)
WORD = re.compile(r"[^\W\d_]+")
INTEGER = re.compile(r"\d+|\d{1,3}(\D)(?:\d{2,3}\1)*\d{3}")  # in India, all groups except the last have two digits
PLAIN = r"\d+(?:[.,'\u2019\u066b\u066c]\d+)*"
NUMERALS = re.compile(PLAIN), re.compile(rf"(?<!\d)\d{{1,3}}(?: \d{{3}})+(?!\d)(?:[.,\u066b]\d+)?|{PLAIN}")
"""Two ways to find numerals in a text; the second treats 1 234 as one numeral."""
TWELVE_HOURS = re.compile(r"(\d{1,2})(?:[:.]\d\d)? ?[ap]\.? ?m\b", re.I)


def units(text: str) -> list[str]:
    """A text's words in lowercase, without surrounding punctuation; in scripts without spaces, its characters."""
    spaced = WITHOUT_BLANKS.sub(r" \g<0> ", text.lower())
    return [unit[0] for word in spaced.split() if (unit := re.search(r"[^\W_](?:.*[^\W_])?", word))]


def repetitions(text: str) -> dict[int, int]:
    """Map phrase lengths to the most times that a phrase of that length occurs in a row; omit those without repeats."""
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
    """True if a phrase or character sequence of the translation is repeated more often than any in the source."""
    if REPEATED_CHARACTERS.search(translation) and not REPEATED_CHARACTERS.search(source):
        return True
    shortest = PHRASE_CHARACTERS if WITHOUT_BLANKS.search(translation) else PHRASE_WORDS
    repeated = repetitions(translation).items()
    times = max((times for length, times in repeated if times >= IN_A_ROW or length >= shortest), default=1)
    return times > max(repetitions(source).values(), default=1)


def is_copied(source: str, translation: str) -> bool:
    """True if most words of the translation are copied from the source, and there are too many for a mere name."""
    before, after = ([unit for unit in units(text) if WORD.search(unit)] for text in (source, translation))
    common = (Counter(after) & Counter(before)).total()
    return len(after) >= COPIED_WORDS and common >= COPIED_SHARE * len(after)


def numeral(written: str) -> tuple[set[str], set[str]]:
    """The possible values of a numeral (two for 1.234), and the values of its parts (three for 14.3.2015).

    Values are strings of decimal digits, without leading zeros or trailing zeros after the decimal point.
    """
    # This avoids int(), which rejects thousands of digits.
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
    """The possible values of each numeral in `text` that `other` lacks, even in parts or as a 12-hour time."""
    ways, others = ([[numeral(n) for n in kind.findall(side)] for kind in NUMERALS] for side in (text, other))
    have = {value for way in others for values, parts in way for value in values | parts}
    have |= {str(int(hour) + 12) for hour in TWELVE_HOURS.findall(other)}
    return min(([v for v, parts in way if not (v & have or parts <= have)] for way in ways), key=len)


def is_number_lost(source: str, translation: str) -> bool:
    """True if a translation lacks a number from the source.

    Numbers up to IN_WORDS may be written in words: they count as lost only if the translation has a number that the
    source lacks.
    """
    lost = missing_numerals(source, translation)
    small = all(any(len(value) <= 2 and int(value) <= IN_WORDS for value in values) for values in lost)
    return bool(lost) and (not small or bool(missing_numerals(translation, source)))


def placeholders(text: str) -> Counter[str]:
    """The placeholders in a text; tags are listed without attributes, which may be translated."""
    return Counter(
        f"<{'/' * tag[0].startswith('</')}{tag[1].lower()}>" if tag[1] else tag[0] for tag in PLACEHOLDER.finditer(text)
    )


def is_broken(source: str, translation: str) -> bool:
    """True if a translation has characters that were damaged on the way, more than the source has."""
    return len(BROKEN.findall(translation)) > len(BROKEN.findall(source))


def is_wrong_script(source: str, translation: str, scripts: frozenset[str]) -> bool:
    """True if a run of letters belongs to none of the target language's scripts and does not occur in the source."""
    wrong = [sign if sign.isalpha() and script(sign) not in ("", *scripts) else " " for sign in translation.lower()]
    return any(len(run) >= WRONG_LETTERS and run not in source.lower() for run in "".join(wrong).split())


def letters(text: str) -> float:
    """Count letters and digits; a character of Hangul or a script without spaces counts as several English letters."""
    count: float = sum(map(str.isalnum, text))
    if not text.isascii():
        count += (LETTERS_OF_A_SYLLABLE - 1) * len(re.findall("[\uac00-\ud7a3]", text))
        count += sum((LETTERS_OF_A_WORD / size - 1) * len(kind.findall(text)) for kind, size in CHARACTERS_OF_A_WORD)
    return count


def flags(
    source: str, translation: str, scripts: frozenset[str] | None = None, log_probabilities: Sequence[float] = ()
) -> list[str]:
    """A translation's flags, in the order of FLAGS; an empty translation gets no other flag.

    `scripts` are the target language's, or None if unknown; `log_probabilities` has one value per token, if known.
    """
    source = clean(source)
    translation = clean(translation)
    if not any(map(str.isalnum, translation)) and any(map(str.isalnum, source)):
        return ["empty"]
    # URLs and placeholders have their own rules.
    sides = [PLACEHOLDER.sub(" ", URL.sub(" ", text)) for text in (source, translation)]
    shorter, longer = sorted(map(letters, sides))
    mean = sum(log_probabilities) / len(log_probabilities) if log_probabilities else 0.0
    raised = {
        "repetition": is_repetitive(source, translation),
        "copied_source": is_copied(*sides),
        "number": is_number_lost(*sides),
        "url": any(address.rstrip(URL_END) not in translation for address in URL.findall(source)),
        "placeholder": placeholders(source) != placeholders(translation),
        "broken_text": is_broken(source, translation),
        "wrong_script": scripts is not None and is_wrong_script(source, PLACEHOLDER.sub(" ", translation), scripts),
        "length_ratio": longer > LENGTH_RATIO * shorter + LENGTH_SLACK,
        "low_confidence": mean < math.log(LEAST_PROBABILITY),
    }
    return [flag for flag, is_raised in raised.items() if is_raised]


@dataclass
class FlagCount:
    """How many lines have a flag, and which lines."""

    flag: str  # or "any"
    count: int
    share: float  # of all lines
    reference_share: float | None  # share of references with this flag, an estimate of false alarms; None without any
    lines: list[int]  # line numbers of the first flagged lines, from 1

    def __str__(self) -> str:
        if not self.count and self.flag != "any":
            return ""
        references = "" if self.reference_share is None else f" (references {self.reference_share:.2%})"
        more = ", ..." if self.count > len(self.lines) else ""
        lines = f": lines {', '.join(map(str, self.lines))}{more}" if self.lines else ""
        return f"{self.flag}: {self.count:,}, {self.share:.2%}{references}{lines}"


def count_flags(
    sources: list[str], hypotheses: list[str], references: list[str], scripts: frozenset[str] | None
) -> list[FlagCount]:
    """Count the lines with each flag and with any flag; `references` may be empty."""

    def flagged_lines(translations: list[str]) -> dict[str, list[int]]:
        raised = [flags(*pair, scripts) for pair in zip(sources, translations, strict=True)]
        rows = [*enumerate(([*row, "any"] if row else [] for row in raised), 1)]
        return {flag: [number for number, row in rows if flag in row] for flag in (*FLAGS, "any")}

    alarms, total = flagged_lines(references) if references else {}, max(len(sources), 1)
    return [
        FlagCount(flag, len(at), len(at) / total, len(alarms[flag]) / total if alarms else None, at[:FIRST_LINES])
        for flag, at in flagged_lines(hypotheses).items()
    ]
