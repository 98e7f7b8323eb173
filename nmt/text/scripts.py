"""The scripts of letters, and the scripts and names of languages."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import PurePath

SCRIPTS = {
    "LATIN": "af az bs ca cs cy da de en eo es et eu fi fr ga gl hr hu id is it la lb lt lv ms mt nb nl nn no pl pt ro "
    "sk sl sq sv sw tl tr uz vi xh zu",
    "CYRILLIC": "be bg kk ky mk mn ru tg uk",
    "LATIN CYRILLIC": "sr sh",
    "GREEK": "el",
    "ARABIC": "ar fa ps ug ur",
    "HEBREW": "he yi",
    "DEVANAGARI": "hi mr ne sa",
    "BENGALI": "as bn",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "ORIYA": "or",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th tha",
    "LAO": "lo lao",
    "KHMER": "km khm",
    "MYANMAR": "my mya",
    "TIBETAN": "bo bod dz dzo",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
    "ETHIOPIC": "am ti",
    "HANGUL CJK": "ko kor",
    "CJK HIRAGANA KATAKANA": "ja jpn",
    "CJK BOPOMOFO": "zh zho cmn yue",
}
"""Languages by the scripts that they are written in, as the Unicode names of letters have these; CJK is Han."""
ALPHABET = 20
"""A script is one of a corpus if the corpus has at least so many different letters of it."""


@cache
def script(character: str) -> str:
    """The script of a letter, by its Unicode name; "" for anything else, and for letters of all scripts."""
    if not character.isalpha():
        return ""
    name = re.match(r"[A-Z]+", unicodedata.name(character, ""))
    return name[0] if name and name[0] not in ("MODIFIER", "IDEOGRAPHIC") else ""


def scripts_of_language(code: str) -> frozenset[str] | None:
    """The scripts of a language such as de, pt_BR or zh-Hans; None for one that is not known."""
    code = re.split("[-_]", code.lower())[0]
    return next((frozenset(names.split()) for names, codes in SCRIPTS.items() if code in codes.split()), None)


def language_of_file(name: str) -> str | None:
    """The language that the name of a file, plain or compressed, ends in; None for any other name."""
    endings = [ending[1:] for ending in PurePath(name).suffixes if ending not in (".gz", ".bz2", ".xz", ".zst")]
    return endings[-1] if endings and scripts_of_language(endings[-1]) else None


def scripts_of_text(lines: Iterable[str]) -> frozenset[str]:
    """The scripts of at least a tenth of the letters of a text."""
    letters = Counter[str]()
    for character, count in Counter("".join(lines)).items():
        letters[script(character)] += count
    del letters[""]
    return frozenset(name for name, count in letters.items() if count >= letters.total() / 10)


def scripts_of_characters(characters: str) -> frozenset[str]:
    """The scripts that a corpus with these characters is written in, and not just names in it."""
    counts = Counter(script(character) for character in set(characters.lower()))
    return frozenset(name for name, count in counts.items() if name and count >= ALPHABET)


@cache
def language_name(code: str) -> str:
    """The English name of a language, such as German for de; its code where Babel, an extra, does not know it."""
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        return code
    try:
        return Locale.parse(code.replace("-", "_")).get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code
