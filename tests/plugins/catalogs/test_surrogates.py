"""Escapes that are half of a character beyond U+FFFF."""

import json

import pytest

from nmt.translation import read_document
from tests.helpers.pseudo import capitals, pseudo

HALF = "strings with half of a surrogate pair left untranslated: 1"


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("android", r'<resources><string name="a">go \ud83d</string></resources>'),
        ("strings", r'"a" = "go \Ud83d";'),
        ("properties", r"a=go \ude00"),
        ("json", r'{"a": "go \ud83d"}'),
        ("arb", r'{"a": "go \ud83d"}'),
        ("chrome", r'{"a": {"message": "go \ud83d"}}'),
        ("i18next", r'{"a": "go \ud83d"}'),
    ],
)
def test_half_of_a_pair_stays_and_is_counted(format, text):
    assert pseudo(format, text) == ([], text, HALF)


def test_a_string_catalog_keeps_half_of_a_pair():
    values = '["\\ud83d", "go home"]'
    text = '{"sourceLanguage": "en", "strings": {"go \\ud83d": {}, "set": {"localizations": {'
    text += f'"en": {{"stringSet": {{"values": {values}}}}}}}}}}}}}'
    document = read_document("xcstrings", text.encode(), "de", "en")
    result = json.loads(document.join(capitals(document.lines)))
    expected = json.loads(values.replace("go home", "GO HOME"))
    assert result["strings"]["go \ud83d"] == {}
    assert result["strings"]["set"]["localizations"]["de"]["stringSet"]["values"] == expected
    assert document.notice == HALF


def test_yaml_has_one_escape_for_a_character():
    lines, result, _ = pseudo("yaml", 'a: "go \\U0001F600"\n')
    assert lines == ["go 😀"]
    assert result == 'a: "GO \\U0001f600"\n'
