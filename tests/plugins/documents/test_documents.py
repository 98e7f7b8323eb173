"""Which texts of a document are translated, and where markup goes in their translations."""

import html
import io
import random
import re
import shutil
import subprocess
import sys
import zipfile
from xml.etree import ElementTree

import polib
import pytest
from hypothesis import assume, example, given, strategies as st
from markdown_it import MarkdownIt

from nmt.errors import NMTError
from nmt.extensions import DocumentEntry
from nmt.items import COPIES, COPY
from nmt.plugins.documents import plain_text
from nmt.registry import entries_of
from nmt.translation import Translated, read_document

for entry in entries_of(DocumentEntry).values():
    entry.load()  # which takes longer than an example may


def same(lines: list[str]) -> list[Translated]:
    return [Translated(line) for line in lines]


def upper(lines: list[str]) -> list[Translated]:
    """A translation into capitals, word for word."""
    translations = []
    for line in lines:
        alignment = [(n, n) for n in range(len(line.split()))]
        translations.append(Translated(line.upper(), alignment))
    return translations


def turned(lines: list[str]) -> list[Translated]:
    """A translation into capitals in reverse order."""
    translations = []
    for line in lines:
        words = line.upper().split()[::-1]
        alignment = [(n, len(words) - 1 - n) for n in range(len(words))]
        translations.append(Translated(" ".join(words), alignment))
    return translations


def packed(format: str, text: str) -> bytes:
    """A file of a format, whose text is in an archive if the format requires one."""
    if format in MEMBERS:
        return archive_of(text, MEMBERS[format])
    return text.encode()


def translated(format: str, text: str, by=upper) -> str:
    document = read_document(format, packed(format, text))
    result = document.join(by(document.lines))
    if format in MEMBERS:
        result = zipfile.ZipFile(io.BytesIO(result)).read(MEMBERS[format])
    return result.decode()


def aligned(translation: str, pairs: str):
    """A translator that returns `translation` for the first line.

    Its alignment is written as "0-1 1-0", and ① to ③ stand for copied items.
    """
    for number, sign in enumerate("①②③"):
        translation = translation.replace(sign, COPIES[number])
    alignment = []
    for pair in pairs.split():
        source, target = pair.split("-")
        alignment.append((int(source), int(target)))
    return lambda lines: [Translated(translation, alignment), *same(lines[1:])]


PLACED = """\
# Words of an element are far apart: it covers one word between them, but not two.
I <b>give up</b> this. | Ich gebe das auf. | 0-0 1-1 2-3 3-2 | Ich <b>gebe das auf</b>.
I <b>give up</b> this now. | Ich gebe das jetzt auf. | 0-0 1-1 2-4 3-2 4-3 | Ich <b>gebe</b> das jetzt auf.
See <a>the <i>new</i> page</a>. | Siehe die neue Seite. | 0-0 1-1 2-2 3-3 | Siehe <a>die <i>neue</i> Seite</a>.
# Part of a word, and punctuation around one.
A <b>walk</b>ing man | Ein gehender Mann | 0-0 1-1 2-2 | Ein <b>gehender</b> Mann
He ("<b>he</b>") left | Er (»er«) ging | 0-0 1-1 2-2 | Er (»<b>er</b>«) ging
# An element without aligned words takes a free word beside it.
Open <b>up</b> now | Jetzt öffnen | 0-1 2-0 | Jetzt <b>öffnen</b>
<a>Save</a>, <b>no</b> | Datei sichern, ja | 0-0 0-1 1-2 | <a>Datei sichern</a>, <b>ja</b>
Yes,<br>I do. | Ja, das tue ich. | 0-0 1-3 2-2 | Ja,<br>das tue ich.
One<wbr>two three | Einszwei drei | 0-0 1-1 | Einszwei<wbr> drei
# Code is where its mark is, even inside a word.
Run <code>make</code> now | Jetzt ① los | 0-2 1-1 2-0 | Jetzt <code>make</code> los
Set <code>x</code> here | Hier ①-basiert | 0-1 1-1 2-0 | Hier <code>x</code>-basiert
The <code>x</code>s of <code>y</code>, <kbd>z</kbd> | ③, ② (①) | 1-2 | <kbd>z</kbd>, <code>y</code> (<code>x</code>s)
A pre<code>fix</code>, the <code>x</code>를 | ② die ① | 1-2 | <code>x</code> die pre<code>fix</code>
<code>a</code>, but <code>a</code> | Ohne ②; ① | 9-9 | Ohne <code>a</code>; <code>a</code>
See <a>the <code>x</code> page</a> now | Jetzt ① siehe Seite | 0-2 3-3 4-0 | Jetzt <a><code>x</code> siehe Seite</a>
Set <b><code>x</code></b> here | Hier ① setzen | 0-2 1-1 2-0 | Hier <b><code>x</code></b> setzen
<b>Is <code>x</code> or <code>y</code></b> so | So ② und ① | 0-2 3-2 | So <b><code>y</code> und <code>x</code></b>
Let <math><mi>x</mi></math> be | Sei ① da | 9-9 | Sei <math><mi>x</mi></math> da
Press <svg><path></svg> now | Jetzt gleich | 0-0 1-1 | Jetzt <svg><path></svg> gleich
# Code whose mark is lost, doubled or outside of its element occurs once, too.
Run <code>make</code> now | Jetzt machen los | 0-2 1-1 2-0 | Jetzt <code>make</code> machen los
Run <code>make</code> now | Jetzt ① und ① los | 0-2 1-1 2-0 | Jetzt <code>make</code> und los
Run <code>make</code> now | ①① los | 0-1 | <code>make</code> los
# Powers and formulas are items; the call of a footnote stays with its word.
Or 10<sup>6</sup> men | Mann ① oder | 0-2 2-0 | Mann 10<sup>6</sup> oder
End.<sup>1</sup> So<sup>2</sup> be it | Aus. So sei es | 0-0 1-1 2-2 3-3 | Aus.<sup>1</sup> So<sup>2</sup> sei es
A 1<sup>st</sup> one | Ein erster | 0-0 1-1 2-1 | Ein <sup>erster</sup>
# No tag is put inside a protected item.
Hi <b>{{ a</b> b }} you | Du {{ a b }} da | 0-1 1-2 2-3 5-0 | Du <b>{{ a b }}</b> da
So <code>b</code> is `a b` | Also ist `a b` dies | 0-0 2-1 3-2 4-3 | Also <code>b</code> ist `a b` dies
# In a script without blanks, elements keep their relative position.
Open <b>the old house</b> now | ここの古い家を開く | 4-0 4-1 4-2 2-3 2-4 3-5 3-6 0-7 0-8 | ここの<b>古い家</b>を開く
设置<b>文件</b>名 | Set the file name | 0-0 1-0 2-2 3-2 4-3 | Set the <b>file</b> name
About <b>1.5 GB</b> now | Jetzt etwa 1,5 GB | 0-1 1-2 3-0 | Jetzt etwa <b>1,5 GB</b>
No <b>end | Kein Ende | 0-0 1-1 | Kein <b>Ende
Tom &amp; I &lt; <b>you</b> | Tom & ich < du | 0-0 1-1 2-2 3-3 4-4 | Tom &amp; ich &lt; <b>du</b>
"""


