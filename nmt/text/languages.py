"""What depends on the language of a text: scripts, names, and sentences, by sentencex with rules for its errors."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from pathlib import PurePath

LANGUAGES = """
LATIN: af az bs ca cs cy da de en eo es et eu fi fr ga gl hr hu id is it la lb lt lv ms mt nb nl nn no pl pt ro sk sl sq
 sv sw tl tr uz vi xh zu; CYRILLIC: be bg kk ky mk mn ru tg uk; LATIN CYRILLIC: sr sh; GREEK: el; HEBREW: he yi
; ARABIC: ar fa ps ug ur; DEVANAGARI: hi mr ne sa; BENGALI: as bn; GUJARATI: gu; TAMIL: ta; GURMUKHI: pa; KANNADA: kn
; MALAYALAM: ml; ORIYA: or; SINHALA: si; TELUGU: te; THAI: th tha; LAO: lo lao; KHMER: km khm; MYANMAR: my mya
; TIBETAN: bo bod dz dzo; GEORGIAN: ka; ARMENIAN: hy; ETHIOPIC: am ti; HANGUL CJK: ko kor
; CJK HIRAGANA KATAKANA: ja jpn; CJK BOPOMOFO: zh zho cmn yue
"""
SCRIPTS = {tuple(scripts.split()): codes.split() for scripts, codes in (r.split(":") for r in LANGUAGES.split(";"))}
"""Languages by the scripts that they are written in, as the Unicode names of letters have these; CJK is Han."""
ALPHABET = 20
"""A script is one of a corpus if the corpus has at least so many different letters of it."""
QUOTES = str.maketrans(dict.fromkeys('"()[]\u00ab\u00bb\u201a\u201c\u201d\u201e\u2039\u203a', " "))
"""sentencex never cuts between a pair of these, even if they are the inch marks of two disks."""
OPENING = re.compile(r'(?<=\s)(?:["(\[\u00ab\u00bb\u201a\u201c\u201e\u2039\u203a]+|\u00ab\s)$')
TAIL = 80
"""Characters at the end of a sentence that the rules look at."""
NUMBER = re.compile(r"\W*(?:\d+|\w)[.)]\s*")
"""The number of an item of a list."""
ABBREVIATION = re.compile(
    r"\b(?:[Aa]pprox|cf|[Cc]h|e\.g|eds?|[Ee]q|esp|excl|Figs|i\.e|incl|max|min|Ms|resp|Rt|[Tt]el|viz|[Vv]ol|vs|MM?|"
    r"Abb|Anm|Aufl|Bd|Dipl|exkl|geb|gest|Hrsg|inkl|Kap|sog|verh|z\.B|Ziff|zzgl|\u0442\.\u0435)\.$"
)
"""Abbreviations that no sentence ends with, besides those that sentencex knows."""
NUMBERED = ("bs", "cs", "da", "de", "et", "fi", "hr", "hu", "is", "lv", "nb", "nn", "no", "sk", "sl", "sr", "tr")
"""Languages that write ordinal numbers with a full stop."""
ORDINAL = re.compile(r"(?:^\w+|\s[^\W\d_A-Z]\w*) \d\d?\.$")
"""A number after the first word or a lowercase word: "Die 5. Klasse", "im 19. Jahrhundert", but not "mit Python 3."."""
LIST_END = re.compile(r"\b(?:etc|usw|u\.\s?s\.\s?w)\.\s+(?=[A-Z])")
"""Abbreviations that may end a sentence. sentencex never cuts after these in some languages."""


@cache
def script(character: str) -> str:
    """The script of a letter, by its Unicode name; "" for anything else, and for letters of all scripts."""
    name = re.match(r"[A-Z]+", unicodedata.name(character, "")) if character.isalpha() else None
    return name[0] if name and name[0] not in ("MODIFIER", "IDEOGRAPHIC") else ""


def scripts_of_language(code: str) -> frozenset[str] | None:
    """The scripts of a language such as de, pt_BR or zh-Hans; None for one that is not known."""
    code = re.split("[-_]", code.lower())[0]
    return next((frozenset(names) for names, codes in SCRIPTS.items() if code in codes), None)


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


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of a line, by the rules of its language or general ones."""
    import sentencex

    ends = {*accumulate(map(len, sentencex.segment(language, text.translate(QUOTES)))), len(text)}
    ends.update(match.end() for match in LIST_END.finditer(text))
    sentences, begin = list[str](), 0
    for end in sorted(ends):
        tail = text[max(begin, end - TAIL) : end]
        if opening := OPENING.search(tail):
            tail = tail[: opening.start()]
            end -= len(opening[0])
        if end == len(text) or is_end(tail, text[end], language):
            sentences.append(text[begin:end])
            begin = end
    return [sentence for sentence in (*sentences, text[begin:]) if sentence.strip()]


def is_end(tail: str, following: str, language: str) -> bool:
    """True if a sentence with this tail ends where sentencex cuts it before the `following` character."""
    stripped = tail.rstrip()
    is_inside = not stripped or (tail == stripped and stripped[-1] in ".([")  # System.IO
    if is_inside or NUMBER.fullmatch(tail) or following in ",;":
        return False
    if not stripped.endswith("."):
        return stripped[-1] in "!?" or not following.islower()  # "What?" she asked
    return not (ABBREVIATION.search(stripped) or (language in NUMBERED and ORDINAL.search(stripped)))
