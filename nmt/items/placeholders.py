"""The patterns of placeholders, which programs replace in a text, and of tags.

For the rules that the patterns follow, see `patterns`, which also compiles them.
"""

HIRAGANA = "\u3041-\u3096"  # writes the particles of Japanese


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
# Placeholders of template engines, which have a distinct mark at each end.
TEMPLATES = (
    r"\{\{\{[^{}]{0,200}+\}\}\}",  # Handlebars: {{{html}}}
    # Angular, Go, i18next, Jinja, MediaWiki: {{ x }}
    r"\{\{(?>(?:[^{}]|\{[^{}]{0,100}+\}){0,200})\}\}",
    # Jinja: {% if x %}, {# note #}
    r"\{%(?>(?:[^%]|%(?!\})){0,300})%\}|\{#\s(?>(?:[^#]|#(?!\})){0,300})#\}",
    r"<%(?>(?:[^%]|%(?!>)){0,300})%>",  # ERB, EJS, JSP: <%= x %>
    r"<\?(?>(?:[^?]|\?(?!>)){0,300})\?>",  # PHP: <?= $x ?>
    r"<!--(?>(?:[^-]|-(?!->)){0,300})-->",
    r"\[%(?>(?:[^%]|%(?!\])){0,300})%\]",  # Template Toolkit: [% name %]
    r"</?#[a-z][^<>]{0,200}+>",  # FreeMarker: <#if x>
    r"\$\(\([^()]{1,100}+\)\)",  # shell: $((x+1))
    rf"\$!(?=\{{[^}}]){in_braces(3)}",  # Velocity: $!{name}
    # shell, JavaScript, Kotlin, Ruby: ${x.y()}, ${NAME:-a b}, #{x}
    rf"[$#](?=\{{[^}}]){in_braces(3)}",
    # i18next: $t(key); make, shell: $(NAME)
    rf"\$tc?{IN_PARENTHESES}|\$(?=\([\"'A-Za-z_]){IN_PARENTHESES}",
    rf"\\(?=\(\S){IN_PARENTHESES}",  # Swift: \(name)
)
KEYWORDS_OF_CHOICES = "plural|select|selectordinal|choice"
KEYWORDS_OF_FORMATS = "number|date|time|spellout|ordinal|duration|list"
NAMED = r"\{\s{0,9}+\w{1,60}+\s{0,9}+,\s{0,9}+"
BRACES = (
    # ICU: {count, plural, one {# file} other {# files}}, with placeholders in its forms
    rf"{NAMED}(?:{KEYWORDS_OF_CHOICES})\s{{0,9}}+,(?>(?:[^{{}}]|{in_braces(5)}){{0,400}})\}}",
    rf"{NAMED}(?:{KEYWORDS_OF_FORMATS})\s{{0,9}}+(?>,[^{{}}]{{0,60}}+|)\}}",
    # Fluent, MessageFormat 2: { $name }, {$n :number}
    r"\{\s{0,4}+\$[A-Za-z][^{}]{0,200}+\}",
    # Fluent: { -brand }
    r"\{\s{0,4}+-[A-Za-z][\w-]{0,60}+(?>\([^(){}]{0,100}+\)|)\s{0,4}+\}",
    r"\{\s{0,4}+[A-Z]{2,20}+\([^(){}]{1,200}+\)\s{0,4}+\}",  # Fluent: { NUMBER($n) }
    r"\{\s{1,4}+[A-Za-z_][\w.-]{0,60}+\s{1,4}+\}",  # Fluent, ICU: { name }
    r"\{[@#:/][a-z][^{}]{0,100}+\}",  # Svelte: {#if x}, {@html x}
    # .NET: {0:d MMM}; Python: {x:%d %b}
    r"\{\d{1,2}+(?>,-?\d{1,3}+|):[^{}]{1,60}+\}|\{\w{0,60}+:%[^{}]{1,60}+\}",
    # {}, {name}, {0:.2f}, {0:{width}}, %{name}
    r"[$#@%]?\{(?>(?:[^{}\s]|\{[^{}\s]{0,60}+\}){0,100})\}",
)
NOT_PERCENT = "(?<!\\d[ \u00a0\u202f])"  # the sign in "100 %ige" is a unit
FLAGS = r"[-+0# ]{0,5}+\d{0,9}+(?>\.\d{1,9}+|)"
PERCENT = (
    rf"%\(\w[\w .-]{{0,60}}+\){FLAGS}[a-zA-Z]",  # Python: %(name)s
    rf"%<(?!PRI)\w{{1,60}}+>{FLAGS}[a-zA-Z]",  # Ruby: %<price>.2f
    # Ruby: %-10<name>s; C: %"PRIu64"
    rf"%{FLAGS}<(?!PRI)\w{{1,60}}+>[a-zA-Z]|%\"PRI\w{{1,20}}+\"",
    r"%\d{1,2}+!\w{1,8}+!|%I(?:32|64)[diouxX]",  # Windows: %1!s!, %I64d
    r"%(?>\d{1,3}\$|)#@\w{1,60}+@",  # Apple's stringsdict: %#@files@
    # Go: %[1]s, %[2]*.[1]f
    r"%[-+0# ]{0,5}+(?>(?:\[\d{1,2}+\](?:\*|\d{1,3}+|)\.?){1,3})\d{0,3}+[a-zA-Z]",
    r"(?<![\L%])%%\w{2,60}+%%(?![\L])",  # %%title%%
    # Symfony, Twig, Windows: %name%; Boost: %1%
    rf"(?<![\L%]){NOT_PERCENT}%(?:[A-Za-z_][\L.-]{{0,58}}[\L]|\d{{1,2}}+)%(?![\L%])",
    # %1$s, %-5.2f, %*d, %2$*1$d, % d; Java's %tY
    r"%(?>\d{1,3}+\$|)[-+0#',]{0,5}+"
    r"(?:\d{0,9}+|\*(?>\d{1,3}+\$|))(?>\.(?>\d{1,9}+|\*(?>\d{1,3}+\$|)|)|)"
    r"(?:[sdu]|<PRI\w{1,20}+>|(?:hh|ll|[hlzjtL])(?:[diuxX]|[aAcCeEfFgGnosS](?![\L]))"
    r"|[ifFxXcgGeEorpm@](?![\L])|[tT][A-Za-z](?![\L]))|% [di](?![\L])",
    # Go: %v, %+v, %q; strftime: %Y-%m-%d
    rf"(?<![\d%]){NOT_PERCENT}%[-+#^_]?[A-Za-z](?![\L])",
    r"(?<![\L%])%(?:L?\d{1,2}+|L?n)(?![\L]|%(?!L?\d))|%%",  # Qt: %1, %L1, %n and %Ln
    # Drupal: %name
    rf"(?<![\L%]){NOT_PERCENT}%[a-z][a-z\d_-]{{1,40}}[a-z\d](?![\L%(])",
)
# Names with a mark before them, or around them.
VUE_KEY = r"\{'[^'{}]{1,60}+'\}|\([\w.-]{1,80}+\)|[A-Za-z_][\L-]{0,60}+(?>(?:\.[\L-]{1,60}+){0,9})"
LATEX = (
    "(?:eq|page|auto|name|[cC])?ref|[cC]ite[a-z]{0,10}+"
    "|label|url|href|gls|includegraphics|input|begin|end"
)
MARKED = (
    r"!?\[\[[^\[\]]{1,100}+\]\]",  # MediaWiki: [[Page|text]]; Polymer: [[name]]
    r"##\w{1,60}+##|(?<![\L#])#[A-Za-z_]\w{1,40}+#(?![\L#])|@@\w{1,60}+@@",
    r"(?<![\L:]):[a-z\d_+-]{2,40}+:(?![\L:])",  # Slack and Discord: :thumbs_up:
    # Laravel, Drupal: :user-name
    rf"(?:(?<![\w/:])|(?<=[{HIRAGANA}]))"
    r":[A-Za-z_][\L]{1,60}+(?>(?:-[a-z][\L]{0,30}+){0,4})(?![\L:])",
    # Vue: @:key.name, @.lower:key, @:{'a key'}
    rf"(?<![\L])@(?>\.[a-z]{{1,20}}+|):(?:{VUE_KEY})",
    # Razor: @(Model.Name), @Html.Raw("x"); Blade: @lang('key')
    rf"(?<![\L@.])@(?>[A-Za-z_][\L.]{{0,60}}+|)(?=\(\S){IN_PARENTHESES}",
    # Drupal: @count; Razor: @Model.Name
    r"(?<![\L@.])@[A-Za-z_][\L-]{1,60}+(?>@(?![\L])|(?:[./@][\L-]{1,60}+){0,5})",
    # Drupal: !user-name
    r"(?<![\w@.!])!(?=[a-z_])[a-z\d_]{2,40}+(?>(?:-[a-z\d]{1,30}+){0,4})(?![\L!])",
    # PHP: $user->name, $a['b']
    r"(?<![\L$])\$[A-Za-z_][\L]{0,60}+(?>(?:->[\L]{1,60}+|\[[\"']?\w{1,60}+[\"']?\]){1,9})",
    # $name, $HOME/bin, $env:PATH; Chrome: $NAME$
    r"(?<![\L$])\$[A-Za-z_][\L]{0,60}+"
    r"(?>\$(?![\L])|:[A-Za-z_][\L]{0,60}+|(?:/[\L.@+-]{1,200}+){0,30})",
    r"\|\|\|\|",  # separates the plural forms of Polyglot
    r"§(?:\d{1,4}+|[a-fk-or])",  # Minecraft: §a
    r"&(?:[A-Za-z][\L]{1,10}+|#\d{1,6}+|#x[\da-fA-F]{1,6}+);",  # &nbsp;
    # LaTeX: \ref{x}
    rf"\\(?:{LATEX})\*?(?>\[[^\[\]]{{0,60}}+\]|)\{{[^{{}}]{{0,200}}+\}}",
    # \n, \"
    r"(?<![\\:])\\(?:[nrt](?![a-z])|u[\da-fA-F]{4}|x[\da-fA-F]{2}|[\"'](?=\w))|(?<=\w)\\[\"']",
)
TAGS = (
    # <b>, <a x="y">
    r"</?[A-Za-z][^<>\s]{0,60}+(?>\s{1,9}+[\w:@-]{1,40}+\s{0,9}+=[^<>]{0,400}+|\s{0,9}+/|)>",
    r"</?\d{1,3}+\s?/?>|<<[\L.-]{1,60}+>>",  # React: <0>, <1/>
    r"<[@#!:][^<>\s]{1,100}+>",  # Discord and Slack: <@123>
    # BBCode: [b], [/url], [url=x]
    r"\[[bius]\](?=.{0,300}\[/)|\[/[a-z]{1,20}+\]|\[[a-z]{1,20}+=[^\[\]]{1,100}+\]",
    # WordPress: [gallery ids="x"]
    r"\[[a-z_]{1,40}+(?>(?:\s{1,3}+\w{1,40}+=\"[^\"\[\]]{0,200}+\"){1,20})\s?/?\]",
    # Maketext: [quant,_1,file]
    r"\[(?:quant|numf|numerate|sprintf|\*|\#),[^\[\]]{1,200}+\]",
    r"\\[A-Z]{1,2}\[\d{1,4}+\]",  # RPG Maker: \C[1]
    # Ren'Py: [player.name]
    r"\[[A-Za-z]\w{0,40}+(?>(?:[.!][A-Za-z]\w{0,40}+){1,5})\](?![(\[])",
)
PLACEHOLDERS = (*CODE, *TEMPLATES, *BRACES, *PERCENT, *MARKED, *TAGS)
