"""Markdown: which text is translated, and where its markup is in the translation."""

import pytest
from markdown_it import MarkdownIt

from nmt.translation import read_document
from tests.helpers.pseudo import pseudo
from tests.plugins.documents.test_documents import aligned, same, translated, turned

MARKDOWN_IT = MarkdownIt("commonmark").enable(["table", "strikethrough"])

TRANSLATED = r"""
# A vertical bar inside a cell.
| a \| b | c |\n|---|---|\n| one \| two | `x\|y` or | => | A \| B | C |\n|---|---|\n| ONE \| TWO | `x\|y` OR |
> | a | b |\n> |--|--|\n> c \| d | e => > | A | B |\n> |--|--|\n> C \| D | E
# HTML inside lists and quotations.
- <details><summary>An a.</summary>\n  b\n  </details> => - <details><summary>AN A.</summary>\n  B\n  </details>
> <p align="center">\n> The\n> house.\n> </p>\n\nend => > <p align="center">\n> THE HOUSE.\n> </p>\n\nEND
> <p>\n> a <!--\n> b --> c</p> => > <p>\n> A <!--\n> b --> C</p>
- a\n\n  > <pre>\n  > x\n  >\n  > y</pre><p>b\n => - A\n\n  > <pre>\n  > x\n  >\n  > y</pre><p>B\n
# Definitions of footnotes.
[^1]: First a.\n[^2]: Second b. => [^1]: FIRST A.\n[^2]: SECOND B.
[^1]: Ibid.\n\n    So a\n    b.\n\nend => [^1]: IBID.\n\n    SO A B.\n\nEND
a[^x]\n[^x]: b\n    - c\n => A[^x]\n[^x]: B\n    - C\n
# Admonitions.
??? tip\n\n    a b\n => ??? tip\n\n    A B\n
!!! note "A b"\n    c\n    d\n\nend => !!! note "A B"\n    C D\n\nEND
!!! not an admonition\nb => !!! NOT AN ADMONITION B
# Tags of templates.
{{< note >}}\nA b\n{{< /note >}}\n => {{< note >}}\nA B\n{{< /note >}}\n
{{% alert title="W" %}}\na b\n{{% /alert %}}\nc => {{% alert title="W" %}}\nA B\n{{% /alert %}}\nC
a\n\n> {{< note >}}\n> b c\n> {{< /note >}} => A\n\n> {{< note >}}\n> B C\n> {{< /note >}}
{% highlight yaml %}\na: b\n\nc: d\n{% endhighlight %}\na => {% highlight yaml %}\na: b\n\nc: d\n{% endhighlight %}\nA
{% raw %}\n\nno end => {% raw %}\n\nNO END
{% if x %}a b{% endif %} => {% if x %}A B{% endif %}
a {{< icon "x_y" >}} b => A {{< icon "x_y" >}} B
see [it]({{< ref "a.md" >}}) [b]({% link c.md %}) => SEE [IT]({{< ref "a.md" >}}) [B]({% link c.md %})
{# note #}\na\n{: .b }\n\n## C d {#e-f .g} => {# note #}\nA\n{: .b }\n\n## C D {#e-f .g}
import A from '@a/b';\n\nimport a from b => import A from '@a/b';\n\nIMPORT A FROM B
{{< code-toggle file=a >}}\na = 'B'\n[c]\nd = 'e'\n{{< /code-toggle >}}\n\na => {{< code-toggle file=a >}}\na = 'B'\n[c]\nd = 'e'\n{{< /code-toggle >}}\n\nA
{{% codeBlock %}}\na b\n\nc\n{{% /codeBlock %}}\nd => {{% codeBlock %}}\na b\n\nc\n{{% /codeBlock %}}\nD
{{< code-tabs >}}\na b\n```\nc\n```\n{{< /code-tabs >}} => {{< code-tabs >}}\nA B\n```\nc\n```\n{{< /code-tabs >}}
{{< x >}}\na: true\nb:\n- c\n- d: e\n{{< /x >}}\nf => {{< x >}}\na: true\nb:\n- c\n- d: e\n{{< /x >}}\nF
{{< x >}}\n{\n"a": "b"\n}\n{{< /x >}}\nc => {{< x >}}\n{\n"a": "b"\n}\n{{< /x >}}\nC
{{< x >}}\n[a]\n\n- b\n- note: see\n{{< /x >}}\nc => {{< x >}}\n[A]\n\n- B\n- NOTE: SEE\n{{< /x >}}\nC
{{< x >}}\nNote:\n- a\n- b\n{{< /x >}}\nc => {{< x >}}\nNOTE:\n- A\n- B\n{{< /x >}}\nC
# Containers.
:::tip A b\nc d\n:::\n => :::tip A B\nC D\n:::\n
:::note[A b]\nc\n\n- d\n:::\ne => :::note[A B]\nC\n\n- D\n:::\nE
::: {.warning}\na\n::: => ::: {.warning}\nA\n:::
# Formulas.
so $E_0 = m*c^2$ is *a* => SO $E_0 = m*c^2$ IS *A*
a\n$$\nx = \frac{a}{b} + y_1\n$$\nb => A\n$$\nx = \frac{a}{b} + y_1\n$$\nB
a \(x^2\) and then \(see c\) \\(y_1\\) \\(see d\\) => A \(x^2\) AND THEN (SEE C) \\(y_1\\) \\(SEE D\\)
\begin{align}\na &= b\n\end{align}\n\na => \begin{align}\na &= b\n\end{align}\n\nA
$5 and $10, $a or $b, 5 or maybe 10$ => $5 AND $10, $A OR $B, 5 OR MAYBE 10$
$$\na b\n\nc => $$ A B\n\nC
# Definitions of terms.
- `w`\n  - : An a.\n  - b\n => - `w`\n  - : AN A.\n  - B\n
A b\n:   C\n    d\n\n    e\n => A B\n:   C D\n\n    E\n
# Directives and other blocks of MyST.
```{note} A *b*\n:class: c\n\nd **e**\n``` => ```{note} A *B*\n:class: c\n\nD **E**\n```
```{figure} a.png\n:alt: b c\n\nd e\n```\nf => ```{figure} a.png\n:alt: B C\n\nD E\n```\nF
````{tip}\n```{note}\na\n```\n\n```py\nb\n```\n````\nc => ````{tip}\n```{note}\nA\n```\n\n```py\nb\n```\n````\nC
:::{note}\n:class: a\nb\n:::\n\n:::{code} c\nd e\n:::\nf => :::{note}\n:class: a\nB\n:::\n\n:::{code} c\nd e\n:::\nF
```{note}\n---\na: b\n---\nc => ```{note}\n---\na: b\n---\nC
- ```{tip}\n  a\n  ```\n- b => - ```{tip}\n  A\n  ```\n- B
(a-b)=\n# C\n\n% d\n\n+++ {"e": "f"}\n\ng => (a-b)=\n# C\n\n% d\n\n+++ {"e": "f"}\n\nG
:a: b *c*\n:d: e\n\n(f)= => :a: B *C*\n:d: E\n\n(f)=
See {ref}`a b <c>`, {doc}`/d`, {math}`e_1`, {abbr}`F (g h)`. => SEE {ref}`A B <c>`, {doc}`/d`, {math}`e_1`, {abbr}`F (G H)`.
# Obsidian and other notes.
a ==b *c*== d %%e f%% #g/h ^i-j => A ==B *C*== D %%e f%% #g/h ^i-j
%%\na b\n\nc\n%%\n\nd ==e f => %%\na b\n\nc\n%%\n\nD ==E F
*[HTML]: HTML a\n\nb => *[HTML]: HTML A\n\nB
++ctrl+a++ b ^^c d^^ => ++ctrl+a++ B ^^C D^^
# Other generators.
{::comment}\na\n{:/comment}\nb => {::comment}\na\n{:/comment}\nB
<<< @/a/b.js{2}\n\nc {{ d | e }} f => <<< @/a/b.js{2}\n\nC {{ d | e }} F
## A `b` { data-c }\n\n## D {/* #e */} => ## A `b` { data-c }\n\n## D {/* #e */}
::: a.b_c\n    options:\n      d: e\n\nf => ::: a.b_c\n    options:\n      d: e\n\nF
\vspace{1cm}\na\n\n\pagebreak => \vspace{1cm}\nA\n\n\pagebreak
[a]\n\n[a]: javascript:b => [A][a]\n\n[a]: javascript:b
see \$a\$ b [c]({{ d | e_f }}) => SEE \$A\$ B [C]({{ d | e_f }})
a `b\n--c` d => A `b --c` D
# Emphasis beside punctuation.
He said **"x"**, y => HE SAID **"X"**, Y
see (**<https://a.b>**). => SEE (**<https://a.b>**).
*<b>x</b>*, so => *<b>X</b>*, SO
“**Foo!**”, so => “**FOO!**”, SO
**_x_**, so => **_X_**, SO
(_see **this**_)! => (_SEE **THIS**_)!
***a** b* c **d => ***A** B* C \*\*D
a [*b](c)* d_e_f ~~g~~ h => A [\*B](c)\* D_E_F ~~G~~ H
> *a\n>*b* c => > \*A *B* C
# Addresses.
https://a.b/F_(c) is https://a.b/_x_, https://a.b/c*d*e => https://a.b/F_(c) IS https://a.b/_x_, https://a.b/c*d*e
_see https://a.b/c_d_ so **www.a.b**. (http://a.b)! => _SEE https://a.b/c_d_ SO **www.a.b**. (http://a.b)!
[see www.a.b](c) [https://a.b/_c_](d) => [SEE www.a.b](c) [https://a.b/_c_](d)
"https://a.b/c", he https://a.b/c|d __https://a.b/e__ => "https://a.b/c", HE https://a.b/c|d __https://a.b/e__
Wow![^1] so\n\n[^1]: a => WOW![^1] SO\n\n[^1]: A
Mail <me@x.org>, <a_b_c@x.org>. => MAIL <me@x.org>, <a_b_c@x.org>.
a *<me@x.org>* (<me@x.org>) => A *<me@x.org>* (<me@x.org>)
# Tags that separate words.
| a |\n|---|\n| <ul><li>b</li><li>c</li></ul> | => | A |\n|---|\n| <ul><li>B</li><li>C</li></ul> |
| a |\n|---|\n| b<hr>c<p>d</p>e *f<br>g* | => | A |\n|---|\n| B<hr>C<p>D</p>E *F<br>G* |
a <script>let x = y;</script> b <pre>c d</pre> e => A <script>let x = y;</script> B <pre>c d</pre> E
a\n{{< figure\n  src="a.png"\n  alt="b"\n>}}\nc => A\n{{< figure\n  src="a.png"\n  alt="b"\n>}}\nC
> {{% figure\n>   alt="b"\n> %}}\n> c => > {{% figure\n>   alt="b"\n> %}}\n> C
{{< a\n\nb => {{< A\n\nB
{{< figure\n src="a.png"\n alt="b" >}} => {{< figure\n src="a.png"\n alt="b" >}}
see {{< icon\n "a b" >}} so => SEE {{< icon\n "a b" >}} SO
End.\n![a](x)\nmore => END.\n![A](x)\nMORE
a^[b c] d^[e] => A^[B C] D^[E]
"""
"""Files and their translations into capitals; \\n is a line end, and # begins a comment."""
LEFT_IN_TAGS = "parameters of tags left untranslated: {}"
ROWS = [row.split(" => ") for row in TRANSLATED.strip().split("\n") if row[0] != "#"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("source", "expected"), ROWS)
def test_markup_keeps_its_place_in_a_translation_into_capitals(source, expected, end):
    file = source.replace(r"\n", end)
    assert translated("markdown", file, same) == file
    assert translated("markdown", file) == expected.replace(r"\n", end)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("| h |\n|---|\n| <ul><li>b</li><li>c d</li></ul> |", ["h", "b", "c d"]),
        ("| h |\n|---|\n| x *a<p>b* <dd>c |", ["h", "x a b", "c"]),
        ("here^[a note]now", ["here a note now"]),
        ("one<wbr>two", ["onetwo"]),
    ],
)
def test_tags_and_notes_separate_words(source, lines):
    document = read_document("markdown", source.encode())
    assert [" ".join(line.split()) for line in document.lines] == lines


