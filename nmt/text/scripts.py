"""Scripts: the letters that belong to them, what a word is in each, and where words and sentences need blanks."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache

import regex

# The following are parts of character classes, for patterns of `re` and `regex`.
HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3031-\u3035\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
# Thai, Lao, Tibetan, Myanmar, Khmer, Tai Le, New Tai Lue, Tai Tham, Balinese, Javanese,
# Myanmar Extended, Tai Viet.
SOUTH_EAST = "\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9ff\uaa60-\uaadf"
LATIN = (
    "A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1d25\u1d6b-\u1d9a\u1e00-\u1eff"
    "\u2c60-\u2c7f\ua722-\ua7ff\uab30-\uab5a\uab60-\uab64\ufb00-\ufb06\u0300-\u036f"
)
"""Latin letters, and the accents that may follow them."""
GREEK = "\u0370-\u03ff\u1f00-\u1fff"
CYRILLIC = "\u0400-\u052f\u1c80-\u1c88\u2de0-\u2dff\ua640-\ua69f"
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711-\u07f3\u07fd\u0816-\u082d\u0859-\u085b\u0898-\u08e1\u08e3-\u0963"
    "\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3\u0afa-\u0b63\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d\u0d57"
    "\u0d62\u0d63\u0d81-\u0df3\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ecd\u0f18\u0f19\u0f35\u0f37\u0f39\u0f3e-\u0f84"
    "\u0f86-\u0fbc\u0fc6\u102b-\u103e\u1056-\u109d\u135d-\u135f\u1712-\u1734\u1752-\u17d3\u17dd\u180b-\u180d"
    "\u180f-\u193b\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1b44\u1b6b-\u1b73\u1b80-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2"
    "\u1cd4-\u1dff\u2cef-\u2cf1\u2d7f-\u2dff\u302a-\u302f\u3099\u309a\ua66f-\ua672\ua674-\ua67d\ua69e\ua69f"
    "\ua6f0\ua6f1\ua802-\ua827\ua82c\ua880-\ua8c5\ua8e0-\ua8f1\ua8ff-\ua92d\ua947-\ua953\ua980-\ua9c0\ua9e5-\uaa4d"
    "\uaa7b-\uaac1\uaaeb-\uaaef\uaaf5\uaaf6\uabe3-\uabea\uabec\uabed\ufb1e\ufe20-\ufe2f"
)
"""Marks that are parts of words, for patterns of `re`, whose `\\w` lacks them; with letters in between."""
EAST_ASIAN_SIGNS = "\u3001-\u3004\u3008-\u3020\u3030\u303d\uff00-\uffef"
"""Punctuation and full-width signs of Chinese and Japanese, which contain their own white space."""
WITHOUT_BLANKS = re.compile(f"[{HAN}{KANA}{SOUTH_EAST}]")
"""A letter or sign of a script that does not separate words with blanks."""
NO_BLANK_BESIDE = re.compile(f"[{HAN}{KANA}{EAST_ASIAN_SIGNS}]")
"""A character of a script that has no blanks at all, not even between sentences. Thai has those."""
WITH_WHITE_SPACE = re.compile("[\u3001\u3002\uff01\uff0c\uff0e\uff1a\uff1b\uff1f]")
"""Full-width commas, full stops and the like."""
CHARACTERS_OF_A_WORD = (
    (re.compile(f"[{HAN}]"), 2),
    (re.compile(f"[{KANA}]"), 4),
    (re.compile(f"[{SOUTH_EAST}]"), 5),
)
"""How many characters count as one English word, in scripts without blanks between words. In
translations of a user interface, an English word corresponded to 1.6 characters in Chinese, 2.9 in
Japanese and 5.6 in Thai."""
ALPHABET = 20
"""A corpus counts as written in a script if it has at least this many different letters of it."""
ONE = WITHOUT_BLANKS.pattern
STACKING = "[\u1039\u17d2\u1a60]"
"""Signs of Burmese, Khmer and Tai Tham that put the next consonant below the one before."""
SYLLABLE = rf"(?={ONE})\X(?:(?<={STACKING})\X|\p{{M}})*+"
"""A grapheme cluster of a script without blanks, with the consonants below it and all marks."""
# Such a cluster, with the punctuation that belongs to it; otherwise, whatever is between blanks and
# such clusters.
WORD = regex.compile(
    rf"{SYLLABLE}(?:[\p{{Pe}}\p{{Pf}}\p{{Po}}]\p{{M}}*+)*+|(?:(?!{ONE})\S)++\p{{M}}*+"
)
WORD_CHARACTER = regex.compile(r"[\p{L}\p{M}\p{N}_]")
"""What words consist of. Unlike `\\w` of `re`, this includes vowel signs of Hindi, Thai and others."""
IS_STACKING = re.compile(STACKING)
SPELLING = regex.compile(r"[\p{L}\p{N}[\p{M}--\p{sc=Inherited}--\p{sc=Hebrew}]]", regex.V1)
"""What the length of a text is counted in: letters, digits and vowel signs, but no accents and no
vowel points of Arabic and Hebrew, which are optional."""
EXTENDING = regex.compile(r"[\p{M}\u200c\u200d]")
CLUSTER = regex.compile(r"\X")
# Brackets, quotation marks, dashes and dots. ASCII marks at the end of a sentence need a blank.
SHARED = r"[\p{Ps}\p{Pe}\p{Pi}\p{Pf}\u2014\u2026\u00b7]"
SHARED_AFTER = regex.compile(rf"{SHARED}+$")
SHARED_BEFORE = regex.compile(rf"^{SHARED}+")
LONGEST_SHARED = 9
IN_HANGUL = re.compile(f"[{HANGUL}]")
KATAKANA = regex.compile(r"\p{Script_Extensions=Katakana}")
SMALL_KANA = "\u30fc\u3041\u3043\u3045\u3047\u3049\u3063\u3083\u3085\u3087\u308e\u309d\u309e\u3005"
REPETITION = "[\u0e46\u0ec6\u17d7]"
"""A sign of Thai, Lao or Khmer that repeats the word before it, perhaps after a blank."""
FOLLOWING_VOWELS = "\u0e2f\u0e30\u0e32\u0e45\u0e46\u0eaf\u0eb0\u0eb2\u0ec6\u17d7"
DEPENDENT = f"[{SMALL_KANA}{FOLLOWING_VOWELS}]"
"""Small hiragana, signs that repeat or prolong, and vowels of Thai and Lao after their consonant: like
marks, they begin neither a word nor a line."""
NEVER_FIRST = "\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3"
"""Vowels of Thai and Lao after their consonant, which never begin a word."""
LEADING_VOWEL = "[\u0e40-\u0e44\u0ec0-\u0ec4]"
"""A vowel of Thai or Lao that is written before its consonant."""
KATAKANA_WORD = regex.compile(r"(?:(?=[\p{L}\p{M}])(?=[\u30a1-\u30ff\u31f0-\u31ff])\X)++")
"""A word in katakana, or several that nothing separates."""
HIRAGANA = "[\u3041-\u3096]"
PARTICLE = regex.compile("[\u3092\u304c\u306f\u306e\u306b\u3078\u3068\u3067\u3082\u3084]")
"""Hiragana that are usually particles, which follow the word that they belong to."""
LONG_PARTICLES = "\u304b\u3089|\u307e\u3067|\u3088\u308a|\u306a\u3069|\u3060\u3051|\u3057\u304b"
INFLECTED_WORD = regex.compile(rf"[{HAN}]++(?:(?!{PARTICLE.pattern}|{LONG_PARTICLES}){HIRAGANA})++")
"""A Japanese verb or adjective: Han characters with the hiragana of its ending."""
WITH_A_LETTER = re.compile(r"\S*[^\W_]\S*")
NO_LETTERS = regex.compile(r"[^\p{L}\p{Mn}\p{Mc}]+|[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
"""Variation selectors are also marks, but are removed: they affect only how a character looks."""
NO_SYMBOLS = regex.compile(r"[^\p{N}\p{S}]+")


@cache
def script(character: str) -> str:
    """A letter's script, from its Unicode name, such as LATIN or CJK.

    Returns "" for other characters and for letters shared by all scripts.
    """
    if not character.isalpha():
        return ""
    name = re.match(r"[A-Z]+", unicodedata.name(character, ""))
    return name[0] if name and name[0] not in ("MODIFIER", "IDEOGRAPHIC") else ""


def scripts_of_text(lines: Iterable[str]) -> frozenset[str]:
    """The scripts that each account for at least a tenth of a text's letters."""
    letters = Counter[str]()
    for character, count in Counter("".join(lines)).items():
        letters[script(character)] += count
    del letters[""]
    return frozenset(name for name, count in letters.items() if count >= letters.total() / 10)


