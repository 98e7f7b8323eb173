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
EAST_ASIAN_SIGNS = "\u3001-\u3004\u3008-\u3020\u3030\u303d\uff00-\uffef"
"""Punctuation and full-width signs of Chinese and Japanese, which contain their own white space."""
WITHOUT_BLANKS = re.compile(f"[{HAN}{KANA}{SOUTH_EAST}]")
"""A letter or sign of a script that does not separate words with blanks."""
NO_BLANK_BESIDE = re.compile(f"[{HAN}{KANA}{EAST_ASIAN_SIGNS}]")
"""A character of a script that has no blanks at all, not even between sentences. Thai has those."""
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
# A grapheme cluster of a script without blanks, with the punctuation that belongs to it;
# otherwise, whatever is between blanks and such clusters.
WORD = regex.compile(rf"(?={ONE})\X(?:[\p{{Pe}}\p{{Pf}}\p{{Po}}]\p{{M}}*+)*+|(?:(?!{ONE})\S)++\p{{M}}*+")
WORD_CHARACTER = regex.compile(r"[\p{L}\p{M}\p{N}_]")
"""What words consist of. Unlike `\\w` of `re`, this includes vowel signs of Hindi, Thai and others."""
SPELLING = regex.compile(r"[\p{L}\p{N}[\p{M}--\p{sc=Inherited}--\p{sc=Hebrew}]]", regex.V1)
"""What the length of a text is counted in: letters, digits and vowel signs, but no accents and no
vowel points of Arabic and Hebrew, which are optional."""
EXTENDING = regex.compile(r"[\p{M}\u200c\u200d]")
CLUSTER = regex.compile(r"\X")
IN_HANGUL = re.compile(f"[{HANGUL}]")
KATAKANA = regex.compile(r"\p{Script_Extensions=Katakana}")
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
    begin = last_base(text, at)
    cluster = CLUSTER.match(text, begin)
    if EXTENDING.match(text, at) or (cluster and cluster.end() > at):
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
    """What separates two sentences or lines of a paragraph: nothing in Chinese and Japanese."""
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
