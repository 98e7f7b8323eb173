"""The scripts of letters, and those that languages are written in."""

import re
import unicodedata
from collections import Counter
from functools import cache

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
    "THAI": "th",
    "LAO": "lo",
    "KHMER": "km",
    "MYANMAR": "my",
    "TIBETAN": "bo dz",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
    "ETHIOPIC": "am ti",
    "HANGUL CJK": "ko",
    "CJK HIRAGANA KATAKANA": "ja",
    "CJK BOPOMOFO": "zh",
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


def scripts_of_characters(characters: str) -> frozenset[str]:
    """The scripts that a corpus with these characters is written in, and not just names in it."""
    counts = Counter(script(character) for character in set(characters.lower()))
    return frozenset(name for name, count in counts.items() if name and count >= ALPHABET)
