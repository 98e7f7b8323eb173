"""Items that a translation must keep unchanged: placeholders, addresses, versions, code, measurements.

Every repetition is possessive, atomic or bounded, so that the time to search a line is proportional to its length. No
group is possessive, because before Python 3.11.5, they match wrongly (python/cpython#106052).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from nmt.errors import NMTError
from nmt.text import single_blanks

USUAL = "usual"


def in_braces(depth: int) -> str:
    """A pattern for braces with text and further braces, nested up to `depth` levels."""
    pattern = r"\{[^{}]{0,200}+\}"
    for _ in range(depth - 1):
        pattern = rf"\{{(?>(?:[^{{}}]|{pattern}){{0,400}})\}}"
    return pattern


IN_PARENTHESES = r"\((?>(?:[^()]|\((?>(?:[^()]|\([^()]{0,60}+\)){0,100})\)){0,200})\)"
CODE = (
    r"``(?>(?:[^`]|`(?!`)){1,400})``",
    r"`(?!\s)[^`]{1,400}+(?<!\s)`(?![\w%])",  # but not `%s' or `%s'
)
# What template engines replace, which has a mark of its own at each end.
TEMPLATES = (
    r"\{\{\{[^{}]{0,200}+\}\}\}",  # Handlebars: {{{html}}}
    r"\{\{(?>(?:[^{}]|\{[^{}]{0,100}+\}){0,200})\}\}",  # Angular, Go, i18next, Jinja, MediaWiki: {{ x }}
    r"\{%(?>(?:[^%]|%(?!\})){0,300})%\}|\{#\s(?>(?:[^#]|#(?!\})){0,300})#\}",  # Jinja: {% if x %}, {# note #}
    r"<%(?>(?:[^%]|%(?!>)){0,300})%>",  # ERB, EJS, JSP: <%= x %>
    r"<\?(?>(?:[^?]|\?(?!>)){0,300})\?>",  # PHP: <?= $x ?>
    r"<!--(?>(?:[^-]|-(?!->)){0,300})-->",
    r"\[%(?>(?:[^%]|%(?!\])){0,300})%\]",  # Template Toolkit: [% name %]
    r"</?#[a-z][^<>]{0,200}+>",  # FreeMarker: <#if x>
    r"\$\(\([^()]{1,100}+\)\)",  # shell: $((x+1))
    rf"\$!(?=\{{[^}}]){in_braces(3)}",  # Velocity: $!{name}
    rf"[$#](?=\{{[^}}]){in_braces(3)}",  # shell, JavaScript, Kotlin, Ruby: ${x.y()}, ${NAME:-a b}, #{x}
    rf"\$tc?{IN_PARENTHESES}|\$(?=\([\"'A-Za-z_]){IN_PARENTHESES}",  # i18next: $t(key); make, shell: $(NAME)
    rf"\\(?=\(\S){IN_PARENTHESES}",  # Swift: \(name)
)
KEYWORDS_OF_CHOICES = "plural|select|selectordinal|choice"
KEYWORDS_OF_FORMATS = "number|date|time|spellout|ordinal|duration|list"
NAMED = r"\{\s{0,9}+\w{1,60}+\s{0,9}+,\s{0,9}+"
BRACES = (
    # ICU: {count, plural, one {# file} other {# files}}, with placeholders in its forms
    rf"{NAMED}(?:{KEYWORDS_OF_CHOICES})\s{{0,9}}+,(?>(?:[^{{}}]|{in_braces(5)}){{0,400}})\}}",
    rf"{NAMED}(?:{KEYWORDS_OF_FORMATS})\s{{0,9}}+(?>,[^{{}}]{{0,60}}+|)\}}",
    r"\{\s{0,4}+\$[A-Za-z][^{}]{0,200}+\}",  # Fluent, MessageFormat 2: { $name }, {$n :number}
    r"\{\s{0,4}+-[A-Za-z][\w-]{0,60}+(?>\([^(){}]{0,100}+\)|)\s{0,4}+\}",  # Fluent: { -brand }
    r"\{\s{0,4}+[A-Z]{2,20}+\([^(){}]{1,200}+\)\s{0,4}+\}",  # Fluent: { NUMBER($n) }
    r"\{\s{1,4}+[A-Za-z_][\w.-]{0,60}+\s{1,4}+\}",  # Fluent, ICU: { name }
    r"\{[@#:/][a-z][^{}]{0,100}+\}",  # Svelte: {#if x}, {@html x}
    r"\{\d{1,2}+(?>,-?\d{1,3}+|):[^{}]{1,60}+\}|\{\w{0,60}+:%[^{}]{1,60}+\}",  # .NET: {0:d MMM}; Python: {x:%d %b}
    r"[$#@%]?\{(?>(?:[^{}\s]|\{[^{}\s]{0,60}+\}){0,100})\}",  # {}, {name}, {0:.2f}, {0:{width}}, %{name}
)
NOT_PERCENT = "(?<!\\d[ \u00a0\u202f])"  # the sign in "100 %ige" is a unit
FLAGS = r"[-+0# ]{0,5}+\d{0,9}+(?>\.\d{1,9}+|)"
PERCENT = (
    rf"%\(\w[\w .-]{{0,60}}+\){FLAGS}[a-zA-Z]",  # Python: %(name)s
    rf"%<(?!PRI)\w{{1,60}}+>{FLAGS}[a-zA-Z]",  # Ruby: %<price>.2f
    rf"%{FLAGS}<(?!PRI)\w{{1,60}}+>[a-zA-Z]|%\"PRI\w{{1,20}}+\"",  # Ruby: %-10<name>s; C: %"PRIu64"
    r"%\d{1,2}+!\w{1,8}+!|%I(?:32|64)[diouxX]",  # Windows: %1!s!, %I64d
    r"%(?>\d{1,3}\$|)#@\w{1,60}+@",  # Apple's stringsdict: %#@files@
    r"%[-+0# ]{0,5}+(?>(?:\[\d{1,2}+\](?:\*|\d{1,3}+|)\.?){1,3})\d{0,3}+[a-zA-Z]",  # Go: %[1]s, %[2]*.[1]f
    r"(?<![\w%])%%\w{2,60}+%%(?!\w)",  # %%title%%
    # Symfony, Twig, Windows: %name%; Boost: %1%
    rf"(?<![\w%]){NOT_PERCENT}%(?:[A-Za-z_][\w.-]{{0,58}}\w|\d{{1,2}}+)%(?![\w%])",
    # %1$s, %-5.2f, %*d, %2$*1$d, % d; Java's %tY
    r"%(?>\d{1,3}+\$|)[-+0#',]{0,5}+(?:\d{0,9}+|\*(?>\d{1,3}+\$|))(?>\.(?>\d{1,9}+|\*(?>\d{1,3}+\$|)|)|)"
    r"(?:[sdu]|<PRI\w{1,20}+>|(?:hh|ll|[hlzjtL])(?:[diuxX]|[aAcCeEfFgGnosS](?!\w))"
    r"|[ifFxXcgGeEorpm@](?!\w)|[tT][A-Za-z](?!\w))|% [di](?!\w)",
    rf"(?<![\d%]){NOT_PERCENT}%[-+#^_]?[A-Za-z](?!\w)",  # Go: %v, %+v, %q; strftime: %Y-%m-%d
    r"(?<![\w%])%(?:L?\d{1,2}+|L?n)(?!\w|%(?!L?\d))|%%",  # Qt: %1, %L1, %n and %Ln
    rf"(?<![\w%]){NOT_PERCENT}%[a-z][a-z\d_-]{{1,40}}[a-z\d](?![\w%(])",  # Drupal: %name
)
# Names with a mark before them, or around them.
VUE_KEY = r"\{'[^'{}]{1,60}+'\}|\([\w.-]{1,80}+\)|[A-Za-z_][\w-]{0,60}+(?>(?:\.[\w-]{1,60}+){0,9})"
LATEX = "(?:eq|page|auto|name|[cC])?ref|[cC]ite[a-z]{0,10}+|label|url|href|gls|includegraphics|input|begin|end"
MARKED = (
    r"!?\[\[[^\[\]]{1,100}+\]\]",  # MediaWiki: [[Page|text]]; Polymer: [[name]]
    r"##\w{1,60}+##|(?<![\w#])#[A-Za-z_]\w{1,40}+#(?![\w#])|@@\w{1,60}+@@",
    r"(?<![\w:]):[a-z\d_+-]{2,40}+:(?![\w:])",  # Slack and Discord: :thumbs_up:
    r"(?<![\w/:]):[A-Za-z_]\w{1,60}+(?>(?:-[a-z]\w{0,30}+){0,4})(?![\w:])",  # Laravel, Drupal: :user-name
    rf"(?<!\w)@(?>\.[a-z]{{1,20}}+|):(?:{VUE_KEY})",  # Vue: @:key.name, @.lower:key, @:{'a key'}
    # Razor: @(Model.Name), @Html.Raw("x"); Blade: @lang('key')
    rf"(?<![\w@.])@(?>[A-Za-z_][\w.]{{0,60}}+|)(?=\(\S){IN_PARENTHESES}",
    r"(?<![\w@.])@[A-Za-z_][\w-]{1,60}+(?>@(?!\w)|(?:[./@][\w-]{1,60}+){0,5})",  # Drupal: @count; Razor: @Model.Name
    r"(?<![\w@.!])!(?=[a-z_])[a-z\d_]{2,40}+(?>(?:-[a-z\d]{1,30}+){0,4})(?![\w!])",  # Drupal: !user-name
    # PHP: $user->name, $a['b']
    r"(?<![\w$])\$[A-Za-z_]\w{0,60}+(?>(?:->\w{1,60}+|\[[\"']?\w{1,60}+[\"']?\]){1,9})",
    # $name, $HOME/bin, $env:PATH; Chrome: $NAME$
    r"(?<![\w$])\$[A-Za-z_]\w{0,60}+(?>\$(?!\w)|:[A-Za-z_]\w{0,60}+|(?:/[\w.@+-]{1,200}+){0,30})",
    r"\|\|\|\|",  # separates the plural forms of Polyglot
    r"§(?:\d{1,4}+|[a-fk-or])",  # Minecraft: §a
    r"&(?:[A-Za-z]\w{1,10}+|#\d{1,6}+|#x[\da-fA-F]{1,6}+);",  # &nbsp;
    rf"\\(?:{LATEX})\*?(?>\[[^\[\]]{{0,60}}+\]|)\{{[^{{}}]{{0,200}}+\}}",  # LaTeX: \ref{x}
    r"(?<![\\:])\\(?:[nrt](?![a-z])|u[\da-fA-F]{4}|x[\da-fA-F]{2}|[\"'](?=\w))|(?<=\w)\\[\"']",  # \n, \"
)
TAGS = (
    r"</?[A-Za-z][^<>\s]{0,60}+(?>\s{1,9}+[\w:@-]{1,40}+\s{0,9}+=[^<>]{0,400}+|\s{0,9}+/|)>",  # <b>, <a x="y">
    r"</?\d{1,3}+\s?/?>|<<[\w.-]{1,60}+>>",  # React: <0>, <1/>
    r"<[@#!:][^<>\s]{1,100}+>",  # Discord and Slack: <@123>
    r"\[[bius]\](?=.{0,300}\[/)|\[/[a-z]{1,20}+\]|\[[a-z]{1,20}+=[^\[\]]{1,100}+\]",  # BBCode: [b], [/url], [url=x]
    r"\[[a-z_]{1,40}+(?>(?:\s{1,3}+\w{1,40}+=\"[^\"\[\]]{0,200}+\"){1,20})\s?/?\]",  # WordPress: [gallery ids="x"]
    r"\[(?:quant|numf|numerate|sprintf|\*|\#),[^\[\]]{1,200}+\]",  # Maketext: [quant,_1,file]
    r"\\[A-Z]{1,2}\[\d{1,4}+\]",  # RPG Maker: \C[1]
    r"\[[A-Za-z]\w{0,40}+(?>(?:[.!][A-Za-z]\w{0,40}+){1,5})\](?![(\[])",  # Ren'Py: [player.name]
)
PLACEHOLDERS = (*CODE, *TEMPLATES, *BRACES, *PERCENT, *MARKED, *TAGS)
ADDRESSES = (
    r"\b(?i:https?://|s?ftp://|file:///?|ssh://|git://|wss?://|smb://|www\.)(?=[\w/])[\w!#-;=?-~]{1,2000}+",
    r"(?<![\w.+-])(?:mailto:)?[\w.+-]{1,64}+(?>'[\w.+-]{1,64}+|)@[\w-]{1,63}+(?>(?:\.[\w-]{1,63}+){1,8})",
)
ENDINGS = (
    "py|pyi|js|ts|json|jsonl|ya?ml|toml|xml|x?html?|css|txt|md|rst|csv|tsv|pdf|docx?|xlsx?|pptx?|od[tsp]|png|jpe?g|gif"
    "|svg|ico|webp|zip|tar|gz|bz2|xz|zst|7z|rar|sh|bat|exe|dll|so|deb|rpm|iso|conf|cfg|ini|env|log|sql|db|sqlite3?|cpp"
    "|hpp|java|go|rs|rb|php|pot?|mo|mp[34]|wav|ogg|avi|mkv|bak|tmp|com|org|net|srt|vtt|tmx|xlf|xliff|epub"
)
NAME = "[\\w\u0300-\u036f-]"  # includes combining accents
FILES = (  # the last pattern matches setup.py and a/b.txt
    r"(?<![\w/.])[A-Za-z]:\\[^\s\"<>|*?]{1,400}+",
    r"(?<![\w/.<~])(?>~|\.\.?|)(?>(?:/[\w.@+-]{1,200}+){1,30})/?+",  # /etc/hosts, ~/x, ../x
    rf"(?<![^\s(\"'\u201c\u201e])(?:\*\.(?:{ENDINGS})|\.[a-z][\w-]{{1,60}}+)(?!\w)",  # *.txt, .env
    rf"(?:(?<![\w/.-])|(?<=%s/)){NAME}{{1,100}}+(?:[./]{NAME}{{1,100}}+){{0,30}}(?:\.(?i:{ENDINGS}|[ch]))(?!\w)",
)
BLANK = "[ \u00a0\u202f\u2009]"
# Also with a fraction slash between digits, which may be raised and lowered.
FRACTION = "(?:[¼-¾⅐-⅞↉]|[\\d⁰¹²³⁴-⁹]{1,3}\u2044[\\d₀-₉]{1,3})"
POWER = "⁻?[⁰¹²³⁴-⁹]{1,4}"
# 1,000.5, 1 000, 1e-5, 1/2, 2½, ¾, 10⁶ or 25²
NUMBER = (
    r"(?:(?>\d{1,3}/|)\.?\d{1,20}+(?>(?:[.,'\u2019]\d{1,20}+|[ \u00a0\u202f]\d{3}(?!\d)){0,6})(?>e[-+]?\d{1,4}+|)"
    rf"(?:{POWER}|{BLANK}?{FRACTION}|)|{FRACTION})"
)
NAMES = (
    # 4.2.1, v2.0-beta1, 192.168.0.1:8080, 10.0.0.0/8; 2024-05-01, 2024-05-01T12:30; 12:30:15
    r"(?<![\w.,])(?:v\d{1,9}+(?>(?:\.\d{1,9}+){1,7})|\d{1,9}+(?>(?:\.\d{1,9}+){2,7}))"
    r"(?>[:/]\d{1,5}+|-?(?:alpha|beta|rc|dev|pre|[ab](?=\d))\.?\d{0,4}+|)(?!\w)",
    r"(?<![\w.+~/-])[A-Za-z][A-Za-z+~-]{0,60}+\d{1,4}+\.\d{1,4}(?!\w|\.\d)",  # python3.11
    r"(?<![\w-])\d{4}-\d\d-\d\d(?>T\d\d:\d\d(?>:\d\d|)Z?|)(?!\w|-\d)",
    r"(?<![\w:.])\d{1,2}+:\d\d(?>:\d\d|)(?!\w|:\w)",
    r"(?<![\w-])--[A-Za-z][\w-]{0,60}+(?>=\w(?>(?:[\w/:@+-]|\.(?=\w)){0,200})|)",  # --force, --output=FILE
    r"(?<!\w)(?:__\w{1,80}+|[A-Za-z0-9]{1,60}+_\w{1,80}+)",  # MAX_SIZE, but not _Open
    r"(?<![\w.])[A-Za-z]\w{0,60}+(?>(?:\.\w{1,60}+){0,8})\(\)",  # open()
    r"(?<!\w)(?i:Ctrl|Strg|Alt|Shift|Cmd|Meta|Super|Win)(?>(?:\+(?:\w{1,12}+|[-+,.←-↓](?!\w))){1,4})",  # Ctrl+S
    rf"(?<!\w)[€$£¥] ?{NUMBER}(?!\w)",  # $10
)
FACTORS = "(?:[A-Za-zµμΩ]{1,4}[/·⋅]){0,2}"
UNITS = (
    f"{FACTORS}[A-Za-zµμΩ]{{1,4}}{POWER}(?:[/·⋅][A-Za-z]{{1,4}})?|"  # W/m², m³/s, kg·m⁻³
    f"{FRACTION}|"  # the fraction of a mixed number may adjoin it or not: 3 ¾
    "km/h|m/s|[kMGT]?bit/s|[kMGT]i?B/s|[kMG]bps|mph|rpm|fps|[mµ]?g/m³|[kcmnµ]?m[²³]?|[kmµ]?g|t|[mµn]?s|min|h|[kMG]?Hz"
    "|[kKMGT]?i?B|bytes?|[kMG]?bits?|[mµk]?VA?|[mµ]?Ah?|[kMG]?Wh?|[kM]?Ω|[hkM]?Pa|m?bar|psi|lx|lm|k?J|k?cal|Nm"
    "|°C|°F|[°\u2032\u2033]|K|px|pt|em|rem|dpi|[mcd]?[lL]|dB[mA]?|ppm|ppb|lb|oz|ft|yd|%|‰|€|\\$|£|EUR|USD"
)
BEFORE_MEASURE, AFTER_MEASURE = r"(?<![\w.,%°])", r"(?![\w%])"
SIGNED = rf"(?>(?<![)\]])[-+\u2212]|){NUMBER}"
MEASURE = re.compile(rf"{BEFORE_MEASURE}({SIGNED})([ \u00a0\u202f]?)({UNITS}){AFTER_MEASURE}")
SCRIPT = "[²³¹⁰ⁱ⁴-ⁿ₀-₎]"
LATIN = "A-Za-z0-9\u0370-\u03ffµ"
LONG_WORD = "[a-z\u0370-\u03ff]{4}|[A-Z][a-z]{3}"
GROUP = r"\([A-Z][A-Za-z₀-₉]{0,9}\)"
RAISED = (
    rf"(?<![\w.,])\d{{1,9}}+{BLANK}?{FRACTION}(?!\w)|\d{{0,9}}+{FRACTION}",  # 2½, 3 ¾
    r"(?<![\d\u2044])(?>\d{1,6}[ \u00a0]|)\d{1,6}+\u2044\d{1,6}+",  # with the fraction slash, U+2044
    # 10⁻³, m², x₁, CO₂, Ca²⁺, Ca(OH)₂; but of word¹, which calls a footnote, only the digit
    rf"(?<![{LATIN}_\u00c0-\u052f])(?:[A-Za-zµμΩ]{{1,4}}[/·⋅]|)(?!{LONG_WORD})[{LATIN}]{{1,20}}"
    rf"(?>(?:{SCRIPT}|{GROUP}{SCRIPT})(?:{SCRIPT}|{GROUP}{SCRIPT}|[{LATIN}]|[/·⋅][A-Za-z]{{1,4}}(?!\w)){{0,30}})",
    rf"{SCRIPT}{{1,9}}+",
)
ADDRESS = re.compile("|".join([*ADDRESSES, *FILES]))
PLACEHOLDER = re.compile("|".join(PLACEHOLDERS))
ALL = re.compile("|".join([*PLACEHOLDERS, *ADDRESSES, *FILES, *NAMES, MEASURE.pattern, *RAISED]))
# Items that are extended to whole words, without final punctuation; GLUE joins the rest of a word to an item.
WHOLE = re.compile("|".join([*ADDRESSES, *FILES, *NAMES[:2]]))
GLUE = re.compile(r"[-+~:/](?=\w)[\w.+~:/-]{1,200}+")
# The beginning of a placeholder that forms one item with adjoining ASCII characters: uid=%s, stat(%s).
ARGUMENT = re.compile(r"[%$]|\{(?![{%#/@])")
# The first of two tags in braces, such as {b} and {/b}.
OPENING = re.compile(r"\{(\w{1,60}+)(?>=[^{}]{1,60}+|)\}")
BEFORE_ARGUMENT = re.compile(r"[A-Za-z0-9%{$][\w=(/:.@+#\[~,%{}$]{0,200}$", re.ASCII)
AFTER_ARGUMENT = re.compile(r"[\w=(/:.@+#\[\]~,%{}$)]{1,200}+", re.ASCII)
# Every match of ALL contains such a sign. Most lines contain none, and searching for one is much faster.
SIGN = re.compile(r"[`{<%$@/\\\d_&*§¼-¾⅐-⅞↉²³¹⁰ⁱ⁴-ⁿ₀-₎]|\.\w|--|\(\)|\w\+\w|\[[\[\w/]|#\w|:[\w+-]|!\w|\|\|\|\|")
# A placeholder without a name or number: {}, {:.2f}, %s, %-5d, %llu or %v.
COUNTED = re.compile(
    r"\{[}:!]|%[-+0#', ]{0,5}(?:\d{0,9}|\*)(?:\.(?:\d{0,9}|\*))?"
    r"(?:<PRI|(?:hh|ll|[hlzjtLq])?(?![nN])[A-Za-z@](?!\d)(?![\w.-]*%)(?![A-Za-z_]{2}))"
)
TAG_DISTANCE = 400  # in characters, between two tags in braces
SECONDS = 2  # the time limit per line for a user's regular expression
# If one of these adjoins a letter, digit or underscore at an item's edge, the item is part of something longer.
PART_OF = r"A-Za-z0-9_/@\\"
Span = tuple[int, int]
COPIES, BLANK = "".join(map(chr, range(0x10E000, 0x10E7FF))), "\U0010e7ff"
"""Private-use characters. The first ones enclose what a document copies, such as its inline code; see `copy_of`."""
COPY = re.compile(rf"([{COPIES[0]}-{COPIES[-1]}])(?:([^\s{COPIES[0]}-{COPIES[-1]}]*)\1)?")
LONGEST_COPY = 60  # characters; a model is shown only shorter texts


class Finder:
    """Finds protected items: matches of the user's regular expressions first, then the usual kinds."""

    def __init__(self, kinds: Sequence[str]) -> None:
        custom = [kind for kind in kinds if kind != USUAL]
        if custom:
            import regex  # unlike re, supports a time limit

            custom = [regex.compile(kind) for kind in custom]
        self.patterns = [*custom, *([ALL] if USUAL in kinds else [])]

    def stretches(self, line: str) -> list[Span]:
        """The spans of a line's items, in order; adjacent items are merged."""
        taken = bytearray(len(line))
        for pattern in self.patterns:
            earlier = bytes(taken)  # by patterns of the user
            for start, end in spans(pattern, line):
                if pattern is ALL and WHOLE.match(line, start):
                    start, end = whole_word(line, start, end)
                elif pattern is ALL and joins_words(line, start, end):
                    start, end = whole_argument(line, start, end)
                if end > start and not any(earlier[start:end]):
                    taken[start:end] = b"\1" * (end - start)
        # Last, because an item may contain copies, but no item may end inside one.
        for copy in () if line.isascii() else COPY.finditer(line):
            taken[copy.start() : copy.end()] = b"\1" * len(copy[0])
        return [match.span() for match in re.finditer(b"\1+", taken)]


