"""The patterns of items that a translation must keep unchanged, such as placeholders and addresses.

Every repetition is possessive, atomic or bounded, so that the time to search a line is proportional
to its length. No group is possessive, because before Python 3.11.5, they match wrongly
(python/cpython#106052).

Within brackets, the patterns use names of their own for kinds of characters; see `SHORTHANDS`.
Items mostly consist of Latin letters, and may adjoin letters of other scripts: in Japanese, Chinese
and Thai, there are no blanks between words, and Korean, Arabic and other languages join particles
to foreign words.
"""

import re

from nmt.items.measures import BLANK, FRACTION, MEASURE, MONEY
from nmt.items.placeholders import HIRAGANA, PLACEHOLDERS
from nmt.text import CYRILLIC, GREEK, HAN, HANGUL, KANA, LATIN, MARKS, SOUTH_EAST

ADJOINING = HAN + KANA + SOUTH_EAST + HANGUL
SHORTHANDS = {
    r"\L": f"{LATIN}0-9_",  # what words of the Latin script consist of
    r"\E": f"{LATIN}{GREEK}{CYRILLIC}0-9_",  # the same for all European scripts
    r"\A": rf"\w{MARKS}",  # what words of any script consist of
    r"\N": ADJOINING,  # scripts in which an item adjoins the words around it
}


def compiled(*patterns: str) -> re.Pattern[str]:
    """Any of the patterns, whose shorthands are replaced."""
    pattern = "|".join(patterns)
    for shorthand, characters in SHORTHANDS.items():
        pattern = pattern.replace(shorthand, characters)
    return re.compile(pattern)


