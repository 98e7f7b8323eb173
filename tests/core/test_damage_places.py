"""Damaged pairs: what the check sets aside, how it reads lines, and where it says that pairs are."""

import re
from pathlib import Path

import pytest

from nmt.config import DataConfig
from nmt.preparation import preprocess
from nmt.preparation.damage import damage_notice
from nmt.preparation.fits import as_compared
from nmt.preparation.kinds import UNTRANSLATED, WRONG_LANGUAGE, Kind
from nmt.preparation.line_languages import LineLanguages
from nmt.preparation.places import Origin, Places
from nmt.preparation.suspicions import Suspicions
from nmt.text import Pair
from tests.core.test_damage import PAIRS, inspected, unrelated
from tests.core.test_preprocess import configuration, write


def suspicions_of(pairs: list[Pair]) -> Suspicions:
    suspicions = Suspicions(DataConfig(name="x", kind="files", source="en", target="de"))
    suspicions.inspect(pairs, suspicions.next_sample())
    suspicions.meanings.merge(inspected(pairs))
    return suspicions


@pytest.mark.slow
def test_other_damage_is_reported_beside_a_shift() -> None:
    """From pair 301, targets are shifted; every tenth of the first pairs is unrelated."""
    pairs = [*PAIRS, *PAIRS[::-1], *PAIRS[::2], *PAIRS[1::2]]
    pairs = [*pairs, *pairs[60:160]]
    targets = [target for _, target in pairs]
    moved = targets[:300] + targets[301:]
    shifted = list(zip([source for source, _ in pairs], moved, strict=False))
    only_shifted = suspicions_of(shifted)
    assert any("shifted 1 line" in text for text in only_shifted.notices())
    assert only_shifted.damage_notice(None) is None
    rows = range(5, 150, 10)
    damaged = list(shifted)
    for row in rows:
        damaged[row] = (shifted[row][0], shifted[row + 43][1])
    both = suspicions_of(damaged)
    assert any("shifted 1 line" in text for text in both.notices())
    notice = both.damage_notice(len(pairs))
    assert notice
    assert "of the other pairs" in notice.text
    assert "unrelated (first: pair 6)" in notice.text
    assert {pair.number for pair in notice.worst} <= {row + 1 for row in rows}


@pytest.mark.slow
def test_text_in_capitals_is_compared_as_sentences() -> None:
    good = [(source.upper(), target.upper()) for source, target in PAIRS]
    assert damage_notice(inspected(good), len(good), known=set()) is None
    bad = [(source.upper(), target.upper()) for source, target in unrelated()]
    notice = damage_notice(inspected(bad), None, known=set())
    assert notice
    # Every fifth pair, as in the corpus.
    assert "20.0% unrelated" in notice.text
    assert all(pair.number % 5 == 3 for pair in notice.worst)


@pytest.mark.parametrize(
    ("text", "compared"),
    [
        ("TRY PUSHING THE OTHER BUTTON.", "Try pushing the other button."),
        ("GNU R", "GNU R"),
        ("Call GNU R from GNU R", "Call GNU R from GNU R"),
        ("打开打印机的设置", "打开打印机的设置"),
        ("123 456 789 000", "123 456 789 000"),
    ],
)
def test_as_compared(text: str, compared: str) -> None:
    assert as_compared(text) == compared


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        # Names and terms that both sides have are in no language.
        ("* Noto Sans Khmer UI Condensed Light", "– Noto Sans Khmer UI Condensed Light ;", None),
        ("Boost.Iostreams Library", "bibliothèque Boost.Iostreams", None),
        ("Mastodon plugin for bitlbee IRC", "greffon Mastodon pour bitlbee IRC", None),
        ("- grub-rescue-floppy.img: image.", "– grub-rescue-floppy.img : image.", None),
        ("My sister repairs the old car.", "Our house had a green door.", WRONG_LANGUAGE),
        ("My sister repairs the old car.", "Meine Schwester fährt Auto.", WRONG_LANGUAGE),
        ("My sister repairs the old car.", "My sister repairs the old car.", UNTRANSLATED),
    ],
)
def test_languages_are_judged_without_common_names(
    source: str, target: str, kind: Kind | None
) -> None:
    languages = LineLanguages("en", "fr").inspect((source, target))
    assert languages
    assert languages.kind is kind


def test_a_place_is_a_line_of_a_file() -> None:
    places = Places()
    places.add(Origin("a/one.en", 1), 1)
    assert places(7) == "pair 7"
    # Three malformed lines of the second file were skipped.
    places.add(Origin("a/two.en", 1), 101, [2, 3, 12])
    assert places(101) == "line 1 of two.en"
    assert places(102) == "line 4 of two.en"
    assert places(109) == "line 11 of two.en"
    assert places(110) == "line 13 of two.en"
    places.add(Origin("b/one.en", 1), 201)
    assert places(7) == "line 7 of a/one.en"
    assert places.remark(3) == ""
    places.add(Origin("t.tsv", None), 301)
    # The next block of the same table.
    places.add(Origin(None, None), 5301)
    assert places(5305) == "pair 5,005 of t.tsv"
    assert places.remark(3) == "; pairs are counted without header and skipped rows"


@pytest.mark.slow
def test_notices_name_the_lines_of_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "one", PAIRS[:60])
    write(tmp_path / "two", unrelated())
    for language in ("en", "de"):
        path = tmp_path / f"two.{language}"
        path.write_bytes(b"\xff\n" + path.read_bytes())
    files = [str(tmp_path / name) for name in ("one", "two")]
    options = {"train": files, "errors": "skip", "valid_size": 5, "test_size": 5}
    preprocess(configuration(tmp_path, deduplicate=False, **options), lambda _: None)
    records = [record for record in caplog.records if "seem to be damaged" in record.message]
    assert records, caplog.messages
    assert re.search(r"first: line \d+ of two\.en", records[0].message)
    lines = (tmp_path / "two.en").read_bytes().splitlines()
    for pair in records[0].worst_pairs:
        number = int(pair.place.split()[1])
        assert lines[number - 1].decode() == pair.pair[0]


def test_blocks_that_continue_a_file_take_no_memory() -> None:
    places = Places()
    for first in range(1, 5001, 1000):
        places.add(Origin("a.en", first), first)
    # The second file has two malformed lines, 3 and 4.
    places.add(Origin("b.en", 1), 5001, [3, 4])
    places.add(Origin("b.en", 1001), 5999)
    places.add(Origin("b.en", 2001), 6999)
    assert len(places.blocks) == 3
    numbers = (1, 5000, 5002, 5003, 5999, 7000)
    lines = (
        "1 of a.en",
        "5,000 of a.en",
        "2 of b.en",
        "5 of b.en",
        "1,001 of b.en",
        "2,002 of b.en",
    )
    expected = [f"line {line}" for line in lines]
    assert list(map(places, numbers)) == expected
