"""The placeholders of frameworks are found, and similar signs in ordinary text are not."""

import pytest

from nmt.items.finder import Finder
from nmt.items.items import Items, is_counted, item

USUAL = Finder(["usual"])
FRAMEWORKS = {
    "React and i18next": [
        (
            "Hello <0>{{name}}</0>, read <1>the news</1>.<2/>",
            ["<0>{{name}}</0>", "<1>", "</1>", "<2/>"],
        ),
        (
            "See $t(common:save) or $t(girls, {'count': {{girls}} }).",
            ["$t(common:save)", "$t(girls, {'count': {{girls}} })"],
        ),
        ("Welcome {{- name}} on {{date, MM/DD/YYYY}}!", ["{{- name}}", "{{date, MM/DD/YYYY}}"]),
        (
            "Save {{ value, number(style: currency) }} today",
            ["{{ value, number(style: currency) }}"],
        ),
    ],
    "FormatJS": [
        (
            "{n, plural, =0 {no file} one {# file} other {# files}} left",
            ["{n, plural, =0 {no file} one {# file} other {# files}}"],
        ),
        (
            "{g, select, male {{n, plural, one {his {x} file} other {his # files}}} other {it}}!",
            ["{g, select, male {{n, plural, one {his {x} file} other {his # files}}} other {it}}"],
        ),
        (
            "On { when , date , ::yyyyMMdd } you pay {sum, number, ::currency/USD}.",
            ["{ when , date , ::yyyyMMdd }", "{sum, number, ::currency/USD}"],
        ),
        ("Read <link>the terms</link>", ["<link>", "</link>"]),
    ],
    "Vue": [
        (
            "Hello @:message.hello and @.lower:message.name, or @:{'a b'}.",
            ["@:message.hello", "@.lower:message.name", "@:{'a b'}"],
        ),
        (
            "{account}{'@'}{domain} is @:(message.dio)!",
            ["{account}{'@'}{domain}", "@:(message.dio)"],
        ),
    ],
    "Angular": [
        (
            "Total: {{ price | currency:'EUR' }} for {{item?.name}}",
            ["{{ price | currency:'EUR' }}", "{{item?.name}}"],
        ),
        (
            "Updated {minutes, plural, =0 {just now} other {{{minutes}} minutes ago}}",
            ["{minutes, plural, =0 {just now} other {{{minutes}} minutes ago}}"],
        ),
    ],
    "Svelte": [
        (
            "{#if user} Hello {user.name} {/if} {@html text}",
            ["{#if user}", "{user.name}", "{/if}", "{@html text}"],
        )
    ],
    "JavaScript": [
        (
            "Hello ${user.name()}, you have ${n > 1 ? 'many' : `one`} files",
            ["${user.name()}", "${n > 1 ? 'many' : `one`}"],
        )
    ],
    "Handlebars": [
        (
            "{{#if x}} Hello {{{html}}} {{/if}} {{> footer}} {{!-- a note --}}",
            ["{{#if x}}", "{{{html}}}", "{{/if}}", "{{> footer}}", "{{!-- a note --}}"],
        ),
    ],
    "Polymer": [("Hello [[user.name]], [[_n(count)]] files", ["[[user.name]]", "[[_n(count)]]"])],
    "Go": [
        ("Copy %[1]s to %[2]q: %v, %+v, %#v, %T", ["%[1]s", "%[2]q", "%v", "%+v", "%#v", "%T"]),
        ("%[3]*.[2]*[1]f of %6.2f, %t", ["%[3]*.[2]*[1]f", "%6.2f", "%t"]),
        (
            "Hello {{.Name}}, {{range .Items}} and {{end}}",
            ["{{.Name}}", "{{range .Items}}", "{{end}}"],
        ),
    ],
    "Swift and Objective-C": [
        (
            r"Hello \(name), you have \(items.count(where: { $0 })) files",
            [r"\(name)", r"\(items.count(where: { $0 }))"],
        ),
        ("%@ sent %1$@ %2$ld files, %#@files@", ["%@", "%1$@", "%2$ld", "%#@files@"]),
    ],
    "Android": [
        ("%1$s has %2$d files and %3$.2f euros", ["%1$s", "%2$d", "%3$.2f"]),
        (
            'Hello <xliff:g id="name" example="Tom">%1$s</xliff:g>!',
            ['<xliff:g id="name" example="Tom">%1$s</xliff:g>'],
        ),
        (r"It\'s \"here\"\nNow", [r"\'", r"\"", r"\"\n"]),
    ],
    "Flutter and Kotlin": [("Hello $name, ${user.name}", ["$name", "${user.name}"])],
    "Rails": [
        ("%{count} files of %<price>.2f for %{name}", ["%{count}", "%<price>.2f", "%{name}"]),
        (
            "Hello <%= @user.name %>, <%- x -%> and #{user.name || 'you'}",
            ["<%= @user.name %>", "<%- x -%>", "#{user.name || 'you'}"],
        ),
    ],
    "PHP": [
        (
            "Hello <?= $name ?> and <?php echo $x; ?> or {$user->name}",
            ["<?= $name ?>", "<?php echo $x; ?>", "{$user->name}"],
        ),
    ],
    "Symfony and Twig": [
        (
            "Hello %name%, %user.first_name% has %count% files",
            ["%name%", "%user.first_name%", "%count%"],
        ),
        (
            "{% if x == '%' %} Hello {{ name|e }} {# a note #}",
            ["{% if x == '%' %}", "{{ name|e }}", "{# a note #}"],
        ),
    ],
    "Laravel": [
        ("Hello :name, :Name and :NAME have (:count) files", [":name", ":Name", ":NAME", ":count"])
    ],
    "Drupal": [
        (
            "Hello @name, %title is !status at :url; @count-files",
            ["@name", "%title", "!status", ":url", "@count-files"],
        )
    ],
    "WordPress": [("Posted by %1$s in %2$s, %%title%% %s", ["%1$s", "%2$s", "%%title%%", "%s"])],
    "Python and Django": [
        (
            "%(name)s has %(count)d files in {x!r:>10} or {d:%d %b %Y}",
            ["%(name)s", "%(count)d", "{x!r:>10}", "{d:%d %b %Y}"],
        ),
        (
            "{% blocktrans count n=n %} {{ user.name|title }} {% endblocktrans %}",
            ["{% blocktrans count n=n %}", "{{ user.name|title }}", "{% endblocktrans %}"],
        ),
        ("On %Y-%m-%d at %H:%M", ["%Y", "%m", "%d", "%H:%M"]),
    ],
    ".NET": [
        (
            "{0:N2} of {1,10:F2} on {2:d MMM yyyy} for {user.Name}",
            ["{0:N2}", "{1,10:F2}", "{2:d MMM yyyy}", "{user.Name}"],
        ),
        ("Hello @Model.Name and @Html.Raw", ["@Model.Name", "@Html.Raw"]),
    ],
    "Java": [
        ("{0,number,#.##} of {1,date,short} and {2}", ["{0,number,#.##}", "{1,date,short}", "{2}"]),
        (
            "{0,choice,0#no files|1#one file|1<{0} files} left",
            ["{0,choice,0#no files|1#one file|1<{0} files}"],
        ),
        (
            "%tY and %1$tB by ${user.name} in #{msg.key(x)}",
            ["%tY", "%1$tB", "${user.name}", "#{msg.key(x)}"],
        ),
    ],
    "Qt": [("Copy %1 of %L2 to %3%4, %n file(s)", ["%1", "%L2", "%3%4", "%n"])],
    "Boost": [("Copy %1% to %2%.", ["%1%", "%2%"])],
    "Fluent": [
        (
            "Hello { $name }, { -brand-name } and { NUMBER($n, minimumFractionDigits: 2) }",
            ["{ $name }", "{ -brand-name }", "{ NUMBER($n, minimumFractionDigits: 2) }"],
        ),
        (
            'Use { -brand(case: "dative") } or { menu-save }',
            ['{ -brand(case: "dative") }', "{ menu-save }"],
        ),
    ],
    "MessageFormat 2": [
        (
            "Hello {$name}, {$count :number} in {#b}bold{/b}",
            ["{$name}", "{$count :number}", "{#b}", "{/b}"],
        )
    ],
    "MediaWiki": [
        (
            "$1 {{PLURAL:$2|file|files}} by {{GENDER:$3|him|her}} in [[Special:Log/$1|the log]]",
            [
                "$1",
                "{{PLURAL:$2|file|files}}",
                "{{GENDER:$3|him|her}}",
                "[[Special:Log/$1|the log]]",
            ],
        ),
    ],
    "shell and make": [
        (
            "Set ${NAME:-a b}, $(NAME), $HOME/bin or `uname -a`",
            ["${NAME:-a b}", "$(NAME)", "$HOME/bin", "`uname -a`"],
        ),
        ("Set %PATH%, %APPDATA% and $env:PATH", ["%PATH%", "%APPDATA%", "$env:PATH"]),
    ],
    "Chrome": [("Hello $NAME$, $1 files", ["$NAME$", "$1"])],
    "Polyglot": [
        (
            "%{smart_count} file |||| %{smart_count} files",
            ["%{smart_count}", "||||", "%{smart_count}"],
        )
    ],
    "Unity": [
        (
            "Press <color=#ff0>start</color> <size=50%>now</size>",
            ["<color=#ff0>", "</color>", "<size=50%>", "</size>"],
        )
    ],
    "Ren'Py": [
        (
            "Hello [player.name], {i}wait{/i} [points!t]",
            ["[player.name]", "{i}", "{/i}", "[points!t]"],
        )
    ],
    "Minecraft": [("§aHello §l%s§r!", ["§a", "§l%s§r"])],
    "Discord and Slack": [
        (
            "Hi <@123>, <@!45>, <#67>, <!here>: :smile: :thumbs_up: <:cat:89>",
            ["<@123>", "<@!45>", "<#67>", "<!here>", ":smile:", ":thumbs_up:", "<:cat:89>"],
        ),
    ],
    "BBCode": [
        (
            "[b]Hello[/b] [url=https://a.org]you[/url]",
            ["[b]", "[/b]", "[url=https://a.org]", "[/url]"],
        )
    ],
    "LaTeX": [
        (
            r"See \ref{fig:a}, \cite[p. 5]{a,b} and \url{https://a.org}",
            [r"\ref{fig:a}", r"\cite[p. 5]{a,b}", r"\url{https://a.org}"],
        )
    ],
    "Autoconf": [("Report to <@EMAIL@> about @PACKAGE@.", ["<@EMAIL@>", "@PACKAGE@"])],
}
ROWS = [
    pytest.param(line, items, id=f"{name}-{n}")
    for name, rows in FRAMEWORKS.items()
    for n, (line, items) in enumerate(rows)
]


