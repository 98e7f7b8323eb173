"""Corpora that are wrong as a whole: each kind of damage gets one notice, good corpora none."""

import html
import random
from collections.abc import Callable
from itertools import chain

import pytest

from nmt.config import DataConfig
from nmt.preparation.reading import blocks
from nmt.preparation.suspicions import Suspicions
from nmt.text import Pair

SUBJECTS = {
    "The old man": "Der alte Mann",
    "My sister": "Meine Schwester",
    "A dog": "Ein Hund",
    "We": "Wir",
}
VERBS = {"saw": "sah gestern", "has found": "fand schließlich", "was looking for": "suchte überall"}
OBJECTS = {
    "the house": "das Haus",
    "a very old book": "ein sehr altes Buch",
    "it": "es",
    "me": "mich",
}
PLACES = {
    "in the city": "in der Stadt",
    "on the other side of the river": "auf der anderen Seite des Flusses",
    "": "",
}
RUSSIAN = {"The old man": "Старик", "My sister": "Моя сестра", "A dog": "Собака", "We": "Мы"}


def sentences(count: int, russian: bool = False) -> list[Pair]:
    """Sentences whose lengths vary, of English words and their translations."""
    chance = random.Random(1)
    pairs = list[Pair]()
    for _ in range(count):
        parts = [chance.choice(list(table.items())) for table in (SUBJECTS, VERBS, OBJECTS, PLACES)]
        source = " ".join(english for english, _ in parts)
        target = " ".join(german for _, german in parts)
        if russian:
            target = f"{RUSSIAN[parts[0][0]]} видел когда-то{' давно' * (len(source) // 6)}"
        pairs.append((f"{source}.", f"{target}."))
    return pairs


PAIRS = sentences(600)


def notices(pairs: list[Pair], source: str = "en", target: str = "de") -> list[str]:
    data = DataConfig(name="toy", kind="files", source=source, target=target)
    suspicions = Suspicions(data)
    read = 0
    for block in blocks(pairs):
        part = Suspicions(data)  # of a worker process
        part.inspect(block, suspicions.next_sample())
        suspicions.merge(part, shift=read)
        read += len(block)
    # Without a comparison of meanings, as if the encoder were not installed.
    swapped = suspicions.notice_of_swapped_part(None, is_filtered=True)
    return [*suspicions.notices(), *([swapped] if swapped else [])]


def shifted(begin: int, lines: int) -> list[Pair]:
    targets = [target for _, target in PAIRS]
    targets[begin:begin] = ["Eine Zeile zu viel."] * lines
    return list(zip([source for source, _ in PAIRS], targets, strict=False))


def shuffled() -> list[Pair]:
    sources = [source for source, _ in PAIRS]
    targets = [target for _, target in PAIRS]
    return list(zip(sources, random.Random(2).sample(targets, len(targets)), strict=True))


def swapped(pairs: list[Pair]) -> list[Pair]:
    return [(target, source) for source, target in pairs]


def without_targets(count: int) -> list[Pair]:
    targets = [target for _, target in PAIRS[count:]]
    return list(zip([source for source, _ in PAIRS], targets, strict=False))


def replaced(change: Callable[[str], str], side: int, step: int = 1) -> list[Pair]:
    pairs = list[Pair]()
    for number, pair in enumerate(PAIRS):
        changed = list(pair)
        if number % step == step - 1:
            changed[side] = change(pair[side])
        pairs.append((changed[0], changed[1]))
    return pairs


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        pytest.param(
            swapped(PAIRS),
            ("German sources",),
            id="swapped",
        ),
        pytest.param(
            PAIRS[:400] + swapped(PAIRS[400:]),
            ("10 of 30 samples", "German sources", "first: pair 401", "filters.languages=true"),
            id="part swapped",
        ),
        pytest.param(
            PAIRS[:200] + swapped(PAIRS[200:]),
            ("German sources", "swap the files", "33.3% of the samples"),
            id="mostly swapped",
        ),
        pytest.param(
            shifted(0, 1), ("from about pair 1 to pair 600,", "1 line down"), id="shifted"
        ),
        pytest.param(
            without_targets(2), ("from about pair 1 to pair 598,", "2 lines up"), id="shifted up"
        ),
        pytest.param(
            shifted(300, 1),
            ("from about pair 301 to pair 600,", "1 line down"),
            id="shifted from the middle",
        ),
        pytest.param(
            [*shifted(0, 1)[:200], *PAIRS[200:400], *shifted(0, 1)[400:]],
            ("first from about pair 1 to pair 200,", "1 line down"),
            id="shifted twice",
        ),
        pytest.param(
            shuffled(),
            ("nothing in common",),
            id="shuffled",
        ),
        pytest.param(
            [(source, source) for source, _ in PAIRS],
            ("600 of", "same text"),
            id="copied",
        ),
        pytest.param(
            [(source, f"{source} Again.") for source, _ in PAIRS],
            ("targets that look like English",),
            id="English",
        ),
        pytest.param(
            replaced(lambda line: html.escape(f'"{line}"'), 1, 10),
            ("60 of 600 targets contain HTML entities", "first: pair 10,"),
            id="entities",
        ),
        pytest.param(
            replaced(lambda line: "{\\an8}" + line, 0),
            ("600 of 600 sources", "subtitle"),
            id="codes",
        ),
        pytest.param(
            replaced(lambda line: f"One\\N{line}", 0, 20), ("30 of 600 sources",), id="breaks"
        ),
        pytest.param(
            replaced(lambda line: f"<i>{line}</i>", 1, 5),
            ("120 of 600 targets", "'<i>'"),
            id="tags",
        ),
        pytest.param(
            replaced(lambda line: line.encode().decode("cp1252", "replace"), 1),
            ("wrong encoding",),
            id="mojibake",
        ),
        pytest.param(
            replaced(lambda line: line.encode().decode("latin-1"), 1),
            ("wrong encoding",),
            id="Latin mojibake",
        ),
    ],
)
def test_a_corpus_that_is_wrong_gets_one_notice(pairs: list[Pair], words: tuple[str, ...]) -> None:
    texts = notices(pairs)
    if "same text" not in words:
        texts = [text for text in texts if "same text" not in text]
    assert len(texts) == 1
    for word in words:
        assert word in texts[0]