# `\n` stands for a line end.
MARKDOWN_PLACED = r"""
- [ ] do it[^1] | mach es | 0-0 1-1 | - [ ] mach es[^1]
---\na: b\n---\nText\n | Wort | 0-0 | ---\na: b\n---\nWort\n
[the page]\n\n[the page]: x\n | die Seite | 0-0 1-1 | [die Seite][the page]\n\n[the page]: x\n
> [!NOTE]\n> Do it\n> now | mach es | 0-0 | > [!NOTE]\n> mach es
> [!tip]- Do it\n> Now | mach es | 0-0 | > [!tip]- mach es\n> Now
# Brackets whose label is not defined are text; footnotes, citations and pages of a wiki are not.
Press [any key] now | Jetzt [Taste] drücken | 0-2 1-1 3-0 | Jetzt [Taste] drücken
A [b][c] (d) [e](f g) h | A [b][c] (d) [e](f g) hh | 0-0 | A [b\][c] (d) [e\](f g) hh
\[No\] label | \[Kein\] Wort | 0-0 | \\\[Kein\\\] Wort
[the P][] or [x][The  p]\n\n[the p]: x\n | y oder S | 0-2 1-2 2-1 3-0 | [y][The  p] oder [S][the P]\n\n[the p]: x\n
Not [[a page]] | ① nicht | 0-1 | [[a page]] nicht
Not [[a page\|b c]] here | Nicht die Seite | 0-0 1-1 2-2 3-1 | Nicht [[a page\|die Seite]]
An ![[a_b#C d]] here | Ein dort | 0-0 2-1 | Ein ![[a_b#C d]] dort
See [[p]] or [[p](x)]\n\n[p]: y\n | Hier [S] oder [S] | 0-0 1-1 2-2 3-3 | Hier [[S][p]] oder [[S](x)]\n\n[p]: y\n
So [@a_b, 3] and [see @c] | So ② und ① | 0-0 | So [see @c] und [@a_b, 3]
A ^[b c] and d[^e_f] | X Y und d | 0-0 1-1 2-1 3-2 4-3 | X ^[Y] und d[^e_f]
[a [b](c) d](e) | [X b Y](e) | 0-0 1-1 2-2 | [X [b](c) Y\](e)
<kbd>Do it</kbd> or <code>*x*</code> now | Nun ② oder ① | 0-0 | Nun <code>*x*</code> oder <kbd>Do it</kbd>
> one\n> two  \n> three | eins zwei drei | 0-0 1-1 2-2 | > eins zwei  \n> drei
So 2 * 3 is *six* | So 2 * 3 gibt * | 0-0 4-4 | So 2 * 3 *gibt* \*
"""


def table_rows(table: str) -> list[str]:
    return [row for row in table.strip("\n").split("\n") if not row.startswith("#")]


ROWS = [("html", row) for row in table_rows(PLACED)]
ROWS += [("markdown", row.replace("\\n", "\n")) for row in table_rows(MARKDOWN_PLACED)]


@pytest.mark.parametrize(("format", "row"), ROWS)
def test_markup_goes_around_the_words_that_align(format, row):
    source, translation, pairs, expected = row.split(" | ")
    assert translated(format, source, aligned(translation, pairs)) == expected


PAGE = """<!DOCTYPE html>
<p id='x>y'>a <b id=z>word</b> &amp;</p><script>if (a<b) c('<p>')</script><pre>a  b</pre>\r
<hr><!-- <p>c --><style>b > a</style><![CDATA[x]]><td><em>d</em><template><p>e</template><math><mi>f</mi></math>"""


def test_only_the_words_of_a_page_are_translated():
    expected = PAGE.replace("a <b id=z>word", "A <b id=z>WORD").replace("<em>d", "<em>D")
    expected = expected.replace("<template><p>e", "<template><p>E")
    assert translated("html", PAGE) == expected


DAMAGED = "<|>|</|<b|<b>|</b>|<p>|<!--|-->|<script>|</script|<a title='|\"|=|&|&#0;|&amp|\0|<code>|</code>|<img alt=x y>"
PIECES = [
    *DAMAGED.split("|"),
    " translate=no",
    "/>",
    "<title>",
    "<br>",
    "\ufeff",
    " ",
    "\r\n",
]


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=30).map("".join),
    st.sampled_from([upper, turned]),
)
def test_untranslated_parts_of_damaged_html_keep_every_byte(text, by):
    assume(text.count("\0") * 4 < len(text))  # otherwise the file is not text
    text = text.encode(errors="replace").decode()
    assert translated("html", text, same) == text
    assert html.unescape(translated("html", text, by)).upper().count("<") >= text.count("<!--")


