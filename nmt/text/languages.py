"""Language-dependent properties of text: scripts, words and letters."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import PurePath

import regex

from nmt.config import without_compression

LANGUAGES = """
LATIN: af az bs ca cs cy da de en eo es et eu fi fr ga gl hr hu id is it la lb lt lv ms mt nb nl nn no pl pt ro sk sl sq
 sv sw tl tr uz vi xh zu; CYRILLIC: be bg kk ky mk mn ru tg uk; LATIN CYRILLIC: sr sh; GREEK: el; HEBREW: he yi
; ARABIC: ar fa ps ug ur; DEVANAGARI: hi mr ne sa; BENGALI: as bn; GUJARATI: gu; TAMIL: ta; GURMUKHI: pa; KANNADA: kn
; MALAYALAM: ml; ORIYA: or; SINHALA: si; TELUGU: te; THAI: th tha; LAO: lo lao; KHMER: km khm; MYANMAR: my mya
; TIBETAN: bo bod dz dzo; GEORGIAN: ka; ARMENIAN: hy; ETHIOPIC: am ti; HANGUL CJK: ko kor
; CJK HIRAGANA KATAKANA: ja jpn; CJK BOPOMOFO: zh zho cmn yue
"""
SCRIPTS = {tuple(scripts.split()): codes.split() for scripts, codes in (r.split(":") for r in LANGUAGES.split(";"))}
"""Maps scripts, named as in Unicode letter names, to the languages written in them. CJK is Han."""
ALPHABET = 20
"""A corpus counts as written in a script if it has at least this many different letters of that script."""
HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3031-\u3035\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff"
# Thai, Lao, Tibetan, Myanmar, Khmer, Tai Le, New Tai Lue, Tai Tham, Balinese, Javanese, Myanmar Extended, Tai Viet.
SOUTH_EAST = "\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9ff\uaa60-\uaadf"
CHARACTERS_OF_A_WORD = ((re.compile(f"[{HAN}]"), 2), (re.compile(f"[{KANA}]"), 4), (re.compile(f"[{SOUTH_EAST}]"), 5))
"""How many characters count as one English word, in scripts without spaces between words. In translations of a user
interface, an English word corresponded to 1.6 characters in Chinese, 2.9 in Japanese and 5.6 in Thai."""
WITHOUT_BLANKS = re.compile(f"[{HAN}{KANA}{SOUTH_EAST}]")
WITH_A_LETTER = re.compile(r"\S*[^\W_]\S*")
NO_LETTERS = regex.compile(r"[^\p{L}\p{Mn}\p{Mc}]+|[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
"""Variation selectors are also marks, but are removed because they affect only how a character looks."""
NO_SYMBOLS = regex.compile(r"[^\p{N}\p{S}]+")


@cache
def script(character: str) -> str:
    """A letter's script, from its Unicode name; "" for other characters and for letters shared by all scripts."""
    name = re.match(r"[A-Z]+", unicodedata.name(character, "")) if character.isalpha() else None
    return name[0] if name and name[0] not in ("MODIFIER", "IDEOGRAPHIC") else ""


def scripts_of_language(code: str) -> frozenset[str] | None:
    """The scripts of a language such as de, pt_BR or zh-Hans; None for an unknown language."""
    code = re.split("[-_]", code.lower())[0]
    return next((frozenset(names) for names, codes in SCRIPTS.items() if code in codes), None)


def language_of_file(name: str) -> str | None:
    """The language suffix of a file name, ignoring any compression suffix; None if there is none."""
    ending = PurePath(without_compression(name)).suffix[1:]
    return ending if ending and scripts_of_language(ending) else None


def scripts_of_text(lines: Iterable[str]) -> frozenset[str]:
    """The scripts that each account for at least a tenth of a text's letters."""
    letters = Counter[str]()
    for character, count in Counter("".join(lines)).items():
        letters[script(character)] += count
    del letters[""]
    return frozenset(name for name, count in letters.items() if count >= letters.total() / 10)


def scripts_of_characters(characters: str) -> frozenset[str]:
    """The scripts that a corpus with these characters is written in, without those used only in foreign names."""
    counts = Counter(script(character) for character in set(characters.lower()))
    return frozenset(name for name, count in counts.items() if name and count >= ALPHABET)


def words(text: str) -> float:
    """The number of words in a clean line, at least 1; for scripts without spaces, estimated from its characters."""
    if text.isascii() or not WITHOUT_BLANKS.search(text):
        return text.count(" ") + 1
    rest = WITH_A_LETTER.findall(WITHOUT_BLANKS.sub(" ", text))
    return max(1, len(rest) + sum(len(script.findall(text)) / size for script, size in CHARACTERS_OF_A_WORD))


def letters(text: str) -> str:
    """The lowercased letters and marks of a text: equal for texts that differ only in digits, case and punctuation.

    Text without letters keeps its digits and symbols, and text that is only punctuation keeps everything.
    """
    folded = text.casefold()
    return NO_LETTERS.sub("", folded) or NO_SYMBOLS.sub("", folded) or folded
