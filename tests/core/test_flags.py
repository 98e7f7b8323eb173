"""Flags: rare on human translations, nearly certain on injected failures."""

import math
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from nmt.files import ModelDescription
from nmt.flags.finding import FLAGS, flags
from nmt.flags.numbers import is_number_lost, missing_numerals, numeral
from nmt.flags.placeholders import PLACEHOLDER
from nmt.flags.wording import is_repetitive
from nmt.text import scripts_of_language
from nmt.translation.flagging import target_scripts

LATIN = frozenset(["LATIN"])
FIXTURE = Path(__file__).parents[1] / "fixtures/references/en-de.tsv"
PAIRS = [tuple(line.split("\t")) for line in FIXTURE.read_text().splitlines()]


def other_numbers(source: str, translation: str, draw: random.Random) -> str | None:
    """Add a digit to each number, or to none if no number is on both sides."""
    both = set(re.findall(r"\d+", source)) & set(re.findall(r"\d+", translation))
    if not both or PLACEHOLDER.search(source):
        return None
    return re.sub(r"\d+", r"\g<0>7", translation)


def repeated(source: str, translation: str, draw: random.Random) -> str | None:
    """Repeat a phrase of two to four words."""
    words = translation.split()
    length = draw.randint(2, 4)
    if len(words) < length:
        return None
    begin = draw.randint(0, len(words) - length)
    end = begin + length
    times = draw.choice([2, 3, 8])
    return " ".join([*words[:begin], *(words[begin:end] * times), *words[end:]])


def without_placeholder(source: str, translation: str, draw: random.Random) -> str | None:
    """Drop some placeholders."""
    count = len(PLACEHOLDER.findall(translation))
    if not count:
        return None
    return PLACEHOLDER.sub("", translation, count=draw.randint(1, count))


def copied(source: str, translation: str, draw: random.Random) -> str | None:
    """The source, unless it may be a name."""
    words = re.findall(r"[^\W\d_]+", source)
    return source if len(words) > 3 else None


def read_as_latin_1(source: str, translation: str, draw: random.Random) -> str | None:
    """A text with umlauts in the wrong encoding."""
    if not re.search("[\u00e4\u00f6\u00fc\u00df]", translation):
        return None
    return translation.encode().decode("latin-1")