def spans(pattern: Any, line: str) -> list[Span]:
    """The spans of a pattern's matches; NMTError if a user's pattern takes too long."""
    if pattern is ALL:
        return [match.span() for match in pattern.finditer(line)] if SIGN.search(line) else []
    try:
        return [match.span() for match in pattern.finditer(line, timeout=SECONDS)]
    except TimeoutError as error:
        problem = f"takes more than {SECONDS} s for a line of {len(line):,} characters"
        raise NMTError(f"protect={pattern.pattern}: {problem}; avoid nested repetitions") from error


def whole_word(line: str, start: int, end: int) -> Span:
    """The span of a version, name or address with anything that a hyphen, plus or tilde joins to it: 1.2-4ubuntu5."""
    joined = GLUE.match(line, end)
    end = start + len(without_marks(line[start : joined.end() if joined else end]))
    before = re.search(r"\w[\w.+~-]*[-+~]$", line[max(start - 200, 0) : start])
    return start - len(before[0] if before else ""), end


def joins_words(line: str, start: int, end: int) -> bool:
    """Whether the characters next to a placeholder belong to it, unlike those next to %% or a tag such as {b}."""
    opening = OPENING.fullmatch(line, start, end)
    is_tag = opening is not None and f"{{/{opening[1]}}}" in line[end : end + TAG_DISTANCE]
    return bool(ARGUMENT.match(line, start)) and line[start:end] != "%%" and not is_tag


