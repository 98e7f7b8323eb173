"""Language codes: which ones mean the same language, and how a user names the target of a model."""

import pytest
from babel import Locale
from babel.core import get_global

from nmt.text import is_language, language_name, match_language
from nmt.text.languages import language_table

# Codes of languages that have a two-letter code of their own, or that CLDR merges.
NOT_IN_BABEL = {"mo", "tl", "sh", "tw", "twi", "fil", "tgl", "hbs", "nob"}


def test_three_letter_codes_are_those_of_the_unicode_consortium():
    aliases = get_global("language_aliases")
    names = {name.lower() for _, name in language_table().values()}
    codes = {code for code in language_table() if code not in names and len(code) == 3}
    compared = 0
    for code in codes - NOT_IN_BABEL:
        expected = aliases.get(code, code)
        short, _ = language_table()[code]
        if len(expected) == 2:
            compared += 1
            assert short == expected, code
    assert compared > 180
    two_letters = {code for code in Locale("en").languages if len(code) == 2}
    assert two_letters <= language_table().keys()


@pytest.mark.parametrize(
    ("code", "codes", "match"),
    [
        ("de", ["de"], "de"),
        ("DE", ["de"], "de"),
        ("deu", ["de"], "de"),
        ("ger", ["de"], "de"),
        ("German", ["de"], "de"),
        ("de-DE", ["en", "de"], "de"),
        ("de_AT", ["de"], "de"),
        ("deu_Latn", ["de"], "de"),
        ("de", ["deu_Latn", "eng_Latn"], "deu_Latn"),
        ("DE", ["de", "DE"], "DE"),
        ("de-AT", ["de", "de-AT"], "de-AT"),
        ("pt", ["pt-BR"], "pt-BR"),
        ("pt", ["pt-BR", "pt-PT"], None),
        ("pt", ["pt", "pt-PT"], "pt"),
        ("PT_br", ["pt-BR", "pt-PT"], "pt-BR"),
        ("pt-PT", ["pt-BR"], None),
        ("zh", ["zh-Hans", "zh-Hant"], "zh-Hans"),
        ("zh-CN", ["zh"], "zh"),
        ("cmn", ["zh"], "zh"),
        ("zh-TW", ["zh"], None),
        ("zh_TW", ["zh-CN", "zh-Hant"], "zh-Hant"),
        ("iw", ["he"], "he"),
        ("nb", ["no"], "no"),
        ("no", ["nb", "nn"], "nb"),
        ("en", ["de"], None),
        ("eng", ["de", "fr"], None),
        ("", ["de"], None),
        ("xx", ["xx"], "xx"),
        ("XX", ["xx"], "xx"),
        ("x", ["xx"], None),
        ("-", ["de"], None),
    ],
)
def test_codes_match_if_they_name_the_same_language(code, codes, match):
    assert match_language(code, codes) == match


def test_what_a_language_code_looks_like():
    for code in ("de", "zh_CN", "eng_Latn", "kbp_Latn", "es-419", "sr-Latn-RS", "German", "en-de", "yue"):
        assert is_language(code), code
    for word in ("", "doc", "md", "po", "py", "foo", "de-", "de-foo-bar-x", "vtt", "json", "xml"):
        assert not is_language(word), word
    assert [language_name(code) for code in ("de", "pt-BR", "xx")] == ["German (de)", "Portuguese (pt-BR)", "xx"]


@pytest.mark.parametrize("target", ["de", "DE", "de-DE", "deu", "<2de>"])
def test_the_only_target_of_a_model_may_be_named(checkpoint, nmt, target):
    words = ["translate", f"run={checkpoint}", "text=ka lo", "device=cpu", "decode=greedy"]
    assert nmt(*words, f"target={target}").out == nmt(*words).out


@pytest.mark.parametrize("target", ["en", "fr", "2"])
def test_another_target_is_answered_with_the_direction(checkpoint, nmt, target):
    words = ["translate", f"run={checkpoint}", "text=ka lo", "device=cpu", f"target={target}"]
    direction = f"{checkpoint} translates from English (en) to German (de)"
    nmt(*words).refused(f"target={target}: {direction}; omit target, or name another model")