def items_in(line: str) -> list[str]:
    return [item(line, stretch) for stretch in USUAL.stretches(line)]


# Further kinds, each alone in a sentence.
FURTHER = [
    "%Ln",
    "%lf",
    "%Lf",
    "%04lo",
    "%-10<name>s",
    "%1!s!",
    "%I64d",
    '%"PRIu64"',
    ":user-name",
    "!user-name",
    "@user-name",
    "$!{name}",
    "<#if x>",
    "</#if>",
    "[% name %]",
    "@(Model.Name)",
    '@Html.Raw("x")',
    "@lang('key')",
    "$tc('key', 2)",
    "$user->name",
    "$a['b']",
    '[gallery ids="x"]',
    "[quant,_1,file,files]",
    "\\C[1]",
    "$((x+1))",
]


@pytest.mark.parametrize("placeholder", FURTHER)
def test_further_placeholders_are_found(placeholder):
    line = f"Open {placeholder} now"
    assert items_in(line) == [placeholder]
    assert Items(line, USUAL.stretches(line)).arrive(f"Jetzt {placeholder} \u00f6ffnen")


@pytest.mark.parametrize(("line", "expected"), ROWS)
def test_placeholders_are_found(line, expected):
    assert items_in(line) == expected
    assert Items(line, USUAL.stretches(line)).arrive(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # Measures, prices and paths are items, but nothing more.
        ("50 % off, 100% sure, 5 % of it, a 50% discount", ["50 %", "100%", "5 %", "50%"]),
        ("100 %ige Sicherheit, 20%iger Alkohol", []),
        ("It costs $5 or US$10", ["$5"]),
        ("Open C:\\dir and wait", ["C:\\dir"]),
        # Ordinary text.
        ("a < b, b > c, I <3 you, x <- y", []),
        ("Tom & Jerry, R&D, AT&T", []),
        ("He is @ home", []),
        ("See a (see b), [sic], [optional], [e.g. this], Press [any key], footnote [1]", []),
        ("Note: this. Foo:bar, std::vector, a : b, (: and :) :D :P", []),
        ("Wow!great, Stop! Now!, !! and !?", []),
        ("A set { 1, 2 } and { a; b }", []),
        ("#hashtag, #1, C#, 5 # 6", []),
        ("either/or, 3:4, a|b, a || b", []),
        ("Who pays $ or £? It is money$", []),
        ("He said \\ and AC\\DC", []),
        ("Size [s], length [m], user's manual", []),
        ("*Hello*, **you**, _not_ me", []),
        ("¿Qué? ¡Hola!amigo", []),
        ("a = b, x == y, a <= b, a => b", []),
        ("The limit is ~5", []),
        ("Read more... [more]", []),
    ],
)
def test_ordinary_text_is_not_protected(line, expected):
    assert items_in(line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Wait 2½ hours or 3 ¾ days, ⅓ of it", ["2½", "3 ¾", "⅓"]),
        ("Add 2½ km, 1½ kg, ¾ l and 2 ½ m", ["2½ km", "1½ kg", "¾ l", "2 ½ m"]),
        ("25² and 10⁶ or 10⁻³ of x²", ["25²", "10⁶", "10⁻³", "x²"]),
        (
            "CO₂, H₂O, C₆H₁₂O₆, SO₄²⁻, Ca²⁺ and Ca(OH)₂",
            ["CO₂", "H₂O", "C₆H₁₂O₆", "SO₄²⁻", "Ca²⁺", "Ca(OH)₂"],
        ),
        (
            "25 m², 5 km², 10⁶ Pa, 5 W/m², 3 kg·m⁻³, 2 m³/s",
            ["25 m²", "5 km²", "10⁶ Pa", "5 W/m²", "3 kg·m⁻³", "2 m³/s"],
        ),
        ("per m², W/m² and E = mc²", ["m²", "W/m²", "mc²"]),
        ("面积为25m²的2½小时", ["25m²", "2½"]),
        (
            "It costs \u00b9\u2044\u2082 or \u00b3\u2044\u2084 cup",
            ["\u00b9\u2044\u2082", "\u00b3\u2044\u2084"],
        ),
        ("a 1\u20442 or 2 1\u20442 inch", ["1\u20442", "2 1\u20442"]),
        ("The limit³ is here.¹ See Größe²", ["³", "¹", "²"]),
        ("x₁ + x₂ = 2ⁿ", ["x₁", "x₂", "2ⁿ"]),
        ("(2½) “½” 2½.", ["2½", "½", "2½"]),
    ],
)
def test_fractions_and_raised_digits_are_found(line, expected):
    assert items_in(line) == expected
    assert Items(line, USUAL.stretches(line)).arrive(line)