PIECES_OF_TEXT = [
    "<b>",
    "<b><i></b>",
    "<!--",
    "<a title=",
    "x <b>y</b> `z` ",
    "<b>5 %</b> ",
    "<a>x</a>",
    "<a>,</a>",
]
UNIT = "<xliff><trans-unit><source>{}</source></trans-unit></xliff>"
RUN_A = "<r><t>a</t></r>"
PLURAL = "{n, plural, "
LINEAR = [("html", "a {}", "i", piece) for piece in PIECES_OF_TEXT]
LINEAR += [("markdown", "a {}", "i", piece) for piece in PIECES_OF_TEXT]
LINEAR += [
    ("markdown", "a {}", "i", "**x_ "),
    ("odt", "<p>{}</p>", "span", "a<s/>"),
    ("odt", "<x>{}</x>", "x", "<p>a</p>"),
    ("odt", "<p>a{}</p>", "x", "<s/>"),
    ("odt", "<p>{}</p>", "span", "<span>a</span>"),
    ("odt", "<p>a{}</p>", "span", "<i><p>b</p></i>"),
    ("docx", "<p>{}</p>", "hyperlink", RUN_A),
    ("docx", "<p>{}</p>", "hyperlink", "<x/>"),
    ("docx", f"<p>{{}}{RUN_A}</p>", "x", "<y/>"),
    ("docx", "<x>{}</x>", "p", RUN_A),
    ("docx", "<p>{}</p>", "ins", "<x/><x><p/></x>"),
    ("xliff", UNIT, "g", "a<x/>"),
    ("xliff", "<xliff>{}</xliff>", "x", "<trans-unit><source>a</source></trans-unit>"),
    ("json", '["{}"]', "i", "<p>a"),
    ("json", '["{}"]', "i", "a<br>"),
    ("json", '["{}"]', "i", "<option>a"),
    ("json", '["{}"]', "i", "a\\t"),
    ("json", '["{}"]', "i", PLURAL + "one {a} other {#}} b"),
    ("json", '["{}"]', "i", PLURAL),
]
"""Formats, files, elements to nest in them, and pieces to repeat inside."""


def calls_to_translate(format: str, text: str) -> int:
    """The number of calls and of resumed generators to read a file and write its translation."""
    content = packed(format, text)
    events = list[str]()
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        document = read_document(format, content)
        document.join([Translated(f"{line.upper()} x", []) for line in document.lines])
    finally:
        sys.setprofile(None)
    return events.count("call") + events.count("c_call")


@pytest.mark.slow
@pytest.mark.parametrize(("format", "whole", "level", "piece"), LINEAR)
def test_time_is_linear_in_the_size_of_a_file_and_independent_of_its_depth(
    format, whole, level, piece
):
    def calls(depth: int, pieces: int) -> int:
        inside = f"<{level}>" * depth + piece * pieces + f"</{level}>" * depth
        return calls_to_translate(format, whole.format(inside))

    calls(5, 8)  # fills caches
    assert calls(5, 800) < 5 * calls(5, 200)
    assert calls(200, 800) < 3 * calls(5, 800) + calls(200, 0)


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        # The first of two attributes with the same name counts.
        (
            '<img alt="A cat" src="A dog" alt="A cow"><p title=\'a &quot;b\'>c<br>d</p>',
            ["A cat", 'a "b', "c d"],
        ),
        (
            "<p translate=no>a</p><p class='x notranslate'>b</p>"
            "<p class=nottranslate>c <b translate='no'>d",
            ["c d"],
        ),
        ("<title>a <b> c</title><textarea>d</textarea>", ["a <b> c"]),
        (
            "<input placeholder=Name value=x><button aria-label='Do it'>10 %</button>",
            ["Name", "Do it"],
        ),
        (
            '<meta name=description content="Ab c"><meta content="De f" property="og:title">',
            ["Ab c", "De f"],
        ),
        (
            "<META NAME='Twitter:Description' CONTENT='Ab'>"
            "<meta name=viewport content=width><meta content=x>",
            ["Ab"],
        ),
        (
            '<input type=submit value="Send it"><input type=Reset value=Undo>'
            "<input value=x type=text>",
            ["Send it", "Undo"],
        ),
        (
            "<select><optgroup label=Group><option label=One value=x>two</select>",
            ["Group", "One", "two"],
        ),
        (
            "<video><track label=Deutsch src=x></video><input type=button translate=no value=No>",
            ["Deutsch"],
        ),
        ("<p aria-description='A b' aria-labelledby=c data-title=d>e", ["A b", "e"]),
        # The file ends in a tag.
        ('<p>a</p><img alt="A cat', ["A cat", "a"]),
        ("<p>a</p><img alt='", ["a"]),
        # Lines without words stay.
        ("<p>12:30</p>&nbsp;—<p>Yes<b>/</b><i>no</i>, <b>{}</b> of", ["Yes/no, {} of"]),
    ],
)
def test_sentences_and_attributes_of_a_page_that_are_translated(source, lines):
    assert read_document("html", source.encode()).lines == lines


@pytest.mark.parametrize(
    ("source", "lines", "expected"),
    [
        ("![A cat](x.png 'y')\n", ["A cat"], "![A CAT](x.png 'y')\n"),
        ("See ![A *b*](x) so\n", ["See so", "A b"], "SEE ![A *B*](x) SO\n"),
        ("[![Logo](x)](y) Text ![](z)\n", ["Logo", "Text"], "[![LOGO](x)](y) TEXT ![](z)\n"),
        (
            "An [![a](x)](y) or ![a](x) in\n",
            ["An or in", "a", "a"],
            "AN [![A](x)](y) OR ![A](x) IN\n",
        ),
        ("A ![b] c ![d][b]\n\n[b]: x\n", ["d", "A c", "b"], "A ![B][b] C ![D][b]\n\n[b]: x\n"),
        ("A ![b] c\n", ["A ![b] c"], "A ![B] C\n"),
        ("A ![`x`](y) c\n", ["A c"], "A ![`x`](y) C\n"),
    ],
)
def test_the_texts_of_images_are_translated(source, lines, expected):
    assert sorted(read_document("markdown", source.encode()).lines) == sorted(lines)
    assert translated("markdown", source) == expected


