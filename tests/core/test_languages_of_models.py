"""The codes of NLLB-200, M2M-100 and mBART-50: which mean the same, and how they are treated."""

import importlib
from types import SimpleNamespace

import pytest

from nmt.errors import NMTError
from nmt.evaluation import recommended_tokenizer, scripts_without_spaces
from nmt.sentences import split_sentences
from nmt.sentences.rules import rules_of
from nmt.text import (
    are_close,
    direction,
    is_language,
    language_name,
    language_of_file,
    language_tag,
    macrolanguage,
    match_language,
    native_name,
    near_languages,
    scripts_of_language,
    subtags,
    with_code,
)
from nmt.translation.language_tags import language_tag as tag_for, untagged
from tests.helpers.language_lists import (
    ALL_CODES,
    IN_M2M,
    IN_MBART,
    M2M_CODES,
    MBART_CODES,
    TAGS,
)

NLLB_CODES = list(TAGS)
USERS_CODES = """
ar arb_Arab, fa pes_Arab, no nob_Latn, nb nob_Latn, nn nno_Latn, nor nob_Latn, zh zho_Hans,
zh_TW zho_Hant, zh-HK zho_Hant, zh-Hant zho_Hant, zh-CN zho_Hans, cmn zho_Hans, zh-cmn zho_Hans,
yue yue_Hant, zh-yue yue_Hant, ms zsm_Latn, msa zsm_Latn, may zsm_Latn, sq als_Latn, sqi als_Latn,
yi ydd_Hebr, ji ydd_Hebr, mn khk_Cyrl, mon khk_Cyrl, az azj_Latn, az-Latn azj_Latn, uz uzn_Latn,
lv lvs_Latn, mg plt_Latn, sw swh_Latn, sw-KE swh_Latn, ne npi_Deva, or ory_Orya, om gaz_Latn,
ku kmr_Latn, ckb ckb_Arab, ay ayr_Latn, ps pbt_Arab, pus pbt_Arab, qu quy_Latn, gn grn_Latn,
gug grn_Latn, ff fuv_Latn, ful fuv_Latn, kr knc_Latn, din dik_Latn, ks kas_Arab, de deu_Latn,
ger deu_Latn, de_AT deu_Latn, pt-BR por_Latn, pt por_Latn, es-419 spa_Latn, en_US eng_Latn,
en_XX eng_Latn, sr srp_Cyrl, sr-Cyrl srp_Cyrl, ak aka_Latn, tw twi_Latn, twi twi_Latn, tl tgl_Latn,
fil tgl_Latn, apc apc_Arab, ajp ajp_Arab, ar-arz arz_Arab, arz arz_Arab, ar_EG arb_Arab,
prs prs_Arab, fa_AF prs_Arab, fa-IR pes_Arab, ko kor_Hang, ko_KR kor_Hang, ko-Kore kor_Hang,
ja jpn_Jpan, ns nso_Latn, st sot_Latn, sat sat_Beng, sat-Olck sat_Beng, iw heb_Hebr, in ind_Latn,
jw jav_Latn, mo ron_Latn, bh bho_Deva, ga gle_Latn, gd gla_Latn, crh crh_Latn, tzm tzm_Tfng,
taq taq_Latn, bjn bjn_Latn, ace ace_Latn, mni mni_Beng, ug uig_Arab, sd snd_Arab, pa pan_Guru,
German deu_Latn, Bengali ben_Beng, Uighur uig_Arab, Kurdish kmr_Latn, Cantonese yue_Hant,
Tamasheq taq_Latn, Kabiyè kbp_Latn, Deutsch deu_Latn, українська ukr_Cyrl, Flemish nld_Latn
"""
"""What users write, and what they mean among NLLB-200's codes."""
WRONG = """
sr-Latn sr_ME sh hbs cnr az_IR az-Cyrl uz_Cyrl uz_AF kas_Latn ks_Latn zh-min-nan wuu nan yue_Hans
mn-Mong mn_CN pa_PK pa-Arab pnb ms-Arab sd-Deva hi-Latn mni-Mtei min_Arab kk_Arab tt_Latn ja-Latn
tmh zgh ber br fy xx tyv aln zlm gom kok tlh
"""
"""Codes that NLLB-200 lacks, although it has the same or a similar language, or none."""


def pairs_of(text: str) -> list[tuple[str, str]]:
    pairs = [entry.split() for entry in text.split(",")]
    return [(written, meant) for written, meant in pairs]


@pytest.mark.parametrize(
    ("module", "codes"),
    [
        ("nllb.tokenization_nllb", NLLB_CODES),
        ("m2m_100.tokenization_m2m_100", {"m2m100": M2M_CODES}),
        ("mbart50.tokenization_mbart50", MBART_CODES),
    ],
)
def test_the_lists_are_those_of_the_models(module, codes):
    tokenization = importlib.import_module(f"transformers.models.{module}")
    listed = tokenization.FAIRSEQ_LANGUAGE_CODES
    assert listed == codes if isinstance(codes, list) else listed["m2m100"] == codes["m2m100"]


