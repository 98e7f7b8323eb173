"""Words in each script: where a word begins and ends, and the number of words in a text."""

import re

import regex

from nmt.text.characters import (
    EXTENDING,
    HAN,
    HANGUL,
    KANA,
    KATAKANA,
    NEVER_FIRST,
    SOUTH_EAST,
    STACKING,
    SYLLABLE,
    WITHOUT_BLANKS,
    WORD_CHARACTER,
)
from nmt.text.scripts import script

CHARACTERS_OF_A_WORD = (
    (re.compile(f"[{HAN}]"), 2),
    (re.compile(f"[{KANA}]"), 4),
    (re.compile(f"[{SOUTH_EAST}]"), 5),
)
"""How many characters count as one English word, in scripts without blanks between words. In
translations of a user interface, an English word corresponded to 1.6 characters in Chinese, 2.9 in
Japanese and 5.6 in Thai."""
WITH_A_LETTER = re.compile(r"\S*[^\W_]\S*")
WORD = regex.compile(
    rf"{SYLLABLE}(?:[\p{{Pe}}\p{{Pf}}\p{{Po}}]\p{{M}}*+)*+"
    rf"|(?:(?!{WITHOUT_BLANKS.pattern})\S)++\p{{M}}*+"
)
"""In scripts without blanks, a syllable with the punctuation that belongs to it.

Otherwise, whatever is between blanks and such syllables.
"""
IS_STACKING = re.compile(STACKING)
CLUSTER = regex.compile(r"\X")
IN_HANGUL = re.compile(f"[{HANGUL}]")


def words(text: str) -> float:
    """The number of words in a clean line, at least 1.

    For scripts without blanks between words, it is estimated from the number of characters.
    """
    if text.isascii() or not WITHOUT_BLANKS.search(text):
        return text.count(" ") + 1
    # Words of other scripts between the characters count
    # as themselves, such as names in Latin letters.
    between = WITH_A_LETTER.findall(WITHOUT_BLANKS.sub(" ", text))
    counts = (len(kind.findall(text)) / size for kind, size in CHARACTERS_OF_A_WORD)
    return max(1, len(between) + sum(counts))


def word_spans(text: str) -> list[tuple[int, int]]:
    """The spans of a text's words, as alignments and scores of words count them.

    A word is whatever is between white space. In scripts without blanks between words, it is a
    single grapheme cluster; punctuation after it belongs to it.
    """
    if not WITHOUT_BLANKS.search(text):
        return [word.span() for word in re.finditer(r"\S+", text)]
    return [word.span() for word in WORD.finditer(text)]


def is_word_border(text: str, at: int) -> bool:
    """Whether a word may begin or end at an index of a text.

    Letters of different scripts are different words, because many languages join their particles
    to foreign names. Scripts without blanks may have a border between any two grapheme clusters,
    except within katakana, which writes foreign words.
    """
    if not 0 < at < len(text):
        return True
    # Most positions: no marks, joiners or other scripts to consider.
    if text[at - 1 : at + 1].isascii():
        return not are_in_words(text[at - 1], text[at])
    if is_within_cluster(text, at):
        return False
    # A mark has no script of its own, so the letter that it belongs to is compared.
    before = text[last_base(text, at)]
    after = text[at]
    if not are_in_words(before, after):
        return True
    if KATAKANA.match(before) and KATAKANA.match(after):
        return False
    if WITHOUT_BLANKS.match(before) or WITHOUT_BLANKS.match(after):
        return True
    # Korean writes particles in Hangul after words in any script.
    if bool(IN_HANGUL.match(before)) != bool(IN_HANGUL.match(after)):
        return True
    script_before = script(before)
    script_after = script(after)
    # Digits and letters of all scripts continue any word.
    if not script_before or not script_after:
        return False
    return script_before != script_after


def are_in_words(before: str, after: str) -> bool:
    """Whether both of two characters are part of a word."""
    return bool(WORD_CHARACTER.match(before) and WORD_CHARACTER.match(after))


def is_within_cluster(text: str, at: int) -> bool:
    """Whether the character at an index belongs to the one before it."""
    if text[at] in NEVER_FIRST or EXTENDING.match(text, at):
        return True
    if IS_STACKING.match(text[at - 1]):
        return True
    # The remaining cases of Unicode's segmentation (UAX #29), such as emoji and Hangul in parts.
    cluster = CLUSTER.match(text, last_base(text, at))
    return cluster is not None and cluster.end() > at


def last_base(text: str, at: int) -> int:
    """The index of the last character before `at` that is not a mark or joiner."""
    index = at - 1
    while index > 0 and EXTENDING.match(text[index]):
        index -= 1
    return index