@pytest.mark.parametrize(
    "source",
    [
        "See <!-- ignore -->[the page](x)",
        "See this <?x y?>",
        "> See this\n> <!-- c --> *now*",
        "Text <img src=x>  \nmore",
        "Text <wbr>\nmore",
    ],
)
def test_a_comment_that_moves_does_not_turn_a_paragraph_into_html(source):
    assert block_types(translated("markdown", source, turned)) == block_types(source)


def block_types(text: str) -> list[str]:
    return [token.type for token in MARKDOWN_IT.parse(text)]


@pytest.mark.parametrize(
    ("translation", "expected"),
    [
        ("①を参照", "https://a.b/c を参照"),
        ("Siehe①-Seite", "Siehe https://a.b/c -Seite"),
        ("Siehe (①).", "Siehe (https://a.b/c)."),
    ],
)
def test_letters_do_not_become_part_of_a_bare_address(translation, expected):
    by = aligned(translation, "0-0")
    assert translated("markdown", "See https://a.b/c", by) == expected


def test_a_block_that_would_lose_markup_stays_and_is_reported():
    document = read_document("markdown", b"one <x/>\ntwo")
    swapped = aligned("TWO ONE", "0-1 1-0")
    assert document.join(swapped(document.lines)) == b"one <x/>\ntwo"
    assert (
        document.notice == "blocks of text left untranslated because their markup would be lost: 1"
    )
    document.join(same(document.lines))
    assert document.notice == ""


