"""The codes of NLLB-200, M2M-100 and mBART-50 in the declarations of documents."""

import pytest

from nmt.plugins.documents.headers import gettext_code
from nmt.plugins.documents.languages import language_of
from tests.helpers.language_lists import ALL_CODES, IN_M2M


def test_documents_can_declare_every_language():
    for code in ALL_CODES:
        language = language_of(code)
        assert language is not None, code
        assert language.region, code
        assert gettext_code(code)


def test_codes_of_flores_declare_the_same_as_short_codes():
    # nob_Latn names Bokmål and prs_Arab Dari, as neither no nor fa does.
    for flores in IN_M2M.keys() - {"nob_Latn", "prs_Arab"}:
        short = IN_M2M[flores]
        if short:
            assert language_of(flores) == language_of(short)
            assert gettext_code(flores) == gettext_code(short)


@pytest.mark.parametrize(
    ("code", "tag", "catalog"),
    [
        ("nob_Latn", "nb-NO", "nb"),
        ("prs_Arab", "fa-AF", "fa_AF"),
        ("zho_Hant", "zh-TW", "zh_TW"),
        ("kor_Hang", "ko-KR", "ko"),
        ("twi_Latn", "tw-GH", "tw"),
        ("tgl_Latn", "tl-PH", "tl"),
        ("en_XX", "en-US", "en"),
        ("kas_Deva", "ks-Deva-IN", "ks@devanagari"),
    ],
)
def test_declarations_of_languages(code, tag, catalog):
    language = language_of(code)
    assert language is not None
    assert language.tag == tag
    assert gettext_code(code) == catalog