@pytest.mark.parametrize("codes", [NLLB_CODES, M2M_CODES, MBART_CODES])
def test_each_code_matches_itself_in_any_form(codes):
    for code in codes:
        forms = (code, code.lower(), code.upper(), code.replace("_", "-"))
        assert [match_language(form, codes) for form in forms] == [code] * 4


def test_codes_of_flores_select_those_of_other_models():
    assert {code: match_language(code, M2M_CODES) for code in NLLB_CODES} == IN_M2M
    assert {code: match_language(code, MBART_CODES) for code in NLLB_CODES} == IN_MBART


def test_codes_of_other_models_select_those_of_flores():
    lacking = {code for code in M2M_CODES if match_language(code, NLLB_CODES) is None}
    assert lacking == {"br", "fy"}
    for flores, expected in (*IN_M2M.items(), *IN_MBART.items()):
        # Dari is the only language without a code of its own in the other models.
        if expected and flores != "prs_Arab":
            assert match_language(expected, NLLB_CODES) == flores


@pytest.mark.parametrize(("written", "meant"), pairs_of(USERS_CODES))
def test_what_users_write_selects_what_they_mean(written, meant):
    assert match_language(written, NLLB_CODES) == meant
    # The order of a model's codes decides nothing.
    assert match_language(written, NLLB_CODES[::-1]) == meant


@pytest.mark.parametrize("code", WRONG.split())
def test_no_code_selects_another_language_or_script(code):
    assert match_language(code, NLLB_CODES) is None


def test_all_languages_have_a_tag():
    assert {code: language_tag(code) for code in NLLB_CODES} == TAGS
    for code in M2M_CODES:
        assert language_tag(code) == {"ns": "nso"}.get(code, code)
    for code in MBART_CODES:
        has_no_region = code.endswith("_XX") or code == "ar_AR"
        assert language_tag(code) == (code[:2] if has_no_region else code.replace("_", "-"))


def test_tags_leave_out_the_scripts_that_the_registry_suppresses():
    """Oracle: Suppress-Script in the registry of BCP 47."""
    from langcodes.data_dicts import DEFAULT_SCRIPTS

    for code in NLLB_CODES:
        language, _, script = language_tag(code).partition("-")
        assert DEFAULT_SCRIPTS.get(language) != script, code


def test_all_languages_have_a_name_that_selects_them():
    named = {code: language_name(code) for code in NLLB_CODES}
    assert len(set(named.values())) == len(NLLB_CODES) == 202
    for code, name in named.items():
        assert name != code
        assert match_language(name, NLLB_CODES) == code
    for code in (*M2M_CODES, *MBART_CODES):
        assert language_name(code) != code
        assert native_name(code) != code


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("nob_Latn", "Norwegian Bokmål"),
        ("twi_Latn", "Twi"),
        ("aka_Latn", "Akan"),
        ("tgl_Latn", "Tagalog"),
        ("tl_XX", "Tagalog"),
        ("fil", "Filipino"),
        ("ar_AR", "Arabic"),
        ("en_XX", "English"),
        ("ns", "Northern Sotho"),
        ("kor_Hang", "Korean"),
        ("sat_Beng", "Santali"),
        ("ajp_Arab", "South Levantine Arabic"),
        ("acm", "Mesopotamian Arabic"),
        ("taq_Latn", "Tamasheq"),
        ("taq_Tfng", "Tamasheq (Tifinagh)"),
        ("prs_Arab", "Dari"),
        ("ga", "Irish"),
        ("sw_KE", "Swahili (Kenya)"),
    ],
)
def test_names_of_languages_that_cldr_merges_or_lacks(code, name):
    assert language_name(code) == name


def test_every_code_is_one_for_every_function():
    for code in ALL_CODES:
        assert is_language(code), code
        language, script, region, _ = subtags(code)
        assert language.isalpha(), code
        assert script.istitle(), code
        assert region not in ("XX", "ZZ"), code
        assert scripts_of_language(code), code
        assert direction(code) in ("ltr", "rtl")
        assert with_code(code).endswith(f" ({code})")
        assert split_sentences("1. 2", code)
        assert macrolanguage(code)
        assert code not in near_languages(code, [other for other in NLLB_CODES if other != code])


def same_writing(code: str) -> tuple[object, ...]:
    """What depends on the language and the script of a code, but not on its name or region."""
    return (
        subtags(code)[:2],
        direction(code),
        rules_of(code),
        recommended_tokenizer(code, []),
        scripts_without_spaces(code, []),
    )


def test_codes_of_flores_are_treated_like_short_codes():
    for flores, tag in TAGS.items():
        for code in filter(None, (tag, IN_M2M[flores], IN_MBART[flores])):
            assert same_writing(flores) == same_writing(code)
            # Serbian is written in two scripts, unless the code names one.
            assert scripts_of_language(flores) <= scripts_of_language(code)