@pytest.mark.parametrize(
    ("format", "source", "notice"),
    [
        (
            "markdown",
            "a [b](c 'd') ![e](f 'g') [h]\n\n[h]: x 'i'",
            "titles of links and images left untranslated: 3",
        ),
        (
            "markdown",
            "a <img alt='b c' title='1'> d",
            "attributes of HTML in text left untranslated: 1",
        ),
        ("markdown", "- <svg><text>a</text></svg>", "texts in SVG images left untranslated: 1"),
        ("markdown", "a \0b\n\nc", "blocks of text left untranslated: 1"),
        (
            "markdown",
            '{{< note title="Warning" icon="fire" >}}\nHot\n{{< /note >}}',
            LEFT_IN_TAGS.format(1),
        ),
        ("markdown", "a {{% tip title=`Two words` text='c' %}} b", LEFT_IN_TAGS.format(2)),
        (
            "markdown",
            '{{< figure\n src="x.png"\n caption="Two \\"b\\" c"\n>}}',
            LEFT_IN_TAGS.format(1),
        ),
        ("markdown", '- {% include alert.html text="A b" %}\n- c', LEFT_IN_TAGS.format(1)),
        (
            "markdown",
            '{{< details "Read more here" >}}\na\n{{< /details >}}',
            LEFT_IN_TAGS.format(1),
        ),
        ("markdown", ':::note{title="Warning"}\na\n:::', LEFT_IN_TAGS.format(1)),
        ("markdown", 'a [b](c){title="Warning" width="1"} d', LEFT_IN_TAGS.format(1)),
        ("markdown", '| a |\n|---|\n| {{< x label="Warning" >}} |', LEFT_IN_TAGS.format(1)),
        (
            "markdown",
            '{% if page.title == "Home page" %}\na\n{% endif %}\n{{< youtube "abc" >}} b',
            "",
        ),
        ("markdown", '`{{< note title="Warning" >}}`\n\n    {{< note title="Warning" >}}\n\na', ""),
        ("markdown", '{{< note title="12" >}}\na', ""),
        ("html", "<iframe srcdoc='<p>x'>a</iframe>", "embedded pages left untranslated: 1"),
        (
            "html",
            "a <svg><title>b</title><text>1</text><path></svg>",
            "texts in SVG images left untranslated: 1",
        ),
    ],
)
def test_what_stays_untranslated_is_reported(format, source, notice):
    assert read_document(format, source.encode()).notice == notice


