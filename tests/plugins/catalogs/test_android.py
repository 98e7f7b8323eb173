"""String resources of Android: what is translated, and how it is written back."""

import xml.etree.ElementTree as ET

import pytest

from nmt.config import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import pseudo, same

HEAD = '<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">'


def resources(*elements: str) -> str:
    return f"<?xml version='1.0' encoding='utf-8'?>\n{HEAD}\n{''.join(elements)}\n</resources>\n"


def by(text: str):
    """A translator that gives each line this text, aligned word for word."""

    def translate(lines: list[str]) -> list[Translated]:
        return [Translated(text, [(n, n) for n in range(len(text.split()))]) for _ in lines]

    return translate


def content(raw: str, translation: str | None = None) -> tuple[list[str], str]:
    """The lines of a string, and its content in the translation."""
    text = resources(f'<string name="a">{raw}</string>')
    translate = same if translation is None else by(translation)
    lines, result, _ = pseudo("android", text, translate)
    return lines, result.split('name="a">', 1)[1].rsplit("</string>", 1)[0]


@pytest.mark.parametrize(
    ("raw", "line", "translation", "expected"),
    [
        # aapt2 refuses an apostrophe without a backslash, and removes a quotation mark.
        ("It is open", "It is open", "L'ami", r"L\'ami"),
        (r"Don\'t say \"yes\"", 'Don\'t say "yes"', 'a "b"', r"a \"b\""),
        ("one &amp; two", "one & two", "a & b", "a &amp; b"),
        ("a &#169; sign", "a © sign", "© b c", "© b c"),
        (r"the \u00e9tude", "the étude", "étude", "étude"),
        (r"to C:\\temp", r"to C:\temp", r"von C:\temp", r"von C:\\temp"),
        # At the beginning, these signs would refer to another resource.
        ("Is it new", "Is it new", "?neu", r"\?neu"),
        (r"\@name for you", "@name for you", "für @name", "für @name"),
        ('"  two  spaces  "', "two spaces", "zwei's", r'"  zwei\'s  "'),
        ("two\n    lines", "two lines", "zwei Zeilen", "zwei Zeilen"),
        (r"one\ntwo", "one two", "eins zwei", r"eins\nzwei"),
        (r"- one", "one", "eins", r"- eins"),
        (r"one\n- 2", "one", "eins", r"eins\n- 2"),
        (r"-5 degrees", "-5 degrees", "-5 Grad", "-5 Grad"),
        ("go <b>home</b>", "go home", "geh heim", "geh <b>heim</b>"),
        ("&lt;b>home&lt;/b> now", "home now", "heim jetzt", "&lt;b>heim&lt;/b> jetzt"),
        ("<![CDATA[<b>home</b> now]]>", "home now", "h'm j", r"<![CDATA[<b>h\'m</b> j]]>"),
        ("%1$s likes %2$d", "%1$s likes %2$d", "%1$s mag %2$d", "%1$s mag %2$d"),
    ],
)
def test_notation(raw, line, translation, expected):
    assert content(raw, translation) == ([line], expected)


@pytest.mark.parametrize("raw", ["@string/other", "?attr/title", "@android:string/ok", "", "100"])
def test_references_stay(raw):
    assert content(raw) == ([], raw)


def test_a_protected_element_keeps_its_content():
    raw = 'Hello <xliff:g id="name" example="Bob">%1$s</xliff:g>, <b>you</b>'
    text = resources(f'<string name="a">{raw}</string>')
    document = read_document("android", text.encode())
    words = document.lines[0].upper().split()
    turned = Translated(" ".join(words[::-1]), [(n, 2 - n) for n in range(3)])
    result = document.join([turned]).decode()
    assert '<b>YOU</b> <xliff:g id="name" example="Bob">%1$s</xliff:g>, HELLO' in result


def test_other_resources_stay():
    elements = (
        '<string name="a" translatable="false">Stay here</string>',
        '<color name="b">#fff</color>',
        '<style name="c"><item name="d">Stay here</item></style>',
        "<!-- Stay here -->",
        '<array name="e"><item>Stay here</item></array>',
        '<item type="dimen" name="f">Stay</item>',
    )
    text = resources(*elements)
    lines, result, notice = pseudo("android", text)
    assert (lines, result) == ([], text)
    assert "items of <array> left untranslated" in notice