@pytest.mark.parametrize(
    ("line", "translation", "arrives"),
    [
        ("Add 2½ km", "Fügen Sie 2½km hinzu", True),
        ("Add 3 ¾ cups", "Geben Sie 3¾ Tassen hinzu", True),
        ("Add 2½ km", "Fügen Sie 21\u20442 km hinzu", False),
        ("Add 2½ km", "Fügen Sie 2 km hinzu", False),
        ("Use 1.5 m² here", "Hier 1,5 m² verwenden", True),
        ("Use 1.5 m² here", "Hier 1,5 m2 verwenden", False),
        ("%name% and %title%", "%title% und %name%", True),
        ("{{a}} and {{b}}", "{{b}} und {{a}}", True),
        ("{ $a } and { -b }", "{ -b } und { $a }", True),
        ("%v and %q", "%q und %v", False),
        ("<0>a</0>", "<0>b</1>", False),
        ("@count files", "@count Dateien", True),
        ("@count files", "count Dateien", False),
    ],
)
def test_whether_a_translation_has_the_items(line, translation, arrives):
    assert Items(line, USUAL.stretches(line)).arrive(translation) == arrives


def test_only_placeholders_without_a_name_keep_their_order():
    counted = "{} {:.2f} {!r} %s %d %-5.2f %lld %llu %04lo %Lf %zu %*d %.*f %v %+v %@ %<PRIu64>"
    named = "{0} {name} {{x}} %% %n %1 %L1 %1$s %(a)s %{a} %<a>s %name% %name %[1]s %1% %PATH%"
    assert all(map(is_counted, counted.split()))
    assert not any(map(is_counted, named.split()))