def whole_argument(line: str, start: int, end: int) -> Span:
    """The span of a placeholder, including the characters joined to it and, for `%s', its quotes."""
    before, joined = BEFORE_ARGUMENT.search(line[max(start - 200, 0) : start]), AFTER_ARGUMENT.match(line, end)
    begin = start - len(before[0] if before else "")
    end = max(end, begin + len(without_marks(line[begin : joined.end() if joined else end])))
    quoted = line[begin - 1 : begin] == "`" and line[end : end + 1] == "'"
    return begin - quoted, end + quoted


def without_marks(address: str) -> str:
    """Strip sentence punctuation from the end of an address; keep a closing bracket if the address also opens it."""
    while address and address[-1] in ".,;:!?)]}'*`\"":
        opening = {")": "(", "]": "[", "}": "{"}.get(address[-1])
        if opening and address.count(opening) >= address.count(address[-1]):
            break
        address = address[:-1]
    return address


def copy_of(mark: str, text: str) -> str:
    """An item, without blanks, for something that a document copies; `text` is what a model may see in its place."""
    text = re.sub(f"[{COPIES[0]}-{BLANK}]", "", " ".join(text.split()))
    if len(text) > LONGEST_COPY or not any(map(str.isalnum, text)):
        return mark
    return f"{mark}{text.replace(' ', BLANK)}{mark}"


