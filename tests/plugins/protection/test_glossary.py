"""Glossaries: what a file may hold, which terms a line has, and what a translation makes of them."""

import bz2

import pytest
from hypothesis import given, settings, strategies as st

from nmt.config import TokenizerConfig
from nmt.errors import NMTError
from nmt.plugins.protection.items import Finder
from nmt.plugins.protection.terms import WORD, Glossary, Terms, judge, read_glossary
from nmt.text import train_tokenizer
from nmt.translation import Translation

TOKENIZER = train_tokenizer(["a b"], TokenizerConfig("bpe", 300))


@pytest.mark.parametrize(
    ("content", "entries"),
    [
        (b"printer\tDrucker\n", [("printer", ("Drucker",), False)]),
        (b"\xef\xbb\xbfprinter\tDrucker", [("printer", ("Drucker",), False)]),
        (b"# a\n\n \nUS\tUSA\tcase\r\nus\tuns\t\n", [("US", ("USA",), True), ("us", ("uns",), False)]),
        (b"house\tHaus\nHouse\tGeb\xc3\xa4ude\nhouse\tHaus\n", [("house", ("Haus", "Gebäude"), False)]),
        (b"  open   file\t Datei  \xc3\xb6ffnen\n", [("open file", ("Datei öffnen",), False)]),
    ],
    ids=str,
)
def test_a_file_of_terms(content, entries, tmp_path):
    for name, written in (("terms.tsv", content), ("packed.tsv", bz2.compress(content))):
        (tmp_path / name).write_bytes(written)
        assert list(read_glossary(str(tmp_path / name)).terms.values()) == entries


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"a\tb\nprinter Drucker\n", 2, "no tab"),
        (b"printer\t\n", 1, "the target is empty"),
        (b"#\n\n \tDrucker\n", 3, "the source is empty"),
        (b"a\tb\tcase\tmore\n", 1, "only a tab and the word case"),
        (b"a\tb\nfu\xdf\tfoot\n", 2, "not UTF-8"),
    ],
    ids=str,
)
def test_what_is_no_file_of_terms_is_named_with_its_line(content, line, problem, tmp_path):
    (tmp_path / "terms.tsv").write_bytes(content)
    with pytest.raises(NMTError, match=rf"terms.tsv, line {line}: .*{problem}"):
        read_glossary(str(tmp_path / "terms.tsv"))


def glossary(*entries: str) -> Glossary:
    return Glossary([(*entry.split("=")[:2], entry.endswith("=case")) for entry in entries])


@pytest.mark.parametrize(
    ("entries", "line", "found"),
    [
        (["printer=Drucker"], "Printer, PRINTER and printers", ["Printer", "PRINTER"]),
        (["US=USA=case"], "us in the US", ["US"]),
        (["US=USA=case", "us=uns"], "us in the US", ["us", "US"]),
        (["York=York", "New York=New York", "New=Neu"], "New York, new in York", ["New York", "new", "York"]),
        (["a b=1", "b c d=2", "a b c e=3", "d=4"], "a b c d", ["a b", "d"]),
        (["US City=1=case", "us=2"], "us City, US city, US City", ["us", "US", "US City"]),
        (["C++=C++"], "C++ and C", ["C++"]),
        (["東京=Tokyo"], "私は東京に", ["東京"]),
        (["Straße=road"], "STRASSE", ["STRASSE"]),
    ],
    ids=str,
)
def test_terms_are_whole_words_the_longest_at_each_place(entries, line, found):
    assert [line[match.begin : match.end] for match in glossary(*entries).find(line)] == found


@given(st.lists(st.text("ab -", min_size=1, max_size=5).filter(str.strip), min_size=1), st.text("abAB ,-", max_size=20))
@settings(max_examples=300, deadline=None)
def test_terms_are_those_that_a_search_for_each_one_finds(sources, line):
    found = [(match.begin, match.end) for match in Glossary([(each, "x", False) for each in sources]).find(line)]
    wanted, words = list[tuple[int, int]](), list(WORD.finditer(line))
    terms = {tuple(WORD.findall(source.lower())) for source in sources}
    for at, first in enumerate(words):
        own = [words[at:end] for end in range(at + 1, len(words) + 1)]
        ends = [each[-1].end() for each in own if tuple(word[0].lower() for word in each) in terms]
        if ends and (not wanted or wanted[-1][1] <= first.start()):
            wanted.append((first.start(), ends[-1]))
    assert found == wanted


@pytest.mark.parametrize(
    ("entries", "line", "translation", "verdicts"),
    [
        (["printer=Drucker"], "the printers printer", "mit den Druckern", ["missed"]),
        (["printer=Drucker"], "a printer", "ein Druckertreiber", ["missed"]),
        (["printer=Drucker"], "printer, printer", "Drucker", ["used", "missed"]),
        (["printer=Drucker"], "printer, printer", "Geräten Druckern Drucker", ["used", "missed"]),
        (["open=öffnen"], "open it", "Öffnen Sie", ["used"]),
        (["open file=Datei öffnen"], "open file", "öffnen Datei", ["missed"]),
        (["printer=Drucker"], "Printer", "Drucker.", ["used"]),
        (["npm=npm"], "npm", "Npm", ["missed"]),
        (["York=York", "New York=New York"], "New York, York", "New York", ["used", "missed"]),
    ],
    ids=str,
)
def test_verdicts(entries, line, translation, verdicts):
    terms, best = glossary(*entries), Translation(translation, 0.0, 0.0)
    used = judge(terms.find(line), translation)
    assert used == [verdict == "used" for verdict in verdicts]
    fields = Terms(terms, TOKENIZER, Finder([])).report(line, best)["terms"]
    assert [term["verdict"] for term in fields] == verdicts
    assert bool(best.notes) == ("missed" in verdicts)