def test_a_thematic_break_is_not_front_matter():
    assert translated("markdown", "\n---\nSome text\n\n---\n") == "\n---\nSOME TEXT\n\n---\n"


JSON = """{"A b": "<b>Save</b> it",
 "n": 1.50e3, "x": ["Hi {name}", "%s", "https://a.org/b", "caf\\u00e9"]}"""


def test_json_keeps_placeholders_names_and_layout():
    expected = JSON.replace("Save</b> it", "SAVE</b> IT")
    expected = expected.replace("caf\\u00e9", "CAF\\u00c9")
    assert translated("json", JSON) == expected


LATIN_1_PAGE = "<meta charset=latin-1><p>"
SHIFT_JIS_PAGE = "<meta http-equiv=x content='text/html; charset=Shift_JIS'><p>"


@pytest.mark.parametrize(
    ("format", "source", "encoding", "translation"),
    [
        ("html", f"{LATIN_1_PAGE}a b", "ascii", "&#233; &#223;&#26085;"),
        # A client of the server has decoded the page, whose declaration is out of date.
        ("html", f"{LATIN_1_PAGE}日", "utf-8", "é ß日"),
        (
            "xliff",
            f"<?xml version='1.0' encoding='cp1252'?>{UNIT.format('é')}",
            "cp1252",
            "é ß&#26085;",
        ),
        ("html", f"{SHIFT_JIS_PAGE}\u2460 日", "cp932", "&#233; &#223;日"),
        ("srt", "\ufeff00:00:01,000 --> 00:00:02,000\na\n", "utf-8", "é ß日"),
        ("text", "\ufeffa\n", "utf-16-be", "é ß日"),
    ],
)
def test_a_file_is_read_and_written_in_its_encoding(format, source, encoding, translation):
    document = read_document(format, source.encode(encoding))
    if format != "xliff":
        assert document.join(same(document.lines)).decode(encoding) == source
    assert translation in document.join([Translated("é ß日")]).decode(encoding)


def test_a_page_declares_the_target_language():
    document = read_document("html", b"<HTML class=x lang='en-US'><p lang=en>a", "pt_BR", "en")
    assert document.join(upper(document.lines)) == b'<HTML class=x lang="pt-BR"><p lang="pt-BR">A'


def several(parts, separators):
    """One to four parts with separators between them."""

    def joined(pairs: list[tuple[str, str]]) -> str:
        text = ""
        for part, separator in pairs:
            text += part + separator
        _, last_separator = pairs[-1]
        return text.removesuffix(last_separator)

    return st.lists(st.tuples(parts, separators), min_size=1, max_size=4).map(joined)


MARKDOWN_WORD = st.sampled_from(
    ["wort", "Haus", "a_b", "5.", "C#", "2 * 3", r"\*", "&amp;", "(so)", "é"]
)
MARKDOWN_ELEMENT = st.sampled_from(
    ["*{}*", "**{}**", "[{}](http://a.b/c_d 'e')", "~~{}~~", "<ins>{}</ins>"]
)
MARKDOWN_ALONE = st.sampled_from(
    ["`ein *code*`", "![bild](x.png)", "<http://a.b>", "<kbd>Ein *x*</kbd>", "wort"]
)
MARKDOWN_PHRASE = st.recursive(
    several(MARKDOWN_WORD, st.sampled_from([" ", " ", "\n"])),
    lambda inside: several(
        st.builds(str.format, MARKDOWN_ELEMENT, inside) | MARKDOWN_ALONE,
        st.sampled_from([" ", "\n", "  \n"]),
    ),
    max_leaves=4,
)
BLOCKS = [
    "# Titel #",
    "Titel\n===",
    "    code *a*",
    "```c\ncode *a*\n```",
    "| a wort | b |\n|---|--:|\n| c | `d` |",
    "<div>\n<p>ein <b>Wort</b></p>\n</div>",
    "[a]: http://b.c",
    "---",
    "Fuß[^1].\n\n[^1]: Eine Note",
]


def as_quotation(text: str) -> str:
    return "> " + text.replace("\n", "\n> ")


def as_list(text: str) -> str:
    return "1. " + text.replace("\n", "\n   ") + "\n\n   - [ ] noch\n"


MARKDOWN_BLOCK = st.one_of(
    MARKDOWN_PHRASE,
    MARKDOWN_PHRASE.map(as_quotation),
    MARKDOWN_PHRASE.map(as_list),
    st.sampled_from(BLOCKS),
)
MARKDOWN_PAGE = st.lists(MARKDOWN_BLOCK, max_size=4).map("\n\n".join)
# The tildes of two nested strikethroughs can form a fence.
MARKDOWN_PAGE = MARKDOWN_PAGE.filter(lambda page: page.count("~~") <= 2)
EMPHASIS = ("em_", "strong_", "s_")


def markdown_skeleton(text: str, ignored: tuple[str, ...] = ()) -> list[object]:
    """The blocks that markdown-it sees, each with its sorted markup and its code."""
    # A line break at the edge of an element is omitted.
    ignored = ("text", "softbreak", "hardbreak", *ignored)
    blocks = list[object]()
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        content = ""
        if token.type in ("fence", "code_block"):
            content = token.content
        markup = []
        for part in token.children or []:
            if not part.type.startswith(ignored):
                attributes = sorted(part.attrs.items())
                code = "" if part.attrs else part.content
                markup.append(f"{part.type} {attributes} {code}")
        blocks.append((token.type, token.markup, content, sorted(markup)))
    return blocks


def opens_before_it_closes(text: str, element: str) -> bool:
    """Whether no closing tag of an element comes before its opening tag."""
    depth = 0
    for tag in re.findall(f"</?{element}>", text):
        depth += -1 if tag.startswith("</") else 1
        if depth < 0:
            return False
    return True


