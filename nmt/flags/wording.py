"""What the words of a translation reveal: repetitions, a copied source, and the wrong language."""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import regex

from nmt.text import (
    HAN,
    HANGUL,
    KANA,
    SPELLING,
    WITHOUT_BLANKS,
    foreign_han,
    script,
    subtags,
    word_spans,
)

IN_A_ROW = 3
"""A phrase of any length, even a single word, must not occur this many times in a row."""
PHRASE_WORDS = 2
PHRASE_CHARACTERS = 10
"""A phrase of at least this many words, or characters in scripts without blanks, must not occur
twice in a row."""
SHORT_PHRASE = 20
WINDOW = 8
"""Longer phrases are found by windows of 8 units that recur, in time proportional to the text."""
REPEATED_LETTERS = 9
"""In scripts without blanks, a repeated word has at least this many letters in all, because many
words consist of repeated characters."""
REPEATED_CHARACTERS = regex.compile(r"(\S.{0,9}?)\1{7,}")
COPIED_SHARE = 0.8
"""The share of a translation's letters in words from the source."""
COPIED_WORDS = 3
COPIED_CHARACTERS = 10
"""Fewer copied words, or characters in scripts without blanks, may be a name."""
COPIED_LOWERCASE = 2
"""The same for lowercase words of a translation that is in a foreign script as a whole."""
WRONG_LETTERS = 2
"""Consecutive letters of a foreign script. A single letter may be a symbol."""
FOREIGN_WORDS = 4
"""Consecutive lowercase Latin words in a translation into another script. Names and terms of up to
three words often stay in Latin letters."""
FOREIGN_WORDS_IN_SHORT = 3
"""The same where most of the translation is foreign."""
HAN_IN_KOREAN = 6
"""Consecutive Han characters. Chinese names and proverbs have up to four."""
HAN_WITHOUT_KANA = 12
"""Han characters in a Japanese translation without kana. Names of institutions are shorter."""
FOREIGN_HAN = 2
"""Characters of another writing of Han. A single one may be in a name."""
PHRASE_ACROSS_CLAUSES = 3
"""A phrase of this many words must not occur twice in a row with a punctuation mark between them:
`Present value. The present value of payments` is right in languages without articles."""
WITHOUT_PUNCTUATION = regex.compile(r"[\p{L}\p{N}](?:.*[\p{L}\p{M}\p{N}])?")
CLAUSE_ENDS = ".,;:!?\u2026\u060c\u061b\u061f\u06d4\u0964\u3001\u3002\uff0c\uff01\uff1a\uff1b\uff1f"
LETTER = regex.compile(r"\p{L}")
IN_BRACKETS = regex.compile(
    r"\"[^\"]*\"|\([^()]*\)"
    r"|\uff08[^\uff08\uff09]*\uff09|\u201c[^\u201c\u201d]*\u201d|\u00ab[^\u00ab\u00bb]*\u00bb"
)
"""What is in brackets or quotes, which often repeats a term of the source."""
HAN_RUN = regex.compile(f"[{HAN}]+")
LETTERS_OF_A_CHARACTER = (
    (regex.compile(f"[{HAN}]"), 3.0),
    (regex.compile(f"[{KANA}]"), 1.5),
    (regex.compile(f"[{HANGUL}]"), 2.0),
)
"""How many English letters a character corresponds to."""
IN_HANGUL = regex.compile(f"[{HANGUL}]")
IN_KANA = regex.compile(f"[{KANA}]")


class Unit(NamedTuple):
    """A word, or in scripts without blanks, a character."""

    text: str  # in lower case, without punctuation
    ends_clause: bool  # whether a punctuation mark follows


def units(text: str) -> list[Unit]:
    """The words or characters of a text."""
    lowered = text.lower()
    found = []
    for begin, end in word_spans(lowered):
        unit = WITHOUT_PUNCTUATION.search(lowered, begin, end)
        if unit:
            found.append(Unit(unit[0], unit.end() < end and lowered[end - 1] in CLAUSE_ENDS))
    return found