def scripts_of_characters(characters: str) -> frozenset[str]:
    """The scripts that a corpus with these characters is written in, without those of foreign names."""
    counts = Counter(script(character) for character in set(characters.lower()))
    return frozenset(name for name, count in counts.items() if name and count >= ALPHABET)


def words(text: str) -> float:
    """The number of words in a clean line, at least 1.

    For scripts without blanks between words, it is estimated from the number of characters.
    """
    if text.isascii() or not WITHOUT_BLANKS.search(text):
        return text.count(" ") + 1
    rest = WITH_A_LETTER.findall(WITHOUT_BLANKS.sub(" ", text))
    counts = (len(kind.findall(text)) / size for kind, size in CHARACTERS_OF_A_WORD)
    return max(1, len(rest) + sum(counts))


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
    if text[at - 1 : at + 1].isascii():
        return not (WORD_CHARACTER.match(text[at - 1]) and WORD_CHARACTER.match(text[at]))
    begin = last_base(text, at)
    cluster = CLUSTER.match(text, begin)
    if (
        text[at] in NEVER_FIRST
        or EXTENDING.match(text, at)
        or IS_STACKING.match(text[at - 1])
        or (cluster and cluster.end() > at)
    ):
        return False
    before = text[begin]
    after = text[at]
    if not (WORD_CHARACTER.match(before) and WORD_CHARACTER.match(after)):
        return True
    if KATAKANA.match(before) and KATAKANA.match(after):
        return False
    if WITHOUT_BLANKS.match(before) or WITHOUT_BLANKS.match(after):
        return True
    if bool(IN_HANGUL.match(before)) != bool(IN_HANGUL.match(after)):
        return True
    return bool(script(before) and script(after)) and script(before) != script(after)


