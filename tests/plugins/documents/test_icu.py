"""ICU messages: only the text in their branches is translated."""

import json

import polib
import pytest

from nmt.items import COPY, readable
from nmt.plugins.documents import plural_categories
from nmt.translation import Translated
from tests.helpers.pseudo import pseudo

MESSAGES = r"""
{count, plural, one {# old house} other {# old houses}} | {count} old house | {count} old houses
{ n,plural ,offset:1 =0{no cats}  =1 {it}other{# {color} cats} } | no cats | it | {n} {color} cats
You have {n, plural, one {a cat} other {#}} in {folder}. | You have {n} in {folder}. | a cat
{g, select, a {I {n, plural, one {one} other {# cats}}} other {You}} | I {n} | one | {n} cats | You
{n, selectordinal, one {day # a} two {day # b} other {day # d}} | day {n} a | day {n} b | day {n} d
It''s '{so}' for {n, plural, other {John''s # '#' days}} | It's {so} for {n} | John's {n} … days
{n, plural, other {<b>#</b> days<br>left}} at {t, time, 'o''clock {' h} | {n} days left | {n} at {t}
{n, plural, other {1}} {m, select, a {b} other {}} on {d, date, long} | {n} {m} on {d} | b
"""
"""A message and its lines."""
ROWS = [row.split(" | ") for row in MESSAGES.strip().splitlines()]
KEPT = [
    "plural",
    "select",
    "selectordinal",
    "offset:1",
    "one {",
    "other",
    "{color}",
    "{folder}",
    "date, long",
]


@pytest.mark.parametrize(("message", "expected"), [(row[0], row[1:]) for row in ROWS])
def test_the_text_of_all_branches_is_translated(message, expected):
    lines, result, notice = pseudo("json", json.dumps({"a": message}))
    assert sorted(map(readable, lines)) == sorted(expected)
    assert notice == ""
    text = json.loads(result)["a"]
    # Both sides in capitals are the same if only letters of texts changed.
    assert text.upper() == message.upper()
    for syntax in KEPT:
        assert text.count(syntax) == message.count(syntax)


@pytest.mark.parametrize("message", [row[0] for row in ROWS])
def test_catalogs_and_json_have_the_same_messages(message):
    lines, result, _ = pseudo("json", json.dumps({"a": message}))
    lines_of_catalog, catalog, _ = pseudo("po", f'msgid "{message}"\nmsgstr ""\n')
    assert lines_of_catalog == lines
    assert polib.pofile(catalog)[0].msgstr == json.loads(result)["a"]


def translated(text: str, *translations: str) -> tuple[str, str]:
    """A message with these translations of its lines, and the notice."""

    def by(lines: list[str]) -> list[Translated]:
        # The argument as the line has it, between marks.
        [argument] = {copy[0] for copy in COPY.finditer("".join(lines))}
        return [Translated(translation.replace("{n}", argument)) for translation in translations]

    _, result, notice = pseudo("json", json.dumps([text]), by)
    return json.loads(result)[0], notice


MESSAGE = "{n, plural, one {a} other {# b}} c"


def test_apostrophes_and_number_signs_of_a_translation_are_quoted():
    text, _ = translated(MESSAGE, "l'ami {n}", "x", "{n} #'")
    assert text == "l''ami {n, plural, one {x} other {# '#'''}}"


def test_a_message_that_would_lose_an_argument_stays():
    text, notice = translated(MESSAGE, "c", "{n} a", "{n} b")
    assert text == MESSAGE
    assert notice == "strings left untranslated because the translation lost their placeholders: 1"


@pytest.mark.parametrize("text", [
    "{n, plural, one {# file} other {# files}",
    "{n, plural, one {a}} } b",
    "{n, plural, some {a} other {b}}",
    "{n, plural, other {'{a}}",
    "{n, plural, one {a} one {b} other {c}}",
    "{n, select, }",
    "{n, plural, other {\0}}",
    "{n, select, a {" * 30 + "x" + "}}" * 30,
])  # fmt: skip
def test_malformed_messages_stay_and_are_reported(text):
    lines, _, notice = pseudo("json", json.dumps([text, "Hi"]))
    assert lines == ["Hi"]
    assert notice == "strings left untranslated because nmt cannot parse their ICU syntax: 1"


@pytest.mark.parametrize(("text", "target", "forms"), [
    ("{n, plural, one {a} other {b}}", "de", ""),
    ("{n, plural, one {a} other {b}}", "ru", "few, many"),
    ("{n, plural, =1 {a} other {b}}", "de", ""),
    ("{n, plural, =1 {a} other {b}}", "pl-PL", "few, many"),
    ("{n, plural, =1 {a} other {b}}", "ru", "one, few, many"),
    ("{n, plural, one {a} other {b}}", "ar", "zero, two, few, many"),
    ("{n, plural, one {a} other {b}}", "ja", ""),
    ("{n, plural, one {a} other {b}}", "tlh", ""),
    ("{n, selectordinal, other {b}}", "en_GB", "one, two, few"),
    ("{n, select, a {b} other {c}}", "ru", ""),
    ("{g, select, other {{n, plural, other {b}}}}", "cs", "one, few, many"),
])  # fmt: skip
def test_missing_plural_forms_of_the_target_language_are_reported(text, target, forms):
    _, result, notice = pseudo("json", json.dumps([text]), target=target)
    expected = f"messages without plural forms that {target} has ({forms}): 1"
    assert notice == (expected if forms else "")
    assert json.loads(result)[0].upper() == text.upper()


@pytest.mark.parametrize(
    ("language", "categories"),
    [
        ("de", ("one", "other")),
        ("deu_Latn", ("one", "other")),
        ("ru", ("one", "few", "many", "other")),
        ("ar", ("zero", "one", "two", "few", "many", "other")),
        ("zh_CN", ("other",)),
        ("unknown", ("other",)),
    ],
)
def test_plural_categories(language, categories):
    assert plural_categories(language) == categories
