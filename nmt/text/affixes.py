# ruff: noqa: RUF001 - letters of other scripts look like Latin ones
"""Particles, prefixes and endings that languages write together with a word.

Arabic and Hebrew join conjunctions, prepositions and articles to the next word, and Korean joins
particles to the word before. The word itself does not change. Inflection, which changes words, is
not covered, apart from plurals that are merely appended.
"""

import re

import regex

from nmt.text.characters import EXTENDING
from nmt.text.scripts import script
from nmt.text.word_borders import is_word_border

ARABIC_PREFIX = re.compile("[وف]?(?:[بك]?ال|لل|[بكل])|[وف]")
"""And, then; with, as, for; the article, which merges with "for"."""
ARABIC_ARTICLE = "ال"
ARABIC_PRONOUN = re.compile("ها|هما|هم|هن|نا|كما|كم|كن|ه|ك|ي")
"""Possessive pronouns."""
ARABIC_ACCUSATIVE = "ا"
TAA_MARBUTA = "ة"
TAA = "ت"
"""The letter that taa marbuta becomes before a pronoun."""
NO_ACCUSATIVE = ("ا", "ى", "ء", TAA_MARBUTA)
"""Words with these endings have no alif in the indefinite accusative."""
FEWEST_LETTERS = 3
"""Shorter Arabic words begin and end with too many letters that look like prefixes and pronouns."""
HEBREW_PREFIX = re.compile("ו?(?:לכש|כש|מש|ש)?[בכלמ]?ה?")
"""And; when, since, that; in, as, to, from; the article."""
PERSIAN_ENDING = re.compile("\u200c(?:هایی|های|ها|ای|ی)")
AFTER_CONSONANT = (
    "은 이 을 과 으로 으로서 으로써 이랑 이나 이란 이며 이고 이라 이라는 이라고 "
    "이라도 이라서 이든지 이든 이야말로 이에요 이어서"
)
AFTER_VOWEL = (
    "는 가 를 와 랑 나 란 라 라는 라고 라도 라서 라면 든지 든 야말로 예요 였습니다 여서 지만 므로"
)
AFTER_VOWEL_OR_L = "로 로서 로써"
AFTER_ANY = (
    "의 에 에서 에게 께 한테 도 만 까지 부터 마저 조차 밖에 보다 처럼 같이 마다 하고 뿐 "
    "대로 만큼 에게서 한테서 께서 에다 에다가 엔 에선 에겐 한텐 께선 커녕 씩 쯤 들 이다 "
    "입니다 입니까 인 인데 인지 인가 이지만 이므로 "
    "이었다 이었습니다 였다 이면 이라면 이죠 이니 이니까"
)
AFTER_ONE_SYLLABLE = frozenset("은 는 을 를 에 에서".split())  # noqa: SIM905
"""The other particles, such as 가 and 도, form other words with many single syllables."""
KOREAN_PLURAL = "들"
MOST_PARTICLES = 3
"""A Korean word takes at most so many particles in a row."""
LONGEST_AFFIX = 12
"""The maximum length of prefixes or particles in characters."""
KATAKANA_TERM = regex.compile(r"[\p{Katakana}\u30fc]{3,}")
HANGUL_TERM = regex.compile(r"\p{Hangul}{2,}")
CONTINUES_SOUND = re.compile("[ァィゥェォッャュョヮー]")
"""Katakana that belong to the letter before them."""
FIRST_SYLLABLE = 0xAC00
LAST_SYLLABLE = 0xD7A3
FINALS = 28
"""The number of final consonants, including none. Unicode orders Hangul syllables by them last."""
FINAL_L = 8
"""The final consonant after which "to" is 로, as after a vowel."""
OPTIONAL_MARKS = regex.compile("[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0670]+")
"""Marks that Arabic and Hebrew mostly leave out, and the letter that only stretches words."""


def without_vowel_points(text: str) -> str:
    """The text as Arabic and Hebrew usually write it."""
    return text if text.isascii() else OPTIONAL_MARKS.sub("", text)


def may_begin(text: str, at: int, end: int) -> bool:
    """Whether a word from `at` to `end` begins there, apart from prefixes joined to it."""
    if is_word_border(text, at):
        return True
    # Not a border, so whatever stands before must be a prefix that the language joins to words.
    begin = beginning_of_word(text, at)
    return is_prefix(text[begin:at], text[at:end])


def beginning_of_word(text: str, at: int) -> int:
    """The index of the last border of a word before `at`, as far as a prefix may reach."""
    begin = at - 1
    # Bounded, because text without blanks may have no other border for thousands of characters.
    while begin > at - LONGEST_AFFIX and not is_word_border(text, begin):
        begin -= 1
    return begin


def is_prefix(prefix: str, word: str) -> bool:
    """Whether a language joins a prefix such as an article to a word."""
    # The word decides, not the prefix: its first letter shows the language.
    name = script(word[0])
    prefix = without_vowel_points(prefix)
    if name == "ARABIC":
        return is_arabic_prefix(prefix, word)
    return name == "HEBREW" and HEBREW_PREFIX.fullmatch(prefix) is not None


def is_arabic_prefix(prefix: str, word: str) -> bool:
    # The article is a sure sign; a single letter before a short word may as well be part of a root.
    if ARABIC_ARTICLE not in prefix and len(word) < FEWEST_LETTERS:
        return False
    # The article is written once.
    has_article = word.startswith(ARABIC_ARTICLE) and len(word) > FEWEST_LETTERS + 1
    if has_article and (ARABIC_ARTICLE in prefix or prefix.endswith("لل")):
        return False
    return ARABIC_PREFIX.fullmatch(prefix) is not None