def test_arrays_and_items_are_translated():
    elements = (
        '<string-array name="a"><item>Monday</item><item>@string/b</item></string-array>',
        '<item type="string" name="c">Tuesday</item>',
    )
    assert pseudo("android", resources(*elements))[0] == ["Monday", "Tuesday"]


PLURALS = resources(
    '<plurals name="a">\n  <!-- n -->\n  <item quantity="one">%d file</item>\n'
    '  <item quantity="other">%d <b>files</b></item>\n</plurals>'
)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("de", {"one": "%d file", "other": "%d files"}),
        (
            "pl",
            {"one": "%d file", "few": "%d files", "many": "%d files", "other": "%d files"},
        ),
        ("ja", {"other": "%d files"}),
    ],
)
def test_plurals_have_the_forms_of_the_target_language(target, expected):
    document = read_document("android", PLURALS.encode(), target)
    result = document.join(same(document.lines))
    items = ET.fromstring(result).iter("item")
    forms = {item.get("quantity"): "".join(item.itertext()) for item in items}
    assert forms == expected
    # The forms are those of the language now.
    again = read_document("android", result, target)
    assert again.join(same(again.lines)) == result


def test_a_form_without_its_number_is_not_used_for_other_numbers():
    text = resources(
        '<plurals name="a"><item quantity="one">One file</item>'
        '<item quantity="other">%d files</item></plurals>'
    )
    for target, expected in (("de", "One file"), ("ru", "%d files")):
        document = read_document("android", text.encode(), target)
        result = document.join(same(document.lines))
        forms = {item.get("quantity"): item.text for item in ET.fromstring(result).iter("item")}
        assert forms["one"] == expected


def test_strings_that_lose_a_placeholder_or_its_order_are_counted():
    text = resources('<string name="a">Hello %1$s</string><string name="b">%s has %d</string>')
    document = read_document("android", text.encode())
    result = document.join([Translated("Hallo"), Translated("%d bei %s")])
    assert result.decode() == text
    assert document.notice.endswith("lost their placeholders: 2")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<html><p>Hello</p></html>", "its root is <html>"),
        ("<resources><string>", "line 1: not well-formed XML"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><resources/>', "declares the entity"),
    ],
)
def test_other_files_are_refused(text, problem):
    with pytest.raises(NMTError, match=problem):
        read_document("android", text.encode())


@pytest.mark.parametrize(
    ("raw", "line", "translation", "text"),
    [
        ("<![CDATA[Open it]]> and <![CDATA[go]]>", "Open it and go", "a & b <c", "a & b <c"),
        ("Salt &amp; <![CDATA[a & b]]>", "Salt & a & b", "a ]]> b", "a ]]> b"),
        ("<![CDATA[<b>go</b>]]> <![CDATA[home]]>", "go home", "geh heim", "<b>geh</b> heim"),
        ('"<![CDATA[go  to]]> it"', "go to it", "geh & dort", '"geh & dort"'),
        ("<!-- <![CDATA[ -->go <![CDATA[to]]>", "go to", "a & b", "a & b"),
        ("<![CDATA[go to]]>", "go to", "a ]]> & b", "a ]]> & b"),
    ],
)
def test_sections_of_cdata_are_read_as_one_text(raw, line, translation, text):
    lines, result = content(raw, translation)
    assert lines == [line]
    element = ET.fromstring(f"<string>{result}</string>")
    assert "".join(element.itertext()) == text


def test_a_pair_of_escapes_is_one_character():
    assert content(r"house \ud83d\ude00 x", "a 😀 b") == (["house 😀 x"], "a 😀 b")


@pytest.mark.parametrize("mark", ["- ", "* ", "•", r"\u2022 ", "&#8226; ", "\u2013 "])
@pytest.mark.parametrize("quote", ["", '"'])
def test_marks_of_lists_stay_at_the_beginning_of_their_lines(mark, quote):
    raw = rf"{quote}First line.\n{mark}One thing\n\n{mark}Another{quote}"
    text = resources(f'<string name="a">{raw}</string>')
    lines, result, _ = pseudo("android", text)
    assert lines == ["First line.", "One thing", "Another"]
    assert rf"{quote}FIRST LINE.\n{mark}ONE THING\n\n{mark}ANOTHER{quote}" in result
