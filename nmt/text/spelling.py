"""Compare spellings that readers consider equal, such as spellings without optional marks."""

import regex

from nmt.text.affixes import without_vowel_points
from nmt.text.normalization import folded

TONES = "\u0e48-\u0e4b\u0ec8-\u0ecb"
NIKHAHIT_AA = regex.compile(f"[\u0e4d\u0ecd]([{TONES}]?)([\u0e32\u0eb2])")
"""The vowel am of Thai and Lao in two characters, with a tone mark between them or not."""
AM_BEFORE_TONE = regex.compile(f"([\u0e33\u0eb3])([{TONES}])")
AM = {"\u0e32": "\u0e33", "\u0eb2": "\u0eb3"}
SAME_SIGNS = str.maketrans(
    {
        "\u093c": "",  # Devanagari's nukta
        "\u0929": "\u0928",  # letters that contain it
        "\u0931": "\u0930",
        "\u0934": "\u0933",
        "\u2018": "'",
        "\u2019": "'",
        "\u02bc": "'",
        "\u05f3": "'",  # Hebrew's geresh
        "\uff07": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u05f4": '"',  # Hebrew's gershayim
        "\uff02": '"',
    }
)


def as_one_character(am: regex.Match[str]) -> str:
    """The tone mark, if there is one, and the vowel am."""
    return str(am[1]) + AM[am[2]]


def comparable(text: str) -> str:
    """A text in a form that all its spellings share, for comparisons only.

    Vowel points, nuktas, widths and forms of apostrophes and quotation marks make no difference,
    nor does the way in which the vowel am of Thai and Lao is encoded.
    """
    if text.isascii():
        return text
    text = folded(text).translate(SAME_SIGNS)
    text = NIKHAHIT_AA.sub(as_one_character, text)
    # Some keyboards write the tone mark after the vowel, some before.
    text = AM_BEFORE_TONE.sub(r"\2\1", text)
    return without_vowel_points(text)
