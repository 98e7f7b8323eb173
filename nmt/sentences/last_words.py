"""Words that end sentences, although sentencex takes them for abbreviations.

Its lists have an abbreviation for almost any short word: "ill." in English, "mich." in German. Here
are frequent words that are rarely abbreviated but often end sentences.
"""

from functools import cache

import regex

LAST_WORDS = {
    "ca": "cap contra mar no nos",
    "cs": "nám tu",
    "da": "del din form med nat nord par sort var",
    "de": "Art Bart mag mich",
    "en": "art ill may me miss no",
    "es": "auto bien contra mar no nos",
    "fr": "art sec",
    "hr": "ga me",
    "hu": "nem",
    "id": "ia kan yuk",
    "is": "minn",
    "it": "ama app bar fa fai file mai me no post sa sai so te via",
    "ms": "ia kan",
    "nb": "det kan med min ord ut",
    "nl": "bel best dat hand me vol",
    "ro": "ia loc sens",
    "sk": "nám tu",
    "sl": "ga res",
    "sv": "del det hon kan med min ord sen ut",
    "tr": "kan sen ver",
    "vi": "ca con may me",
}
"""Maps languages to words, whose case counts."""
IN_ALL = "OK|ok|TV"
BEFORE_NAMES = "CO|CORP|DR|FIG|INC|JR|LTD|MR|MRS|MS|NO|NR|PROF|SR|ST|VOL"
"""What is an abbreviation in capitals, too."""
ROMAN = "M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
"""Numbers up to 3,999, which may be ordinal: Ludwig XIV."""
ACRONYM = rf"(?!(?:{BEFORE_NAMES}|{ROMAN})\.)\p{{Lu}}{{2,}}"


@cache
def last_word(language: str) -> "regex.Pattern[str]":
    """A pattern for such a word with its period and the blanks before the next sentence."""
    words = LAST_WORDS.get(language, "").split()
    forms = "|".join([*words, IN_ALL, ACRONYM])
    return regex.compile(rf"(?<![\w.])(?:{forms})\.\s+(?=[\"(\[\p{{Pi}}\u201e]?\p{{Lu}})")
