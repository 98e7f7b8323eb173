"""Strings of programs: which words belong together, and what stays in its place."""

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st
from pseudo import pseudo

from nmt.plugins.documents import Translated, read_document
from nmt.plugins.protection.copies import COPY


def lines_of(text: str) -> list[str]:
    """The lines of a JSON string, the same for a message of a catalog and, if possible, for a subtitle."""
    lines, _, _ = pseudo("json", json.dumps([text], ensure_ascii=False))
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\n", "\\n")
    )
    catalog, _, _ = pseudo(
        "po", f'msgid "{escaped}"\nmsgstr ""\n', by=lambda lines: [Translated("")] * len(lines)
    )
    assert catalog == lines
    if "," not in text:
        times = "00:00:01,000 --> 00:00:02,000"
        assert pseudo("srt", f"1\n{times}\n{text}\n")[0] == lines
    return lines


@pytest.mark.parametrize(("text", "lines"), [
    *((f"First line{tag}Second", ["First line Second"]) for tag in (
        "<br>", "<br/>", "<br />", "<BR>", "<br clear=all>", "<br class='a>b'>", "</br>", "<img src=x>", "\\n", "\\N",
        "\\r\\n", "<br>\n", "\n", "<input disabled>", "&lt;br /&gt;", "&lt;/p&gt;", "[br]",
    )),
    *((f"Open{tag}Close", ["Open", "Close"]) for tag in (
        "</p><p>", "<p>", "</P>\n<P class=x>", "<hr>", "<hr noshade/>", "</li><li>", "</td><td>", "</tr><tr>", "</div>",
        "<h2>", "</option><option value=1>", "</section>\n\n<section>", "\t", "\\t", "\n\n", "\n- ", "<dd>", "<ul><li>",
    )),
    ("<ul><li>One</li><li>Two <b>or</b> three</li></ul>", ["One", "Two or three"]),
    ("a<button>Open</button>b", ["a Open b"]),
    ("<b>O</b>pen <i>it</i>s <a href='x'>fi</a>le<small>s</small>", ["Open its files"]),
    ("a<wbr>b <link>it</link> <name> c", ["ab it c"]),
    ("_Save <b>&all</b> R&D &nbsp; A & B _x_ a_b E&xit", ["Save all R&D &nbsp; A & B _x_ a_b E&xit"]),
    ("run git <option> now", ["run git now"]),
    ("if a <b and c> d", ["if a <b and c> d"]),
    (r"open C:\new\table now", [r"open C:\new\table now"]),
    (r"the letters \nu and \theta here", [r"the letters \nu and \theta here"]),
    ("a <!-- remark --> b", ["a b"]),
    ("&Open\tCtrl+O", ["Open"]), ("_Save all\tCtrl+Shift+S", ["Save all"]), ("Help\tF1", ["Help"]),
    ("&Delete\tDel", ["Delete"]), ("Go &home\tHome", ["Go home"]), ("Start\tEnd", ["Start", "End"]),
    ("Quit\t⌘Q", ["Quit"]), ("&Zoom\\tCtrl++", ["Zoom"]), ("\tName:\tSize", ["Name:", "Size"]),
])  # fmt: skip
def test_words_that_belong_together(text, lines):
    assert lines_of(text) == lines


@pytest.mark.parametrize("text", [
    "One two\nthree four\nfive", "\tOne\ttwo\t\tthree\t", r"One two\nthree\\n four\N five", "One<br>\n<br>two",
    "<p>One</p>\n <p>two</p>\n", "One\r\n\r\ntwo\r\nthree", "&One\tCtrl+O",
])  # fmt: skip
def test_breaks_and_tags_keep_their_places_and_count(text):
    """In a translation in capitals, all else stays where it was; in a short one, nothing is lost."""
    _, result, _ = pseudo("json", json.dumps({"a": text}))
    expected = text.upper()
    for tag in ("<p>", "</p>", "<br>", r"\n", "Ctrl+O"):
        expected = expected.replace(tag.upper(), tag) if tag != r"\n" else expected
    assert json.loads(result)["a"].replace("\\n", "\\N") == expected
    _, result, _ = pseudo(
        "json", json.dumps([text]), by=lambda lines: [Translated("x", [])] * len(lines)
    )
    for piece in ("\n", "\t", "\r", "<br>", "\\n", "\\N"):
        assert json.loads(result)[0].count(piece) == text.count(piece)


