"""Languages: the scripts and the direction that they are written in."""

import re
from functools import cache
from pathlib import PurePath

from nmt.config import without_compression

# Common languages are listed here, because loading Unicode's data for all of them takes 50 ms.
LANGUAGES = {
    "LATIN": (
        "af az bs ca cs cy da de en eo es et eu fi fr ga gl hr hu id is it la lb lt lv ms mt nb nl "
        "nn no pl pt ro sk sl sq sv sw tl tr uz vi xh zu"
    ),
    "CYRILLIC": "be bg kk ky mk mn ru tg uk",
    "LATIN CYRILLIC": "sr sh",
    "GREEK": "el",
    "HEBREW": "he yi",
    "ARABIC": "ar fa ps ug ur",
    "DEVANAGARI": "hi mr ne sa",
    "BENGALI": "as bn",
    "GUJARATI": "gu",
    "TAMIL": "ta",
    "GURMUKHI": "pa",
    "KANNADA": "kn",
    "MALAYALAM": "ml",
    "ORIYA": "or",
    "SINHALA": "si",
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
"""The languages written in one script, or in several."""
SCRIPTS = {tuple(scripts.split()): codes.split() for scripts, codes in LANGUAGES.items()}
"""Maps scripts, named as in Unicode letter names, to the languages written in them. CJK is Han."""
OF_SUBTAGS = {
    "Hans": ("CJK", "BOPOMOFO"),
    "Hant": ("CJK", "BOPOMOFO"),
    "Hani": ("CJK",),
    "Jpan": ("CJK", "HIRAGANA", "KATAKANA"),
    "Hrkt": ("HIRAGANA", "KATAKANA"),
    "Hira": ("HIRAGANA",),
    "Kana": ("KATAKANA",),
    "Kore": ("HANGUL", "CJK"),
    "Hang": ("HANGUL",),
    "Latn": ("LATIN",),
    "Cyrl": ("CYRILLIC",),
    "Grek": ("GREEK",),
    "Hebr": ("HEBREW",),
    "Arab": ("ARABIC",),
    "Deva": ("DEVANAGARI",),
    "Beng": ("BENGALI",),
    "Gujr": ("GUJARATI",),
    "Guru": ("GURMUKHI",),
    "Taml": ("TAMIL",),
    "Knda": ("KANNADA",),
    "Mlym": ("MALAYALAM",),
    "Orya": ("ORIYA",),
    "Sinh": ("SINHALA",),
    "Telu": ("TELUGU",),
    "Thai": ("THAI",),
    "Laoo": ("LAO",),
    "Khmr": ("KHMER",),
    "Mymr": ("MYANMAR",),
    "Tibt": ("TIBETAN",),
    "Geor": ("GEORGIAN",),
    "Armn": ("ARMENIAN",),
    "Ethi": ("ETHIOPIC",),
    "Mong": ("MONGOLIAN",),
    "Syrc": ("SYRIAC",),
    "Thaa": ("THAANA",),
    "Nkoo": ("NKO",),
    "Adlm": ("ADLAM",),
    "Tfng": ("TIFINAGH",),
    "Cher": ("CHEROKEE",),
    "Cans": ("CANADIAN",),
    "Java": ("JAVANESE",),
    "Olck": ("OL",),
    "Mtei": ("MEETEI",),
    "Yiii": ("YI",),
}
"""Maps scripts as codes write them (ISO 15924) to their names in Unicode letter names."""
RIGHT_TO_LEFT = frozenset(
    [
        "Adlm",
        "Arab",
        "Aran",
        "Hebr",
        "Mand",
        "Mend",
        "Nkoo",
        "Rohg",
        "Samr",
        "Syrc",
        "Thaa",
        "Yezi",
    ]
)
"""Scripts that are written from right to left, in use today."""


def usual_scripts(code: str) -> frozenset[str] | None:
    """The scripts of a language code without subtags, if it is a common one."""
    for names, codes in SCRIPTS.items():
        if code in codes:
            return frozenset(names)
    return None


@cache
def scripts_of_language(code: str) -> frozenset[str] | None:
    """The scripts of a language such as de, pt_BR, zh-Hans or uz_Cyrl.

    None for an unknown language.
    """
    # A script subtag has four letters, as in uz_Cyrl; it overrides the usual script.
    language, *others = re.split("[-_]", code.lower())
    has_script = any(len(part) == 4 and part.isalpha() for part in others)
    scripts = None if has_script else usual_scripts(language)
    if scripts:
        return scripts
    from nmt.text.code_parts import subtags  # takes 50 ms, which most commands need not spend

    names = OF_SUBTAGS.get(subtags(code).script)
    return frozenset(names) if names else None


@cache
def direction(code: str) -> str:
    """The direction of a language's script: `rtl` for Arabic or Hebrew, `ltr` for Latin."""
    from nmt.text.code_parts import subtags  # takes 50 ms, as above

    return "rtl" if subtags(code).script in RIGHT_TO_LEFT else "ltr"


def language_of_file(name: str) -> str | None:
    """The language suffix of a file name, before any compression suffix; None if there is none."""
    suffix = PurePath(without_compression(name)).suffix[1:]
    # Only the languages of the table above, because most other suffixes mean something else.
    language, *others = re.split("[-_]", suffix)
    # A script leaves no doubt, as in FLORES-200's zsm_Latn.
    is_language = usual_scripts(language.lower()) or any(part in OF_SUBTAGS for part in others)
    return suffix if is_language else None
