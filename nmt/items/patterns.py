"""The patterns of items that a translation must keep unchanged: placeholders, addresses, versions, code.

Every repetition is possessive, atomic or bounded, so that the time to search a line is proportional to its length. No
group is possessive, because before Python 3.11.5, they match wrongly (python/cpython#106052).

Within brackets, the patterns use names of their own for kinds of characters; see `SHORTHANDS`. Items mostly consist of
Latin letters, and may adjoin letters of other scripts: in Japanese, Chinese and Thai, there are no blanks between
words, and Korean, Arabic and other languages join particles to foreign words.
"""

import re

from nmt.items.measures import BLANK, FRACTION, MEASURE, MONEY
from nmt.text import CYRILLIC, GREEK, HAN, HANGUL, KANA, LATIN, MARKS, SOUTH_EAST

ADJOINING = HAN + KANA + SOUTH_EAST + HANGUL
SHORTHANDS = {
    r"\L": f"{LATIN}0-9_",  # what words of the Latin script consist of
    r"\E": f"{LATIN}{GREEK}{CYRILLIC}0-9_",  # the same for all European scripts
    r"\A": rf"\w{MARKS}",  # what words of any script consist of
    r"\N": ADJOINING,  # scripts in which an item adjoins the words around it
}
HIRAGANA = "\u3041-\u3096"  # writes the particles of Japanese


def compiled(*patterns: str) -> re.Pattern[str]:
    """Any of the patterns, whose shorthands are replaced."""
    pattern = "|".join(patterns)
    for shorthand, characters in SHORTHANDS.items():
        pattern = pattern.replace(shorthand, characters)
    return re.compile(pattern)


def in_braces(depth: int) -> str:
    """A pattern for braces with text and further braces, nested up to `depth` levels."""
    pattern = r"\{[^{}]{0,200}+\}"
    for _ in range(depth - 1):
        pattern = rf"\{{(?>(?:[^{{}}]|{pattern}){{0,400}})\}}"
    return pattern