def readable(text: str, otherwise: str = "\u2026") -> str:
    """The text with what its copies show; `otherwise` stands for copies that show nothing."""
    return COPY.sub(lambda copy: (copy[2] or otherwise).replace(BLANK, " "), text)


def item(line: str, stretch: Span) -> str:
    """An item's text, with white space collapsed as in every translation."""
    return single_blanks(line[slice(*stretch)])


def form(text: str) -> str:
    """A pattern for an item; for a measurement, it allows any language's decimal mark and spacing: 1.5 GB, 1,5 GB."""
    measure = MEASURE.fullmatch(text)
    if not measure:
        return re.escape(text)
    number = re.sub("[.,]", "[.,]", re.sub(r"\s", r"\\s", measure[1].replace("+", r"\+")))
    return number + r"\s?" + re.escape(measure[3])


def one_form(measure: str) -> str:
    """Normalize a measurement, so that all matches of its `form` become equal."""
    return "".join(measure.split()).replace(",", ".")


def edges(line: str, stretch: Span) -> tuple[str, str]:
    """Lookarounds that reject an item inside something longer; empty on a side where it is inside one in the source."""
    first, last = (
        f"[{PART_OF if re.match('[A-Za-z0-9_]', line[at]) else re.escape(line[at])}]"
        for at in (stretch[0], stretch[1] - 1)
    )
    before, after, text = f"(?<!{first})", f"(?!\\.?{last})", item(line, stretch)
    if text.startswith("--") or ADDRESS.fullmatch(text):  # https://a.org/api does not match in https://a.org/api-Server
        after += r"(?!-\w)"
    if MEASURE.fullmatch(text):
        before, after = BEFORE_MEASURE, after + AFTER_MEASURE
    holds = re.compile(before).match(line, stretch[0]), re.compile(after).match(line, stretch[1])
    return before * bool(holds[0]), after * bool(holds[1])


