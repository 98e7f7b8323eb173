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
from nmt.translation.flags import target_scripts

LATIN = frozenset(["LATIN"])
FIXTURE = Path(__file__).parents[2] / "fixtures/references/en-de.tsv"
PAIRS = [tuple(line.split("\t")) for line in FIXTURE.read_text().splitlines()]


def other_numbers(source: str, translation: str, draw: random.Random) -> str | None:
    """Add a digit to each number, or to none if no number is on both sides."""
    both = {*re.findall(r"\d+", source)} & {*re.findall(r"\d+", translation)}
    return (
        re.sub(r"\d+", r"\g<0>7", translation) if both and not PLACEHOLDER.search(source) else None
    )


def repeated(source: str, translation: str, draw: random.Random) -> str | None:
    words, length = translation.split(), draw.randint(2, 4)
    if len(words) < length:
        return None
    at, times = draw.randint(0, len(words) - length), draw.choice([2, 3, 8])
    return " ".join([*words[:at], *(words[at : at + length] * times), *words[at + length :]])


def without_placeholder(source: str, translation: str, draw: random.Random) -> str | None:
    count = len(PLACEHOLDER.findall(translation))
    return PLACEHOLDER.sub("", translation, count=draw.randint(1, count)) if count else None


INJECTED: dict[str, list[Callable[[str, str, random.Random], str | None]]] = {
    "empty": [lambda s, t, draw: draw.choice(["", "  ", ".", "..."])],
    "repetition": [repeated, lambda s, t, draw: t + " " + draw.choice(["ha", "x", "no "]) * 20],
    "copied_source": [lambda s, t, draw: s if len(re.findall(r"[^\W\d_]+", s)) > 3 else None],
    "number": [other_numbers],
    "url": [lambda s, t, draw: t],
    "placeholder": [
        without_placeholder,
        lambda s, t, draw: draw.choice(["<b>{}", "{}</i>", "{} %s"]).replace("{}", t),
    ],
    "broken_text": [
        lambda s, t, draw: t[:-1] + "\ufffd",
        lambda s, t, draw: t + " <0xE9>",
        lambda s, t, draw: (
            t.encode().decode("latin-1") if re.search("[\u00e4\u00f6\u00fc\u00df]", t) else None
        ),
        lambda s, t, draw: t + " \u00e2\u20ac\u2122",
    ],
    "wrong_script": [lambda s, t, draw: t + " это по-русски"],
    "length_ratio": [
        lambda s, t, draw: t[: len(t) // 5] if len(s) > 60 else None,
        lambda s, t, draw: f"{t} {s} " * 3,
    ],
}
LEAST_RECALL = {
    "repetition": 0.97,
    "copied_source": 0.95,
    "number": 0.95,
    "length_ratio": 0.9,
}  # else 1
ADDRESSES = [
    "https://example.com/a?b=1&c=2",
    "www.example.org",
    "me.you@mail.example.com",
    "http://10.0.0.1:8123/x",
]


@pytest.mark.parametrize("flag", INJECTED)
def test_injected_failures_are_found_and_right_translations_are_not_flagged(flag):
    assert sum(bool(flags(*pair, LATIN)) for pair in PAIRS) <= 0.01 * len(PAIRS)
    draw, hits, alarms = random.Random(flag), list[bool](), 0
    for source, translation in PAIRS:
        right, address = translation, draw.choice(ADDRESSES)
        if flag == "url":
            source, right = f"{source} ({address}).", f"{right} ({address})."
        alarms += flag in flags(source, right, LATIN)
        injected = (inject(source, translation, draw) for inject in INJECTED[flag])
        hits += [flag in flags(source, bad, LATIN) for bad in injected if bad is not None]
    assert len(hits) >= 90
    recall, precision = sum(hits) / len(hits), sum(hits) / (sum(hits) + alarms)
    assert recall >= LEAST_RECALL.get(flag, 1.0), (recall, len(hits))
    assert precision >= 0.99, (precision, alarms)


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


def test_right_translations_into_other_scripts_are_not_flagged():
    for source, translation, code in (
        ("The password is optional.", "パスワードは任意です。", "ja"),
        ("The IP address of the camera", "כתובת ה-IP של המצלמה", "he"),
        ("Value must be higher than {min}.", "값은 {min}보다 커야 합니다.", "ko"),
        (
            "Follow the instructions in the documentation",
            "Следуйте инструкциям в документации",
            "ru",
        ),
    ):
        assert flags(source, translation, scripts_of_language(code)) == []
        assert flags(translation, source, LATIN) == []


@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.floats(-20, 0), max_size=5))
def test_any_text_has_flags_in_their_order(source, translation, log_probabilities):
    assert set(flags(source, source, LATIN)) <= {"copied_source"}
    raised = flags(source, translation, LATIN, log_probabilities)
    assert raised == [flag for flag in FLAGS if flag in raised]
    if raised != ["empty"] and log_probabilities:
        assert ("low_confidence" in raised) == (
            sum(log_probabilities) / len(log_probabilities) < math.log(0.45)
        )