def truncated(source: str, translation: str, draw: random.Random) -> str | None:
    """The beginning of the translation of a long source."""
    return translation[: len(translation) // 5] if len(source) > 60 else None


INJECTED: dict[str, list[Callable[[str, str, random.Random], str | None]]] = {
    "empty": [lambda s, t, draw: draw.choice(["", "  ", ".", "..."])],
    "repetition": [
        repeated,
        lambda s, t, draw: t + " " + draw.choice(["ha", "x", "no "]) * 20,
    ],
    "copied_source": [copied],
    "number": [other_numbers],
    "url": [lambda s, t, draw: t],
    "placeholder": [
        without_placeholder,
        lambda s, t, draw: draw.choice(["<b>{}", "{}</i>", "{} %s"]).replace("{}", t),
    ],
    "broken_text": [
        lambda s, t, draw: t[:-1] + "\ufffd",
        lambda s, t, draw: t + " <0xE9>",
        read_as_latin_1,
        lambda s, t, draw: t + " \u00e2\u20ac\u2122",
    ],
    "wrong_script": [lambda s, t, draw: t + " это по-русски"],
    "length_ratio": [
        truncated,
        lambda s, t, draw: f"{t} {s} " * 3,
    ],
}
"""Flag -> functions of a source, its translation and a random generator that return a translation
with this failure, or None if it would not be one."""
LEAST_RECALL = {
    "repetition": 0.97,
    "copied_source": 0.95,
    "number": 0.95,
    "length_ratio": 0.9,
}
"""The smallest share of failures to detect; 1 for all other flags."""
ADDRESSES = [
    "https://example.com/a?b=1&c=2",
    "www.example.org",
    "me.you@mail.example.com",
    "http://10.0.0.1:8123/x",
]


@pytest.mark.parametrize("flag", INJECTED)
def test_injected_failures_are_detected_without_false_alarms(flag):
    draw = random.Random(flag)
    detected: list[bool] = []  # for each injected failure
    false_alarms = 0
    for source, translation in PAIRS:
        right = translation
        address = draw.choice(ADDRESSES)
        if flag == "url":
            source = f"{source} ({address})."
            right = f"{right} ({address})."
        false_alarms += flag in flags(source, right, LATIN)
        for inject in INJECTED[flag]:
            wrong = inject(source, translation, draw)
            if wrong is not None:
                detected.append(flag in flags(source, wrong, LATIN))
    assert len(detected) >= 90
    hits = sum(detected)
    recall = hits / len(detected)
    precision = hits / (hits + false_alarms)
    assert recall >= LEAST_RECALL.get(flag, 1.0), (recall, len(detected))
    assert precision >= 0.99, (precision, false_alarms)


def test_human_translations_are_rarely_flagged():
    flagged = sum(bool(flags(*pair, LATIN)) for pair in PAIRS)
    assert flagged <= 0.01 * len(PAIRS)


@pytest.mark.parametrize(
    ("source", "translation", "raised"),
    [
        ("...", "...", []),
        ("Hello.", "", ["empty"]),
        ("It is that that I want.", "Das, das will ich.", []),
        ("He goes.", "Er geht geht geht.", ["repetition"]),
        ("Ha, ha, ha.", "hahahahahahahahaha", ["repetition"]),
        ("I do not know.", "我不知道我不知道我不知道。", ["repetition", "wrong_script"]),
        ("I do not know it.", "I do not know it.", ["copied_source"]),
        ("The list of all new users is empty.", "The list of all new users ist leer.", []),
        (
            "The list of all new users is empty.",
            "The list of all new users is leer.",
            ["copied_source"],
        ),
        ("See https://a.org/x.", "Siehe https://a.org/y.", ["url"]),
        ("Mail me@a.org, please.", "Bitte mailen.", ["url"]),
        (
            '<a title="Yes" href="x">Go</a> to {name}',
            '<a title="Ja" href="x">Los</a> zu {name}',
            [],
        ),
        ("<b>Bold</b> and {name}", "<b>Fett und {Name}", ["placeholder"]),
        ("%d of %s, 100% sure", "%s von %d, zu 100% sicher", []),
        ("%1$s is 5 < 6 and b > a", "%2$s ist 5 < 6 und b > a", ["placeholder"]),
        ("The Δt of Москва in μm", "Das Δt von Москва in μm", []),
        ("The Moscow river", "Der Москва-Fluss", ["wrong_script"]),
        ("Open the menu.", "\u00d6ffnen Sie das \u201eMEN\u00dc\u201c \u2013 \u00c4\u2026", []),
        ("The \u00c3\u00a9 stays.", "Das \u00c3\u00a9 bleibt.", []),
        ("The cafe.", "Das Caf\u00c3\u00a9.", ["broken_text"]),
        ("Emoji.", "Emoji \u00f0\u0178\u02dc\u20ac.", ["broken_text"]),
        ("A byte <0xE9>.", "Ein Byte <0xE9>.", []),
        ("Yes.", "Ja, das ist etwas, das ich auch gerne hätte.", ["length_ratio"]),
    ],
)
def test_flags_by_hand(source, translation, raised):
    assert flags(source, translation, LATIN) == raised


@pytest.mark.parametrize(
    ("code", "source", "translation"),
    [
        ("ja", "The password is optional.", "パスワードは任意です。"),
        ("he", "The IP address of the camera", "כתובת ה-IP של המצלמה"),
        ("ko", "Value must be higher than {min}.", "값은 {min}보다 커야 합니다."),
        (
            "ru",
            "Follow the instructions in the documentation",
            "Следуйте инструкциям в документации",
        ),
    ],
)
def test_right_translations_into_other_scripts_are_not_flagged(code, source, translation):
    assert flags(source, translation, scripts_of_language(code)) == []
    assert flags(translation, source, LATIN) == []


@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.floats(-20, 0), max_size=5))
def test_flags_of_any_text_are_in_the_order_of_flags(source, translation, log_probabilities):
    assert set(flags(source, source, LATIN)) <= {"copied_source"}
    raised = flags(source, translation, LATIN, log_probabilities)
    assert raised == [flag for flag in FLAGS if flag in raised]
    if raised != ["empty"] and log_probabilities:
        mean = sum(log_probabilities) / len(log_probabilities)
        is_low = mean < math.log(0.45)
        assert ("low_confidence" in raised) == is_low