PIECES = [
    *(
        "{n, plural, one {",
        "} other {",
        "}}",
        "{g, select, a {",
        "{x}",
        "{",
        "}",
        "'",
        "''",
        "#",
        "'{",
    ),
    *(
        "<b>",
        "</b>",
        "<br>",
        "<p>",
        "</p>",
        "<!--",
        "<",
        "<v Bob>",
        "&amp;",
        "&Open",
        "Ctrl+O",
        "- ",
    ),
    *(
        "\t",
        "\\n",
        "\n",
        "\r\n",
        " ",
        "wort",
        "Haus",
        "\0",
        "\1",
        "\0001",
        "\ue000",
        "\ue100",
        "%s",
        "C:\\new",
    ),
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.data())
def test_no_string_is_damaged(text, data):
    """The same lines return the same bytes, and other lines, with any alignment, a file of the same format."""

    def any_words(lines: list[str]) -> list[Translated]:
        pairs = st.none() | st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6)
        return [
            Translated(" ".join(line.upper().split()[::-1]), data.draw(pairs)) for line in lines
        ]

    _, result, _ = pseudo("json", json.dumps([text, text]), by=any_words)
    assert len(json.loads(result)) == 2
    if "\0" not in text:
        for format, header in (("srt", "1\n"), ("vtt", "WEBVTT\n\n")):
            source = f"{header}00:01.000 --> 00:02.000\n{text}\n"
            _, result, _ = pseudo(format, source, by=any_words)
            assert result.startswith(source[: source.index(">") + 12])


def test_a_mnemonic_stays_with_its_word():
    def turned(lines: list[str]) -> list[Translated]:
        return [Translated("Alles sichern jetzt", [(0, 1), (1, 0), (2, 2)]) for _ in lines]

    for text, expected in (
        ("&Save all now", "&Alles sichern jetzt"),
        ("Save &all now", "&Alles sichern jetzt"),
        ("Save all _now", "Alles sichern _jetzt"),
    ):
        assert json.loads(pseudo("json", json.dumps([text]), by=turned)[1]) == [expected]


def test_what_stays_is_counted():
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    plural = 'msgid "a file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert pseudo("po", header + plural)[1:] == (
        header + plural,
        "plural messages left untranslated because the header has no valid Plural-Forms: 1",
    )
    notice = pseudo("po", header + plural, target="ja")[2]
    assert notice.endswith(r'add this line to the header: "Plural-Forms: nplurals=1; plural=0;\n"')
    lose = lambda lines: [Translated("x")] * len(lines)  # noqa: E731
    _, result, notice = pseudo("json", '["Hi {name}", "Hi"]', by=lose)
    assert (result, notice.endswith("placeholders: 1")) == ('["Hi {name}", "x"]', True)


@pytest.mark.parametrize(
    ("string", "code"),
    [
        ("Press <kbd>Enter</kbd> to open it.", "<kbd>Enter</kbd>"),
        ("Set <code class='x'>the mode</code> first.", "<code class='x'>the mode</code>"),
        ("There are 10<sup>6</sup> cells.", "10<sup>6</sup>"),
        ("The CO<sub>2</sub> sensor is old.", "CO<sub>2</sub>"),
    ],
)
def test_code_and_powers_in_strings_are_single_items(string, code):
    document = read_document("json", json.dumps([string]).encode(), "de", "en")
    [line] = document.lines
    [item] = [copy[0] for copy in COPY.finditer(line)]
    result = json.loads(document.join([Translated(f"Neu {item} Text")]))
    assert result == [f"Neu {code} Text"]


FIXED = """
<style>p { color: red }</style>The house is old.|The house is old.
<STYLE type="text/css">p > b { color: red }</STYLE>The house is old.|The house is old.
Go <script async src="a.js">var a = "one < two";</script>home|Go home
See <pre>two\\n\\nwords</pre>there|See,there
See <textarea name="a">two words</textarea>there|See,there
See <iframe src="x">two words</iframe>there|See,there
See <svg><title>a b</title><text x="1">red</text></svg>there|See there
<p translate="no">Big Co</p><p>Go home</p>|Go home
<div class="a notranslate">Big<br>Co <p>red</p></div>Go home|Go home
<code>one\\n\\ntwo</code>|
"""


@pytest.mark.parametrize("row", FIXED.strip().splitlines())
def test_elements_that_are_no_text_stay(row):
    text, _, lines = row.replace("\\n", "\n").rpartition("|")
    assert lines_of(text) == (lines.split(",") if lines else [])
    result = json.loads(pseudo("json", json.dumps([text]))[1])[0]
    expected = text
    for words in filter(None, lines.split(",")):
        for word in words.split():
            expected = expected.replace(word, word.upper(), 1)
    assert result == expected


@pytest.mark.parametrize(
    ("string", "name"),
    [
        ('Buy <span translate="no">Big Co</span> now', "span"),
        ("Buy <b class='x notranslate'>Big <i>Co</i></b> now", "b"),
        ("Buy <x translate=no>Big Co</x> now", "x"),
        ("Buy <code>Big\n\nCo</code> now", "code"),
    ],
)
def test_words_that_are_not_to_be_translated_are_one_item(string, name):
    document = read_document("json", json.dumps([string]).encode(), "de", "en")
    [line] = document.lines
    [item] = [copy[0] for copy in COPY.finditer(line)]
    [element] = re.findall(rf"<{name}.*</{name}>", string, re.DOTALL)
    assert json.loads(document.join([Translated(f"Neu {item} Text")])) == [f"Neu {element} Text"]


