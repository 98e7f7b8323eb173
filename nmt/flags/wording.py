"""Signs of failure in the words of a translation: repetition, copied source, wrong language."""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
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
"""Text in brackets or quotes, which often repeats a term of the source."""
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
    # A repeated phrase may begin a sentence the first time only.
    lowered = text.lower()
    result = []
    for begin, end in word_spans(lowered):
        unit = WITHOUT_PUNCTUATION.search(lowered, begin, end)
        if unit:
            ends_clause = unit.end() < end and lowered[end - 1] in CLAUSE_ENDS
            result.append(Unit(unit[0], ends_clause))
    return result


@dataclass
class Repetition:
    """A phrase that occurs several times in a row."""

    length: int  # in units
    times: int
    letters: int  # of all occurrences together
    is_divided: bool  # whether a clause ends between the first two occurrences


def lengths_to_examine(items: list[str]) -> list[int]:
    """The lengths of phrases that may occur twice in a row: all short ones, and some longer."""
    longest_short = min(SHORT_PHRASE, len(items) // 2)
    short = range(1, longest_short + 1)
    # Window -> where it occurred last.
    latest: dict[tuple[str, ...], int] = {}
    # From each window to the same one before; 0 if it is new.
    distances = set[int]()
    for index in range(len(items) - WINDOW + 1):
        window = tuple(items[index : index + WINDOW])
        # A phrase that occurs twice in a row recurs at a distance of its own length.
        distances.add(index - latest.get(window, index))
        latest[window] = index
    long = [distance for distance in distances if distance > SHORT_PHRASE]
    return [*short, *sorted(long)]


def repetitions(text: str) -> Iterator[Repetition]:
    """The longest repetition of each phrase length."""
    sequence = units(text)
    items = [unit.text for unit in sequence]
    # No word occurs twice. Most sentences of a few words end here.
    if len(set(items)) == len(items):
        return
    for length in lengths_to_examine(items):
        longest, end = longest_run(items, length)
        # A run of `length` items that equal those before them is one repetition of the phrase.
        if longest >= length:
            times = longest // length + 1
            begin = end - longest - length
            occurrences = items[begin : begin + times * length]
            letters = sum(map(len, occurrences))
            last_of_phrase = sequence[begin + length - 1]
            yield Repetition(length, times, letters, last_of_phrase.ends_clause)


def longest_run(items: list[str], distance: int) -> tuple[int, int]:
    """How many items in a row equal the item at a distance before them, and the end of this run.

    For a b a b a at distance 2, these are 3, the last three items, and 5, the index after them.
    """
    run = 0
    longest = 0
    end = 0
    for index in range(distance, len(items)):
        is_repeated = items[index] == items[index - distance]
        run = run + 1 if is_repeated else 0
        if run > longest:
            longest = run
            end = index + 1
    return longest, end


def is_repetitive(source: str, translation: str) -> bool:
    """True if a phrase or character sequence is repeated more often than any in the source."""
    if REPEATED_CHARACTERS.search(translation) and not REPEATED_CHARACTERS.search(source):
        return True
    has_blanks = not WITHOUT_BLANKS.search(translation)
    times = 1
    for repetition in repetitions(translation):
        if is_suspicious(repetition, has_blanks):
            times = max(times, repetition.times)
    # The source may repeat words itself, as in a list or a chorus.
    times_in_source = [repetition.times for repetition in repetitions(source)]
    return times > max(times_in_source, default=1)


def is_suspicious(repetition: Repetition, has_blanks: bool) -> bool:
    """Whether a repetition is too long, or too frequent, to be in good text.

    `has_blanks` says whether the script has blanks between words.
    """
    if not has_blanks:
        shortest = PHRASE_CHARACTERS
    elif repetition.is_divided:
        shortest = PHRASE_ACROSS_CLAUSES
    else:
        shortest = PHRASE_WORDS
    if repetition.length >= shortest:
        return True
    has_letters = has_blanks or repetition.letters >= REPEATED_LETTERS
    return repetition.times >= IN_A_ROW and has_letters


def is_copied(source: str, translation: str, scripts: frozenset[str] | None) -> bool:
    """True if most of a translation is copied from the source, and is too long for a mere name.

    Foreign words count only in a phrase of lowercase words, because names keep their script.
    """
    after = units_with_letters(translation)
    # Counted, so that a word that the source has once explains only one in the translation.
    common = Counter(after) & Counter(units_with_letters(source))
    fewest = COPIED_CHARACTERS if WITHOUT_BLANKS.search(translation) else COPIED_WORDS
    copied_letters = len("".join(common.elements()))
    all_letters = len("".join(after))
    if common.total() < fewest or copied_letters < COPIED_SHARE * all_letters:
        return False
    # In the target's script, the share decides. In other scripts, copied names are often correct.
    if scripts is None or has_letter_of("".join(common), scripts):
        return True
    has_right_letters = has_letter_of(translation, scripts)
    fewest = FOREIGN_WORDS_IN_SHORT if has_right_letters else COPIED_LOWERCASE
    return most_lowercase(foreign_phrases(translation, scripts)) >= fewest


def units_with_letters(text: str) -> list[str]:
    """The words or characters of a text without numbers and punctuation marks."""
    return [unit.text for unit in units(text) if LETTER.search(unit.text)]


def has_letter_of(text: str, scripts: frozenset[str]) -> bool:
    return any(script(letter) in scripts for letter in text)


def foreign_phrases(text: str, scripts: frozenset[str]) -> list[list[str]]:
    """Consecutive words whose letters are in none of the `scripts`, without digits or punctuation.

    Hyphens end a phrase, too, because file names and commands have them.
    """
    # A line break stands for whatever ends a phrase, so that `split` returns the phrases.
    kept = ["\n"] * len(text)
    is_in_word = False
    for at, sign in enumerate(text):
        if sign.isalpha():
            # Letters of all scripts have the empty name, and belong to none in particular.
            is_in_word = script(sign) not in ("", *scripts)
        # A mark belongs to the letter before it, whichever script that is.
        elif not unicodedata.category(sign).startswith("M"):
            is_in_word = False
        if is_in_word or sign in " '\u2019":
            kept[at] = sign
    lines = "".join(kept).split("\n")
    return [line.split() for line in lines if LETTER.search(line)]


def is_latin(word: str) -> bool:
    return any(script(letter) == "LATIN" for letter in word)


def lowercase(words: list[str]) -> int:
    """The number of words without capitals and of more than a letter: names have capitals."""
    return sum(len(word) > 1 and word == word.lower() for word in words)


def most_lowercase(phrases: list[list[str]]) -> int:
    """The largest number of lowercase words in a phrase."""
    return max(map(lowercase, phrases), default=0)


def is_wrong_script(source: str, translation: str, scripts: frozenset[str]) -> bool:
    """True if a translation, or a part of it, is in a script that the target language does not use.

    Letters of another script than Latin are wrong unless the source has the word. In translations
    into another script, Latin letters are usual in names, terms and abbreviations, but not in
    several lowercase words, nor as the whole translation.
    """
    # A word that the source has in this script was meant to stay.
    folded = source.lower()
    for word in chain.from_iterable(foreign_phrases(translation, scripts)):
        is_long = len(LETTER.findall(word)) >= WRONG_LETTERS
        if is_long and not is_latin(word) and word.lower() not in folded:
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
    latin_words = list(chain.from_iterable(phrases))
    if not has_letter_of(translation, scripts):
        # Abbreviations such as IBM may be a whole translation.
        # Other words may not, unless the source has them.
        uncapitalized = [word.lower() for word in latin_words if word[1:].islower()]
        return any(word not in source for word in uncapitalized)
    latin_letters = len("".join(latin_words))
    is_mostly_latin = latin_letters > english_letters(translation) - latin_letters
    fewest = FOREIGN_WORDS_IN_SHORT if is_mostly_latin else FOREIGN_WORDS
    outside = foreign_phrases(IN_BRACKETS.sub("\n", translation), scripts)
    return most_lowercase(outside) >= fewest


def is_han_instead(source: str, translation: str, scripts: frozenset[str]) -> bool:
    """True if Chinese replaces a Korean or Japanese translation or a part of it.

    `source` is in lower case. Both languages also use Han characters themselves.
    """
    # Han characters of the source, such as Chinese names, may stay.
    runs = new_han(source, translation)
    han = "".join(runs)
    if "HANGUL" in scripts:
        korean = len(IN_HANGUL.findall(translation))
        is_mostly_han = len(han) > max(korean, HAN_IN_KOREAN // 2)
        return is_mostly_han or max(map(len, runs), default=0) >= HAN_IN_KOREAN
    if "HIRAGANA" in scripts:
        foreign = foreign_han(han, "Jpan")
        if IN_KANA.search(translation):
            return foreign >= FOREIGN_HAN
        return foreign > 0 or len(han) >= HAN_WITHOUT_KANA
    return False


def new_han(source: str, translation: str) -> list[str]:
    """The sequences of Han characters in a translation that its source lacks."""
    return [run for run in HAN_RUN.findall(translation) if run not in source]


def is_other_chinese(source: str, translation: str, language: str) -> bool:
    """True if a translation is in simplified instead of traditional characters, or the reverse.

    The language must state which it is written in, as zh_TW and zh_Hans do; zh alone does not.
    """
    code = subtags(language)
    is_chinese = code.language in ("zh", "yue")
    if not is_chinese or code.is_plain or code.script not in ("Hans", "Hant"):
        return False
    han = "".join(new_han(source, translation))
    return foreign_han(han, code.script) >= FOREIGN_HAN


def english_letters(text: str) -> float:
    """How many letters and digits an English text of the same length has."""
    count: float = len(SPELLING.findall(text))
    if text.isascii():
        return count
    for characters, letters in LETTERS_OF_A_CHARACTER:
        # SPELLING has counted each character as one letter.
        count += (letters - 1) * len(characters.findall(text))
    return count