@pytest.mark.slow
@pytest.mark.parametrize("part", ["abc", "{", "a!", "a@", "1.", "<a "])
def test_time_is_proportional_to_length(part):
    begin = time.process_time()
    flags(part * 20_000, part * 20_000 + "x")
    assert time.process_time() - begin < 6


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_repetitions_are_those_that_a_pattern_finds(words):
    text = "".join(f"{word} " for word in words)
    assert is_repetitive("", text) == bool(re.search(r"((\w )+)\1\1|((\w ){2,})\3", text))


def test_target_scripts_come_from_training_or_language():
    def of(target: str, characters: str | None) -> frozenset[str] | None:
        training = {}
        if characters is not None:
            training["characters"] = {"source": "abc", "target": characters}
        return target_scripts([ModelDescription({}, 9, "en", target, "", training)], target)

    russian = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
    assert of("xx", russian + "abc") == {"CYRILLIC"}
    assert of("ru", russian + "abcdefghijklmnopqrstuvwxyz") == {"CYRILLIC", "LATIN"}
    assert of("pt_BR", "abc") == of("de", None) == LATIN
    assert of("xx", None) is None


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ("1.234", {"1234", "1.234"}),
        ("1,234.50", {"1234.5"}),
        ("14.3.2015", set()),
    ],
)
def test_numeral_has_all_values_that_its_marks_allow(written, values):
    assert numeral(written).values == values


def test_numeral_has_the_values_of_its_parts():
    assert numeral("14.3.2015").parts == {"14", "3", "2015"}


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("12,34,567 rupees", "1.234.567 Rupien"),
        ("on 3/14/2015", "am 14.3.2015"),
        ("12 eggs", "ein Dutzend Eier"),
        ("on 03/14/2015", "am 14. März 2015"),
        ("the 21st of 120", "der 21. von 120"),
        ("at 3:45 p.m.", "um 15:45 Uhr"),
        ("\u0663\u0664\u0665 days", "345 Tage"),
    ],
)
def test_number_in_another_format_is_not_lost(source, translation):
    assert not is_number_lost(source, translation)
    assert not is_number_lost(translation, source)


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("in 1998", "in 1989"),
        ("in 1998", "damals"),
        ("1.5 litres", "15 Liter"),
        ("1,500 litres", "15.000 Liter"),
        ("3 dogs", "5 Hunde"),
        ("on 3/14/2015", "am 13.4.2015"),
        ("version 7.2.105", "Version 7.2.1.05"),
        ("99.9 %", "99 %"),
        pytest.param("1" * 5000, "1" * 5001, id="thousands of digits"),
    ],
)
def test_wrong_number_is_lost(source, translation):
    assert is_number_lost(source, translation)


def formats(number: int, decimals: str) -> list[str]:
    """A number as in English, German, French and Swiss German, and without groups of digits."""
    results = []
    for group, point in ((",", "."), (".", ","), (" ", ","), ("'", "."), ("", "."), ("", ",")):
        whole = f"{number:,}".replace(",", group)
        results.append(f"{whole}{point}{decimals}" if decimals else whole)
    return results


@given(
    st.integers(0, 10**12),
    st.sampled_from(["", "5", "25", "05", "1234"]),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_number_is_not_lost_in_any_format(number, decimals, one, other):
    written = formats(number, decimals)
    assert not is_number_lost(f"about {written[one]} of them", f"etwa {written[other]} davon")


@given(st.integers(32, 10**9), st.integers(32, 10**9), st.integers(0, 5), st.integers(0, 5))
def test_other_number_is_lost_in_any_format(number, wrong, one, other):
    if missing_numerals(str(number), formats(wrong, "")[other]):
        assert is_number_lost(formats(number, "")[one], formats(wrong, "")[other])
