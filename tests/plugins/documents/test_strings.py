"""Strings of programs: how they are split into sentences, and what a translation keeps."""

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, strategies as st

from nmt.items import COPY
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import pseudo


def empty(lines: list[str]) -> list[Translated]:
    return [Translated("")] * len(lines)


def one_letter(lines: list[str]) -> list[Translated]:
    return [Translated("x", [])] * len(lines)


def without_placeholders(lines: list[str]) -> list[Translated]:
    return [Translated(line.replace("{name}", "").upper()) for line in lines]


def lines_of(text: str) -> list[str]:
    """The lines of a string of JSON.

    A message of a catalog must have the same lines and, if it has no comma, so must a subtitle.
    """
    lines, _, _ = pseudo("json", json.dumps([text], ensure_ascii=False))
    escaped = text
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\t", "\\t"), ("\n", "\\n")):
        escaped = escaped.replace(character, escape)
    catalog = f'msgid "{escaped}"\nmsgstr ""\n'
    lines_of_catalog, _, _ = pseudo("po", catalog, by=empty)
    assert lines_of_catalog == lines
    if "," not in text:
        times = "00:00:01,000 --> 00:00:02,000"
        assert pseudo("srt", f"1\n{times}\n{text}\n")[0] == lines
    return lines


SEPARATE_WORDS = [
    "<br>",
    "<br/>",
    "<br />",
    "<BR>",
    "<br clear=all>",
    "<br class='a>b'>",
    "</br>",
    "<img src=x>",
    "\\n",
    "\\N",
    "\\r\\n",
    "<br>\n",
    "\n",
    "<input disabled>",
    "&lt;br /&gt;",
    "&lt;/p&gt;",
    "[br]",
]


@pytest.mark.parametrize("markup", SEPARATE_WORDS)
def test_markup_that_separates_words(markup):
    assert lines_of(f"First line{markup}Second") == ["First line Second"]


SEPARATE_SENTENCES = [
    "</p><p>",
    "<p>",
    "</P>\n<P class=x>",
    "<hr>",
    "<hr noshade/>",
    "</li><li>",
    "</td><td>",
    "</tr><tr>",
    "</div>",
    "<h2>",
    "</option><option value=1>",
    "</section>\n\n<section>",
    "\t",
    "\\t",
    "\n\n",
    "\n- ",
    "<dd>",
    "<ul><li>",
]


@pytest.mark.parametrize("markup", SEPARATE_SENTENCES)
def test_markup_that_separates_sentences(markup):
    assert lines_of(f"Open{markup}Close") == ["Open", "Close"]


@pytest.mark.parametrize(("text", "lines"), [
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
])  # fmt: skip
def test_sentences_of_a_string(text, lines):
    assert lines_of(text) == lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("&Open\tCtrl+O", ["Open"]),
        ("_Save all\tCtrl+Shift+S", ["Save all"]),
        ("Help\tF1", ["Help"]),
        ("&Delete\tDel", ["Delete"]),
        ("Go &home\tHome", ["Go home"]),
        ("Start\tEnd", ["Start", "End"]),
        ("Quit\t⌘Q", ["Quit"]),
        ("&Zoom\\tCtrl++", ["Zoom"]),
        ("\tName:\tSize", ["Name:", "Size"]),
    ],
)
def test_keyboard_shortcuts_are_not_translated(text, lines):
    assert lines_of(text) == lines


WITH_BREAKS = [
    "One two\nthree four\nfive",
    "\tOne\ttwo\t\tthree\t",
    r"One two\nthree\\n four\N five",
    "One<br>\n<br>two",
    "<p>One</p>\n <p>two</p>\n",
    "One\r\n\r\ntwo\r\nthree",
    "&One\tCtrl+O",
]


@pytest.mark.parametrize("text", WITH_BREAKS)
def test_breaks_and_tags_keep_their_places(text):
    _, result, _ = pseudo("json", json.dumps({"a": text}))
    expected = text.upper()
    for markup in ("<p>", "</p>", "<br>", "Ctrl+O"):
        expected = expected.replace(markup.upper(), markup)
    assert json.loads(result)["a"].replace("\\n", "\\N") == expected


@pytest.mark.parametrize("text", WITH_BREAKS)
def test_a_short_translation_keeps_all_breaks_and_tags(text):
    _, result, _ = pseudo("json", json.dumps([text]), by=one_letter)
    for piece in ("\n", "\t", "\r", "<br>", "\\n", "\\N"):
        assert json.loads(result)[0].count(piece) == text.count(piece)


PIECES = [
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
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.data())
def test_no_translation_damages_a_file(text, data):
    """The translations have any alignment."""

    def in_reverse_order(lines: list[str]) -> list[Translated]:
        index = st.integers(0, 9)
        alignments = st.none() | st.lists(st.tuples(index, index), max_size=6)
        translations = []
        for line in lines:
            words = line.upper().split()
            translations.append(Translated(" ".join(reversed(words)), data.draw(alignments)))
        return translations

    _, result, _ = pseudo("json", json.dumps([text, text]), by=in_reverse_order)
    assert len(json.loads(result)) == 2
    if "\0" not in text:
        for format, header in (("srt", "1\n"), ("vtt", "WEBVTT\n\n")):
            source = f"{header}00:01.000 --> 00:02.000\n{text}\n"
            _, result, _ = pseudo(format, source, by=in_reverse_order)
            assert result.startswith(source[: source.index(">") + 12])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("&Save all now", "&Alles sichern jetzt"),
        ("Save &all now", "&Alles sichern jetzt"),
        ("Save all _now", "Alles sichern _jetzt"),
    ],
)
def test_a_mnemonic_stays_with_its_word(text, expected):
    def in_german(lines: list[str]) -> list[Translated]:
        return [Translated("Alles sichern jetzt", [(0, 1), (1, 0), (2, 2)]) for _ in lines]

    _, result, _ = pseudo("json", json.dumps([text]), by=in_german)
    assert json.loads(result) == [expected]