def test_codes_select_the_tokenizer_for_bleu():
    expected = dict.fromkeys(ALL_CODES, "13a")
    expected |= dict.fromkeys(("zho_Hans", "zho_Hant", "yue_Hant", "zh", "zh_CN"), "zh")
    expected |= dict.fromkeys(("jpn_Jpan", "ja", "ja_XX"), "ja-mecab")
    expected |= dict.fromkeys(("kor_Hang", "ko", "ko_KR"), "ko-mecab")
    for language in ("tha_Thai th th_TH", "lao_Laoo lo", "khm_Khmr km km_KH", "mya_Mymr my my_MM"):
        expected |= dict.fromkeys(language.split(), "flores200")
    expected |= dict.fromkeys(("bod_Tibt", "dzo_Tibt", "shn_Mymr"), "flores200")
    assert {code: recommended_tokenizer(code, []) for code in ALL_CODES} == expected


def test_codes_written_from_right_to_left():
    scripts = ("_Arab", "_Hebr")
    short = ["ar", "fa", "he", "ps", "sd", "ur", "yi", "ar_AR", "fa_IR", "he_IL", "ps_AF", "ur_PK"]
    expected = {code for code in ALL_CODES if code.endswith(scripts) or code in short}
    assert {code for code in ALL_CODES if direction(code) == "rtl"} == expected


def test_files_may_end_with_a_code_of_flores():
    for code in NLLB_CODES:
        assert language_of_file(f"test.{code}.gz") == code
    assert language_of_file("test.doc_Text") is None
    assert language_of_file("test.src") is None


@pytest.mark.parametrize(
    ("code", "near"),
    [
        ("sr-Latn", ["srp_Cyrl", "bos_Latn", "hrv_Latn"]),
        ("kas_Latn", ["kas_Arab", "kas_Deva"]),
        ("zh-min-nan", ["zho_Hans", "zho_Hant", "yue_Hant"]),
        ("ku-Arab", ["kmr_Latn", "ckb_Arab"]),
        ("pnb", ["eng_Latn", "urd_Arab"]),  # official in Pakistan
        ("tmh", ["taq_Latn", "taq_Tfng"]),
        ("crh_Cyrl", ["crh_Latn"]),
        ("cnr", ["srp_Cyrl", "bos_Latn", "hrv_Latn"]),
        ("qub", ["quy_Latn", "spa_Latn"]),
        ("br", ["fra_Latn"]),
        ("Breton", ["fra_Latn"]),
        ("fy", ["nld_Latn"]),
        ("gsw", ["deu_Latn"]),
        ("haw", ["eng_Latn"]),
        ("tyv_Cyrl", ["rus_Cyrl"]),  # official in Russia; CLDR has no families of languages
        ("cv", ["rus_Cyrl"]),
        ("xx", []),
        ("nobody speaks this", []),
        ("", []),
    ],
)
def test_near_languages(code, near):
    assert near_languages(code, NLLB_CODES)[: len(near)] == near
    assert len(near_languages(code, NLLB_CODES)) <= 5
    if not near:
        assert near_languages(code, NLLB_CODES) == []


def test_near_languages_hold_in_both_directions_only_for_varieties():
    assert near_languages("ar", ["arz", "de"]) == ["arz"]
    assert near_languages("arz", ["ary", "ar", "de"]) == ["ar", "ary"]
    # Readers of Welsh read English, but not the reverse.
    assert near_languages("cy", ["en", "de"]) == ["en"]
    assert near_languages("fr", ["br", "de"]) == []


def model_with_tags(codes: list[str], form: str) -> SimpleNamespace:
    tags = {form.format(code): number for number, code in enumerate(codes)}
    return SimpleNamespace(
        tags=tags, languages={}, leading_tag=lambda line: "", has_target_tags=False
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "tyv_Cyrl",
            "not a language of the model; the nearest is Russian (rus_Cyrl); "
            "`nmt runs RUN` lists all 202",
        ),
        (
            "sr-Latn",
            "not a language of the model; the nearest are Serbian (srp_Cyrl), Bosnian (bos_Latn), "
            "Croatian (hrv_Latn); `nmt runs RUN` lists all 202",
        ),
        ("xx", "not a language of the model; `nmt runs RUN` lists all 202"),
    ],
)
def test_messages_of_models_with_many_languages_name_the_near_ones(target, message):
    model = model_with_tags(NLLB_CODES, "<2{}>")
    with pytest.raises(NMTError) as caught:
        tag_for(target, model)
    assert str(caught.value) == f"target={target}: {message}"
    assert untagged(f"<2{target}> Hello", model).problem == f"<2{target}>: {message}"


def test_varieties_that_no_model_tells_apart():
    """The notices about the languages of a corpus are silent about them."""
    for pair in ("ltg lv", "arz ar", "acm ary", "azb az", "yue zh", "tw ak"):
        assert are_close(*pair.split()), pair
    for pair in ("en de", "br fr", "lb de", "lv lt"):
        assert not are_close(*pair.split()), pair
