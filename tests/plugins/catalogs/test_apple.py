"""Strings of Apple's platforms: tables of strings, and plural rules."""

import plistlib

import pytest

from nmt.config import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, pseudo, same

TABLE = r"""/* The "title" = "x"; */
"title" = "My photos"; // "a" = "b";
plain.key = 'single "quotes"';
"same as key";
"lines" = "one\ntwo \"three\"";
"%@ likes" = "%1$@ likes %2$@"  ;
word = Hello;
"""


def test_only_values_of_a_table_are_translated():
    lines, result, _ = pseudo("strings", TABLE)
    assert lines == ["My photos", 'single "quotes"', 'one two "three"', "%1$@ likes %2$@", "Hello"]
    expected = TABLE
    for value, translation in (
        ("My photos", "MY PHOTOS"),
        ("single", "SINGLE"),
        ("quotes", "QUOTES"),
        (r"one\ntwo \"three\"", r"ONE\nTWO \"THREE\""),
        ("= Hello", '= "HELLO"'),
    ):
        expected = expected.replace(value, translation)
    assert result == expected.replace("2$@", "2$@").replace("$@ likes %", "$@ LIKES %")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
def test_encodings_stay(encoding):
    content = '"a" = "Grüße";\n'.encode(encoding)
    document = read_document("strings", content)
    assert document.join(same(document.lines)) == content
    assert document.join(capitals(document.lines)).decode(encoding) == '"a" = "GRÜSSE";\n'


def test_escapes_of_characters_stay_escapes():
    _, result, _ = pseudo("strings", r'"a" = "caf\U00e9 now";')
    assert result == r'"a" = "CAF\U00c9 NOW";'


def test_a_table_may_be_a_property_list():
    text = "<plist><dict><key>a</key><string>one &amp; two</string></dict></plist>"
    lines, result, _ = pseudo("strings", text)
    assert lines == ["one & two"]
    assert plistlib.loads(result.encode()) == {"a": "ONE & TWO"}
    assert pseudo("strings", '{ a = "One"; b = "Two" }')[0] == ["One", "Two"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('"a" = "b"\n"c" = "d";', "line 1: expected an entry"),
        ('\n"a" = "b', "line 1: expected an entry|line 2: expected an entry"),
        ('"a" = ;', "line 1: expected an entry"),
        ("/* open", "line 1: expected an entry"),
        ('{ "a" = "b";', "its brace is not closed"),
        ("bplist00", "a binary property list: convert it"),
        ("<plist><array/></plist>", "not a property list with a dictionary"),
    ],
)
def test_damaged_tables_are_refused(text, problem):
    with pytest.raises(NMTError, match=problem):
        read_document("strings", text.encode())


RULES = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
\t<key>files</key>
\t<dict>
\t\t<key>NSStringLocalizedFormatKey</key>
\t\t<string>Delete %#@files@ now</string>
\t\t<key>files</key>
\t\t<dict>
\t\t\t<key>NSStringFormatSpecTypeKey</key>
\t\t\t<string>NSStringPluralRuleType</string>
\t\t\t<key>NSStringFormatValueTypeKey</key>
\t\t\t<string>ld</string>
\t\t\t<key>zero</key>
\t\t\t<string>no files</string>
\t\t\t<key>one</key>
\t\t\t<string>%ld file</string>
\t\t\t<key>other</key>
\t\t\t<string>%ld files</string>
\t\t</dict>
\t</dict>
\t<key>width</key>
\t<dict>
\t\t<key>NSStringVariableWidthRuleType</key>
\t\t<dict>
\t\t\t<key>20</key>
\t\t\t<string>Short text</string>
\t\t</dict>
\t</dict>
</dict>
</plist>
"""


@pytest.mark.parametrize(
    ("target", "forms"),
    [
        ("de", "zero one other"),
        ("pl", "zero one few many other"),
        ("ja", "zero other"),
    ],
)
def test_plural_rules_have_the_forms_of_the_target_language(target, forms):
    document = read_document("stringsdict", RULES.encode(), target)
    result = document.join(same(document.lines))
    before = plistlib.loads(RULES.encode())
    after = plistlib.loads(result)
    rule = after["files"]["files"]
    assert list(rule)[2:] == forms.split()
    for form in forms.split():
        source = before["files"]["files"]
        assert rule[form] == source.get(form, source["other"])
    after["files"]["files"] = before["files"]["files"]
    assert after == before
    again = read_document("stringsdict", result, target)
    assert again.join(same(again.lines)) == result


def test_texts_of_rules_are_translated():
    lines, _, _ = pseudo("stringsdict", RULES)
    assert lines == [
        "Delete %#@files@ now",
        "no files",
        "%ld file",
        "%ld files",
        "Short text",
    ]
    document = read_document("stringsdict", RULES.encode(), "de")
    document.join([Translated("Jetzt"), *same(document.lines[1:])])
    assert document.notice.endswith("lost their placeholders: 1")


def test_a_value_where_a_key_should_be_is_refused():
    text = "<plist><dict>\n<string>a</string><string>b</string></dict></plist>"
    with pytest.raises(NMTError, match="line 2: <string> is where a <key> should be"):
        read_document("stringsdict", text.encode())


def test_a_pair_of_escapes_is_one_character():
    lines, result, _ = pseudo("strings", r'"a" = "my house \Ud83d\Ude00";')
    assert lines == ["my house 😀"]
    assert result == r'"a" = "MY HOUSE \Ud83d\Ude00";'


def test_a_string_with_a_comment_stays_and_is_counted():
    text = "<plist><dict><key>a</key><string>go <!-- x --> home</string></dict></plist>"
    lines, result, notice = pseudo("strings", text)
    assert not lines
    assert result == text
    assert notice == "strings with comments or elements of XML left untranslated: 1"