@dataclass
class Repetition:
    """A phrase that occurs several times in a row."""

    length: int  # in units
    times: int
    letters: int  # of all occurrences together
    is_divided: bool  # whether a clause ends between the first two occurrences


def lengths_to_examine(items: list[str]) -> list[int]:
    """The lengths of phrases that may occur twice in a row."""
    lengths = range(1, min(SHORT_PHRASE, len(items) // 2) + 1)
    latest: dict[tuple[str, ...], int] = {}
    distances = set[int]()
    for index in range(len(items) - WINDOW + 1):
        window = tuple(items[index : index + WINDOW])
        distances.add(index - latest.get(window, index))
        latest[window] = index
    return [*lengths, *sorted(distance for distance in distances if distance > SHORT_PHRASE)]


def repetitions(text: str) -> Iterator[Repetition]:
    """The longest repetition of each phrase length."""
    sequence = units(text)
    items = [unit.text for unit in sequence]
    if len(set(items)) == len(items):
        return
    for length in lengths_to_examine(items):
        run = longest = end = 0
        for index, item in enumerate(items[length:], length):
            run = run + 1 if item == items[index - length] else 0
            if run > longest:
                longest = run
                end = index + 1
        if longest >= length:
            times = longest // length + 1
            begin = end - longest - length
            letters = sum(map(len, items[begin : begin + times * length]))
            yield Repetition(length, times, letters, sequence[begin + length - 1].ends_clause)


def is_repetitive(source: str, translation: str) -> bool:
    """True if a phrase or character sequence is repeated more often than any in the source."""
    if REPEATED_CHARACTERS.search(translation) and not REPEATED_CHARACTERS.search(source):
        return True
    has_blanks = not WITHOUT_BLANKS.search(translation)
    times = 1
    for repetition in repetitions(translation):
        shortest = PHRASE_CHARACTERS
        if has_blanks:
            shortest = PHRASE_ACROSS_CLAUSES if repetition.is_divided else PHRASE_WORDS
        is_long = has_blanks or repetition.letters >= REPEATED_LETTERS
        if (repetition.times >= IN_A_ROW and is_long) or repetition.length >= shortest:
            times = max(times, repetition.times)
    return times > max((repetition.times for repetition in repetitions(source)), default=1)


def is_copied(source: str, translation: str, scripts: frozenset[str] | None) -> bool:
    """True if most of a translation is copied from the source, and is too long for a mere name.

    Foreign words count only in a phrase of lowercase words, because names keep their script.
    """
    before = [unit.text for unit in units(source) if LETTER.search(unit.text)]
    after = [unit.text for unit in units(translation) if LETTER.search(unit.text)]
    common = Counter(after) & Counter(before)
    least = COPIED_CHARACTERS if WITHOUT_BLANKS.search(translation) else COPIED_WORDS
    copied = sum(len(unit) * count for unit, count in common.items())
    if common.total() < least or copied < COPIED_SHARE * sum(map(len, after)):
        return False
    if scripts is None or any(script(letter) in scripts for unit in common for letter in unit):
        return True
    has_right_letters = any(script(letter) in scripts for letter in translation)
    least = FOREIGN_WORDS_IN_SHORT if has_right_letters else COPIED_LOWERCASE
    return any(lowercase(words) >= least for words in foreign_phrases(translation, scripts))


def foreign_phrases(text: str, scripts: frozenset[str]) -> list[list[str]]:
    """Consecutive words whose letters are in none of the `scripts`, without digits or punctuation.

    Hyphens end a phrase, too, because file names and commands have them.
    """
    kept = ["\n"] * len(text)
    is_in_word = False
    for at, sign in enumerate(text):
        if sign.isalpha():
            is_in_word = script(sign) not in ("", *scripts)
        elif not unicodedata.category(sign).startswith("M"):
            is_in_word = False
        if is_in_word or sign in " '\u2019":
            kept[at] = sign
    phrases = [line.split() for line in "".join(kept).split("\n")]
    return [words for words in phrases if any(map(LETTER.search, words))]


def is_latin(word: str) -> bool:
    return any(script(letter) == "LATIN" for letter in word)


def lowercase(words: list[str]) -> int:
    """The number of words without capitals and of more than a letter: names have capitals."""
    return sum(len(word) > 1 and word == word.lower() for word in words)


def is_wrong_script(source: str, translation: str, scripts: frozenset[str]) -> bool:
    """True if a translation, or a part of it, is in a script that the target language does not use.

    Letters of another script than Latin are wrong unless the source has the word. In translations
    into another script, Latin letters are usual in names, terms and abbreviations, but not in
    several lowercase words, nor as the whole translation.
    """
    folded = source.lower()
    phrases = foreign_phrases(translation, scripts)
    for word in (word for words in phrases for word in words if not is_latin(word)):
        if len(LETTER.findall(word)) >= WRONG_LETTERS and word.lower() not in folded:
            return True
    if is_latin_instead(folded, translation, scripts):
        return True
    return is_han_instead(folded, translation, scripts)


def is_latin_instead(source: str, translation: str, scripts: frozenset[str]) -> bool:
    """True if Latin words, beyond names and terms, replace a translation or a part of it.

    `source` is in lower case.
    """
    phrases = foreign_phrases(translation, scripts)
    phrases = [words for words in phrases if any(map(is_latin, words))]
    if not phrases:
        return False
    right = sum(script(sign) in scripts for sign in translation)
    if right == 0:
        words = [word for words in phrases for word in words]
        return any(word[1:].islower() and word.lower() not in source for word in words)
    outside = foreign_phrases(IN_BRACKETS.sub("\n", translation), scripts)
    most = max(map(lowercase, outside), default=0)
    foreign = sum(len(word) for words in phrases for word in words)
    is_mostly_foreign = foreign > english_letters(translation) - foreign
    return most >= (FOREIGN_WORDS_IN_SHORT if is_mostly_foreign else FOREIGN_WORDS)


def is_han_instead(source: str, translation: str, scripts: frozenset[str]) -> bool:
    """True if Chinese replaces a Korean or Japanese translation or a part of it.

    `source` is in lower case. Both languages also use Han characters themselves.
    """
    runs = [run for run in HAN_RUN.findall(translation) if run not in source]
    if "HANGUL" in scripts:
        is_most = sum(map(len, runs)) > max(len(IN_HANGUL.findall(translation)), HAN_IN_KOREAN // 2)
        return is_most or any(len(run) >= HAN_IN_KOREAN for run in runs)
    if "HIRAGANA" in scripts:
        foreign = foreign_han("".join(runs), "Jpan")
        if IN_KANA.search(translation):
            return foreign >= FOREIGN_HAN
        return foreign > 0 or sum(map(len, runs)) >= HAN_WITHOUT_KANA
    return False


def is_other_chinese(source: str, translation: str, language: str) -> bool:
    """True if a translation is in simplified instead of traditional characters, or the reverse.

    The language must state which it is written in, as zh_TW and zh_Hans do; zh alone does not.
    """
    code = subtags(language)
    if code.language not in ("zh", "yue") or code.is_plain or code.script not in ("Hans", "Hant"):
        return False
    runs = [run for run in HAN_RUN.findall(translation) if run not in source]
    return foreign_han("".join(runs), code.script) >= FOREIGN_HAN


def english_letters(text: str) -> float:
    """How many letters and digits an English text of the same length has."""
    count: float = len(SPELLING.findall(text))
    if not text.isascii():
        count += sum((size - 1) * len(kind.findall(text)) for kind, size in LETTERS_OF_A_CHARACTER)
    return count
