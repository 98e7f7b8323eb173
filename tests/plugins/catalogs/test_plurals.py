"""Which form of the source is translated for each plural category of the target language."""

import pytest

from nmt.plugins.catalogs.plurals import forms_of_target


@pytest.mark.parametrize(
    ("forms", "language", "expected"),
    [
        ("one other", "de", {"one": "one", "other": "other"}),
        ("one other", "ja", {"other": "other"}),
        ("one other", "pl", {"one": "one", "few": "other", "many": "other", "other": "other"}),
        ("one few many other", "eng_Latn", {"one": "one", "other": "other"}),
        ("other", "en", {"one": "other", "other": "other"}),
        ("zero one other", "de", {"one": "one", "other": "other"}),
        # Without a form for all other numbers, or without a language, nothing is known.
        ("one", "pl", {"one": "one"}),
        ("one other", "", {"one": "one", "other": "other"}),
    ],
)
def test_forms_of_the_target_language(forms, language, expected):
    assert forms_of_target(forms.split(), language) == expected


def test_a_form_for_zero_stays_where_it_means_the_number_zero():
    sources = forms_of_target(["zero", "one", "other"], "ja", keeps_zero=True)
    assert sources == {"zero": "zero", "other": "other"}
