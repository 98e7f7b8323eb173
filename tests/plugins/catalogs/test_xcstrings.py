"""String Catalogs of Xcode, to which a localization is added."""

import json

import pytest

from nmt.config import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, same


def styled(content: object) -> str:
    """A catalog as Xcode writes it."""
    text = json.dumps(content, indent=2, ensure_ascii=False, separators=(",", " : "))
    return text.replace("{}", "{\n\n    }")


def unit(value: str, state: str = "translated") -> dict[str, object]:
    return {"stringUnit": {"state": state, "value": value}}


def catalog(**strings: object) -> dict[str, object]:
    return {"sourceLanguage": "en", "strings": strings, "version": "1.0"}


def translated(content: object, target: str = "pl", by=same) -> tuple[str, str]:
    """The translation of a catalog, and the notice."""
    document = read_document("xcstrings", styled(content).encode(), target, "en")
    result = document.join(by(document.lines)).decode()
    again = read_document("xcstrings", result.encode(), target, "en")
    assert again.join(same(again.lines)).decode() == result
    return result, document.notice


PLURAL = {
    "one": unit("%lld file"),
    "other": unit("%lld files"),
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"pl": unit("HELLO", "needs_review")}),
        ({"de": unit("Hallo")}, {"de": unit("Hallo"), "pl": unit("HELLO", "needs_review")}),
        (
            {"en": unit("Good day"), "sv": unit("Hej")},
            {
                "en": unit("Good day"),
                "pl": unit("GOOD DAY", "needs_review"),
                "sv": unit("Hej"),
            },
        ),
        # Editors add localizations whose texts are empty.
        (
            {"pl": unit("", "new"), "sv": unit("Hej")},
            {"pl": unit("HELLO", "needs_review"), "sv": unit("Hej")},
        ),
        ({"pl": unit("", "translated")}, {"pl": unit("", "translated")}),
        ({"pl": unit("Cześć", "new")}, {"pl": unit("Cześć", "new")}),
        # What people have translated stays.
        ({"pl": unit("Cześć")}, {"pl": unit("Cześć")}),
        (
            {"en": {"variations": {"device": {"mac": unit("Click"), "other": unit("Tap")}}}},
            {
                "en": {"variations": {"device": {"mac": unit("Click"), "other": unit("Tap")}}},
                "pl": {
                    "variations": {
                        "device": {
                            "mac": unit("CLICK", "needs_review"),
                            "other": unit("TAP", "needs_review"),
                        }
                    }
                },
            },
        ),
    ],
)
def test_a_localization_is_added(before, after):
    entry = {"comment": "A greeting", "localizations": before} if before else {}
    expected = {**entry, "localizations": after}
    result, _ = translated(catalog(Hello=entry), by=capitals)
    # The file is as Xcode would write it, with all keys in its order.
    assert result == styled(catalog(Hello=expected))


@pytest.mark.parametrize(
    ("target", "forms"),
    [("de", "one other"), ("pl", "few many one other"), ("ja", "other")],
)
def test_plurals_have_the_forms_of_the_target_language(target, forms):
    substitution = {"argNum": 1, "formatSpecifier": "lld", "variations": {"plural": PLURAL}}
    source = {**unit("Delete %#@files@"), "substitutions": {"files": substitution}}
    result, _ = translated(catalog(delete={"localizations": {"en": source}}), target)
    added = json.loads(result)["strings"]["delete"]["localizations"][target]
    plural = added["substitutions"]["files"]["variations"]["plural"]
    assert list(plural) == forms.split()
    assert plural["other"] == unit("%lld files", "needs_review")
    assert added["substitutions"]["files"]["argNum"] == 1


@pytest.mark.parametrize(
    "entry",
    [
        {"shouldTranslate": False},
        {"localizations": {"en": unit("%1$lld: %2$@")}},
        {"localizations": {"en": {"stringUnit": "damaged"}}},
        {"localizations": []},
    ],
)
def test_what_stays(entry):
    content = catalog(Hello=entry)
    assert translated(content)[0] == styled(content)


def test_a_string_that_loses_a_placeholder_gets_no_localization():
    content = catalog(**{"Hello %@": {}, "Bye": {}})
    document = read_document("xcstrings", styled(content).encode(), "pl")
    result = document.join([Translated("Hej"), Translated("Pa")])
    strings = json.loads(result)["strings"]
    assert strings["Hello %@"] == {}
    assert strings["Bye"]["localizations"]["pl"]["stringUnit"]["value"] == "Pa"
    assert document.notice.endswith("lost their placeholders: 1")


def test_without_a_language_nothing_is_added():
    text = styled(catalog(Hello={}))
    document = read_document("xcstrings", text.encode())
    assert document.join(same(document.lines)).decode() == text
    assert "pass target=" in document.notice


def test_a_file_on_one_line_stays_on_one_line():
    text = '{"sourceLanguage":"en","strings":{"Hello":{}}}'
    document = read_document("xcstrings", text.encode(), "de")
    result = document.join([Translated("Hallo")]).decode()
    assert "\n" not in result
    value = json.loads(result)["strings"]["Hello"]["localizations"]["de"]["stringUnit"]["value"]
    assert value == "Hallo"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"strings": {}}', "not a String Catalog"),
        ("[1]", "not a String Catalog"),
        ('{"sourceLanguage": "fr", "strings": {}}', "its source language is fr"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_other_files_are_refused(text, problem):
    with pytest.raises(NMTError, match=problem):
        read_document("xcstrings", text.encode(), "de", "en")


def test_new_plural_forms_without_a_text_are_replaced():
    empty = {"one": unit("", "new"), "other": unit("", "new")}
    localizations = {
        "en": {"variations": {"plural": PLURAL}},
        "de": {"variations": {"plural": empty}},
    }
    result, _ = translated(catalog(files={"localizations": localizations}), "de")
    plural = json.loads(result)["strings"]["files"]["localizations"]["de"]["variations"]["plural"]
    assert plural["other"] == unit("%lld files", "needs_review")