def last_base(text: str, at: int) -> int:
    """The index of the last character before `at` that is not a mark or joiner."""
    index = at - 1
    while index > 0 and EXTENDING.match(text[index]):
        index -= 1
    return index


def blank_between(before: str, after: str) -> str:
    """What separates two sentences or lines of a paragraph: nothing in Chinese and Japanese.

    Signs that these share with other scripts, such as quotation marks, are ignored. Full-width
    marks contain their own white space, so nothing follows them whatever the script.
    """
    before = SHARED_AFTER.sub("", before[-LONGEST_SHARED:])
    after = SHARED_BEFORE.sub("", after[:LONGEST_SHARED])
    if WITH_WHITE_SPACE.match(before[-1:]):
        return ""
    ends = before[-1:], after[:1]
    return "" if all(map(NO_BLANK_BESIDE.match, ends)) else " "


def joined(texts: Iterable[str]) -> str:
    """Join sentences, or the lines of a paragraph, with blanks where their script has them."""
    result = ""
    for text in texts:
        result += (blank_between(result, text) if result and text else "") + text
    return result


def letters(text: str) -> str:
    """The lowercased letters and marks of a text.

    They are equal for texts that differ only in digits, case and punctuation. Text without letters
    keeps its digits and symbols, and text that is only punctuation keeps everything.
    """
    folded = text.casefold()
    return NO_LETTERS.sub("", folded) or NO_SYMBOLS.sub("", folded) or folded


def direction_of_text(text: str) -> str:
    """`rtl` if the first letter with a direction is written from right to left, otherwise `ltr`."""
    for character in text:
        direction = unicodedata.bidirectional(character)
        if direction in ("R", "AL"):
            return "rtl"
        if direction == "L":
            break
    return "ltr"
