"""Corrections that cannot be right."""

from pathlib import Path

import pytest

from nmt.plugins.learn.comparison import Compared
from nmt.plugins.learn.reading import Correction, Languages
from nmt.plugins.learn.rejection import TextRules, without_conflicts
from nmt.text import read_tokenizer

ENGLISH = "This is the door of the old house in the village."
GERMAN = "Das ist die Tür des alten Hauses in dem Dorf."
FRENCH = "C'est la porte de la vieille maison dans le village."


@pytest.fixture(scope="module")
def rules(checkpoint: str) -> TextRules:
    tokenizer = read_tokenizer(Path(checkpoint))
    return TextRules(Languages("en", "de"), tokenizer, 300, {"known test line"})


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (ENGLISH, GERMAN, ""),
        ("Home", "Start", ""),
        ("See www.nmt.example.", "Siehe www.nmt.example!", ""),
        ("Zero\u200cwidth", "Null\u00adbreite", ""),
        (ENGLISH, "", "empty"),
        (ENGLISH, "…", "empty"),
        (ENGLISH, "Das ist\x1b[2J die Tür", "control characters"),
        (ENGLISH, "Das ist \u202edie Tür", "control characters"),
        (ENGLISH, FRENCH, "wrong language: fr"),
        (ENGLISH, ENGLISH + " It is green.", "wrong language: en"),
        ("Module for Python 3", "Dieses Modul ist für Python 3 (GNOME Shell Extension)", ""),
        ("Buy.", "Kauf auf http://spam.example/x", "an address that the source lacks"),
        ("Buy.", "Kauf bei billig-kaufen.com", "an address that the source lacks"),
        ("Write to us.", "Schreib an me@spam.example", "an address that the source lacks"),
        ("Known TEST line 7!", "Bekannte Zeile", "in the general test or validation set"),
        (ENGLISH, GERMAN * 40, "too long"),
    ],
)
def test_reasons_in_the_text(rules: TextRules, source, target, reason):
    found = rules.reason(Correction(source, target, "a.tsv", "line 1"))
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


def row(source: str, target: str, time: str = "") -> Correction:
    return Correction(source, target, "a.tsv", "line 1", time)


@pytest.mark.parametrize(
    ("corrections", "usable"),
    [
        ([row("a", "x"), row("b", "y")], ["x", "y"]),
        ([row("a", "x"), row("a", "x")], ["x"]),
        ([row("a", "x"), row("a", "y"), row("b", "z")], ["z"]),
        ([row("a", "x", "2026-02"), row("a", "y", "2026-01")], ["x"]),
        ([row("a", "x", "2026-01"), row("a", "y", "2026-01")], ["y"]),
        ([row("a", "x", "2026-01"), row("a", "y")], []),
        ([row("a", "x", "1"), row("a", "y", "2"), row("a", "x", "3")], ["x"]),
    ],
)
def test_conflicts(corrections, usable):
    sifted = without_conflicts(corrections)
    assert [item.target for item in sifted.usable] == usable
    assert len(sifted.usable) + len(sifted.rejected) == len(corrections)


@pytest.mark.parametrize(
    ("source", "target", "facts", "reason"),
    [
        ("one", "eins", {}, ""),
        ("one", "one", {}, "left as the source"),
        ("one", "one", {"translation": "one"}, ""),
        ("one", "eins", {"flags": ("number",)}, "flagged as a likely failure: number"),
        ("one", "eins", {"similarity": 0.29}, "another meaning: similarity 0.29"),
        ("one", "eins", {"similarity": 0.4}, ""),
        ("one", "eins", {"similarity": 0.4, "probability": -2.5}, "another meaning"),
        ("one", "eins", {"similarity": 0.5, "probability": -9.0}, ""),
        ("one", "eins", {"similarity": None, "probability": -5.0}, ""),
        (
            "one",
            "eins",
            {"similarity": None, "probability": -5.0, "likeness": 9.0},
            "improbable and unlike the model's translation: -5.0 nats",
        ),
    ],
)
def test_reasons_by_comparison(source, target, facts, reason):
    usual = {
        "translation": "uno",
        "flags": (),
        "probability": -0.5,
        "similarity": 0.8,
        "likeness": 50.0,
    }
    compared = Compared(row(source, target), **usual | facts)
    found = compared.reason()
    assert found.startswith(reason)
    assert bool(found) == bool(reason)
