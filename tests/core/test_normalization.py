"""Normalization, compared with Unicode's data and other implementations."""

import random
import unicodedata

import pytest
from hypothesis import given, settings, strategies as st

from nmt.text import FOLDINGS, NORMALIZATIONS, canonical, folded, origins

CHARACTERS = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
some = settings(max_examples=300, deadline=None, derandomize=True, database=None)
# Letters, marks, joiners, presentation forms, half-width and full-width forms, emoji, white space.
RANGES = [
    (0x20, 0x24F),
    (0x300, 0x36F),
    (0x5D0, 0x6FF),
    (0x900, 0x97F),
    (0xE00, 0xE7F),
    (0x1100, 0x11FF),
]
RANGES += [
    (0x2000, 0x2200),
    (0x3000, 0x30FF),
    (0xAC00, 0xAC20),
    (0xFB00, 0xFDFF),
    (0xFE00, 0xFFEE),
    (0x1F300, 0x1F6FF),
]
texts = st.lists(
    st.one_of(st.characters(min_codepoint=a, max_codepoint=b) for a, b in RANGES), max_size=12
).map("".join)


@pytest.mark.slow
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_normalization_is_idempotent_on_every_character(name):
    way = NORMALIZATIONS[name]
    for normalize in (way.source, way.target):
        assert [c for c in CHARACTERS if normalize(normalize(c)) != normalize(c)] == []


@some
@given(text=texts)
def test_normalization_is_idempotent_and_folds_to_the_same_compatibility_form(text):
    assert folded(folded(text)) == folded(text)
    assert canonical(canonical(text)) == canonical(text)
    # Folding changes no meaning that NFKC would keep.
    visible = unicodedata.normalize("NFKC", folded(text))
    assert folded(visible) == folded(unicodedata.normalize("NFKC", text))


@pytest.mark.parametrize(
    "text",
    [
        "2\u00bd hours",
        "25\u00b2 and 10\u2076",
        "\u2116 5",
        "\u2122 \u2139 \u24c2",
        "m\u00b2, CO\u2082",
        "\u2026",
        "\u2460",
        "\uff0c\uff1f\uff08\uff09\uff01\uff05",
        "\u3010\u4f60\u597d\u3011\u300c\u300d",
        "\u0e19\u0e49\u0e33 \u0e33",
        "\u0587",
        "\u3131\u314b\u314b",
        "\u2033 \u2032",
        "\u33a1",
        "\u2163",
        "\U0001d465",
        "\ufdfa",
        "\u00aa \u00ba",
    ],
)
def test_visible_characters_are_not_changed(text):
    assert folded(text) == canonical(text) == text


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("\ufb01le o\ufb03ce", "file office"),
        ("\uff36\uff11\uff12", "V12"),
        ("\uff76\uff9e\uff77\uff9f", "\u30ac\u30ad\u309a"),
        ("\ufedf\ufe8e", "\u0644\u0627"),
        ("so\u00adft \u200ehyphen\ufeff", "soft hyphen"),
        ("e\u0301 \u212b \u2126", "\u00e9 \u00c5 \u03a9"),
        ("  a\t b\u3000\u3000c\xa0 ", "a b c"),
        ("\u2028a\x85\x0bb\x0c", "a b"),
    ],
)
def test_sources_are_folded_and_targets_only_composed(typed, read):
    assert folded(typed) == read
    assert canonical(typed) == " ".join(unicodedata.normalize("NFC", typed).split())


def test_only_compatibility_forms_are_folded():
    for code, read in FOLDINGS.items():
        assert unicodedata.normalize("NFKC", chr(code)) == read
        assert unicodedata.normalize("NFC", chr(code)) != read or unicodedata.decomposition(
            chr(code)
        )


@some
@given(text=texts)
def test_every_character_of_a_normalized_line_has_an_origin(text):
    """Cut at a blank, both pieces of the line normalize to pieces of the normalized line."""
    places = origins(text, folded)
    read = folded(text)
    if (
        places is None
    ):  # cut inside of a cluster, such as a mark that belongs to the white space before it
        return
    assert len(places) == len(read) + 1
    assert places == sorted(places)
    for at, blank in enumerate(read):
        if blank == " ":
            assert folded(text[: places[at]]) == read[:at]
            assert folded(text[places[at] :]) == read[at + 1 :]


@pytest.mark.slow
def test_nearly_every_line_has_origins():
    draw = random.Random(1)
    pool = list[str]()
    for first, last in RANGES:
        pool += map(chr, range(first, last))
    lines = ["".join(draw.choices(pool, k=10)) for _ in range(2000)]
    assert sum(origins(line, folded) is None for line in lines) < 20
    assert all(origins(f"a{c}b", folded) for c in CHARACTERS if not c.isspace())
