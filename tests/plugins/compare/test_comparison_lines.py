"""What is told of a line and of its translation."""

from collections import Counter

import pytest

from nmt.plugins.compare.lines import (
    Line,
    adds_number,
    copies,
    divisions,
    loses_number,
    repeats,
    too_long,
    too_short,
    wrong_case,
)


@pytest.mark.parametrize(
    ("fault", "source", "reference", "hypothesis", "expected"),
    [
        (loses_number, "In 1999 it was 3.", "1999 war es 3.", "Damals war es 3.", True),
        (loses_number, "In 1999 it was 3.", "1999 war es 3.", "1999 war es 3", False),
        (loses_number, "It cost 1,000.50.", "Es kostete 1.000,50.", "Es kostete 1000.50.", False),
        (loses_number, "It has 2 of 2.", "Es hat 2 von 2.", "Es hat 2.", True),
        (loses_number, "It has two.", "Es hat 2.", "Es hat zwei.", False),  # the source has none
        (loses_number, None, "Es hat 2.", "Es hat zwei.", True),
        (adds_number, "It has two.", "Es hat zwei.", "Es hat 2 und 3.", True),
        (adds_number, "It has two.", "Es hat 2.", "Es hat 2.", False),
        (adds_number, "It has 2.", "Es hat zwei.", "Es hat 2.", False),
        (repeats, "a", "Ja, gut.", "Ja, ja, gut.", True),
        (repeats, "a", "Ja, ja, gut.", "Ja, ja, gut.", False),
        (repeats, "a", "Der Hund läuft.", "Der Hund der Hund läuft.", True),
        (repeats, "a", "Der Hund läuft.", "Der Hund und der Hund läuft.", False),
        (too_short, "a", "Das ist ein Haus am See.", "Das ist", True),
        (too_short, "a", "Das ist ein Haus am See.", "Das ist ein Haus am", False),
        (too_short, "a", "Ja, gut.", "Ja", False),
        (too_short, "a", "Das ist ein Haus.", "", True),
        (too_long, "a", "Das ist ein Haus.", "Das ist ein Haus am See im Wald.", True),
        (too_long, "a", "Ja.", "Ja, gut.", False),
        (wrong_case, "a", "Das Haus ist alt.", "Das haus ist alt.", True),
        (wrong_case, "a", "Das Haus, das alt ist", "Das Haus, das alt ist", False),
        (wrong_case, "a", "Das Haus ist alt.", "Das Dach ist alt.", False),
        (copies, "The house.", "Das Haus.", "The  house.", True),
        (copies, "OK", "OK", "OK", False),
        (copies, None, "OK", "OK", False),
    ],
)
def test_faults(fault, source, reference, hypothesis, expected):
    assert fault(Line(source, reference), hypothesis) == expected


def test_every_line_is_in_one_bucket_of_each_division():
    found = {division.title: division for division in divisions(Counter({"the": 100, "house": 9, "old": 10}), True)}

    def label(title: str, source: str) -> str:
        division = found[title]
        return division.labels[division.bucket(Line(source, "x"))]

    assert label("Words of the source", "a b c d e f") == "6-10"
    assert label("Numbers in the source", "Room 5") == "some"
    assert label("Numbers in the source", "Room five") == "none"
    capitals = {
        "the house": "none",
        "The house": "the first letter alone",
        "The House": "others too",
        "STOP": "nothing but capitals",
    }
    assert {text: label("Capitals in the source", text) for text in [*capitals, "12", ""]} == {
        **capitals,
        "12": "none",
        "": "none",
    }
    rarest = "Its rarest word was in training"
    assert [label(rarest, text) for text in ("The the", "The old", "The House", "the unseen", "...")] == [
        *("100 times or more", "10 to 99 times", "1 to 9 times", "never", "100 times or more")
    ]
    assert len(divisions(None, False)) == len(found) - 1