def test_directives_that_nmt_does_not_know_are_reported():
    lines, result, notice = pseudo("markdown", "```{mine} a\nb c\n```\n\n```{code} d\ne\n```\n")
    assert lines == []
    assert "b c" in result
    assert notice == "directives with text left untranslated (mine): 1"
    names = "abccdef"
    source = "".join(f"```{{{name}}}\nb c\n```\n" for name in names)
    notice = pseudo("markdown", source)[2]
    assert notice == "directives with text left untranslated (c, a, b, d, e, ...): 7"


def test_many_tags_of_code_that_nothing_closes_take_linear_time():
    tags = "".join(f"{{{{< code-{'ab'[n % 2] * (n % 300 + 1)} >}}}}\n" for n in range(800))
    page = tags + "a: 1\n" * 800 + "```\n\n{{< /code-a >}}\n"
    document = read_document("markdown", page.encode())
    assert document.join(same(document.lines)) == page.encode()


@pytest.mark.parametrize("line", ["```{note}\n", ":::{note}\n", "%%\n", "{a}`` b ", "(a)=\n\n"])
def test_unclosed_blocks_do_not_recurse_without_end(line):
    page = line * 2_000 + "\n\na\n"
    document = read_document("markdown", page.encode())
    assert document.join(same(document.lines)) == page.encode()


def nested_list(levels: int) -> str:
    return "".join(f"{'  ' * level}- cat\n" for level in range(levels))


@pytest.mark.parametrize("format", ["markdown", "mdx"])
@pytest.mark.parametrize("page", [nested_list(15), "> " * 30 + "a cat\n"])
def test_deep_lists_and_quotations_are_translated(format, page):
    assert pseudo(format, page)[1:] == (page.upper(), "")


@pytest.mark.parametrize("format", ["markdown", "mdx"])
@pytest.mark.parametrize("page", [nested_list(17), "- a\n\n  " + "> " * 40 + "cat\n"])
def test_deeper_blocks_are_counted_and_the_rest_is_translated(format, page):
    lines, result, notice = pseudo(format, f"{page}- dog\n\nThe end.\n")
    assert lines[-2:] == ["dog", "The end."]
    assert "cat\n" in result
    assert result.endswith("- DOG\n\nTHE END.\n")
    assert notice == "blocks of text left untranslated: 1"
