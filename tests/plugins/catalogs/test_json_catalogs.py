"""Catalogs in JSON: of Flutter, of browser extensions, and of i18next."""

import json

import pytest

from nmt.config import NMTError, TranslateConfig
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, pseudo, same

ARB = {
    "@@locale": "en",
    "@@last_modified": "Stay here",
    "title": "My photos",
    "@title": {"description": "Stay here", "placeholders": {"n": {"example": "Stay"}}},
    "files": "{n, plural, one {# file} other {# files}}",
}


@pytest.mark.parametrize(
    ("target", "locale", "files"),
    [
        ("de", "de", "{n, plural, one {# file} other {# files}}"),
        ("zh_TW", "zh_TW", "{n, plural, one {# file} other {# files}}"),
        ("", "en", "{n, plural, one {# file} other {# files}}"),
        (
            "pol_Latn",
            "pl",
            "{n, plural, one {# file} few {# files} many {# files} other {# files}}",
        ),
    ],
)
def test_messages_of_flutter(target, locale, files):
    document = read_document("arb", json.dumps(ARB).encode(), target)
    assert "Stay here" not in document.lines
    result = document.join(same(document.lines))
    assert json.loads(result) == {**ARB, "@@locale": locale, "files": files}
    again = read_document("arb", result, target)
    assert again.join(same(again.lines)) == result


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # =1 stands for `one`.
        ("{n, plural, =1 {a} other {b}}", "{n, plural, =1 {a} few {b} many {b} other {b}}"),
        ("{n, plural, other{b}}", "{n, plural, one{b} few{b} many{b} other{b}}"),
        # Copies of a plural within a plural could multiply.
        (
            "{n, plural, other {{m, plural, other {b}}}}",
            "{n, plural, other {{m, plural, one {b} few {b} many {b} other {b}}}}",
        ),
    ],
)
def test_missing_forms_of_messages_are_added(message, expected):
    document = read_document("arb", json.dumps({"a": message}).encode(), "pl")
    result = document.join(same(document.lines))
    assert json.loads(result) == {"a": expected}


def test_messages_of_an_extension():
    messages = {
        "hello": {
            "message": "Hello $USER$, you have $1",
            "description": "Stay here",
            "placeholders": {"user": {"content": "$1", "example": "Stay here"}},
        }
    }
    lines, result, _ = pseudo("chrome", json.dumps(messages, indent=2), by=capitals)
    assert lines == ["Hello $USER$, you have $1"]
    messages["hello"]["message"] = "HELLO $USER$, YOU HAVE $1"
    assert json.loads(result) == messages


I18NEXT = """{
  "deep": {
    "file_one": "{{count}} file",
    "file_other": "{{count}} files",
    "place_ordinal_one": "{{count}}st place",
    "place_ordinal_other": "{{count}}th place"
  },
  "nest_zero": "No $t(item)",
  "nest_one": "One $t(item)",
  "nest_other": "{{count}} $t(item)",
  "other": "Other",
  "list": ["<1>Save</1> it"]
}
"""


@pytest.mark.parametrize(
    ("target", "deep", "top"),
    [
        ("de", ["file_one", "file_other"], ["nest_zero", "nest_one", "nest_other"]),
        (
            "pl",
            ["file_one", "file_few", "file_many", "file_other"],
            ["nest_zero", "nest_one", "nest_few", "nest_many", "nest_other"],
        ),
        ("ja", ["file_other"], ["nest_zero", "nest_other"]),
        # In Russian, `one` is also for 21, so the form without its number is not used.
        (
            "ru",
            ["file_one", "file_few", "file_many", "file_other"],
            ["nest_zero", "nest_one", "nest_few", "nest_many", "nest_other"],
        ),
    ],
)
def test_plurals_of_i18next(target, deep, top):
    document = read_document("i18next", I18NEXT.encode(), target)
    result = document.join(same(document.lines))
    before = json.loads(I18NEXT)
    after = json.loads(result)
    assert list(after["deep"]) == [*deep, "place_ordinal_one", "place_ordinal_other"]
    assert list(after) == ["deep", *top, "other", "list"]
    for name in top:
        expected = before.get(name, before["nest_other"])
        if (target, name) == ("ru", "nest_one"):
            expected = before["nest_other"]
        assert after[name] == expected
    assert "ordinal plurals" in document.notice
    again = read_document("i18next", result, target)
    assert again.join(same(again.lines)) == result


def test_the_form_other_may_come_first_or_last():
    text = '{"a_other":"x files","a_one":"a file","a_few":"few"}'
    document = read_document("i18next", text.encode(), "ja")
    assert document.join(same(document.lines)) == b'{"a_other":"x files"}'


def test_numbered_elements_of_react_stay_around_their_words():
    document = read_document("i18next", b'{"a": "<1>Save</1> the <0>file</0>"}')
    assert document.lines == ["Save the file"]
    result = document.join([Translated("die Datei sichern", [(0, 2), (1, 0), (2, 1)])])
    assert json.loads(result) == {"a": "die <0>Datei</0> <1>sichern</1>"}


@pytest.mark.parametrize("format", ["arb", "chrome", "i18next"])
@pytest.mark.parametrize(
    ("text", "problem"),
    [("{", "not valid JSON"), ("[" * 100_000, "nested too deeply"), ("1", "JSON object")],
)
def test_damaged_files_are_refused(format, text, problem):
    with pytest.raises(NMTError, match=problem):
        read_document(format, text.encode())


def test_dialects_of_json_are_written_to_files_with_its_suffix():
    config = TranslateConfig(input="en.json", output="de.json", format="i18next")
    assert config.is_document
    with pytest.raises(NMTError, match="must have a suffix of the input's format"):
        TranslateConfig(input="en.arb", output="de.json")


@pytest.mark.parametrize(
    ("locale", "source", "problem"),
    [
        ("en_US", "en", ""),
        ("eng_Latn", "en", ""),
        ("app", "en", ""),  # no language has this code
        ("fr", "", ""),
        ("fr", "en", r"@@locale declares French \(fr\), but the model translates from"),
        ("de_AT", "en", "the language of the translation"),
    ],
)
def test_a_file_of_flutter_in_another_language_is_refused(locale, source, problem):
    content = json.dumps({"@@locale": locale, "a": "Hello"}).encode()
    if problem:
        with pytest.raises(NMTError, match=problem):
            read_document("arb", content, "de", source)
    else:
        assert read_document("arb", content, "de", source).lines == ["Hello"]


@pytest.mark.parametrize(
    ("format", "text", "problem"),
    [
        ("chrome", '{"a": "Hello"}', 'nothing in it has a "message"; pass format=json'),
        ("arb", '{"@a": {},\n"a": {"b": "Hello"}}', "line 2: not an ARB file"),
    ],
)
def test_files_with_another_structure_are_refused(format, text, problem):
    with pytest.raises(NMTError, match=problem):
        read_document(format, text.encode())