@given(MARKDOWN_PAGE, st.sampled_from([upper, turned]), st.sampled_from(["\n", "\r\n"]))
@example("<b>*![x](y) *C#\nwort** ![x](y)</b>  \n~~*`ein *code*`*  \n![x](y)~~", turned, "\n")
@example("[`ein *code*` *![x](y) *wort**](z)", turned, "\n")
@example("*a <ins>b* c</ins> wort", turned, "\n")
@example("wort\n\n`ein *code*`  \n`ein *code*`\n![bild](x.png) *wort*", turned, "\n")
@example("> `ein *code*`\\\n> `ein *code*`\n> ![bild](x.png) *wort*", turned, "\r\n")
@example("`ein *code*` ![bild](x.png)\n`ein *code*`  \n*wort*", turned, "\n")
def test_a_translation_of_markdown_has_the_same_blocks_and_markup(page, by, line_end):
    # The second paragraph of a footnote, which is code for markdown-it without its extension.
    assume("Eine Note\n\n    code" not in page)
    page = page.replace("\n", line_end)
    assert translated("markdown", page, same) == page
    result = translated("markdown", page, by)
    # Emphasis that CommonMark would not recognize is omitted.
    assert markdown_skeleton(result) == markdown_skeleton(page) or markdown_skeleton(
        result, EMPHASIS
    ) == markdown_skeleton(page, EMPHASIS)
    assert opens_before_it_closes(result, "ins")


DIRECTIVES = "%s %d 100 %% 100|% %(a)s {} {0} {a} {{ %1 ~a ~{ $x <b> %< ' @ Wort Haus.".split()  # noqa: SIM905
LANGUAGES = "c python python-brace qt kde java java-printf csharp perl perl-brace php lisp sh awk ruby lua gcc-internal".split()  # noqa: SIM905


def catalog_with_random_directives(draw: random.Random) -> str:
    """Messages in the formats of many programming languages."""
    catalog = polib.POFile()
    catalog.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    for number in range(1500):
        directives = draw.choices(DIRECTIVES, k=draw.randrange(4))
        text = " ".join([f"w{number}", *directives])
        flag = f"{draw.choice(LANGUAGES)}-format"
        catalog.append(polib.POEntry(msgid=text, flags=[flag]))
    return str(catalog)


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="needs GNU gettext")
def test_msgfmt_accepts_every_translation():
    draw = random.Random(1)
    document = read_document("po", catalog_with_random_directives(draw).encode())
    translations = []
    for line in document.lines:
        words = line.split()
        if draw.random() < 0.2:
            words += draw.choices(DIRECTIVES)
        translations.append(Translated(" ".join(draw.sample(words, len(words)))))
    result = document.join(translations).decode()
    assert result.count("fuzzy") > 500
    assert document.notice.startswith("messages left untranslated")
    command = ["msgfmt", "--check-format", "-o", "/dev/null", "-"]
    checked = result.replace("#, fuzzy, ", "#, ")  # msgfmt does not check fuzzy messages
    process = subprocess.run(command, input=checked, capture_output=True, text=True)
    assert not process.stderr


HANDWRITTEN_PO = r"""msgid ""
msgstr "Plural-Forms: nplurals=2;\n"

#,python-format
msgid "a bell\a or \101"
msgstr ""

#, fuzzy
#, c-format
msgid "a file"
msgid_plural "b files"
msgstr[0] ""
"one"
msgstr[1] ""
#~ msgid "old"
#~ msgstr ""
"""
TRANSLATED_PO = r"""msgid ""
msgstr "Plural-Forms: nplurals=2;\n"

#, fuzzy, python-format
msgid "a bell\a or \101"
msgstr "A BELL\a OR \101"

#, fuzzy
#, c-format
msgid "a file"
msgid_plural "b files"
msgstr[0] "one"
msgstr[1] "B FILES"
#~ msgid "old"
#~ msgstr ""
"""


def test_the_layout_of_a_handwritten_catalog_stays():
    result = translated("po", HANDWRITTEN_PO.replace("\n", "\r\n"))
    assert result == TRANSLATED_PO.replace("\n", "\r\n")


TIMES = "00:00:01,000 --> 00:00:02,000"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_subtitles_keep_times_tags_and_lines(end):
    source = f"1\n{TIMES}\n<i>Hello there,\nyou</i>\n\n2\n{TIMES} X1:1\n- Yes.\n{{\\an8}}- No."
    source += f"\n1\n{TIMES}\nOpen\n2\n{TIMES}\n42 now\n"  # no empty line between them
    expected = source.upper().replace("<I>", "<i>").replace("</I>", "</i>").replace("\\AN", "\\an")
    assert translated("srt", source.replace("\n", end)) == expected.replace("\n", end)


def test_a_subtitle_does_not_get_an_empty_line_which_would_end_it():
    source = f"{TIMES}\na b\nc d\ne f\n"
    assert translated("srt", source, aligned("x y", "0-0 5-1")) == f"{TIMES}\nx\ny\n"


@given(st.text(st.sampled_from("ab \t\r\n\u2028\u00a0")))
def test_plain_text_has_lines_without_white_space_around_them(text):
    plain = plain_text(text)
    assert plain.render(same(plain.lines)) == text
    assert plain.lines == [line.strip() for line in text.split("\n") if line.strip()]


XLIFF = """<?xml version="1.0"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2"><body>
<trans-unit id="1"><source>one <g id="1">two &amp; three</g><ph id="2">{\\b}</ph></source></trans-unit>
<trans-unit id="2"><source>a <x id="1"/> b</source> <target/><alt-trans><source>c</source></alt-trans></trans-unit>
<trans-unit><source>a</source><target>done</target></trans-unit>
<trans-unit><source>a</source><target xml:lang="de" state="new">b</target></trans-unit>
<trans-unit translate="no"><source>a</source></trans-unit><!-- <source>a</source> -->
</body></xliff>
"""