# After letters of other scripts, a hyphen joins a prefix to an address, as in Hebrew.
BEFORE_MAIL = r"(?:(?<![\E.+-])|(?<=(?![\E])[\A]-))(?!(?<=[\A])-)"
# Letters of every script, because addresses and file names have them; `Surroundings` finds
# the letters that merely follow.
ADDRESSES = (
    r"(?<![\L])(?i:https?://|s?ftp://|file:///?|ssh://|git://|wss?://|smb://|www\.)"
    r"(?=[\w/])[\A!#-;=?-~]{1,2000}+",
    rf"{BEFORE_MAIL}(?:mailto:)?[\E.+-]{{1,64}}+(?>'[\E.+-]{{1,64}}+|)"
    r"@[\E-]{1,63}+(?>(?:\.[\E-]{1,63}+){1,8})",
)
ENDINGS = (
    "py|pyi|js|ts|json|jsonl|ya?ml|toml|xml|x?html?|css|txt|md|rst|csv|tsv"
    "|pdf|docx?|xlsx?|pptx?|od[tsp]|png|jpe?g|gif|svg|ico|webp"
    "|zip|tar|gz|bz2|xz|zst|7z|rar|sh|bat|exe|dll|so|deb|rpm|iso"
    "|conf|cfg|ini|env|log|sql|db|sqlite3?|cpp|hpp|java|go|rs|rb|php|pot?|mo"
    "|mp[34]|wav|ogg|avi|mkv|bak|tmp|com|org|net|srt|vtt|tmx|xlf|xliff|epub"
)
OPENING_MARKS = "(\"'\u201c\u201e\u00ab\u300c\u300e\u3010\u300a\uff08"
PATH = r"(?>~|\.\.?|)(?>(?:/[\A.@+-]{1,200}+){1,30})/?+"
ROOTS = "bin|boot|dev|etc|home|lib|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var"
LATIN_NAME = rf"[\L-]{{1,100}}+(?:[./][\L-]{{1,100}}+){{0,30}}\.(?i:{ENDINGS}|[ch])(?![\L])"
FILES = (
    # C:\x
    r"(?<![\L/.])[A-Za-z]:\\[^\s\"<>|*?]{1,400}+",
    rf"(?<![\A/.<~])(?=[~.]|/[\L.@+-]){PATH}",  # /etc/hosts, ~/x, ../x
    # Without a blank before it, only what hardly is "or": /etc, /a/b.
    rf"(?<=[\N])(?=~|/(?:{ROOTS})(?![\L])|/[a-z][a-z\d.-]{{0,60}}/[\L.]){PATH}",
    rf"(?<![\L*/.])\*\.(?:{ENDINGS})(?![\L])",  # *.txt
    rf"(?<![^\s{OPENING_MARKS}{HIRAGANA}])\.[a-z][\L-]{{1,60}}+(?![\L-])",  # .env
    # setup.py, a/b.txt
    r"(?:(?<![\A/.-])|(?<=%s/))[\A-]{1,100}+(?:[./][\A-]{1,100}+){0,30}"
    rf"\.(?i:{ENDINGS}|[ch])(?![\L])",
    rf"(?<=[\N]){LATIN_NAME}",
)
VERSIONS = (
    # 4.2.1, v2.0-beta1, 192.168.0.1:8080, 10.0.0.0/8
    r"(?<![\L\d.,])(?:v\d{1,9}+(?>(?:\.\d{1,9}+){1,7})|\d{1,9}+(?>(?:\.\d{1,9}+){2,7}))"
    r"(?>[:/]\d{1,5}+|-?(?:alpha|beta|rc|dev|pre|[ab](?=\d))\.?\d{0,4}+|)(?![\L])",
    # python3.11
    r"(?<![\L.+~/-])[A-Za-z][A-Za-z+~-]{0,60}+\d{1,4}+\.\d{1,4}(?![\L\d]|\.\d)",
)
DATES = (
    # 2024-05-01, 2024-05-01T12:30
    r"(?<![\L\d-])\d{4}-\d\d-\d\d(?>T\d\d:\d\d(?>:\d\d|)Z?|)(?![\L\d]|-\d)",
    # 12:30:15
    r"(?<![\L\d:.])\d{1,2}+:\d\d(?>:\d\d|)(?![\L\d]|:\w)",
)
NAMES_IN_CODE = (
    # --force, --output=FILE
    r"(?<![\L-])--[A-Za-z][\L-]{0,60}+(?>=[\L](?>(?:[\L/:@+-]|\.(?=[\L])){0,200})|)",
    # MAX_SIZE, but not _Open
    r"(?<![\L])(?:__[\L]{1,80}+|[A-Za-z0-9]{1,60}+_[\L]{1,80}+)",
    r"(?<![\L.])[A-Za-z][\L]{0,60}+(?>(?:\.[\L]{1,60}+){0,8})\(\)",  # open()
)
NAMES = (
    *DATES,
    *NAMES_IN_CODE,
    # Ctrl+S
    r"(?<![\L])(?i:Ctrl|Strg|Alt|Shift|Cmd|Meta|Super|Win)"
    r"(?>(?:\+(?:[\L]{1,12}+|[-+,.←-↓](?![\L]))){1,4})",
    MONEY.pattern,  # $10
)
IN_PHONE = "[ \u00a0-]?"
# Telephone numbers, in forms that neither dates, years, ISBNs nor amounts have.
PHONES = (
    # International, with 8 to 15 digits: +20 2 1234 5678, +1 (555) 123-4567
    r"(?<![\L.,+-])\+(?=[1-9](?:[ \u00a0()-]{0,2}\d){7,14}(?![\L]))"
    rf"\d{{1,15}}+(?>(?:{IN_PHONE}(?:\(\d{{1,5}}\)|\d{{1,14}}+)){{0,7}})(?![\L]|-\d)",
    r"(?<![\L.,+-])(?:1-)?[2-9]\d\d-\d{3}-\d{4}(?![\L]|[.,-]\d)",  # 212-555-0100
    r"(?<![\L.,+-])\([2-9]\d\d\) ?\d{3}-\d{4}(?![\L]|[.,-]\d)",  # (212) 555-0100
    # 03-1234-5678, 0120-123-456
    r"(?<![\L.,+-])(?=0(?:-?\d){8,10}(?![\L-]))\d{2,5}-\d{1,4}-\d{3,4}(?![\L]|[.,-]\d)",
    r"(?<![\L.,+-])\(0\d{1,4}\) ?\d{2,4}-\d{4}(?![\L]|[.,-]\d)",  # (03) 1234-5678
)
SCRIPT = "[²³¹⁰ⁱ⁴-ⁿ₀-₎]"
IN_FORMULA = "A-Za-z0-9\u0370-\u03ffµ"
LONG_WORD = "[a-z\u0370-\u03ff]{4}|[A-Z][a-z]{3}"
GROUP = r"\([A-Z][A-Za-z₀-₉]{0,9}\)"
RAISED = (
    # 2½, 3 ¾
    rf"(?<![\L\d.,])\d{{1,9}}+{BLANK}?{FRACTION}(?![\L\d])|\d{{0,9}}+{FRACTION}",
    # with the fraction slash, U+2044
    r"(?<![\d\u2044])(?>\d{1,6}[ \u00a0]|)\d{1,6}+\u2044\d{1,6}+",
    # 10⁻³, m², x₁, CO₂, Ca²⁺, Ca(OH)₂; but of word¹, which calls a footnote, only the digit
    rf"(?<![{IN_FORMULA}_\u00c0-\u052f])"
    rf"(?:[A-Za-zµμΩ]{{1,4}}[/·⋅]|)(?!{LONG_WORD})[{IN_FORMULA}]{{1,20}}"
    rf"(?>(?:{SCRIPT}|{GROUP}{SCRIPT})"
    rf"(?:{SCRIPT}|{GROUP}{SCRIPT}|[{IN_FORMULA}]|[/·⋅][A-Za-z]{{1,4}}(?![\L])){{0,30}})",
    rf"{SCRIPT}{{1,9}}+",
)
URL = compiled(*ADDRESSES)
ADDRESS = compiled(*ADDRESSES, *FILES)
PLACEHOLDER = compiled(*PLACEHOLDERS)
ALL = compiled(
    *PLACEHOLDERS,
    *ADDRESSES,
    *FILES,
    *PHONES,
    *VERSIONS,
    *NAMES,
    MEASURE.pattern,
    *RAISED,
)
# The kinds that are the same in all languages, unlike numbers, dates, versions and keys.
FIXED = compiled(*PLACEHOLDERS, *ADDRESSES, *FILES, *NAMES_IN_CODE)
# Items that are extended to whole words, without final punctuation. GLUE joins the rest of a word
# to an item.
WHOLE = compiled(*ADDRESSES, *FILES, *VERSIONS)
GLUE = compiled(r"[-+~:/](?=[\L])[\L.+~:/-]{1,200}+")
BEFORE_GLUE = compiled(r"[\L][\L.+~-]*[-+~]$")
# The beginning of a placeholder that forms one item with adjoining ASCII characters, such as uid=%s
# and stat(%s).
ARGUMENT = re.compile(r"[%$]|\{(?![{%#/@])")
# The first of two tags in braces, such as {b} and {/b}.
OPENING = re.compile(r"\{(\w{1,60}+)(?>=[^{}]{1,60}+|)\}")
BEFORE_ARGUMENT = re.compile(r"[A-Za-z0-9%{$][\w=(/:.@+#\[~,%{}$]{0,200}$", re.ASCII)
AFTER_ARGUMENT = re.compile(r"[\w=(/:.@+#\[\]~,%{}$)]{1,200}+", re.ASCII)
# Every match of ALL contains such a sign. Most lines contain none, and searching for one is much
# faster.
SIGN = re.compile(
    r"[`{<%$@/\\\d_&*§¼-¾⅐-⅞↉²³¹⁰ⁱ⁴-ⁿ₀-₎]|\.\w|--|\(\)|\w\+\w|\[[\[\w/]|#\w|:[\w+-]|!\w|\|\|\|\|"
)
# Such a sign, or one of the few items without any: Ctrl++ and [#,text].
ANY_SIGN = re.compile(rf"{SIGN.pattern}|\w\+[-+,.←-↓]|\[#,")
# A placeholder without a name or number: {}, {:.2f}, %s, %-5d, %llu or %v.
COUNTED = re.compile(
    r"\{[}:!]|%[-+0#', ]{0,5}(?:\d{0,9}|\*)(?:\.(?:\d{0,9}|\*))?"
    r"(?:<PRI|(?:hh|ll|[hlzjtLq])?(?![nN])[A-Za-z@](?!\d)(?![\w.-]*%)(?![A-Za-z_]{2}))"
)
