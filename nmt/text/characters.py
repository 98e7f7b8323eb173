"""Character classes and patterns of scripts.

Strings are parts of character classes, for patterns of `re` and `regex`, unless they have brackets.
"""

import re

import regex

HAN = (
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
KANA = "\u3031-\u3035\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"
SOUTH_EAST = (
    "\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f"
    "\ua980-\ua9ff\uaa60-\uaadf"
)
"""Thai, Lao, Tibetan, Myanmar, Khmer, Tai Le, New Tai Lue, Tai Tham, Balinese, Javanese, Myanmar
Extended, Tai Viet."""
LATIN = (
    "A-Za-z\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1d00-\u1d25\u1d6b-\u1d9a"
    "\u1e00-\u1eff\u2c60-\u2c7f\ua722-\ua7ff\uab30-\uab5a\uab60-\uab64\ufb00-\ufb06"
    "\u0300-\u036f"
)
"""Latin letters, and the accents that may follow them."""
GREEK = "\u0370-\u03ff\u1f00-\u1fff"
CYRILLIC = "\u0400-\u052f\u1c80-\u1c88\u2de0-\u2dff\ua640-\ua69f"
MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a"
    "\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed\u0711-\u07f3\u07fd\u0816-\u082d"
    "\u0859-\u085b\u0898-\u08e1\u08e3-\u0963\u0981-\u09e3\u09fe-\u0a75\u0a81-\u0ae3"
    "\u0afa-\u0b63\u0b82-\u0bd7\u0c00-\u0c63\u0c81-\u0c83\u0cbc-\u0d4d\u0d57\u0d62\u0d63"
    "\u0d81-\u0df3\u0e31-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ecd\u0f18\u0f19\u0f35\u0f37\u0f39"
    "\u0f3e-\u0f84\u0f86-\u0fbc\u0fc6\u102b-\u103e\u1056-\u109d\u135d-\u135f\u1712-\u1734"
    "\u1752-\u17d3\u17dd\u180b-\u180d\u180f-\u193b\u1a17-\u1a1b\u1a55-\u1a7f\u1ab0-\u1b44"
    "\u1b6b-\u1b73\u1b80-\u1bf3\u1c24-\u1c37\u1cd0-\u1cd2\u1cd4-\u1dff\u2cef-\u2cf1"
    "\u2d7f-\u2dff\u302a-\u302f\u3099\u309a\ua66f-\ua672\ua674-\ua67d\ua69e\ua69f\ua6f0\ua6f1"
    "\ua802-\ua827\ua82c\ua880-\ua8c5\ua8e0-\ua8f1\ua8ff-\ua92d\ua947-\ua953\ua980-\ua9c0"
    "\ua9e5-\uaa4d\uaa7b-\uaac1\uaaeb-\uaaef\uaaf5\uaaf6\uabe3-\uabea\uabec\uabed\ufb1e"
    "\ufe20-\ufe2f"
)
"""Marks that are parts of words, for patterns of `re`, whose `\\w` lacks them.

The ranges include letters in between.
"""
EAST_ASIAN_SIGNS = "\u3001-\u3004\u3008-\u3020\u3030\u303d\uff00-\uffef"
"""Punctuation and full-width signs of Chinese and Japanese, which contain their own white space."""
WITHOUT_BLANKS = re.compile(f"[{HAN}{KANA}{SOUTH_EAST}]")
"""A letter or sign of a script that does not separate words with blanks."""
NO_BLANK_BESIDE = re.compile(f"[{HAN}{KANA}{EAST_ASIAN_SIGNS}]")
"""A character of a script that has no blanks at all, not even between sentences, as Thai has."""
STACKING = "[\u1039\u17d2\u1a60]"
"""Signs of Burmese, Khmer and Tai Tham that put the next consonant below the one before."""
SYLLABLE = rf"(?={WITHOUT_BLANKS.pattern})\X(?:(?<={STACKING})\X|\p{{M}})*+"
"""A grapheme cluster of a script without blanks, with the consonants below it and all marks."""
WORD_CHARACTER = regex.compile(r"[\p{L}\p{M}\p{N}_]")
"""A character of a word.

Unlike `\\w` of `re`, this includes vowel signs of Hindi, Thai and others.
"""
SPELLING = regex.compile(r"[\p{L}\p{N}[\p{M}--\p{sc=Inherited}--\p{sc=Hebrew}]]", regex.V1)
"""A character that counts in the length of a text: letters, digits and vowel signs, but not accents
or the optional vowel points of Arabic and Hebrew."""
EXTENDING = regex.compile(r"[\p{M}\u200c\u200d]")
"""Marks and joiners, which are part of the character before them."""
KATAKANA = regex.compile(r"\p{Script_Extensions=Katakana}")
SMALL_KANA = "\u30fc\u3041\u3043\u3045\u3047\u3049\u3063\u3083\u3085\u3087\u308e\u309d\u309e\u3005"
REPETITION = "[\u0e46\u0ec6\u17d7]"
"""A sign of Thai, Lao or Khmer that repeats the word before it, perhaps after a blank."""
FOLLOWING_VOWELS = "\u0e2f\u0e30\u0e32\u0e45\u0e46\u0eaf\u0eb0\u0eb2\u0ec6\u17d7"
DEPENDENT = f"[{SMALL_KANA}{FOLLOWING_VOWELS}]"
"""Small hiragana, signs that repeat or prolong, and vowels of Thai and Lao after their consonant.

Like marks, they begin neither a word nor a line.
"""
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
