"""Spellings that readers take for the same: without optional marks, or with other forms of signs."""

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
        **{"\u0929": "\u0928", "\u0931": "\u0930", "\u0934": "\u0933"},  # letters that contain it
        **dict.fromkeys("\u2018\u2019\u02bc\u05f3\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u05f4\uff02", '"'),
    }
)


def comparable(text: str) -> str:
    """A text in a form that all its spellings share, for comparisons only.

    Vowel points, nuktas, widths and forms of apostrophes and quotation marks make no difference,
    nor does the way in which the vowel am of Thai and Lao is encoded.
    """
    if text.isascii():
        return text
    text = folded(text).translate(SAME_SIGNS)
    text = NIKHAHIT_AA.sub(lambda match: match[1] + AM[match[2]], text)
    text = AM_BEFORE_TONE.sub(r"\2\1", text)
    return without_vowel_points(text)