ATTRIBUTES = """
<p>See <img alt="a red 'ball'" src="red.png"> here</p>|See here,a red 'ball'
<img src=x.png alt='a ball'>|a ball
<a title="go home" href="home.html">Back</a> or <input placeholder=name>|Back or,go home,name
<input type="submit" value="Send it"><input type="text" value="red">|Send it
<img alt="2 < 3 cats"> or <a class="x" title='5 > 4 <6 dogs'>us</a>|or us,2 < 3 cats,5 > 4 <6 dogs
<meta name="description" content="my page"><meta name="robots" content="all">|my page
<button aria-label="close it">now</button>|close it,now
<p title='a title'>Text <b>in</b> it</p>|a title,Text in it
<a hidden title="x > y" href=q>Link it</a>|x > y,Link it
<abbr title="for &quot;example&quot;">such</abbr> this|such this,for "example"
<p translate="no" title="not this">or</p> that|that
"""


@pytest.mark.parametrize("row", ATTRIBUTES.strip().splitlines())
def test_attributes_that_people_read_are_translated(row):
    text, _, lines = row.rpartition("|")
    found, result, notice = pseudo("json", json.dumps([text]))
    assert (sorted(found), notice) == (sorted(lines.split(",")), "")
    before, after = (list(words_of(page)) for page in (text, json.loads(result)[0]))
    expected = [value.upper() if value in lines.replace(",", " ") else value for value in before]
    assert after == expected


def words_of(page: str) -> list[str]:
    """The values of attributes and the words of text in a page, by another parser."""
    found = list[str]()

    class Values(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.extend(value for _, value in attributes if value)

        def handle_data(self, data):
            found.extend(data.split())

    parser = Values()
    parser.feed(page)
    parser.close()
    return found


def test_tags_of_messages_may_contain_arguments():
    message = (
        '{n, plural, one {<a href="{url}" title="open {x} now">One file</a>} other {<!-- {x} -->'
        '# files <img alt="{n, plural, one {a cat} other {# cats}}"> <b class="{c}">or</b>}}'
    )
    lines, result, notice = pseudo("json", json.dumps([message]))
    shown = [COPY.sub("_", line) for line in lines]
    assert shown == ["open _ now", "One file", "_ files or", "a cat", "_ cats"]
    expected = message
    for text in ("open", "now", "One file", "# files", "a cat", "# cats", ">or<"):
        expected = expected.replace(text, text.upper())
    assert (json.loads(result), notice) == ([expected], "")


def test_a_placeholder_that_an_attribute_loses_leaves_the_string_unchanged():
    text = '<img alt="Photo of {name}"> Hello'

    def lose(lines: list[str]) -> list[Translated]:
        return [Translated(line.replace("{name}", "").upper()) for line in lines]

    _, result, notice = pseudo("json", json.dumps([text]), by=lose)
    assert (json.loads(result), notice.endswith("placeholders: 1")) == ([text], True)


@pytest.mark.parametrize(
    "choice",
    [
        "{n, choice, 0#no files|1#one file}",
        "In {0,choice,0#none|1<many {0}} files",
    ],
)
def test_choices_are_counted(choice):
    lines, result, notice = pseudo("json", json.dumps([choice]))
    assert (lines, json.loads(result)) == ([], [choice])
    assert notice == "strings left untranslated because nmt cannot parse their ICU syntax: 1"
    _, _, notice = pseudo("po", f'msgid "{choice}"\nmsgstr ""\n')
    assert notice == "messages left untranslated because nmt cannot parse their ICU syntax: 1"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_front_matter_in_a_string_stays_and_is_counted(end):
    front = "---\ntitle: My page\ntags:\n  - red\n- blue\n\n# why\n---\n".replace("\n", end)
    lines, result, notice = pseudo("json", json.dumps([f"{front}{end}One page"]))
    assert (lines, json.loads(result)) == (["One page"], [f"{front}{end}ONE PAGE"])
    assert notice == "strings whose front matter is left untranslated: 1"
    text = "---\nOnly text: here\nand there\n---\nOne"
    assert json.loads(pseudo("json", json.dumps([text]))[1]) == [text.upper()]


def test_messages_without_words_are_counted():
    catalog = 'msgid "Go"\nmsgstr ""\n\nmsgid "???"\nmsgstr ""\n\nmsgid "***"\nmsgstr ""\n'
    lines, _, notice = pseudo("po", catalog)
    assert lines == ["Go"]
    assert notice == "messages without words left untranslated: 2"