class Items:
    """Finds the items of a line in its translations."""

    def __init__(self, line: str, stretches: Sequence[Span]) -> None:
        self.line, self.texts = single_blanks(line), [item(line, stretch) for stretch in stretches]
        guards = dict[str, tuple[str, str]]()  # the edges that every occurrence of an item in the source has
        for text, stretch in zip(self.texts, stretches, strict=True):
            (before, after), others = edges(line, stretch), guards.get(text)
            guards[text] = (min(before, others[0]), min(after, others[1])) if others else (before, after)
        alternatives = sorted(guards, key=len, reverse=True)
        # No groups: each would take time at every position.
        self.pattern = re.compile("|".join(guards[text][0] + form(text) + guards[text][1] for text in alternatives))
        self.measures = {one_form(text): text for text in reversed(alternatives) if MEASURE.fullmatch(text)}
        # An item's text may also occur outside items, such as the second $x in $x$x; it must stay there, too.
        expected, in_line = [self.measures.get(one_form(text), text) for text in self.texts], self.find(self.line)
        self.expected = in_line if Counter(in_line) >= Counter(expected) else expected

    def replaced(self, text: str, texts: Sequence[str]) -> str:
        """The text with its items, which must be distinct, replaced with `texts`."""
        others = dict(zip(self.texts, texts, strict=True))
        return self.pattern.sub(lambda match: others[self.which(match)], text)

    def which(self, match: re.Match[str]) -> str:
        return self.measures.get(one_form(match[0]), match[0])

    def find(self, text: str) -> list[str]:
        """The items found in a text, in order, except where they are part of something longer."""
        return [self.which(match) for match in self.pattern.finditer(text)]

    def arrive(self, text: str) -> bool:
        """Whether a text has exactly the source's items and no other placeholder; those like %s must be in order."""
        items, rest = self.find(text), self.pattern.sub(" ", text)
        if any(other[0] not in self.line for other in PLACEHOLDER.finditer(rest)):
            return False
        in_order = list(filter(is_counted, items)) == list(filter(is_counted, self.expected))
        return in_order and Counter(items) == Counter(self.expected)


def replaced(line: str, stretches: Iterable[Span], names: Iterable[str]) -> tuple[str, list[Span]]:
    """Replace a line's stretches, given in order, with names; return the new line and the spans of the names."""
    text, last, places = "", 0, list[Span]()
    for (start, end), name in zip(stretches, names, strict=True):
        text += line[last:start]
        places.append((len(text), len(text) + len(name)))
        text, last = text + name, end
    return text + line[last:], places


def is_counted(text: str) -> bool:
    """True for a placeholder that takes the next argument: %s or {}, but not %(name)s, {0}, %1 or {{ x }}."""
    return bool(COUNTED.match(text))


def hidden(line: str, stretches: Sequence[Span]) -> str:
    """The line with each character of its stretches replaced with a null character."""
    return replaced(line, stretches, ["\0" * (end - start) for start, end in stretches])[0]
