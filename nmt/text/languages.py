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
SUBTAG = re.compile(r"[a-z]{4}|[a-z]{2}|\d{3}")
"""A script or a region in a language code (BCP 47, section 2.1), in lower case."""
WRITTEN_CHINESE = {"cn": "hans", "sg": "hans", "tw": "hant", "hk": "hant", "mo": "hant"}
"""Regions that decide which Chinese characters people write."""

FURTHER_CODES = {"fil": "tl", "tgl": "tl", "tl": "tl", "pbt": "ps", "fuv": "ff", "quy": "qu", "twi": "ak"}
"""Codes of corpora that CLDR distinguishes from a language's usual code, or leaves out."""


@cache
def script(character: str) -> str:
    """A letter's script, from its Unicode name; "" for other characters and for letters shared by all scripts."""
    name = re.match(r"[A-Z]+", unicodedata.name(character, "")) if character.isalpha() else None
    return name[0] if name and name[0] not in ("MODIFIER", "IDEOGRAPHIC") else ""


@cache
def language_table() -> dict[str, tuple[str, str]]:
    """Map language codes and English names, in lower case, to the shortest code and the name.

    The codes are those of Unicode's CLDR, with their equivalents in all editions of ISO 639.
    """
    from babel import Locale
    from babel.core import get_global

    names = {code: name for code, name in Locale("en").languages.items() if "_" not in code}
    table = dict[str, tuple[str, str]]()
    for code, name in names.items():
        table[code] = table[name.lower()] = (code, name)
    equivalents = {**get_global("language_aliases"), **FURTHER_CODES}
    for code, short in equivalents.items():
        if short in names:
            table[code] = short, names[short]
    return table


def subtags(code: str) -> tuple[str, frozenset[str]]:
    """The language of a code such as de, deu_Latn or zh-CN, and its further subtags, all in lower case."""
    language, *others = re.split("[-_]", code.lower())
    language, _ = language_table().get(language, (language, ""))
    # Bokmål is the usual written form of Norwegian.
    language = "no" if language == "nb" else language
    if language == "zh":
        written = {WRITTEN_CHINESE.get(subtag, subtag) for subtag in others}
        return language, frozenset(written or {"hans"})
    return language, frozenset(others)


def match_language(code: str, codes: Iterable[str]) -> str | None:
    """The code among `codes` that names the same language as `code`; None if none or several do.

    Case, "_" for "-", and the edition of ISO 639 do not matter: DEU matches de. If there is no
    exact match, a region or script that only one side states does not matter either: de-AT
    matches de, and pt matches pt-BR, unless `codes` also contains pt-PT.
    """
    codes = list(codes)
    if code in codes:
        return code
    language, details = subtags(code)
    equal, similar = list[str](), list[str]()
    for candidate in codes:
        its_language, its_details = subtags(candidate)
        if its_language == language:
            if its_details == details:
                equal.append(candidate)
            elif its_details < details or details < its_details:
                similar.append(candidate)
    matches = equal or similar
    return matches[0] if len(matches) == 1 else None


def is_language(code: str) -> bool:
    """Whether a text is a language code or an English language name: de, zh_CN, eng_Latn, es-419, German."""
    language, *others = re.split("[-_]", code.lower())
    if not others and scripts_of_language(language):
        return True
    if language in language_table():
        # Two languages, as in en-de, also name a corpus.
        return all(SUBTAG.fullmatch(other) or other in language_table() for other in others)
    # There are too many three-letter codes to know them all, but few files have such suffixes.
    return bool(others) and bool(re.fullmatch("[a-z]{3}", language)) and all(map(SUBTAG.fullmatch, others))


def language_name(code: str) -> str:
    """A language's name and code, such as German (de); only the code if the name is unknown."""
    _, name = language_table().get(re.split("[-_]", code.lower())[0], ("", ""))
    return f"{name} ({code})" if name else code


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
