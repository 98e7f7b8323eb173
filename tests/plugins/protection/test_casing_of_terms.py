"""The case of glossary terms: what counts as a use, and what a search writes."""

import pytest

from nmt.config import TokenizerConfig
from nmt.items.finder import Finder
from nmt.plugins.protection.casing import in_capitals
from nmt.plugins.protection.glossary import Glossary
from nmt.plugins.protection.term_stage import Terms, begins_with_capital
from nmt.plugins.protection.terms import judge, texts_of
from nmt.text import train_tokenizer
from nmt.translation import Segment


def glossary(term: str, translation: str, language: str, case: bool = False) -> Glossary:
    return Glossary([(term, translation, case)], "en", language)


@pytest.mark.parametrize(
    ("term", "target", "language", "translation", "used"),
    [
        ("chart wizard", "assistant diagramme", "fr", "L'assistant Diagramme", True),
        ("chart wizard", "assistant diagramme", "fr", "L'ASSISTANT DIAGRAMME", True),
        ("chart wizard", "Assistant Diagramme", "fr", "l'assistant diagramme", True),
        ("printer", "Drucker", "de", "DER DRUCKER", True),
        ("printer", "Drucker", "de", "der drucker", False),
        ("open file", "Datei öffnen", "de", "Datei Öffnen", True),
        ("street", "Straße", "de", "DIE STRASSE", True),
        ("usb stick", "clé USB", "fr", "Clé USB", True),
        ("usb stick", "clé USB", "fr", "clé usb", False),
        ("network", "ağ bağlantısı", "tr", "AĞ BAĞLANTISI", True),
        ("internet", "internet", "tr", "INTERNET", False),
        ("speed", "hız", "tr", "HIZ", True),
        ("light", "ışık", "tr", "İŞİK", False),
        ("file", "αρχείο", "el", "ΤΟ ΑΡΧΕΙΟ", True),
        ("place", "τόπος", "el", "ΤΌΠΟΣ", True),
        ("file", "файл", "ru", "ФАЙЛ", True),
        ("file", "ფაილი", "ka", "ᲤᲐᲘᲚᲘ", True),
        ("ice", "ijs", "nl", "IJs", True),
        ("npm", "npm", "fr", "Npm", False),
    ],
)
def test_a_term_counts_in_any_case_that_its_language_allows(
    term: str, target: str, language: str, translation: str, used: bool
) -> None:
    matches = glossary(term, target, language).find(f"open the {term} now")
    assert judge(matches, translation, language) == [used]


def test_with_case_only_the_listed_case_counts() -> None:
    terms = glossary("Word", "Word", "fr", case=True)
    assert judge(terms.find("Open Word"), "Ouvrez WORD", "fr") == [False]
    assert judge(terms.find("Open Word"), "Ouvrez Word", "fr") == [True]
    assert not terms.find("OPEN WORD")


def test_a_term_to_keep_may_be_in_capitals_in_a_line_of_capitals() -> None:
    terms = glossary("npm", "npm", "fr")
    assert judge(terms.find("INSTALL NPM"), "INSTALLEZ NPM", "fr") == [True]
    assert judge(terms.find("INSTALL NPM"), "INSTALLEZ npm", "fr") == [True]
    assert judge(terms.find("install npm"), "installez NPM", "fr") == [False]


@pytest.mark.parametrize(
    ("term", "target", "language", "line", "begins", "elsewhere"),
    [
        ("printer", "imprimante", "fr", "The printer", {"Imprimante"}, {"imprimante"}),
        ("printer", "imprimante", "fr", "the printer", {"imprimante"}, {"imprimante"}),
        ("printer", "imprimante", "fr", "THE PRINTER", {"IMPRIMANTE"}, {"IMPRIMANTE"}),
        ("printer", "imprimante", "fr", '"The printer"', {"Imprimante"}, {"imprimante"}),
        ("IT", "informatique", "fr", "IT", {"Informatique"}, {"informatique"}),
        ("IT", "informatique", "fr", "THE IT", {"INFORMATIQUE"}, {"INFORMATIQUE"}),
        ("street", "Straße", "de", "A STREET", {"STRASSE"}, {"STRASSE"}),
        ("printer", "Drucker", "de", "the printer", {"Drucker"}, {"Drucker"}),
        ("Printer", "Drucker", "de", "the printer", {"Drucker"}, {"Drucker"}),
        ("speed", "internet hızı", "tr", "THE SPEED", {"İNTERNET HIZI"}, {"İNTERNET HIZI"}),
        ("file", "ფაილი", "ka", "The file", {"ფაილი"}, {"ფაილი"}),
        ("file", "文件", "zh", "THE FILE", {"文件"}, {"文件"}),
        ("Printer", "Imprimante", "fr", "the printer", {"imprimante", "Imprimante"}, None),
        ("printer", "imprimante", "fr", "the Printer", {"imprimante", "Imprimante"}, None),
        (
            "printer",
            "imprimante",
            "fr",
            "the PRINTER here",
            {"imprimante", "Imprimante", "IMPRIMANTE"},
            None,
        ),
    ],
)
def test_what_a_search_writes_follows_the_line(
    term: str,
    target: str,
    language: str,
    line: str,
    begins: set[str],
    elsewhere: set[str] | None,
) -> None:
    """Without `elsewhere`, the beginning allows the same texts as the rest."""
    [match] = glossary(term, target, language).find(line)
    texts = texts_of(match, begins_with_capital(line), language)
    assert [set(row) for row in texts] == [begins, elsewhere or begins]


def test_capitals_that_a_vocabulary_lacks_are_not_forced() -> None:
    lines = ["ფაილი", "გახსენით ფაილი", "THE FILE"]
    tokenizer = train_tokenizer(lines, TokenizerConfig(kind="bpe", vocabulary_size=300))
    stage = Terms(glossary("file", "ფაილი", "ka"), tokenizer, Finder([]))
    constraints = stage.constraints([Segment(tokenizer.encode(["THE FILE"])[0], "THE FILE")])
    assert constraints is not None
    texts = {tokenizer.decode(phrase.tokens) for phrase in constraints.rows[0][0]}
    assert texts <= {"ფაილი", "ᲤᲐᲘᲚᲘ"}


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("ρολόι", "el", "ΡΟΛΟΪ"),
        ("αρχείο", "el", "ΑΡΧΕΙΟ"),
        ("γάιδαρος", "el", "ΓΑΪΔΑΡΟΣ"),
        ("ısı ilacı", "tr", "ISI İLACI"),
        ("weiß", "de", "WEISS"),
    ],
)
def test_capitals_of_languages(text: str, language: str, expected: str) -> None:
    assert in_capitals(text, language) == expected