def test_plural_messages_need_plural_forms():
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    plural = 'msgid "a file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    _, result, notice = pseudo("po", header + plural)
    assert result == header + plural
    assert notice == (
        "plural messages left untranslated because the header has no valid Plural-Forms: 1"
    )
    _, _, notice = pseudo("po", header + plural, target="ja")
    assert notice.endswith(r'add this line to the header: "Plural-Forms: nplurals=1; plural=0;\n"')


def test_a_string_stays_if_it_would_lose_a_placeholder():
    _, result, notice = pseudo("json", '["Hi {name}", "Hi"]', by=one_letter)
    assert result == '["Hi {name}", "x"]'
    assert notice.endswith("placeholders: 1")


@pytest.mark.parametrize(
    ("string", "code"),
    [
        ("Press <kbd>Enter</kbd> to open it.", "<kbd>Enter</kbd>"),
        ("Set <code class='x'>the mode</code> first.", "<code class='x'>the mode</code>"),
        ("There are 10<sup>6</sup> cells.", "10<sup>6</sup>"),
        ("The CO<sub>2</sub> sensor is old.", "CO<sub>2</sub>"),
    ],
)
def test_code_and_powers_are_single_items(string, code):
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
def test_elements_without_text_stay(row):
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
def test_an_element_not_to_be_translated_is_a_single_item(string, name):
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
    translated_lines, result, notice = pseudo("json", json.dumps([text]))
    assert sorted(translated_lines) == sorted(lines.split(","))
    assert notice == ""
    expected = []
    for value in words_of(text):
        is_translated = value in lines.replace(",", " ")
        expected.append(value.upper() if is_translated else value)
    assert words_of(json.loads(result)[0]) == expected


def words_of(page: str) -> list[str]:
    """The values of attributes and the words of text in a page, by another parser."""
    words = list[str]()

    class Values(HTMLParser):
        def handle_starttag(self, tag, attributes):
            words.extend(value for _, value in attributes if value)

        def handle_data(self, data):
            words.extend(data.split())

    parser = Values()
    parser.feed(page)
    parser.close()
    return words


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


@pytest.mark.parametrize("digits", ["7", "005", "5" * 5000], ids=len)
def test_text_that_resembles_the_mark_of_an_attribute_stays(digits):
    text = f'a \0{digits} <img alt="a cat"> b'
    _, result, _ = pseudo("json", json.dumps([text]))
    assert json.loads(result) == [f'A \0{digits} <img alt="A CAT"> B']


def test_a_string_stays_if_an_attribute_would_lose_a_placeholder():
    text = '<img alt="Photo of {name}"> Hello'
    _, result, notice = pseudo("json", json.dumps([text]), by=without_placeholders)
    assert json.loads(result) == [text]
    assert notice.endswith("placeholders: 1")


@pytest.mark.parametrize(
    "choice",
    [
        "{n, choice, 0#no files|1#one file}",
        "In {0,choice,0#none|1<many {0}} files",
    ],
)
def test_choices_of_java_stay_and_are_reported(choice):
    lines, result, notice = pseudo("json", json.dumps([choice]))
    assert (lines, json.loads(result)) == ([], [choice])
    assert notice == "strings left untranslated because nmt cannot parse their ICU syntax: 1"
    _, _, notice = pseudo("po", f'msgid "{choice}"\nmsgstr ""\n')
    assert notice == "messages left untranslated because nmt cannot parse their ICU syntax: 1"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_front_matter_in_a_string_stays_and_is_reported(end):
    front = "---\ntitle: My page\ntags:\n  - red\n- blue\n\n# why\n---\n".replace("\n", end)
    lines, result, notice = pseudo("json", json.dumps([f"{front}{end}One page"]))
    assert (lines, json.loads(result)) == (["One page"], [f"{front}{end}ONE PAGE"])
    assert notice == "strings whose front matter is left untranslated: 1"


def test_text_between_dashes_is_not_front_matter():
    text = "---\nOnly text: here\nand there\n---\nOne"
    _, result, _ = pseudo("json", json.dumps([text]))
    assert json.loads(result) == [text.upper()]


def test_messages_without_words_are_reported():
    catalog = 'msgid "Go"\nmsgstr ""\n\nmsgid "???"\nmsgstr ""\n\nmsgid "***"\nmsgstr ""\n'
    lines, _, notice = pseudo("po", catalog)
    assert lines == ["Go"]
    assert notice == "messages without words left untranslated: 2"


@pytest.mark.parametrize("line_end", ["\\n", "\\r\\n"])
def test_a_line_break_after_a_sentence_keeps_its_place(line_end):
    text = f'{{"a": "The file is gone.{line_end}Save it again"}}'
    document = read_document("json", text.encode())
    assert document.lines == ["The file is gone.", "Save it again"]
    translations = [Translated("Weg."), Translated("Neu speichern")]
    assert document.join(translations).decode() == f'{{"a": "Weg.{line_end}Neu speichern"}}'