@pytest.mark.parametrize("part", ["abc", "{", "a!", "a@", "1.", "<a "])
def test_the_time_is_proportional_to_the_length(part):
    begin = time.process_time()
    flags(part * 20_000, part * 20_000 + "x")
    assert time.process_time() - begin < 6


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_words_in_a_row_are_what_a_search_for_them_finds(words):
    text = "".join(f"{word} " for word in words)
    assert is_repetitive("", text) == bool(re.search(r"((\w )+)\1\1|((\w ){2,})\3", text))


def test_scripts_are_those_of_the_training_targets_or_of_the_language():
    def of(target: str, characters: str | None) -> frozenset[str] | None:
        training = (
            {} if characters is None else {"characters": {"source": "abc", "target": characters}}
        )
        return target_scripts([ModelDescription({}, 9, "en", target, "", training)])

    russian = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
    assert of("xx", russian + "abc") == {"CYRILLIC"}
    assert of("ru", russian + "abcdefghijklmnopqrstuvwxyz") == {"CYRILLIC", "LATIN"}
    assert of("pt_BR", "abc") == of("de", None) == LATIN
    assert of("xx", None) is None


def test_numbers_by_hand():
    assert numeral("1.234").values == {"1234", "1.234"}
    assert numeral("1,234.50").values == {"1234.5"}
    assert numeral("14.3.2015").values == set()
    assert numeral("14.3.2015").parts == {"14", "3", "2015"}
    for source, translation in (
        *(
            ("12,34,567 rupees", "1.234.567 Rupien"),
            ("on 3/14/2015", "am 14.3.2015"),
            ("12 eggs", "ein Dutzend Eier"),
        ),
        *(("on 03/14/2015", "am 14. März 2015"), ("the 21st of 120", "der 21. von 120")),
        *(("at 3:45 p.m.", "um 15:45 Uhr"), ("\u0663\u0664\u0665 days", "345 Tage")),
    ):
        assert not is_number_lost(source, translation)
        assert not is_number_lost(translation, source)
    for source, translation in (
        *(
            ("in 1998", "in 1989"),
            ("in 1998", "damals"),
            ("1.5 litres", "15 Liter"),
            ("1,500 litres", "15.000 Liter"),
        ),
        *(
            ("3 dogs", "5 Hunde"),
            ("on 3/14/2015", "am 13.4.2015"),
            ("version 7.2.105", "Version 7.2.1.05"),
        ),
        *(("99.9 %", "99 %"), ("1" * 5000, "1" * 5001)),
    ):
        assert is_number_lost(source, translation)


def formats(number: int, decimals: str) -> list[str]:
    """A number in the formats of English, German, French and Swiss."""
    whole = f"{number:,}"
    marks = ((",", "."), (".", ","), (" ", ","), ("'", "."), ("", "."), ("", ","))
    return [
        whole.replace(",", group) + (point + decimals) * bool(decimals) for group, point in marks
    ]


@given(
    st.integers(0, 10**12),
    st.sampled_from(["", "5", "25", "05", "1234"]),
    st.integers(0, 5),
    st.integers(0, 5),
)
def test_a_number_is_itself_in_the_format_of_any_language(number, decimals, one, other):
    written = formats(number, decimals)
    assert not is_number_lost(f"about {written[one]} of them", f"etwa {written[other]} davon")


@given(st.integers(32, 10**9), st.integers(32, 10**9), st.integers(0, 5), st.integers(0, 5))
def test_a_number_is_no_other_one_in_any_format(number, wrong, one, other):
    if missing_numerals(str(number), formats(wrong, "")[other]):
        assert is_number_lost(formats(number, "")[one], formats(wrong, "")[other])
