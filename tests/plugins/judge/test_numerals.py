"""Numbers that two languages write differently are the same, and others are not."""

import pytest
from hypothesis import given, strategies as st

from nmt.plugins.judge.numerals import IN_WORDS, is_number_lost, numeral, values


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("It costs 1,234.5 euros.", "Es kostet 1.234,5 Euro."),
        ("It costs 1,234.5 euros.", "Il coûte 1 234,5 euros."),
        ("1,234,567 people", "1\u202f234\u202f567 personnes".replace("\u202f", " ")),
        ("12,34,567 rupees", "1.234.567 Rupien"),
        ("1,250 and 3.50", "1.250 und 3,5"),
        ("on 3/14/2015", "am 14.3.2015"),
        ("on 03/14/2015", "am 14. März 2015"),
        ("2015-03-14", "14.03.2015"),
        ("the 21st of 120", "der 21. von 120"),
        ("at 3:45 p.m.", "um 15:45 Uhr"),
        ("um 15.45 Uhr", "at 3:45 pm"),
        ("two dogs and 2 cats", "2 Hunde und zwei Katzen"),
        ("12 eggs", "ein Dutzend Eier"),
        ("3:30", "halb vier"),
        ("\u0663\u0664\u0665 days", "345 Tage"),
        ("version 7.2.105", "Version 7.2.105"),
        ("IPv4 192.168.1.10", "192.168.1.10 als IPv4"),
        ("A380 and MP3", "MP3 und A380"),
        ("no number", "keine Zahl"),
    ],
)
def test_the_same_in_another_format_is_not_lost(source, translation):
    assert not is_number_lost(source, translation)
    assert not is_number_lost(translation, source)


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("in 1998", "in 1989"),
        ("in 1998", "damals"),
        ("1,234.5", "1.234,6"),
        ("1.5 litres", "15 Liter"),
        ("1,500 litres", "15.000 Liter"),
        ("3 dogs", "5 Hunde"),
        ("on 3/14/2015", "am 13.4.2015"),
        ("version 7.2.105", "Version 7.2.1.05"),
        ("100 people", "Leute"),
        ("99.9 %", "99 %"),
        ("1" * 5000, "1" * 5001),
    ],
)
def test_another_number_is_found(source, translation):
    assert is_number_lost(source, translation)


def formats(number: int, decimals: str) -> list[str]:
    """A number as English, German, French and Swiss write it."""
    whole = f"{number:,}"
    return [
        whole.replace(",", group) + (point + decimals if decimals else "")
        for group, point in ((",", "."), (".", ","), (" ", ","), ("'", "."), ("", "."), ("", ","))
    ]


@given(st.integers(0, 10**12), st.sampled_from(["", "5", "25", "05", "1234"]), st.integers(0, 5), st.integers(0, 5))
def test_a_number_is_itself_in_the_format_of_any_language(number, decimals, one, other):
    written = formats(number, decimals)
    assert not is_number_lost(f"about {written[one]} of them", f"etwa {written[other]} davon")


@given(st.integers(IN_WORDS + 1, 10**9), st.integers(IN_WORDS + 1, 10**9), st.integers(0, 5), st.integers(0, 5))
def test_a_number_is_no_other_one_in_any_format(number, wrong, one, other):
    if number != wrong and str(number) not in values(formats(wrong, "")[other]):
        assert is_number_lost(formats(number, "")[one], formats(wrong, "")[other])


@given(st.text(alphabet="0123456789.,' \u0663ab:/-", max_size=40))
def test_a_text_has_all_of_its_own_numbers(text):
    assert not is_number_lost(text, text)


def test_readings_by_hand():
    assert numeral("1.234").readings == {"1234", "1.234"}
    assert numeral("1,234.50").readings == {"1234.5"}
    assert numeral("007").readings == {"7"}
    assert (numeral("14.3.2015").readings, numeral("14.3.2015").parts) == (frozenset(), {"14", "3", "2015"})
