"""Numbers and values read as people write them."""

import math

import pytest

from nmt.plugins.report.numbers import duration, in_words, number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (3.14159, "3.142"),
        (-0.5, "-0.5"),
        (12345.6, "12,346"),
        (0.0700, "0.07"),
        (0.00049, "0.00049"),
        (3.3e18, "3.3e+18"),
        (100, "100"),
        (9999.9, "10,000"),
        (1_896_000_001, "1,896,000,001"),
        (65_123_456.0, "65,123,456"),
        (4.9e-5, "4.9e-05"),
    ],
)
def test_numbers_read_as_people_write_them(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(42, "42 s"), (720, "12 min"), (11_100, "3 h 05 min"), (187_200, "2 d 04 h")]
)
def test_durations_have_two_units_at_most(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "null"), (True, "true"), ([1, None], "[1, null]"), ("a b", "a b"), (0.1, "0.1")]
)
def test_values_read_as_one_types_them(value, text):
    assert in_words(value) == text
    assert "\n" not in in_words(["word " * 100] * 3)