def may_end(text: str, begin: int, end: int, *, plural: bool = False) -> bool:
    """Whether a word from `begin` to `end` ends there, apart from particles joined to it.

    With `plural`, endings of the plural may also follow.
    """
    if is_word_border(text, end):
        return True
    # Persian writes endings after a zero-width non-joiner, which is not a border of a word.
    persian_ending = PERSIAN_ENDING.match(text, end) if plural else None
    if persian_ending:
        return is_word_border(text, persian_ending.end())
    ending = text[end : end_of_word(text, end)]
    return is_particle(ending, text[begin:end], plural=plural)


def is_part_of_compound(text: str, begin: int, end: int) -> bool:
    """Whether a term may be part of a compound, which Japanese and Korean write as one word.

    データファイル uses ファイル, and 메타패키지 uses 패키지. A single letter before the term is no
    word: 컴파일 does not use 파일. Without a dictionary, プロファイル counts as a use of ファイル,
    too.
    """
    word = text[begin:end]
    if not (KATAKANA_TERM.fullmatch(word) or HANGUL_TERM.fullmatch(word)):
        return False
    # A small kana or a prolonged sound belongs to the syllable before, so a word neither begins nor
    # ends beside it in the middle of that syllable.
    if CONTINUES_SOUND.match(text, begin) or CONTINUES_SOUND.match(text, end):
        return False
    return is_word_border(text, begin) or not is_word_border(text, begin - 1)


def end_of_word(text: str, at: int) -> int:
    """The index of the next border of a word after `at`, as far as an ending may reach."""
    end = at + 1
    while end < at + LONGEST_AFFIX and not is_word_border(text, end):
        end += 1
    return end


def is_particle(ending: str, word: str, *, plural: bool = False) -> bool:
    """Whether a language joins an ending such as a particle to a word."""
    # Endings follow the last letter, even in a word with letters of several scripts.
    name = script(word[-1])
    if name == "ARABIC":
        return is_arabic_ending(without_vowel_points(ending), word)
    if name != "HANGUL":
        return False
    if plural and ending.startswith(KOREAN_PLURAL):
        # The particle after the plural depends on its final consonant, not on that of the word.
        word += KOREAN_PLURAL
        ending = ending.removeprefix(KOREAN_PLURAL)
    if len(word) == 1:
        return ending in AFTER_ONE_SYLLABLE
    return not ending or is_chain(ending, word, MOST_PARTICLES)


def is_arabic_ending(ending: str, word: str) -> bool:
    """Whether an ending without vowel points is a pronoun, or that of the indefinite accusative."""
    if len(word) < FEWEST_LETTERS:
        return False
    if ending == ARABIC_ACCUSATIVE:
        return not word.endswith(NO_ACCUSATIVE)
    return ARABIC_PRONOUN.fullmatch(ending) is not None


def is_chain(ending: str, word: str, most: int) -> bool:
    """Whether an ending consists of at most `most` Korean particles that may follow one another."""
    # The limit keeps the recursion from trying every split of a long ending.
    if not most:
        return False
    # Whether a particle fits depends on the syllable before it, which may be another particle.
    for particle in particles_after(word[-1]):
        rest = ending.removeprefix(particle)
        if len(rest) < len(ending) and (not rest or is_chain(rest, particle, most - 1)):
            return True
    return False


def particles_after(syllable: str) -> list[str]:
    """The Korean particles that may follow a syllable, by its final consonant."""
    particles = AFTER_ANY.split()
    if FIRST_SYLLABLE <= ord(syllable) <= LAST_SYLLABLE:
        # Unicode numbers syllables by consonant, vowel and
        # final consonant (section 3.12 of the standard).
        final = (ord(syllable) - FIRST_SYLLABLE) % FINALS
        particles += (AFTER_CONSONANT if final else AFTER_VOWEL).split()
        if final in (0, FINAL_L):
            particles += AFTER_VOWEL_OR_L.split()
    return particles


def without_prefixes(word: str) -> list[str]:
    """The possible words without the prefixes joined to a word, such as ملف for والملف."""
    stems = list[str]()
    for at in range(1, min(len(word), LONGEST_AFFIX)):
        # A vowel point belongs to the letter before it, so no stem begins with one.
        if not EXTENDING.match(word[at]) and is_prefix(word[:at], word[at:]):
            stems.append(word[at:])
    # The article loses its alif after the preposition,
    # so removing letters alone does not restore it.
    merged = re.match("([وف]?)لل", word)
    if merged:
        stems.append(ARABIC_ARTICLE + word[merged.end() :])
    return stems


def without_particles(word: str) -> list[str]:
    """The possible words without the particles joined to a word, such as 파일 for 파일에서는."""
    stems = list[str]()
    arabic_stems = list[str]()
    shortest = max(len(word) - LONGEST_AFFIX, 0)
    # The longest stem comes first, because it removes the least.
    for length in range(len(word) - 1, shortest, -1):
        stem = word[:length]
        ending = word[length:]
        if not is_particle(ending, stem):
            continue
        stems.append(stem)
        # The stem may be a word in taa, or one in taa marbuta
        # that a pronoun has changed: both are returned.
        if stem.endswith(TAA) and ARABIC_PRONOUN.fullmatch(without_vowel_points(ending)):
            arabic_stems.append(stem.removesuffix(TAA) + TAA_MARBUTA)
    return stems + arabic_stems


def before_pronouns(term: str) -> str | None:
    """The form that an Arabic term has before pronouns, if it is another: مكتبت for مكتبة."""
    if not term.endswith(TAA_MARBUTA):
        return None
    return term.removesuffix(TAA_MARBUTA) + TAA