MARK = 'state="needs-review-translation"'
XLIFF_TARGETS = [
    # Texts before and after translation
    (
        "</ph></source>",
        f'</ph></source><target {MARK}>ONE <g id="1">TWO &amp; THREE</g><ph id="2">{{\\b}}</ph></target>',
    ),
    ("<target/>", f'<target {MARK}>A <x id="1"/> B</target>'),
    ('state="new">b', f"{MARK}>A"),
]


def test_only_missing_targets_are_added_to_xliff():
    expected = XLIFF
    for before, after in XLIFF_TARGETS:
        expected = expected.replace(before, after)
    assert translated("xliff", XLIFF) == expected
    assert translated("xliff", expected) == expected


LINK = '<w:hyperlink w:anchor="x"><w:r><w:rPr><w:u w:val="single"/></w:rPr><w:t>the link</w:t></w:r></w:hyperlink>'
FIELD_BEGIN = "<w:r><w:fldChar w:fldCharType='begin'/></w:r>"
FIELD = (
    f"{FIELD_BEGIN}<w:r><w:instrText> REF x </w:instrText></w:r>"
    "<w:r><w:t>figure 1</w:t></w:r><w:r><w:fldChar w:fldCharType='end'/></w:r>"
)
RUNS = [
    "<w:r><w:t>plain &amp; so</w:t></w:r>",
    '<w:r w:rsidR="1"><w:rPr><w:b/><w:lang w:val="en"/></w:rPr><w:t xml:space="preserve">bo</w:t></w:r>',
    "<w:r><w:rPr><w:b/></w:rPr><w:t>ld</w:t><w:br/><w:t>text</w:t></w:r>",
    "<w:r><w:tab/></w:r><w:proofErr w:type='x'/>",
    '<w:bookmarkStart w:id="1" w:name="y"/>',
    '<w:r><w:footnoteReference w:id="2"/></w:r>',
    "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del>",
    "<w:r><w:pict><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></w:pict></w:r>",
    "<w:sdt><w:sdtPr><w:id/></w:sdtPr><w:sdtContent><w:r><w:t>a form</w:t></w:r></w:sdtContent></w:sdt>",
    LINK,
    FIELD,
    FIELD_BEGIN,
    "<w:r><w:t> </w:t></w:r>",
]


def archive_of(xml: str, name: str = "word/document.xml", **more: str) -> bytes:
    """A ZIP archive with an XML file and others."""
    files = {"a.bin": "\x00", name: xml, **more}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return written.getvalue()


def document_of(inside: str) -> str:
    name = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    return f"<w:document {name}><w:body><w:p><w:pPr><w:jc/></w:pPr>{inside}</w:p> <w:sectPr/></w:body></w:document>"


PARTS_OF_RUNS = ("r", "rPr", "t", "b", "u", "lang", "proofErr")


def docx_skeleton(xml: str) -> list[str]:
    """The names of all elements except runs, their properties and their text."""
    names = [element.tag.rpartition("}")[2] for element in ElementTree.fromstring(xml).iter()]
    return sorted(name for name in names if name not in PARTS_OF_RUNS)


def sorted_capitals(xml: str) -> list[str]:
    """The characters of a text in capitals, without white space."""
    text = "".join(ElementTree.fromstring(xml).itertext())
    return sorted(without_white_space(text.upper()))


@given(st.lists(st.sampled_from(RUNS), max_size=7), st.sampled_from([upper, turned]))
def test_docx_keeps_all_but_the_text_of_runs(runs, by):
    xml = document_of("".join(runs))
    content = archive_of(xml)
    document = read_document("docx", content)
    assert document.join(same(document.lines)) == content
    with zipfile.ZipFile(io.BytesIO(document.join(by(document.lines)))) as archive:
        assert archive.namelist() == ["a.bin", "word/document.xml"]
        result = archive.read("word/document.xml").decode()
    assert docx_skeleton(result) == docx_skeleton(xml)
    assert sorted_capitals(result) == sorted_capitals(xml)
    assert result[: result.index("</w:pPr>")] == xml[: xml.index("</w:pPr>")]


def test_nonbreaking_hyphens_and_words_with_readings_are_text():
    ruby = "<w:ruby><w:rt><w:r><w:t>x</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>big</w:t></w:r></w:rubyBase></w:ruby>"
    run = f"<w:r><w:t>a co</w:t><w:noBreakHyphen/><w:t xml:space='preserve'>op, </w:t>{ruby}<w:t>, here</w:t></w:r>"
    assert read_document("docx", archive_of(document_of(run))).lines == ["a co-op, big, here"]


SCRIPT = r"<su[bp]\b.*?</su[bp]>"
SCRIPTS = """\
5 m<sup>2</sup>, 3 in<sup>2</sup>, 9 m/s<sup>2</sup> of 1.5*10<sup>&minus;3</sup> | 5 *, 3 *, 9 * of *
CO<sub>2</sub>, H<sub>2</sub>O, SO<sub>4</sub><sup>2-</sup>, Ca<sup>2+</sup>, <sup>14</sup>C so | *, *, *, *, * so
x<sub>i</sub> <i>x</i><sub>i+1</sub> <var>y</var><sup>n-1</sup> U<sub>max</sub> (a+b)<sup>2</sup> so | * * * * * so
log<sub>2</sub> of E=mc<sup>2</sup> | * of *
Word<sup>2</sup> NASA<sup>[3]</sup> end.<sup id=a><a href=b>[1]</a></sup> Brand<sup>TM</sup> | Word NASA end. Brand
The 1<sup>st</sup>, n<sup>th</sup>, 2<sup>e</sup> one<sup>nothing at all</sup> | The 1st, nth, 2e onenothing at all
"""