IN_PARENTHESES = r"\((?>(?:[^()]|\((?>(?:[^()]|\([^()]{0,60}+\)){0,100})\)){0,200})\)"
CODE = (
    r"``(?>(?:[^`]|`(?!`)){1,400})``",
    r"`(?!\s)[^`]{1,400}+(?<!\s)`(?![\L%])",  # but not `%s' or `%s'
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
    r"(?<![\L%])%%\w{2,60}+%%(?![\L])",  # %%title%%
    # Symfony, Twig, Windows: %name%; Boost: %1%
    rf"(?<![\L%]){NOT_PERCENT}%(?:[A-Za-z_][\L.-]{{0,58}}[\L]|\d{{1,2}}+)%(?![\L%])",
    # %1$s, %-5.2f, %*d, %2$*1$d, % d; Java's %tY
    r"%(?>\d{1,3}+\$|)[-+0#',]{0,5}+(?:\d{0,9}+|\*(?>\d{1,3}+\$|))(?>\.(?>\d{1,9}+|\*(?>\d{1,3}+\$|)|)|)"
    r"(?:[sdu]|<PRI\w{1,20}+>|(?:hh|ll|[hlzjtL])(?:[diuxX]|[aAcCeEfFgGnosS](?![\L]))"
    r"|[ifFxXcgGeEorpm@](?![\L])|[tT][A-Za-z](?![\L]))|% [di](?![\L])",
    rf"(?<![\d%]){NOT_PERCENT}%[-+#^_]?[A-Za-z](?![\L])",  # Go: %v, %+v, %q; strftime: %Y-%m-%d
    r"(?<![\L%])%(?:L?\d{1,2}+|L?n)(?![\L]|%(?!L?\d))|%%",  # Qt: %1, %L1, %n and %Ln
    rf"(?<![\L%]){NOT_PERCENT}%[a-z][a-z\d_-]{{1,40}}[a-z\d](?![\L%(])",  # Drupal: %name
)
# Names with a mark before them, or around them.
VUE_KEY = r"\{'[^'{}]{1,60}+'\}|\([\w.-]{1,80}+\)|[A-Za-z_][\L-]{0,60}+(?>(?:\.[\L-]{1,60}+){0,9})"
LATEX = "(?:eq|page|auto|name|[cC])?ref|[cC]ite[a-z]{0,10}+|label|url|href|gls|includegraphics|input|begin|end"
MARKED = (
    r"!?\[\[[^\[\]]{1,100}+\]\]",  # MediaWiki: [[Page|text]]; Polymer: [[name]]
    r"##\w{1,60}+##|(?<![\L#])#[A-Za-z_]\w{1,40}+#(?![\L#])|@@\w{1,60}+@@",
    r"(?<![\L:]):[a-z\d_+-]{2,40}+:(?![\L:])",  # Slack and Discord: :thumbs_up:
    # Laravel, Drupal: :user-name
    rf"(?:(?<![\w/:])|(?<=[{HIRAGANA}])):[A-Za-z_][\L]{{1,60}}+(?>(?:-[a-z][\L]{{0,30}}+){{0,4}})(?![\L:])",
    rf"(?<![\L])@(?>\.[a-z]{{1,20}}+|):(?:{VUE_KEY})",  # Vue: @:key.name, @.lower:key, @:{'a key'}
    # Razor: @(Model.Name), @Html.Raw("x"); Blade: @lang('key')
    rf"(?<![\L@.])@(?>[A-Za-z_][\L.]{{0,60}}+|)(?=\(\S){IN_PARENTHESES}",
    r"(?<![\L@.])@[A-Za-z_][\L-]{1,60}+(?>@(?![\L])|(?:[./@][\L-]{1,60}+){0,5})",  # Drupal: @count; Razor: @Model.Name
    r"(?<![\w@.!])!(?=[a-z_])[a-z\d_]{2,40}+(?>(?:-[a-z\d]{1,30}+){0,4})(?![\L!])",  # Drupal: !user-name
    # PHP: $user->name, $a['b']
    r"(?<![\L$])\$[A-Za-z_][\L]{0,60}+(?>(?:->[\L]{1,60}+|\[[\"']?\w{1,60}+[\"']?\]){1,9})",
    # $name, $HOME/bin, $env:PATH; Chrome: $NAME$
    r"(?<![\L$])\$[A-Za-z_][\L]{0,60}+(?>\$(?![\L])|:[A-Za-z_][\L]{0,60}+|(?:/[\L.@+-]{1,200}+){0,30})",
    r"\|\|\|\|",  # separates the plural forms of Polyglot
    r"§(?:\d{1,4}+|[a-fk-or])",  # Minecraft: §a
    r"&(?:[A-Za-z][\L]{1,10}+|#\d{1,6}+|#x[\da-fA-F]{1,6}+);",  # &nbsp;
    rf"\\(?:{LATEX})\*?(?>\[[^\[\]]{{0,60}}+\]|)\{{[^{{}}]{{0,200}}+\}}",  # LaTeX: \ref{x}
    r"(?<![\\:])\\(?:[nrt](?![a-z])|u[\da-fA-F]{4}|x[\da-fA-F]{2}|[\"'](?=\w))|(?<=\w)\\[\"']",  # \n, \"
)
TAGS = (
    r"</?[A-Za-z][^<>\s]{0,60}+(?>\s{1,9}+[\w:@-]{1,40}+\s{0,9}+=[^<>]{0,400}+|\s{0,9}+/|)>",  # <b>, <a x="y">
    r"</?\d{1,3}+\s?/?>|<<[\L.-]{1,60}+>>",  # React: <0>, <1/>
    r"<[@#!:][^<>\s]{1,100}+>",  # Discord and Slack: <@123>
    r"\[[bius]\](?=.{0,300}\[/)|\[/[a-z]{1,20}+\]|\[[a-z]{1,20}+=[^\[\]]{1,100}+\]",  # BBCode: [b], [/url], [url=x]
    r"\[[a-z_]{1,40}+(?>(?:\s{1,3}+\w{1,40}+=\"[^\"\[\]]{0,200}+\"){1,20})\s?/?\]",  # WordPress: [gallery ids="x"]
    r"\[(?:quant|numf|numerate|sprintf|\*|\#),[^\[\]]{1,200}+\]",  # Maketext: [quant,_1,file]
    r"\\[A-Z]{1,2}\[\d{1,4}+\]",  # RPG Maker: \C[1]
    r"\[[A-Za-z]\w{0,40}+(?>(?:[.!][A-Za-z]\w{0,40}+){1,5})\](?![(\[])",  # Ren'Py: [player.name]
)
PLACEHOLDERS = (*CODE, *TEMPLATES, *BRACES, *PERCENT, *MARKED, *TAGS)
# After letters of other scripts, a hyphen joins a prefix to an address, as in Hebrew.
BEFORE_MAIL = r"(?:(?<![\E.+-])|(?<=(?![\E])[\A]-))(?!(?<=[\A])-)"
# Letters of every script, because addresses and file names have them; `Finder` cuts off what merely follows.
ADDRESSES = (
    r"(?<![\L])(?i:https?://|s?ftp://|file:///?|ssh://|git://|wss?://|smb://|www\.)(?=[\w/])[\A!#-;=?-~]{1,2000}+",
    rf"{BEFORE_MAIL}(?:mailto:)?[\E.+-]{{1,64}}+(?>'[\E.+-]{{1,64}}+|)"
    r"@[\E-]{1,63}+(?>(?:\.[\E-]{1,63}+){1,8})",
)
ENDINGS = (
    "py|pyi|js|ts|json|jsonl|ya?ml|toml|xml|x?html?|css|txt|md|rst|csv|tsv|pdf|docx?|xlsx?|pptx?|od[tsp]|png|jpe?g|gif"
    "|svg|ico|webp|zip|tar|gz|bz2|xz|zst|7z|rar|sh|bat|exe|dll|so|deb|rpm|iso|conf|cfg|ini|env|log|sql|db|sqlite3?|cpp"
    "|hpp|java|go|rs|rb|php|pot?|mo|mp[34]|wav|ogg|avi|mkv|bak|tmp|com|org|net|srt|vtt|tmx|xlf|xliff|epub"
)
OPENING_MARKS = "(\"'\u201c\u201e\u00ab\u300c\u300e\u3010\u300a\uff08"
PATH = r"(?>~|\.\.?|)(?>(?:/[\A.@+-]{1,200}+){1,30})/?+"
ROOTS = "bin|boot|dev|etc|home|lib|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var"
LATIN_NAME = rf"[\L-]{{1,100}}+(?:[./][\L-]{{1,100}}+){{0,30}}\.(?i:{ENDINGS}|[ch])(?![\L])"
FILES = (  # the last patterns match setup.py and a/b.txt
    r"(?<![\L/.])[A-Za-z]:\\[^\s\"<>|*?]{1,400}+",
    rf"(?<![\A/.<~])(?=[~.]|/[\L.@+-]){PATH}",  # /etc/hosts, ~/x, ../x
    # Without a blank before it, only what hardly is "or": /etc, /a/b.
    rf"(?<=[\N])(?=~|/(?:{ROOTS})(?![\L])|/[a-z][a-z\d.-]{{0,60}}/[\L.]){PATH}",
    rf"(?<![\L*/.])\*\.(?:{ENDINGS})(?![\L])",  # *.txt
    rf"(?<![^\s{OPENING_MARKS}{HIRAGANA}])\.[a-z][\L-]{{1,60}}+(?![\L-])",  # .env
    rf"(?:(?<![\A/.-])|(?<=%s/))[\A-]{{1,100}}+(?:[./][\A-]{{1,100}}+){{0,30}}\.(?i:{ENDINGS}|[ch])(?![\L])",
    rf"(?<=[\N]){LATIN_NAME}",
)
NAMES = (
    # 4.2.1, v2.0-beta1, 192.168.0.1:8080, 10.0.0.0/8; 2024-05-01, 2024-05-01T12:30; 12:30:15
    r"(?<![\L\d.,])(?:v\d{1,9}+(?>(?:\.\d{1,9}+){1,7})|\d{1,9}+(?>(?:\.\d{1,9}+){2,7}))"
    r"(?>[:/]\d{1,5}+|-?(?:alpha|beta|rc|dev|pre|[ab](?=\d))\.?\d{0,4}+|)(?![\L])",
    r"(?<![\L.+~/-])[A-Za-z][A-Za-z+~-]{0,60}+\d{1,4}+\.\d{1,4}(?![\L\d]|\.\d)",  # python3.11
    r"(?<![\L\d-])\d{4}-\d\d-\d\d(?>T\d\d:\d\d(?>:\d\d|)Z?|)(?![\L\d]|-\d)",
    r"(?<![\L\d:.])\d{1,2}+:\d\d(?>:\d\d|)(?![\L\d]|:\w)",
    r"(?<![\L-])--[A-Za-z][\L-]{0,60}+(?>=[\L](?>(?:[\L/:@+-]|\.(?=[\L])){0,200})|)",  # --force, --output=FILE
    r"(?<![\L])(?:__[\L]{1,80}+|[A-Za-z0-9]{1,60}+_[\L]{1,80}+)",  # MAX_SIZE, but not _Open
    r"(?<![\L.])[A-Za-z][\L]{0,60}+(?>(?:\.[\L]{1,60}+){0,8})\(\)",  # open()
    # Ctrl+S
    r"(?<![\L])(?i:Ctrl|Strg|Alt|Shift|Cmd|Meta|Super|Win)(?>(?:\+(?:[\L]{1,12}+|[-+,.←-↓](?![\L]))){1,4})",
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
    rf"(?<![\L\d.,])\d{{1,9}}+{BLANK}?{FRACTION}(?![\L\d])|\d{{0,9}}+{FRACTION}",  # 2½, 3 ¾
    r"(?<![\d\u2044])(?>\d{1,6}[ \u00a0]|)\d{1,6}+\u2044\d{1,6}+",  # with the fraction slash, U+2044
    # 10⁻³, m², x₁, CO₂, Ca²⁺, Ca(OH)₂; but of word¹, which calls a footnote, only the digit
    rf"(?<![{IN_FORMULA}_\u00c0-\u052f])(?:[A-Za-zµμΩ]{{1,4}}[/·⋅]|)(?!{LONG_WORD})[{IN_FORMULA}]{{1,20}}"
    rf"(?>(?:{SCRIPT}|{GROUP}{SCRIPT})(?:{SCRIPT}|{GROUP}{SCRIPT}|[{IN_FORMULA}]|[/·⋅][A-Za-z]{{1,4}}(?![\L])){{0,30}})",
    rf"{SCRIPT}{{1,9}}+",
)
URL = compiled(*ADDRESSES)
ADDRESS = compiled(*ADDRESSES, *FILES)
PLACEHOLDER = compiled(*PLACEHOLDERS)
ALL = compiled(*PLACEHOLDERS, *ADDRESSES, *FILES, *PHONES, *NAMES, MEASURE.pattern, *RAISED)
# Items that are extended to whole words, without final punctuation; GLUE joins the rest of a word to an item.
WHOLE = compiled(*ADDRESSES, *FILES, *NAMES[:2])
GLUE = compiled(r"[-+~:/](?=[\L])[\L.+~:/-]{1,200}+")
BEFORE_GLUE = compiled(r"[\L][\L.+~-]*[-+~]$")
# The beginning of a placeholder that forms one item with adjoining ASCII characters: uid=%s, stat(%s).
ARGUMENT = re.compile(r"[%$]|\{(?![{%#/@])")
# The first of two tags in braces, such as {b} and {/b}.
OPENING = re.compile(r"\{(\w{1,60}+)(?>=[^{}]{1,60}+|)\}")
BEFORE_ARGUMENT = re.compile(r"[A-Za-z0-9%{$][\w=(/:.@+#\[~,%{}$]{0,200}$", re.ASCII)
AFTER_ARGUMENT = re.compile(r"[\w=(/:.@+#\[\]~,%{}$)]{1,200}+", re.ASCII)
# Every match of ALL contains such a sign. Most lines contain none, and searching for one is much faster.
SIGN = re.compile(
    r"[`{<%$@/\\\d_&*§¼-¾⅐-⅞↉²³¹⁰ⁱ⁴-ⁿ₀-₎]|\.\w|--|\(\)|\w\+\w|\[[\[\w/]|#\w|:[\w+-]|!\w|\|\|\|\|"
)
# A placeholder without a name or number: {}, {:.2f}, %s, %-5d, %llu or %v.
COUNTED = re.compile(
    r"\{[}:!]|%[-+0#', ]{0,5}(?:\d{0,9}|\*)(?:\.(?:\d{0,9}|\*))?"
    r"(?:<PRI|(?:hh|ll|[hlzjtLq])?(?![nN])[A-Za-z@](?!\d)(?![\w.-]*%)(?![A-Za-z_]{2}))"
)