FIRST_NAMES = ["Anna", "Kim", "Bob", "Maria", "Peter", "Lena", "Tom", "Ivo", "Nora", "Hugo"]
LAST_NAMES = ["Miller", "Nguyen", "Kaiser", "Rossi", "Novak", "Baker", "Lopez", "Weber"]
NAMES = [
    (f"{first} {last}{row}", f"{first} {last}{row}.")
    for row in range(8)
    for first in FIRST_NAMES
    for last in LAST_NAMES
]
PRICES = [(f"{row * 37:,}.00 USD", f"{row * 37}.00 USD") for row in range(600)]
CAPITALS = [(source.upper(), target.upper()) for source, target in PAIRS]


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        (swapped(CAPITALS), "German sources"),
        ([(source, f"{source} AGAIN.") for source, _ in PAIRS], "targets that look like English"),
        ([(source.title(), target.title()) for source, target in swapped(PAIRS)], "German sources"),
    ],
)
def test_capitals_do_not_hide_a_wrong_language(pairs: list[Pair], words: str) -> None:
    assert any(words in text for text in notices(pairs))


def test_a_held_out_set_is_not_filtered() -> None:
    suspicions = Suspicions(DataConfig(name="toy", kind="files"))
    suspicions.inspect(PAIRS[:400] + swapped(PAIRS[400:]), suspicions.next_sample())
    text = suspicions.notice_of_swapped_part(None, is_filtered=False)
    assert text.endswith("swap the sides of these pairs")


def numbered(count: int) -> list[Pair]:
    return [(f"Room {n} is free.", f"Raum {n} ist frei.") for n in range(100, 100 + count)]


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        PAIRS[:5],
        numbered(600),
        NAMES,
        [(source.upper(), target.upper()) for source, target in NAMES],
        PRICES,
        CAPITALS,
        [*chain.from_iterable(zip(PAIRS, NAMES, strict=False))],
        sorted(PAIRS),
        sorted(PAIRS, key=lambda pair: len(pair[0])),
        [*PAIRS, ("AT&T; R&D", "AT&T; R&D"), ("1 < 2 > 0", "1 < 2 > 0"), ("C:\\New", "C:\\Neu")],
        [*PAIRS, *[("Berlin", "Berlin")] * 200],
        [pair for pair in PAIRS for _ in (1, 2)],
        replaced(lambda line: f"«{line}» NÃO Â — “Ñ”", 0),
    ],
)
def test_a_good_corpus_gets_no_notice(pairs: list[Pair]) -> None:
    assert notices(pairs) == []


def test_scripts_show_swapped_sides_without_py3langid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.preparation.side_languages.language_identifier", lambda: None)
    pairs = sentences(300, russian=True)
    assert notices(pairs, "en", "ru") == []
    assert "Russian sources" in notices(swapped(pairs), "en", "ru")[0]


def test_shifted_numbers_are_noticed_although_all_lines_have_the_same_length() -> None:
    pairs = numbered(600)
    sources = [source for source, _ in pairs]
    targets = [target for _, target in pairs]
    assert "1 line up" in notices(list(zip(sources, targets[1:], strict=False)))[0]


@pytest.mark.parametrize(
    ("source", "target"), [("en", "en-GB"), ("zh-Hans", "zh-Hant"), ("da", "nb"), ("sr", "hr")]
)
def test_languages_that_cannot_be_told_apart_are_not_judged(source: str, target: str) -> None:
    pairs = [(one, f"{one} Yes.") for one, _ in PAIRS]
    assert not [text for text in notices(pairs, source, target) if "look like" in text]


KYRGYZ = "жана менен үчүн болгон кыргыз республикасынын өкмөтү билим берүү бала мектеп суу тоо күн"


@pytest.mark.parametrize(("target", "is_noticed"), [("kk", True), ("ky", False), ("tyv", False)])
def test_a_language_that_the_model_does_not_know_is_not_judged(
    target: str, is_noticed: bool
) -> None:
    """The model knows no Tuvan, and would take it for a related language."""
    rng = random.Random(3)
    sources = [russian for _, russian in sentences(300, russian=True)]
    pairs = [(source, " ".join(rng.choices(KYRGYZ.split(), k=9))) for source in sources]
    assert any("look like Kyrgyz" in text for text in notices(pairs, "ru", target)) == is_noticed


def test_a_large_corpus_is_inspected_only_in_part() -> None:
    suspicions = Suspicions(DataConfig(name="toy", kind="files"))
    samples = [suspicions.next_sample() for _ in range(300)]
    assert 20_000 <= sum(sample.pairs for sample in samples) <= 60_000
    assert sum(sample.groups for sample in samples) <= 700