@pytest.mark.parametrize("row", SCRIPTS.splitlines())
@pytest.mark.parametrize("format", ["html", "markdown"])
def test_superscripts_and_subscripts_are_items_unless_they_are_words(format, row):
    source, line = row.split(" | ")
    document = read_document(format, source.encode())
    assert [COPY.sub("*", line) for line in document.lines] == [line]
    if "nothing" not in source:
        result = translated(format, source, turned)
        assert sorted(re.findall(SCRIPT, result)) == sorted(re.findall(SCRIPT, source))


RAISED_IN_DOCX = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>{}</w:t></w:r>'
RAISED_IN_PPTX = '<a:r><a:rPr baseline="30000"/><a:t>{}</a:t></a:r>'
RAISED_IN_ODT = '<x:span x:style-name="T1">{}</x:span>'
STYLE = """<style:style style:name="T1">
<style:text-properties style:text-position="super 58%"/></style:style>"""


@pytest.mark.parametrize(
    ("format", "name", "run", "raised", "file"),
    [
        (
            "docx",
            "word/document.xml",
            "<w:r><w:t>{}</w:t></w:r>",
            RAISED_IN_DOCX,
            "<w:p>{}</w:p>",
        ),
        (
            "pptx",
            "ppt/slides/slide1.xml",
            "<a:r><a:rPr/><a:t>{}</a:t></a:r>",
            RAISED_IN_PPTX,
            "<a:p>{}</a:p>",
        ),
        (
            "odt",
            "content.xml",
            "{}",
            RAISED_IN_ODT,
            STYLE + "<p>{}</p>",
        ),
    ],
)
def test_superscripts_in_office_documents_are_items_unless_they_refer_to_footnotes(
    format, name, run, raised, file
):
    text = run.format("About 10") + raised.format("6")
    text += run.format(" words") + raised.format("1") + run.format(" now")
    drawing = "http://schemas.openxmlformats.org/drawingml/2006/main"
    names = f'xmlns:w="w" xmlns:x="x" xmlns:style="s" xmlns:a="{drawing}"'
    content = archive_of(f"<x {names}>{file.format(text)}</x>", name)
    document = read_document(format, content)
    assert [COPY.sub("*", line) for line in document.lines] == ["About * words now"]
    with zipfile.ZipFile(io.BytesIO(document.join(turned(document.lines)))) as archive:
        result = ElementTree.fromstring(archive.read(name))
    assert " ".join("".join(result.itertext()).split()) == "NOW WORDS1 106 ABOUT"


LATIN = ["Haus", "geht", "x", "X-Ein", "%s", "5 GB", "(so)", "ab,", "a\u0301", "e\u0301x"]
WITHOUT_BLANKS = ["を使う", "設定", "ファイル", "。", "「", "」", "ภาษาไทย", "ကို", "文件", "\u0301"]
WITHOUT_BLANKS += [
    "\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\u0928\u092e\u0938\u094d\u0924\u0947",
]
COPIED = ["x", "make all", "設定", "a\u0301", "%s", "messages %s", "5 GB", "用"]
TEXTS = st.sampled_from([" ", " ", *LATIN, *WITHOUT_BLANKS])
MIXED = st.recursive(
    st.lists(
        TEXTS | st.tuples(st.just("copied"), st.sampled_from(COPIED)) | st.just(("point", "")),
        max_size=5,
    ),
    lambda inside: st.lists(TEXTS | st.tuples(st.just("element"), inside), max_size=4),
)
ODF = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
RUN = '<w:r><w:t xml:space="preserve">{}</w:t></w:r>'
LINKED = f"<w:hyperlink>{RUN.format('Ha')}{{}}</w:hyperlink>"
WAYS = {
    "html": {
        "file": "<p>{}</p>",
        "element": "<b>Ha{}</b>",
        "copied": "<code>{}</code>",
        "point": "<img>",
    },
    "markdown": {"file": "{}", "element": "<b>Ha{}</b>", "copied": "`{}`", "point": "<wbr>"},
    "srt": {
        "file": "00:00:01,000 --> 00:00:02,000\n{}\n",
        "element": "<i>Ha{}</i>",
        "point": "{{\\an8}}",
    },
    "xliff": {
        "file": UNIT,
        "element": "<g>Ha{}</g>",
        "copied": '<mrk translate="no">{}</mrk>',
        "point": "<x/>",
    },
    "docx": {
        "file": document_of("{}"),
        "element": LINKED,
        "text": RUN,
        "point": "<w:r><w:tab/></w:r>",
    },
    "odt": {
        "file": f'<p xmlns="{ODF}">{{}}</p>',
        "element": "<span>Ha{}</span>",
        "point": "<tab/>",
    },
}
MEMBERS = {"docx": "word/document.xml", "odt": "content.xml"}
"""How formats write text, an element, copied code and a tag between words."""


def written(ways: dict[str, str], pieces) -> str:
    """A sentence in a format; its pieces are texts, or pairs of a kind and the pieces inside."""
    result = ""
    for piece in pieces:
        kind, inside = ("text", piece) if isinstance(piece, str) else piece
        if kind == "element":
            inside = written(ways, inside)
        text = ways.get(kind, "{}").format(inside)
        # Letters that adjoin code would be part of it.
        result += f" {text} " if kind == "copied" else text
    return result


def sentence_in(file: str, ways: dict[str, str]) -> str:
    """The sentence in a translated file of a format, with its markup."""
    before, after = ways["file"].split("{}")
    text = file.removeprefix(before).removesuffix(after)
    parts = re.split('<target state="needs-review-translation">|</target>', text)
    return parts[1] if len(parts) > 1 else text


def texts_and_codes(text: str, copied: str) -> list[str]:
    """Texts without markup and copied code by turns, given a pattern for code with a group."""
    parts = re.split(copied, text)
    for number in range(0, len(parts), 2):
        parts[number] = re.sub(r"<[^>]*>|\{\\an8\}", "", parts[number])
    return [html.unescape(part) for part in parts]


