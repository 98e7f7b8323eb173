"""Language codes: which mean the same language, and target languages on the command line."""

import pytest

from nmt.text import did_you_mean, is_language, language_tag, match_language, native_name, with_code


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
        ("pt", ["pt-BR", "pt-PT"], "pt-BR"),
        ("pt", ["pt", "pt-PT"], "pt"),
        ("pt", ["pt-PT", "pt-BR"], "pt-BR"),
        ("en", ["en_GB", "en_US"], "en_US"),
        ("PT_br", ["pt-BR", "pt-PT"], "pt-BR"),
        ("pt-PT", ["pt-BR"], "pt-BR"),
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
        ("en_GB", ["eng_Latn"], "eng_Latn"),
        ("es-MX", ["es-419", "es"], "es"),
        ("nob", ["nb"], "nb"),
        ("nn", ["nb"], None),
        ("zh", ["zh_TW", "zh_CN"], "zh_CN"),
        ("zh", ["zh_TW"], "zh_TW"),
        ("zh_Hans", ["zh_TW", "zh_CN"], "zh_CN"),
        ("zho_Hant", ["zh_TW", "zh_CN"], "zh_TW"),
        ("zh-HK", ["zh_CN", "zh_TW"], "zh_TW"),
        ("zt", ["zh", "zh-Hant"], "zh-Hant"),
        ("sr", ["sr-Latn"], "sr-Latn"),
        ("sr-Latn", ["sr", "sr_Latn"], "sr_Latn"),
        ("sr-Cyrl", ["sr", "sr_Latn"], "sr"),
        ("arb_Arab", ["ar"], "ar"),
        ("sr@latin", ["sr", "sr_Latn"], "sr_Latn"),
        ("sr-Latn", ["sr", "sr_RS@latin"], "sr_RS@latin"),
        ("sr", ["sr@latin", "sr"], "sr"),
        ("ca@valencia", ["ca"], "ca"),
        ("uz@cyrillic", ["uz", "uz_Cyrl"], "uz_Cyrl"),
        ("ja_JP.UTF-8", ["ja"], "ja"),
        ("日本語", ["en", "jpn"], "jpn"),
        ("العربية", ["en", "ar"], "ar"),
        ("简体中文", ["zh_TW", "zh_CN"], "zh_CN"),
        ("Traditional Chinese", ["zh_CN", "zh_TW"], "zh_TW"),
        ("français", ["en", "fr-CA"], "fr-CA"),
        ("日本語", ["en"], None),
        ("jp", ["ja"], None),
        ("e" * 40, ["en"], None),
        ("x", ["xx"], None),
        ("-", ["de"], None),
    ],
)
def test_codes_match_if_they_name_the_same_language(code, codes, match):
    assert match_language(code, codes) == match


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("de", "de"),
        ("zh_CN", "zh-CN"),
        ("zh-TW", "zh-TW"),
        ("zh_Hans", "zh-Hans"),
        ("zt", "zh-Hant"),
        ("jpn", "ja"),
        ("eng_Latn", "en"),
        ("zh_hant_TW", "zh-Hant-TW"),
        ("uz_Cyrl", "uz-Cyrl"),
        ("German", "de"),
        ("iw", "he"),
        ("nb", "nb"),
        ("no", "no"),
        ("PT_br", "pt-BR"),
        ("es-419", "es-419"),
        ("sr@latin", "sr-Latn"),
        ("sr_RS@latin", "sr-Latn-RS"),
        ("sr-Cyrl", "sr-Cyrl"),
        ("xx", ""),
        ("mine", ""),
        ("", ""),
        (None, ""),
        ("e", ""),
        ("not a code", ""),
        ('"><script>', ""),
    ],
)
def test_codes_are_written_as_browsers_expect_them(code, tag):
    assert language_tag(code) == tag


def test_languages_have_a_name_in_their_language():
    names = {
        "de": "Deutsch",
        "jpn": "日本語",
        "ar": "العربية",
        "zh_CN": "简体中文 (中国)",
        "zh-Hant": "繁體中文",
        "pt_BR": "Português (Brasil)",
        "sr@latin": "Srpski (latinica)",
        "ka": "ქართული",  # small letters: capital ones look foreign in a name
        "xx": "xx",
        "tlh": "Klingon",
    }
    assert {code: native_name(code) for code in names} == names


def test_texts_that_are_language_codes():
    for code in (
        "de",
        "zh_CN",
        "eng_Latn",
        "kbp_Latn",
        "es-419",
        "sr-Latn-RS",
        "German",
        "en-de",
        "yue",
    ):
        assert is_language(code), code
    for word in ("", "doc", "md", "po", "py", "foo", "de-", "de-foo-bar-x", "vtt", "json", "xml"):
        assert not is_language(word), word
    assert [with_code(code) for code in ("de", "pt-BR", "xx")] == [
        "German (de)",
        "Brazilian Portuguese (pt-BR)",
        "xx",
    ]


@pytest.mark.parametrize(
    ("code", "codes", "hint"),
    [
        ("jp", None, "did you mean ja (Japanese)?"),
        ("JP", ["en", "jpn"], "did you mean jpn (Japanese)?"),
        ("cn", None, "did you mean zh (Chinese)?"),
        ("cn", ["zh_CN"], "did you mean zh_CN (Simplified Chinese (China))?"),
        ("ua", ["en"], "did you mean uk (Ukrainian)?"),
        ("kr", ["ko"], "did you mean ko (Korean)?"),  # also Kanuri
        ("kr", None, ""),
        ("ca", ["en"], ""),  # Catalan, and Canada
        ("de", ["en"], ""),
        ("ja", None, ""),
        ("xx", None, ""),
        ("src", None, ""),
        ("", None, ""),
    ],
)
def test_codes_of_countries_get_a_hint(code, codes, hint):
    assert did_you_mean(code, codes) == hint


def test_the_command_line_names_the_language_of_a_country(checkpoint, nmt):
    words = ["translate", f"run={checkpoint}", "text=ka lo", "device=cpu", "decode=greedy"]
    outcome = nmt(*words, "target=at")
    assert outcome.code == 2
    assert outcome.err.startswith("nmt: target=at: ")
    assert outcome.err.endswith("; did you mean de (German)?\n")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["de", "DE", "de-DE", "deu", "<2de>"])
def test_the_only_target_of_a_model_may_be_named(checkpoint, nmt, target):
    words = ["translate", f"run={checkpoint}", "text=ka lo", "device=cpu", "decode=greedy"]
    assert nmt(*words, f"target={target}").out == nmt(*words).out


@pytest.mark.parametrize("target", ["en", "fr", "2"])
def test_another_target_is_refused_with_the_direction(checkpoint, nmt, target):
    words = ["translate", f"run={checkpoint}", "text=ka lo", "device=cpu", f"target={target}"]
    direction = f"{checkpoint} translates from English (en) to German (de)"
    nmt(*words).refused(f"target={target}: {direction}; omit target, or name another model")