def without_white_space(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("format", WAYS)
@given(
    MIXED,
    st.lists(TEXTS | st.sampled_from([*COPIED, *COPIES[:4]]), min_size=1, max_size=12),
    st.data(),
)
def test_nothing_of_a_translation_is_lost(format, pieces, words, data):
    """In any script and with any alignment, the text without the markup is the translation."""
    ways = WAYS[format]
    translation = " ".join("".join(words).split())
    source = written(ways, ["Wort ", *pieces, " Ende"])
    content = ways["file"].format(source)
    assume(translation)
    assume(format != "markdown" or "``" not in content)  # two pieces of code would be one
    number = st.integers(-1, 12)
    pairs = data.draw(st.none() | st.lists(st.tuples(number, number)))
    result = translated(format, content, lambda lines: [Translated(translation, pairs)])
    # A unit of XLIFF stays untranslated if its translation lacks a placeholder.
    assume(format != "xliff" or sentence_in(result, ways) != source)
    copied = re.escape(ways.get("copied", "\0{}")).replace(r"\{\}", "(.*?)")
    parts = texts_and_codes(sentence_in(result, ways), copied)
    texts = parts[::2]
    codes = parts[1::2]

    source_codes = re.findall(copied, content)
    assert sorted(map(without_white_space, codes)) == sorted(map(without_white_space, source_codes))

    marks = COPIES[: len(source_codes)]
    left = COPY.sub(lambda copy: "" if copy[1] in marks else copy[0], translation)
    # Without words, a paragraph of Markdown may lose its emphasis, so it stays untranslated.
    assume(not (format == "markdown" and result == content and not left.strip()))
    assert without_white_space("".join(texts)) == without_white_space(left)

    translated_marks = [copy[1] for copy in COPY.finditer(translation)]
    if sorted(translated_marks) == sorted(marks) and "element" not in str(pieces):
        code_of = dict(zip(marks, source_codes, strict=True))
        expected = COPY.sub(lambda copy: code_of[copy[1]], translation)
        assert without_white_space("".join(parts)) == without_white_space(expected)

    # Elements that adjoin in the source adjoin in the translation.
    are_adjoining = re.search("</[bi]><[bi]>", content) is not None
    if not codes and "point" not in str(pieces) and not are_adjoining:
        assert " ".join("".join(parts).split()) == translation


@pytest.mark.parametrize(
    "file",
    [
        "<p>one {} two</p>",
        "<_:p xmlns:_='x'>one <é:span xmlns:é='y'>{}</é:span> two</_:p>",
        "<!DOCTYPE x [<!-- ' > </x> --><!ATTLIST p q CDATA '>'><?a > </x>?>]><x><p>one {} two</p></x>",
    ],
)
@pytest.mark.parametrize("hidden", ["<!--></p>-->", "<!-- > <b> -->", "<?a > </p></x>?>", "<_/>"])
def test_xml_is_not_parsed_as_html(file, hidden):
    """In XML, names begin with any letter, and comments, instructions and declarations contain tags."""
    text = file.format(hidden)
    assert read_document("odt", packed("odt", text)).lines in (["one two"], ["one  two"])
    result = translated("odt", text)
    ElementTree.fromstring(result)
    for piece in (hidden, "ONE", "TWO"):
        assert result.count(piece) == 1


NOTES = "<note><p>three four</p></note><note><p>two</p></note><note><p>three four</p></note>"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("<p>one <content-control>two</content-control> three</p>", ["one two three"]),
        (f"<p>one{NOTES}</p>", ["one", "three four", "two"]),
        (f"<p>1 {NOTES} 2</p>", ["three four", "two"]),
    ],
)
def test_content_controls_are_part_of_a_sentence_and_notes_are_sentences(text, lines):
    assert read_document("odt", packed("odt", f"<x>{text}</x>")).lines == lines
    expected = re.sub("one|two|three|four", lambda word: word[0].upper(), text)
    assert translated("odt", f"<x>{text}</x>") == f"<x>{expected}</x>"


ENTITY = '<!DOCTYPE w [<!ENTITY e "ee">]><w>&e;</w>'
DEEP = document_of("<w:ins>" * 300 + "</w:ins>" * 300)
KLINGON_XML = b"<?xml version='1.0' encoding='klingon'?><x/>"
KOI8_PO = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=koi8-r\\n"\n'
CONTAINER = "<rootfile full-path='a.opf'/>"
UNREADABLE = [
    # Format, function that returns the content, and problem
    ("docx", lambda: archive_of("<w:p>", "x.xml"), "its text is missing"),
    ("docx", lambda: archive_of("<w:p>"), "not well-formed"),
    ("docx", lambda: archive_of(ENTITY), "declares the entity 'e'"),
    ("docx", lambda: archive_of(DEEP), "nested more than"),
    ("docx", lambda: archive_of("<w:p>", more=" " * 2**26), "bytes when unpacked"),
    ("docx", lambda: archive_of("<w:p/>" * 2**21), "XML tags; the limit is"),
    ("xliff", lambda: KLINGON_XML, "cannot read its encoding 'klingon'"),
    ("docx", lambda: b"\xd0\xcf\x11\xe0" + bytes(600), "protected with a password"),
    ("odt", lambda: archive_of("\1", "content.xml"), "without a password"),
    ("xlsx", lambda: archive_of("", "xl/a")[:-9], "damaged"),
    ("epub", lambda: archive_of(CONTAINER, "META-INF/container.xml"), "a.opf is missing"),
    ("json", lambda: b'{"a": 1,}', "not valid JSON: .*line 1"),
    ("json", lambda: b"[" * 9999, "nested too deeply"),
    ("text", lambda: archive_of("<w>"), "not text: save it as plain text or TSV"),
    ("html", lambda: b"a" * 2**21, "longer than"),
    ("po", lambda: KOI8_PO, "the charset koi8-r"),
]


@pytest.mark.parametrize(("format", "content", "problem"), UNREADABLE)
def test_unreadable_documents_are_refused(format, content, problem):
    with pytest.raises(NMTError, match=problem):
        read_document(format, content())
